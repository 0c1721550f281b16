/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of files in expressions (<If>, Require expr, RewriteCond expr and others). The tests -f -d
 * -e -s -L -h -x and filesize() are answered like paths of requests.
 */
#ifndef FP_EXPRESSION_H
#define FP_EXPRESSION_H

#include <httpd.h>
#include <ap_expr.h>

/* expr_lookup, before core: names the function that stands for the test. */
int fp_expression_find(ap_expr_lookup_parms *parms);

#endif
