/* SPDX-License-Identifier: Apache-2.0
 *
 * The load: connections, and which of them sends what when.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "tally.h"

struct bench_args;
struct bench_plan;
struct bench_verify;

/*
 * Runs the whole load and fills the tally. verify may be NULL. *stop may be set by a signal
 * handler: then no request is started any more. 0, or -1 after an error that made the
 * measurement impossible, which was printed.
 */
int bench_load_run(const struct bench_args *args, struct bench_plan *plan, struct bench_verify *verify,
                   struct bench_tally *tally, const volatile int *stop);

#endif
