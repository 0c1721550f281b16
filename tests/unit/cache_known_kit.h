/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache without leases, where nothing is watched: walks with the time at which they began, and
 * the exact knowledge afterwards.
 */
#ifndef FP_CACHE_KNOWN_KIT_H
#define FP_CACHE_KNOWN_KIT_H

#include "cache/cache.h"
#include "cache_kit.h"
#include "hash_kit.h"
#include "unit.h"
#include "wire/packet.h"

#define TTL       100
#define OPEN_DIRS 3

static struct fp_cache *cache;
static struct fp_answer answer;
static int fds_at_rest;
static uint64_t now; /* the time that lookups give */

static inline void start(size_t files, size_t directories, size_t absent)
{
    const struct fp_cache_limits limits = { files, OPEN_DIRS, directories, absent, SIZE_MAX, TTL };

    fp_cache_destroy(&cache);
    cache = kit_cache(&limits);
    ck_assert_ptr_nonnull(cache);
}

static inline void setup(void)
{
    unit_init_hash();
    fds_at_rest = unit_open_fds();
    now = 1000;
    start(100, 100, 100);
}

static inline void teardown(void)
{
    fp_cache_destroy(&cache);
    ck_assert_ptr_null(cache);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

static inline int cached_fds(void)
{
    return unit_open_fds() - fds_at_rest;
}

/* A walk of path that began at ms found that. */
static inline void walked(const char *path, uint64_t ms, const char *what)
{
    struct fp_answer a;

    kit_answer(&a, path, what);
    kit_insert(cache, path, ms, &a);
    ck_assert_int_eq(a.fd, -1);
}

static inline bool known(const char *path)
{
    memset(&answer, 0xa5, sizeof(answer));
    return kit_lookup(cache, path, now, &answer);
}

/* The cache knows the path, and has exactly that. */
static inline void assert_known(const char *path, const char *what)
{
    struct fp_answer expected;

    kit_answer(&expected, path, what);
    ck_assert_msg(known(path), "%s is not known", path);
    ck_assert_int_eq((int)answer.status, FP_OK);
    ck_assert_int_eq((int)answer.source, FP_SOURCE_CACHE);
    ck_assert_uint_eq(answer.n_steps, expected.n_steps);
    for (unsigned i = 0; i < expected.n_steps; i++)
        ck_assert_msg(kit_same_step(&answer.steps[i], &expected.steps[i]), "%s, step %u", path, i);
    ck_assert_int_eq(answer.fd != -1, expected.fd != -1);
    if (expected.fd != -1)
        ck_assert_int_eq(kit_version_of(answer.fd), kit_version_of(expected.fd));
    fp_close(&expected.fd);
}

static inline bool unknown(const char *path)
{
    return !known(path) && answer.fd == -1 && answer.n_steps == 0;
}

/* One path, or several with a space between them. */
static inline void assert_unknown(const char *paths)
{
    assert_each(unknown, paths);
}

#endif
