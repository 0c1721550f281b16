/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a small file, sealed in a memfd that is answered instead of the
 * file's descriptor: whoever sends it asks no file system any more.  Runs in a
 * helper process.
 *
 * It is the content of what the metadata says only if a change of the file
 * changes its metadata.  Two changes within one tick of the file system's clock
 * have one time, so a file is taken only when its change time is some seconds
 * old.  Not seen is a write through a mapping: it sets the time when it makes a
 * page dirty, not each time after that.
 */
#ifndef FP_CONTENT_H
#define FP_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

struct fp_meta;

/* Is it a file of at most max bytes, not empty, that no longer changes? */
bool fp_content_is_due(const struct fp_meta *m, uint32_t max);

/*
 * A memfd with the file's first size bytes, which nobody can change; -1 where it
 * has fewer, or something failed.  Whether the file is still what it was is the
 * caller's to look at, afterwards.
 */
int fp_content_create(int file, uint64_t size);

#endif
