/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of a walk beside its answer.  For each step it has the mount that the step leads
 * to and the watch that reports changes there.  It also has the names that were traversed while
 * links were followed, and the access files that were found.  Goes from workers to
 * the daemon, behind the answer.
 */
#ifndef FP_WALK_RESULT_H
#define FP_WALK_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/verdict.h"
#include "wire/answer.h"
#include "wire/wire.h"

#define FP_MAX_WATCH_KEY       4    /* bytes */
#define FP_MAX_TRAVERSED       32   /* names of a walk */
#define FP_MAX_TRAVERSED_BYTES 2048 /* of all those names together */
#define FP_MAX_LINKS           40   /* followed on a whole path: the kernel follows no more */

/*
 * A directory or file of which changes are reported, by the name that the events
 * give it: inotify's watch descriptor.
 */
struct fp_watch_key {
    uint8_t len; /* 0: no event reports changes */
    uint8_t bytes[FP_MAX_WATCH_KEY];
    /* Which object that is, and whose; 0: unknown.  No part of the key: events do not say it. */
    uint64_t dev, ino;
    uint32_t uid;
};

/* The watch and the mount at the end of a step. */
struct fp_step_watch {
    uint32_t mount;          /* as in statx(2); 0: there is nothing, or unknown */
    enum fp_verdict verdict; /* of all that the worker watched for the step, or could not */
    uint8_t links;           /* followed to get there, from "/" on */
    struct fp_watch_key watch; /* of that directory or regular file */
};

/* The step depends on this name in this directory, or with an empty name on
 * this file. */
struct fp_traversed_name {
    uint8_t step, len;
    uint16_t at; /* where in names */
    struct fp_watch_key watch;
};

/* The calls of a walk. */
enum fp_call { FP_CALL_NONE, FP_CALL_OPEN, FP_CALL_STAT, FP_CALL_READLINK, FP_CALL_READ, FP_CALL_WATCH };
#define FP_CALLS 6

/* How long a walk took, how many calls its file systems may have had to ask a server for, and the longest one. */
struct fp_effort {
    uint32_t us, longest_us, calls;
    enum fp_call call;
};

/* "open", "stat", "readlink", "read", "watch"; "unknown" where none was made. */
const char *fp_call_text(enum fp_call call);

struct fp_walk_result {
    struct fp_effort effort;
    bool settled; /* the answer's content: each later change of the file shows in its metadata */
    struct fp_step_watch step_watches[FP_MAX_STEPS]; /* one for each of the answer's steps */
    unsigned n_steps; /* the answer's.  Where the walk failed its answer has none, but these had watches */
    unsigned unwatched; /* watches that were refused, by the system's limit */
    unsigned n_traversed;
    size_t names_len;
    struct fp_traversed_name traversed[FP_MAX_TRAVERSED];
    char names[FP_MAX_TRAVERSED_BYTES]; /* not terminated, one behind the other */
};

void fp_walk_result_init(struct fp_walk_result *t);

/* True if there is room for one more name of that length: a watch for which there is none would never end. */
bool fp_walk_result_has_room(const struct fp_walk_result *t, size_t len);
/* Adds it once.  Returns false when it does not fit: each request looks at the step then. */
bool fp_walk_result_add(struct fp_walk_result *t, unsigned step, const struct fp_watch_key *watch,
                        const char *name, size_t len);

/* Adds the verdict on something in the step to that on the step. */
void fp_walk_result_judge(struct fp_walk_result *t, unsigned step, enum fp_verdict v);

/* Writes the result. */
void fp_put_walk_result(struct fp_writer *w, const struct fp_walk_result *t);
/* Reads it behind an answer of n_steps: FP_OK, the reader being at its end, or FP_PROTOCOL. */
fp_status fp_get_walk_result(struct fp_reader *r, struct fp_walk_result *t, unsigned n_steps);

#endif
