/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory this process may use at most.
 */
#ifndef FP_MEMORY_LIMIT_H
#define FP_MEMORY_LIMIT_H

#include <stddef.h>

/*
 * The machine's memory, or the least limit of this process's memory cgroup
 * (version 1 or 2) and those above it, in bytes.  SIZE_MAX where neither
 * can be read.  root: "", or in tests the directory that stands for "/".
 */
size_t fp_memory_limit(const char *root);

#endif
