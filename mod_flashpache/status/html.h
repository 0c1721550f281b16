/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The elements of the status page's sections. Texts are constants of ours unless a function says
 * that it escapes them.
 */
#ifndef FP_HTML_H
#define FP_HTML_H

#include <httpd.h>

/* A whole style sheet: light and dark, wide and narrow. */
extern const char fp_html_style[];

/* ---- numbers as text; all from p ---- */

/* "1,234,567" */
const char *fp_html_number(apr_pool_t *p, apr_uint64_t n);
/* "12.3 %", "under 0.1 %"; "-": the whole is 0. */
const char *fp_html_share(apr_pool_t *p, apr_uint64_t part, apr_uint64_t all);
/* "840 µs", "12.3 ms", "4.2 s" */
const char *fp_html_time(apr_pool_t *p, apr_uint64_t us);
/* "3 d 4 h 12 min" */
const char *fp_html_duration(apr_pool_t *p, apr_uint64_t s);

/* ---- elements ---- */

/* Escapes text, whatever is in it. */
void fp_html_text(request_rec *r, const char *text);
/* Escapes text, and puts it into <code>. */
void fp_html_code(request_rec *r, const char *text);
/* Writes a text of ours in which commands stand between backquotes. */
void fp_html_advice(request_rec *r, const char *advice);

#endif
