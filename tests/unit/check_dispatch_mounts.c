/* SPDX-License-Identifier: Apache-2.0 */
/* The fate of walks under way, and of questions, when their mount stops answering. */
#include "config.h"
#include "lookup/dispatch.h"

#include "dispatch_kit.h"

/* The time for which entries with a ttl_ms of SHORT_MS are valid. */
#define SHORT_MS 50

static void until_old(void)
{
    let_pass(SHORT_MS + 10);
}

static void open_m(void)
{
    let_pass(2);
    ask(&other, "/m/hung");
    give_up("/m/hung");
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 1);
}

static void know_root(void)
{
    ask(&early, "/");
    finish("/", "d");
}

START_TEST(given_up)
{
    know_root();
    ask(&early, "/m/f");
    ask(&late, "/m/g");
    give_up("/m");
    ck_assert_int_eq((int)early.status, FP_UNAVAILABLE);
    ck_assert_int_eq((int)late.status, FP_UNAVAILABLE);
    ck_assert_uint_eq(n_jobs, 0);
    ask(&other, "/m/h");
    ck_assert_int_eq((int)other.status, FP_UNAVAILABLE);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).opened, 1);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).unanswered, 3);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 0);
    /* The others go on. */
    ask(&other, "/a");
    finish("/a", "dd");
    ck_assert(other.leasable);
}
END_TEST

START_TEST(unknown_mounts_stay_in_service)
{
    know_root();
    mounts_are_unknown = true;
    ask(&early, "/f");
    give_up("/f");
    ck_assert_int_eq((int)early.status, FP_TIMEOUT);
    ask(&late, "/f");
    finish("/f", "df");
    ck_assert_uint_ne(late.last_ino, 0);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).opened, 0);
    mounts_are_unknown = false;
}
END_TEST

/* A question does not wait for a hung walk, for one that waits for that, or for a worker. */
START_TEST(walks_of_a_mount_that_opens)
{
    know_root();
    ask(&early, "/m/d/f"); /* waits for the walk to /m/d */
    ask(&other, "/m");
    n_running = 2;
    ask(&late, "/m/e/f");
    give_up("/m");
    ck_assert_int_eq((int)other.status, FP_UNAVAILABLE);
    ck_assert_int_eq((int)early.status, FP_UNAVAILABLE);
    ck_assert_int_eq((int)late.status, FP_UNAVAILABLE);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, n_jobs);
    /* One comes back: so has the mount. */
    finish("/m/d", "ddd");
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 0);
    n_running = MAX_JOBS;
    ask(&early, "/m/d/f");
    finish("/m/d/f", "dddf");
    ck_assert_int_eq((int)early.status, FP_OK);
}
END_TEST

START_TEST(one_file_that_hangs)
{
    know_root();
    ask(&early, "/m/f");
    finish("/m", "dd");
    ask(&other, "/m/g");
    finish("/m/g", "ddf");
    give_up("/m/f");
    ck_assert_int_eq((int)early.status, FP_TIMEOUT);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 0);
}
END_TEST

static void know_mf(void)
{
    ask(&early, "/m/f");
    finish("/m", "dd");
    finish("/m/f", "ddf");
    ck_assert(early.answered);
}

START_TEST(stale_where_it_is_allowed)
{
    know_root();
    ttl_ms = SHORT_MS;
    stale_ms = TTL_MS;
    know_mf();
    until_old();
    ask(&early, "/m/f");
    give_up("/m");
    ck_assert_int_eq((int)early.source, FP_SOURCE_STALE);
    ck_assert(!early.leasable);
    ask(&late, "/m/f");
    ck_assert_int_eq((int)late.source, FP_SOURCE_STALE);
    ck_assert_uint_eq(late.last_ino, ino_of("/m/f", '0'));
    ask(&other, "/m/unknown");
    ck_assert_int_eq((int)other.status, FP_UNAVAILABLE);
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

/* The entry above the mount is looked at again first, for it is on another one. */
START_TEST(stale_below_what_lives)
{
    root_ttl_ms = ttl_ms = SHORT_MS;
    stale_ms = TTL_MS;
    know_root();
    know_mf();
    open_m();
    until_old();
    ask(&early, "/m/f");
    ask(&late, "/m/f");
    ck_assert(!early.answered);
    ck_assert(!late.answered);
    finish("/", "d");
    ck_assert_int_eq((int)early.source, FP_SOURCE_STALE);
    ck_assert_int_eq((int)late.source, FP_SOURCE_STALE);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 0);
}
END_TEST

/* The mount is in service, as a probe was answered. */
START_TEST(stale_while_killed_workers_hang)
{
    stale_ms = TTL_MS;
    ttl_ms = SHORT_MS;
    know_root();
    ask(&early, "/m/f");
    finish("/m", "dd");
    finish("/m/f", "ddf1");
    until_old();
    all_places_hang = FP_UNAVAILABLE;
    ask(&late, "/m/f");
    ck_assert_int_eq((int)late.source, FP_SOURCE_STALE);
    ck_assert_uint_eq(late.last_ino, ino_of("/m/f", '1'));
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).stale, 1);
    ask(&other, "/m/new");
    ck_assert_int_eq((int)other.status, FP_UNAVAILABLE);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 0);
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

START_TEST(stale_is_not_allowed)
{
    know_root();
    ttl_ms = SHORT_MS;
    know_mf();
    open_m();
    until_old();
    ask(&early, "/m/f");
    ck_assert_int_eq((int)early.status, FP_UNAVAILABLE);
}
END_TEST

/* Nor is the valid entry of before a change, for one who asks afresh: nobody reports that change. */
START_TEST(nor_is_the_entry_of_before)
{
    know_root();
    ttl_ms = 60000;
    know_mf();
    ask_fresh(&late, "/m/f");
    give_up("/m/f");
    ck_assert(late.answered);
    ck_assert_int_eq((int)late.status, FP_TIMEOUT);
}
END_TEST

/* A valid entry is answered, and not looked at again. */
START_TEST(hits_of_a_mount_out_of_service)
{
    know_root();
    ttl_ms = 2000;
    know_mf();
    open_m();
    let_pass(1100);
    ask(&late, "/m/f");
    ck_assert_int_eq((int)late.source, FP_SOURCE_CACHE);
    beat(beat_ctx);
    ck_assert_uint_eq(n_jobs, 0);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 0);
}
END_TEST

/* A breaker opens by a walk that hangs there, and a probe goes out. */
static void open_by_the_timer(void)
{
    know_root();
    ask(&early, "/m/f");
    while (n_probes == 0) {
        let_pass(100);
        ev_run(loop, EVRUN_ONCE);
    }
}

/* By the timer alone, and the probe ends it. */
START_TEST(probe)
{
    const struct fp_dispatch_settings settings = { MAX_JOBS, 100, NULL };

    fp_dispatch_set(dispatch, &settings);
    open_by_the_timer();
    ck_assert_int_eq((int)early.status, FP_UNAVAILABLE);
    give_up("/m");
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 1);
    finish("/m", "dd");
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 0);
    /* Workers that hang at another file there still do. */
    ck_assert_uint_eq(n_absolved, 0);
    ask(&late, "/m/f");
    ck_assert(!late.answered);
}
END_TEST

/* An automount's own place, which a worker only looks at,
 * has answered. A path outside the roots was not looked at. */
START_TEST(probe_that_is_refused)
{
    const struct fp_dispatch_settings settings = { MAX_JOBS, 100, the_roots };
    struct job job;

    the_roots[0] = _i == 0 ? NULL : "/srv";
    fp_dispatch_set(dispatch, &settings);
    open_by_the_timer();
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 1);
    job = take_job(n_jobs - 1);
    end_without(&job, FP_REFUSED);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, _i == 0 ? 0 : 1);
}
END_TEST

/* One mount may have half of all walks. */
START_TEST(half_is_left_for_others)
{
    const struct fp_dispatch_settings settings = { MAX_JOBS, 2000, NULL };
    static struct fp_connection many[MAX_JOBS];
    char path[16];

    fp_dispatch_set(dispatch, &settings);
    know_root();
    ask(&early, "/m");
    for (unsigned i = 0; i < MAX_JOBS - 1; i++) {
        snprintf(path, sizeof(path), "/m/%u", i);
        ask(&many[i], path);
    }
    ck_assert_int_eq((int)many[MAX_JOBS - 2].status, FP_BUSY);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, MAX_JOBS / 2);
    ask(&other, "/a");
    ck_assert(!other.answered);
}
END_TEST

static void until(bool (*reached)(void))
{
    while (!reached()) {
        let_pass(100);
        ev_run(loop, EVRUN_ONCE);
    }
}

static bool has_opened(void)
{
    return fp_dispatch_counts(dispatch).opened == 1;
}

static bool has_strayed(void)
{
    return strayed_to == 0;
}

/* A link leads to the other mount: that one is out of service, not the one where the link lies. */
START_TEST(behind_a_link_that_was_never_seen)
{
    const struct fp_dispatch_settings settings = { MAX_JOBS, 200, NULL };

    fp_dispatch_set(dispatch, &settings);
    know_root();
    ask(&early, "/link/f");
    strayed_to = OTHER_MOUNT;
    until(has_opened);
    ck_assert_int_eq((int)early.status, FP_UNAVAILABLE);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 1);
    /* The next question costs no worker; the file beside the link is looked at. */
    ck_assert_uint_eq(n_jobs, 1);
    ask(&late, "/link/g");
    ck_assert_int_eq((int)late.status, FP_UNAVAILABLE);
    ck_assert_uint_eq(n_jobs, 1);
    ask(&other, "/linked");
    ck_assert_uint_eq(n_jobs, 2);
    finish("/linked", "df");
    ck_assert_int_eq((int)other.status, FP_OK);
    finish("/link", "dd");
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).out, 0);
}
END_TEST

/* The link may have been changed: for that a purge, or a while later, it is looked at again. */
START_TEST(a_detour_is_not_for_ever)
{
    const struct fp_dispatch_settings settings = { MAX_JOBS, 200, NULL };

    fp_dispatch_set(dispatch, &settings);
    know_root();
    ask(&early, "/link");
    strayed_to = OTHER_MOUNT;
    until(has_opened);
    ask(&late, "/link");
    ck_assert_int_eq((int)late.status, FP_UNAVAILABLE);
    ck_assert_uint_eq(n_jobs, 1);
    fp_dispatch_forget(dispatch, "/link", 5, false);
    late.answered = false;
    ask(&late, "/link");
    ck_assert(!late.answered);
    ck_assert_uint_eq(n_jobs, 2);
    /* It hangs, too. */
    strayed_to = OTHER_MOUNT;
    until(has_strayed);
    ck_assert_int_eq((int)late.status, FP_UNAVAILABLE);
    ask(&other, "/link/x");
    ck_assert_int_eq((int)other.status, FP_UNAVAILABLE);
    let_pass(10000);
    other.answered = false;
    ask(&other, "/link/x");
    ck_assert(!other.answered);
}
END_TEST

/* The kernel asks the server of a mount when its point is opened, from the local mount above. */
START_TEST(what_is_passed_is_not_blamed)
{
    const struct fp_dispatch_settings settings = { MAX_JOBS, 200, NULL };

    fp_dispatch_set(dispatch, &settings);
    know_root();
    ask(&early, "/m");
    strayed_to = ROOT_MOUNT;
    until(has_opened);
    ck_assert_int_eq((int)early.status, FP_UNAVAILABLE);
    ask(&late, "/a");
    ck_assert(!late.answered);
    ask(&other, "/m");
    ck_assert_int_eq((int)other.status, FP_UNAVAILABLE);
}
END_TEST

/* The mount's only questions wait for a walk that began before it answered. */
START_TEST(questions_that_join_count)
{
    const struct fp_dispatch_settings settings = { MAX_JOBS, 200, NULL };

    fp_dispatch_set(dispatch, &settings);
    know_root();
    ask(&early, "/m");
    ask(&late, "/m/f");
    finish("/m", "dd");
    ask(&other, "/m/g");
    finish("/m/g", "ddf");
    early.answered = false;
    ask(&early, "/m/f");
    until(has_opened);
    ck_assert_int_eq((int)late.status, FP_UNAVAILABLE);
    ck_assert_int_eq((int)early.status, FP_UNAVAILABLE);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("dispatch_mounts");
    TCase *t = unit_add_case(s, "mounts", setup, teardown, 20);

    tcase_add_test(t, given_up);
    tcase_add_test(t, unknown_mounts_stay_in_service);
    tcase_add_test(t, walks_of_a_mount_that_opens);
    tcase_add_test(t, one_file_that_hangs);
    tcase_add_test(t, stale_where_it_is_allowed);
    tcase_add_test(t, stale_below_what_lives);
    tcase_add_test(t, stale_while_killed_workers_hang);
    tcase_add_test(t, stale_is_not_allowed);
    tcase_add_test(t, nor_is_the_entry_of_before);
    tcase_add_test(t, hits_of_a_mount_out_of_service);
    tcase_add_test(t, probe);
    tcase_add_loop_test(t, probe_that_is_refused, 0, 2);
    tcase_add_test(t, half_is_left_for_others);
    tcase_add_test(t, behind_a_link_that_was_never_seen);
    tcase_add_test(t, a_detour_is_not_for_ever);
    tcase_add_test(t, questions_that_join_count);
    tcase_add_test(t, what_is_passed_is_not_blamed);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
