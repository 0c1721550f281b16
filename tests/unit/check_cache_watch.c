/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache where changes are told: what it believes, what it does not believe
 * any more, and which leases end.
 */
#include "config.h"
#include "cache.h"

#include "cache_kit.h"
#include "keyed_hash.h"
#include "proto/slots.h"
#include "trail.h"

#define TTL         100
#define WATCHED_TTL 10000
#define STALE       50
#define NAMES       1        /* the number of the list of access files */
#define SLOTS       200

static const struct fp_names names = { 2, { { ".htaccess", 9 }, { ".acl", 4 } } };

static struct fp_cache *cache;
static struct fp_slots *slots;
static struct fp_slots_view *view;
static struct fp_answer answer;
static struct fp_trail trail;
static struct fp_trust trust[FP_MAX_STEPS];
static int fds_at_rest;
static unsigned forgotten;

static void on_forget(void *ctx, const struct fp_watch_key *key)
{
    ck_assert_ptr_eq(ctx, &forgotten);
    ck_assert_uint_gt(key->len, 0);
    forgotten++;
}

static void start(const struct fp_cache_limits *limits, uint32_t n_slots)
{
    struct fp_cache_means means = { .now_ms = kit_clock, .forget = on_forget,
                                    .ctx = &forgotten };

    fp_cache_destroy(&cache);
    fp_slots_view_release(&view);
    fp_slots_destroy(&slots);
    slots = means.slots = fp_slots_create(n_slots);
    ck_assert_ptr_nonnull(slots);
    view = fp_slots_view_create(fp_slots_generations_fd(slots), fp_slots_marks_fd(slots));
    ck_assert_ptr_nonnull(view);
    cache = fp_cache_create(limits, &means);
    ck_assert_ptr_nonnull(cache);
    fp_cache_set_names(cache, NAMES, &names);
}

static void setup(void)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 100, SIZE_MAX, TTL, WATCHED_TTL };

    ck_assert_int_eq(fp_keyed_hash_init(), 0);
    fds_at_rest = unit_open_fds();
    kit_now_ms = 1000;
    forgotten = 0;
    start(&limits, SLOTS);
}

static void teardown(void)
{
    fp_cache_clear(cache);
    ck_assert_uint_eq(fp_cache_counts(cache).watches, 0);
    ck_assert_uint_eq(fp_cache_counts(cache).bytes, 0);
    fp_cache_destroy(&cache);
    fp_slots_view_release(&view);
    fp_slots_destroy(&slots);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

/* ---- walks ---- */

/* Of a directory or file by its path, as if the kernel named it by that. */
static struct fp_watch_key key_of(const char *path, size_t len)
{
    const uint64_t number = kit_number(path, len, 'k');
    struct fp_watch_key k = { .len = 9, .bytes = { 1 } };

    memcpy(k.bytes + 1, &number, sizeof(number));
    return k;
}

/* What the walk finds, and as helpers do it has everything watched that is there.
 * Tests change it before they insert it. */
static void walk(const char *path, const char *what)
{
    kit_answer(&answer, path, what);
    fp_trail_init(&trail);
    for (unsigned i = 0; i < answer.n_steps; i++) {
        const struct fp_step *s = &answer.steps[i];

        trust[i] = (struct fp_trust){ 0, true, TTL, STALE };
        if (fp_step_target(s) == NULL)
            continue;
        trust[i].mount = trail.origins[i].mount = 1;
        trail.origins[i].watch = key_of(path, s->end);
    }
}

static void insert_as(const char *path, unsigned number, uint64_t began_ms)
{
    const struct fp_cache_evidence evidence = { &trail, trust };

    fp_cache_insert(cache, path, strlen(path), number, NULL, began_ms, &evidence, &answer);
    ck_assert_int_eq(answer.fd, -1);
}

static void insert(const char *path)
{
    insert_as(path, 0, kit_now_ms);
}

static void walked(const char *path, const char *what)
{
    walk(path, what);
    insert(path);
}

static void look_for_names(void)
{
    answer.n_names = names.n;
    for (unsigned i = 0; i < answer.n_steps; i++)
        answer.steps[i].access[0].status = answer.steps[i].access[1].status = FP_ABSENT;
}

static bool known(const char *path)
{
    return kit_lookup(cache, path, kit_now_ms, &answer);
}

static bool known_with_names(const char *path)
{
    return fp_cache_lookup(cache, path, strlen(path), NAMES, kit_now_ms, &answer);
}

static bool known_at(const char *path, uint64_t ms)
{
    return kit_lookup(cache, path, ms, &answer);
}

static bool known_stale(const char *path, uint64_t ms)
{
    return fp_cache_lookup_stale(cache, path, strlen(path), 0, ms, &answer);
}

/* For how long it will be believed from now on. */
static uint64_t life(const char *path)
{
    uint64_t ms = 0;

    while (ms <= WATCHED_TTL && known_at(path, kit_now_ms + ms))
        ms += 10;
    return ms;
}

/* ---- changes; what is seen afterwards is seen later ---- */

static void change(const char *place, const char *name, bool replaced)
{
    const struct fp_watch_key k = key_of(place, strlen(place));

    kit_now_ms++;
    fp_cache_changed(cache, &k, name, strlen(name), replaced);
    kit_now_ms++;
}

static void lose_watch(const char *place)
{
    const struct fp_watch_key k = key_of(place, strlen(place));

    kit_now_ms++;
    fp_cache_unwatched(cache, &k);
    kit_now_ms++;
}

static size_t disbelieve(const char *at)
{
    size_t n;

    kit_now_ms++;
    n = fp_cache_disbelieve(cache, at);
    kit_now_ms++;
    return n;
}

/* ---- leases ---- */

static struct kit_lease take_lease(const char *path)
{
    ck_assert_msg(known(path), "%s is not known", path);
    return kit_take_lease(&answer);
}

static bool holds_at(const struct kit_lease *l, uint64_t ms)
{
    return kit_holds_at(l, view, ms);
}

static bool holds(const struct kit_lease *l)
{
    return holds_at(l, kit_now_ms);
}

/* For as long as it is believed, or a tick less; never longer. */
static void assert_lease_lasts(const char *path, uint64_t ms)
{
    const struct kit_lease l = take_lease(path);

    ck_assert(holds(&l));
    ck_assert(holds_at(&l, kit_now_ms + ms - FP_SLOT_TICK_MS));
    ck_assert(!holds_at(&l, kit_now_ms + ms));
    ck_assert(!holds_at(&l, kit_now_ms + 10 * ms));
}

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
    walk("/m/f", "ddf");
    for (int i = 0; i < 3; i++)
        trust[i].watchable = false;
    trust[0].ttl_ms = 500;
    trust[1].ttl_ms = trust[2].ttl_ms = 300;
    insert("/m/f");
    ck_assert_uint_eq(life("/m/f"), 300);
    walk("/n/f", "ddf");
    for (int i = 0; i < 3; i++)
        trust[i].watchable = false;
    trust[0].ttl_ms = 200;
    trust[1].ttl_ms = trust[2].ttl_ms = 300;
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
    trail.origins[1].watch.len = 0;
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
    trail.origins[1].watch.len = 0;
    answer.steps[1].self.mode ^= 0444;
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), WATCHED_TTL);
    ck_assert_uint_eq(forgotten, 0);
    change("/a", "f", false);
    ck_assert(!known("/a/f"));
    walk("/a/f", "ddf");
    trail.origins[1].watch.len = 0;
    answer.steps[1].self.ino++;
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), TTL);
    ck_assert_uint_eq(forgotten, 1);
}
END_TEST

/* One thing is missing; everything else is as it should be. */
START_TEST(what_is_not_watched_enough)
{
    walk("/a/f", "ddf");
    switch (_i) {
    case 0: trail.origins[0].watch.len = 0; break;         /* "/" has nobody above it */
    case 1: trail.origins[1].watch.len = 0; break;         /* "f" lies there */
    case 2: trail.origins[2].untold = true; break;
    case 3: trust[2].watchable = false; break;
    case 4: trust[1].watchable = false; break;
    case 5: trail.origins[1].untold = true; break;
    case 6: trail.origins[2].watch.len = 0; answer.steps[2].self.nlink = 2; break;
    case 7: trail.origins[2].watch.len = 0; trust[2].mount = 2; break;
    case 8: trail.origins[1].watch.len = 0; trust[1].mount = 2; break;
    case 9: trail.origins[2].watch.len = 0; break;         /* what is written to it */
    }
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), TTL);
}
END_TEST

START_TEST(what_is_watched_enough)
{
    walk("/a/f", "ddf");
    switch (_i) {
    case 0: break;
    case 1: answer.steps[2].self.nlink = 2; break;
    case 2: trust[2].mount = 2; break;
    case 3: trust[1].mount = trust[2].mount = 2; break;
    }
    insert("/a/f");
    ck_assert_uint_eq(life("/a/f"), WATCHED_TTL);
}
END_TEST

START_TEST(a_link_needs_its_own)
{
    walked("/l/f", "dlf");
    ck_assert_uint_eq(life("/l/f"), WATCHED_TTL);
    walk("/k/L", "ddL");
    trail.origins[2].watch.len = 0;
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
    trail.origins[1].watch.len = 0;
    insert("/a");
    ck_assert_uint_eq(life("/a"), WATCHED_TTL);
    kit_now_ms++;
    walk("/a", "dd");
    trail.origins[1].watch.len = 0;
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
    ck_assert(!known("/a/f"));
    ck_assert(known("/a/g"));
    ck_assert(known("/b/f"));
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
    ck_assert(!known("/a/f"));
    ck_assert(known("/a/g"));
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
    ck_assert(!known("/a"));
    ck_assert(known("/a/f"));
    ck_assert(known("/"));
    walked("/a", "dd");
    ck_assert(known("/a"));
    change("/", "b", true);
    ck_assert(!known("/"));
    ck_assert(known("/a"));
    ck_assert(known("/a/f"));
}
END_TEST

START_TEST(a_directory_itself_changes)
{
    walked("/a/b/f", "dddf");
    walked("/a/g", "ddf");
    walked("/c/f", "ddf");
    change("/a", "", false);
    ck_assert(!known("/a/b/f"));
    ck_assert(!known("/a/g"));
    ck_assert(known("/c/f"));
    /* The same as before: what lies below is as good as it was. */
    walked("/a", "dd");
    ck_assert(known("/a/b/f"));
    change("/a", "b", true);
    ck_assert(!known("/a/b/f"));
    ck_assert(known("/a/g"));
}
END_TEST

START_TEST(a_name_that_a_link_passes)
{
    const struct fp_watch_key t = key_of("/t", 2), u = key_of("/u", 2);

    for (int i = 0; i < 4; i++) {
        kit_now_ms++;
        walk("/l/f", "dlf");
        ck_assert(fp_trail_add(&trail, 1, &t, "current", 7));
        ck_assert(fp_trail_add(&trail, 1, &u, "42", 2));
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
        ck_assert(!known("/l/f"));
        ck_assert(!known("/l"));
        ck_assert(known("/"));
    }
}
END_TEST

/* Below the link lies what lies in its target, whose key is the link's own. */
START_TEST(what_a_link_leads_to)
{
    walked("/l/f", "dlf");
    walked("/l/g", "dlf");
    change("/l", "f", false);
    ck_assert(!known("/l/f"));
    ck_assert(known("/l/g"));
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
        walk("/a/b/f", "dddf");
        look_for_names();
        insert_as("/a/b/f", NAMES, kit_now_ms);
        walk("/c/f", "ddf");
        look_for_names();
        insert_as("/c/f", NAMES, kit_now_ms);
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
    trail.origins[1].watch = key_of("/a", 2);
    insert("/l/f");
    change("/a", "f", false);
    ck_assert(!known("/a/f"));
    ck_assert(!known("/l/f"));
}
END_TEST

START_TEST(a_file_that_is_replaced_is_closed)
{
    walked("/a/f", "ddf");
    walked("/a/g", "ddf");
    ck_assert_int_eq(unit_open_fds(), fds_at_rest + 2 + 2);
    change("/a", "f", false);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest + 2 + 2);
    change("/a", "g", true);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest + 2 + 1);
    ck_assert_uint_eq(fp_cache_counts(cache).files, 1);
    change("/a", "f", true);
    change("/a", "f", true);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest + 2);
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
    case 6: disbelieve(NULL); break;
    case 7: disbelieve("/nowhere"); break;
    case 8: lose_watch("/a"); break;
    case 9: lose_watch("/"); break;
    case 10: lose_watch("/a/f"); break;
    }
}

START_TEST(what_changed_meanwhile_is_not_believed)
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
START_TEST(what_changed_at_that_moment_is_not_believed)
{
    const struct fp_watch_key k = key_of("/a", 2);

    fp_cache_changed(cache, &k, "f", 1, false);
    walked("/a/f", "ddf");
    ck_assert(!known("/a/f"));
}
END_TEST

START_TEST(what_changed_elsewhere_meanwhile_is_no_reason)
{
    const uint64_t began = kit_now_ms;

    walk("/a/f", "ddf");
    change("/a", "g", true);
    change("/b", "f", true);
    change("/a/g", "", true);
    insert_as("/a/f", 0, began);
    ck_assert(known("/a/f"));
}
END_TEST

START_TEST(directory_in_which_something_changed_meanwhile)
{
    const uint64_t began = kit_now_ms;

    walk("/a", "dd");
    change("/a", "g", true);
    insert_as("/a", 0, began);
    ck_assert(!known("/a"));
    kit_now_ms++;
    walked("/a/f", "ddf");
    ck_assert(known("/a/f"));
}
END_TEST

START_TEST(name_of_a_link_that_changed_meanwhile)
{
    const struct fp_watch_key t = key_of("/t", 2);
    const uint64_t began = kit_now_ms;

    walk("/l/f", "dlf");
    ck_assert(fp_trail_add(&trail, 1, &t, "current", 7));
    change("/t", "current", true);
    insert_as("/l/f", 0, began);
    ck_assert(!known("/l/f"));
}
END_TEST

START_TEST(access_file_that_changed_meanwhile)
{
    const uint64_t began = kit_now_ms;

    walk("/a/f", "ddf");
    look_for_names();
    change("/a", ".acl", true);
    insert_as("/a/f", NAMES, began);
    ck_assert(!known_with_names("/a/f"));
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
    ck_assert(!known("/a/f"));
    ck_assert(!known("/a"));
    ck_assert(known("/b/f"));
    /* What lies in it may have changed, although it is the same itself. */
    walked("/a", "dd");
    ck_assert(known("/a"));
    ck_assert(!known("/a/f"));
    walked("/a/f", "ddf");
    ck_assert_uint_eq(life("/a/f"), WATCHED_TTL);
}
END_TEST

START_TEST(only_what_is_watched_is_doubted)
{
    walk("/w/f", "ddf");
    trust[0].watchable = false;
    insert("/w/f");
    walk("/u/f", "ddf");
    for (int i = 0; i < 3; i++)
        trust[i].watchable = false;
    insert("/u/f");
    ck_assert(known("/w/f"));
    ck_assert_uint_eq(disbelieve("/elsewhere"), 0);
    ck_assert_uint_eq(disbelieve("/w/g"), 0);
    ck_assert_uint_eq(disbelieve("/wider"), 0);
    ck_assert(known("/w/f"));
    ck_assert_uint_eq(disbelieve("/w"), 1);
    ck_assert(!known("/w/f"));
    ck_assert(known("/w"));
    ck_assert(known("/u/f"));
    ck_assert_uint_eq(disbelieve("/w"), 0);
    ck_assert_uint_eq(disbelieve(NULL), 0);
    ck_assert(known("/u/f"));
}
END_TEST

/* Where they lead to does not show in their path. */
START_TEST(links_are_doubted_everywhere)
{
    walked("/l/f", "dlf");
    walked("/a/f", "ddf");
    ck_assert_uint_eq(disbelieve("/mnt"), 2);    /* the link and what lies below */
    ck_assert(!known("/l/f"));
    ck_assert(known("/a/f"));
    ck_assert_uint_eq(disbelieve(NULL), 3);
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
    trail.origins[2].watch = key_of("/new", 4);
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

/* ---- leases ---- */

START_TEST(lease_of_a_file)
{
    struct kit_lease l, other;

    walked("/a/f", "ddf");
    walked("/a/g", "ddf");
    l = take_lease("/a/f");
    other = take_lease("/a/g");
    ck_assert(holds(&l));
    change("/a", "new", true);
    change("/", "b", true);
    ck_assert(holds(&l));
    change("/a", "f", false);
    ck_assert(!holds(&l));
    ck_assert(holds(&other));
    walked("/a/f", "ddf");
    ck_assert(!holds(&l));
    l = take_lease("/a/f");
    change("/a", "", false);
    ck_assert(!holds(&l));
    ck_assert(!holds(&other));
}
END_TEST

/* Told once, everybody asks once: nothing ends again. */
START_TEST(lease_taken_after_the_change_holds)
{
    struct kit_lease l;

    walked("/a/f", "ddf");
    for (int i = 0; i < 10; i++) {
        change("/a", "f", false);
        ck_assert(!known("/a/f"));
        walked("/a/f", "ddf");
        l = take_lease("/a/f");
        ck_assert(holds(&l));
        walked("/a/f", "ddf");
        ck_assert(holds(&l));
    }
}
END_TEST

START_TEST(lease_of_a_directory)
{
    struct kit_lease dir, file;

    walked("/a/f", "ddf");
    dir = take_lease("/a");
    file = take_lease("/a/f");
    change("/a", "f2", true);
    ck_assert(!holds(&dir));
    ck_assert(holds(&file));
    walked("/a", "dd");
    dir = take_lease("/a");
    change("/", "a", false);
    ck_assert(!holds(&dir));
    ck_assert(!holds(&file));
}
END_TEST

/* Only its times: nobody who passes it can tell. */
START_TEST(walk_that_finds_a_directorys_times_changed)
{
    struct kit_lease dir, file;

    walked("/a/f", "ddf");
    dir = take_lease("/a");
    file = take_lease("/a/f");
    kit_now_ms++;
    walk("/a", "dd");
    answer.steps[1].self.mtime.sec++;
    answer.steps[1].self.ctime.sec++;
    answer.steps[1].self.size++;
    insert("/a");
    ck_assert(!holds(&dir));
    ck_assert(holds(&file));
}
END_TEST

START_TEST(walk_that_finds_nothing_changed)
{
    struct kit_lease l, dir, no;

    walked("/a/f", "ddf");
    walked("/a/no", "dda");
    l = take_lease("/a/f");
    dir = take_lease("/a");
    no = take_lease("/a/no");
    kit_now_ms++;
    walked("/a/f", "ddf");
    walked("/a/no", "dda");
    ck_assert(holds(&l));
    ck_assert(holds(&dir));
    ck_assert(holds(&no));
}
END_TEST

START_TEST(walk_that_finds_something_changed)
{
    struct kit_lease file, dir, no, access;

    walk("/a/f", "ddf");
    look_for_names();
    insert_as("/a/f", NAMES, kit_now_ms);
    walk("/a/no", "dda");
    look_for_names();
    insert_as("/a/no", NAMES, kit_now_ms);
    file = take_lease("/a/f");
    dir = take_lease("/a");
    no = take_lease("/a/no");
    kit_now_ms++;
    walk("/a/f", "ddf");
    look_for_names();
    switch (_i) {
    case 0: answer.steps[2].self.size++; break;
    case 1: answer.steps[2].self.mtime.nsec++; break;
    case 2: answer.steps[2].self.mode ^= 0111; break;
    case 3: answer.steps[2].self.ino++; break;
    case 4: answer.steps[1].self.mode ^= 0011; break;
    case 5: answer.steps[1].self.ino++; break;
    case 6: answer.steps[1].access[0].status = FP_OK; break;
    case 7: answer.steps[1].access[1].status = FP_DENIED; break;
    case 8: answer.steps[0].self.uid++; break;
    }
    insert_as("/a/f", NAMES, kit_now_ms);
    ck_assert(!holds(&file));
    ck_assert_int_eq(holds(&dir), _i < 4);
    ck_assert_int_eq(holds(&no), _i < 4);
    if (_i != 6)
        return;
    ck_assert(known_with_names("/a/f"));
    access = take_lease("/a/f");
    kit_now_ms++;
    walk("/a/f", "ddf");
    look_for_names();
    answer.steps[1].access[0] = (struct fp_access){ .status = FP_OK, .size = 1 };
    insert_as("/a/f", NAMES, kit_now_ms);
    ck_assert(!holds(&access));
}
END_TEST

START_TEST(what_was_absent_is_there)
{
    struct kit_lease l, below;

    walked("/a/no", "dda");
    l = take_lease("/a/no");
    below = take_lease("/a/no/x");
    change("/a", "other", true);
    ck_assert(holds(&l));
    change("/a", "no", true);
    ck_assert(!holds(&l));
    ck_assert(!holds(&below));
    /* And without being told. */
    walked("/a/no", "dda");
    l = take_lease("/a/no");
    kit_now_ms++;
    walked("/a/no", "ddf");
    ck_assert(!holds(&l));
}
END_TEST

START_TEST(a_link_leads_elsewhere)
{
    struct kit_lease l;

    walked("/l/f", "dlf");
    l = take_lease("/l/f");
    kit_now_ms++;
    walk("/l", "dl");
    answer.steps[1].target.ino++;
    insert("/l");
    ck_assert(!holds(&l));
}
END_TEST

START_TEST(what_goes_ends_its_leases)
{
    struct kit_lease f, g, dir;

    walked("/a/f", "ddf");
    walked("/a/g", "ddf");
    f = take_lease("/a/f");
    g = take_lease("/a/g");
    dir = take_lease("/a");
    switch (_i) {
    case 0: fp_cache_clear(cache); break;
    case 1: disbelieve(NULL); break;
    case 2: lose_watch("/a"); break;
    case 3: fp_cache_forget(cache, "/a", 2, true); break;
    case 4: ck_assert_uint_eq(fp_cache_shed_files(cache, 10), 2); break;
    }
    ck_assert(!holds(&f));
    ck_assert(!holds(&g));
    ck_assert_int_eq(holds(&dir), _i == 4);
}
END_TEST

/* Slots go from hand to hand; no lease goes along. */
START_TEST(slots_are_given_back)
{
    struct kit_lease old = { .n = 0 };
    char path[32];

    for (int i = 0; i < 10 * SLOTS; i++) {
        snprintf(path, sizeof(path), "/f%d", i);
        kit_now_ms++;
        walked(path, "df");
        ck_assert(i == 0 || known(path));
        if (i > 0)
            ck_assert(!holds(&old));
        old = take_lease(path);
        ck_assert_uint_eq(fp_cache_shed_files(cache, 1), 1);
    }
}
END_TEST

START_TEST(no_slot_left)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 100, SIZE_MAX, TTL, WATCHED_TTL };

    start(&limits, 3);
    walked("/a/f", "ddf");
    take_lease("/a/f");
    walked("/a/g", "ddf");
    ck_assert(known("/a/g"));
    ck_assert(!answer.again);
    ck_assert_uint_eq(answer.steps[2].slot, FP_NO_SLOT);
    ck_assert(known("/a"));
    ck_assert(!answer.again);
    take_lease("/a/f");
}
END_TEST

START_TEST(no_leases_at_all)
{
    const struct fp_cache_limits limits = { 100, 10, 100, 100, SIZE_MAX, TTL, WATCHED_TTL };
    struct fp_cache *without = kit_cache(&limits);

    kit_answer(&answer, "/a/f", "ddf");
    kit_insert(without, "/a/f", kit_now_ms, &answer);
    ck_assert(kit_lookup(without, "/a/f", kit_now_ms, &answer));
    ck_assert(!answer.again);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(answer.steps[i].slot, FP_NO_SLOT);
    fp_cache_destroy(&without);
}
END_TEST

/* ---- what stays ---- */

START_TEST(use_of_a_lease_keeps_an_entry)
{
    const struct fp_cache_limits limits = { 3, 10, 100, 100, SIZE_MAX, TTL, WATCHED_TTL };
    struct kit_lease l;
    char path[32];

    start(&limits, SLOTS);
    walked("/used", "df");
    l = take_lease("/used");
    for (int i = 0; i < 100; i++) {
        snprintf(path, sizeof(path), "/once%d", i);
        fp_slots_view_mark(view, l.slots[l.n - 1]);
        kit_now_ms++;
        walked(path, "df");
        ck_assert(holds(&l));
    }
    /* Nobody uses it any more, but others are in use. */
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof(path), "/again%d", i);
        kit_now_ms++;
        walked(path, "df");
        ck_assert(known(path));
    }
    ck_assert(!holds(&l));
}
END_TEST

START_TEST(use_of_a_directorys_lease_keeps_it)
{
    const struct fp_cache_limits limits = { 10, 10, 4, 100, SIZE_MAX, TTL, WATCHED_TTL };
    struct kit_lease l;
    char path[32];

    start(&limits, SLOTS);
    walked("/used", "dd");
    l = take_lease("/used");
    for (int i = 0; i < 50; i++) {
        snprintf(path, sizeof(path), "/once%d", i);
        fp_slots_view_mark(view, l.slots[l.n - 1]);
        walked(path, "dd");
        ck_assert(holds(&l));
    }
}
END_TEST

START_TEST(memory_is_bounded)
{
    struct fp_cache_limits limits = { 1000, 10, 1000, 1000, SIZE_MAX, TTL, WATCHED_TTL };
    size_t of_ten;
    char path[32];

    start(&limits, SLOTS);
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof(path), "/a/f%02d", i);
        walked(path, "ddf");
    }
    of_ten = fp_cache_counts(cache).bytes;
    ck_assert_uint_gt(of_ten, 10 * sizeof(struct fp_meta));
    /* Seen again they take no more. */
    walked("/a/f00", "ddf");
    ck_assert_uint_eq(fp_cache_counts(cache).bytes, of_ten);
    limits.bytes = of_ten;
    fp_cache_set_limits(cache, &limits);
    for (int i = 10; i < 99; i++) {
        snprintf(path, sizeof(path), "/a/f%02d", i);
        kit_now_ms++;     /* the watches that were given up were so before */
        walked(path, i % 2 == 0 ? "ddf" : "ddL");
        ck_assert(known(path));
        ck_assert_uint_le(fp_cache_counts(cache).bytes, of_ten);
    }
    limits.bytes = of_ten / 2;
    fp_cache_set_limits(cache, &limits);
    ck_assert_uint_le(fp_cache_counts(cache).bytes, of_ten / 2);
    limits.bytes = 1;
    fp_cache_set_limits(cache, &limits);
    ck_assert_uint_eq(fp_cache_counts(cache).bytes, 0);
    /* What was seen last can be told, whatever it takes. */
    kit_now_ms++;
    walked("/a/f", "ddf");
    ck_assert(known("/a/f"));
}
END_TEST

/* Everything that takes memory is given back, whatever it was exchanged for. */
START_TEST(memory_is_counted_right)
{
    static const char *const whats[] = { "ddf", "ddL", "dda", "ddd", "dlf", "ddb", "ddu", "df" };
    uint64_t seed = 5;

    for (int i = 0; i < 2000; i++) {
        const char *what = whats[unit_random(&seed) % 8];
        const char *path = unit_random(&seed) % 2 == 0 ? "/a/f" : "/b/f";

        kit_now_ms++;
        walk(path, what);
        if (unit_random(&seed) % 2 == 0)
            look_for_names();
        if (unit_random(&seed) % 4 == 0)
            fp_trail_add(&trail, answer.n_steps - 1, &trail.origins[0].watch, "name", 4);
        if (unit_random(&seed) % 4 == 0)
            trail.origins[answer.n_steps - 1].watch.len = 0;
        insert_as(path, answer.n_names > 0 ? NAMES : 0, kit_now_ms);
        if (unit_random(&seed) % 16 == 0)
            change("/a", "f", true);
        if (unit_random(&seed) % 64 == 0)
            fp_cache_clear(cache);
    }
    fp_cache_clear(cache);
    ck_assert_uint_eq(fp_cache_counts(cache).bytes, 0);
}
END_TEST

/* ---- when the file system does not answer ---- */

START_TEST(stale_answers)
{
    const uint64_t seen = kit_now_ms;

    walk("/a/f", "ddf");
    for (int i = 0; i < 3; i++)
        trust[i].watchable = false;
    insert("/a/f");
    ck_assert(known_at("/a/f", seen + TTL - 1));
    ck_assert(!known_at("/a/f", seen + TTL));
    for (uint64_t ms = TTL - 1; ms < TTL + STALE; ms += 10) {
        ck_assert(known_stale("/a/f", seen + ms));
        ck_assert_int_eq((int)answer.source, FP_SOURCE_STALE);
        ck_assert(!answer.again);
        ck_assert_uint_eq(answer.n_steps, 3);
        ck_assert_int_ne(answer.fd, -1);
    }
    ck_assert(known_stale("/a/f", seen + TTL + STALE - 1));
    ck_assert(!known_stale("/a/f", seen + TTL + STALE));
    ck_assert(!known_stale("/a/g", seen));
}
END_TEST

START_TEST(stale_answers_of_what_is_watched)
{
    const uint64_t seen = kit_now_ms;

    walked("/a/f", "ddf");
    ck_assert(!known_at("/a/f", seen + WATCHED_TTL));
    ck_assert(known_stale("/a/f", seen + WATCHED_TTL));
    ck_assert(!known_stale("/a/f", seen + WATCHED_TTL + STALE));
}
END_TEST

START_TEST(where_no_stale_answers_are_allowed)
{
    const uint64_t seen = kit_now_ms;

    walk("/a/f", "ddf");
    for (int i = 0; i < 3; i++) {
        trust[i].watchable = false;
        trust[i].stale_ms = i == _i ? 0 : STALE;
    }
    insert("/a/f");
    ck_assert(known_stale("/a/f", seen + TTL - 1));
    ck_assert(!known_stale("/a/f", seen + TTL));
}
END_TEST

START_TEST(what_was_told_to_have_changed_is_never_stale)
{
    walked("/a/f", "ddf");
    switch (_i) {
    case 0: change("/a", "f", false); break;
    case 1: change("/a", "f", true); break;
    case 2: change("/a/f", "", false); break;
    case 3: change("/a", "", false); break;
    case 4: change("/", "a", true); break;
    case 5: disbelieve(NULL); break;
    case 6: disbelieve("/a"); break;
    case 7: lose_watch("/a"); break;
    }
    ck_assert(!known_stale("/a/f", kit_now_ms));
}
END_TEST

/* ---- mounts ---- */

START_TEST(mount_of_a_path)
{
    size_t len = 99;

    ck_assert_uint_eq(fp_cache_mount(cache, "/m/d/f", 6, &len), 0);
    ck_assert_uint_eq(len, 0);
    walk("/m/d/f", "dddf");
    trust[1].mount = trust[2].mount = trust[3].mount = 7;
    insert("/m/d/f");
    ck_assert_uint_eq(fp_cache_mount(cache, "/m/d/f", 6, &len), 7);
    ck_assert_uint_eq(len, 6);
    ck_assert_uint_eq(fp_cache_mount(cache, "/m/d/no/x", 9, &len), 7);
    ck_assert_uint_eq(len, 4);
    ck_assert_uint_eq(fp_cache_mount(cache, "/x", 2, &len), 1);
    ck_assert_uint_eq(len, 1);
    /* An absent name is where the directory is; and believed or not. */
    walk("/m/no", "dda");
    trust[1].mount = 7;
    insert("/m/no");
    ck_assert_uint_eq(fp_cache_mount(cache, "/m/no", 5, &len), 7);
    disbelieve(NULL);
    ck_assert_uint_eq(fp_cache_mount(cache, "/m/d/f", 6, &len), 7);
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
    tcase_add_loop_test(t, what_is_not_watched_enough, 0, 10);
    tcase_add_loop_test(t, what_is_watched_enough, 0, 4);
    tcase_add_test(t, a_link_needs_its_own);
    tcase_add_test(t, a_directory_with_access_files_needs_its_own);
    t = unit_add_case(s, "changes", setup, teardown, 0);
    tcase_add_test(t, a_file_changes);
    tcase_add_test(t, a_file_changes_by_another_name);
    tcase_add_test(t, nothing_that_is_known_changes);
    tcase_add_test(t, something_in_a_directory_changes);
    tcase_add_test(t, a_directory_itself_changes);
    tcase_add_test(t, a_name_that_a_link_passes);
    tcase_add_test(t, what_a_link_leads_to);
    tcase_add_test(t, an_access_file_changes);
    tcase_add_test(t, two_paths_of_one_directory);
    tcase_add_test(t, a_file_that_is_replaced_is_closed);
    t = unit_add_case(s, "meanwhile", setup, teardown, 0);
    tcase_add_loop_test(t, what_changed_meanwhile_is_not_believed, 0, 11);
    tcase_add_test(t, what_changed_at_that_moment_is_not_believed);
    tcase_add_test(t, what_changed_elsewhere_meanwhile_is_no_reason);
    tcase_add_test(t, directory_in_which_something_changed_meanwhile);
    tcase_add_test(t, name_of_a_link_that_changed_meanwhile);
    tcase_add_test(t, access_file_that_changed_meanwhile);
    tcase_add_test(t, watch_that_was_given_up_meanwhile);
    t = unit_add_case(s, "end", setup, teardown, 0);
    tcase_add_test(t, nothing_below_is_told_any_more);
    tcase_add_test(t, only_what_is_watched_is_doubted);
    tcase_add_test(t, links_are_doubted_everywhere);
    tcase_add_test(t, watches_are_given_up);
    t = unit_add_case(s, "leases", setup, teardown, 0);
    tcase_add_test(t, lease_of_a_file);
    tcase_add_test(t, lease_taken_after_the_change_holds);
    tcase_add_test(t, lease_of_a_directory);
    tcase_add_test(t, walk_that_finds_a_directorys_times_changed);
    tcase_add_test(t, walk_that_finds_nothing_changed);
    tcase_add_loop_test(t, walk_that_finds_something_changed, 0, 9);
    tcase_add_test(t, what_was_absent_is_there);
    tcase_add_test(t, a_link_leads_elsewhere);
    tcase_add_loop_test(t, what_goes_ends_its_leases, 0, 5);
    tcase_add_test(t, slots_are_given_back);
    tcase_add_test(t, no_slot_left);
    tcase_add_test(t, no_leases_at_all);
    t = unit_add_case(s, "bounds", setup, teardown, 0);
    tcase_add_test(t, use_of_a_lease_keeps_an_entry);
    tcase_add_test(t, use_of_a_directorys_lease_keeps_it);
    tcase_add_test(t, memory_is_bounded);
    tcase_add_test(t, memory_is_counted_right);
    t = unit_add_case(s, "stale", setup, teardown, 0);
    tcase_add_test(t, stale_answers);
    tcase_add_test(t, stale_answers_of_what_is_watched);
    tcase_add_loop_test(t, where_no_stale_answers_are_allowed, 0, 3);
    tcase_add_loop_test(t, what_was_told_to_have_changed_is_never_stale, 0, 8);
    t = unit_add_case(s, "mounts", setup, teardown, 0);
    tcase_add_test(t, mount_of_a_path);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
