/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that close descriptors for the daemon (fp_close_file()).  close(2) may wait: the last
 * one of a removed large file frees its blocks, and a FUSE file system is asked at each close of a
 * file and need not answer.
 *
 * They share the daemon's table of descriptors (CLONE_FILES): the file system is asked even if
 * another process keeps the same open file, so a copy that was passed to another process and
 * closed there would not help.  They are no threads of the daemon: a process with a thread that hangs in
 * the kernel cannot end.
 *
 * There are FP_CLOSERS.  One mount is served by one of them at a time, so fewer file systems than
 * that may hang and closing goes on.
 */
#ifndef FP_CLOSER_H
#define FP_CLOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FP_CLOSERS 4

struct fp_sandbox;

/*
 * Starts them, for descriptors below limit; fp_close_file() is left to them from now on.  The
 * calling process must have one thread.  They end with it.  sandbox: NULL for none.  0, or -1 with
 * errno: then fp_close_file() closes as before.
 */
int fp_closer_start(size_t limit, const struct fp_sandbox *sandbox, pid_t pids_r[FP_CLOSERS]);

/* How many descriptors wait to be closed, the one that is being closed included. */
size_t fp_closer_waiting(void);

/*
 * True if many descriptors of that mount wait and for a second none was closed: more of them should not be
 * opened.  now_ms: clock.h.
 */
bool fp_closer_is_stuck(uint32_t mount, uint64_t now_ms);

/* Closes by itself again; what waits is closed by the closers, or when they end. */
void fp_closer_stop(void);

#endif
