/* SPDX-License-Identifier: Apache-2.0 */
/* The cache where changes are reported: entries that a change invalidates. */
#include "config.h"
#include "cache/cache.h"

#include "cache/dependency.h"
#include "cache_watch_kit.h"
#include "wire/packet.h"

/* ---- the entries that a change concerns ---- */

START_TEST(a_file_changes)
{
    walked("/a/f", "ddf");
    walked("/a/g", "ddf");
    walked("/b/f", "ddf");
    change("/a", "f", false);
    assert_each(known, "!/a/f /a/g /b/f");
    ck_assert_uint_eq(fp_cache_counts(cache).changes, 1);
    walked("/a/f", "ddf1");
    ck_assert(known("/a/f"));
}
END_TEST

START_TEST(a_file_changes_by_another_name)
{
    walked("/a/f", "ddf");
    walked("/a/g", "ddf");
    change("/a/f", "", false);
    assert_each(known, "!/a/f /a/g");
}
END_TEST

START_TEST(nothing_that_is_known_changes)
{
    walked("/a/f", "ddf");
    change("/a", "other", true);
    change("/c", "f", true);
    change("/c", "", true);
    ck_assert(known("/a/f"));
    ck_assert_uint_eq(fp_cache_counts(cache).changes, 0);
}
END_TEST

/* Times and size are answered for a directory at the end of a path, not for one on the way. */
START_TEST(something_in_a_directory_changes)
{
    walked("/a/f", "ddf");
    walked("/a", "dd");
    walked("/", "d");
    ck_assert(known("/a"));
    change("/a", "new", true);
    assert_each(known, "!/a /a/f /");
    walked("/a", "dd");
    ck_assert(known("/a"));
    change("/", "b", true);
    assert_each(known, "!/ /a /a/f");
}
END_TEST

START_TEST(a_directory_itself_changes)
{
    walked("/a/b/f", "dddf");
    walked("/a/g", "ddf");
    walked("/c/f", "ddf");
    change("/a", "", false);
    assert_each(known, "!/a/b/f !/a/g /c/f");
    /* It looks as before, but the right to pass it may not be that of its mode. */
    walked("/a", "dd");
    assert_each(known, "!/a/b !/a/b/f !/a/g");
    walked("/a/b", "ddd");
    assert_each(known, "/a/b/f !/a/g");
    change("/a", "b", true);
    assert_each(known, "!/a/b/f");
    /* The same where only the directory above reports it. */
    walked("/a/b/f", "dddf");
    change("/a", "b", false);
    walked("/a/b", "ddd");
    assert_each(known, "/a/b !/a/b/f");
}
END_TEST

/* "F" may be the file system's "f", the requested name. */
START_TEST(names_that_differ_in_case)
{
    const uint64_t began = kit_now_ms;

    walk("/a/f", "ddf");
    validity[1].traits.folds = _i > 0;
    insert("/a/f");
    ck_assert(known("/a/f"));
    change("/a", "F", _i != 1);
    ck_assert_int_eq(known("/a/f"), _i == 0);
    walked("/a", "dd");
    ck_assert_int_eq(known("/a/f"), _i == 0);
    walk("/a/f", "ddf");
    validity[1].traits.folds = _i > 0;
    insert_as("/a/f", began); /* it was under way at that time */
    ck_assert_int_eq(known("/a/f"), _i == 0);
    change("/", "A", true);
    walked("/a", "dd");
    ck_assert_int_eq(known("/a/f"), _i == 0);
}
END_TEST

/* NFS gives a removed file that somebody has open another name: [0] is the removal. Changes of that name or of
 * another one say nothing of other names. Everything in the directory is looked at again, its access file and
 * the target of a link included. */
START_TEST(a_removed_file_that_is_open)
{
    static const struct {
        const char *name;
        bool replaced;
    } events[] = { { ".nfs000000000000002a00000001", true },
                   { ".nfs000000000000002a00000001", false },
                   { ".nfs", true },
                   { "nfs000000000000002a00000001", true } };
    const uint64_t began = kit_now_ms;

    walk("/a/f", "ddf");
    look_for_names();
    insert_as("/a/f", began);
    ck_assert(known_with_names("/a/f"));
    change("/a", events[_i].name, events[_i].replaced);
    ck_assert_int_eq(known_with_names("/a/f"), _i != 0);
    walk("/a/f", "ddf");
    look_for_names();
    insert_as("/a/f", began); /* it was under way at that time */
    ck_assert_int_eq(known_with_names("/a/f"), _i != 0);
}
END_TEST

/* The access file, too. */
START_TEST(access_files_that_differ_in_case)
{
    walk("/a/f", "ddf");
    look_for_names();
    validity[1].traits.folds = _i > 0;
    insert_as("/a/f", kit_now_ms);
    ck_assert(known_with_names("/a/f"));
    change("/a", ".HTACCESS", true);
    ck_assert_int_eq(known_with_names("/a/f"), _i == 0);
}
END_TEST

#define REMOTE_TTL 1600

/* Walks to a path on a mount of another machine. */
static void walked_remote(const char *path, const char *what)
{
    walk(path, what);
    for (unsigned i = 1; i < answer.n_steps; i++) {
        validity[i].traits.by_directory = true;
        validity[i].traits.verdict = FP_REPORTED_OTHERS;
        validity[i].ttl_ms = REMOTE_TTL;
    }
    if (fp_step_is_dir(&answer.steps[answer.n_steps - 1]))
        answer.fd = kit_file('p');
    insert(path);
}

static bool begins_in_directory(const char *path, struct fp_cache_base *base)
{
    return fp_cache_find_base(cache, path, strlen(path), fp_path_parent_len(path, strlen(path)), kit_now_ms, base);
}

static uint64_t asked_ms(const char *path)
{
    struct fp_cache_base base;

    ck_assert(begins_in_directory(path, &base));
    return base.asked_ms;
}

/* One look at the directory does for what lies in it, until something happens there. After three quarters of its TTL
 * it gets the next one first. */
START_TEST(names_of_a_directory_are_asked_for_once)
{
    const uint64_t began = kit_now_ms;
    struct fp_cache_base base;

    walked_remote("/a", "dd");
    ck_assert_uint_eq(asked_ms("/a/f"), began);
    kit_now_ms += REMOTE_TTL / 4 * 3 - 1;
    ck_assert_uint_eq(asked_ms("/a/f"), began);
    kit_now_ms++;
    ck_assert(!begins_in_directory("/a/f", &base));
    walked_remote("/a", "dd");
    ck_assert_uint_eq(asked_ms("/a/f"), kit_now_ms);
    change("/a", "other", false);
    ck_assert_uint_eq(asked_ms("/a/f"), 0);
    walked_remote("/a", "dd");
    ck_assert_uint_eq(asked_ms("/a/f"), kit_now_ms);
    walked_remote("/a/u", "ddu"); /* a later look at the path itself than at its directory */
    ck_assert_uint_eq(asked_ms("/a/u"), 0);
}
END_TEST

/* Entries in use are due late, and only [1] if it was used lately. */
START_TEST(files_of_a_remote_mount_are_due_late)
{
    struct fp_cache_refresh next;
    unsigned looks = FP_CACHE_LOOKS;

    walked_remote("/a/u", "ddu");
    ck_assert(known("/a/u"));
    kit_now_ms += REMOTE_TTL / 4 * 3 + REMOTE_TTL / 32;
    ck_assert(!fp_cache_take_refresh(cache, kit_now_ms, &looks, NULL, NULL, &next));
    kit_now_ms += REMOTE_TTL / 32;
    ck_assert(_i == 0 || known("/a/u"));
    kit_now_ms += REMOTE_TTL / 16 + REMOTE_TTL / 32;
    ck_assert_int_eq(fp_cache_take_refresh(cache, kit_now_ms, &looks, NULL, NULL, &next), _i);
}
END_TEST

/* A later look at the directory finds another change time. [0] is of an access list alone, [1] of
 * names too, which are reported, [2] not reported, [3] by others. */
START_TEST(a_directory_with_another_change_time)
{
    walk("/a/f", "ddf");
    if (_i == 2)
        result.step_watches[1].watch.len = 0;
    validity[1].traits.verdict = _i == 3 ? FP_REPORTED_OTHERS : FP_REPORTED;
    insert("/a/f");
    kit_now_ms++;
    walk("/a", "dd");
    answer.steps[1].self.ctime.sec++;
    answer.steps[1].self.mtime.sec += _i != 0;
    if (_i == 2)
        result.step_watches[1].watch.len = 0;
    validity[1].traits.verdict = _i == 3 ? FP_REPORTED_OTHERS : FP_REPORTED;
    insert("/a");
    ck_assert(known("/a"));
    ck_assert_int_eq(known("/a/f"), _i == 1);
}
END_TEST

START_TEST(a_name_that_a_link_passes)
{
    const struct fp_watch_key t = key_of("/t", 2), u = key_of("/u", 2);

    for (int i = 0; i < 4; i++) {
        kit_now_ms++;
        walk("/l/f", "dlf");
        ck_assert(fp_walk_result_add(&result, 1, &t, "current", 7));
        ck_assert(fp_walk_result_add(&result, 1, &u, "42", 2));
        insert("/l/f");
        ck_assert_uint_eq(life("/l/f"), WATCHED_TTL);
        change("/t", "currently", true);
        change("/t", "42", true);
        change("/u", "current", true);
        change("/u", "", true);
        ck_assert(known("/l/f"));
        switch (i) {
        case 0: change("/t", "current", true); break;
        case 1: change("/u", "42", false); break;
        case 2: lose_watch("/t"); break;
        case 3: lose_watch("/u"); break;
        }
        assert_each(known, "!/l/f !/l /");
    }
}
END_TEST

/* The link's entries below are its target's, whose key is the link's own. */
START_TEST(what_a_link_leads_to)
{
    walked("/l/f", "dlf");
    walked("/l/g", "dlf");
    change("/l", "f", false);
    assert_each(known, "!/l/f /l/g");
    change("/l", "", false);
    ck_assert(!known("/l/g"));
    walked("/L", "dL");
    change("/L", "", false);
    ck_assert(!known("/L"));
}
END_TEST

START_TEST(an_access_file_changes)
{
    for (unsigned i = 0; i < names.n; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%.*s", (int)names.list[i].len, names.list[i].name);
        kit_now_ms++;
        walked_with_names("/a/b/f", "dddf");
        walked_with_names("/c/f", "ddf");
        change("/a", "index.html", true);
        ck_assert(known_with_names("/a/b/f"));
        change("/a", name, true);
        ck_assert(!known_with_names("/a/b/f"));
        ck_assert(known_with_names("/c/f"));
    }
}
END_TEST

/* One directory under two paths has one key. */
START_TEST(two_paths_of_one_directory)
{
    walked("/a/f", "ddf");
    walk("/l/f", "dlf");
    result.step_watches[1].watch = key_of("/a", 2);
    insert("/l/f");
    change("/a", "f", false);
    assert_each(known, "!/a/f !/l/f");
}
END_TEST

/* Each entry once, as long as it is not seen again. */
START_TEST(how_many_a_change_concerns)
{
    walked("/a/f", "ddf");
    walk("/l/f", "dlf");
    result.step_watches[1].watch = key_of("/a", 2);
    insert("/l/f");
    kit_visited = 0;
    ck_assert_uint_eq(change("/a", "other", true), 0);
    ck_assert_uint_eq(change("/c", "f", true), 0);
    ck_assert_uint_eq(kit_visited, 2);
    ck_assert_uint_eq(change("/a", "f", false), 2);
    ck_assert_uint_eq(change("/a", "f", true), 0);
    ck_assert_uint_eq(change("/a/f", "", false), 0);
    ck_assert_uint_eq(change("/a", "", false), 2);
    ck_assert_uint_eq(fp_cache_counts(cache).changes, 4);
    walked("/a/f", "ddf");
    ck_assert_uint_eq(change("/a/f", "", false), 1);
    ck_assert_uint_eq(fp_cache_counts(cache).changes, 5);
}
END_TEST

START_TEST(a_file_that_is_replaced_is_closed)
{
    walked("/a/f", "ddf");
    walked("/a/g", "ddf");
    ck_assert_int_eq(unit_open_fds(), fds_at_rest + 4 + 2);
    change("/a", "f", false);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest + 4 + 2);
    change("/a", "g", true);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest + 4 + 1);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 1);
    change("/a", "f", true);
    change("/a", "f", true);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest + 4);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 0);
    walked("/a/f", "ddf1");
    ck_assert(known("/a/f"));
    ck_assert_int_eq(kit_version_of(answer.fd), '1');
}
END_TEST

/* A deployment exchanges a link, then removes the former release: nobody asks for its files again, and only
 * their own watches report their end. */
START_TEST(a_file_that_nobody_reaches_any_more_is_closed)
{
    walked("/now/f", "dl1f");
    change("/", "now", true);
    walk("/now/g", "dl2f");
    result.step_watches[1].watch = key_of("/second", 7);
    insert("/now/g");
    ck_assert(!known("/now/f"));
    ck_assert_uint_eq(fp_cache_counts(cache).files, 2);
    change("/now/f", "", false);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 1);
    ck_assert(known("/now/g"));
}
END_TEST

/* ---- while a walk is under way ---- */

/* The walk begins, something happens, the walk ends. */
static void event_meanwhile(int which)
{
    switch (which) {
    case 0: change("/a", "f", false); break;
    case 1: change("/a", "f", true); break;
    case 2: change("/a/f", "", false); break;
    case 3: change("/a", "", false); break;
    case 4: change("/", "a", true); break;
    case 5: change("/", "", false); break;
    case 6: invalidate(NULL); break;
    case 7: invalidate("/nowhere"); break;
    case 8: lose_watch("/a"); break;
    case 9: lose_watch("/"); break;
    case 10: lose_watch("/a/f"); break;
    }
}

START_TEST(what_changed_meanwhile_is_not_valid)
{
    const uint64_t began = kit_now_ms;

    walk("/a/f", "ddf");
    event_meanwhile(_i);
    insert_as("/a/f", began);
    ck_assert(!known("/a/f"));
    walked("/a/f", "ddf");
    ck_assert(known("/a/f"));
    ck_assert_uint_eq(life("/a/f"), WATCHED_TTL);
}
END_TEST

/* Within one millisecond the order is unknown. */
START_TEST(what_changed_at_that_moment_is_not_valid)
{
    const struct fp_watch_key k = key_of("/a", 2);

    fp_cache_change_ops.changed(cache, &k, "f", 1, false);
    walked("/a/f", "ddf");
    ck_assert(!known("/a/f"));
}
END_TEST

/* Nothing depended on the directory yet when its access file came. */
START_TEST(access_file_of_another_case_meanwhile)
{
    const uint64_t began = kit_now_ms;

    walk("/a/f", "ddf");
    look_for_names();
    validity[1].traits.folds = _i > 0;
    change("/a", ".HTACCESS", true);
    insert_as("/a/f", began);
    ck_assert_int_eq(known_with_names("/a/f"), _i == 0);
}
END_TEST

static const struct {
    const char *path, *what, *place, *name;
    bool names, known;
} changed[] = { { "/a/f", "ddf", "/a", "g", false, true },        { "/a/f", "ddf", "/b", "f", false, true },
                { "/a/f", "ddf", "/a/g", "", false, true },       { "/a", "dd", "/a", "g", false, false },
                { "/l/f", "dlf", "/t", "current", false, false }, { "/k/L", "ddL", "/k", "L", false, false },
                { "/a/f", "ddf", "/a", ".acl", true, false } };

/* A change elsewhere does not mark it stale. A change in the directory does, and one of a name that
 * a link passes. So does a change of an access file, or of a link to an unreadable target, which is
 * not watched. */
START_TEST(what_changed_beside_it_meanwhile)
{
    const struct fp_watch_key t = key_of("/t", 2);
    const uint64_t began = kit_now_ms;
    const char *path = changed[_i].path;

    walk(path, changed[_i].what);
    if (strchr(changed[_i].what, 'l') != NULL)
        ck_assert(fp_walk_result_add(&result, 1, &t, "current", 7));
    if (strchr(changed[_i].what, 'L') != NULL)
        result.step_watches[2].watch.len = 0;
    if (changed[_i].names)
        look_for_names();
    change(changed[_i].place, changed[_i].name, true);
    insert_as(path, began);
    ck_assert_int_eq(changed[_i].names ? known_with_names(path) : known(path), changed[_i].known);
    kit_now_ms++;
    walked("/a/f", "ddf");
    ck_assert(known("/a/f"));
}
END_TEST

/* The watch that it relied on was given up because an entry went. */
START_TEST(watch_that_was_given_up_meanwhile)
{
    uint64_t began;

    walked("/a/f", "ddf");
    kit_now_ms++;
    began = kit_now_ms;
    walk("/a/g", "ddf");
    kit_now_ms++;
    fp_cache_clear(cache);
    kit_now_ms++;
    insert_as("/a/g", began);
    ck_assert(!known("/a/g"));
}
END_TEST

/* A hash remembers recent events, and so the ends of watches as well. An unreadable file, which
 * cannot be watched anew, must not lose its watch to changes of another file. */
START_TEST(watch_that_cannot_be_made_anew_goes_on)
{
    const struct fp_watch_key elsewhere = key_of("/elsewhere", 10);
    uint64_t began;
    char name[32];

    walked("/a/f", "ddf");
    kit_now_ms++;
    began = kit_now_ms;
    for (int i = 0; i < 200000; i++) {
        snprintf(name, sizeof(name), "%d", i);
        fp_cache_change_ops.changed(cache, &elsewhere, name, strlen(name), false);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(known("/a/f"), i == 0);
        walk("/a/f", "ddf");
        result.step_watches[2].watch.len = 0;
        validity[2].traits.local = true;
        insert_as("/a/f", i == 0 ? began : kit_now_ms);
        kit_now_ms++;
    }
    ck_assert(known("/a/f"));
    ck_assert_uint_eq(life("/a/f"), WATCHED_TTL);
}
END_TEST

/* ---- the memory of all entries ---- */

/* Whatever takes it, each kind keeps what is in use; and strangers who invent names get no more than a
 * quarter. */
START_TEST(each_kind_keeps_what_is_in_use)
{
    static const char *const cold[] = { "dd", "df", "da" };
    struct fp_cache_limits limits = { 1000, 1000, 1000, 1000, SIZE_MAX, WATCHED_TTL };
    unsigned misses = 0;
    char path[32];

    start(&limits, SLOTS);
    for (int i = 0; i < 40; i++) {
        snprintf(path, sizeof(path), "/x%d", i);
        walked(path, cold[i % 3]);
    }
    limits.bytes = fp_cache_counts(cache).bytes;
    fp_cache_set_limits(cache, &limits);
    for (int i = 0; i < 300; i++) {
        snprintf(path, sizeof(path), "/cold%d", i);
        walked(path, cold[_i]);
        for (int hot = 0; hot < 3; hot++) {
            snprintf(path, sizeof(path), "/hot%d", hot);
            if (!known(path)) {
                misses++;
                walked(path, cold[hot]);
            }
            ck_assert(known(path));
        }
    }
    ck_assert_uint_eq(misses, 3);
    ck_assert_uint_le(fp_cache_counts(cache).bytes, limits.bytes);
    /* The third was more than a quarter already. */
    ck_assert_uint_le(fp_cache_counts(cache).negatives, 14);
    if (_i == 2)
        ck_assert_uint_ge(fp_cache_counts(cache).files, 12);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_watch");
    TCase *t = unit_add_case(s, "changes", setup, teardown, 0);

    tcase_add_test(t, a_file_changes);
    tcase_add_test(t, a_file_changes_by_another_name);
    tcase_add_test(t, nothing_that_is_known_changes);
    tcase_add_test(t, something_in_a_directory_changes);
    tcase_add_test(t, a_directory_itself_changes);
    tcase_add_loop_test(t, names_that_differ_in_case, 0, 3);
    tcase_add_loop_test(t, access_files_that_differ_in_case, 0, 2);
    tcase_add_loop_test(t, a_removed_file_that_is_open, 0, 4);
    tcase_add_test(t, names_of_a_directory_are_asked_for_once);
    tcase_add_loop_test(t, files_of_a_remote_mount_are_due_late, 0, 2);
    tcase_add_loop_test(t, a_directory_with_another_change_time, 0, 4);
    tcase_add_test(t, a_name_that_a_link_passes);
    tcase_add_test(t, what_a_link_leads_to);
    tcase_add_test(t, an_access_file_changes);
    tcase_add_test(t, two_paths_of_one_directory);
    tcase_add_test(t, how_many_a_change_concerns);
    tcase_add_test(t, a_file_that_is_replaced_is_closed);
    tcase_add_test(t, a_file_that_nobody_reaches_any_more_is_closed);
    t = unit_add_case(s, "meanwhile", setup, teardown, 0);
    tcase_add_loop_test(t, what_changed_meanwhile_is_not_valid, 0, 11);
    tcase_add_test(t, what_changed_at_that_moment_is_not_valid);
    tcase_add_loop_test(t, what_changed_beside_it_meanwhile, 0, sizeof(changed) / sizeof(changed[0]));
    tcase_add_loop_test(t, access_file_of_another_case_meanwhile, 0, 2);
    tcase_add_test(t, watch_that_was_given_up_meanwhile);
    tcase_add_test(t, watch_that_cannot_be_made_anew_goes_on);
    t = unit_add_case(s, "memory", setup, teardown, 0);
    tcase_add_loop_test(t, each_kind_keeps_what_is_in_use, 0, 3);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
