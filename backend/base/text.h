/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TEXT_H
#define FP_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Escapes as /proc/self/mountinfo does.  Blanks, control characters, backslashes and bytes
 * above ASCII become "\040" and the like, so that a path is one word of printable bytes.  to is
 * terminated; bytes that do not fit are left out.
 */
void fp_text_escape(char *to, size_t size, const char *from, size_t len);

/* Replaces what a terminal would obey by "?": control characters, in UTF-8 those above ASCII as well. */
void fp_text_disarm(char *text);

/* True if the option is among words with commas between them. */
bool fp_text_has_option(const char *options, const char *option);

/* Reads all that follows fd's offset into a terminated string, for free(), its length in *len_r.  NULL with errno;
 * EFBIG: it is more than most bytes. */
char *fp_text_read(int fd, size_t most, size_t *len_r);

/* The milliseconds of "500ms", "2s", "1min" or "2" (seconds), from 1 to most; -1: the text is no such time. */
int fp_text_ms(const char *text, int most);

/* As fgets(), from the text between *at and end: one line with its end, cut to size, which is at least 2. Moves *at.
 * NULL: all is read. */
char *fp_text_line(char *buf, size_t size, const char **at, const char *end);

#endif
