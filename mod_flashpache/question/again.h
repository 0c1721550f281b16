/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Serves a request once more, where what led to its response was not one view of the file system.
 */
#ifndef FP_AGAIN_H
#define FP_AGAIN_H

#include <httpd.h>
#include <stdbool.h>

/*
 * Serves the request by fresh answers: a main request from its beginning, a subrequest from its file name.
 * After a few times core serves it, or, where links are restricted, nobody. Returns what a handler returns.
 */
int fp_again_serve(request_rec *r);
/* As fp_again_serve(), but after a few times nobody serves it: a path has led to different directories, and core would
 * open by name what one of them closes. */
int fp_again_serve_elsewhere(request_rec *r);

/* create_request: the rules that led to a part that is served once more are not applied again. */
int fp_again_begin(request_rec *r);
/* post_read_request, before all others: a request that is served once more begins with what it began with before. */
int fp_again_restore(request_rec *r);
/* map_to_storage: such a part has the URI that it was asked for by, which <Location> is about. */
int fp_again_name(request_rec *r);

/* True if r, or a request that it is part of, is being served once more without an answer. */
bool fp_again_is_by_core(const request_rec *r);
/* True if r, or a request that it is part of, is being served once more by fresh answers. */
bool fp_again_is_afresh(const request_rec *r);

#endif
