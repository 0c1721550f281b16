/* SPDX-License-Identifier: Apache-2.0
 *
 * What is asked for, and when: the requests, the order in which they are taken, and the
 * moments at which requests (in the open loop) or sessions arrive. A line that is in the list
 * many times is kept once.
 */
#ifndef BENCH_PLAN_H
#define BENCH_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_args;
struct bench_plan;

struct bench_request {
    const char *text;
    size_t size;
    const char *path;
    bool head;
    int status; /* of the expected answer; 0: any below 400 */
};

/* Reads the paths; NULL after an error, which was printed. */
struct bench_plan *bench_plan_create(const struct bench_args *args);
void bench_plan_destroy(struct bench_plan **plan);

/* The lines of the list, and the different requests in it. */
size_t bench_plan_size(const struct bench_plan *plan);
size_t bench_plan_count(const struct bench_plan *plan);

/* The number of the request to take next; that of its line goes to *line_r. */
size_t bench_plan_next(struct bench_plan *plan, size_t *line_r);

/* The request with the number. Valid as long as the plan. */
const struct bench_request *bench_plan_request(const struct bench_plan *plan, size_t index);

/* The start of the next request or session, in ns after the first; steps forward. */
uint64_t bench_plan_next_arrival(struct bench_plan *plan);

#endif
