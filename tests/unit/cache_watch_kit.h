/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache with leases, to which changes are reported: walks that have everything watched, the
 * changes, and the valid and leased entries afterwards.
 */
#ifndef FP_CACHE_WATCH_KIT_H
#define FP_CACHE_WATCH_KIT_H

#include "cache/cache.h"
#include "cache_kit.h"
#include "changes/coherence.h"
#include "hash_kit.h"
#include "shared/lease_table.h"
#include "unit.h"
#include "wire/walk_result.h"

#define TTL         100
#define WATCHED_TTL 10000
#define STALE       50
#define SLOTS       200

static const struct fp_names names = { 2, { { ".htaccess", 9 }, { ".acl", 4 } } };

static struct fp_cache *cache;
static struct fp_lease_table *lease_table;
static struct fp_lease_view *view;
static struct fp_answer answer;
static struct fp_walk_result result;
static struct fp_validity validity[FP_MAX_STEPS];
static int fds_at_rest;
static unsigned forgotten;
static bool looks_for_names; /* walks look for access files, and find none */

static inline void on_forget(void *ctx, const struct fp_watch_key *key)
{
    ck_assert_ptr_eq(ctx, &forgotten);
    ck_assert_uint_gt(key->len, 0);
    forgotten++;
}

static inline void start(const struct fp_cache_limits *limits, uint32_t n_slots)
{
    struct fp_cache_deps deps = {
        .now_ms = kit_clock, .forget = on_forget, .ctx = &forgotten, .verify = cache_verify
    };

    fp_cache_destroy(&cache);
    fp_lease_view_release(&view);
    fp_lease_table_destroy(&lease_table);
    lease_table = deps.lease_table = fp_lease_table_create(n_slots);
    ck_assert_ptr_nonnull(lease_table);
    view = unit_view(lease_table);
    cache = fp_cache_create(limits, &deps);
    ck_assert_ptr_nonnull(cache);
    looks_for_names = false;
}

static inline void setup(void)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 100, SIZE_MAX, WATCHED_TTL };

    unit_init_hash();
    fds_at_rest = unit_open_fds();
    kit_now_ms = 1000;
    forgotten = 0;
    start(&limits, SLOTS);
}

static inline void teardown(void)
{
    fp_cache_clear(cache);
    ck_assert_uint_eq(fp_cache_counts(cache).watches, 0);
    ck_assert_uint_eq(fp_cache_counts(cache).bytes, 0);
    fp_cache_destroy(&cache);
    fp_lease_view_release(&view);
    fp_lease_table_destroy(&lease_table);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

/* ---- walks ---- */

/* Of a directory or file by its path, as if the kernel named it by that. */
static inline struct fp_watch_key key_of(const char *path, size_t len)
{
    const uint32_t number = (uint32_t)kit_number(path, len, 'k');
    struct fp_watch_key k = { .len = sizeof(number) };

    memcpy(k.bytes, &number, sizeof(number));
    return k;
}

static inline void find_no_access_files(void)
{
    answer.n_names = names.n;
    for (unsigned i = 0; i < answer.n_steps; i++)
        answer.steps[i].access[0].status = answer.steps[i].access[1].status = FP_ABSENT;
}

/* The result of the walk. As workers do, it has everything that exists watched. Tests change it
 * before they insert it. */
static inline void walk(const char *path, const char *what)
{
    kit_answer(&answer, path, what);
    fp_walk_result_init(&result);
    for (unsigned i = 0; i < answer.n_steps; i++) {
        const struct fp_step *s = &answer.steps[i];

        validity[i] = (struct fp_validity){ .ttl_ms = TTL, .stale_ms = STALE };
        if (fp_step_target(s) == NULL)
            continue;
        validity[i].mount = result.step_watches[i].mount = 1;
        result.step_watches[i].watch = key_of(path, s->end);
    }
    if (looks_for_names)
        find_no_access_files();
}

/* The same where no change is reported. */
static inline void walk_unwatched(const char *path, const char *what)
{
    walk(path, what);
    for (unsigned i = 0; i < answer.n_steps; i++)
        validity[i].traits.verdict = FP_TTL_UNWATCHED;
}

static inline void insert_as(const char *path, uint64_t began_ms)
{
    const struct fp_walk_meta meta = { &result, validity };

    fp_cache_insert(cache, path, strlen(path), NULL, began_ms, &meta, &answer);
    ck_assert_int_eq(answer.fd, -1);
}

static inline void insert(const char *path)
{
    insert_as(path, kit_now_ms);
}

static inline void walked(const char *path, const char *what)
{
    walk(path, what);
    insert(path);
}

static inline void look_for_names(void)
{
    looks_for_names = true;
    fp_cache_set_names(cache, &names);
    find_no_access_files();
}

static inline void walked_with_names(const char *path, const char *what)
{
    walk(path, what);
    look_for_names();
    insert_as(path, kit_now_ms);
}

static inline bool known(const char *path)
{
    return kit_lookup(cache, path, kit_now_ms, &answer);
}

static inline bool known_with_names(const char *path)
{
    return known(path) && answer.n_names == names.n;
}

static inline bool known_at(const char *path, uint64_t ms)
{
    return kit_lookup(cache, path, ms, &answer);
}

static inline bool known_stale(const char *path, uint64_t ms)
{
    return fp_cache_lookup(cache, path, strlen(path), FP_ASK_STALE, ms, &answer);
}

/* The time for which it is valid from now on. */
static inline uint64_t life(const char *path)
{
    uint64_t ms = 0;

    while (ms <= WATCHED_TTL && known_at(path, kit_now_ms + ms))
        ms += 10;
    return ms;
}

static size_t kit_visited; /* entries that changes had looked at */

/* ---- changes; later walks see later states.  Each returns how many entries it invalidated ---- */

static inline size_t invalidated_since(uint64_t before)
{
    kit_now_ms++;
    return (size_t)(fp_cache_counts(cache).changes - before);
}

static inline size_t change(const char *place, const char *name, bool replaced)
{
    const struct fp_watch_key k = key_of(place, strlen(place));
    const uint64_t before = fp_cache_counts(cache).changes;

    kit_now_ms++;
    kit_visited += fp_cache_change_ops.changed(cache, &k, name, strlen(name), replaced);
    return invalidated_since(before);
}

static inline size_t lose_watch(const char *place)
{
    const struct fp_watch_key k = key_of(place, strlen(place));
    const uint64_t before = fp_cache_counts(cache).changes;

    kit_now_ms++;
    fp_cache_change_ops.unwatched(cache, &k);
    return invalidated_since(before);
}

static inline size_t invalidate(const char *at)
{
    const uint64_t before = fp_cache_counts(cache).changes;

    kit_now_ms++;
    fp_cache_invalidate(cache, at);
    return invalidated_since(before);
}

/* ---- leases ---- */

static inline struct kit_lease take_lease(const char *path)
{
    ck_assert_msg(known(path), "%s is not known", path);
    return kit_take_lease(&answer);
}

static inline bool holds_at(const struct kit_lease *l, uint64_t ms)
{
    return kit_holds_at(l, view, ms);
}

static inline bool holds(const struct kit_lease *l)
{
    return holds_at(l, kit_now_ms);
}

/* As long as it is valid, or a tick less; never longer. */
static inline void assert_lease_lasts(const char *path, uint64_t ms)
{
    const struct kit_lease l = take_lease(path);

    ck_assert(holds(&l));
    ck_assert(holds_at(&l, kit_now_ms + ms - FP_SLOT_TICK_MS));
    ck_assert(!holds_at(&l, kit_now_ms + ms));
    ck_assert(!holds_at(&l, kit_now_ms + 10 * ms));
}

#endif
