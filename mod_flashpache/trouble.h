/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages about a daemon that gives no answer. Knows neither httpd nor APR.
 */
#ifndef FP_TROUBLE_H
#define FP_TROUBLE_H

#include "common/errors.h"

struct fp_client;

/* Why this client's question has no answer, and the way out. */
const char *fp_trouble_text(struct fp_client *client, fp_status st);

#endif
