/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends a file that came with an answer, by its descriptor or its content, to httpd 2.2 and 2.0.
 */
#ifndef FP_HTTPD22_RESPOND_H
#define FP_HTTPD22_RESPOND_H

#include <httpd.h>

/* The handler, one step before core's: GET and HEAD of a regular file. */
int fp_respond(request_rec *r);

#endif
