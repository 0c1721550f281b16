/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that close descriptors for the daemon (fp_close_file()).  close(2) may wait.  The last
 * close of a removed large file frees its blocks.  A FUSE file system is asked at each close of a
 * file and need not answer.
 *
 * They share the daemon's table of descriptors (CLONE_FILES).  The file system is asked even if
 * another process keeps the same open file.  So a copy that was passed to another process and
 * closed there would not help.  They are no threads of the daemon: a process with a thread that hangs in
 * the kernel cannot end.
 *
 * There are FP_CLOSERS of them.  One mount is served by one of them at a time.  One of them serves local file systems
 * alone, so their files are closed however many others hang.
 */
#ifndef FP_CLOSER_H
#define FP_CLOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FP_CLOSERS 4

struct fp_sandbox;

/* Tells whether a mount is a local file system; false if that is not known. */
typedef bool fp_closer_is_local(void *ctx, uint32_t mount);

/*
 * Starts them, for descriptors below limit; from now on fp_close_file() leaves descriptors to them.  The
 * calling process must have one thread.  The closers end with that process.  sandbox: NULL for none;
 * is_local: NULL if every mount is.  0, or -1 with errno: then fp_close_file() closes as before.
 */
int fp_closer_start(size_t limit, const struct fp_sandbox *sandbox, fp_closer_is_local *is_local, void *ctx,
                    pid_t pids_r[FP_CLOSERS]);

/* How many descriptors wait to be closed, the one that is being closed included. */
size_t fp_closer_waiting(void);

/*
 * True if a descriptor of that mount would wait behind many others, of which none was closed for a second: no more
 * of them should be opened.  now_ms: clock.h.
 */
bool fp_closer_is_stuck(uint32_t mount, uint64_t now_ms);

/* fp_close_file() closes by itself again.  Closers close
 * the descriptors that wait, at their end at the latest. */
void fp_closer_stop(void);

#endif
