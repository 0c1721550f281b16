/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/child_cache.h"

#include <pthread.h>

#include "unit.h"

#define MANY_THREADS 8

struct thing {
    struct fp_item item;
    bool is_over;
    char key[16];
};

static struct fp_child_cache *cache;
static atomic_uint alive;

static void destroy(struct fp_item *item)
{
    atomic_fetch_sub(&alive, 1);
    free(item);
}

static void setup(void)
{
    ck_assert_int_eq(fp_child_cache_init(), 0);
}

static bool is_any(const struct fp_item *item)
{
    (void)item;
    return true;
}

static void teardown(void)
{
    fp_child_cache_drop_if(cache, is_any);
    ck_assert_uint_eq(alive, 0);
    free(cache);
}

static struct thing *make(const char *key)
{
    struct thing *t = calloc(1, sizeof(*t));

    ck_assert_ptr_nonnull(t);
    snprintf(t->key, sizeof(t->key), "%s", key);
    fp_item_init(&t->item, t->key, strlen(t->key), destroy);
    atomic_fetch_add(&alive, 1);
    return t;
}

/* Puts a new item and releases it; the caller has no reference. */
static struct thing *put(const char *key)
{
    struct thing *t = make(key);

    fp_child_cache_put(cache, &t->item);
    fp_item_release(&t->item);
    return t;
}

static struct thing *put_numbered(const char *prefix, int n)
{
    char key[16];

    snprintf(key, sizeof(key), "%s%d", prefix, n);
    return put(key);
}

static bool is_kept(const char *key)
{
    struct fp_item *item = fp_child_cache_get(cache, key, strlen(key));

    if (item != NULL)
        fp_item_release(item);
    return item != NULL;
}

static bool is_numbered_kept(const char *prefix, int n)
{
    char key[16];

    snprintf(key, sizeof(key), "%s%d", prefix, n);
    return is_kept(key);
}

static void drop_numbered(const char *prefix, int n)
{
    struct fp_item *item;
    char key[16];

    snprintf(key, sizeof(key), "%s%d", prefix, n);
    item = fp_child_cache_get(cache, key, strlen(key));
    ck_assert_ptr_nonnull(item);
    fp_child_cache_drop(cache, item);
    fp_item_release(item);
}

/* ---- one at a time ---- */

START_TEST(kept_replaced_and_dropped)
{
    struct thing *first, *second;

    cache = fp_child_cache_create(10, SIZE_MAX);
    ck_assert(!is_kept("a"));
    first = put("a");
    ck_assert(is_kept("a"));
    second = put("a");
    ck_assert_ptr_ne(first, second);
    ck_assert_uint_eq(alive, 1);
    fp_child_cache_drop(cache, &second->item);
    ck_assert(!is_kept("a"));
    ck_assert_uint_eq(alive, 0);
}
END_TEST

/* Keys come and go at random, between none and many: a gap in the index hides no key behind it. */
START_TEST(as_a_set_of_keys)
{
    enum { NAMES = 700, CHANGES = 20000, LOOK_EVERY = 500 };
    bool kept[NAMES] = { false };
    uint64_t seed = 1;
    unsigned count = 0;

    cache = fp_child_cache_create(4 * NAMES, SIZE_MAX);
    for (int i = 0; i < CHANGES; i++) {
        const int n = (int)((unit_random(&seed) >> 32) % NAMES);
        /* Mostly put in one half of the time, mostly dropped in the other. */
        const bool is_put = ((unit_random(&seed) >> 32) % 4 > 0) == (i / (CHANGES / 4) % 2 == 0);

        ck_assert_int_eq(is_numbered_kept("k", n), kept[n]);
        if (is_put)
            put_numbered("k", n);
        else if (kept[n])
            drop_numbered("k", n);
        count += (unsigned)is_put - kept[n];
        kept[n] = is_put;
        ck_assert_uint_eq(fp_child_cache_count(cache), count);
        for (int k = 0; i % LOOK_EVERY == 0 && k < NAMES; k++)
            ck_assert_int_eq(is_numbered_kept("k", k), kept[k]);
    }
}
END_TEST

START_TEST(who_holds_one_has_it_for_as_long_as_he_wants)
{
    struct fp_item *held;

    cache = fp_child_cache_create(1, SIZE_MAX);
    put("a");
    held = fp_child_cache_get(cache, "a", 1);
    ck_assert_ptr_nonnull(held);
    put("b");
    ck_assert(!is_kept("a"));
    ck_assert_uint_eq(alive, 2);
    /* The cache has it no longer, and leaves a newer one of its key alone. */
    fp_child_cache_drop(cache, held);
    ck_assert(is_kept("b"));
    fp_item_release(held);
    ck_assert_uint_eq(alive, 1);
}
END_TEST

START_TEST(dropped_while_held)
{
    struct fp_item *first, *second;

    cache = fp_child_cache_create(10, SIZE_MAX);
    put("a");
    first = fp_child_cache_get(cache, "a", 1);
    second = fp_child_cache_get(cache, "a", 1);
    ck_assert_ptr_eq(first, second);
    fp_child_cache_drop(cache, first);
    ck_assert(!is_kept("a"));
    fp_child_cache_drop(cache, second);
    fp_item_release(first);
    ck_assert_uint_eq(alive, 1);
    ck_assert_str_eq(((struct thing *)second)->key, "a");
    fp_item_release(second);
    ck_assert_uint_eq(alive, 0);
}
END_TEST

/* Destroying may take long, or need the cache: no mutex is held then. */
static void destroy_and_look(struct fp_item *item)
{
    ck_assert(!is_kept(((struct thing *)item)->key));
    destroy(item);
}

START_TEST(destroyed_without_a_mutex)
{
    struct thing *t;

    cache = fp_child_cache_create(1, SIZE_MAX);
    for (int i = 0; i < 3; i++) {
        t = put_numbered("", i);
        t->item.destroy = destroy_and_look;
    }
    fp_child_cache_drop(cache, &t->item);
    ck_assert_uint_eq(alive, 0);
}
END_TEST

START_TEST(never_more_than_the_limit)
{
    cache = fp_child_cache_create(7, SIZE_MAX);
    for (int i = 0; i < 1000; i++) {
        put_numbered("", i % 50);
        ck_assert_uint_le(alive, 7);
    }
    fp_child_cache_drop_if(cache, is_any);
    free(cache);
    cache = fp_child_cache_create(0, SIZE_MAX);
    put("a");
    ck_assert(!is_kept("a"));
}
END_TEST

/* Puts an item that takes so many bytes. */
static void put_large(const char *key, size_t bytes)
{
    struct thing *t = make(key);

    t->item.bytes = bytes;
    fp_child_cache_put(cache, &t->item);
    fp_item_release(&t->item);
}

START_TEST(never_more_bytes_than_the_limit)
{
    struct fp_item *dropped;

    cache = fp_child_cache_create(100, 1000);
    for (int i = 0; i < 4; i++)
        put_large((const char *[]){ "a", "b", "c", "d" }[i], 250);
    ck_assert_uint_eq(alive, 4);
    ck_assert(is_kept("a"));
    put_large("e", 250); /* in the place of b, the oldest that nobody asked for */
    ck_assert(is_kept("a") && !is_kept("b") && is_kept("c") && is_kept("d") && is_kept("e"));
    put_large("d", 100); /* in the place of the former d: there is room for the next one */
    put_large("f", 150);
    ck_assert_uint_eq(alive, 5);
    dropped = fp_child_cache_get(cache, "c", 1);
    fp_child_cache_drop(cache, dropped);
    fp_item_release(dropped);
    put_large("g", 250);
    ck_assert_uint_eq(alive, 5);
}
END_TEST

START_TEST(a_large_item_is_not_kept)
{
    cache = fp_child_cache_create(100, 1000);
    put_large("a", 250);
    put_large("b", 251);
    ck_assert(is_kept("a") && !is_kept("b"));
    ck_assert(fp_child_cache_takes(cache, 250) && !fp_child_cache_takes(cache, 251));
    put_large("a", 251); /* but the answer before it holds no longer */
    ck_assert_uint_eq(alive, 0);
}
END_TEST

START_TEST(what_is_used_outlives_a_scan)
{
    cache = fp_child_cache_create(10, SIZE_MAX);
    put("hot");
    for (int i = 0; i < 1000; i++) {
        ck_assert_msg(is_kept("hot"), "after %d", i);
        put_numbered("scan", i);
    }
}
END_TEST

/* ---- sweeps ---- */

static bool is_over(const struct fp_item *item)
{
    return ((const struct thing *)item)->is_over;
}

/* More than are checked at once; a held item lives on. */
START_TEST(swept)
{
    struct fp_item *held;

    cache = fp_child_cache_create(8000, SIZE_MAX);
    for (int i = 0; i < 2000; i++)
        put_numbered("", i)->is_over = i % 2 == 0;
    ck_assert_uint_eq(alive, 2000);
    held = fp_child_cache_get(cache, "10", 2);
    for (int again = 0; again < 2; again++) {
        fp_child_cache_drop_if(cache, is_over);
        ck_assert_uint_eq(alive, 1001);
        for (int i = 0; i < 2000; i++)
            ck_assert(is_numbered_kept("", i) == (i % 2 != 0));
    }
    fp_item_release(held);
    ck_assert_uint_eq(alive, 1000);
}
END_TEST

START_TEST(sweep_of_all_and_of_nothing)
{
    cache = fp_child_cache_create(1000, SIZE_MAX);
    fp_child_cache_drop_if(cache, is_over);
    for (int i = 0; i < 1000; i++)
        put_numbered("", i)->is_over = true;
    fp_child_cache_drop_if(cache, is_over);
    ck_assert_uint_eq(alive, 0);
    put("a");
    ck_assert(is_kept("a"));
}
END_TEST

/* The next to be evicted goes otherwise: eviction goes on behind it. */
START_TEST(eviction_after_its_next_was_dropped)
{
    struct fp_item *held;

    cache = fp_child_cache_create(3, SIZE_MAX);
    for (int i = 0; i < 3; i++)
        put_numbered("", i);
    ck_assert(is_kept("0"));
    put("3");
    ck_assert(!is_kept("1"));
    held = fp_child_cache_get(cache, "2", 1);
    fp_child_cache_drop(cache, held);
    fp_item_release(held);
    for (int i = 4; i < 20; i++) {
        put_numbered("", i);
        ck_assert(is_numbered_kept("", i));
    }
}
END_TEST

/* ---- threads ---- */

#define ROUNDS 10000
#define KEYS   400
#define ROOM   128

static void use(struct fp_item *item, const char *key)
{
    if (item == NULL)
        return;
    ck_assert_str_eq(((struct thing *)item)->key, key);
    ck_assert_ptr_eq(item->destroy, destroy);
}

/* Each thread holds an older item while it goes on. */
static void *hammer(void *arg)
{
    uint64_t seed = 1 + (uintptr_t)arg;
    struct fp_item *held = NULL;
    char key[16];

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t r = unit_random(&seed) >> 32;
        struct fp_item *item;

        snprintf(key, sizeof(key), "%u", (unsigned)(r / 64 % KEYS));
        item = fp_child_cache_get(cache, key, strlen(key));
        use(item, key);
        if (item == NULL) {
            item = &make(key)->item;
            ((struct thing *)item)->is_over = r % 8 == 0;
            item->bytes = r % 128;
            fp_child_cache_put(cache, item);
        } else if (r % 16 == 0) {
            fp_child_cache_drop(cache, item);
        }
        if (held != NULL)
            fp_item_release(held);
        held = item;
        if (r % 1024 == 0)
            fp_child_cache_drop_if(cache, is_over);
    }
    fp_item_release(held);
    return NULL;
}

static void hammer_from_many_threads(void)
{
    pthread_t threads[MANY_THREADS];

    for (uintptr_t i = 0; i < MANY_THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, (void *)i), 0);
    for (int i = 0; i < MANY_THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}

/* No byte is lost or counted twice: the cache takes as many as a new one. */
START_TEST(threads_share_the_bytes)
{
    enum { ALL = 10000, EACH = 100 };

    cache = fp_child_cache_create(100000, ALL);
    hammer_from_many_threads();
    ck_assert_uint_gt(alive, 0);
    fp_child_cache_drop_if(cache, is_any);
    ck_assert_uint_eq(alive, 0);
    for (int i = 0; i < ALL; i++) {
        char key[16];

        snprintf(key, sizeof(key), "after%d", i);
        put_large(key, EACH);
    }
    ck_assert_uint_eq(alive, ALL / EACH);
}
END_TEST

START_TEST(threads_share_a_cache)
{
    cache = fp_child_cache_create(ROOM, SIZE_MAX);
    hammer_from_many_threads();
    ck_assert_uint_le(alive, ROOM);
    ck_assert_uint_gt(alive, 0);
    fp_child_cache_drop_if(cache, is_over);
    for (int i = 0; i < KEYS; i++)
        put_numbered("after", i);
    ck_assert_uint_eq(alive, ROOM);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache");
    TCase *t = unit_add_case(s, "cache", setup, teardown, 0);

    tcase_add_test(t, kept_replaced_and_dropped);
    tcase_add_test(t, as_a_set_of_keys);
    tcase_add_test(t, who_holds_one_has_it_for_as_long_as_he_wants);
    tcase_add_test(t, dropped_while_held);
    tcase_add_test(t, destroyed_without_a_mutex);
    tcase_add_test(t, never_more_than_the_limit);
    tcase_add_test(t, never_more_bytes_than_the_limit);
    tcase_add_test(t, a_large_item_is_not_kept);
    tcase_add_test(t, what_is_used_outlives_a_scan);
    tcase_add_test(t, swept);
    tcase_add_test(t, sweep_of_all_and_of_nothing);
    tcase_add_test(t, eviction_after_its_next_was_dropped);
    t = unit_add_case(s, "threads", setup, teardown, 60);
    tcase_add_test(t, threads_share_a_cache);
    tcase_add_test(t, threads_share_the_bytes);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
