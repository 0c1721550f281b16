/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether to wait for the daemon's look at a path that it does not know, or to look by a call of one's own. This
 * process measures both, for each part of the tree and each kind of call, and takes the quicker way. A call that the
 * kernel answers from its memory takes microseconds, and is always the quicker one. A daemon that has a path's
 * directory open needs fewer round trips to a file server than the path itself does.
 */
#ifndef FP_FILES_PACE_H
#define FP_FILES_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parts of the tree share places: what one measures counts for all of its place. opens: a call that opens a file
 * waits for the file's server where one that looks at it does not. */
struct fp_pace;
struct fp_pace *fp_pace_of(const char *path, size_t len, bool opens);

/* True if own calls were measured, and the kernel answers them from its memory, by how long they take. */
bool fp_pace_is_quick(const struct fp_pace *pace);

/* True if the daemon is to be asked. The way that is not taken gets a little quicker in memory, so it is tried
 * again. Several threads may call these functions. */
bool fp_pace_asks(struct fp_pace *pace);

/* That is how long a question took. An answer that was of no use is a slow one. */
void fp_pace_asked(struct fp_pace *pace, uint64_t us, bool useful);
/* The same for a call of one's own. again: not the first on its path, which is that of the pace. A program makes two or
 * three, which one answer would have served. */
void fp_pace_called(struct fp_pace *pace, uint64_t us, bool again);

#endif
