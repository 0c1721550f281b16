/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of the daemon (docs/protocol.md) and their lines.
 */
#ifndef FP_CTL_REPORT_H
#define FP_CTL_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/stats_table.h"
#include "ctl/ctl.h"

/* Reads the whole report, terminated, the caller's to free.  NULL after a message, with the exit status
 * in *rc_r. */
char *ctl_report(const struct ctl *ctl, enum fp_report what, enum ctl_exit *rc_r);

/* Reads several, of which 0 ends the list, until one fails; the rest stays NULL. */
struct ctl_reports {
    char *mounts, *stats, *latency, *slow, *hot, *about;
};
enum ctl_exit ctl_read_reports(const struct ctl *ctl, const enum fp_report *wanted, struct ctl_reports *r);
void ctl_free_reports(struct ctl_reports *r);

/* Takes the next line off, without its end; NULL: there is none. */
char *ctl_next_line(char **text);
/* The value of a counter, or of a key that is a number; 0: there is none. */
uint64_t ctl_value(const char *report, const char *name);
/* A value that is a word, in buf; false: there is none. */
bool ctl_word(const char *report, const char *name, char *buf, size_t size);

/* The lines of a report, each by a function that cuts it; texts point into it.  False: it is no such line. */

struct ctl_mount {
    const char *point, *type, *watch;
    uint64_t ttl_ms, negative_ttl_ms, stale_ms;
    bool out; /* of service */
};
bool ctl_parse_mount(char *line, struct ctl_mount *m);

struct ctl_latency {
    const char *point;
    uint64_t count, sum_us, longest_us;
    uint64_t buckets[FP_LATENCY_BUCKETS];
};
bool ctl_parse_latency(char *line, struct ctl_latency *l);

struct ctl_hot {
    uint64_t asked;
    const char *path;
};
bool ctl_parse_hot(char *line, struct ctl_hot *h);

struct ctl_slow {
    uint64_t ago_ms, us, call_us, waited;
    const char *call, *point, *path;
};
bool ctl_parse_slow(char *line, struct ctl_slow *s);

/* Of the report of a path's entries (FP_CONTROL_EXPLAIN). */
struct ctl_known {
    uint64_t len, left_ms;
    const char *state, *watch, *lease, *kept, *names, *point;
};
bool ctl_parse_known(char *line, struct ctl_known *k);

/* The percentile, as exactly as the buckets allow; for the last bucket it is the longest. */
uint64_t ctl_percentile_us(const struct ctl_latency *l, unsigned percent);

/* The time as "840 us", "12.3 ms", "4.2 s". */
const char *ctl_time_text(uint64_t us, char *buf, size_t size);

/* Prints a whole report as it is. */
enum ctl_exit ctl_print_report(const struct ctl *ctl, enum fp_report what);
/* Prints the report of latencies as a table; cuts it. */
void ctl_print_latency(char *report);
/* Prints at most so many lines of the report of slow lookups; cuts it. */
void ctl_print_slow(FILE *to, char *report, unsigned most);

#endif
