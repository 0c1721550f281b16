/* SPDX-License-Identifier: Apache-2.0 */
/*
 * APR's own file bucket for a file from the daemon. Core sends no other by sendfile, and does not
 * count its bytes when it decides whether an event worker waits for the client. It reads by its
 * descriptor's offset, so each response has a descriptor of its own. A later response uses that one
 * again, because opening asks the file system.
 */
#ifndef FP_FILE_APR_H
#define FP_FILE_APR_H

#include <httpd.h>
#include <stdbool.h>

struct fp_file;
/* A descriptor that a response uses. */
struct fp_file_use;

/*
 * Appends a bucket for length bytes from offset on. The descriptor goes back to the file when the
 * request's pool is destroyed, and is closed if the response or the connection broke. So it must be
 * a main request. httpd destroys its pool when the connection's filters have sent all of its response
 * (the EOR bucket), or will send nothing more. A subrequest's pool ends before that. *use_r lives as
 * long as that pool. NULL: no descriptor can be opened, and nothing was appended.
 */
apr_bucket *fp_file_apr_append(apr_bucket_brigade *bb, struct fp_file *file, apr_off_t offset,
                               apr_off_t length, bool sendfile, request_rec *r, struct fp_file_use **use_r);
/* The response could not be sent, perhaps because the descriptor cannot be read. */
void fp_file_apr_broke(struct fp_file_use *use);

#endif
