/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buckets that send a file from the daemon. They read with pread() or from a mapping. APR's own
 * file bucket seeks and reads, so two requests would get each other's bytes.
 *
 * A bucket keeps the file open by a reference of its own, which depends on no pool. So it may be
 * set aside, passed to another thread, or outlive its request.
 */
#ifndef FP_FILE_BUCKET_H
#define FP_FILE_BUCKET_H

#include <apr_buckets.h>
#include <stdbool.h>

struct fp_contents_view;
struct fp_file;

/* Bytes: a file of at most this size is read at once. */
#define FP_FILE_SMALL ((apr_off_t)64 * 1024)

/* Bytes: below this copying is cheaper than mapping. */
#define FP_FILE_MAP_LEAST ((apr_off_t)16 * 1024)

/*
 * A bucket for length bytes of the file from offset on; the caller has just seen that the file has
 * these bytes. map: a local file that is not small may be mapped. Its mapping stays while the file
 * is open, if the file was sent before or is large. If the file is read and is shorter by then,
 * reading fails with APR_EGENERAL where it ends. The response is then cut off, never continued with
 * other bytes.
 */
apr_bucket *fp_file_bucket_create(struct fp_file *file, apr_off_t offset, apr_size_t length, bool map,
                                  apr_bucket_alloc_t *list);

/* A bucket with the content at that position (contents.h), of length bytes. NULL: it is gone. */
apr_bucket *fp_file_bucket_of_content(const struct fp_contents_view *contents, apr_uint64_t at,
                                      apr_off_t length, apr_bucket_alloc_t *list);

/*
 * From now on a read of the bucket, which is one of those above and stands in a brigade, gives piece bytes at
 * most. Bytes that are mapped on demand are mapped as before.
 */
void fp_file_bucket_set_piece(apr_bucket *e, apr_size_t piece);

/* True if the bucket's first piece will be read from its file. */
bool fp_file_bucket_reads(const apr_bucket *e);

#endif
