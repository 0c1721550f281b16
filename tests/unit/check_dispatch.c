/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fate of walks under way when their path is purged, and refreshes.
 */
#include "config.h"
#include "lookup/dispatch.h"

#include "cache/timer_wheel.h"
#include "dispatch_kit.h"

/* "/" and "/a" are known and open: walks to names in them begin there. */
static void know_a(void)
{
    ask(&early, "/a");
    finish("/", "d");
    finish("/a", "dd");
    ck_assert(early.answered);
    ck_assert_uint_eq(n_jobs, 0);
}

/* ---- paths of which nothing is kept ---- */

/* Its watch is left out, say.  The first walk begins at the directory, and a second one at "/" brings the answer.
 * From then on the first one does. */
START_TEST(one_walk_for_each_question)
{
    know_a();
    ttl_ms = 0;
    ask(&early, "/a/f");
    finish("/a/f", "ddf");
    ck_assert(!early.answered);
    finish("/a/f", "ddf");
    ck_assert(from_root && early.answered);
    for (int i = 0; i < 3; i++) {
        let_pass(1);
        ask(&early, "/a/f");
        finish("/a/f", "ddf");
        ck_assert(from_root && early.answered);
        ck_assert_uint_eq(n_jobs, 0);
    }
    ttl_ms = TTL_MS;
    let_pass(1);
    ask(&early, "/a/f");
    finish("/a/f", "ddf");
    ask(&early, "/a/f");
    ck_assert_int_eq((int)early.source, FP_SOURCE_CACHE);
}
END_TEST

/* ---- asking afresh ---- */

/* Known entries are not watched here. */
START_TEST(fresh_question_has_a_walk_of_its_own)
{
    know_a();
    ask(&early, "/a/f");
    finish("/a/f", "ddf");
    ask(&early, "/a/f");
    ck_assert_int_eq((int)early.source, FP_SOURCE_CACHE);
    ask_fresh(&late, "/a/f");
    ck_assert(!late.answered);
    ck_assert_uint_eq(n_jobs, 1);
    finish("/a/f", "ddf1");
    ck_assert(from_root);
    ck_assert_int_eq((int)late.source, FP_SOURCE_WORKER);
    ck_assert_uint_eq(late.last_ino, ino_of("/a/f", '1'));
    /* All later questions get that answer. */
    ask(&other, "/a/f");
    ck_assert_int_eq((int)other.source, FP_SOURCE_CACHE);
    ck_assert_uint_eq(other.last_ino, ino_of("/a/f", '1'));
    ask_fresh(&late, "/a/none");
    finish("/a/none", "da");
    ck_assert_uint_eq(n_jobs, 0);
    ck_assert(late.answered);
}
END_TEST

/* The walk under way began before the change that the client knows of. */
START_TEST(fresh_questions_share_the_next_walk)
{
    know_a();
    ask(&early, "/a/f");
    ask_fresh(&late, "/a/f");
    ask_fresh(&other, "/a/f");
    ck_assert_uint_eq(n_jobs, 1);
    finish("/a/f", "dda");
    ck_assert(early.answered);
    ck_assert(!late.answered);
    ck_assert(!other.answered);
    ck_assert_uint_eq(n_jobs, 1);
    /* Another one has to wait for the walk after that. */
    ask_fresh(&early, "/a/f");
    finish("/a/f", "ddf1");
    ck_assert(from_root);
    ck_assert_uint_eq(late.last_ino, ino_of("/a/f", '1'));
    ck_assert_uint_eq(other.last_ino, ino_of("/a/f", '1'));
    ck_assert(!early.answered);
    finish("/a/f", "ddf2");
    ck_assert_uint_eq(early.last_ino, ino_of("/a/f", '2'));
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

/* Every change on the way is reported, and nothing has changed. */
START_TEST(fresh_question_joins_a_walk_of_what_is_watched)
{
    all_watched = true;
    know_a();
    ask(&early, "/a/f");
    ask_fresh(&late, "/a/f");
    finish("/a/f", "ddf1");
    ck_assert_uint_eq(early.last_ino, ino_of("/a/f", '1'));
    ck_assert_uint_eq(late.last_ino, ino_of("/a/f", '1'));
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

/* Its result may be older than the question, and is no answer. */
START_TEST(fresh_question_joins_no_walk_of_what_was_forgotten)
{
    know_a();
    ask(&early, "/a/f");
    ask_fresh(&late, "/a/f");
    forget("/a/f", false);
    finish("/a/f", "ddf1");
    ck_assert_uint_eq(n_jobs, 1);
    ck_assert(!late.answered);
    finish("/a/f", "ddf2");
    ck_assert_uint_eq(late.last_ino, ino_of("/a/f", '2'));
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

/* As many as come while walks are under way. */
START_TEST(fresh_questions_that_do_not_stop_do_not_keep_others_waiting)
{
    know_a();
    ask(&early, "/a/f");
    for (int i = 0; i < 20; i++) {
        struct fp_connection *asking = i % 2 == 0 ? &late : &other;

        ask_fresh(asking, "/a/f");
        finish("/a/f", "ddf1");
        ck_assert(early.answered);
        ck_assert(i == 0 || (i % 2 == 0 ? &other : &late)->answered);
        ck_assert(!asking->answered);
    }
    finish("/a/f", "ddf1");
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

/* ---- forgetting ---- */

START_TEST(walk_from_the_root)
{
    ask(&early, "/a");
    forget("/a", false);
    /* It waits for the walk to "/", and looks after the purge. */
    finish("/", "d");
    finish("/a", "dd");
    ck_assert(early.leasable);
    forget("/", true);
    ask(&early, "/");
    forget("/", true);
    ask(&late, "/");
    ck_assert_uint_eq(n_jobs, 2);
    finish("/", "d");
    ck_assert(early.answered);
    ck_assert(!early.leasable);
    ck_assert(!late.answered);
    finish("/", "d1");
    ck_assert_uint_eq(late.last_ino, ino_of("/", '1'));
    ck_assert(late.leasable);
    ask(&other, "/");
    ck_assert_int_eq((int)other.source, FP_SOURCE_CACHE);
    ck_assert_uint_eq(other.last_ino, ino_of("/", '1'));
}
END_TEST

/* It joined the walk, and a change before its question is forgotten with the rest. */
START_TEST(who_joined_a_walk_that_a_purge_overtook)
{
    ask(&early, "/");
    ask(&late, "/");
    forget("/", true);
    finish("/", "d");
    ck_assert(early.answered);
    ck_assert(!late.answered);
    finish("/", "d1");
    ck_assert_uint_eq(late.last_ino, ino_of("/", '1'));
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

/* It is made once more, from "/", and waiting questions wait for that. */
START_TEST(walk_from_a_base)
{
    know_a();
    ask(&early, "/a/f");
    forget("/a/f", false);
    ask(&late, "/a/f");
    ck_assert_uint_eq(n_jobs, 2);
    finish("/a/f", "ddf");
    ck_assert(!early.answered);
    ck_assert(!late.answered);
    finish("/a/f", "ddf1");
    ck_assert_uint_eq(late.last_ino, ino_of("/a/f", '1'));
    ck_assert(!early.answered);
    finish("/a/f", "ddf1");
    ck_assert_uint_eq(early.last_ino, ino_of("/a/f", '1'));
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

/* The directory above two others is known after the first
 * one's walk.  The second one's waits until it is open. */
START_TEST(walks_of_directories_begin_at_the_one_above)
{
    ask(&early, "/a/b/f");
    finish("/a/b", "ddd");
    finish("/a/b/f", "dddf");
    ask(&late, "/a/c/f");
    ask(&other, "/a/d/f");
    ck_assert_uint_eq(n_jobs, 1);
    finish("/a", "dd");
    ck_assert(from_root);
    finish("/a/c", "ddd");
    ck_assert(!from_root);
    finish("/a/c/f", "dddf1");
    ck_assert_uint_eq(late.last_ino, ino_of("/a/c/f", '1'));
    finish("/a/d", "dda");
    ck_assert(!from_root);
    ck_assert(other.answered);
    ck_assert_uint_eq(other.n_steps, 3);
    /* Names that nobody knows get no walk of their own:
     * the nearest open directory is where the walk begins. */
    ask(&early, "/a/x/y/z/f");
    finish("/a/x/y/z", "dda");
    ck_assert(!from_root);
    ck_assert(early.answered);
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

/* A worker refuses what is above the roots.  The directory is walked all the same, and is open afterwards. */
START_TEST(parent_that_may_not_be_looked_at)
{
    ask(&early, "/s/w/d/f");
    finish("/s/w/d", "dddd");
    finish("/s/w/d/f", "ddddf");
    ask(&late, "/s/w/f");
    {
        const struct job job = take_walk("/s");

        end_without(&job, FP_REFUSED);
    }
    finish("/s/w", "ddd");
    finish("/s/w/f", "dddf1");
    ck_assert(!from_root);
    ck_assert_uint_eq(late.last_ino, ino_of("/s/w/f", '1'));
    ask(&other, "/s/w/g");
    finish("/s/w/g", "dddf1");
    ck_assert(!from_root);
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

START_TEST(walk_of_what_lies_below)
{
    know_a();
    ask(&early, "/a/f");
    forget("/a", true);
    ask(&late, "/a/f");
    ask(&other, "/a");
    finish("/a/f", "ddf");
    ck_assert(!early.answered);
    finish("/a", "dd1");
    ck_assert_uint_eq(other.last_ino, ino_of("/a", '1'));
    finish("/a/f", "dd1f1");
    finish("/a/f", "dd1f1");
    ck_assert_uint_eq(early.last_ino, ino_of("/a/f", '1'));
    ck_assert_uint_eq(late.last_ino, ino_of("/a/f", '1'));
}
END_TEST

START_TEST(walk_of_something_else)
{
    know_a();
    ask(&early, "/a/f");
    forget("/a/g", true);
    forget("/ab", true);
    forget("/a/f/x", false);
    ask(&late, "/a/f");
    ck_assert_uint_eq(n_jobs, 1);
}
END_TEST

/* Two walks end at a name above the forgotten path. */
START_TEST(absence_above)
{
    know_a();
    ask(&early, "/a/new");
    forget("/a/new/f", false);
    finish("/a/new", "dda");
    /* It has to look again. */
    ck_assert(!early.answered);
    finish("/a/new", "ddd");
    ck_assert_uint_eq(early.last_ino, ino_of("/a/new", '0'));
}
END_TEST

START_TEST(absence_above_found_by_a_walk_to_its_neighbour)
{
    ask(&early, "/a");
    finish("/", "d");
    ask(&other, "/b/c/f"); /* waits for a walk to /b/c, which is from "/" */
    forget("/b/c/g", false);
    finish("/b/c", "da");
    ask(&late, "/b/c/g");
    ck_assert(!late.answered);
}
END_TEST

START_TEST(presence_above_is_kept)
{
    ask(&other, "/b/c/f");
    forget("/b/c/g", false);
    finish("/b/c", "ddd");
    ask(&late, "/b/c");
    ck_assert_int_eq((int)late.source, FP_SOURCE_CACHE);
    finish("/b/c/f", "dddf");
    ck_assert(other.answered);
}
END_TEST

/* A client brings that name; how many there are now. */
static unsigned bring(const char *name)
{
    const struct fp_names names = { 1, { { name, strlen(name) } } };

    return fp_dispatch_add_names(dispatch, &names)->n;
}

/* A directory's walk finds its access files. */
START_TEST(access_file_of_a_directory_under_way)
{
    bring(".htaccess");
    ask(&early, "/");
    forget("/.htaccess", false);
    ask(&late, "/");
    ck_assert_uint_eq(n_jobs, 2);
    forget("/other", false);
    ask(&other, "/");
    ck_assert_uint_eq(n_jobs, 2);
}
END_TEST

/* ---- names of access files ---- */

static unsigned names_known; /* access files in the last answer */

static void see_names(struct fp_connection *conn, const struct fp_answer *a)
{
    (void)conn;
    names_known = a->n_names;
}

/* The access files that an answer about "/" has. */
static unsigned known_of_root(void)
{
    on_answer = see_names;
    ask(&early, "/");
    if (!early.answered)
        finish("/", "d");
    ck_assert(early.answered);
    return names_known;
}

/* The list has no place for a fifth name, and loses none. A client's names are all taken, or none. */
START_TEST(names_that_clients_bring)
{
    static const struct fp_names two = { 2, { { "c", 1 }, { "e", 1 } } };

    ck_assert_uint_eq(known_of_root(), 0);
    ck_assert_uint_eq(bring(".htaccess"), 1);
    ck_assert_uint_eq(known_of_root(), 1);
    ck_assert_uint_eq(bring(".acl"), 2);
    ck_assert_uint_eq(bring(".htaccess"), 2);
    ck_assert_uint_eq(known_of_root(), 2);
    ck_assert_uint_eq(bring("c"), 3);
    ck_assert_uint_eq(bring("d"), 4);
    ck_assert_uint_eq(bring("e"), 4);
    ck_assert_uint_eq(fp_dispatch_add_names(dispatch, &two)->n, 4);
    ck_assert_int_eq(fp_names_find(fp_dispatch_add_names(dispatch, &two), ".acl", 4), 1);
    ck_assert_uint_eq(known_of_root(), 4);
}
END_TEST

/* It has not looked for the new name. */
START_TEST(a_name_that_comes_during_a_walk)
{
    on_answer = see_names;
    ask(&early, "/");
    bring(".htaccess");
    ask(&late, "/");
    ck_assert_uint_eq(n_jobs, 2);
    finish("/", "d");
    ck_assert(early.answered && !late.answered);
    ck_assert_uint_eq(names_known, 0);
    finish("/", "d");
    ck_assert(late.answered);
    ck_assert_uint_eq(names_known, 1);
}
END_TEST

START_TEST(client_leaves)
{
    ask(&early, "/");
    forget("/", true);
    fp_router_ops.closed(&router, &early);
    finish("/", "d");
    ck_assert(!early.answered);
    ask(&late, "/");
    ck_assert(!late.answered);
}
END_TEST

/* Walks that nobody may join are freed at the end as others are. */
START_TEST(end_while_walks_are_under_way)
{
    know_a();
    ask(&early, "/a/f");
    forget("/a/f", false);
    ask(&late, "/a/f");
    fp_router_ops.closed(&router, &early);
    fp_router_ops.closed(&router, &late);
}
END_TEST

START_TEST(forgotten_twice)
{
    ask(&early, "/");
    forget("/", true);
    forget("/", true);
    ask(&late, "/");
    forget("/", true);
    finish("/", "d");
    finish("/", "d1");
    ck_assert(!early.leasable);
    ck_assert(!late.leasable);
    ask(&other, "/");
    ck_assert(!other.answered);
}
END_TEST

/* So long that a walk's result may be outdated before a question comes. */
#define SLOW_MS 30

/* No result is valid for long: each walk must also serve clients that ask late. */
START_TEST(overtaken_again_and_again)
{
    root_ttl_ms = 1;
    ask(&early, "/");
    let_pass(SLOW_MS);
    ask(&other, "/");
    finish("/", "d");
    ck_assert_uint_eq(early.last_ino, ino_of("/", '0'));
    ck_assert(!other.answered);
    let_pass(SLOW_MS);
    ask(&late, "/");
    finish("/", "d1");
    ck_assert_uint_eq(other.last_ino, ino_of("/", '1'));
    ck_assert(!late.answered);
    let_pass(SLOW_MS);
    finish("/", "d2");
    ck_assert_uint_eq(late.last_ino, ino_of("/", '2'));
}
END_TEST

/* ---- refreshes ---- */

#define LIFE_MS 2000

/* All known entries are past the half of their life. */
static void until_half(void)
{
    let_pass(LIFE_MS / 2 + 50);
}

/* Entries above are due a moment after the one that was found in use. */
static void some_beats(void)
{
    for (int i = 0; i < 4; i++) {
        beat(beat_ctx);
        let_pass(FP_TIMER_TICK_MS + 1);
    }
}

static void know_af(void)
{
    root_ttl_ms = ttl_ms = LIFE_MS;
    ask(&early, "/a/f");
    finish("/a", "dd");
    finish("/a/f", "ddf");
    ck_assert(early.answered);
}

START_TEST(what_is_in_use_is_looked_at_again)
{
    know_af();
    ask(&early, "/a/f");
    ck_assert_int_eq((int)early.source, FP_SOURCE_CACHE);
    beat(beat_ctx);
    ck_assert_uint_eq(n_jobs, 0);
    until_half();
    some_beats();
    /* The one of "/a" waits for that of "/", which is not open. */
    ck_assert_uint_eq(n_jobs, 2);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 3);
    finish("/", "d");
    some_beats();
    ck_assert_uint_eq(n_jobs, 2);
    ck_assert_uint_ge(fp_dispatch_counts(dispatch).refreshed, 2);
    finish("/a", "dd");
    finish("/a/f", "ddf");
    until_half();
    /* It would be over by now. */
    ask(&late, "/a/f");
    ck_assert_int_eq((int)late.source, FP_SOURCE_CACHE);
    ck_assert(late.leasable);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).hits, 2);
}
END_TEST

/* ---- hints ---- */

START_TEST(a_hint_has_a_walk_that_nobody_waits_for)
{
    name_path(&early, "/a/f");
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).hinted, 1);
    /* The walk is under way. */
    name_path(&other, "/a/f");
    finish("/a", "dd");
    finish("/a/f", "ddf");
    ck_assert(!early.answered && !other.answered);
    ask(&late, "/a/f");
    ck_assert_int_eq((int)late.source, FP_SOURCE_CACHE);
    name_path(&other, "/a/f");
    ck_assert_uint_eq(n_jobs, 0);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).hinted, 1);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).misses, 0);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).hints_dropped, 0);
}
END_TEST

START_TEST(a_question_joins_the_walk_of_a_hint)
{
    name_path(&early, "/a/f");
    ask(&late, "/a/f");
    finish("/a", "dd");
    finish("/a/f", "ddf");
    ck_assert(late.answered);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).joined, 1);
}
END_TEST

START_TEST(a_hint_is_dropped_while_workers_are_busy)
{
    have_spare = false;
    name_path(&early, "/a/f");
    have_spare = true;
    ck_assert_uint_eq(n_jobs, 0);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).hints_dropped, 1);
}
END_TEST

static unsigned n_looks(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_jobs; i++)
        n += jobs[i].task->looks_only;
    return n;
}

/* Whoever has changed a file there may be about to remove it. A question joins, and has it opened. */
START_TEST(file_of_a_server_is_looked_at)
{
    uint8_t used[100];

    all_remote = true;
    know_af();
    ck_assert_uint_eq(n_looks(), 0);
    until_half();
    /* As children do that have used the answers. */
    memset(used, 1, sizeof(used));
    ck_assert_int_eq((int)pwrite(fp_lease_table_referenced_fd(leases), used, sizeof(used), 0), (int)sizeof(used));
    some_beats();
    ck_assert_uint_eq(n_looks(), 1);
    if (_i == 1)
        ask(&late, "/a/f");
    finish("/a/f", "ddf1");
    ck_assert(!late.answered);
    ck_assert_uint_eq(n_looks(), 0);
    if (_i == 1)
        finish("/a/f", "ddf1");
    ck_assert(late.answered == (_i == 1));
    for (unsigned i = 0; i < n_jobs; i++)
        ck_assert(!is_path(&jobs[i].task->lookup, "/a/f"));
    all_remote = false;
}
END_TEST

START_TEST(hints_leave_room_for_refreshes)
{
    know_af();
    ask(&early, "/a/f");
    until_half();
    n_queued = 1;
    name_path(&other, "/a/g");
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).hints_dropped, 1);
    some_beats();
    n_queued = 0;
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 3);
}
END_TEST

/* The client that waited for the walk has not come back. */
START_TEST(what_was_asked_for_once_is_not)
{
    know_af();
    until_half();
    some_beats();
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

START_TEST(looks_wait_for_a_worker_to_spare)
{
    know_af();
    ask(&early, "/a/f");
    until_half();
    have_spare = false;
    some_beats();
    ck_assert_uint_eq(n_jobs, 0);
    have_spare = true;
    some_beats();
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 3);
}
END_TEST

/* Each directory of paths in use is walked once, from above, and the
 * paths begin there; but none waits for "/", which is of another mount. */
START_TEST(paths_in_use_are_restored_from_above)
{
    static const char text[] = "flashpached paths 2\nnames\n/m/x/y/f\n/m/x/z/g\n/m/x/y/h\nend 3\n";

    fp_dispatch_restore(dispatch, strdup(text), sizeof(text) - 1);
    ev_run(loop, EVRUN_ONCE);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 7);
    ck_assert_uint_eq(n_jobs, 1);
    finish("/m", "dd");
    ck_assert_uint_eq(n_jobs, 1);
    finish("/m/x", "ddd");
    ck_assert_uint_eq(n_jobs, 2);
    finish("/m/x/y", "dddd");
    ck_assert_uint_eq(n_jobs, 3);
    ck_assert_uint_eq(jobs[1].task->base_len, strlen("/m/x/y"));
    finish("/m/x/z", "dddd");
    finish("/m/x/y/f", "ddddf");
    finish("/m/x/y/h", "ddddf");
    finish("/m/x/z/g", "ddddf");
    ck_assert_uint_eq(n_jobs, 0);
    ask(&early, "/m/x/z/g");
    ck_assert_int_eq((int)early.source, FP_SOURCE_CACHE);
}
END_TEST

/* Where max_inflight leaves no room for all directories,
 * a path in use is walked as one that is asked about. */
START_TEST(paths_in_use_where_few_walks_may_be_under_way)
{
    static const char text[] = "flashpached paths 2\nnames\n/m/x/y/z/f\n/m/x/y/z/g\nend 2\n";

    fp_dispatch_set(dispatch, &(struct fp_dispatch_settings){
                                  .max_inflight = 8, .mount_timeout_ms = MOUNT_MS, .roots = the_roots });
    fp_dispatch_restore(dispatch, strdup(text), sizeof(text) - 1);
    ev_run(loop, EVRUN_ONCE);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 2);
    /* No more than a quarter, which leaves six for questions. */
    ev_run(loop, EVRUN_ONCE);
    ck_assert_uint_eq(fp_dispatch_counts(dispatch).inflight, 2);
    finish("/m/x/y/z", "ddddd");
    finish("/m/x/y/z/f", "dddddf");
    ev_run(loop, EVRUN_ONCE);
    finish("/m/x/y/z/g", "dddddf");
    ck_assert_uint_eq(n_jobs, 0);
}
END_TEST

/* Questions that wait for a directory's walk are reported with it. */
START_TEST(who_waits_is_observed)
{
    observed = 0;
    ask(&early, "/a/f");
    ask(&late, "/a/f");
    ask(&other, "/a");
    finish("/a", "dd");
    ck_assert_uint_eq(observed, 1);
    ck_assert_uint_eq(last_waited, 3);
    finish("/a/f", "ddf");
    ck_assert_uint_eq(observed, 2);
    ck_assert_uint_eq(last_waited, 2);
}
END_TEST

/* A client that comes meanwhile joins that look, and gets what it finds. */
START_TEST(a_look_is_joined)
{
    know_af();
    ask(&early, "/a/f");
    until_half();
    beat(beat_ctx);
    forget("/a/f", false);
    ask(&late, "/a/f");
    ck_assert(!late.answered);
    finish("/a/f", "ddf");
    finish("/a/f", "ddf1");
    ck_assert(late.answered);
    ck_assert_uint_eq(late.last_ino, ino_of("/a/f", '1'));
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("dispatch");
    TCase *t = unit_add_case(s, "forgetting", setup, teardown, 0);

    tcase_add_test(t, one_walk_for_each_question);
    tcase_add_test(t, fresh_question_has_a_walk_of_its_own);
    tcase_add_test(t, fresh_questions_share_the_next_walk);
    tcase_add_test(t, fresh_question_joins_a_walk_of_what_is_watched);
    tcase_add_test(t, fresh_question_joins_no_walk_of_what_was_forgotten);
    tcase_add_test(t, fresh_questions_that_do_not_stop_do_not_keep_others_waiting);
    tcase_add_test(t, walk_from_the_root);
    tcase_add_test(t, who_joined_a_walk_that_a_purge_overtook);
    tcase_add_test(t, walk_from_a_base);
    tcase_add_test(t, walks_of_directories_begin_at_the_one_above);
    tcase_add_test(t, parent_that_may_not_be_looked_at);
    tcase_add_test(t, walk_of_what_lies_below);
    tcase_add_test(t, walk_of_something_else);
    tcase_add_test(t, absence_above);
    tcase_add_test(t, absence_above_found_by_a_walk_to_its_neighbour);
    tcase_add_test(t, presence_above_is_kept);
    tcase_add_test(t, access_file_of_a_directory_under_way);
    tcase_add_test(t, names_that_clients_bring);
    tcase_add_test(t, a_name_that_comes_during_a_walk);
    tcase_add_test(t, client_leaves);
    tcase_add_test(t, end_while_walks_are_under_way);
    tcase_add_test(t, forgotten_twice);
    tcase_add_test(t, overtaken_again_and_again);
    t = unit_add_case(s, "looking_again", setup, teardown, 20);
    tcase_add_test(t, a_hint_has_a_walk_that_nobody_waits_for);
    tcase_add_test(t, a_question_joins_the_walk_of_a_hint);
    tcase_add_test(t, a_hint_is_dropped_while_workers_are_busy);
    tcase_add_loop_test(t, file_of_a_server_is_looked_at, 0, 2);
    tcase_add_test(t, hints_leave_room_for_refreshes);
    tcase_add_test(t, what_is_in_use_is_looked_at_again);
    tcase_add_test(t, what_was_asked_for_once_is_not);
    tcase_add_test(t, looks_wait_for_a_worker_to_spare);
    tcase_add_test(t, paths_in_use_are_restored_from_above);
    tcase_add_test(t, paths_in_use_where_few_walks_may_be_under_way);
    tcase_add_test(t, who_waits_is_observed);
    tcase_add_test(t, a_look_is_joined);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
