/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of files by their letter (f, d, s, l, L, h, x, e), as RewriteCond and expressions have
 * them.
 */
#ifndef FP_FILE_TEST_H
#define FP_FILE_TEST_H

#include <httpd.h>
#include <stdbool.h>

/* True if the name passes the test. more: the further members of a stat that the caller wants. r
 * NULL: only the file system is asked. */
bool fp_file_test(request_rec *r, char letter, const char *name, apr_int32_t more, apr_pool_t *pool);

#endif
