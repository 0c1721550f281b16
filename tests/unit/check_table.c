/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "table.h"

#include "unit.h"

struct thing {
    struct fp_item item;
    char key[16];
};

static apr_pool_t *pool;
static struct fp_table *table;
static unsigned alive;

static void destroy(struct fp_item *item)
{
    alive--;
    free(item);
}

static void setup(void)
{
    ck_assert_int_eq(apr_initialize(), APR_SUCCESS);
    ck_assert_int_eq(apr_pool_create(&pool, NULL), APR_SUCCESS);
    alive = 0;
}

static void teardown(void)
{
    apr_pool_destroy(pool);
    ck_assert_uint_eq(alive, 0);
}

/* Puts a new one and lets go of it; the caller has no reference. */
static struct thing *put(const char *key)
{
    struct thing *t = calloc(1, sizeof(*t));

    ck_assert_ptr_nonnull(t);
    snprintf(t->key, sizeof(t->key), "%s", key);
    fp_item_init(&t->item, t->key, strlen(t->key), destroy);
    alive++;
    fp_table_put(table, &t->item);
    fp_item_release(&t->item);
    return t;
}

static bool is_kept(const char *key)
{
    struct fp_item *item = fp_table_get(table, key, strlen(key));

    if (item != NULL)
        fp_item_release(item);
    return item != NULL;
}

START_TEST(kept_replaced_and_dropped)
{
    struct thing *first, *second;

    table = fp_table_create(pool, 10);
    ck_assert(!is_kept("a"));
    first = put("a");
    ck_assert(is_kept("a"));
    second = put("a");
    ck_assert_ptr_ne(first, second);
    ck_assert_uint_eq(alive, 1);
    fp_table_drop(table, &second->item);
    ck_assert(!is_kept("a"));
    ck_assert_uint_eq(alive, 0);
}
END_TEST

START_TEST(who_holds_one_has_it_for_as_long_as_he_wants)
{
    struct fp_item *held;

    table = fp_table_create(pool, 1);
    put("a");
    held = fp_table_get(table, "a", 1);
    ck_assert_ptr_nonnull(held);
    put("b");
    ck_assert(!is_kept("a"));
    ck_assert_uint_eq(alive, 2);
    /* It is not the table's any more, and a newer one of its key is left alone. */
    fp_table_drop(table, held);
    ck_assert(is_kept("b"));
    fp_item_release(held);
    ck_assert_uint_eq(alive, 1);
}
END_TEST

START_TEST(never_more_than_the_limit)
{
    char key[16];

    table = fp_table_create(pool, 7);
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof(key), "%d", i % 50);
        put(key);
        ck_assert_uint_le(alive, 7);
    }
    table = fp_table_create(pool, 0);
    put("a");
    ck_assert(!is_kept("a"));
}
END_TEST

START_TEST(what_is_used_outlives_a_scan)
{
    char key[16];

    table = fp_table_create(pool, 10);
    put("hot");
    for (int i = 0; i < 1000; i++) {
        ck_assert_msg(is_kept("hot"), "after %d", i);
        snprintf(key, sizeof(key), "scan%d", i);
        put(key);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("table");
    TCase *t = tcase_create("table");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, kept_replaced_and_dropped);
    tcase_add_test(t, who_holds_one_has_it_for_as_long_as_he_wants);
    tcase_add_test(t, never_more_than_the_limit);
    tcase_add_test(t, what_is_used_outlives_a_scan);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
