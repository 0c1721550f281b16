/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which requests may follow a change that this httpd itself made: they are asked about afresh, and
 * no lease is used but one of which all changes are reported; the others know nothing of it.
 */
#ifndef FP_FRESH_H
#define FP_FRESH_H

#include <httpd.h>
#include <stdbool.h>

/* pre_connection: makes room for what follows. */
int fp_fresh_connect(conn_rec *c, void *csd);

/* map_to_storage, after the request itself was asked about: a method that may write is noted for
 * the connection. */
void fp_fresh_note_method(const request_rec *r);

/* handler, before all others: notes that one runs for this family of requests. */
int fp_fresh_begin_handler(request_rec *r);
/* No handler but those that serve the file itself wanted the request. */
void fp_fresh_end_handler(const request_rec *r);

/*
 * True after a handler that may have written something ran in r's family (an internal redirect,
 * a later subrequest), after mod_rewrite chose the file, and after a method that may write on
 * the same connection.
 */
bool fp_fresh_is_wanted(const request_rec *r);

#endif
