/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records which mounted file systems are out of service: a circuit breaker for each.
 *
 * A mount's breaker opens when something was asked of it, a walk has been under way there
 * for the timeout, and nothing came back so long.  While it is out of
 * service it is probed: a walk looks whether it is back.  The first probe comes after
 * 1 s, the next at intervals that double up to 30 s.  One that opens again
 * within 30 s of the mount's being back goes on doubling.
 *
 * Mounts are distinguished by statx(2)'s stx_mnt_id.  0 stands for "unknown": its
 * walks are counted, but its breaker never opens.  The breaker knows no loop and no sockets: callers
 * say what time it is, in milliseconds of a monotonic clock (never 0).
 */
#ifndef FP_BREAKER_H
#define FP_BREAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fp_breaker;

struct fp_breaker_counts {
    uint64_t opened;
    unsigned open; /* mounts that are out of service now */
};

/* NULL: no memory. */
struct fp_breaker *fp_breaker_create(uint32_t timeout_ms);
void fp_breaker_destroy(struct fp_breaker **b);
/* A new timeout holds at once; a mount out of service stays so. */
void fp_breaker_set(struct fp_breaker *b, uint32_t timeout_ms);

/* Counts one walk more that is meant for the mount, waiting or under way.  Without memory for
 * it the mount is never out of service. */
void fp_breaker_enter(struct fp_breaker *b, uint32_t mount);
void fp_breaker_leave(struct fp_breaker *b, uint32_t mount);
/* How many walks have entered. */
size_t fp_breaker_walks(const struct fp_breaker *b, uint32_t mount);

/* To be called when a walk that has entered was handed to the workers, or one more question waits for it. */
void fp_breaker_asked(struct fp_breaker *b, uint32_t mount, uint64_t now_ms);

/*
 * The mount answered.  waiting: more walks of it wait for a worker.  Returns 0, or since
 * when it had been out of service: it is back now.
 */
uint64_t fp_breaker_answered(struct fp_breaker *b, uint32_t mount, bool waiting, uint64_t now_ms);

/* Both return true if the mount goes out of service now. */
/* oldest_ms: when the oldest walk that is under way there began; 0: there is none. */
bool fp_breaker_check(struct fp_breaker *b, uint32_t mount, uint64_t oldest_ms, uint64_t now_ms);
/* The worker of a walk that began then was killed, for it took too long.  That alone opens nothing: the
 * mount's own timeout counts, from the first of such walks between which nothing else was heard. */
bool fp_breaker_given_up(struct fp_breaker *b, uint32_t mount, uint64_t began_ms, uint64_t now_ms);

/* How long the mount had been silent when it last went out of service, in milliseconds. */
uint64_t fp_breaker_silence(const struct fp_breaker *b, uint32_t mount);

/* True if the mount is out of service. */
bool fp_breaker_is_open(const struct fp_breaker *b, uint32_t mount);

/* True if a walk should look now whether the mount is back; no other walk should before
 * fp_breaker_probed(). */
bool fp_breaker_probe(struct fp_breaker *b, uint32_t mount, uint64_t now_ms);
/* The probe has ended, or could not be begun. */
void fp_breaker_probed(struct fp_breaker *b, uint32_t mount, uint64_t now_ms);
/* n killed workers hang there still.  If they are fewer than at the last call, one has got out:
 * it is time for a probe. */
void fp_breaker_hung(struct fp_breaker *b, uint32_t mount, unsigned n);
/* Makes it time to probe all mounts that are out of service: something may have changed. */
void fp_breaker_hurry(struct fp_breaker *b);

/* Something else is mounted under that number, or nothing: puts it in service.  True
 * if it was not. */
bool fp_breaker_reset(struct fp_breaker *b, uint32_t mount);

/* Calls each for every mount of which something is remembered; each may call all of
 * the above. */
void fp_breaker_each(struct fp_breaker *b, void (*each)(void *ctx, uint32_t mount), void *ctx);
/* Forgets mounts that are not worth remembering.  False: nothing is left. */
bool fp_breaker_sweep(struct fp_breaker *b, uint64_t now_ms);

struct fp_breaker_counts fp_breaker_counts(const struct fp_breaker *b);

#endif
