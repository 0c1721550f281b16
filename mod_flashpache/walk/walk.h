/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers the stat and lstat calls of core's directory walk.
 *
 * This room answers what httpd 2.4 asks the file system about names before there is a response: core's walk, tests of
 * files in conditions, and other modules' own looks. Access files and bodies call it; it calls question/. No access
 * file and no open file is here. The older httpds have no such hooks, and use nothing of this room.
 */
#ifndef FP_WALK_H
#define FP_WALK_H

#include <httpd.h>
#include <stdbool.h>

struct fp_request;
struct fp_step;

/*
 * The dirwalk_stat hook, about r->filename, which core changes while it walks. AP_DECLINED: the
 * answer does not have it, and core asks the file system.
 */
apr_status_t fp_walk_stat(apr_finfo_t *finfo, request_rec *r, apr_int32_t wanted);

/* Like fp_walk_stat(), with a given answer, q. */
apr_status_t fp_walk_answer_stat(apr_finfo_t *finfo, const request_rec *r, struct fp_request *q,
                                 apr_int32_t wanted);

/*
 * SymLinksIfOwnerMatch for the very links that lead to the descriptor. Core checks a link's target
 * by its name. Another file may have got that name between the daemon's walk and core's.
 *
 * Core, knowing the file, asks for a component's lstat only where links need a check, and goes on
 * only if the owners match. Then the links on the way to q's file must match as well, in whichever
 * request of r's family core checked them. Where core knew of no file (one of the family was
 * absent) it always asks, so its question proves nothing.
 *
 * True if core asked for a link of another owner than its target's. known: while it knew the file.
 */
bool fp_walk_restricted(const request_rec *r, const struct fp_request *q, bool known);

/* True for a link whose owner differs from its target's. */
bool fp_walk_is_foreign(const struct fp_step *s);

#endif
