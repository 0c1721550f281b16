/* SPDX-License-Identifier: Apache-2.0 */
/* A cache whose entries have a TTL and leases, and what it wants to have refreshed. */
#ifndef FP_CACHE_REFRESH_KIT_H
#define FP_CACHE_REFRESH_KIT_H

#include "cache/cache.h"
#include "cache/timer_wheel.h"
#include "cache_kit.h"
#include "changes/coherence.h"
#include "hash_kit.h"
#include "shared/lease_table.h"
#include "wire/packet.h"
#include "wire/walk_result.h"

#define TTL   1600
#define TICK  FP_TIMER_TICK_MS
#define SLOTS 100

static struct fp_cache *cache;
static struct fp_lease_table *lease_table;
static struct fp_lease_view *view;
static struct fp_answer answer;
static struct fp_cache_refresh due;
static int fds_at_rest;
static uint64_t seen_ms; /* when the first walks began */

static inline void new_table(uint32_t n)
{
    fp_lease_view_release(&view);
    lease_table = fp_lease_table_create(n);
    ck_assert_ptr_nonnull(lease_table);
    view = unit_view(lease_table);
}

/* Room for n files and n absent names. */
static inline void start(size_t n, uint32_t n_slots)
{
    const struct fp_cache_limits limits = { n, 10, 100, n, SIZE_MAX, TTL };
    /* To check each of many thousand entries after each operation takes minutes. */
    struct fp_cache_deps deps = { .now_ms = kit_clock, .verify = n < FP_CACHE_LOOKS ? cache_verify : NULL };

    kit_ttl_ms = TTL;
    fp_cache_destroy(&cache);
    fp_lease_table_destroy(&lease_table);
    new_table(n_slots);
    deps.lease_table = lease_table;
    cache = fp_cache_create(&limits, &deps);
    ck_assert_ptr_nonnull(cache);
}

static inline void setup(void)
{
    unit_init_hash();
    fds_at_rest = unit_open_fds();
    kit_now_ms = seen_ms = 1000;
    start(100, SLOTS);
}

static inline void teardown(void)
{
    fp_cache_destroy(&cache);
    fp_lease_view_release(&view);
    fp_lease_table_destroy(&lease_table);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

/* ---- events ---- */

static inline void walked(const char *path, const char *what)
{
    kit_answer(&answer, path, what);
    if (fp_step_is_dir(&answer.steps[answer.n_steps - 1]))
        answer.fd = kit_file('p');
    kit_insert(cache, path, kit_now_ms, &answer);
}

/* The TTL of each step's target. */
static inline void walked_with_lives(const char *path, const char *what, const uint32_t *ttl_ms)
{
    static struct fp_walk_result result;
    static struct fp_validity validity[FP_MAX_STEPS];
    const struct fp_walk_meta meta = { &result, validity };

    kit_answer(&answer, path, what);
    fp_walk_result_init(&result);
    for (unsigned i = 0; i < answer.n_steps; i++)
        validity[i] = (struct fp_validity){ .mount = i + 1, .ttl_ms = ttl_ms[i] };
    fp_cache_insert(cache, path, strlen(path), NULL, kit_now_ms, &meta, &answer);
}

/* A walk that begins at the directory, which it does not see itself. */
static inline void walked_below(const char *path, char kind)
{
    const size_t len = strlen(path);
    struct fp_cache_base base;

    kit_answer(&answer, path, "ddf");
    kit_step(&answer.steps[0], path, len, kind, '0');
    answer.n_steps = 1;
    ck_assert(fp_cache_find_base(cache, path, len, 1, kit_now_ms, &base));
    fp_cache_insert(cache, path, len, &base, kit_now_ms, kit_unwatched(true), &answer);
}

static inline bool known(const char *path)
{
    return kit_lookup(cache, path, kit_now_ms, &answer);
}

/* As a client that waited for a walk gets one: that is no use of the entry. */
static inline struct kit_lease take_lease(const char *path)
{
    ck_assert_msg(fp_cache_lookup(cache, path, strlen(path), FP_ASK_INSERTED, kit_now_ms, &answer),
                  "%s is not known", path);
    return kit_take_lease(&answer);
}

static inline bool holds_at(const struct kit_lease *l, uint64_t ms)
{
    return kit_holds_at(l, view, ms);
}

static inline void use(const struct kit_lease *l)
{
    ck_assert(holds_at(l, kit_now_ms));
    fp_lease_view_reference(view, l->slots[l->n - 1]);
}

static inline void use_lease_of(const char *path)
{
    const struct kit_lease l = take_lease(path);

    use(&l);
}

/* The last reported entry lies on the way to the path: the state there. */
static inline const char *told_part(const char *path, const char *what)
{
    static char part[16];
    size_t steps = due.len > 1;

    for (size_t i = 0; i < due.len; i++)
        steps += path[i] == '/';
    ck_assert_int_eq(memcmp(due.path, path, due.len), 0);
    snprintf(part, sizeof(part), "%.*s", (int)steps, what);
    return part;
}

/* Looks at once at each entry reported on the way to the path; returns their number. */
static inline unsigned look_where_told(const char *path, const char *what)
{
    unsigned n = 0;

    for (; fp_cache_take_refresh(cache, kit_now_ms, &(unsigned){ FP_CACHE_LOOKS }, NULL, NULL, &due); n++) {
        char there[64];

        snprintf(there, sizeof(there), "%.*s", (int)due.len, due.path);
        walked(there, told_part(path, what));
    }
    return n;
}

static inline int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All paths reported from then on, for some ticks, in order, a space between them. */
static inline const char *told_for(uint64_t ms, unsigned ticks)
{
    static char room[32][64], text[32 * 64];
    const char *paths[32];
    size_t n = 0;

    kit_now_ms = ms;
    for (unsigned i = 0; i <= ticks; i++) {
        for (; fp_cache_take_refresh(cache, ms + i * TICK, &(unsigned){ FP_CACHE_LOOKS }, NULL, NULL, &due); n++) {
            ck_assert_uint_lt(n, 32);
            snprintf(room[n], sizeof(room[n]), "%.*s", (int)due.len, due.path);
            paths[n] = room[n];
        }
    }
    qsort(paths, n, sizeof(paths[0]), compare);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++)
        strcat(strcat(text, i > 0 ? " " : ""), paths[i]);
    return text;
}

static inline const char *told_at(uint64_t ms)
{
    return told_for(ms, 0);
}

/* Entries above are due a moment after the one that was found in use. */
static inline const char *told_soon(uint64_t ms)
{
    return told_for(ms, 3);
}

/* After so many eighths of a life that began when all was seen. */
static inline uint64_t eighths(unsigned n)
{
    return seen_ms + n * TTL / 8 + TICK;
}

#endif
