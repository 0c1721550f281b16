/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A walk notes every name that it passed on a link's way, in the directory where it passed it.
 */
#include "config.h"
#include "workers/resolve.h"

#include "changes/mount_list.h"
#include "changes/mounts.h"
#include "changes/watch.h"
#include "resolve_kit.h"

static struct fp_mount_list *mount_list;
static struct fp_mounts *mounts;
static struct fp_watch watch;

static void setup_watch(void)
{
    static const struct fp_mount_rule rules[] = { { "/", FP_BY_INOTIFY, -1, -1, -1 } };
    const struct fp_mounts_settings mount_settings = { rules, 1, FP_BY_INOTIFY, 1000, 0, 1000 };

    watch = (struct fp_watch)FP_WATCH_NONE;
    ck_assert(fp_watch_open(&watch));
    mount_list = fp_mount_list_create();
    ck_assert_ptr_nonnull(mount_list);
    mounts = fp_mounts_create(NULL, &mount_settings, mount_list);
    ck_assert_ptr_nonnull(mounts);
    setup();
    settings.mounts = mount_list;
    settings.watch = &watch;
}

static void teardown_watch(void)
{
    teardown();
    fp_mounts_destroy(&mounts);
    fp_watch_close(&watch);
}

static bool same_key(const struct fp_watch_key *a, const struct fp_watch_key *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

static struct fp_watch_key key_of(const char *path)
{
    struct fp_watch_key k;
    struct stat st;
    int fd = open(path, O_PATH | O_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq((int)fp_watch_place(&watch, fd, S_ISDIR(st.st_mode), &k), FP_OK);
    close(fd);
    return k;
}

/* Name number i on the last step's way is exactly that one. */
static void assert_via(unsigned i, const char *place, const char *name)
{
    const struct fp_watch_key k = key_of(place);
    const struct fp_traversed_name *v = &result.traversed[i];

    ck_assert_uint_lt(i, result.n_traversed);
    ck_assert_uint_eq(v->step, answer.n_steps - 1);
    ck_assert_msg(v->len == strlen(name) && memcmp(result.names + v->at, name, v->len) == 0,
                  "name %u is %.*s, not %s", i, (int)v->len, result.names + v->at, name);
    ck_assert_msg(same_key(&v->watch, &k), "name %u, %s, was not passed in %s", i, name, place);
}

/* Takes the watches of links themselves, which have no
 * name, out of the result; returns how many there are. */
static unsigned take_own(void)
{
    const unsigned all = result.n_traversed;
    unsigned n = 0;

    for (unsigned i = 0; i < all; i++) {
        if (result.traversed[i].len > 0)
            result.traversed[n++] = result.traversed[i];
    }
    result.n_traversed = n;
    return all - n;
}

static const struct fp_step_watch *step_watch(void)
{
    return &result.step_watches[answer.n_steps - 1];
}

static void assert_watched(const char *name)
{
    const struct fp_watch_key k = key_of(in_dir(name));

    ck_assert(fp_verdict_is_reported(step_watch()->verdict));
    ck_assert_uint_eq(result.unwatched, 0);
    ck_assert(same_key(&step_watch()->watch, &k));
}

/* True if file systems of the test's directory can be watched at all. */
static bool can_watch(void)
{
    struct statx st;

    ck_assert_int_eq(statx(AT_FDCWD, dir, 0, STATX_MNT_ID, &st), 0);
    if (fp_verdict_is_reported(fp_mount_list_find(mount_list, (uint32_t)st.stx_mnt_id).verdict))
        return true;
    fprintf(stderr, "SKIPPED: %s is not watched\n", dir);
    return false;
}

START_TEST(names_of_a_relative_text)
{
    if (!can_watch())
        return;
    make_tree();
    make_link("b/../dir/./c//..", "a/link");
    resolve("a/link");
    ck_assert_uint_eq(take_own(), 1);
    ck_assert_uint_eq(result.n_traversed, 3);
    assert_via(0, in_dir("a"), "b"); /* where "dir" leads to as well */
    assert_via(1, in_dir("a"), "dir");
    assert_via(2, in_dir("a/b"), "c");
    assert_watched("a/b");
}
END_TEST

/* How many directories on the way are the roots of mounts: a mount may come and go without the name's own. */
static unsigned mounts_above(const char *path)
{
    char part[PATH_MAX];
    unsigned n = 0;

    for (const char *end = strchr(path + 1, '/'); end != NULL; end = strchr(end + 1, '/')) {
        struct statx st;

        snprintf(part, sizeof(part), "%.*s", (int)(end - path), path);
        ck_assert_int_eq(statx(AT_FDCWD, part, 0, 0, &st), 0);
        n += (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    }
    return n;
}

START_TEST(names_of_an_absolute_text)
{
    char text[PATH_MAX], place[PATH_MAX] = "/";
    unsigned n = 0;

    if (!can_watch())
        return;
    make_tree();
    snprintf(text, sizeof(text), "%s", in_dir("a/b/file"));
    make_link(text, "t/link");
    resolve("t/link");
    ck_assert_uint_eq(take_own(), 1 + mounts_above(text));
    if (!fp_verdict_is_reported(step_watch()->verdict)) {
        fprintf(stderr, "SKIPPED: not all above %s is watched\n", dir);
        return;
    }
    for (char *name = strtok(text, "/"); name != NULL; name = strtok(NULL, "/")) {
        assert_via(n++, place, name);
        if (strcmp(place, "/") != 0)
            strcat(place, "/");
        strcat(place, name);
    }
    ck_assert_uint_eq(result.n_traversed, n);
    assert_watched("a/b/file");
}
END_TEST

START_TEST(names_up_to_where_it_ends)
{
    static const struct {
        const char *text, *names[3];
    } rows[] = { { "no/x/y", { "no" } },
                 { "file/x", { "file" } },
                 { "b/no/x", { "b", "no" } },
                 { "dangling", { "dangling", "no" } },
                 { "dir/no", { "dir", "b", "no" } } };

    if (!can_watch())
        return;
    make_tree();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned n = 0;

        make_link(rows[i].text, "a/link");
        resolve("a/link");
        ck_assert_int_ne((int)last()->target_status, FP_OK);
        ck_assert_uint_eq(take_own(), 1);
        for (; n < 3 && rows[i].names[n] != NULL; n++)
            assert_via(n,
                       n > 0 && strcmp(rows[i].names[n], "no") == 0 && strcmp(rows[i].names[n - 1], "b") == 0
                           ? in_dir("a/b")
                           : in_dir("a"),
                       rows[i].names[n]);
        ck_assert_uint_eq(result.n_traversed, n);
        ck_assert(fp_verdict_is_reported(step_watch()->verdict));
        ck_assert_uint_eq(step_watch()->watch.len, 0);
        ck_assert_uint_eq(step_watch()->mount, 0);
        remove_name("a/link");
    }
}
END_TEST

START_TEST(no_names_without_links)
{
    if (!can_watch())
        return;
    make_tree();
    resolve("a/b/file");
    ck_assert_uint_eq(result.n_traversed, 0);
    assert_watched("a/b/file");
    for (unsigned i = 0; i + 1 < answer.n_steps; i++)
        ck_assert(fp_verdict_is_reported(result.step_watches[i].verdict));
    make_link("..", "a/up");
    resolve("a/up");
    ck_assert_uint_eq(take_own(), 1);
    ck_assert_uint_eq(result.n_traversed, 0);
    assert_watched("");
}
END_TEST

/* Each step has its own; the result names the step. */
START_TEST(names_of_several_links)
{
    if (!can_watch())
        return;
    make_tree();
    make_link("a", "l");
    resolve("l/dir/file");
    ck_assert_uint_eq(take_own(), 2);
    ck_assert_uint_eq(result.n_traversed, 2);
    ck_assert_uint_eq(result.traversed[0].step, answer.n_steps - 3);
    ck_assert_uint_eq(result.traversed[1].step, answer.n_steps - 2);
    assert_watched("a/b/file");
}
END_TEST

/* More names than are noted: then the walk promises nothing. */
START_TEST(too_many_names)
{
    char text[8 * FP_MAX_TRAVERSED] = "", name[8];

    if (!can_watch())
        return;
    for (int i = 0; i <= FP_MAX_TRAVERSED; i++) {
        snprintf(name, sizeof(name), "s%d", i);
        make_dir(name);
        sprintf(text + strlen(text), "s%d/../", i);
        if (i == FP_MAX_TRAVERSED - 2) /* one is the link itself */
            make_link(text, "few");
    }
    strcpy(text + strlen(text) - 1, "");
    make_link(text, "many");
    resolve("few");
    ck_assert_uint_eq(result.n_traversed, FP_MAX_TRAVERSED);
    ck_assert(fp_verdict_is_reported(step_watch()->verdict));
    resolve("many");
    ck_assert_uint_eq(result.n_traversed, FP_MAX_TRAVERSED);
    ck_assert_int_eq((int)step_watch()->verdict, (int)FP_EACH_REQUEST);
    ck_assert_int_eq((int)last()->target_status, FP_OK);
}
END_TEST

/* A circle passes the same names until the kernel gives up. */
START_TEST(names_of_a_circle)
{
    if (!can_watch())
        return;
    make_tree();
    assert_leads("a/loop1", FP_LOOP);
    ck_assert(fp_verdict_is_reported(step_watch()->verdict));
    ck_assert_uint_eq(take_own(), 1);
    ck_assert_uint_eq(result.n_traversed, 2);
    assert_via(0, in_dir("a"), "loop2");
    assert_via(1, in_dir("a"), "loop1");
}
END_TEST

/* Where changes are not reported, they may go unnoticed. */
START_TEST(names_where_nothing_is_watched)
{
    if (!can_watch())
        return;
    make_tree();
    make_link("/proc/version", "link");
    assert_leads("link", FP_OK);
    ck_assert_int_eq((int)step_watch()->verdict, (int)FP_TTL_UNREPORTED);
    ck_assert_uint_eq(step_watch()->watch.len, 0);
    settings.mounts = NULL;
    resolve("a/dir");
    ck_assert_int_eq((int)step_watch()->verdict, (int)FP_TTL_UNREPORTED);
    ck_assert_uint_eq(result.n_traversed, 0);
}
END_TEST

static struct fp_watch_key told_key;
static char told_name[FP_MAX_NAME + 1];

static void on_changed(void *ctx, const struct fp_watch_key *key, const char *name, size_t len, bool replaced)
{
    (void)ctx;
    if (!replaced)
        return;
    told_key = *key;
    memcpy(told_name, name, len);
    told_name[len] = '\0';
}

static void on_gone(void *ctx, const struct fp_watch_key *key)
{
    (void)ctx;
    (void)key;
}

static void on_lost(void *ctx)
{
    (void)ctx;
    ck_abort_msg("events were lost");
}

/* The switch of a release: the event is that of the noted name. */
START_TEST(event_of_a_name_that_was_passed)
{
    static const struct fp_watch_ops ops = { on_changed, on_gone, on_lost, NULL };

    if (!can_watch())
        return;
    for_each_name(make_dir, "releases releases/41 releases/42");
    make_link("releases/41", "current");
    make_link("current/.", "htdocs");
    resolve("htdocs");
    fp_watch_drain(&watch, &ops, NULL);
    make_link("releases/42", "new");
    ck_assert_int_eq(rename(in_dir("new"), in_dir("current")), 0);
    fp_watch_drain(&watch, &ops, NULL);
    ck_assert_str_eq(told_name, "current");
    take_own();
    assert_via(0, dir, "current");
    ck_assert(same_key(&told_key, &result.traversed[0].watch));
}
END_TEST

/* ---- walks that fail ---- */

/* A key for each watch that the kernel has, or the daemon could not end all of them. */
static void assert_all_keys_are_in_the_result(void)
{
    char name[64], line[512];
    unsigned watches = 0;
    FILE *list;
    int wd;

    snprintf(name, sizeof(name), "/proc/self/fdinfo/%d", watch.inotify);
    list = fopen(name, "re");
    ck_assert_ptr_nonnull(mount_list);
    while (fgets(line, sizeof(line), list) != NULL) {
        bool found = false;

        if (sscanf(line, "inotify wd:%x", (unsigned *)&wd) != 1)
            continue;
        watches++;
        for (unsigned i = 0; i < result.n_steps; i++)
            found = found || memcmp(result.step_watches[i].watch.bytes, &wd, sizeof(wd)) == 0;
        for (unsigned i = 0; i < result.n_traversed; i++)
            found = found || memcmp(result.traversed[i].watch.bytes, &wd, sizeof(wd)) == 0;
        ck_assert_msg(found, "no key for watch %d", wd);
    }
    fclose(list);
    ck_assert_uint_gt(watches, 3);
}

/* Also of those that a link's text leaves again, and of a text with more names than are noted. */
START_TEST(each_watch_is_in_the_result)
{
    char text[512] = "";

    make_tree();
    make_link("../a/b/c/../../b/../../t/./file", "t/back");
    resolve("t/back");
    ck_assert_int_eq((int)answer.status, FP_OK);
    assert_all_keys_are_in_the_result();
    for (int i = 0; i < FP_MAX_TRAVERSED + 8; i++) {
        const size_t len = strlen(text);
        char name[16];

        snprintf(name, sizeof(name), "t/d%d", i);
        make_dir(name);
        snprintf(text + len, sizeof(text) - len, "d%d/../", i);
    }
    strcat(text, "file");
    make_link(text, "t/long");
    fp_watch_close(&watch);
    ck_assert(fp_watch_open(&watch));
    resolve("t/long");
    ck_assert_int_eq((int)answer.status, FP_OK);
    ck_assert_int_eq((int)result.step_watches[result.n_steps - 1].verdict, (int)FP_EACH_REQUEST);
    assert_all_keys_are_in_the_result();
}
END_TEST

START_TEST(a_refused_walk_names_its_watches)
{
    const char *roots[2] = { NULL, NULL };

    make_tree();
    make_link("../a/b/file", "t/out");
    roots[0] = strdup(in_dir("t"));
    settings.roots = roots;
    resolve("t/out");
    ck_assert_int_eq((int)answer.status, FP_REFUSED);
    ck_assert_uint_eq(answer.n_steps, 0);
    assert_all_keys_are_in_the_result();
    free((void *)(uintptr_t)roots[0]);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("resolve_names");
    TCase *t = unit_add_case(s, "names", setup_watch, teardown_watch, 0);

    tcase_add_test(t, names_of_a_relative_text);
    tcase_add_test(t, names_of_an_absolute_text);
    tcase_add_test(t, names_up_to_where_it_ends);
    tcase_add_test(t, no_names_without_links);
    tcase_add_test(t, names_of_several_links);
    tcase_add_test(t, too_many_names);
    tcase_add_test(t, names_of_a_circle);
    tcase_add_test(t, names_where_nothing_is_watched);
    tcase_add_test(t, event_of_a_name_that_was_passed);
    tcase_add_test(t, each_watch_is_in_the_result);
    tcase_add_test(t, a_refused_walk_names_its_watches);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
