/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that may follow a change by this httpd itself. They are asked about afresh, and use only
 * answers of which all changes are reported. Other requests are not affected.
 */
#ifndef FP_FRESH_H
#define FP_FRESH_H

#include <httpd.h>
#include <stdbool.h>

struct fp_client;

/* pre_connection: makes room for the connection's notes. */
int fp_fresh_connect(conn_rec *c, void *csd);

/* map_to_storage, after the question about the request itself: notes for the connection a method
 * that may write. */
void fp_fresh_note_method(const request_rec *r);

/* handler, before all others: notes that a handler runs, which may change files. From now on the family's requests
 * ask afresh. */
int fp_fresh_begin_handler(request_rec *r);
/* Notes that only handlers that serve the file itself took the request. */
void fp_fresh_end_handler(const request_rec *r);

/*
 * True if this httpd itself may have written something, or chosen the file, before r. That is so
 * after another handler ran in r's family (an internal redirect, a later subrequest). It is so after
 * mod_rewrite chose the file, or tested files where its maps run programs. It is so, too, after a
 * method that may write on the same connection, until every answer of before has expired.
 * client: the child's.
 */
bool fp_fresh_is_wanted(const request_rec *r, struct fp_client *client);

#endif
