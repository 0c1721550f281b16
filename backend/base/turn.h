/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The budget of the daemon's loop: which work in its turns took too long.
 *
 * A turn begins when the loop wakes up and ends when it waits again; it is made of pieces of work,
 * one for each event.  A piece is called long by the processor's time (CLOCK_THREAD_CPUTIME_ID):
 * a machine that lets the daemon wait makes no piece long.  A piece that took long by the clock on
 * the wall alone waited for a processor, or in a call that blocks.  There should be no such call.
 */
#ifndef FP_TURN_H
#define FP_TURN_H

#include <stdint.h>

#define FP_TURN_BUDGET_US 5000u

/*
 * Kinds of work, with the bound of a single piece.
 *   connection  one frame of 32 KiB; a connection opened or closed.
 *   question    FP_MAX_STEPS steps, each hashed a dozen times at most; one or two walks begun; FP_CACHE_AHEAD
 *               entries visited.
 *   result      FP_MAX_STEPS entries made or renewed, and FP_SIEVE_VISITS visited for each that is
 *               evicted for them.  All questions that wait for that walk are answered, too.
 *   events      the kernel's whole queue (fs.inotify.max_queued_events), and for each event the
 *               entries that depend on the object; lost events: all entries.
 *   control     a report of 32 KiB; a purge: 64 entries (dispatch.c), and a look at the walks under
 *               way.
 *   reclaim     a few hundred entries of a purge (dispatch.c), or a giving back of memory.
 *   timer       FP_CACHE_LOOKS timers, and as many walks begun as workers take in, or some 32 after a
 *               restart.
 *   fleet       a few messages (fleet.c), each as a purge.
 *   worker      a worker replaced.
 *   reload      all entries.
 */
#define FP_WORK_TABLE(ROW) \
    ROW(OTHER, other) \
    ROW(CONNECTION, connection) \
    ROW(QUESTION, question) \
    ROW(RESULT, result) \
    ROW(EVENTS, events) \
    ROW(CONTROL, control) \
    ROW(RECLAIM, reclaim) \
    ROW(TIMER, timer) \
    ROW(FLEET, fleet) \
    ROW(WORKER, worker) \
    ROW(RELOAD, reload)

#define FP_WORK_ID(id, name) FP_WORK_##id,
enum fp_work { FP_WORK_TABLE(FP_WORK_ID) };

/* Work between the two calls is measured.  All functions run on the loop. */
void fp_turn_begin(void);
void fp_turn_end(void);

/* Says what the loop does from here on; returns what it did before. */
enum fp_work fp_turn_work(enum fp_work work);

/* How many single pieces took over FP_TURN_BUDGET_US of the processor's time. */
uint64_t fp_turn_long_pieces(void);

#endif
