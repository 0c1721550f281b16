/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a file by its content or descriptor, in place of core's handler of Apache 1.3.
 */
#ifndef FP_RESPOND13_H
#define FP_RESPOND13_H

#include <httpd.h>

int fp_respond(request_rec *r);

#endif
