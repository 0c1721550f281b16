/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a question, in hashes of paths: strangers choose its depth, and it depends on the
 * known part of the path.
 */
#include "config.h"
#include "lookup/dispatch.h"

#include "cache/cache_entry.h"
#include "dispatch_kit.h"

#define OF_A_SEARCH 2  /* besides one for each known step: the path itself, the first unknown step */
#define SEARCHES    13 /* of one question and its walks */

static unsigned hashes;

unsigned __real_fp_keyed_hash(const void *key, size_t len);
unsigned __wrap_fp_keyed_hash(const void *key, size_t len);

unsigned __wrap_fp_keyed_hash(const void *key, size_t len)
{
    hashes++;
    return __real_fp_keyed_hash(key, len);
}

/* A path of so many steps, "/" included. */
static const char *deep(char first, unsigned steps)
{
    static char path[FP_MAX_PATH + 1];
    unsigned len = 0;

    for (; len + 2 < 2 * steps; len += 2) {
        path[len] = '/';
        path[len + 1] = len == 0 ? first : 'd';
    }
    path[len] = '\0';
    return path;
}

static void know(const char *path, char last)
{
    char what[FP_MAX_STEPS + 1] = "";
    struct fp_answer a;

    memset(what, 'd', fp_path_depth(path, strlen(path)));
    what[fp_path_depth(path, strlen(path)) - 1] = last;
    kit_answer(&a, path, what);
    kit_ttl_ms = TTL_MS;
    kit_insert(cache, path, fp_now_ms(), &a);
}

static unsigned hashes_of(const char *path)
{
    /* That looks for every entry. */
    cache->verify = NULL;
    hashes = 0;
    ask(&early, path);
    return hashes;
}

START_TEST(too_deep_is_refused_before_any_hash)
{
    know("/d/d", 'a');
    ck_assert_uint_eq(hashes_of(deep('d', FP_MAX_PATH / 2)), 0);
    ck_assert(early.answered);
    ck_assert_int_eq((int)early.status, FP_TOODEEP);
    ck_assert_uint_eq(hashes_of(deep('d', FP_MAX_STEPS + 1)), 0);
    ck_assert_int_eq((int)early.status, FP_TOODEEP);
    ck_assert_uint_eq(n_jobs, 0);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).unanswered, 2);
    ask(&early, deep('d', FP_MAX_STEPS));
    ck_assert_int_eq((int)early.status, FP_OK);
    ck_assert_uint_eq(early.n_steps, 3);
}
END_TEST

/* Of a deep path without any known step. */
START_TEST(unknown_path_costs_what_is_known)
{
    know("/a", 'd');
    ck_assert_uint_le(hashes_of(deep('u', FP_MAX_STEPS)), SEARCHES * (OF_A_SEARCH + 1));
    ck_assert(!early.answered);
    finish(deep('u', FP_MAX_STEPS - 1), "da");
    ck_assert(early.answered);
    ck_assert_uint_eq(early.n_steps, 2);
}
END_TEST

/* Directories on the way are all known: as many hashes as there are steps, a few times. */
START_TEST(known_path_costs_its_depth)
{
    char path[FP_MAX_PATH + 1];

    snprintf(path, sizeof(path), "%s", deep('d', FP_MAX_STEPS));
    know(deep('d', FP_MAX_STEPS - 1), 'd');
    ck_assert_uint_le(hashes_of(path), SEARCHES * (OF_A_SEARCH + FP_MAX_STEPS));
    ck_assert(!early.answered);
    know(path, 'a');
    ck_assert_uint_le(hashes_of(path), OF_A_SEARCH);
    ck_assert(early.answered);
    hashes = 0;
    forget(path, true);
    ck_assert_uint_le(hashes, 2 * (OF_A_SEARCH + FP_MAX_STEPS));
}
END_TEST

/* The mount does not answer: the entry above it is looked for. */
START_TEST(mount_out_of_service)
{
    know("/", 'd');
    know(deep('m', FP_MAX_STEPS / 2), 'd');
    let_pass(2);
    ask(&other, "/d");
    ck_assert(other.answered == (n_jobs == 0));
    ask_fresh(&late, "/m/hung");
    give_up("/m/hung");
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 1);
    ck_assert_uint_le(hashes_of(deep('m', FP_MAX_STEPS)), SEARCHES * (OF_A_SEARCH + FP_MAX_STEPS / 2));
    ck_assert_int_eq((int)early.status, FP_UNAVAILABLE);
}
END_TEST

/* Many wait for one deep directory: they go on by turns, so that no turn is long. */
START_TEST(followers_go_on_by_turns)
{
    static struct fp_connection followers[MAX_JOBS - 1];
    const unsigned n = sizeof(followers) / sizeof(followers[0]), steps = FP_MAX_STEPS / 2;
    char what[FP_MAX_STEPS + 1] = "", dir[FP_MAX_PATH + 1], path[FP_MAX_PATH + 1];
    unsigned a_turn, before;

    snprintf(dir, sizeof(dir), "%s", deep('u', steps));
    for (unsigned i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%.1000s/%u", dir, i);
        ask(&followers[i], path);
    }
    ck_assert_uint_eq(n_jobs, 1);
    hashes = 0;
    memset(what, 'd', steps);
    finish(dir, what);
    a_turn = n_jobs;
    ck_assert(a_turn > 0 && a_turn < n);
    ck_assert_uint_le(hashes, (a_turn + 1) * SEARCHES * (OF_A_SEARCH + steps));
    while ((before = n_jobs) < n) {
        ev_run(loop, EVRUN_ONCE);
        ck_assert(n_jobs > before && n_jobs <= before + a_turn);
    }
    what[steps] = 'a';
    for (unsigned i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%.1000s/%u", dir, i);
        finish(path, what);
        ck_assert(followers[i].answered);
        ck_assert_uint_eq(followers[i].n_steps, steps + 1);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("dispatch_depth");
    TCase *t = unit_add_case(s, "depth", setup, teardown, 0);

    tcase_add_test(t, too_deep_is_refused_before_any_hash);
    tcase_add_test(t, unknown_path_costs_what_is_known);
    tcase_add_test(t, known_path_costs_its_depth);
    tcase_add_test(t, mount_out_of_service);
    tcase_add_test(t, followers_go_on_by_turns);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
