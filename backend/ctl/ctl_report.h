/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of the daemon (docs/protocol.md) and their lines.
 */
#ifndef FP_CTL_REPORT_H
#define FP_CTL_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl/ctl.h"
#include "shared/judge.h"
#include "shared/report.h"

/* Reads several, of which 0 ends the list, until one fails; the rest stays NULL. */
struct ctl_reports {
    char *text[FP_REPORTS + 1]; /* by enum fp_report */
};
enum ctl_exit ctl_read_reports(const struct ctl *ctl, const enum fp_report *wanted, struct ctl_reports *r);
void ctl_free_reports(struct ctl_reports *r);

/* Takes the next line off, without its end; NULL if there is none. */
char *ctl_next_line(char **text);
/* The value of a counter, or of a key that is a number; 0 if there is none. */
uint64_t ctl_value(const char *report, const char *name);
/* A value that is a word, in buf; false if there is none. */
bool ctl_word(const char *report, const char *name, char *buf, size_t size);

/* The reports of the daemon itself and of its counters, for a judgement.  Its version lasts until the next call. */
struct fp_judged ctl_judged(const struct ctl *ctl, const struct ctl_reports *r);

/* The time as "840 us", "12.3 ms", "4.2 s". */
const char *ctl_time_text(uint64_t us, char *buf, size_t size);

/* Prints the report of latencies as a table; cuts it. */
void ctl_print_latency(char *report);

#endif
