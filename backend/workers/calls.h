/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that may wait for a file system, each measured: a walk's result says
 * how long it took and which call took longest.  All run in a worker process, which
 * does one walk at a time.
 */
#ifndef FP_CALLS_H
#define FP_CALLS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/walk_result.h"

struct statx;

/* To be called when a walk begins. */
void fp_calls_begin(void);
/* The effort since fp_calls_begin(). */
struct fp_effort fp_calls_end(void);

/* Notes one call that was made by other means, from began_us (clock.h) until now. */
void fp_call_note(enum fp_call call, uint64_t began_us);

/* They do as the system calls; errno is theirs. */
int fp_call_openat(int dir, const char *name, int flags);
int fp_call_statx(int dir, const char *name, int flags, unsigned mask, struct statx *st);
ssize_t fp_call_readlinkat(int dir, const char *name, char *text, size_t size);
ssize_t fp_call_pread(int fd, void *buf, size_t n, off_t at);

#endif
