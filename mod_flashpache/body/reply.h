/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part that the handlers for all generations of httpd 2.x share.
 *
 * This room sends files: it chooses the form of the body, and checks that walk, access files and open file agree.
 * main calls its handler, or that of httpd22/, which uses reply, file_bucket and agreement. It calls question/ for
 * answers and open files, and walk/ for the links that core asked about. No file is looked at or kept here.
 */
#ifndef FP_REPLY_H
#define FP_REPLY_H

#include <apr_buckets.h>
#include <httpd.h>
#include <stdbool.h>

struct fp_request;

/* Logs that r's file cannot be opened (error: errno), in core's words of that generation. */
typedef void fp_log_denied(request_rec *r, int error);

/*
 * Begins a handler: notes that this one has not served yet, and refuses a FIFO or a socket. OK: an answer may
 * serve the request. Otherwise the status to return; DECLINED: this time the answers of the request's family
 * are not used.
 */
int fp_reply_begin(request_rec *r, fp_log_denied *log_denied);

/*
 * Gives r->finfo and the headers the file's length of now: a file that is written in place changes while its
 * answer is still used. False: that length is not known. A stale answer's file system may not be asked. An
 * own look was for this request.
 */
bool fp_reply_look_again(request_rec *r, const struct fp_request *q);

/* Reads the request's body, as core does before it opens a file: a malformed one decides the response,
 * whatever the state of the file. Returns OK or the status. */
int fp_reply_take_body(request_rec *r);

/* Refuses a FIFO (FP0106), as stock httpd hangs in its
 * open(), and a socket, as core does. Returns the status. */
int fp_reply_refuse(request_rec *r, fp_log_denied *log_denied);

/*
 * Leaves the file to core, which opens it by its name, now. Core approved the file as the daemon saw it. If
 * the name leads to another file now, the request is served from the beginning, without an answer. Returns
 * DECLINED or the status.
 */
int fp_reply_by_core(request_rec *r);

/*
 * For a file that the daemon could not open: opens it by its name. If that fails, logs and returns 403 as
 * core does. A FIFO is refused. If another file has the name now, the request is served from the beginning,
 * without an answer. Core would send that file with the approved one's length. Returns DECLINED (core can
 * open the approved file) or the status.
 */
int fp_reply_unreadable(request_rec *r, fp_log_denied *log_denied);

/*
 * True if the answer *found (NULL if there is none) may serve the request; a file that is not open yet is then, and
 * *found the answer with it. plain: the handler sends such files
 * itself. False: *status_r is to be returned. DECLINED: core serves the request. OK: the request has been
 * served, from the beginning.
 */
bool fp_reply_may_serve(request_rec *r, const struct fp_request **found, bool plain, fp_log_denied *log_denied,
                        int *status_r);

/* Sets the headers of r->finfo, as core does. */
void fp_reply_set_headers(request_rec *r);

/* A bucket with all of the answer's file, after a look at its length of now; map: it may be mapped. NULL: the content
 * is gone. */
apr_bucket *fp_reply_body(request_rec *r, const struct fp_request *q, bool map);

/* False: the first bytes of the body cannot be read. So a file system that
 * died after the daemon's look shows while httpd can still report it. */
bool fp_reply_can_be_read(const request_rec *r, apr_bucket *e);

/* Ends the brigade of the body, and passes it on. Returns what the handler returns. */
int fp_reply_send(request_rec *r, apr_bucket_brigade *bb);

#endif
