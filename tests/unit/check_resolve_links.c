/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links are followed name by name here. The result must be the kernel's.
 */
#include "config.h"
#include "workers/resolve.h"

#include <sched.h>
#include <sys/mount.h>

#include "resolve_kit.h"

#define MOST_LINKS 40

/* ---- as the kernel does ---- */

static void assert_status(fp_status st, int done, const char *path)
{
    const fp_status expected = done == 0 ? FP_OK : fp_status_from_errno(errno);
    char text[PATH_MAX];
    ssize_t n = readlink(path, text, sizeof(text));

    ck_assert_msg(st == expected, "%s, a link to \"%.*s\": %d, not %d", path, n > 0 && n < 100 ? (int)n : 0,
                  text, (int)st, (int)expected);
}

static void assert_same_thing(const struct fp_meta *m, const struct stat *st)
{
    ck_assert_uint_eq(m->mode, st->st_mode);
    ck_assert_uint_eq(m->uid, st->st_uid);
    ck_assert_uint_eq(m->dev, st->st_dev);
    ck_assert_uint_eq(m->ino, st->st_ino);
}

/* The directories above, and /proc, may change during the walk. */
static void assert_steps_in_dir(const char *path)
{
    char part[PATH_MAX];
    struct stat st;

    for (unsigned i = 0; i < answer.n_steps; i++) {
        const struct fp_step *s = &answer.steps[i];

        if (s->end <= strlen(dir))
            continue;
        snprintf(part, sizeof(part), "%.*s", (int)s->end, path);
        assert_status(s->status, lstat(part, &st), part);
        if (s->status != FP_OK)
            continue;
        assert_same_thing(&s->self, &st);
        if (!S_ISLNK(st.st_mode))
            continue;
        assert_status(s->target_status, stat(part, &st), part);
        if (s->target_status == FP_OK)
            assert_same_thing(&s->target, &st);
    }
}

/* Every step has the results of lstat(2) and stat(2) for that part of the path. */
static void assert_as_kernel(const char *name)
{
    struct stat st;

    resolve(name);
    assert_steps_in_dir(in_dir(name));
    if (stat(in_dir(name), &st) == 0) {
        ck_assert_uint_eq(last()->end, strlen(in_dir(name)));
        ck_assert_ptr_nonnull(fp_step_target(last()));
        ck_assert_uint_eq(fp_step_target(last())->ino, st.st_ino);
        ck_assert_uint_eq(fp_step_target(last())->dev, st.st_dev);
        ck_assert_int_eq(answer.fd != -1, S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
    } else {
        ck_assert_int_eq(answer.fd, -1);
    }
    ck_assert_int_eq(unit_open_fds(), fds_at_rest + (answer.fd != -1));
}

/* clang-format would give each of them a line. */
/* clang-format off */
static const char *const texts[] = {
    "file", "./file", "././/file", "b", "b/", "b//", "b/.", "b/./", "b/..", "b/../", "b/../file",
    "b/c/../file", "b/c/../../file", "..", "../", "../t", "../t/file", "../t/", "../a/b/../file",
    "../../../../../../../../../../../..", "../../../../../../../../../../../../proc/version",
    ".", "./", "./.", "b///file", ".//b//file", "near", "near/", "dir", "dir/", "dir/file",
    "dir/..", "dir/../t", "dir/../file", "dir/../dir/file", "dir/./file", "/", "//", "///", "/.",
    "/..", "/proc", "/proc/", "/proc/version", "//proc//version", "/../proc/version",
    "/no/such/name", "no", "no/", "no/.", "no/..", "no/file", "b/no", "b/no/../file", "file/",
    "file/.", "file/..", "file/x", "file/../file", "near/x", "near/..", "fifo", "fifo/",
    "dangling", "dangling/", "dangling/..", "loop1", "loop1/", "loop2/x", "self", "self/..",
    "b/c/..", "...", ".hidden", "..b", " ", "b/c/../c/../c/../file", "/dev/null", "/dev/null/"
};
/* clang-format on */

START_TEST(every_kind_of_text)
{
    make_tree();
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        make_link(texts[i], "a/link");
        for_each_name(assert_as_kernel, "a/link a/link/file a/link/b/file a/link/no");
        remove_name("a/link");
    }
}
END_TEST

/* Absolute ones into the same tree, and links to each of them. */
START_TEST(every_kind_of_text_by_another_link)
{
    char text[PATH_MAX];

    make_tree();
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        make_link(texts[i], "a/link");
        make_link("../a/link", "t/second");
        ck_assert_int_lt(snprintf(text, sizeof(text), "%s/", in_dir("t/second")), PATH_MAX);
        make_link(text, "third");
        make_link("third/../link", "fourth");
        make_link("a/link/file", "fifth");
        for_each_name(assert_as_kernel, "t/second third third/file fourth fifth");
        for_each_name(remove_name, "a/link t/second third fourth fifth");
    }
}
END_TEST

/* "l1" leads to "l2" and so on to the file: the kernel follows 40. */
START_TEST(as_many_links_as_the_kernel_follows)
{
    char from[16], to[16];

    unit_write_file(in_dir("l0"), "content");
    for (int i = 1; i <= MOST_LINKS + 2; i++) {
        snprintf(from, sizeof(from), "l%d", i);
        snprintf(to, sizeof(to), "l%d", i - 1);
        make_link(to, from);
        assert_as_kernel(from);
    }
    resolve("l40");
    assert_open("content");
    assert_leads("l41", FP_LOOP);
}
END_TEST

/* The number is of all of them, not of those that lie in one another. */
START_TEST(as_many_links_side_by_side)
{
    char text[16 * MOST_LINKS];

    make_dir("d");
    make_link(".", "d/s");
    unit_write_file(in_dir("d/file"), "content");
    for (int n = MOST_LINKS - 3; n <= MOST_LINKS + 1; n++) {
        strcpy(text, "d/");
        for (int i = 0; i < n; i++)
            strcat(text, "s/");
        strcat(text, "file");
        make_link(text, "link");
        assert_as_kernel("link");
        remove_name("link");
    }
}
END_TEST

/* Links that lead to it one after another, NAME1 first.  It lies where they do. */
static void make_chain(const char *name, int n, const char *end)
{
    char from[32], to[32];

    for (int i = 1; i <= n; i++) {
        snprintf(from, sizeof(from), "%s%d", name, i);
        snprintf(to, sizeof(to), "%s%d", strrchr(name, '/') != NULL ? strrchr(name, '/') + 1 : name, i + 1);
        make_link(i < n ? to : end, from);
    }
}

static void assert_links(unsigned n)
{
    ck_assert_uint_eq(result.step_watches[answer.n_steps - 1].links, n);
}

/* The kernel counts the links of all of a path. */
START_TEST(as_many_links_on_a_whole_path)
{
    char name[64];

    for_each_name(make_dir, "d d/e");
    unit_write_file(in_dir("d/e/file"), "content");
    make_chain("x", MOST_LINKS, "d");
    make_chain("d/y", MOST_LINKS, "e");
    make_chain("d/e/z", MOST_LINKS, "file");
    make_link(in_dir("x39"), "absolute");
    for (int first = 1; first <= MOST_LINKS; first += 13) {
        for (int second = MOST_LINKS - first - 1; second <= MOST_LINKS - first + 2; second++) {
            for (int third = MOST_LINKS - 2; third <= MOST_LINKS; third++) {
                const int at_x = MOST_LINKS + 1 - first, at_y = MOST_LINKS + 1 - second;

                if (at_y < 1 || at_y > MOST_LINKS)
                    continue;
                snprintf(name, sizeof(name), "x%d/y%d/z%d", at_x, at_y, third);
                assert_as_kernel(name);
                snprintf(name, sizeof(name), "x%d/y%d/file", at_x, at_y);
                assert_as_kernel(name);
                snprintf(name, sizeof(name), "x%d/e/no", at_x);
                assert_as_kernel(name);
            }
        }
    }
    for_each_name(assert_as_kernel,
                  "absolute/y4 absolute/y3 absolute/y5/z40 absolute/y5/z39 absolute/y5/file");
    resolve("x21/y21");
    assert_links(MOST_LINKS);
    assert_leads("x21/y20", FP_LOOP);
    resolve("x21/e/file");
    assert_links(20);
}
END_TEST

/* httpd opens an access file by its whole path. */
START_TEST(as_many_links_to_an_access_file)
{
    const struct fp_task names = { .names = { 2, { { "p1", 2 }, { "p2", 2 } } } };
    struct stat st;

    make_dir("d");
    unit_write_file(in_dir("d/file"), "content");
    make_chain("x", 25, "d");
    make_chain("d/p", 16, "file");
    ck_assert_int_eq(stat(in_dir("x1/p1"), &st), -1);
    ck_assert_int_eq(errno, ELOOP);
    ck_assert_int_eq(stat(in_dir("x1/p2"), &st), 0);
    resolve_as_asked("x1", names);
    ck_assert_int_eq((int)last()->access[0].status, FP_LOOP);
    ck_assert_int_eq((int)last()->access[1].status, FP_OK);
    resolve_as_asked("x2", names);
    ck_assert_int_eq((int)last()->access[0].status, FP_OK);
}
END_TEST

START_TEST(very_long_texts)
{
    char *text = malloc(PATH_MAX);

    make_dir("d");
    unit_write_file(in_dir("d/file"), "content");
    make_link("d", "e");
    for (int i = 0; i < 40; i++) {
        const size_t len = (size_t)(PATH_MAX - 1 - i * 100);

        /* "d/././.../file" in that many bytes, or "d////...file". */
        memset(text, '/', len);
        for (size_t k = 0; _i == 0 && k + 1 < len; k += 2)
            memcpy(text + k, "./", 2);
        memcpy(text, "d/", 2);
        memcpy(text + len - 5, "/file", 5);
        text[len] = '\0';
        make_link(text, "link");
        assert_as_kernel("link");
        resolve("link");
        assert_open("content");
        remove_name("link");
    }
    free(text);
}
END_TEST

/* One after the other they have more names than a walk takes, though the kernel follows them in milliseconds. */
START_TEST(many_very_long_texts)
{
    char *text = malloc(PATH_MAX), name[16];

    unit_write_file(in_dir("file"), "content");
    make_link("file", "l0");
    for (int i = 1; i <= 3; i++) {
        snprintf(name, sizeof(name), "l%d", i - 1);
        for (int k = 0; k < 4080; k += 2)
            memcpy(text + k, "./", 2);
        memcpy(text + 4080, name, strlen(name) + 1);
        snprintf(name, sizeof(name), "l%d", i);
        make_link(text, name);
        ck_assert_int_eq(access(in_dir(name), R_OK), 0);
        resolve_as_asked(name, (struct fp_task){ .base_len = 0 });
        ck_assert_int_eq((int)answer.status, i < 3 ? FP_OK : FP_REFUSED);
    }
    free(text);
}
END_TEST

/* Texts add up while some is left of each. */
START_TEST(long_texts_behind_one_another)
{
    char *text = malloc(PATH_MAX), name[16];

    unit_write_file(in_dir("file"), "content");
    make_link(".", "l0");
    for (int i = 1; i <= 5; i++) {
        const size_t len = 3000;

        snprintf(name, sizeof(name), "l%d", i - 1);
        memset(text, '/', len);
        memcpy(text, name, strlen(name));
        text[len] = '\0';
        snprintf(name, sizeof(name), "l%d", i);
        make_link(text, name);
        resolve(name);
        /* Where it is too much for the walk, it says nothing of the path. */
        if (answer.status != FP_REFUSED)
            assert_as_kernel(name);
        ck_assert_int_eq(answer.status == FP_REFUSED, i > 2);
    }
    free(text);
}
END_TEST

START_TEST(names_that_are_too_long)
{
    char text[FP_MAX_NAME + 10];

    for (size_t len = FP_MAX_NAME - 1; len < FP_MAX_NAME + 5; len++) {
        memset(text, 'n', len);
        text[len] = '\0';
        make_link(text, "link");
        assert_as_kernel("link");
        remove_name("link");
    }
}
END_TEST

/* ---- rights; root has them all, so another user asks ---- */

START_TEST(through_directories_without_rights)
{
    static const mode_t modes[] = { 0755, 0711, 0644, 0600, 0000, 0111, 0444 };

    for_each_name(make_dir, "d d/e");
    unit_write_file(in_dir("d/file"), "content");
    unit_write_file(in_dir("d/e/file"), "deeper");
    make_link("d", "dir");
    make_link("d/file", "file");
    make_link("d/e", "deep");
    make_link("d/e/../file", "up");
    make_link("d/..", "back");
    make_link("d/.", "here");
    make_link("d/no", "no");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        ck_assert_int_eq(chmod(in_dir("d"), modes[i]), 0);
        become_nobody();
        for_each_name(assert_as_kernel, "dir dir/file dir/e/file file deep deep/file up back back/d here no");
        become_root_again();
    }
    ck_assert_int_eq(chmod(in_dir("d"), 0755), 0);
}
END_TEST

/* ---- protected_symlinks (proc(5)) ---- */

/* A sticky directory for all, with links of another owner than the asking user. */
static void make_sticky(mode_t mode, uid_t owner, uid_t links)
{
    for_each_name(make_dir, "sticky d");
    unit_write_file(in_dir("d/file"), "content");
    make_link("../d/file", "sticky/file");
    make_link("../d", "sticky/dir");
    make_link("file", "sticky/second");
    make_link("sticky/file", "out");
    make_link("sticky/dir", "outdir");
    make_link("sticky/second", "outsecond");
    ck_assert_int_eq(lchown(in_dir("sticky/file"), links, links), 0);
    ck_assert_int_eq(lchown(in_dir("sticky/dir"), links, links), 0);
    ck_assert_int_eq(lchown(in_dir("sticky/second"), links, links), 0);
    ck_assert_int_eq(chown(in_dir("sticky"), owner, owner), 0);
    ck_assert_int_eq(chmod(in_dir("sticky"), mode), 0);
}

static void remove_sticky(void)
{
    ck_assert_int_eq(nftw(in_dir("sticky"), unit_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    ck_assert_int_eq(nftw(in_dir("d"), unit_remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
    for_each_name(remove_name, "out outdir outsecond");
}

/* Whether the kernel would follow depends on its own rule, and on what ends at the link. */
static void assert_left_to_httpd(const char *name)
{
    assert_refused(in_dir(name));
}

/* Of every mode and owner: as the kernel, or left to it. */
START_TEST(links_in_sticky_directories)
{
    static const mode_t modes[] = { 01777, 0777, 01775, 01755 };
    static const uid_t users[] = { 0, UNIT_NOBODY, 1234 };
    unsigned left = 0;

    if (geteuid() != 0) {
        fprintf(stderr, "SKIPPED: links of other users cannot be made\n");
        return;
    }
    for (unsigned i = 0; i < 4 * 3 * 3; i++) {
        const mode_t mode = modes[i % 4];
        const uid_t owner = users[i / 4 % 3], links = users[i / 12];
        const bool ruled = mode == 01777 && links != owner && links != UNIT_NOBODY;

        make_sticky(mode, owner, links);
        become_nobody();
        for_each_name(
            ruled ? assert_left_to_httpd : assert_as_kernel,
            "sticky/file sticky/dir sticky/second out outdir outsecond sticky/dir/file outdir/file");
        left += ruled;
        become_root_again();
        remove_sticky();
    }
    ck_assert_uint_eq(left, 4);
}
END_TEST

/* The rule is about the last name of a path alone, in a text as well. */
START_TEST(links_in_the_middle_of_a_text)
{
    if (geteuid() != 0)
        return;
    make_sticky(01777, 0, 1234);
    make_link("sticky/dir/file", "through");
    make_link("sticky/dir/", "slash");
    make_link("sticky/dir/.", "dot");
    make_link("sticky/dir/..", "up");
    become_nobody();
    for_each_name(assert_as_kernel, "through dot up");
    assert_left_to_httpd("slash");
    become_root_again();
}
END_TEST

/* ---- /proc, where each process finds its own files ---- */

START_TEST(processes_in_proc)
{
    static const char *const files[] = { "/proc/1", "/proc/1/comm", "/proc/9999999" };
    static const char *const kept[] = { "/proc/version", "/proc/sys/kernel/osrelease" };
    char own[2][32];

    snprintf(own[0], sizeof(own[0]), "/proc/%d/maps", (int)getpid());
    snprintf(own[1], sizeof(own[1]), "/proc/%d/fd", (int)getpid());
    for (size_t i = 0; i < 5; i++) {
        const char *path = i < 3 ? files[i] : own[i - 3];

        make_link(path, "process");
        assert_left_to_httpd("process");
        assert_refused(path);
        remove_name("process");
    }
    for (size_t i = 0; i < 2; i++) {
        make_link(kept[i], "kept");
        assert_as_kernel("kept");
        remove_name("kept");
    }
}
END_TEST

START_TEST(links_in_proc)
{
    static const char *const own[] = { "/proc/self", "/proc/self/comm", "/proc/self/exe",
                                       "/proc/self/root/dev" };

    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        make_link(own[i], "own");
        assert_left_to_httpd("own");
        assert_refused(own[i]);
        remove_name("own");
    }
}
END_TEST

/* ---- nosymfollow (mount(8)) ---- */

#ifndef MS_NOSYMFOLLOW
#define MS_NOSYMFOLLOW 256
#endif

/* The kernel knows of a mount that the table of mounts does
 * not show: it changes just now, or there are too many. */
START_TEST(links_on_a_mount_that_is_not_known)
{
    make_dir("strict");
    if (unshare(CLONE_NEWNS) == -1 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1
        || mount("unit", in_dir("strict"), "tmpfs", MS_NOSYMFOLLOW, "size=64k") == -1) {
        fprintf(stderr, "SKIPPED: needs root and Linux 5.10\n");
        return;
    }
    fp_close(&resolver.slash); /* of the namespace before */
    resolver.slash = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    unit_write_file(in_dir("strict/file"), "content");
    make_link("file", "strict/link");
    make_link("strict/file", "out");
    assert_leads("strict/link", FP_LOOP);
    assert_file("out", "content");
    ck_assert_int_eq(umount2(in_dir("strict"), MNT_DETACH), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("resolve_links");
    TCase *t = add_case(s, "as_the_kernel");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, every_kind_of_text);
    tcase_add_test(t, every_kind_of_text_by_another_link);
    tcase_add_test(t, as_many_links_as_the_kernel_follows);
    tcase_add_test(t, as_many_links_side_by_side);
    tcase_add_test(t, as_many_links_on_a_whole_path);
    tcase_add_test(t, as_many_links_to_an_access_file);
    tcase_add_loop_test(t, very_long_texts, 0, 2);
    tcase_add_test(t, many_very_long_texts);
    tcase_add_test(t, long_texts_behind_one_another);
    tcase_add_test(t, names_that_are_too_long);
    t = add_case(s, "rights");
    tcase_add_test(t, through_directories_without_rights);
    tcase_add_test(t, links_in_sticky_directories);
    tcase_add_test(t, links_in_the_middle_of_a_text);
    tcase_add_test(t, links_in_proc);
    tcase_add_test(t, processes_in_proc);
    tcase_add_test(t, links_on_a_mount_that_is_not_known);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
