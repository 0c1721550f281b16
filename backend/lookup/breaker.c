/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/breaker.h"

#define FIRST_PROBE_MS 1000u
#define MAX_PROBE_MS   30000u /* also: how long a mount is watched after it came back */

void fp_breaker_asked(struct fp_breaker *b, uint64_t now_ms)
{
    if (b->asked_ms == 0)
        b->asked_ms = now_ms;
}

uint64_t fp_breaker_answered(struct fp_breaker *b, bool waiting, uint64_t now_ms)
{
    const bool was_open = b->open;

    if (was_open)
        b->closed_ms = now_ms;
    b->open = false;
    b->answered_ms = now_ms;
    b->lost_ms = b->last_lost_ms = 0;
    b->asked_ms = waiting ? now_ms : 0;
    return was_open ? b->opened_ms : 0;
}

/* Opens it if the mount has been silent since then for the timeout. */
static bool open_after(struct fp_breaker *b, uint32_t timeout_ms, uint64_t since_ms, uint64_t now_ms)
{
    if (now_ms < since_ms + timeout_ms)
        return false;
    if (b->closed_ms == 0 || now_ms - b->closed_ms >= MAX_PROBE_MS)
        b->interval_ms = FIRST_PROBE_MS;
    b->open = true;
    b->opened_ms = now_ms;
    b->silence_ms = now_ms - since_ms;
    b->probe_ms = now_ms + b->interval_ms;
    return true;
}

bool fp_breaker_check(struct fp_breaker *b, uint32_t timeout_ms, uint64_t oldest_ms, uint64_t now_ms)
{
    if (b->open || b->asked_ms == 0 || oldest_ms == 0)
        return false;
    return open_after(b, timeout_ms, oldest_ms > b->asked_ms ? oldest_ms : b->asked_ms, now_ms);
}

bool fp_breaker_given_up(struct fp_breaker *b, uint32_t timeout_ms, uint64_t began_ms, uint64_t now_ms)
{
    if (b->open || b->answered_ms >= began_ms)
        return false;
    /* A pause of the questions says nothing about the mount: a new row begins. */
    if (b->lost_ms == 0 || began_ms > b->last_lost_ms + timeout_ms)
        b->lost_ms = began_ms;
    b->last_lost_ms = now_ms;
    return open_after(b, timeout_ms, b->lost_ms, now_ms);
}

bool fp_breaker_probe(struct fp_breaker *b, uint64_t now_ms)
{
    if (!b->open || b->probing || now_ms < b->probe_ms)
        return false;
    b->probing = true;
    return true;
}

void fp_breaker_probed(struct fp_breaker *b, uint64_t now_ms)
{
    b->probing = false;
    b->interval_ms = b->interval_ms * 2 < MAX_PROBE_MS ? b->interval_ms * 2 : MAX_PROBE_MS;
    b->probe_ms = now_ms + b->interval_ms;
}

void fp_breaker_hung(struct fp_breaker *b, unsigned n)
{
    if (n < b->hung)
        b->probe_ms = 0;
    b->hung = n;
}

void fp_breaker_hurry(struct fp_breaker *b)
{
    b->probe_ms = 0;
}

bool fp_breaker_reset(struct fp_breaker *b)
{
    const bool was_open = b->open;

    b->open = false;
    b->asked_ms = b->closed_ms = b->lost_ms = b->last_lost_ms = 0;
    return was_open;
}

bool fp_breaker_is_at_rest(const struct fp_breaker *b, uint32_t timeout_ms, uint64_t now_ms)
{
    return !b->open && !b->probing && (b->closed_ms == 0 || now_ms - b->closed_ms >= MAX_PROBE_MS)
           && (b->last_lost_ms == 0 || now_ms - b->last_lost_ms > timeout_ms);
}
