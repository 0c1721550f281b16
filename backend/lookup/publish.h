/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts answers and contents where all clients read them (answer_table.h, contents.h).  All
 * functions run on the loop.
 */
#ifndef FP_PUBLISH_H
#define FP_PUBLISH_H

#include <stddef.h>

#include "wire/answer.h"

struct fp_cache;
struct fp_tables;

struct fp_publisher {
    struct fp_cache *cache;
    const struct fp_tables *tables; /* NULL if there are none */
    struct fp_answer answer; /* for a file whose content has another place */
};

/* All are the caller's, and outlive it. */
void fp_publisher_init(struct fp_publisher *p, struct fp_cache *cache, const struct fp_tables *tables);

/* As fp_answer_table_publish(). */
void fp_publish(struct fp_publisher *p, const char *path, size_t len, const struct fp_answer *a);

/* Puts the content that a worker sent among the others, and closes its memfd: a->content_at is its place.
 * FP_OK, also where the worker sent none; FP_FAILED: there is no place for it. */
fp_status fp_publish_content(struct fp_publisher *p, const char *path, size_t len, struct fp_answer *a);

#endif
