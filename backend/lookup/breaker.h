/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a mounted file system is out of service: a circuit breaker.
 *
 * It opens when something was asked of the mount, a walk has been under way there
 * for the timeout, and nothing came back so long.  While it is open the mount is out of
 * service and probed: a walk looks whether it is back.  The first probe comes after
 * 1 s, the next at intervals that double up to 30 s.  One that opens again
 * within 30 s of the mount's being back goes on doubling.
 *
 * The breaker knows no loop and no sockets: callers say what time it is, in milliseconds of a
 * monotonic clock (never 0).  A new timeout holds at once; a mount out of service stays so.
 */
#ifndef FP_BREAKER_H
#define FP_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

/* All zero: in service, and nothing was asked.  Callers read open and silence_ms. */
struct fp_breaker {
    bool open, probing;
    uint64_t silence_ms; /* how long the mount had been silent when it was opened */
    uint64_t asked_ms;   /* the first question since it last answered; 0: none */
    uint64_t answered_ms;
    /* When the first walk of a row of lost ones began, and when the last one was given up; 0: none since
     * it last answered. */
    uint64_t lost_ms, last_lost_ms;
    uint64_t opened_ms, closed_ms;
    uint64_t probe_ms;    /* time of the next probe */
    uint32_t interval_ms; /* until the one after that */
    unsigned hung;        /* killed workers, at the last call of fp_breaker_hung() */
};

/* To be called when a walk was handed to the workers, or one more question waits for it. */
void fp_breaker_asked(struct fp_breaker *b, uint64_t now_ms);

/*
 * The mount answered.  waiting: more walks of it wait for a worker.  Returns 0, or since
 * when it had been out of service: it is back now.
 */
uint64_t fp_breaker_answered(struct fp_breaker *b, bool waiting, uint64_t now_ms);

/* Both return true if the mount goes out of service now. */
/* oldest_ms: when the oldest walk that is under way there began; 0 if there is none. */
bool fp_breaker_check(struct fp_breaker *b, uint32_t timeout_ms, uint64_t oldest_ms, uint64_t now_ms);
/* The worker of a walk that began then was killed, for it took too long.  That alone opens nothing: the
 * mount's own timeout counts, from the first of such walks between which nothing else was heard. */
bool fp_breaker_given_up(struct fp_breaker *b, uint32_t timeout_ms, uint64_t began_ms, uint64_t now_ms);

/* True if a walk should look now whether the mount is back; no other walk should before
 * fp_breaker_probed(). */
bool fp_breaker_probe(struct fp_breaker *b, uint64_t now_ms);
/* The probe has ended, or could not be begun. */
void fp_breaker_probed(struct fp_breaker *b, uint64_t now_ms);
/* n killed workers hang there still.  If they are fewer than at the last call, one has got out:
 * it is time for a probe. */
void fp_breaker_hung(struct fp_breaker *b, unsigned n);
/* Makes it time to probe, if the mount is out of service: something may have changed. */
void fp_breaker_hurry(struct fp_breaker *b);

/* Something else is mounted under that number, or nothing: puts it in service.  True
 * if it was not. */
bool fp_breaker_reset(struct fp_breaker *b);

/* True if the breaker does nothing else than a new one would. */
bool fp_breaker_is_at_rest(const struct fp_breaker *b, uint32_t timeout_ms, uint64_t now_ms);

#endif
