/* SPDX-License-Identifier: Apache-2.0
 *
 * The results, for people and as JSON.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "tally.h"

struct bench_args;

void bench_report_print(FILE *out, const struct bench_args *args, const struct bench_tally *tally);

/* 0, or -1 after an error, which was printed. */
int bench_report_json(const char *file, const struct bench_args *args, const struct bench_tally *tally);

#endif
