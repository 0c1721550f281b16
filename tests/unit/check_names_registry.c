/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/names_registry.h"

#include "unit.h"

static struct fp_names_registry registry;

static uint64_t now_ms;

/* ---- the cache, which learns each list once, unless it has forgotten it ---- */

static const struct fp_names *learnt[FP_MAX_LISTS + 1];
static bool forgets; /* it can do so at once */

void fp_cache_set_names(struct fp_cache *c, unsigned number, const struct fp_names *names)
{
    ck_assert_ptr_null(c);
    ck_assert_uint_le(number, FP_MAX_LISTS);
    ck_assert_ptr_null(learnt[number]);
    learnt[number] = names;
}

bool fp_cache_forget_names(struct fp_cache *c, unsigned number, size_t most)
{
    ck_assert_ptr_null(c);
    ck_assert_uint_gt(most, 0);
    ck_assert_ptr_nonnull(learnt[number]);
    if (forgets)
        learnt[number] = NULL;
    return forgets;
}

static void setup(void)
{
    memset(&registry, 0, sizeof(registry));
    memset(learnt, 0, sizeof(learnt));
    now_ms = 1000;
    forgets = true;
}

static struct fp_names two(const char *first, const char *second)
{
    return (struct fp_names){ 2, { { first, strlen(first) }, { second, strlen(second) } } };
}

START_TEST(a_list_has_one_number)
{
    const struct fp_names one = two(".htaccess", ".acl"), turned = two(".acl", ".htaccess");

    ck_assert_uint_eq(fp_names_registry_find(&registry, &one), 0);
    ck_assert_uint_eq(fp_names_registry_add(&registry, &one, now_ms), 1);
    ck_assert_uint_eq(fp_names_registry_add(&registry, &turned, now_ms), 2);
    ck_assert_uint_eq(fp_names_registry_add(&registry, &one, now_ms), 1);
    ck_assert_uint_eq(fp_names_registry_find(&registry, &turned), 2);
    ck_assert(fp_names_equal(learnt[1], &one));
    ck_assert(fp_names_equal(learnt[2], &turned));
}
END_TEST

/* The names of a question are gone after it. */
START_TEST(a_list_is_a_copy)
{
    char name[FP_MAX_NAME + 1];
    struct fp_names names = { .n = FP_MAX_NAMES };

    memset(name, 'x', FP_MAX_NAME);
    name[FP_MAX_NAME] = '\0';
    for (unsigned i = 0; i < FP_MAX_NAMES; i++) {
        names.list[i].name = name + i;
        names.list[i].len = FP_MAX_NAME - i;
    }
    ck_assert_uint_eq(fp_names_registry_add(&registry, &names, now_ms), 1);
    ck_assert(fp_names_equal(learnt[1], &names));
    memset(name, 'y', FP_MAX_NAME);
    ck_assert_uint_eq(fp_names_registry_find(&registry, &names), 0);
    ck_assert_int_eq(learnt[1]->list[FP_MAX_NAMES - 1].name[0], 'x');
}
END_TEST

START_TEST(no_names_have_no_number)
{
    const struct fp_names none = { .n = 0 };

    ck_assert_uint_eq(fp_names_registry_add(&registry, &none, now_ms), 0);
    ck_assert_ptr_null(learnt[1]);
}
END_TEST

/* The number of the list that has the i-th letter as its name. */
static unsigned add_letter(unsigned i)
{
    const char name[] = { (char)('a' + i), '\0' };
    const struct fp_names names = two(name, "same");

    return fp_names_registry_add(&registry, &names, now_ms);
}

static void fill(void)
{
    for (unsigned i = 0; i < FP_MAX_LISTS; i++, now_ms++)
        ck_assert_uint_eq(add_letter(i), i + 1);
}

START_TEST(too_many_lists)
{
    fill();
    ck_assert_uint_eq(add_letter(FP_MAX_LISTS), 0);
    for (unsigned i = FP_MAX_LISTS; i > 0; i--)
        ck_assert_uint_eq(add_letter(i - 1), i);
}
END_TEST

START_TEST(the_list_unused_for_longest_gives_its_place)
{
    fill();
    add_letter(0);
    now_ms += FP_LIST_IDLE_MS;
    ck_assert_uint_eq(add_letter(20), 2);
    ck_assert_uint_eq(add_letter(21), 3);
    ck_assert_uint_eq(add_letter(0), 1);
    ck_assert_uint_eq(add_letter(20), 2);
}
END_TEST

START_TEST(a_list_in_use_keeps_its_place)
{
    fill();
    now_ms += FP_LIST_IDLE_MS;
    fp_names_registry_hold(&registry, 1, now_ms - FP_LIST_IDLE_MS);
    fp_names_registry_hold(&registry, 0, now_ms);
    fp_names_registry_hold(&registry, 2, now_ms);
    fp_names_registry_release(&registry, 2);
    ck_assert_uint_eq(add_letter(20), 3);
    fp_names_registry_release(&registry, 1);
    fp_names_registry_release(&registry, 0);
    ck_assert_uint_eq(add_letter(21), 4);
}
END_TEST

/* The cache needs several calls to forget a large list, which can be used meanwhile. */
START_TEST(a_list_goes_once_the_cache_has_forgotten_it)
{
    fill();
    forgets = false;
    now_ms += FP_LIST_IDLE_MS;
    ck_assert_uint_eq(add_letter(20), 0);
    ck_assert_uint_eq(add_letter(0), 1);
    forgets = true;
    ck_assert_uint_eq(add_letter(20), 2);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("names_registry");
    TCase *t = unit_add_case(s, "lists", setup, NULL, 0);

    tcase_add_test(t, a_list_has_one_number);
    tcase_add_test(t, a_list_is_a_copy);
    tcase_add_test(t, no_names_have_no_number);
    tcase_add_test(t, too_many_lists);
    tcase_add_test(t, the_list_unused_for_longest_gives_its_place);
    tcase_add_test(t, a_list_in_use_keeps_its_place);
    tcase_add_test(t, a_list_goes_once_the_cache_has_forgotten_it);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
