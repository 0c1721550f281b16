/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache where changes are reported: what stays valid, and what is not valid any
 * more.
 */
#include "config.h"
#include "cache/cache.h"

#include "cache/dependency.h"
#include "cache_watch_kit.h"

/* ---- how long ---- */

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

/* Each mount has its time, and what lies on the border the shorter one. */
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

/* A directory that may not be read any more cannot be watched anew; but while it
 * is the same one, its watch goes on. */
START_TEST(a_watch_goes_on)
{
    walked("/a/f", "ddf");
    kit_now_ms++;
    walk("/a/f", "ddf");
    result.step_watches[1].watch.len = 0;
    answer.steps[1].self.mode ^= 0444;
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), WATCHED_TTL);
    ck_assert_uint_eq(forgotten, 0);
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

/* Its end was reported while the walk that had found it was under way: nothing depended on it then. */
START_TEST(a_watch_that_ended_meanwhile_does_not_go_on)
{
    const uint64_t began_ms = kit_now_ms;

    walk("/a/f", "ddf");
    lose_watch("/a");
    insert_as("/a/f", 0, began_ms);
    ck_assert(!known("/a"));
    kit_now_ms++;
    walk("/a/f", "ddf");
    result.step_watches[1].watch.len = 0;
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), 0);
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
    case 2: result.step_watches[2].untold = true; break;
    case 3: validity[2].watchable = false; break;
    case 4: validity[1].watchable = false; break;
    case 5: result.step_watches[1].untold = true; break;
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
    case 9: result.step_watches[2].watch.len = 0; break; /* what is written to it */
    }
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), TTL);
}
END_TEST

/* What lies directly in a directory that is not watched for now needs a look for each question;
 * what lies deeper is as it was, but for the way there. */
START_TEST(a_watch_that_is_left_out)
{
    walk("/a/b/f", "dddf");
    result.step_watches[1].watch.len = 0;
    validity[1].left_out = true;
    insert("/a/b/f");
    ck_assert_uint_eq(life("/a/b"), 0);
    ck_assert_uint_eq(life("/a/b/f"), 0);
    ck_assert(known("/"));
    walk("/a/no", "dda");
    result.step_watches[1].watch.len = 0;
    validity[1].left_out = true;
    insert("/a/no");
    ck_assert_uint_eq(life("/a/no"), 0);
    /* Its own size and times change without an event, too. */
    ck_assert(!known("/a"));
    kit_now_ms++;
    walked("/a/b/f", "dddf");
    ck_assert_uint_eq(life("/a/b/f"), WATCHED_TTL);
}
END_TEST

static void walk_quiet(const char *path, const char *what)
{
    walk(path, what);
    result.step_watches[1].quiet = validity[1].left_out = true;
}

/* Where a directory's watch reports names alone, what has a full watch of its own is leased.  The
 * directory is looked at now and then, so that it is watched again. */
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
    case 1: result.step_watches[2].quiet = validity[2].left_out = true; break;
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
    ck_assert(answer.watched);
    kit_now_ms++;
    walk("/a/f", "ddf");
    result.step_watches[2].untold = true;
    insert("/a/f");
    ck_assert(!holds(&l));
    l = take_lease("/a/f");
    ck_assert(!answer.watched);
    ck_assert(holds(&l));
}
END_TEST

/* An event concerns no more entries than that: no answer about another one is given twice. */
START_TEST(too_many_names_of_one_file)
{
    const struct fp_cache_limits limits = {
        2 * FP_MAX_DEPENDENTS, 10, 100, 2 * FP_MAX_DEPENDENTS, SIZE_MAX, TTL, WATCHED_TTL
    };
    char path[16];

    start(&limits, SLOTS);
    for (unsigned i = 0; i <= FP_MAX_DEPENDENTS; i++) {
        snprintf(path, sizeof(path), "/%u", i);
        walk(path, "df");
        result.step_watches[1].watch = key_of("/0", 2);
        insert(path);
    }
    ck_assert_uint_eq(life("/0"), WATCHED_TTL);
    ck_assert_uint_eq(life(path), 0);
}
END_TEST

static bool known_watched(const char *path)
{
    return fp_cache_lookup_watched(cache, path, strlen(path), 0, kit_now_ms, &answer);
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
    validity[1].watchable = false;
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

/* Others make changes there that no event reports, on what the step leads to or above it. */
START_TEST(what_others_change_has_its_ttl)
{
    walk("/a/f", "ddf");
    validity[_i].partial = true;
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), TTL);
    ck_assert_uint_eq(life("/a"), _i == 2 ? WATCHED_TTL : TTL);
    ck_assert(fp_cache_view(cache, "/a/f", 4, 0, kit_now_ms).watched);
    ck_assert_int_eq(fp_cache_view(cache, "/a/f", 4, 0, kit_now_ms).partial, _i > 0);
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
    insert_as("/a", NAMES, kit_now_ms);
    ck_assert_uint_eq(life("/a"), TTL);
}
END_TEST

/* ---- what changes concern ---- */

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

/* Of the directory as the end of a path times and size are told; of one that is
 * passed, they are not. */
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
    /* It looks as before, but what may be passed may not be what its mode says. */
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

/* "F" may be what the file system calls "f", and a request asked for. */
START_TEST(names_that_differ_in_case)
{
    const uint64_t began = kit_now_ms;

    walk("/a/f", "ddf");
    validity[1].folds = _i > 0;
    insert("/a/f");
    ck_assert(known("/a/f"));
    change("/a", "F", _i != 1);
    ck_assert_int_eq(known("/a/f"), _i == 0);
    walked("/a", "dd");
    ck_assert_int_eq(known("/a/f"), _i == 0);
    walk("/a/f", "ddf");
    validity[1].folds = _i > 0;
    insert_as("/a/f", 0, began); /* it was under way at that time */
    ck_assert_int_eq(known("/a/f"), _i == 0);
    change("/", "A", true);
    walked("/a", "dd");
    ck_assert_int_eq(known("/a/f"), _i == 0);
}
END_TEST

/* The access file, too. */
START_TEST(access_files_that_differ_in_case)
{
    walk("/a/f", "ddf");
    look_for_names();
    validity[1].folds = _i > 0;
    insert_as("/a/f", NAMES, kit_now_ms);
    ck_assert(known_with_names("/a/f"));
    change("/a", ".HTACCESS", true);
    ck_assert_int_eq(known_with_names("/a/f"), _i == 0);
}
END_TEST

/* A later look at the directory finds another change time: [0] of an access list alone, [1] of
 * names too, which are reported, [2] not reported, [3] by others. */
START_TEST(a_directory_with_another_change_time)
{
    walk("/a/f", "ddf");
    if (_i == 2)
        result.step_watches[1].watch.len = 0;
    validity[1].partial = _i == 3;
    insert("/a/f");
    kit_now_ms++;
    walk("/a", "dd");
    answer.steps[1].self.ctime.sec++;
    answer.steps[1].self.mtime.sec += _i != 0;
    if (_i == 2)
        result.step_watches[1].watch.len = 0;
    validity[1].partial = _i == 3;
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

/* Below the link lies what lies in its target, whose key is the link's own. */
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
    ck_assert_uint_eq(change("/a", "other", true), 0);
    ck_assert_uint_eq(change("/c", "f", true), 0);
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
    insert_as("/a/f", 0, began);
    ck_assert(!known("/a/f"));
    walked("/a/f", "ddf");
    ck_assert(known("/a/f"));
    ck_assert_uint_eq(life("/a/f"), WATCHED_TTL);
}
END_TEST

/* In the same millisecond it cannot be told which came first. */
START_TEST(what_changed_at_that_moment_is_not_valid)
{
    const struct fp_watch_key k = key_of("/a", 2);

    fp_cache_change_ops.changed(cache, &k, "f", 1, false);
    walked("/a/f", "ddf");
    ck_assert(!known("/a/f"));
}
END_TEST

static const struct {
    const char *path, *what, *place, *name;
    bool names, known;
} changed[] = { { "/a/f", "ddf", "/a", "g", false, true },        { "/a/f", "ddf", "/b", "f", false, true },
                { "/a/f", "ddf", "/a/g", "", false, true },       { "/a", "dd", "/a", "g", false, false },
                { "/l/f", "dlf", "/t", "current", false, false }, { "/k/L", "ddL", "/k", "L", false, false },
                { "/a/f", "ddf", "/a", ".acl", true, false } };

/* A change elsewhere is no reason to doubt; one in the directory, of a name that a link passes, of a
 * link to what may not be read (so is not watched), and of an access file, is. */
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
    insert_as(path, changed[_i].names ? NAMES : 0, began);
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
    insert_as("/a/g", 0, began);
    ck_assert(!known("/a/g"));
}
END_TEST

/* ---- the end of watching ---- */

START_TEST(nothing_below_is_told_any_more)
{
    walked("/a/f", "ddf");
    walked("/b/f", "ddf");
    lose_watch("/a");
    assert_each(known, "!/a/f !/a /b/f");
    /* What lies in it may have changed, although it is the same itself. */
    walked("/a", "dd");
    assert_each(known, "/a !/a/f");
    walked("/a/f", "ddf");
    ck_assert_uint_eq(life("/a/f"), WATCHED_TTL);
}
END_TEST

/* What lies below is not counted: it is valid again with the entry that lost its watch. */
START_TEST(how_many_the_end_of_a_watch_concerns)
{
    const struct fp_watch_key t = key_of("/t", 2);

    walked("/a/f", "ddf");
    walk("/l/f", "dlf");
    ck_assert(fp_walk_result_add(&result, 1, &t, "current", 7));
    insert("/l/f");
    ck_assert_uint_eq(lose_watch("/c"), 0);
    ck_assert_uint_eq(lose_watch("/a"), 1);
    ck_assert_uint_eq(lose_watch("/a"), 0);
    ck_assert_uint_eq(lose_watch("/t"), 1);
    ck_assert_uint_eq(lose_watch("/a/f"), 1);
}
END_TEST

START_TEST(only_what_is_watched_is_doubted)
{
    walk("/w/f", "ddf");
    validity[0].watchable = false;
    insert("/w/f");
    walk_unwatched("/u/f", "ddf");
    insert("/u/f");
    ck_assert(known("/w/f"));
    ck_assert_uint_eq(invalidate("/elsewhere"), 0);
    ck_assert_uint_eq(invalidate("/w/g"), 0);
    ck_assert_uint_eq(invalidate("/wider"), 0);
    ck_assert(known("/w/f"));
    ck_assert_uint_eq(invalidate("/w"), 1);
    assert_each(known, "!/w/f /w /u/f");
    ck_assert_uint_eq(invalidate("/w"), 0);
    ck_assert_uint_eq(invalidate(NULL), 0);
    ck_assert(known("/u/f"));
}
END_TEST

/* Where they lead to does not show in their path. */
START_TEST(links_are_doubted_everywhere)
{
    walked("/l/f", "dlf");
    walked("/a/f", "ddf");
    ck_assert_uint_eq(invalidate("/mnt"), 2); /* the link and what lies below */
    assert_each(known, "!/l/f /a/f");
    ck_assert_uint_eq(invalidate(NULL), 3);
    ck_assert(!known("/a/f"));
}
END_TEST

START_TEST(watches_are_given_up)
{
    walked("/a/f", "ddf");
    walked("/a/g", "ddf");
    ck_assert_uint_eq(fp_cache_counts(cache).watches, 4);
    ck_assert_uint_eq(forgotten, 0);
    /* Seen again, as another thing with another key. */
    kit_now_ms++;
    walk("/a/f", "ddf1");
    result.step_watches[2].watch = key_of("/new", 4);
    insert("/a/f");
    ck_assert_uint_eq(forgotten, 1);
    ck_assert_uint_eq(fp_cache_counts(cache).watches, 4);
    kit_now_ms++;
    walked("/a/f", "ddf1");
    ck_assert_uint_eq(forgotten, 2);
    fp_cache_clear(cache);
    ck_assert_uint_eq(forgotten, 6);
    ck_assert_uint_eq(fp_cache_counts(cache).watches, 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("cache_watch");
    TCase *t = unit_add_case(s, "life", setup, teardown, 0);

    tcase_add_test(t, watched_entries_live_longer);
    tcase_add_test(t, without_evidence_they_do_not);
    tcase_add_test(t, time_to_live_is_the_mounts);
    tcase_add_test(t, absence_is_watched_from_above);
    tcase_add_test(t, a_watch_goes_on);
    tcase_add_test(t, a_watch_that_ended_meanwhile_does_not_go_on);
    tcase_add_loop_test(t, what_is_not_watched_enough, 0, 10);
    tcase_add_test(t, too_many_names_of_one_file);
    tcase_add_loop_test(t, what_is_watched_enough, 0, 4);
    tcase_add_loop_test(t, what_others_change_has_its_ttl, 0, 3);
    tcase_add_test(t, known_by_what_is_watched_alone);
    tcase_add_test(t, a_watch_that_is_left_out);
    tcase_add_test(t, a_watch_that_reports_names_alone);
    tcase_add_loop_test(t, attributes_that_nobody_reports, 0, 5);
    tcase_add_test(t, leases_end_with_the_reports);
    tcase_add_test(t, a_link_needs_its_own);
    tcase_add_test(t, a_directory_with_access_files_needs_its_own);
    t = unit_add_case(s, "changes", setup, teardown, 0);
    tcase_add_test(t, a_file_changes);
    tcase_add_test(t, a_file_changes_by_another_name);
    tcase_add_test(t, nothing_that_is_known_changes);
    tcase_add_test(t, something_in_a_directory_changes);
    tcase_add_test(t, a_directory_itself_changes);
    tcase_add_loop_test(t, names_that_differ_in_case, 0, 3);
    tcase_add_loop_test(t, access_files_that_differ_in_case, 0, 2);
    tcase_add_loop_test(t, a_directory_with_another_change_time, 0, 4);
    tcase_add_test(t, a_name_that_a_link_passes);
    tcase_add_test(t, what_a_link_leads_to);
    tcase_add_test(t, an_access_file_changes);
    tcase_add_test(t, two_paths_of_one_directory);
    tcase_add_test(t, how_many_a_change_concerns);
    tcase_add_test(t, a_file_that_is_replaced_is_closed);
    t = unit_add_case(s, "meanwhile", setup, teardown, 0);
    tcase_add_loop_test(t, what_changed_meanwhile_is_not_valid, 0, 11);
    tcase_add_test(t, what_changed_at_that_moment_is_not_valid);
    tcase_add_loop_test(t, what_changed_beside_it_meanwhile, 0, sizeof(changed) / sizeof(changed[0]));
    tcase_add_test(t, watch_that_was_given_up_meanwhile);
    t = unit_add_case(s, "end", setup, teardown, 0);
    tcase_add_test(t, nothing_below_is_told_any_more);
    tcase_add_test(t, how_many_the_end_of_a_watch_concerns);
    tcase_add_test(t, only_what_is_watched_is_doubted);
    tcase_add_test(t, links_are_doubted_everywhere);
    tcase_add_test(t, watches_are_given_up);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
