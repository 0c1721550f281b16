/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/index.h"

#include <stdlib.h>

#include "base/memory.h"

static struct fp_indexed **bucket(const struct fp_index *x, size_t i)
{
    return &x->segments[i / FP_INDEX_SEGMENT][i % FP_INDEX_SEGMENT];
}

/* Buckets before the one that is split next have a twin. */
static size_t bucket_of(const struct fp_index *x, unsigned hash)
{
    const size_t i = hash & (2 * x->round - 1);

    return i < x->buckets ? i : i - x->round;
}

static bool add_segment(struct fp_index *x)
{
    const size_t i = x->buckets / FP_INDEX_SEGMENT;

    if (i == FP_INDEX_SEGMENTS)
        return false;
    if (x->segments == NULL)
        x->segments = fp_memory_take_zeroed(FP_INDEX_SEGMENTS, sizeof(x->segments[0]));
    if (x->segments != NULL)
        x->segments[i] = fp_memory_take_zeroed(FP_INDEX_SEGMENT, sizeof(x->segments[i][0]));
    return x->segments != NULL && x->segments[i] != NULL;
}

/* Adds one bucket, with its share of another one.  Without memory all stays as it is. */
static void grow(struct fp_index *x)
{
    struct fp_indexed **from, **to, *e;

    if (x->buckets % FP_INDEX_SEGMENT == 0 && !add_segment(x))
        return;
    from = bucket(x, x->buckets - x->round);
    to = bucket(x, x->buckets++);
    while ((e = *from) != NULL) {
        if (bucket_of(x, e->hash) == x->buckets - 1) {
            *from = e->next;
            e->next = *to;
            *to = e;
        } else {
            from = &e->next;
        }
    }
    if (x->buckets == 2 * x->round)
        x->round = x->buckets;
}

/* Removes one bucket. */
static void shrink(struct fp_index *x)
{
    struct fp_indexed **from = bucket(x, --x->buckets), **to;

    if (x->buckets < x->round)
        x->round /= 2;
    for (to = bucket(x, x->buckets - x->round); *to != NULL; to = &(*to)->next)
        ;
    *to = *from;
    *from = NULL;
    if (x->buckets % FP_INDEX_SEGMENT == 0) {
        free(x->segments[x->buckets / FP_INDEX_SEGMENT]);
        x->segments[x->buckets / FP_INDEX_SEGMENT] = NULL;
    }
}

bool fp_index_add(struct fp_index *x, struct fp_indexed *e, unsigned hash)
{
    struct fp_indexed **at;

    if (x->buckets == 0) {
        if (!add_segment(x))
            return false;
        x->buckets = x->round = FP_INDEX_SEGMENT;
    }
    if (x->n >= x->buckets)
        grow(x);
    at = bucket(x, bucket_of(x, hash));
    e->hash = hash;
    e->next = *at;
    *at = e;
    x->n++;
    return true;
}

void fp_index_remove(struct fp_index *x, struct fp_indexed *e)
{
    struct fp_indexed **at = bucket(x, bucket_of(x, e->hash));

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    x->n--;
    /* Two a removal, so that a purge leaves no empty ones behind. */
    for (int i = 0; i < 2 && x->buckets > FP_INDEX_SEGMENT && x->n < x->buckets / 2; i++)
        shrink(x);
    if (x->n > 0)
        return;
    free(x->segments[0]);
    free(x->segments);
    *x = (struct fp_index){ .n = 0 };
}

struct fp_indexed *fp_index_chain(const struct fp_index *x, unsigned hash)
{
    return x->buckets > 0 ? *bucket(x, bucket_of(x, hash)) : NULL;
}

struct fp_indexed *fp_index_bucket(const struct fp_index *x, size_t i)
{
    return *bucket(x, i);
}

static struct fp_indexed *first_from(const struct fp_index *x, size_t i)
{
    for (; i < x->buckets; i++) {
        if (*bucket(x, i) != NULL)
            return *bucket(x, i);
    }
    return NULL;
}

struct fp_indexed *fp_index_first(const struct fp_index *x)
{
    return first_from(x, 0);
}

struct fp_indexed *fp_index_next(const struct fp_index *x, const struct fp_indexed *e)
{
    return e->next != NULL ? e->next : first_from(x, bucket_of(x, e->hash) + 1);
}
