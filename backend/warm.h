/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that the configuration names as warm_file: the paths in use, over a restart.
 *
 * It says which paths are worth a look, and nothing about them: each path is looked up again, within
 * roots and with the daemon's rights.  So a user who could write to it could make the daemon look in vain,
 * and nothing else.
 */
#ifndef FP_WARM_H
#define FP_WARM_H

#include <ev.h>
#include <stdbool.h>
#include <stddef.h>

#include "cache/cache.h"
#include "lookup/warm_list.h"
#include "privsep/lister.h"

struct ev_loop;
struct fp_conf;
struct fp_dispatch;

enum fp_warm_work { FP_WARM_WAITS, FP_WARM_LISTS, FP_WARM_WRITES };

/* The lists that are written while the daemon runs: listed in slices, written by another process. */
struct fp_warm {
    const char *file; /* the configuration's; "" or NULL: no list is kept */
    unsigned every_s; /* 0: one list, at the end */
    struct ev_loop *loop;
    struct fp_dispatch *dispatch;
    struct fp_lister lister;
    ev_timer timer;
    ev_io told; /* the list is written */
    enum fp_warm_work work;
    struct fp_cache_cursor at;
    struct fp_warm_text text;
    unsigned written; /* the hash of the last list that was written */
    bool failed;      /* so was the last one, and the log says so */
};
#define FP_WARM_NONE \
    { \
        .lister = FP_LISTER_NONE \
    }

/* Before other threads, the loop and the filters: starts the process that writes the file.  c outlives it;
 * lent_log as in child.h.  False: the log says why. */
bool fp_warm_start(struct fp_warm *w, const struct fp_conf *c, bool lent_log);
/* Before the filters: looks up the file's paths in the background, and begins to
 * write lists from time to time.  A file that is another user's, may be written
 * by others, is too large or malformed is left alone, and the log says so. */
void fp_warm_read(struct fp_warm *w, struct ev_loop *loop, struct fp_dispatch *dispatch);
/* To be called at the end, before the dispatch goes: writes the last list. */
void fp_warm_write(struct fp_warm *w);
void fp_warm_stop(struct fp_warm *w);

#endif
