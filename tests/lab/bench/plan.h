/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked for, and when: the URL paths, the order in which they are taken, and the
 * moments at which requests (in the open loop) or sessions arrive. A path that is in the list
 * many times is kept once.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <stddef.h>
#include <stdint.h>

struct bench_args;
struct bench_plan;

/* Reads the paths; NULL after an error, which was printed. */
struct bench_plan *bench_plan_create(const struct bench_args *args);
void bench_plan_destroy(struct bench_plan **plan);

/* The lines of the list, and the different paths in it. */
size_t bench_plan_size(const struct bench_plan *plan);
size_t bench_plan_path_count(const struct bench_plan *plan);

/* The number of the path to take next; that of its line goes to *line_r. */
size_t bench_plan_next(struct bench_plan *plan, size_t *line_r);

/* The path with the number. */
const char *bench_plan_path(const struct bench_plan *plan, size_t index);

/* The request for it; its size goes to *size_r. Valid as long as the plan. */
const char *bench_plan_request(const struct bench_plan *plan, size_t index, size_t *size_r);

/* The start of the next request or session, in ns after the first; steps forward. */
uint64_t bench_plan_next_arrival(struct bench_plan *plan);

#endif
