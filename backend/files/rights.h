/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel has said of this process's rights to a file or directory. It is kept with the slot and the generation
 * of the answer about the object, so a change of its mode, owner or access list ends it. An NFS client keeps rights in
 * the same way.
 */
#ifndef FP_FILES_RIGHTS_H
#define FP_FILES_RIGHTS_H

#include <stdbool.h>

struct fp_lease_view;
struct fp_step;

/*
 * Answers for access(2) with that mode: 0 or EACCES, or -1 if that is unknown. The step is the last one of an answer that
 * holds. It is no link: no event for a link reports a change of its target. granted: rights that are known from
 * elsewhere. May be called by several threads.
 */
int fp_files_rights_find(const struct fp_lease_view *view, const struct fp_step *step, int mode, int granted);

/* True if this thread has just asked in vain, and what the kernel says can be kept: rights that not the object alone
 * decides are not. */
bool fp_files_rights_are_wanted(void);

/* Then the kernel granted all rights of that mode, or refused them with EACCES. The step is that of an answer about the
 * same path, now. */
void fp_files_rights_keep(const struct fp_lease_view *view, const struct fp_step *step, int mode, bool granted);

#endif
