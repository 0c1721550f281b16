/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel has said of this process's rights to a file or directory. It is kept with the slot and the generation
 * of the answer about the object, so a change of its mode, owner or access list ends it. An NFS client keeps rights in
 * the same way.
 */
#ifndef FP_FILES_RIGHTS_H
#define FP_FILES_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

struct fp_answer;
struct fp_lease_view;

/* A question that only the kernel can answer. Its result may be kept. */
struct fp_files_right {
    uint64_t answer;    /* tells which answer was there; 0: the result may not be kept */
    unsigned forgotten; /* how often rights had been forgotten */
};

/*
 * Answers for access(2) with that mode: 0 or EACCES, or -1 if that is unknown; *open_r is the question then. The answer
 * is about the object, and holds. granted: rights that are known from elsewhere. A link's are never known: no event for
 * a link reports a change of its target. May be called by several threads.
 */
int fp_files_rights_find(const struct fp_lease_view *view, const struct fp_answer *a, int mode, int granted,
                         struct fp_files_right *open_r);

/* Keeps that the kernel then granted all rights of the mode, or refused them with EACCES. a: the answer about the path by
 * now. Nothing is kept if it is another one, or if a mount has changed meanwhile. */
void fp_files_rights_keep(const struct fp_lease_view *view, const struct fp_answer *a, int mode, bool granted,
                          const struct fp_files_right *open);

#endif
