/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program's own calls on paths, answered from the daemon's memory. This room may use shared/, wire/
 * and base/ alone, and knows neither httpd nor PHP. There are two ways in: php-fpm is started with a
 * library that has a connection of its own (own.c, preload.c), and a child of httpd, in which mod_php
 * runs, has one already. Both have the same functions in the place of the C library's (calls.c).
 *
 * An answer is as true as the kernel's own: it is used under the same look at the queues of events as
 * a request's, and only where all of this machine's changes are reported. Everything else, and every
 * doubt, is the C library's own call; the daemon then gets a hint, which waits for nothing.
 *
 * The daemon answers processes of its own user and groups alone, so its answers tell the process
 * nothing that it could not look at itself.
 */
#ifndef FP_FILES_ANSWERS_H
#define FP_FILES_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/answer.h"

struct fp_answer;
struct fp_files_names;
struct fp_lease_view;
struct fp_meta;

/* What became of a question. */
enum fp_files_result {
    FP_FILES_ANSWERED,
    FP_FILES_NEW,    /* left to the C library: the daemon has no answer that holds, and is told of the path */
    FP_FILES_DOUBT,  /* the same: an answer does not say it (a right, an error, what is not in memory) */
    FP_FILES_NOBODY, /* the same: nobody answers, or not about that path */
    FP_FILES_RESULTS
};

/* Whom this process asks. Several threads may call its functions. */
struct fp_files_source {
    /* False: nothing is asked about that path for now. It is as the program wrote it. */
    bool (*covers)(const char *path, size_t len);
    /* The tables, with a reference for the caller. NULL: nobody answers questions about that path, which
     * is in normal form here and below. */
    struct fp_lease_view *(*view)(const char *path, size_t len);
    /* Names a path to the daemon that these tables lack. Waits for nothing. */
    void (*hint)(const struct fp_lease_view *view, const char *path, size_t len);
    /* The same, and waits until the daemon has looked at it, or will not. The answer is in the tables then; *a is
     * room for it. False: nobody answered. */
    bool (*ask)(const struct fp_lease_view *view, const char *path, size_t len, struct fp_answer *a);
    /* Counts a question about a path that is covered. */
    void (*count)(enum fp_files_result result);
};

/* This process asks from now on. The source outlives it. */
void fp_files_begin(const struct fp_files_source *source);

/* This process looks at files itself from now on: it sees others than the daemon does, or as another user. */
void fp_files_end(void);

/* True while this thread's own work for an answer goes on: its calls are the C library's, and take no lock of ours. */
bool fp_files_is_inside(void);

#define FP_FILES_UNKNOWN (-1) /* the C library has to say, */
/* and this function is to be called as soon as it has: how long it took is measured. errno stays as it was. */
void fp_files_called(void);

/*
 * Answers for stat(2), or without follow for lstat(2): 0 and *m, or its errno (ENOENT, ENOTDIR), or
 * FP_FILES_UNKNOWN. errno stays as it was. May be called by several threads, but not by a signal's handler:
 * it may take memory.
 */
int fp_files_find(const char *path, bool follow, struct fp_meta *m);

/* Answers for access(2): 0, or its errno (ENOENT, ENOTDIR, EACCES), or FP_FILES_UNKNOWN. In the last case, fp_files_accessed()
 * is to be told what the C library said to this call: 0 or its errno. */
int fp_files_access(const char *path, int mode);
void fp_files_accessed(const char *path, int mode, int said);

/*
 * Like fp_files_find() with follow, for a regular file of a remote mount that is to be read. 0 and
 * *content_r: a copy of its m->size bytes, to be given back by fp_copy_give_back().
 */
int fp_files_read(const char *path, struct fp_meta *m, void **content_r);

/* The same for a directory, whose names are to be read. 0 and *names_r: the caller's to release (names.h). */
int fp_files_names(const char *path, struct fp_files_names **names_r);

#endif
