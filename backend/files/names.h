/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in a directory. This process reads them and keeps them while an answer about the
 * directory holds: a change that this machine makes in the directory ends the answer, and any
 * change gives the directory another time. Slot and generation are the proof, so a directory
 * that changes has no names any more.
 */
#ifndef FP_FILES_NAMES_H
#define FP_FILES_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dirent64;
struct fp_lease_view;
struct fp_step;

struct fp_files_names;

/*
 * The names in the directory, with a reference for the caller. The step is the last one of an answer about
 * the path, in normal form; it is no link, and holds. NULL: the names are unknown. Then the directory is
 * unreadable, too large, or was changed a moment ago. May be called by several threads.
 */
struct fp_files_names *fp_files_names_of(const struct fp_lease_view *view, const char *path, size_t len,
                                         const struct fp_step *step);
void fp_files_names_release(struct fp_files_names **n);

/* The record at *at, as getdents64(2) gave it, or NULL at the end. 0 is the first; *at becomes the next one's. */
const struct dirent64 *fp_files_names_next(const struct fp_files_names *n, size_t *at);

/* True if the names are those of that directory. */
bool fp_files_names_are_of(const struct fp_files_names *n, uint64_t dev, uint64_t ino);
/* True if both are those of one directory. */
bool fp_files_names_are_same(const struct fp_files_names *a, const struct fp_files_names *b);

#endif
