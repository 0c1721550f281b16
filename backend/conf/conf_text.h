/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a configuration file, before libconfuse has it.
 *
 * libconfuse lets the last of two equal settings win, mixes two sections of one name, and leaves out
 * characters that mean nothing to it.  It reads to the end of the file where a comment has no end.
 * Each of these is a mistake here.  It miscounts the lines of comments and takes none inside a
 * list, so comments become blanks.
 */
#ifndef FP_CONF_TEXT_H
#define FP_CONF_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define FP_MAX_CONF_TEXT (1u << 20) /* bytes of a file */

/* Reads from fd's offset on into a NUL-terminated string, for free(), its length in *len_r.
 * NULL with errno; EFBIG: more than FP_MAX_CONF_TEXT. */
char *fp_conf_text_read(int fd, size_t *len_r);

/* Blanks comments in the text.  False after one line on stderr about the first mistake. */
bool fp_conf_text_check(char *text, size_t len, const char *file);

#endif
