/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of the daemon's reports (docs/protocol.md), for all who print them.  Texts are escaped as by
 * fp_text_escape().
 */
#ifndef FP_REPORT_H
#define FP_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared/stats_table.h"

/* ---- counters, "NAME VALUE" ---- */

struct fp_stat {
    const char *name, *type, *help; /* type: "counter" or "gauge" */
};

#define FP_STATS_ONE(name, field, type, help) +1
enum { FP_STATS = 0 FP_STATS_TABLE(FP_STATS_ONE) }; /* how many counters there are */
extern const struct fp_stat fp_stat_rows[FP_STATS];

/* ---- rows ---- */

struct fp_report_mount {
    const char *point, *type, *watch;
    uint64_t ttl_ms, negative_ttl_ms, stale_ms;
    uint64_t calls; /* of walks in the last whole minute */
    bool out;       /* of service */
};

/* The walks that ended on a mount; calls: those that the file system may have had to ask a server for. */
struct fp_report_latency {
    const char *point;
    uint64_t count, sum_us, longest_us, calls;
    uint64_t buckets[FP_LATENCY_BUCKETS];
};

/* An entry of a path (FP_CONTROL_EXPLAIN). */
struct fp_report_known {
    uint64_t len, left_ms;
    const char *state, *watch, *reason, *lease, *kept, *point;
};

/* ---- their forms ---- */

enum fp_word_kind {
    FP_WORD_END, /* behind the last word */
    FP_WORD_TEXT,
    FP_WORD_NUMBER,
    FP_WORD_SETTING, /* "NAME=NUMBER" */
    FP_WORD_FLAG,    /* true if the line has the word, which is its last one */
    FP_WORD_BUCKETS  /* numbers with commas */
};

/* The words of a line in their order, with their names and their members of the row. */
struct fp_word {
    const char *name;
    enum fp_word_kind kind;
    size_t offset;
};
extern const struct fp_word fp_mount_form[], fp_latency_form[], fp_known_form[];

/* Cuts a line into a row, whose texts point into it.  False: it is no such line. */
bool fp_report_read(const struct fp_word *form, char *line, void *row);

/* The percentile, as exactly as the buckets allow; for the last bucket it is the longest. */
uint64_t fp_latency_percentile_us(const struct fp_report_latency *l, unsigned percent);

#endif
