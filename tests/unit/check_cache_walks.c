/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Means to keep walks short: directories kept open, files that are not opened again; and the access
 * files that walks look for.
 */
#include "config.h"
#include "cache/cache.h"

#include "base/clock.h"
#include "cache_known_kit.h"
#include "changes/coherence.h"
#include "wire/server_clock.h"
#include "wire/walk_result.h"


static struct fp_cache_base base;

static void insert(const char *path, const struct fp_cache_base *b)
{
    fp_cache_insert(cache, path, strlen(path), b, now, kit_unwatched(true), &answer);
    ck_assert_int_eq(answer.fd, -1);
}

/* A walk; if the whole path is a directory, it brings a descriptor. */
static void visited(const char *path, const char *what)
{
    kit_answer(&answer, path, what);
    if (fp_step_is_dir(&answer.steps[answer.n_steps - 1]))
        answer.fd = kit_file('p');
    insert(path, NULL);
}

/* The path's own directory. */
static bool find_base(const char *path)
{
    const size_t len = strlen(path);

    return fp_cache_find_base(cache, path, len, len > 1 ? fp_path_parent_len(path, len) : 1, now, &base);
}

/* Any directory above the path. */
static bool find_nearest(const char *path)
{
    return fp_cache_find_base(cache, path, strlen(path), 1, now, &base);
}

/* The walk of the last component alone, from the base that was found. */
static void walked_from_base(const char *path, char kind)
{
    const char what[] = { 'd', kind, '\0' };
    const struct fp_cache_base began = base;

    kit_answer(&answer, path, what);
    kit_step(&answer.steps[0], path, strlen(path), kind, '0');
    answer.n_steps = 1;
    insert(path, &began);
}

/* The walk of two components from the base that was found. */
static void walked_two_from_base(const char *path, char kind)
{
    const char what[] = { 'd', 'd', kind, '\0' };
    const struct fp_cache_base began = base;
    const size_t len = strlen(path);

    kit_answer(&answer, path, what);
    kit_step(&answer.steps[0], path, fp_path_parent_len(path, len), 'd', '0');
    kit_step(&answer.steps[1], path, len, kind, '0');
    answer.n_steps = 2;
    insert(path, &began);
}

/* ---- places ---- */

START_TEST(base_is_found)
{
    visited("/a/b", "ddd");
    ck_assert(find_base("/a/b/f"));
    ck_assert_uint_eq(base.len, 4);
    ck_assert_int_eq(kit_version_of(base.fd), 'p');
    ck_assert(!find_base("/a/b/c/f"));
    ck_assert(!find_base("/a/f"));
    ck_assert(!find_base("/"));
    visited("/", "d");
    ck_assert(find_base("/x"));
    ck_assert_uint_eq(base.len, 1);
    ck_assert_uint_eq(fp_cache_counts(cache).open_dirs, 2);
    ck_assert_int_eq(cached_fds(), 2);
}
END_TEST

static void walked_by_links(const char *path, const char *what, const char *links)
{
    static struct fp_walk_result result;
    struct fp_validity validity[FP_MAX_STEPS];
    const struct fp_walk_meta meta = { &result, validity };

    fp_walk_result_init(&result);
    kit_answer(&answer, path, what);
    if (fp_step_is_dir(&answer.steps[answer.n_steps - 1]))
        answer.fd = kit_file('p');
    for (unsigned i = 0; i < answer.n_steps; i++) {
        result.step_watches[i].links = (uint8_t)(links[i] - '0');
        validity[i] = (struct fp_validity){ .mount = 1, .ttl_ms = TTL };
    }
    fp_cache_insert(cache, path, strlen(path), NULL, now, &meta, &answer);
}

/* Entries below it may be behind too many links by now. */
START_TEST(directory_reached_by_more_links)
{
    walked_by_links("/l/d", "dld", "033");
    walked_by_links("/l/d/f", "dldf", "0333");
    ck_assert(find_base("/l/d/f"));
    ck_assert_uint_eq(base.links, 3);
    ck_assert(known("/l/d/f"));
    now++;
    walked_by_links("/l", "dl", "03");
    ck_assert(known("/l/d/f"));
    now++;
    walked_by_links("/l", "dl", "07");
    ck_assert(!known("/l/d"));
    ck_assert(!known("/l/d/f"));
    walked_by_links("/l/d", "dld", "077");
    ck_assert(find_base("/l/d/f"));
    ck_assert_uint_eq(base.links, 7);
    ck_assert(!known("/l/d/f"));
    walked_by_links("/l/d/f", "dldf", "0777");
    ck_assert(known("/l/d/f"));
}
END_TEST

START_TEST(place_is_not_lent_as_a_file)
{
    visited("/a", "dd");
    ck_assert(known("/a"));
    ck_assert_int_eq(answer.fd, -1);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 0);
}
END_TEST

START_TEST(base_is_not_valid_longer_than_the_rest)
{
    visited("/a", "dd");
    now += TTL;
    ck_assert(!find_base("/a/f"));
}
END_TEST

START_TEST(places_are_bounded)
{
    char path[16];

    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof(path), "/d%d", i);
        visited(path, "dd");
        ck_assert_uint_le(fp_cache_counts(cache).open_dirs, OPEN_DIRS);
        ck_assert_int_eq(cached_fds(), (int)fp_cache_counts(cache).open_dirs);
        ck_assert(known(path));
    }
    ck_assert(find_base("/d19/f"));
    ck_assert(!find_base("/d0/f"));
}
END_TEST

START_TEST(place_in_use_stays)
{
    char path[16];

    visited("/used", "dd");
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof(path), "/d%d", i);
        visited(path, "dd");
        ck_assert(find_base("/used/f"));
    }
}
END_TEST

START_TEST(place_stays_while_it_is_the_same_directory)
{
    visited("/a", "dd");
    visited("/a/f", "ddf");
    ck_assert(find_base("/a/f"));
    visited("/a/g", "dd1f");
    ck_assert(!find_base("/a/f"));
    ck_assert_uint_eq(fp_cache_counts(cache).open_dirs, 0);
}
END_TEST

START_TEST(place_goes_with_its_directory)
{
    static const char *const instead[] = { "da", "df", "du", "dx", "dl", "db", "dd1" };

    for (size_t i = 0; i < sizeof(instead) / sizeof(instead[0]); i++) {
        fp_cache_clear(cache);
        visited("/a", "dd");
        ck_assert(find_base("/a/f"));
        kit_answer(&answer, "/a", instead[i]);
        insert("/a", NULL);
        ck_assert(!find_base("/a/f"));
        ck_assert_uint_eq(fp_cache_counts(cache).open_dirs, 0);
        ck_assert_int_eq(cached_fds(), (int)fp_cache_counts(cache).files);
    }
}
END_TEST

START_TEST(link_to_a_directory_is_a_place)
{
    visited("/l", "dl1");
    ck_assert(find_base("/l/f"));
    kit_answer(&answer, "/l/g", "dl2f");
    insert("/l/g", NULL);
    ck_assert(!find_base("/l/f"));
}
END_TEST

START_TEST(walk_from_a_base_adds_to_it)
{
    visited("/a/b", "ddd");
    ck_assert(find_base("/a/b/f"));
    walked_from_base("/a/b/f", 'f');
    ck_assert(known("/a/b/f"));
    ck_assert_uint_eq(answer.n_steps, 4);
    ck_assert_int_ne(answer.fd, -1);
    ck_assert(find_base("/a/b/no"));
    walked_from_base("/a/b/no", 'a');
    ck_assert(known("/a/b/no/x"));
    ck_assert_uint_eq(answer.n_steps, 4);
}
END_TEST

START_TEST(walk_from_a_base_that_was_replaced_is_not_kept)
{
    visited("/a", "dd");
    ck_assert(find_base("/a/f"));
    visited("/a", "dd1");
    walked_from_base("/a/f", 'f');
    ck_assert(!known("/a/f"));
    ck_assert(find_base("/a/f"));
    visited("/a", "dd2");
    visited("/a", "dd1");
    walked_from_base("/a/f", 'f');
    ck_assert(!known("/a/f"));
    ck_assert_uint_eq(fp_cache_counts(cache).files, 0);
}
END_TEST

START_TEST(walk_from_a_base_that_is_forgotten_is_not_kept)
{
    visited("/a", "dd");
    ck_assert(find_base("/a/f"));
    fp_cache_clear(cache);
    walked_from_base("/a/f", 'f');
    ck_assert(!known("/a/f"));
    ck_assert_int_eq(cached_fds(), 0);
    /* Nor below one that has come back. */
    visited("/a", "dd");
    walked_from_base("/a/f", 'f');
    ck_assert(!known("/a/f"));
}
END_TEST

/* ---- files ---- */

static void walked_unchanged(const char *path, const char *what)
{
    kit_answer(&answer, path, what);
    fp_close(&answer.fd);
    answer.unchanged = true;
    insert(path, NULL);
}

START_TEST(file_that_is_unchanged_stays_open)
{
    struct fp_meta m;

    visited("/f", "df3");
    ck_assert(fp_cache_find_known(cache, "/f", 2, true, &m));
    ck_assert_uint_eq(m.size, 3);
    now += TTL - 1;
    walked_unchanged("/f", "df3");
    now += TTL - 1;
    ck_assert(known("/f"));
    ck_assert_int_eq(kit_version_of(answer.fd), '3');
}
END_TEST

/* The metadata may be the same after a change. */
START_TEST(file_that_may_have_changed_is_opened_again)
{
    struct fp_meta m;

    visited("/f", "df3");
    fp_cache_invalidate(cache, "/f");
    ck_assert(!fp_cache_find_known(cache, "/f", 2, true, &m));
}
END_TEST

static bool is_known_of(bool local, int64_t age_s)
{
    struct timespec here;
    struct fp_meta m;

    kit_answer(&answer, "/f", "df3");
    clock_gettime(CLOCK_REALTIME, &here);
    answer.steps[1].self.ctime = (struct fp_time){ here.tv_sec - age_s, (uint32_t)here.tv_nsec };
    now = fp_now_ms();
    /* The server's clock shows the same time. */
    fp_server_clock_learn(answer.steps[1].self.dev, here.tv_sec * 1000 + here.tv_nsec / 1000000 - (int64_t)now);
    fp_cache_insert(cache, "/f", 2, NULL, now, kit_unwatched(local), &answer);
    return fp_cache_find_known(cache, "/f", 2, true, &m);
}

/* It may have been read beside a write: what is not local then keeps old pages until it is opened again. */
START_TEST(file_that_was_opened_just_after_a_change_is_opened_again)
{
    ck_assert(is_known_of(true, 0));
    ck_assert(!is_known_of(false, 0));
    ck_assert(!is_known_of(false, 1));
    ck_assert(is_known_of(false, 3));
}
END_TEST

/* "Unchanged" is about the task's file; another one is here by now. */
START_TEST(unchanged_file_that_is_not_the_one_at_hand)
{
    visited("/f", "df3");
    walked_unchanged("/f", "df4");
    ck_assert(!known("/f"));
    ck_assert_int_eq(cached_fds(), 0);
    walked_unchanged("/never", "df3");
    ck_assert(!known("/never"));
}
END_TEST

START_TEST(links_are_opened_again)
{
    struct fp_meta m;

    visited("/L", "dL");
    visited("/d", "dd");
    visited("/u", "du");
    visited("/no", "da");
    ck_assert(!fp_cache_find_known(cache, "/L", 2, true, &m));
    ck_assert(!fp_cache_find_known(cache, "/d", 2, true, &m));
    ck_assert(!fp_cache_find_known(cache, "/u", 2, true, &m));
    ck_assert(!fp_cache_find_known(cache, "/no", 3, true, &m));
    ck_assert(!fp_cache_find_known(cache, "/x", 2, true, &m));
}
END_TEST

/* A walk to what is below it saw the file, but did not try to open it. */
START_TEST(file_that_was_only_passed)
{
    visited("/f/x", "du");
    ck_assert(known("/f/x"));
    ck_assert_uint_eq(answer.n_steps, 2);
    ck_assert(!known("/f"));
    visited("/f", "df");
    ck_assert(known("/f"));
    ck_assert_int_ne(answer.fd, -1);
    visited("/f/x", "du");
    ck_assert(known("/f"));
    ck_assert_int_ne(answer.fd, -1);
}
END_TEST

START_TEST(passing_error_is_not_kept)
{
    kit_answer(&answer, "/a/f", "dda");
    answer.steps[2].status = FP_IOERROR;
    insert("/a/f", NULL);
    ck_assert(!known("/a/f"));
    kit_answer(&answer, "/l", "db");
    answer.steps[1].target_status = FP_IOERROR;
    insert("/l", NULL);
    ck_assert(!known("/l"));
}
END_TEST

/* ---- access files ---- */

static const struct fp_names names = { 2, { { ".htaccess", 9 }, { ".acl", 4 } } };

static void walked_with_names(const char *path, const char *what, uint64_t size)
{
    fp_cache_set_names(cache, &names);
    kit_answer(&answer, path, what);
    answer.n_names = 2;
    for (unsigned i = 0; i < answer.n_steps; i++) {
        answer.steps[i].access[0] = (struct fp_access){ .status = FP_OK, .size = size + i };
        answer.steps[i].access[1] = (struct fp_access){ .status = FP_ABSENT };
    }
    fp_cache_insert(cache, path, strlen(path), NULL, now, kit_unwatched(true), &answer);
}

START_TEST(access_files_are_known)
{
    walked_with_names("/a/f", "ddf", 70);
    ck_assert(known("/a/f"));
    ck_assert_uint_eq(answer.n_names, 2);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq((int)answer.steps[i].access[0].status, FP_OK);
        ck_assert_uint_eq(answer.steps[i].access[0].size, 70 + i);
        ck_assert_int_eq((int)answer.steps[i].access[1].status, FP_ABSENT);
    }
}
END_TEST

/* Unknown is not absent: the file may have held the rule that denies. */
START_TEST(access_files_that_nobody_looked_for)
{
    fp_cache_set_names(cache, &names);
    visited("/a/f", "ddf");
    ck_assert(!known("/a/f"));
    walked_with_names("/a/f", "ddf", 70);
    ck_assert(known("/a/f"));
}
END_TEST

START_TEST(access_files_that_change)
{
    walked_with_names("/a/f", "ddf", 70);
    walked_with_names("/a", "dd", 80);
    ck_assert(known("/a/f"));
    ck_assert_uint_eq(answer.steps[1].access[0].size, 81);
}
END_TEST

START_TEST(nearest_base_is_found)
{
    visited("/a", "dd");
    visited("/a/b/c", "dddd");
    ck_assert(find_nearest("/a/b/c/f"));
    ck_assert_uint_eq(base.len, 6);
    ck_assert(find_nearest("/a/b/no/f"));
    ck_assert_uint_eq(base.len, 2);
    ck_assert(find_nearest("/a/x/y/z"));
    ck_assert_uint_eq(base.len, 2);
    ck_assert(!find_nearest("/x/f"));
    ck_assert(!find_nearest("/"));
    /* One that does not answer any more does not count. */
    fp_cache_forget(cache, "/a/b", 4, false);
    ck_assert(find_nearest("/a/b/c/f"));
    ck_assert_uint_eq(base.len, 2);
}
END_TEST

START_TEST(walk_of_several_steps_from_a_base)
{
    visited("/a", "dd");
    ck_assert(find_nearest("/a/b/f"));
    walked_two_from_base("/a/b/f", 'f');
    ck_assert(known("/a/b/f"));
    ck_assert_uint_eq(answer.n_steps, 4);
    ck_assert(known("/a/b"));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_walks");
    TCase *t = unit_add_case(s, "places", setup, teardown, 0);

    tcase_add_test(t, base_is_found);
    tcase_add_test(t, directory_reached_by_more_links);
    tcase_add_test(t, place_is_not_lent_as_a_file);
    tcase_add_test(t, base_is_not_valid_longer_than_the_rest);
    tcase_add_test(t, places_are_bounded);
    tcase_add_test(t, place_in_use_stays);
    tcase_add_test(t, place_stays_while_it_is_the_same_directory);
    tcase_add_test(t, place_goes_with_its_directory);
    tcase_add_test(t, link_to_a_directory_is_a_place);
    tcase_add_test(t, walk_from_a_base_adds_to_it);
    tcase_add_test(t, walk_from_a_base_that_was_replaced_is_not_kept);
    tcase_add_test(t, walk_from_a_base_that_is_forgotten_is_not_kept);
    t = unit_add_case(s, "files", setup, teardown, 0);
    tcase_add_test(t, file_that_is_unchanged_stays_open);
    tcase_add_test(t, file_that_may_have_changed_is_opened_again);
    tcase_add_test(t, file_that_was_opened_just_after_a_change_is_opened_again);
    tcase_add_test(t, unchanged_file_that_is_not_the_one_at_hand);
    tcase_add_test(t, links_are_opened_again);
    tcase_add_test(t, file_that_was_only_passed);
    tcase_add_test(t, passing_error_is_not_kept);
    t = unit_add_case(s, "access_files", setup, teardown, 0);
    tcase_add_test(t, access_files_are_known);
    tcase_add_test(t, access_files_that_nobody_looked_for);
    tcase_add_test(t, access_files_that_change);
    tcase_add_test(t, nearest_base_is_found);
    tcase_add_test(t, walk_of_several_steps_from_a_base);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
