/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparing bodies with the files they should come from. A file is mapped when first needed
 * and stays so: the files must not change during the run.
 */
#ifndef BENCH_VERIFY_H
#define BENCH_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_plan;
struct bench_verify;

/* The comparison of one body, a part of its connection. */
struct bench_check {
    const char *content; /* NULL: nothing to compare with */
    uint64_t size;
    uint64_t offset;
    bool differs;
};

struct bench_verify *bench_verify_create(const char *directory, const struct bench_plan *plan);
void bench_verify_destroy(struct bench_verify **verify);

/* Begins the comparison for a path of the plan. */
void bench_verify_begin(struct bench_verify *verify, size_t index, struct bench_check *check);

void bench_check_data(struct bench_check *check, const char *data, size_t size);

/* After the whole body: NULL when it was right, else the mistake. */
const char *bench_check_problem(const struct bench_check *check);

#endif
