/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FlashpacheIntercept: for some calls of stat() by core and modules there is no hook. The import
 * table of each named module then leads to a function of this file, which asks as a test of a file
 * does (fp_lookup_test). Only children have the other entry. A table is read-only once httpd runs
 * (RELRO), so its page is made writable for one store.
 */
#ifndef FP_INTERCEPT_H
#define FP_INTERCEPT_H

#include <httpd.h>

/* child_init: changes the import tables of these (module *); logs FP0124 for a module that stays as it is. */
void fp_intercept_begin(server_rec *s, const apr_array_header_t *modules);

/* create_request: calls with the request's pool are this request's. */
int fp_intercept_request(request_rec *r);

#endif
