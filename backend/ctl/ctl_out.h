/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The output of flashpachectl. Strangers choose the names of files, sockets and hosts, and could write
 * commands for a terminal into them.
 */
#ifndef FP_CTL_OUT_H
#define FP_CTL_OUT_H

#include <stdbool.h>
#include <stddef.h>

/* From now on what is written to standard output and standard error has no control characters but ends of lines:
 * others become "?".  False: no memory. */
bool ctl_guard_output(void);

/* A name on one line, with "?" for control characters.  It lasts until the third next call. */
const char *ctl_name(const char *name, size_t len);

#endif
