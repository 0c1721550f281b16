/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/stats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "base/turn.h"
#include "conf/conf.h"
#include "wire/wire.h"

#define LINE_SIZE 4096

/* ---- counters ---- */

void fp_stats_log(struct fp_stats *s)
{
    uint64_t values[FP_STATS];
    char line[LINE_SIZE];
    size_t len = 0;

    s->collect(s->ctx, values);
    for (size_t i = 0; i < FP_STATS && len < sizeof(line); i++)
        len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%s=%" PRIu64, i > 0 ? " " : "",
                                fp_stat_rows[i].name, values[i]);
    fp_log(FP_LOG_INFO, 6, "%s", line);
}

size_t fp_stats_line(void *ctx, uint32_t n, char *buf, size_t size)
{
    struct fp_stats *s = ctx;

    if (n >= FP_STATS)
        return 0;
    if (n == 0)
        s->collect(s->ctx, s->snapshot);
    return (size_t)snprintf(buf, size, "%s %" PRIu64 "\n", fp_stat_rows[n].name, s->snapshot[n]);
}

uint64_t fp_stats_resident_bytes(int statm)
{
    unsigned long total, resident;
    char text[128];
    ssize_t n = pread(statm, text, sizeof(text) - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%lu %lu", &total, &resident) != 2)
        return 0;
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- wakeups ---- */

static void on_wakeup(struct ev_loop *loop, ev_check *check, int events)
{
    struct fp_wakeups *w = check->data;

    (void)events;
    fp_turn_begin();
    w->wakeups++;
    w->ready += ev_pending_count(loop);
}

static void on_rest(struct ev_loop *loop, ev_prepare *prepare, int events)
{
    (void)loop;
    (void)prepare;
    (void)events;
    fp_turn_end();
}

void fp_wakeups_count(struct fp_wakeups *w, struct ev_loop *loop)
{
    ev_check_init(&w->check, on_wakeup);
    /* It runs before any other watcher, while all that is ready is still to be done. */
    ev_set_priority(&w->check, EV_MAXPRI);
    w->check.data = w;
    ev_check_start(loop, &w->check);
    ev_prepare_init(&w->prepare, on_rest);
    ev_set_priority(&w->prepare, EV_MINPRI);
    ev_prepare_start(loop, &w->prepare);
}

/* ---- the daemon itself ---- */

static size_t number(const char *key, uint64_t v, char *buf, size_t size)
{
    return (size_t)snprintf(buf, size, "%s %" PRIu64 "\n", key, v);
}

static size_t word(const char *key, const char *v, char *buf, size_t size)
{
    char text[FP_MAX_PATH + 1];

    fp_text_escape(text, sizeof(text), v, strlen(v));
    return (size_t)snprintf(buf, size, "%s %s\n", key, text);
}

size_t fp_about_line(void *ctx, uint32_t n, char *buf, size_t size)
{
    const struct fp_about *a = ctx;

    switch (n) {
    case 0: return word("version", PACKAGE_VERSION, buf, size);
    case 1: return number("pid", (uint64_t)getpid(), buf, size);
    case 2: return number("uid", a->conf->uid, buf, size);
    case 3: return number("gid", a->conf->gid, buf, size);
    case 4: return number("uptime_s", (fp_now_ms() - a->began_ms) / 1000, buf, size);
    case 5: return word("config", a->file, buf, size);
    case 6: return word("log", a->conf->log, buf, size);
    case 7: return word("log_level", fp_log_level_text(), buf, size);
    case 8: return number("workers_wanted", a->conf->workers, buf, size);
    case 9: return number("descriptors", a->descriptors, buf, size);
    case 10: return number("max_connections", a->max_connections, buf, size);
    case 11: return number("connections_wanted", a->conf->max_connections, buf, size);
    case 12: return word("seccomp", a->seccomp ? "on" : "off", buf, size);
    case 13: return word("prompt", a->prompt ? "on" : "off", buf, size);
    case 14: return word("supervised", a->supervised ? "on" : "off", buf, size);
    default: return 0;
    }
}
