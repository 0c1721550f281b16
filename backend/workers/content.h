/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a small file, sealed in a memfd that is answered instead of the
 * file's descriptor.  So a child that sends it asks no file system.  Runs in a
 * worker process.
 *
 * The content belongs to the metadata only if each change of the file
 * changes its metadata.  Two changes within one tick of the file system's clock
 * have one time.  So a content is kept only if its file's change time is some
 * seconds old.  A write through a mapping is not seen: it sets the time when it makes a
 * page dirty, not each time after that.
 */
#ifndef FP_CONTENT_H
#define FP_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

struct fp_meta;
struct fp_mount_traits;

/* True for a file that has settled; by the server's clock, too, if the mount is not local. */
bool fp_content_is_settled(const struct fp_meta *m, const struct fp_mount_traits *traits);
/*
 * True for a file of at most max bytes, not empty, that is to be answered by its content. A file that has not
 * settled is read only on remote mounts, where nobody may hold it open. Its content serves the waiting
 * clients, and nobody keeps it.
 */
bool fp_content_is_wanted(const struct fp_meta *m, uint32_t max, const struct fp_mount_traits *traits);

/*
 * Makes a memfd with the file's first size bytes, which nobody can change.  -1 where the file
 * has fewer, the reading takes too long, or something failed.  The
 * caller looks afterwards whether the file has changed meanwhile.
 */
int fp_content_create(int file, uint64_t size);

#endif
