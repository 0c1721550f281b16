/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler: a response from a descriptor that is already open.
 */
#ifndef FP_RESPOND_H
#define FP_RESPOND_H

#include <httpd.h>

/* Serves r as core's default handler would. DECLINED: core's handler is to serve it. */
int fp_respond(request_rec *r);

#endif
