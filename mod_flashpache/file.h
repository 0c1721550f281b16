/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An open file that came from the daemon, and a bucket that sends it.
 *
 * The descriptor shares its file offset with every process that has it, so
 * nothing here ever moves or uses the offset: the bucket reads with pread().
 * (APR's own file bucket seeks and reads; two requests would get each
 * other's bytes.)
 *
 * A bucket keeps the file open by a reference of its own, which depends on no
 * pool: it may be set aside, passed to another thread or outlive its request.
 */
#ifndef FP_FILE_H
#define FP_FILE_H

#include <apr_buckets.h>

struct fp_file;

/* Takes the descriptor; one reference is the caller's.  NULL: no memory, fd
 * is closed then. */
struct fp_file *fp_file_create(int fd);
void fp_file_retain(struct fp_file *file);
/* Drops *file's reference and leaves NULL; the last one closes. */
void fp_file_release(struct fp_file **file);

/*
 * A bucket for length bytes of the file from offset on.  If the file turns
 * out to be shorter, reading fails with APR_EOF where it ends: the response
 * is then cut off, never continued with something else.
 */
apr_bucket *fp_file_bucket_create(struct fp_file *file, apr_off_t offset,
                                  apr_size_t length, apr_bucket_alloc_t *list);

#endif
