/* SPDX-License-Identifier: Apache-2.0 */
/*
 * APR's own file bucket for a file from the daemon. Core sends no other by sendfile, and an event
 * worker waits for the client over any other that is large. It reads by its descriptor's offset, so
 * each response has a descriptor of its own. A later response uses that one again, because opening
 * asks the file system.
 */
#ifndef FP_FILE_APR_H
#define FP_FILE_APR_H

#include <apr_buckets.h>
#include <stdbool.h>

struct fp_file;

/*
 * Appends a bucket for the first length bytes. The descriptor goes back to the file when the pool is
 * destroyed. So that must be the pool of a main request, which httpd destroys when the connection's
 * filters have sent all of its response (the EOR bucket). NULL: no descriptor can be opened, and
 * nothing was appended.
 */
apr_bucket *fp_file_apr_append(apr_bucket_brigade *bb, struct fp_file *file, apr_off_t length, bool sendfile,
                               apr_pool_t *request);

#endif
