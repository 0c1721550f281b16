/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open file, from the daemon or opened by its name, that requests share.
 *
 * The descriptor shares its file offset with every process that has it, so no function here moves
 * or uses the offset.
 *
 * A process that touches the missing part of a mapped, shortened file is killed (SIGBUS). So only
 * files that cost more to copy are mapped, and each response checks the length first; one that APR's
 * bucket maps was looked at for the request. Stock httpd with EnableMMAP On has the same remaining race.
 * On file systems that are not local that check could wait: there everything is read. A file that the
 * daemon may have chosen is read, too (fp_file_may_be_mapped()).
 */
#ifndef FP_FILE_H
#define FP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fp_file;

/* A mapping of a whole file, made once for all its responses. */
struct fp_mapping {
    void *base;
    size_t size;
};

#define FP_FILE_MAP_MOST ((size_t)4 * 1024 * 1024) /* bytes of one mapping */

/*
 * Takes the descriptor; the caller has one reference. local: fstat() on it does not wait. NULL: no
 * memory, and fd is closed.
 */
struct fp_file *fp_file_create(int fd, bool local);
/* Adds a reference, which fp_file_release() drops. */
void fp_file_retain(struct fp_file *file);
/* Drops *file's reference and leaves NULL; the last one closes. */
void fp_file_release(struct fp_file **file);

/* The file's descriptor, which the file still owns. */
int fp_file_descriptor(const struct fp_file *file);
bool fp_file_is_local(const struct fp_file *file);
/*
 * True if a local file may be mapped. A false daemon could pass a file of its own and cut it. So
 * the file must be on a file system of this machine and have that device and inode number. Where
 * others than root may write the file, the path's name must lead to it now, too. Looks once.
 */
bool fp_file_may_be_mapped(struct fp_file *file, const char *path, uint64_t dev, uint64_t ino);

/* Lets a local file be mapped without that look: this process opened it by its own name. */
void fp_file_trust(struct fp_file *file);

/* In microseconds, as in APR. A file may have any time: one that does not fit wraps, as there. */
int64_t fp_file_time(int64_t sec, uint32_t nsec);

/* Size and time of modification of a file now; asks its file
 * system. False: unknown. */
bool fp_file_look(const struct fp_file *file, off_t *size_r, int64_t *mtime_r);

/* pread(), which no signal interrupts. */
ssize_t fp_file_read(const struct fp_file *file, char *buf, size_t len, off_t offset);

/* The mapping of the whole file; NULL if there is none. */
struct fp_mapping *fp_file_mapping(const struct fp_file *file);
/*
 * The mapping from which to send length bytes, made if the file was sent before or is large. It
 * lives as long as the file. NULL: read the bytes, or map only them.
 */
const struct fp_mapping *fp_file_keep_mapped(struct fp_file *file, size_t length);
/* Maps these bytes; the offset must be a page's, and the caller unmaps them. NULL: the file is not
 * local, is shorter, or cannot be mapped. */
void *fp_file_map(const struct fp_file *file, off_t offset, size_t length);

/* The number of descriptors that all files hold now. */
unsigned fp_file_descriptors(void);
/* Bytes that stay mapped for later responses. */
uint64_t fp_file_mapped(void);

#endif
