/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer that a request holds: in the request's own memory, with the tables that say whether it is still
 * true, and its open file. It goes with the request. Knows no httpd and no APR.
 */
#ifndef FP_HELD_H
#define FP_HELD_H

#include "status/outcomes.h"
#include "wire/answer.h"

struct fp_client;
struct fp_file;
struct fp_lease_view;

struct fp_held {
    struct fp_answer *answer;   /* the request's memory; its descriptor is the file's */
    struct fp_lease_view *view; /* the tables of its slots, and a reference to them; NULL if there are none */
    struct fp_file *file;       /* the last step's, and a reference to it; NULL: not open */
    enum fp_count found;        /* the source of the answer */
    const char *path;           /* that was asked about, not terminated: as long-lived as the answer */
    size_t path_len;
};

/* Takes the descriptor of the answer, whose other fields are set, and keeps the file for later requests if the answer
 * allows that. False: out of memory, and the descriptor is closed. */
bool fp_held_take_file(struct fp_held *h);
/* Asks the daemon about the path by a message, past the table of answers. FP_OK: the caller ends h; else as
 * fp_client_lookup_with(), or FP_NOMEM. */
fp_status fp_held_ask(struct fp_client *client, bool fresh, bool no_stale_fd, struct fp_held *h);
/* Drops the references; the memory is the caller's. It may be called again. */
void fp_held_end(struct fp_held *h);

/* True if the file's bytes are to be had without a further question. */
bool fp_held_has_file(const struct fp_held *h);
/* True if there is a file to be had that the daemon is to open for a response. */
bool fp_held_is_unopened(const struct fp_held *h);
/* True if the file system did not answer, and this is its last answer. */
bool fp_held_is_stale(const struct fp_held *h);
/* True if the steps are valid now. If they were copied before, the copies were valid ones. There are tables. */
bool fp_held_holds(const struct fp_held *h);
/* True if no change was reported since the answer, or none can be: the file system does not answer. */
bool fp_held_is_unchanged(const struct fp_held *h);

const struct fp_step *fp_held_last(const struct fp_held *h);
/* The metadata of what the path leads to; NULL: nothing, or what is there is unknown. */
const struct fp_meta *fp_held_target(const struct fp_held *h);

/* Reads the answer's file, if it is the very file that a walk saw as *x. buf has one byte more than the file. False:
 * it is another one, its length differs, or it cannot be read. */
bool fp_held_read_access_file(const struct fp_held *h, const struct fp_access *x, char *buf);

#endif
