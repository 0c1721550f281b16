/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/hot.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/keyed_hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "wire/wire.h"

struct counted {
    uint64_t count; /* 0: free */
    unsigned hash;
    size_t len;
    char *path; /* not terminated */
};

struct fp_hot {
    uint64_t seed, halved_ms;
    struct counted paths[FP_HOT_PATHS];
};

struct fp_hot *fp_hot_create(void)
{
    struct fp_hot *h = fp_memory_take_zeroed(1, sizeof(*h));

    if (h != NULL)
        h->seed = 1;
    return h;
}

void fp_hot_destroy(struct fp_hot **hp)
{
    struct fp_hot *h = *hp;

    *hp = NULL;
    for (size_t i = 0; h != NULL && i < FP_HOT_PATHS; i++)
        free(h->paths[i].path);
    free(h);
}

static void halve(struct fp_hot *h, uint64_t now_ms)
{
    uint64_t times = (now_ms - h->halved_ms) / FP_HOT_HALF_MS;

    if (times == 0)
        return;
    h->halved_ms = now_ms;
    for (size_t i = 0; i < FP_HOT_PATHS; i++)
        h->paths[i].count = times < 64 ? h->paths[i].count >> times : 0;
}

static bool is_of(const struct counted *s, const char *path, size_t len, unsigned hash)
{
    return s->path != NULL && s->hash == hash && s->len == len && memcmp(s->path, path, len) == 0;
}

/* The path's own place, or that of the rarest path. */
static struct counted *find_or_rarest(struct fp_hot *h, const char *path, size_t len, unsigned hash)
{
    struct counted *rarest = &h->paths[0];

    for (size_t i = 0; i < FP_HOT_PATHS; i++) {
        struct counted *s = &h->paths[i];

        if (is_of(s, path, len, hash))
            return s;
        if (s->count < rarest->count)
            rarest = s;
    }
    return rarest;
}

static bool take(struct counted *s, const char *path, size_t len, unsigned hash)
{
    char *copy = fp_memory_take(len);

    if (copy == NULL)
        return false;
    memcpy(copy, path, len);
    free(s->path);
    s->path = copy;
    s->len = len;
    s->hash = hash;
    return true;
}

void fp_hot_asked(struct fp_hot *h, const char *path, size_t len, uint64_t now_ms)
{
    struct counted *s;
    unsigned hash;

    /* A random eighth, not every eighth: clients may come in turns. */
    h->seed = h->seed * 6364136223846793005u + 1442695040888963407u;
    if ((h->seed >> 33) % FP_HOT_SAMPLE != 0)
        return;
    halve(h, now_ms);
    hash = fp_keyed_hash(path, len);
    s = find_or_rarest(h, path, len, hash);
    if (is_of(s, path, len, hash) || take(s, path, len, hash))
        s->count++;
}

/* How many paths are before it. */
static uint32_t rank(const struct fp_hot *h, size_t i)
{
    uint32_t n = 0;

    for (size_t j = 0; j < FP_HOT_PATHS; j++)
        n += h->paths[j].count > h->paths[i].count || (h->paths[j].count == h->paths[i].count && j < i);
    return n;
}

size_t fp_hot_line(void *ctx, uint32_t n, char *buf, size_t size)
{
    struct fp_hot *h = ctx;
    char path[FP_MAX_PATH + 1];

    halve(h, fp_now_ms());
    for (size_t i = 0; i < FP_HOT_PATHS; i++) {
        if (h->paths[i].count == 0 || rank(h, i) != n)
            continue;
        fp_text_escape(path, sizeof(path), h->paths[i].path, h->paths[i].len);
        return (size_t)snprintf(buf, size, "%" PRIu64 " %s\n", h->paths[i].count * FP_HOT_SAMPLE, path);
    }
    return 0;
}
