/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "dependency_check.h"

#include "hash_kit.h"
#include "unit.h"

#define MAX_NOTES 64

static struct fp_dependencies *watched;
static uint64_t now;

/* The notified owners; forgotten keys too. */
static struct {
    unsigned n;
    struct {
        char how;
        const void *owner;
    } list[MAX_NOTES];
} told;
static struct {
    unsigned n;
    struct fp_watch_key keys[MAX_NOTES];
} forgotten;

static uint64_t clock_ms(void)
{
    return now;
}

static void on_forget(void *ctx, const struct fp_watch_key *key)
{
    ck_assert_ptr_eq(ctx, &forgotten);
    ck_assert_uint_lt(forgotten.n, MAX_NOTES);
    forgotten.keys[forgotten.n++] = *key;
}

static void tell(char how, void *ctx, const void *owner)
{
    ck_assert_ptr_eq(ctx, &told);
    ck_assert_uint_lt(told.n, MAX_NOTES);
    told.list[told.n].how = how;
    told.list[told.n++].owner = owner;
}

static void on_place(void *ctx, void *owner)
{
    tell('p', ctx, owner);
}

static void on_name(void *ctx, void *owner)
{
    tell('n', ctx, owner);
}

/* An owner, with all that it depends on. */
struct owner {
    struct fp_dependency *dependencies;
};

static unsigned n_lost;
static const struct owner *last_lost;

static void on_lose(void *ctx, void *owner, struct fp_dependency *s)
{
    struct owner *o = owner;

    ck_assert_ptr_eq(ctx, &n_lost);
    fp_dependencies_drop_one(watched, &o->dependencies, s);
    last_lost = o;
    n_lost++;
}

static void setup(void)
{
    unit_init_hash();
    now = 1000;
    watched = fp_dependencies_create(
        &(struct fp_dependencies_deps){ on_forget, &forgotten, on_lose, &n_lost, clock_ms });
    ck_assert_ptr_nonnull(watched);
    told.n = forgotten.n = n_lost = 0;
}

static void teardown(void)
{
    ck_assert_uint_eq(fp_dependencies_count(watched), 0);
    fp_dependencies_destroy(&watched);
    ck_assert_ptr_null(watched);
}

static struct fp_watch_key key(int number)
{
    struct fp_watch_key k = { .len = sizeof(number) };

    memcpy(k.bytes, &number, sizeof(number));
    return k;
}

static struct fp_dependency *add(struct owner *o, int number, const char *name)
{
    const struct fp_watch_key k = key(number);
    struct fp_dependency *s =
        fp_dependencies_add(watched, &o->dependencies, o, &k, name, name != NULL ? strlen(name) : 0);

    ck_assert_ptr_nonnull(s);
    ck_assert_ptr_eq(s, o->dependencies);
    return s;
}

static void drop(struct owner *o)
{
    fp_dependencies_drop(watched, &o->dependencies);
    ck_assert_ptr_null(o->dependencies);
}

/* Returns the number of notified owners. */
static unsigned change(int number, const char *name)
{
    const struct fp_watch_key k = key(number);

    told.n = 0;
    fp_dependencies_changed(watched, &k, name, strlen(name), on_place, on_name, &told);
    return told.n;
}

static unsigned gone(int number)
{
    const struct fp_watch_key k = key(number);

    told.n = 0;
    fp_dependencies_gone(watched, &k, on_place, on_name, &told);
    return told.n;
}

static unsigned times_told(char how, const struct owner *o)
{
    unsigned n = 0;

    for (unsigned i = 0; i < told.n; i++)
        n += told.list[i].how == how && told.list[i].owner == o;
    return n;
}

static unsigned times_forgotten(int number)
{
    const struct fp_watch_key k = key(number);
    unsigned n = 0;

    for (unsigned i = 0; i < forgotten.n; i++)
        n += forgotten.keys[i].len == k.len && memcmp(forgotten.keys[i].bytes, k.bytes, k.len) == 0;
    return n;
}

static bool happened(int number, const char *name, uint64_t since)
{
    const struct fp_watch_key k = key(number);

    return fp_dependencies_happened(watched, &k, name, strlen(name), since);
}

static bool any_happened(int number, uint64_t since)
{
    const struct fp_watch_key k = key(number);

    return fp_dependencies_any_happened(watched, &k, since);
}

/* ---- notified owners ---- */

START_TEST(those_whom_it_concerns)
{
    struct owner place = { NULL }, name = { NULL }, other_name = { NULL }, elsewhere = { NULL };

    add(&place, 1, NULL);
    add(&name, 1, "index");
    add(&other_name, 1, "indexes");
    add(&elsewhere, 2, "index");
    ck_assert_uint_eq(fp_dependencies_count(watched), 2);
    ck_assert_uint_eq(change(1, "index"), 2);
    ck_assert_uint_eq(times_told('p', &place), 1);
    ck_assert_uint_eq(times_told('n', &name), 1);
    ck_assert_uint_eq(change(1, "nothing"), 1);
    ck_assert_uint_eq(times_told('p', &place), 1);
    ck_assert_uint_eq(change(1, ""), 1);
    ck_assert_uint_eq(times_told('p', &place), 1);
    ck_assert_uint_eq(change(2, "index"), 1);
    ck_assert_uint_eq(times_told('n', &elsewhere), 1);
    ck_assert_uint_eq(change(3, "index"), 0);
    drop(&place);
    drop(&name);
    drop(&other_name);
    drop(&elsewhere);
}
END_TEST

START_TEST(several_owners_of_one)
{
    struct owner owners[5] = { { NULL } };

    for (int i = 0; i < 5; i++) {
        add(&owners[i], 1, NULL);
        add(&owners[i], 1, "x");
    }
    ck_assert_uint_eq(fp_dependencies_count(watched), 1);
    ck_assert_uint_eq(change(1, "x"), 10);
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(times_told('p', &owners[i]), 1);
        ck_assert_uint_eq(times_told('n', &owners[i]), 1);
    }
    drop(&owners[2]);
    ck_assert_uint_eq(change(1, "x"), 8);
    ck_assert_uint_eq(times_told('p', &owners[2]), 0);
    ck_assert_uint_eq(times_told('n', &owners[2]), 0);
    for (int i = 0; i < 5; i++)
        drop(&owners[i]);
    ck_assert_uint_eq(change(1, "x"), 0);
    ck_assert_uint_eq(times_forgotten(1), 1);
}
END_TEST

START_TEST(one_owner_of_several)
{
    struct owner o = { NULL };

    for (int i = 1; i <= 4; i++)
        add(&o, i, i % 2 == 0 ? "even" : NULL);
    ck_assert_uint_gt(fp_dependency_list_bytes(o.dependencies), 4 * sizeof(void *));
    ck_assert_uint_eq(fp_dependency_list_bytes(NULL), 0);
    for (int i = 1; i <= 4; i++) {
        ck_assert_uint_eq(change(i, "even"), 1);
    }
    drop(&o);
    ck_assert_uint_eq(forgotten.n, 4);
}
END_TEST

/* The kernel keeps an inode in memory for a watch. */
START_TEST(what_the_kernel_keeps_counts)
{
    struct owner object = { NULL }, name = { NULL };

    add(&object, 1, NULL);
    add(&name, 1, "name");
    ck_assert_uint_gt(fp_dependency_list_bytes(object.dependencies), fp_dependency_list_bytes(name.dependencies) + 1024);
    ck_assert_uint_lt(fp_dependency_list_bytes(name.dependencies), 1024);
    drop(&object);
    drop(&name);
}
END_TEST

/* One key is the beginning of the other; names likewise, and names of all bytes. */
START_TEST(keys_and_names_are_exact)
{
    struct owner o = { NULL }, longer = { NULL };
    struct fp_watch_key k = { .len = FP_MAX_WATCH_KEY, .bytes = { 2, 3, 4 } }, part = k;
    char name[FP_MAX_NAME];

    memset(name, 'n', sizeof(name));
    part.len = 3;
    ck_assert_ptr_nonnull(fp_dependencies_add(watched, &o.dependencies, &o, &part, name, FP_MAX_NAME));
    ck_assert_ptr_nonnull(
        fp_dependencies_add(watched, &longer.dependencies, &longer, &k, name, FP_MAX_NAME - 1));
    fp_dependencies_changed(watched, &part, name, FP_MAX_NAME, on_place, on_name, &told);
    ck_assert_uint_eq(told.n, 1);
    ck_assert_uint_eq(times_told('n', &o), 1);
    told.n = 0;
    fp_dependencies_changed(watched, &k, name, FP_MAX_NAME, on_place, on_name, &told);
    ck_assert_uint_eq(told.n, 0);
    fp_dependencies_changed(watched, &k, name, FP_MAX_NAME - 1, on_place, on_name, &told);
    ck_assert_uint_eq(times_told('n', &longer), 1);
    drop(&o);
    drop(&longer);
}
END_TEST

START_TEST(names_that_are_too_long)
{
    char name[FP_MAX_NAME + 100];
    const struct fp_watch_key k = key(1);
    struct owner o = { NULL }, place = { NULL };

    memset(name, 'n', sizeof(name));
    for (size_t len = FP_MAX_NAME + 1; len <= sizeof(name); len++) {
        ck_assert_ptr_null(fp_dependencies_add(watched, &o.dependencies, &o, &k, name, len));
        ck_assert_ptr_null(o.dependencies);
        forgotten.n = 0;
    }
    ck_assert_uint_eq(fp_dependencies_count(watched), 0);
    add(&place, 1, NULL);
    fp_dependencies_changed(watched, &k, name, sizeof(name), on_place, on_name, &told);
    ck_assert_uint_eq(told.n, 1);
    ck_assert(fp_dependencies_happened(watched, &k, name, sizeof(name), now));
    drop(&place);
}
END_TEST

/* A failed attempt leaves a watch that others need, and gives up its own. */
START_TEST(stake_that_fails)
{
    char name[FP_MAX_NAME + 1];
    const struct fp_watch_key one = key(1), two = key(2);
    struct owner o = { NULL }, place = { NULL };

    memset(name, 'n', sizeof(name));
    add(&place, 1, NULL);
    ck_assert_ptr_null(fp_dependencies_add(watched, &o.dependencies, &o, &one, name, sizeof(name)));
    ck_assert_uint_eq(forgotten.n, 0);
    ck_assert_ptr_null(fp_dependencies_add(watched, &o.dependencies, &o, &two, name, sizeof(name)));
    ck_assert_uint_eq(times_forgotten(2), 1);
    ck_assert_uint_eq(fp_dependencies_count(watched), 1);
    drop(&place);
}
END_TEST

/* ---- giving up ---- */

START_TEST(forgotten_once_when_the_last_goes)
{
    static const int orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                      { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

    for (int i = 0; i < 6; i++) {
        struct owner o[3] = { { NULL } };

        forgotten.n = 0;
        add(&o[0], 1, NULL);
        add(&o[1], 1, "a");
        add(&o[2], 1, "a");
        add(&o[2], 1, "b");
        for (int k = 0; k < 3; k++) {
            ck_assert_uint_eq(forgotten.n, 0);
            ck_assert_uint_eq(fp_dependencies_count(watched), 1);
            drop(&o[orders[i][k]]);
        }
        ck_assert_uint_eq(forgotten.n, 1);
        ck_assert_uint_eq(times_forgotten(1), 1);
        ck_assert_uint_eq(fp_dependencies_count(watched), 0);
    }
}
END_TEST

START_TEST(nothing_to_drop)
{
    struct owner o = { NULL };

    drop(&o);
    ck_assert_uint_eq(forgotten.n, 0);
}
END_TEST

/* A key that gets new dependencies before the old ones go stays watched. */
START_TEST(new_stakes_before_the_old_ones_go)
{
    struct owner o = { NULL };

    add(&o, 1, "x");
    for (int i = 0; i < 10; i++) {
        struct fp_dependency *old = o.dependencies;

        o.dependencies = NULL;
        add(&o, 1, "x");
        fp_dependencies_drop(watched, &old);
        ck_assert_uint_eq(forgotten.n, 0);
        change(1, "x");
        ck_assert_uint_eq(times_told('n', &o), 1);
    }
    drop(&o);
    ck_assert_uint_eq(forgotten.n, 1);
}
END_TEST

START_TEST(key_of_a_stake)
{
    const struct fp_watch_key k = key(1);
    struct owner o = { NULL };
    const struct fp_dependency *s = add(&o, 1, NULL);

    ck_assert_ptr_nonnull(fp_dependency_key(s));
    ck_assert_mem_eq(fp_dependency_key(s)->bytes, k.bytes, k.len);
    gone(1);
    ck_assert_ptr_null(fp_dependency_key(s));
    drop(&o);
}
END_TEST

/* ---- gone ---- */

START_TEST(everybody_hears_that_it_is_gone)
{
    struct owner place = { NULL }, a = { NULL }, b = { NULL }, elsewhere = { NULL };

    add(&place, 1, NULL);
    add(&a, 1, "a");
    add(&b, 1, "b");
    add(&elsewhere, 2, "a");
    ck_assert_uint_eq(gone(1), 3);
    ck_assert_uint_eq(times_told('p', &place), 1);
    ck_assert_uint_eq(times_told('n', &a), 1);
    ck_assert_uint_eq(times_told('n', &b), 1);
    ck_assert_uint_eq(fp_dependencies_count(watched), 1);
    ck_assert_uint_eq(gone(1), 0);
    ck_assert_uint_eq(change(1, "a"), 0);
    ck_assert_uint_eq(gone(3), 0);
    drop(&place);
    drop(&a);
    drop(&b);
    /* There is nothing to give up any more. */
    ck_assert_uint_eq(forgotten.n, 0);
    drop(&elsewhere);
    ck_assert_uint_eq(times_forgotten(2), 1);
}
END_TEST

/* The number is given anew, while an owner still holds on to the old one. */
START_TEST(the_same_key_again)
{
    struct owner old = { NULL }, new = { NULL };

    add(&old, 1, "x");
    add(&old, 1, NULL);
    gone(1);
    add(&new, 1, "x");
    ck_assert_uint_eq(fp_dependencies_count(watched), 1);
    ck_assert_uint_eq(change(1, "x"), 1);
    ck_assert_uint_eq(times_told('n', &new), 1);
    drop(&old);
    ck_assert_uint_eq(forgotten.n, 0);
    change(1, "x");
    ck_assert_uint_eq(times_told('n', &new), 1);
    drop(&new);
    ck_assert_uint_eq(times_forgotten(1), 1);
}
END_TEST

/* ---- recent events ---- */

START_TEST(what_happened_is_remembered)
{
    ck_assert(!happened(1, "a", 1));
    ck_assert(!any_happened(1, 1));
    change(1, "a");
    ck_assert(happened(1, "a", 999));
    ck_assert(happened(1, "a", 1000));
    ck_assert(!happened(1, "a", 1001));
    ck_assert(!happened(1, "b", 1000));
    ck_assert(!happened(1, "", 1000));
    ck_assert(!happened(2, "a", 1000));
    ck_assert(any_happened(1, 1000));
    ck_assert(!any_happened(1, 1001));
    ck_assert(!any_happened(2, 1000));
    now = 1500;
    ck_assert(happened(1, "a", 1000));
    change(1, "");
    ck_assert(happened(1, "", 1500));
    ck_assert(!happened(1, "a", 1500));
    ck_assert(happened(1, "a", 1000));
    ck_assert(!any_happened(1, 1500));
}
END_TEST

START_TEST(the_end_is_something_that_happened)
{
    gone(1);
    ck_assert(happened(1, "whatever", 1000));
    ck_assert(happened(1, "", 1000));
    ck_assert(any_happened(1, 1000));
    ck_assert(!happened(1, "whatever", 1001));
    ck_assert(!happened(2, "whatever", 1000));
}
END_TEST

/* A walk that relied on the watch that was given up finds that out. */
START_TEST(giving_up_is_something_that_happened)
{
    struct owner o = { NULL };

    add(&o, 1, "a");
    ck_assert(!happened(1, "b", 1000));
    now = 1200;
    drop(&o);
    ck_assert(happened(1, "b", 1200));
    ck_assert(happened(1, "", 1100));
    ck_assert(any_happened(1, 1200));
    ck_assert(!happened(1, "b", 1201));
    /* Not after the end: no owner could rely on it. */
    now = 2000;
    add(&o, 2, "a");
    gone(2);
    now = 2100;
    drop(&o);
    ck_assert(!happened(2, "a", 2100));
}
END_TEST

START_TEST(lost_events_may_have_been_anything)
{
    now = 1200;
    fp_dependencies_lost(watched);
    for (int i = 0; i < 50; i++) {
        ck_assert(happened(i, "x", 1200));
        ck_assert(any_happened(i, 1100));
        ck_assert(!happened(i, "x", 1201));
    }
}
END_TEST

/* The memory is bounded: its only error is to report an event that did not happen. */
START_TEST(never_forgets_what_happened_lately)
{
    char name[32];
    unsigned wrong = 0;

    for (int i = 0; i < 3000; i++) {
        now++;
        snprintf(name, sizeof(name), "file%d", i);
        change(i % 1000, name);
    }
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof(name), "file%d", i);
        ck_assert(happened(i % 1000, name, 1001 + (uint64_t)i));
        snprintf(name, sizeof(name), "other%d", i);
        wrong += happened(i % 1000, name, 1);
    }
    ck_assert_uint_lt(wrong, 30);
}
END_TEST

/* ---- all of it at random, against a list ---- */

#define OWNERS  12
#define KEYS    4
#define LETTERS 3

START_TEST(at_random)
{
    /* How often each owner has staked a place (letter 0) or a name. */
    unsigned staked[OWNERS][KEYS][LETTERS + 1] = { { { 0 } } };
    struct owner owners[OWNERS] = { { NULL } };
    static const char *const names[] = { NULL, "a", "b", "c" };
    uint64_t seed = 99 + (uint64_t)_i;

    for (int round = 0; round < 20000; round++) {
        const int o = (int)(unit_random(&seed) % OWNERS), k = (int)(unit_random(&seed) % KEYS);
        const int l = (int)(unit_random(&seed) % (LETTERS + 1));
        bool wanted[2] = { false, false };

        for (int i = 0; i < OWNERS; i++)
            for (int j = 0; j <= LETTERS; j++)
                wanted[0] = wanted[0] || staked[i][k][j] > 0;
        forgotten.n = 0;
        switch (unit_random(&seed) % 8) {
        case 0:
        case 1:
        case 2:
            if (staked[o][k][l] > 2)
                break;
            add(&owners[o], k, names[l]);
            staked[o][k][l]++;
            break;
        case 3:
        case 4:
            drop(&owners[o]);
            memset(staked[o], 0, sizeof(staked[o]));
            for (int i = 0; i < OWNERS; i++)
                for (int j = 0; j <= LETTERS; j++)
                    wanted[1] = wanted[1] || staked[i][k][j] > 0;
            ck_assert_uint_eq(times_forgotten(k), wanted[0] && !wanted[1]);
            break;
        case 5:
        case 6:
            change(k, l == 0 ? "" : names[l]);
            for (int i = 0; i < OWNERS; i++) {
                ck_assert_uint_eq(times_told('p', &owners[i]), staked[i][k][0]);
                ck_assert_uint_eq(times_told('n', &owners[i]), l == 0 ? 0 : staked[i][k][l]);
            }
            break;
        case 7:
            if (unit_random(&seed) % 8 != 0)
                break;
            gone(k);
            for (int i = 0; i < OWNERS; i++) {
                ck_assert_uint_eq(times_told('p', &owners[i]), staked[i][k][0]);
                ck_assert_uint_eq(times_told('n', &owners[i]),
                                  staked[i][k][1] + staked[i][k][2] + staked[i][k][3]);
                memset(staked[i][k], 0, sizeof(staked[i][k]));
            }
            break;
        }
    }
    forgotten.n = 0;
    for (int i = 0; i < OWNERS; i++)
        drop(&owners[i]);
}
END_TEST

/* An event concerns a bounded number of owners: the oldest gives way. */
START_TEST(too_many_of_one)
{
    static struct owner owners[FP_MAX_DEPENDENTS];
    const char *name = _i == 0 ? NULL : "name";
    struct owner other = { NULL };

    for (unsigned i = 0; i < FP_MAX_DEPENDENTS; i++)
        add(&owners[i], 1, name);
    add(&other, 1, "another");
    add(&other, 2, name);
    ck_assert_uint_eq(n_lost, 0);
    add(&other, 1, name);
    ck_assert_uint_eq(n_lost, 1);
    ck_assert_ptr_eq(last_lost, &owners[0]);
    ck_assert_ptr_null(owners[0].dependencies);
    /* An owner does not take its own place. */
    add(&owners[1], 1, name);
    ck_assert_uint_eq(n_lost, 2);
    ck_assert_ptr_eq(last_lost, &owners[2]);
    ck_assert_pstr_eq(fp_dependencies_check(watched, FP_MAX_DEPENDENTS + 2), NULL);
    drop(&other);
    for (unsigned i = 1; i < FP_MAX_DEPENDENTS; i++)
        drop(&owners[i]);
}
END_TEST

static const struct owner *keeps;

static bool is_other(const void *owner, const struct fp_dependency *s)
{
    return owner != keeps && s != NULL;
}

/* With the last of them the object goes. */
START_TEST(some_lose_the_object)
{
    struct owner owners[4] = { { NULL } };
    const struct fp_watch_key k = key(1), none = key(3);

    for (unsigned i = 0; i < 4; i++)
        add(&owners[i], 1, i % 2 == 0 ? NULL : "name");
    add(&owners[0], 2, NULL);
    keeps = _i == 0 ? NULL : &owners[_i - 1];
    fp_dependencies_lose(watched, &none, is_other);
    ck_assert_uint_eq(n_lost, 0);
    fp_dependencies_lose(watched, &k, is_other);
    ck_assert_uint_eq(n_lost, _i == 0 ? 4 : 3);
    ck_assert_pstr_eq(fp_dependencies_check(watched, _i == 0 ? 1 : 2), NULL);
    ck_assert_uint_eq(fp_dependencies_count(watched), _i == 0 ? 1 : 2);
    for (unsigned i = 0; i < 4; i++)
        drop(&owners[i]);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("watched");
    TCase *t = unit_add_case(s, "changes", setup, teardown, 0);

    tcase_add_test(t, those_whom_it_concerns);
    tcase_add_test(t, several_owners_of_one);
    tcase_add_test(t, one_owner_of_several);
    tcase_add_test(t, what_the_kernel_keeps_counts);
    tcase_add_test(t, keys_and_names_are_exact);
    tcase_add_test(t, names_that_are_too_long);
    tcase_add_test(t, stake_that_fails);
    tcase_add_loop_test(t, too_many_of_one, 0, 2);
    tcase_add_loop_test(t, some_lose_the_object, 0, 5);
    t = unit_add_case(s, "giving_up", setup, teardown, 0);
    tcase_add_test(t, forgotten_once_when_the_last_goes);
    tcase_add_test(t, nothing_to_drop);
    tcase_add_test(t, new_stakes_before_the_old_ones_go);
    tcase_add_test(t, key_of_a_stake);
    t = unit_add_case(s, "gone", setup, teardown, 0);
    tcase_add_test(t, everybody_hears_that_it_is_gone);
    tcase_add_test(t, the_same_key_again);
    t = unit_add_case(s, "lately", setup, teardown, 0);
    tcase_add_test(t, what_happened_is_remembered);
    tcase_add_test(t, the_end_is_something_that_happened);
    tcase_add_test(t, giving_up_is_something_that_happened);
    tcase_add_test(t, lost_events_may_have_been_anything);
    tcase_add_test(t, never_forgets_what_happened_lately);
    t = unit_add_case(s, "random", setup, teardown, 60);
    tcase_add_loop_test(t, at_random, 0, 3);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
