/* SPDX-License-Identifier: Apache-2.0 */
/* The hash table that grows by one bucket at a time. */
#include "config.h"
#include "cache/index.h"

#include "unit.h"

#define MANY 20000u

struct thing {
    struct fp_indexed indexed;
    bool is_in, seen;
};

static struct fp_index table;
static struct thing things[MANY];

static unsigned hash_of(const struct thing *t)
{
    const uint64_t number = (uint64_t)(t - things) / 2; /* two of each */

    return (unsigned)((number * 0x9e3779b97f4a7c15u) >> 32);
}

/* How many are in its chain; *found_r: it is one of them. */
static unsigned chain(const struct thing *t, bool *found_r)
{
    unsigned n = 0;

    *found_r = false;
    for (const struct fp_indexed *i = fp_index_chain(&table, hash_of(t)); i != NULL; i = i->next, n++)
        *found_r = *found_r || i == &t->indexed;
    return n;
}

static void toggle(struct thing *t)
{
    if (t->is_in)
        fp_index_remove(&table, &t->indexed);
    else
        ck_assert(fp_index_add(&table, &t->indexed, hash_of(t)));
    t->is_in = !t->is_in;
}

/* Each is found while it is in, once in a round over all. */
static void check_all(void)
{
    size_t n = 0;
    bool found;

    for (struct thing *t = things; t < things + MANY; t++) {
        ck_assert_uint_lt(chain(t, &found), 32);
        ck_assert(found == t->is_in);
        t->seen = false;
        n += t->is_in;
    }
    ck_assert_uint_eq(table.n, n);
    for (struct fp_indexed *i = fp_index_first(&table); i != NULL; i = fp_index_next(&table, i), n--) {
        ck_assert(((struct thing *)i)->is_in && !((struct thing *)i)->seen);
        ((struct thing *)i)->seen = true;
    }
    ck_assert_uint_eq(n, 0);
}

/* No insertion or removal makes or gives up more than two buckets. */
START_TEST(grows_and_shrinks_by_single_buckets)
{
    for (int way = 0; way < 2; way++) {
        for (unsigned i = 0; i < MANY; i++) {
            const size_t before = table.buckets;

            toggle(&things[i]);
            if (before > 0 && table.n > 0)
                ck_assert_uint_le(way == 0 ? table.buckets - before : before - table.buckets, 2);
            if (i % 4999 == 0)
                check_all();
        }
        ck_assert_uint_eq(table.buckets, way == 0 ? MANY : 0);
    }
    ck_assert_ptr_null(table.segments);
}
END_TEST

START_TEST(any_order)
{
    uint64_t seed = 7;

    for (unsigned round = 0; round < 40; round++) {
        /* Some rounds fill it, some empty it. */
        for (unsigned i = 0; i < MANY / 2; i++) {
            struct thing *t = &things[unit_random(&seed) % MANY];

            if (t->is_in == (round % 8 >= 4) || i % 4 == 0)
                toggle(t);
        }
        check_all();
    }
    for (struct thing *t = things; t < things + MANY; t++) {
        if (t->is_in)
            toggle(t);
    }
    ck_assert_ptr_null(table.segments);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("index");
    TCase *t = unit_add_case(s, "index", NULL, NULL, 30);

    tcase_add_test(t, grows_and_shrinks_by_single_buckets);
    tcase_add_test(t, any_order);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
