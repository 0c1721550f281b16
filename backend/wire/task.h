/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task of a worker: to walk to a path, from "/" or from a directory that is
 * known already and goes along as a descriptor.
 */
#ifndef FP_TASK_H
#define FP_TASK_H

#include <stdbool.h>

#include "wire/answer.h"
#include "wire/wire.h"

struct fp_task {
    struct fp_lookup lookup;
    struct fp_names names; /* of access files, looked for in each directory */
    size_t base_len;      /* length of the path of the directory where the
                                  walk begins; 0: at "/", which is a step too */
    uint8_t base_links;   /* followed to reach it, all that are above it included */
    uint32_t content_max; /* a file of at most so many bytes may be answered by its
                                  content; 0: none */
    uint64_t clock_dev;   /* the device where the path lies, as expected, */
    int64_t clock_ms;     /* and what is known of its server's clock (server_clock.h) */
    bool names_known;     /* the base's names need not be asked of its server: they are known from a look lately */
    bool looks_only;      /* a file that is not as it was is not opened, and the answer says unchanged */
    bool has_known;
    struct fp_meta known; /* the file as it was: if it still is, nothing
                                  is opened and the answer says unchanged,
                                  but to answer with its content */
};

struct fp_walk_result;

/* Writes a whole frame; the base's descriptor goes with it where base_len is not 0. */
fp_status fp_task_encode(struct fp_writer *w, uint64_t id, const struct fp_task *t);
/* Reads the body of a TASK frame; FP_OK or FP_PROTOCOL. */
fp_status fp_task_decode(struct fp_reader *r, struct fp_task *t);

/*
 * True for a file of a file system that may wait when it is closed.  Its worker says CLOSED after it has
 * closed its own descriptor, and is at work until then.
 */
bool fp_result_is_closed_later(const struct fp_answer *a);

/* Writes the worker's answer, a whole frame; a->fd goes with it. */
fp_status fp_result_encode(struct fp_writer *w, uint64_t id, const struct fp_answer *a,
                           const struct fp_walk_result *result);
/*
 * Reads the body of that frame, about t.  fd came with it (-1: none): on FP_OK it is the
 * answer's, else it stays the caller's.  FP_OK or FP_PROTOCOL.
 */
fp_status fp_result_decode(struct fp_reader *r, const struct fp_task *t, int fd, struct fp_answer *a,
                           struct fp_walk_result *result);

#endif
