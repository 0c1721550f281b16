/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/slow.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "wire/wire.h"

#define SLOW_US   1000000u /* and more is logged */
#define KEPT      16
#define MINUTE_MS 60000u
#define SHOWN     1024 /* bytes of an escaped path */

/* A lookup that is remembered. */
struct kept {
    uint64_t at_ms; /* 0: none */
    struct fp_effort effort;
    unsigned waited;
    char point[SHOWN], path[SHOWN];
};

struct fp_slow {
    struct kept kept[KEPT];
};

struct fp_slow *fp_slow_create(void)
{
    return calloc(1, sizeof(struct fp_slow));
}

void fp_slow_destroy(struct fp_slow **s)
{
    free(*s);
    *s = NULL;
}

static bool is_over(const struct kept *k, uint64_t now_ms)
{
    return k->at_ms == 0 || now_ms >= k->at_ms + MINUTE_MS;
}

/* Keeps lookups in the order of their length; those whose minute is over are the first to go. */
static void keep(struct fp_slow *s, const struct fp_slow_lookup *l)
{
    size_t n = 0, at = 0;
    struct kept *k;

    for (size_t i = 0; i < KEPT; i++) {
        if (!is_over(&s->kept[i], l->now_ms))
            s->kept[n++] = s->kept[i];
    }
    for (size_t i = n; i < KEPT; i++)
        s->kept[i].at_ms = 0;
    while (at < n && s->kept[at].effort.us >= l->effort.us)
        at++;
    if (at == KEPT)
        return;
    n = n < KEPT ? n : KEPT - 1;
    memmove(&s->kept[at + 1], &s->kept[at], (n - at) * sizeof(s->kept[0]));
    k = &s->kept[at];
    k->at_ms = l->now_ms;
    k->effort = l->effort;
    k->waited = l->waited;
    fp_text_escape(k->point, sizeof(k->point), l->point, strlen(l->point));
    fp_text_escape(k->path, sizeof(k->path), l->path, l->path_len);
}

/* The path comes last: if the line is too long, it is the path that is cut. */
static void say(const struct fp_slow_lookup *l)
{
    char point[SHOWN], path[SHOWN];

    fp_text_escape(point, sizeof(point), l->point, strlen(l->point));
    fp_text_escape(path, sizeof(path), l->path, l->path_len);
    if (l->effort.call == FP_CALL_NONE)
        fp_log(FP_LOG_WARNING, 46,
               "slow lookup: %" PRIu32 " ms and no answer from the file system "
               "at %s; %u waited for %s",
               l->effort.us / 1000, point, l->waited, path);
    else
        fp_log(FP_LOG_WARNING, 46,
               "slow lookup: %" PRIu32 " ms, %" PRIu32 " ms of them in one %s, "
               "on the file system at %s; %u waited for %s",
               l->effort.us / 1000, l->effort.longest_us / 1000, fp_call_text(l->effort.call), point,
               l->waited, path);
}

void fp_slow_add(struct fp_slow *s, const struct fp_slow_lookup *l)
{
    const struct kept *last = &s->kept[KEPT - 1];

    if (l->effort.us >= SLOW_US)
        say(l);
    if (is_over(last, l->now_ms) || l->effort.us > last->effort.us)
        keep(s, l);
}

size_t fp_slow_line(void *ctx, uint32_t n, char *buf, size_t size)
{
    const struct fp_slow *s = ctx;
    uint64_t now_ms = fp_now_ms();

    for (size_t i = 0; i < KEPT; i++) {
        const struct kept *k = &s->kept[i];

        if (is_over(k, now_ms) || n-- > 0)
            continue;
        return (size_t)snprintf(buf, size, "%" PRIu64 " %" PRIu32 " %s %" PRIu32 " %u %s %s\n",
                                now_ms - k->at_ms, k->effort.us, fp_call_text(k->effort.call),
                                k->effort.longest_us, k->waited, k->point, k->path);
    }
    return 0;
}
