/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/keyed_table.h"

#include "unit.h"

#define NAMES     4096
#define LOW_BITS  12 /* that Jenkins' hash has in common; with uthash's own, one bucket */
#define LONGEST   32 /* in a chain; one in 10^15 tables with a good hash has a longer one */
#define NAME_ROOM 40

struct name {
    UT_hash_handle hh;
    char text[NAME_ROOM];
};

static struct name names[NAMES];

static void setup(void)
{
    ck_assert_int_eq(fp_keyed_hash_init(), 0);
}

FP_HASH_DIAGNOSTICS_OFF
static unsigned longest_chain(void)
{
    struct name *table = NULL;
    unsigned longest = 0;

    for (size_t i = 0; i < NAMES; i++)
        HASH_ADD_KEYPTR(hh, table, names[i].text, strlen(names[i].text), &names[i]);
    ck_assert_uint_eq(HASH_COUNT(table), NAMES);
    for (unsigned i = 0; i < table->hh.tbl->num_buckets; i++) {
        if (table->hh.tbl->buckets[i].count > longest)
            longest = table->hh.tbl->buckets[i].count;
    }
    HASH_CLEAR(hh, table);
    return longest;
}

static unsigned jenkins(const char *text)
{
    unsigned v;

    HASH_JEN(text, strlen(text), v);
    return v;
}
FP_HASH_DIAGNOSTICS_ON

/* "Ez" and "FY" are equal where a hash multiplies by 33 and adds. */
START_TEST(names_equal_by_times_33)
{
    for (size_t i = 0; i < NAMES; i++) {
        strcpy(names[i].text, "/srv/");
        for (unsigned bit = 0; bit < LOW_BITS; bit++)
            strcat(names[i].text, (i >> bit & 1) != 0 ? "Ez" : "FY");
    }
    ck_assert_uint_le(longest_chain(), LONGEST);
}
END_TEST

/* uthash's default. */
START_TEST(names_equal_by_jenkins)
{
    unsigned n = 0;

    for (size_t i = 0; i < NAMES; i++) {
        do
            snprintf(names[i].text, sizeof(names[i].text), "/srv/file%u", n++);
        while ((jenkins(names[i].text) & ((1u << LOW_BITS) - 1)) != 0);
    }
    ck_assert_uint_le(longest_chain(), LONGEST);
}
END_TEST

/* Names that collide in one daemon do not in the next. */
START_TEST(another_key_each_time)
{
    unsigned before = fp_keyed_hash("name", 4), same = 0;

    ck_assert_uint_eq(fp_keyed_hash("name", 4), before);
    for (int i = 0; i < 4; i++) {
        setup();
        same += fp_keyed_hash("name", 4) == before;
    }
    ck_assert_uint_lt(same, 4);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("keyed_hash");
    TCase *t = unit_add_case(s, "collisions", setup, NULL, 60);

    tcase_add_test(t, names_equal_by_times_33);
    tcase_add_test(t, names_equal_by_jenkins);
    tcase_add_test(t, another_key_each_time);
    return unit_run(s);
}
