/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open file that came from the daemon, and a bucket that sends it.
 *
 * The descriptor shares its file offset with every process that has it, so
 * nothing here ever moves or uses the offset: the bucket reads with pread().
 * (APR's own file bucket seeks and reads; two requests would get each
 * other's bytes.)
 *
 * A file that is cut short while it is mapped would kill the process that
 * touches the missing part (SIGBUS).  So only what costs more to copy is mapped,
 * and sent from there only after the length was checked;
 * what remains is the race that stock httpd has with EnableMMAP On.  On other
 * than local file systems that check could wait: there everything is read.
 *
 * A small file may come as its content instead, sealed and mapped once: then no
 * descriptor is held, and sending it asks no file system.
 *
 * A bucket keeps the file open by a reference of its own, which depends on no
 * pool: it may be set aside, passed to another thread or outlive its request.
 */
#ifndef FP_FILE_H
#define FP_FILE_H

#include <apr_buckets.h>
#include <stdbool.h>

struct fp_file;

/*
 * Takes the descriptor; one reference is the caller's.  local: looking at it
 * waits for nobody.  NULL: no memory, fd is closed then.
 */
struct fp_file *fp_file_create(int fd, bool local);
/*
 * The same of a content of size bytes, a sealed memfd of that size (packet.h).  If it
 * will be sent again it is mapped and the descriptor closed; else, and where it cannot
 * be mapped, it is read as a local file is.
 */
struct fp_file *fp_file_create_content(int fd, apr_size_t size, bool again);
/* The file's, which stays its own; -1: it came as its content. */
int fp_file_descriptor(const struct fp_file *file);

/* How many descriptors all files hold now. */
unsigned fp_file_descriptors(void);
/* How many bytes stay mapped for their next response. */
apr_uint64_t fp_file_mapped(void);
void fp_file_retain(struct fp_file *file);
/* Drops *file's reference and leaves NULL; the last one closes. */
void fp_file_release(struct fp_file **file);

/*
 * A bucket for length bytes of the file from offset on.  map: a local file that is not
 * small may be mapped instead of read, and stays mapped as long as it is open if it was
 * sent before or is large; the caller has just seen that it has these bytes.  If it is read and
 * turns out to be
 * shorter, reading fails with APR_EOF where it ends: the response is then cut
 * off, never continued with something else.
 */
apr_bucket *fp_file_bucket_create(struct fp_file *file, apr_off_t offset,
                                  apr_size_t length, bool map,
                                  apr_bucket_alloc_t *list);

/* Is the bucket one whose first piece will be read from its file? */
bool fp_file_bucket_reads(const apr_bucket *e);

/* Of files up to this size all is read at once. */
#define FP_FILE_SMALL ((apr_off_t)64 * 1024)

/*
 * A bucket with the content of a file that came as its content, or of one of at most
 * FP_FILE_SMALL bytes on a local file system, if it has this very length now; else NULL,
 * and also where mapping it is better, if map allows that.
 */
apr_bucket *fp_file_content_create(struct fp_file *file, apr_off_t length, bool map,
                                   apr_bucket_alloc_t *list);

/* Size and times of a local file as they are now; false: not to be had, as of one that
 * came as its content. */
bool fp_file_look(const struct fp_file *file, apr_off_t *size_r, apr_time_t *mtime_r);

#endif
