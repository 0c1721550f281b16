/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/names_registry.h"

#include "unit.h"

static struct fp_names_registry registry;

/* ---- the cache, which learns each list once ---- */

static const struct fp_names *learnt[FP_MAX_LISTS + 1];

void fp_cache_set_names(struct fp_cache *c, unsigned number, const struct fp_names *names)
{
    ck_assert_ptr_null(c);
    ck_assert_uint_le(number, FP_MAX_LISTS);
    ck_assert_ptr_null(learnt[number]);
    learnt[number] = names;
}

static void setup(void)
{
    memset(&registry, 0, sizeof(registry));
    memset(learnt, 0, sizeof(learnt));
}

static struct fp_names two(const char *first, const char *second)
{
    return (struct fp_names){ 2, { { first, strlen(first) }, { second, strlen(second) } } };
}

START_TEST(a_list_has_one_number)
{
    const struct fp_names one = two(".htaccess", ".acl"), turned = two(".acl", ".htaccess");

    ck_assert_uint_eq(fp_names_registry_find(&registry, &one), 0);
    ck_assert_uint_eq(fp_names_registry_add(&registry, &one), 1);
    ck_assert_uint_eq(fp_names_registry_add(&registry, &turned), 2);
    ck_assert_uint_eq(fp_names_registry_add(&registry, &one), 1);
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
    ck_assert_uint_eq(fp_names_registry_add(&registry, &names), 1);
    ck_assert(fp_names_equal(learnt[1], &names));
    memset(name, 'y', FP_MAX_NAME);
    ck_assert_uint_eq(fp_names_registry_find(&registry, &names), 0);
    ck_assert_int_eq(learnt[1]->list[FP_MAX_NAMES - 1].name[0], 'x');
}
END_TEST

START_TEST(no_names_have_no_number)
{
    const struct fp_names none = { .n = 0 };

    ck_assert_uint_eq(fp_names_registry_add(&registry, &none), 0);
    ck_assert_ptr_null(learnt[1]);
}
END_TEST

START_TEST(too_many_lists)
{
    char name[] = "a";

    for (unsigned i = 1; i <= FP_MAX_LISTS; i++, name[0]++) {
        const struct fp_names names = two(name, "same");

        ck_assert_uint_eq(fp_names_registry_add(&registry, &names), i);
    }
    for (unsigned i = FP_MAX_LISTS; i > 0; i--) {
        const struct fp_names names = two(name, "same");

        ck_assert_uint_eq(fp_names_registry_add(&registry, &names), i == FP_MAX_LISTS ? 0 : i + 1);
        name[0]--;
    }
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
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
