/* SPDX-License-Identifier: Apache-2.0 */
/* The cache where changes are reported: for how long its entries are valid. */
#include "config.h"
#include "cache/cache.h"

#include "cache/dependency.h"
#include "cache_watch_kit.h"

START_TEST(watched_entries_live_longer)
{
    walked("/a/f", "ddf");
    ck_assert_uint_eq(life("/a/f"), WATCHED_TTL);
    ck_assert(known("/a/f"));
    assert_lease_lasts("/a/f", WATCHED_TTL);
}
END_TEST

START_TEST(without_evidence_they_do_not)
{
    kit_answer(&answer, "/a/f", "ddf");
    kit_insert(cache, "/a/f", kit_now_ms, &answer);
    ck_assert_uint_eq(life("/a/f"), TTL);
    ck_assert(known("/a/f"));
    assert_lease_lasts("/a/f", TTL);
}
END_TEST

/* Each mount has its TTL, and an entry on the border has the shorter one. */
START_TEST(time_to_live_is_the_mounts)
{
    walk_unwatched("/m/f", "ddf");
    validity[0].ttl_ms = 500;
    validity[1].ttl_ms = validity[2].ttl_ms = 300;
    insert("/m/f");
    ck_assert_uint_eq(life("/m/f"), 300);
    walk_unwatched("/n/f", "ddf");
    validity[0].ttl_ms = 200;
    validity[1].ttl_ms = validity[2].ttl_ms = 300;
    insert("/n/f");
    ck_assert_uint_eq(life("/n/f"), 200);
}
END_TEST

START_TEST(absence_is_watched_from_above)
{
    walked("/a/no", "dda");
    ck_assert_uint_eq(life("/a/no"), WATCHED_TTL);
    change("/a", "no", true);
    ck_assert(!known("/a/no"));
    walk("/b/no", "dda");
    result.step_watches[1].watch.len = 0;
    insert("/b/no");
    ck_assert_uint_eq(life("/b/no"), TTL);
}
END_TEST

/* Where nobody reports changes, absent names have a time of their own, if it is the shorter one. */
START_TEST(absence_has_its_own_time)
{
    static const struct {
        uint32_t negative_ms, life_ms;
    } cases[] = { { TTL / 2, TTL / 2 }, { 0, TTL }, { 2 * TTL, TTL } };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        walk_unwatched("/m/no", "dda");
        for (unsigned step = 0; step < 3; step++)
            validity[step].negative_ms = cases[i].negative_ms;
        insert("/m/no");
        ck_assert_uint_eq(life("/m/no"), cases[i].life_ms);
    }
    walk_unwatched("/m/f", "ddf");
    validity[2].negative_ms = TTL / 2;
    insert("/m/f");
    ck_assert_uint_eq(life("/m/f"), TTL);
    walk("/w/no", "dda");
    validity[1].negative_ms = validity[2].negative_ms = TTL / 2;
    insert("/w/no");
    ck_assert_uint_eq(life("/w/no"), WATCHED_TTL);
}
END_TEST

/* A directory that may not be read any more cannot be watched anew; but while it
 * is the same one, its watch goes on. Elsewhere than on local file systems, another inode may have its number. */
START_TEST(a_watch_goes_on)
{
    walked("/a/f", "ddf");
    kit_now_ms++;
    walk("/a/f", "ddf");
    result.step_watches[1].watch.len = 0;
    validity[1].traits.local = _i == 1;
    answer.steps[1].self.mode ^= 0444;
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), _i == 1 ? WATCHED_TTL : TTL);
    ck_assert_uint_eq(forgotten, _i == 1 ? 0 : 1);
    if (_i == 0)
        return;
    change("/a", "f", false);
    ck_assert(!known("/a/f"));
    walk("/a/f", "ddf");
    result.step_watches[1].watch.len = 0;
    answer.steps[1].self.ino++;
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), TTL);
    ck_assert_uint_eq(forgotten, 1);
}
END_TEST

/* Its end was reported while the walk that had found it was under way: nothing depended on it then. Then no
 * other one can be had: [0] at the system's limit, [1] of what may not be read. */
START_TEST(a_watch_that_ended_meanwhile_does_not_go_on)
{
    const uint64_t began_ms = kit_now_ms;

    walk("/a/f", "ddf");
    lose_watch("/a");
    insert_as("/a/f", began_ms);
    ck_assert(!known("/a"));
    kit_now_ms++;
    walk("/a/f", "ddf");
    result.step_watches[1].watch.len = 0;
    result.step_watches[1].verdict = _i == 0 ? FP_REPORTED_LIMIT : FP_REPORTED;
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), _i == 0 ? 0 : TTL);
    kit_now_ms++;
    walked("/a/f", "ddf");
    ck_assert_uint_eq(life("/a/f"), WATCHED_TTL);
}
END_TEST

/* One thing is missing; everything else is as it should be. */
START_TEST(what_is_not_watched_enough)
{
    walk("/a/f", "ddf");
    switch (_i) {
    case 0: result.step_watches[0].watch.len = 0; break; /* "/" has nobody above it */
    case 1: result.step_watches[1].watch.len = 0; break; /* "f" lies there */
    case 2: result.step_watches[2].verdict = FP_TTL_UNREPORTED; break;
    case 3: validity[2].traits.verdict = FP_TTL_UNWATCHED; break;
    case 4: validity[1].traits.verdict = FP_TTL_UNWATCHED; break;
    case 5: result.step_watches[1].verdict = FP_TTL_UNREPORTED; break;
    case 6:
        result.step_watches[2].watch.len = 0;
        answer.steps[2].self.nlink = 2;
        break;
    case 7:
        result.step_watches[2].watch.len = 0;
        validity[2].mount = 2;
        break;
    case 8:
        result.step_watches[1].watch.len = 0;
        validity[1].mount = 2;
        break;
    case 9: result.step_watches[2].watch.len = 0; break; /* writes to it */
    }
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), TTL);
}
END_TEST

/* Each question about an entry directly in a directory without a watch for now needs a look. Deeper
 * entries stay as they were, except for the way there. */
START_TEST(a_watch_that_is_left_out)
{
    walk("/a/b/f", "dddf");
    result.step_watches[1].watch.len = 0;
    result.step_watches[1].verdict = FP_REPORTED_NOISE;
    insert("/a/b/f");
    ck_assert_uint_eq(life("/a/b"), 0);
    ck_assert_uint_eq(life("/a/b/f"), 0);
    ck_assert(known("/"));
    walk("/a/no", "dda");
    result.step_watches[1].watch.len = 0;
    result.step_watches[1].verdict = FP_REPORTED_NOISE;
    insert("/a/no");
    ck_assert_uint_eq(life("/a/no"), 0);
    /* Its own size and times change without an event, too. */
    ck_assert(!known("/a"));
    kit_now_ms++;
    walked("/a/b/f", "dddf");
    ck_assert_uint_eq(life("/a/b/f"), WATCHED_TTL);
}
END_TEST

/* Where no access file may be there, the parent's watch does for all but the directory's own names. */
START_TEST(a_watch_that_was_refused)
{
    walk("/a/d", "ddd");
    result.step_watches[2].watch.len = 0;
    result.step_watches[2].verdict = FP_REPORTED_LIMIT;
    insert("/a/d");
    ck_assert(!known("/a/d"));
    walked("/a/d/f", "dddf");
    ck_assert(known("/a/d"));
}
END_TEST

/* A link whose target is absent: the step is on the mount above, and the unwatched directory was on
 * the way to the target. */
START_TEST(a_watch_that_was_refused_on_a_links_way)
{
    walk("/a/b", "ddb");
    result.step_watches[2].verdict = FP_EACH_REQUEST;
    validity[2].mount = 0;
    insert("/a/b");
    ck_assert_uint_eq(life("/a/b"), 0);
    ck_assert(known("/a"));
}
END_TEST

/* No walk begins there, and on 9p it would lead to its former name after a rename. A further look closes it. */
START_TEST(a_directory_of_each_request_is_not_open)
{
    for (int each = 0; each < 2; each++) {
        walk("/a/b", "ddd");
        if (answer.fd == -1)
            answer.fd = kit_file('0');
        result.step_watches[2].verdict = each == _i ? FP_EACH_REQUEST : FP_REPORTED;
        insert("/a/b");
        ck_assert_uint_eq(fp_cache_counts(cache).open_dirs, each != _i);
    }
}
END_TEST

/* The same, where the way leads over a mount on which others make changes, too. */
START_TEST(what_others_change_on_a_links_way)
{
    walk("/a/b", "ddb");
    result.step_watches[2].verdict = FP_REPORTED_OTHERS;
    validity[2].mount = 0;
    insert("/a/b");
    ck_assert_uint_eq(life("/a/b"), TTL);
}
END_TEST

static void walk_quiet(const char *path, const char *what)
{
    walk(path, what);
    for (unsigned i = 0; i < answer.n_steps; i++)
        validity[i].ttl_ms = 2001;
    result.step_watches[1].verdict = FP_REPORTED_NAMES;
}

/* Where a directory's watch reports names alone, entries with a full watch of their own are leased.
 * Looks at the directory now and then let it be watched again. */
START_TEST(a_watch_that_reports_names_alone)
{
    walk_quiet("/a/f", "ddf");
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), 2000);
    walk_quiet("/a/b/f", "dddf");
    insert("/a/b/f");
    ck_assert_uint_eq(life("/a/b/f"), 2000);
    walk_quiet("/a/no", "dda");
    insert("/a/no");
    ck_assert_uint_eq(life("/a/no"), 2000);
    change("/a", "no", true);
    ck_assert(!known("/a/no"));
}
END_TEST

/* One thing is missing: only the directory above could report it. */
START_TEST(attributes_that_nobody_reports)
{
    walk_quiet("/a/b", _i == 3 ? "ddx" : _i == 4 ? "ddl" : "ddd");
    switch (_i) {
    case 0: result.step_watches[2].watch.len = 0; break;
    case 1: result.step_watches[2].verdict = FP_REPORTED_NAMES; break;
    case 2:
        result.step_watches[2].watch.len = 0;
        validity[2].mount = 2;
        break;
    default: break;
    }
    insert("/a/b");
    ck_assert_uint_eq(life("/a/b"), 0);
}
END_TEST

/* A client relies on more than its lease where all changes are reported. */
START_TEST(leases_end_with_the_reports)
{
    struct kit_lease l;

    walked("/a/f", "ddf");
    l = take_lease("/a/f");
    ck_assert(answer.watched && answer.above_watched);
    kit_now_ms++;
    walk("/a/f", "ddf");
    result.step_watches[2].verdict = FP_TTL_UNREPORTED;
    insert("/a/f");
    ck_assert(!holds(&l));
    l = take_lease("/a/f");
    ck_assert(!answer.watched && answer.above_watched);
    ck_assert(holds(&l));
}
END_TEST

/* Only where the directory's file system is of this machine a client looks there itself. */
START_TEST(steps_by_which_a_client_looks)
{
    walk("/a/f", "ddf");
    validity[0].traits.local = validity[1].traits.local = true;
    validity[1].stale_ms = 0;
    switch (_i) {
    case 0: break;
    case 1: validity[1].traits.local = false; break;
    case 2: validity[1].stale_ms = 1000; break;
    default: validity[0].traits.local = false; break;
    }
    insert("/a/f");
    (void)take_lease("/a/f");
    ck_assert_int_eq(answer.may_look, _i == 0 || _i == 3);
}
END_TEST

/* An event concerns no more entries than that: the oldest gives its place to the newest. */
START_TEST(too_many_names_of_one_file)
{
    const struct fp_cache_limits limits = { 2 * FP_MAX_DEPENDENTS, 10,       100,
                                            2 * FP_MAX_DEPENDENTS, SIZE_MAX, WATCHED_TTL };
    struct fp_watch_key shared;
    char path[16];

    start(&limits, SLOTS);
    for (unsigned i = 0; i <= FP_MAX_DEPENDENTS; i++) {
        snprintf(path, sizeof(path), "/%u", i);
        walk(path, "df");
        result.step_watches[1].watch = key_of("/0", 2);
        insert(path);
    }
    ck_assert_uint_eq(life(path), WATCHED_TTL);
    ck_assert_uint_eq(life("/1"), WATCHED_TTL);
    ck_assert_uint_eq(life("/0"), 0);
    kit_now_ms++;
    walk("/0", "df");
    result.step_watches[1].watch = key_of("/0", 2);
    insert("/0");
    ck_assert_uint_eq(life("/0"), WATCHED_TTL);
    ck_assert_uint_eq(life("/1"), 0);
    /* After too many visits, a path loses the file if there may be many of them. */
    shared = key_of("/0", 2);
    fp_cache_change_ops.crowded(cache, &shared);
    ck_assert_uint_eq(life("/0"), WATCHED_TTL);
    kit_now_ms++;
    walk("/0", "df");
    answer.steps[1].self.nlink = 2;
    result.step_watches[1].watch = key_of("/0", 2);
    insert("/0");
    fp_cache_change_ops.crowded(cache, &shared);
    ck_assert_uint_eq(life("/0"), 0);
    ck_assert_uint_eq(life(path), WATCHED_TTL);
}
END_TEST

static bool known_watched(const char *path)
{
    return fp_cache_lookup(cache, path, strlen(path), FP_ASK_FRESH, kit_now_ms, &answer);
}

/* Each step counts. */
START_TEST(known_by_what_is_watched_alone)
{
    walked("/a/f", "ddf");
    ck_assert(known_watched("/a/f"));
    walked("/a/none", "dda");
    ck_assert(known_watched("/a/none"));
    change("/a", "f", false);
    ck_assert(!known_watched("/a/f"));
    kit_now_ms++;
    walk_unwatched("/a/f", "ddf");
    insert("/a/f");
    ck_assert(known("/a/f"));
    ck_assert(!known_watched("/a/f"));
    kit_now_ms++;
    walk("/a/f", "ddf");
    validity[1].traits.verdict = FP_TTL_UNWATCHED;
    insert("/a/f");
    ck_assert(known("/a/f"));
    ck_assert(!known_watched("/a/f"));
    ck_assert(!known_watched("/a"));
    ck_assert(known_watched("/"));
    ck_assert(!known_watched("/never"));
}
END_TEST

START_TEST(what_is_watched_enough)
{
    walk("/a/f", "ddf");
    switch (_i) {
    case 0: break;
    case 1: answer.steps[2].self.nlink = 2; break;
    case 2: validity[2].mount = 2; break;
    case 3: validity[1].mount = validity[2].mount = 2; break;
    }
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), WATCHED_TTL);
}
END_TEST

/* Other machines make changes there that no event reports, at the step's target or above it. */
START_TEST(what_others_change_has_its_ttl)
{
    walk("/a/f", "ddf");
    validity[_i].traits.verdict = FP_REPORTED_OTHERS;
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), TTL);
    ck_assert_uint_eq(life("/a"), _i == 2 ? WATCHED_TTL : TTL);
    ck_assert_int_eq((int)fp_cache_snapshot(cache, "/a/f", 4, kit_now_ms).verdict,
                     (int)(_i > 0 ? FP_REPORTED_OTHERS : FP_REPORTED));
    change("/a", "f", false);
    ck_assert(!known("/a/f"));
}
END_TEST

START_TEST(a_link_needs_its_own)
{
    walked("/l/f", "dlf");
    ck_assert_uint_eq(life("/l/f"), WATCHED_TTL);
    walk("/k/L", "ddL");
    result.step_watches[2].watch.len = 0;
    insert("/k/L");
    ck_assert_uint_eq(life("/k/L"), TTL);
    walked("/k/M", "ddL");
    ck_assert_uint_eq(life("/k/M"), WATCHED_TTL);
    /* One that leads nowhere depends on names alone. */
    walked("/k/b", "ddb");
    ck_assert_uint_eq(life("/k/b"), WATCHED_TTL);
}
END_TEST

START_TEST(a_directory_with_access_files_needs_its_own)
{
    walk("/a", "dd");
    result.step_watches[1].watch.len = 0;
    insert("/a");
    ck_assert_uint_eq(life("/a"), WATCHED_TTL);
    kit_now_ms++;
    walk("/a", "dd");
    result.step_watches[1].watch.len = 0;
    look_for_names();
    fp_cache_forget(cache, "/", 1, true);
    insert("/a");
    ck_assert_uint_eq(life("/a"), TTL);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_life");
    TCase *t = unit_add_case(s, "life", setup, teardown, 0);

    /* An event of too many names, on a busy machine. */
    tcase_set_timeout(t, 60);
    tcase_add_test(t, watched_entries_live_longer);
    tcase_add_test(t, without_evidence_they_do_not);
    tcase_add_test(t, time_to_live_is_the_mounts);
    tcase_add_test(t, absence_is_watched_from_above);
    tcase_add_test(t, absence_has_its_own_time);
    tcase_add_loop_test(t, a_watch_goes_on, 0, 2);
    tcase_add_loop_test(t, a_watch_that_ended_meanwhile_does_not_go_on, 0, 2);
    tcase_add_loop_test(t, what_is_not_watched_enough, 0, 10);
    tcase_add_test(t, too_many_names_of_one_file);
    tcase_add_loop_test(t, what_is_watched_enough, 0, 4);
    tcase_add_loop_test(t, what_others_change_has_its_ttl, 0, 3);
    tcase_add_test(t, known_by_what_is_watched_alone);
    tcase_add_test(t, a_watch_that_is_left_out);
    tcase_add_test(t, a_watch_that_was_refused);
    tcase_add_test(t, a_watch_that_was_refused_on_a_links_way);
    tcase_add_test(t, what_others_change_on_a_links_way);
    tcase_add_loop_test(t, a_directory_of_each_request_is_not_open, 0, 2);
    tcase_add_test(t, a_watch_that_reports_names_alone);
    tcase_add_loop_test(t, attributes_that_nobody_reports, 0, 5);
    tcase_add_test(t, leases_end_with_the_reports);
    tcase_add_loop_test(t, steps_by_which_a_client_looks, 0, 4);
    tcase_add_test(t, a_link_needs_its_own);
    tcase_add_test(t, a_directory_with_access_files_needs_its_own);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
