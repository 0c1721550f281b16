/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon shares these with its clients by memory: the lease table, the answers whose slots it
 * has, and the contents that these answers name.  They are made and given up together.
 */
#ifndef FP_TABLES_H
#define FP_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fp_answer_table;
struct fp_contents;
struct fp_lease_table;

struct fp_tables_sizes {
    uint32_t leases;                    /* slots */
    size_t answer_bytes, content_bytes; /* of the rings */
};

struct fp_tables {
    struct fp_lease_table *leases;
    struct fp_answer_table *answers;
    struct fp_contents *contents;
};

/* Returns false with errno; then there are none. */
bool fp_tables_create(struct fp_tables *t, const struct fp_tables_sizes *sizes);
/* The tables' memory goes with the last client that maps it. */
void fp_tables_destroy(struct fp_tables *t);

#endif
