/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open file that came from the daemon, or its content.
 *
 * The descriptor shares its file offset with every process that has it, so
 * nothing here ever moves or uses the offset.
 *
 * A file that is cut short while it is mapped would kill the process that
 * touches the missing part (SIGBUS).  So only what costs more to copy is mapped,
 * and sent from there only after the length was checked; the race that remains is
 * that of stock httpd with EnableMMAP On.  On other than local file systems that
 * check could wait: there everything is read.  So is a file that the daemon may have chosen
 * (fp_file_may_be_mapped()).
 *
 * A small file may come as its content instead, copied out of the daemon's memory: then no
 * descriptor is held, and sending it asks no file system.
 */
#ifndef FP_FILE_H
#define FP_FILE_H

#include <apr_errno.h>
#include <apr_time.h>
#include <stdbool.h>

struct fp_contents_view;
struct fp_file;

/* All of a file, mapped once for all its responses, or a copy of a content. */
struct fp_mapping {
    void *base;
    size_t size;
};

#define FP_FILE_MAP_MOST ((apr_size_t)4 * 1024 * 1024) /* bytes of one mapping */

/*
 * Takes the descriptor; one reference is the caller's.  local: fstat() on it does not
 * wait.  NULL: no memory, fd is closed then.
 */
struct fp_file *fp_file_create(int fd, bool local);
/* The same of a content of size bytes at that place (contents.h), copied.  NULL: no memory, or it is
 * there no more. */
struct fp_file *fp_file_create_content(const struct fp_contents_view *contents, apr_uint64_t at,
                                       apr_size_t size);

void fp_file_retain(struct fp_file *file);
/* Drops *file's reference and leaves NULL; the last one closes. */
void fp_file_release(struct fp_file **file);

/* The file's, which stays its own; -1: it came as its content. */
int fp_file_descriptor(const struct fp_file *file);
bool fp_file_is_local(const struct fp_file *file);
/* True if it came as its content. */
bool fp_file_is_content(const struct fp_file *file);

/*
 * True if a local file may be mapped.  A daemon that is not what it should be could pass a file of its own
 * and cut it.  So the file is on a file system of this machine, has that device and inode number, and has
 * the path's name now; that only where others than root may write it.  Looks once.
 */
bool fp_file_may_be_mapped(struct fp_file *file, const char *path, apr_uint64_t dev, apr_uint64_t ino);

/* Size and times of a local file as they are now; false: not to be had, as of one that
 * came as its content. */
bool fp_file_look(const struct fp_file *file, apr_off_t *size_r, apr_time_t *mtime_r);

/* pread(): *len bytes at most; APR_EOF where the file ends. */
apr_status_t fp_file_read(const struct fp_file *file, char *buf, apr_size_t *len, apr_off_t offset);

/* NULL: it is not mapped as a whole. */
struct fp_mapping *fp_file_mapping(const struct fp_file *file);
/*
 * The mapping to send length bytes of a file from, made if it was sent before or is large;
 * it lives as long as the file.  NULL: read the bytes, or map them alone.
 */
const struct fp_mapping *fp_file_keep_mapped(struct fp_file *file, apr_size_t length);
/* Maps these bytes, the offset being a page's; the caller unmaps them.  NULL: the file is
 * not local, or shorter, or cannot be mapped. */
void *fp_file_map(const struct fp_file *file, apr_off_t offset, apr_size_t length);

/* The number of descriptors that all files hold now. */
unsigned fp_file_descriptors(void);
/* Bytes that stay mapped, or copied, for their next response. */
apr_uint64_t fp_file_mapped(void);

#endif
