/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_json_report.h"

#include <stdlib.h>
#include <string.h>

#include "common/stats_table.h"
#include "common/wire.h"
#include "ctl/ctl_report.h"

#define NAME(name, field, type, help) #name,
static const char *const names[] = { FP_STATS_TABLE(NAME) };
#define NAMES (sizeof(names) / sizeof(names[0]))

void ctl_json_stats(struct ctl_json *j, const char *report)
{
    ctl_json_begin(j, "stats", '{');
    for (size_t i = 0; i < NAMES; i++)
        ctl_json_number(j, names[i], ctl_value(report, names[i]));
    ctl_json_end(j, '}');
}

/* ---- the daemon itself ---- */

enum kind { WORD, NUMBER, SWITCH /* "on" or "off" */ };
static const struct {
    const char *key;
    enum kind kind;
} about[] = { { "version", WORD },
              { "pid", NUMBER },
              { "uid", NUMBER },
              { "gid", NUMBER },
              { "uptime_s", NUMBER },
              { "config", WORD },
              { "log", WORD },
              { "log_level", WORD },
              { "workers_wanted", NUMBER },
              { "descriptors", NUMBER },
              { "max_connections", NUMBER },
              { "connections_wanted", NUMBER },
              { "seccomp", SWITCH },
              { "prompt", SWITCH },
              { "supervised", SWITCH } };

void ctl_json_about(struct ctl_json *j, const char *report)
{
    static char word[4 * FP_MAX_PATH + 1];

    ctl_json_begin(j, "daemon", '{');
    for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++) {
        const char *key = about[i].key;

        if (!ctl_word(report, key, word, sizeof(word)))
            continue;
        if (about[i].kind == NUMBER)
            ctl_json_number(j, key, ctl_value(report, key));
        else if (about[i].kind == SWITCH)
            ctl_json_bool(j, key, strcmp(word, "on") == 0);
        else
            ctl_json_text(j, key, word);
    }
    ctl_json_end(j, '}');
}

/* ---- mounts and walks ---- */

/* An array with what put() makes of each line; a line of another form adds nothing. */
static void put_lines(struct ctl_json *j, const char *key, char *report, void (*put)(struct ctl_json *j, char *line))
{
    char *line;

    ctl_json_begin(j, key, '[');
    while ((line = ctl_next_line(&report)) != NULL)
        put(j, line);
    ctl_json_end(j, ']');
}

static void put_mount(struct ctl_json *j, char *line)
{
    struct ctl_mount m;

    if (!ctl_parse_mount(line, &m))
        return;
    ctl_json_begin(j, NULL, '{');
    ctl_json_text(j, "point", m.point);
    ctl_json_text(j, "type", m.type);
    ctl_json_text(j, "watch", m.watch);
    ctl_json_number(j, "ttl_ms", m.ttl_ms);
    ctl_json_number(j, "negative_ttl_ms", m.negative_ttl_ms);
    ctl_json_number(j, "stale_if_error_ms", m.stale_ms);
    ctl_json_bool(j, "out_of_service", m.out);
    ctl_json_end(j, '}');
}

void ctl_json_mounts(struct ctl_json *j, char *report)
{
    put_lines(j, "mounts", report, put_mount);
}

static void put_buckets(struct ctl_json *j, const struct ctl_latency *l)
{
    ctl_json_begin(j, "buckets", '[');
    for (unsigned i = 0; i < FP_LATENCY_BUCKETS; i++) {
        ctl_json_begin(j, NULL, '{');
        if (i < FP_LATENCY_BUCKETS - 1)
            ctl_json_number(j, "le_us", (uint64_t)FP_LATENCY_FIRST_US << i);
        else
            ctl_json_null(j, "le_us");
        ctl_json_number(j, "count", l->buckets[i]);
        ctl_json_end(j, '}');
    }
    ctl_json_end(j, ']');
}

static void put_lookups(struct ctl_json *j, char *line)
{
    struct ctl_latency l;

    if (!ctl_parse_latency(line, &l))
        return;
    ctl_json_begin(j, NULL, '{');
    ctl_json_text(j, "point", l.point);
    ctl_json_number(j, "count", l.count);
    ctl_json_number(j, "sum_us", l.sum_us);
    ctl_json_number(j, "longest_us", l.longest_us);
    put_buckets(j, &l);
    ctl_json_end(j, '}');
}

void ctl_json_lookups(struct ctl_json *j, char *report)
{
    put_lines(j, "lookups", report, put_lookups);
}

/* ---- single paths ---- */

static void put_slow(struct ctl_json *j, char *line)
{
    struct ctl_slow s;

    if (!ctl_parse_slow(line, &s))
        return;
    ctl_json_begin(j, NULL, '{');
    ctl_json_text(j, "path", s.path);
    ctl_json_text(j, "point", s.point);
    ctl_json_number(j, "us", s.us);
    ctl_json_text(j, "call", s.call);
    ctl_json_number(j, "call_us", s.call_us);
    ctl_json_number(j, "waited", s.waited);
    ctl_json_number(j, "ago_ms", s.ago_ms);
    ctl_json_end(j, '}');
}

void ctl_json_slow(struct ctl_json *j, char *report)
{
    put_lines(j, "slow", report, put_slow);
}

static void put_hot(struct ctl_json *j, char *line)
{
    struct ctl_hot h;

    if (!ctl_parse_hot(line, &h))
        return;
    ctl_json_begin(j, NULL, '{');
    ctl_json_text(j, "path", h.path);
    ctl_json_number(j, "asked", h.asked);
    ctl_json_end(j, '}');
}

void ctl_json_hot(struct ctl_json *j, char *report)
{
    put_lines(j, "hot", report, put_hot);
}
