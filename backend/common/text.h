/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_TEXT_H
#define FP_TEXT_H

#include <stddef.h>

/*
 * As in /proc/self/mountinfo: blanks, control characters, backslashes and bytes
 * above ASCII become "\040", so that a path is one word of printable bytes.  to is
 * terminated; bytes that do not fit are left out.
 */
void fp_text_escape(char *to, size_t size, const char *from, size_t len);

#endif
