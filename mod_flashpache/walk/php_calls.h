/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FlashpacheIntercept mod_php: PHP's own calls on files in this child, answered by the child's connection
 * and table. Scripts of a server are answered where Flashpache is on for it, but for what it excludes.
 */
#ifndef FP_PHP_CALLS_H
#define FP_PHP_CALLS_H

#include <httpd.h>

/* In a child: leads PHP's import tables. php: an address in it. Returns as fp_imports_lead(). */
int fp_php_calls_begin(const void *php, const char **why_r);

/* handler, before all others: PHP may run now. */
int fp_php_calls_note(request_rec *r);

#endif
