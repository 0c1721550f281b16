/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks as workers make them: from a base, for access files, of a known file; with few descriptors
 * and among changes.
 */
#include "config.h"
#include "workers/resolve.h"

#include <dlfcn.h>

#include "resolve_kit.h"

/* The look at which the file system fails; 0: at none. */
static unsigned fail_at, looks;
/* A change between each open and the look at the descriptor, as long as there are some left. */
static unsigned changes, opened;

static void change_after_open(int fd)
{
    struct stat st;

    if ((fcntl(fd, F_GETFL) & O_PATH) != 0 || fstat(fd, &st) == -1 || !S_ISREG(st.st_mode))
        return;
    opened++;
    if (changes == 0)
        return;
    changes--;
    ck_assert_int_eq(fchmod(fd, st.st_mode ^ S_IXUSR), 0);
}

int statx(int at, const char *restrict name, int flags, unsigned mask, struct statx *restrict st)
{
    static int (*real)(int, const char *, int, unsigned, struct statx *);

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "statx");
    if (*name == '\0')
        change_after_open(at);
    /* Which mount it is, the file system is not asked. */
    if (fail_at != 0 && (mask & STATX_BASIC_STATS) == STATX_BASIC_STATS && ++looks == fail_at) {
        errno = ESTALE;
        return -1;
    }
    return real(at, name, flags, mask, st);
}

/* ---- descriptors ---- */

/* With few descriptors the answer is right or says busy, never "absent". */
static void assert_with_few_descriptors(const char *name)
{
    bool busy = false, open = false;

    for (unsigned n = 0; n < 8; n++) {
        struct rlimit before = unit_leave_fds(n);

        resolve_task(in_dir(name), strlen(in_dir(name)));
        unit_restore_fds(&before);
        if (answer.status == FP_OK) {
            assert_open("content");
            open = true;
        } else {
            assert_no_answer(FP_BUSY);
            busy = true;
        }
        fp_close(&answer.fd);
        ck_assert_int_eq(unit_open_fds(), fds_at_rest);
    }
    ck_assert(busy);
    ck_assert(open);
}

START_TEST(no_descriptors_free)
{
    make_dir("d");
    unit_write_file(in_dir("d/file"), "content");
    make_link("d", "l");
    make_link("l/file", "ll");
    assert_with_few_descriptors("d/file");
    assert_with_few_descriptors("l/file");
    assert_with_few_descriptors("ll");
}
END_TEST

START_TEST(every_descriptor_is_closed)
{
    static const char *const names[] = { "d", "d/file", "d/no",     "no/x", "l/file",
                                         "b", "b/x",    "d/file/x", "fifo" };

    make_dir("d");
    unit_write_file(in_dir("d/file"), "content");
    make_link("d", "l");
    make_link("no", "b");
    ck_assert_int_eq(mkfifo(in_dir("fifo"), 0644), 0);
    for (size_t i = 0; i < 20 * sizeof(names) / sizeof(names[0]); i++) {
        resolve(names[i % (sizeof(names) / sizeof(names[0]))]);
        ck_assert_int_eq(unit_open_fds(), fds_at_rest + (answer.fd != -1));
    }
}
END_TEST

START_TEST(local_or_not)
{
    unit_write_file(in_dir("file"), "content");
    resolve("file");
    resolve_path("/proc/version");
    ck_assert_int_ne(answer.fd, -1);
    ck_assert(!answer.local);
    resolve_path("/");
    ck_assert(!answer.local);
    resolve("no");
    ck_assert(!answer.local);
}
END_TEST

/* ---- changes meanwhile ---- */

static void keep_replacing(void)
{
    for (;;) {
        unit_write_file(in_dir("new"), "short");
        if (rename(in_dir("new"), in_dir("file")) == -1)
            _exit(1);
        unit_write_file(in_dir("new"), "rather longer");
        if (rename(in_dir("new"), in_dir("file")) == -1)
            _exit(1);
    }
}

START_TEST(metadata_and_descriptor_are_of_one_file)
{
    const uint64_t end = unit_now_ms() + 500;
    pid_t pid;

    unit_write_file(in_dir("file"), "short");
    make_link("file", "link");
    pid = fork();
    if (pid == 0)
        keep_replacing();
    for (int i = 0; unit_now_ms() < end; i++) {
        struct stat st;

        resolve(i % 2 == 0 ? "file" : "link");
        ck_assert_int_eq((int)answer.status, FP_OK);
        ck_assert_int_ne(answer.fd, -1);
        ck_assert_int_eq(fstat(answer.fd, &st), 0);
        ck_assert_uint_eq(fp_step_target(last())->ino, st.st_ino);
        ck_assert_uint_eq(fp_step_target(last())->size, (uint64_t)st.st_size);
        assert_content(st.st_size == 5 ? "short" : "rather longer");
    }
    kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

/* The daemon must be able to take every answer of a worker. */
static void assert_can_be_told(const char *path)
{
    static uint8_t buf[FP_MAX_FRAME];
    static struct fp_answer told;
    static struct fp_walk_result told_trail;
    const struct fp_task t = { .lookup = { .path = path, .path_len = strlen(path) } };
    struct fp_writer w;
    struct fp_frame f;

    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_result_encode(&w, 1, &answer, &result), FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, w.len), FP_OK);
    ck_assert_msg(fp_result_decode(&f.body, &t, answer.fd, &told, &told_trail) == FP_OK,
                  "answer with status %d and %u steps, look %u", (int)answer.status, answer.n_steps, fail_at);
}

START_TEST(file_system_that_fails)
{
    static const char *const names[] = { "d/file", "l/file", "d/l", "l" };

    make_dir("d");
    unit_write_file(in_dir("d/file"), "content");
    make_link("d", "l");
    make_link("file", "d/l");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        for (fail_at = 1;; fail_at++) {
            looks = 0;
            resolve(names[i]);
            assert_can_be_told(in_dir(names[i]));
            if (looks < fail_at)
                break;
            /* The answer has nothing but the failure. */
            if (answer.status == FP_OK)
                ck_assert(last()->status == FP_IOERROR || last()->target_status == FP_IOERROR);
            ck_assert_int_eq(answer.fd, -1);
            ck_assert_int_eq(unit_open_fds(), fds_at_rest);
        }
        ck_assert_int_ne(answer.fd, -1);
    }
    fail_at = 0;
}
END_TEST

/* ---- from a base ---- */

static int open_place(const char *name)
{
    int fd = open(in_dir(name), O_PATH | O_DIRECTORY | O_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    return fd;
}

static uint8_t base_links;

static void resolve_from(int base, const char *base_name, const char *name)
{
    const char *path = unit_join(in_dir(base_name), name);
    const struct fp_task t = {
        .lookup = { .path = path, .path_len = strlen(path) },
        .base_len = strlen(in_dir(base_name)),
        .base_links = base_links,
    };

    fp_close(&answer.fd);
    memset(&answer, 0xa5, sizeof(answer));
    walk(&t, base);
    if (answer.status == FP_OK)
        ck_assert_uint_gt(answer.steps[0].end, t.base_len);
}

START_TEST(walk_from_a_base)
{
    int base;

    for_each_name(make_dir, "d d/e");
    unit_write_file(in_dir("d/file"), "content");
    unit_write_file(in_dir("d/e/file"), "deeper");
    base = open_place("d");
    resolve_from(base, "d", "file");
    ck_assert_uint_eq(answer.n_steps, 1);
    ck_assert_uint_eq(last()->end, strlen(in_dir("d/file")));
    assert_steps(in_dir("d/file"));
    assert_open("content");
    resolve_from(base, "d", "e/file");
    ck_assert_uint_eq(answer.n_steps, 2);
    assert_steps(in_dir("d/e/file"));
    assert_open("deeper");
    resolve_from(base, "d", "no");
    ck_assert_int_eq((int)last()->status, FP_ABSENT);
    resolve_from(base, "d", "e");
    assert_place_or_nothing();
    close(base);
}
END_TEST

/* Those above the base count as if the walk had passed them. */
START_TEST(links_above_the_base)
{
    int base;

    make_dir("d");
    unit_write_file(in_dir("d/file"), "content");
    make_link("file", "d/last");
    make_link("last", "d/first");
    base = open_place("d");
    base_links = 38;
    resolve_from(base, "d", "first");
    assert_open("content");
    ck_assert_uint_eq(result.step_watches[0].links, 40);
    resolve_from(base, "d", "file");
    ck_assert_uint_eq(result.step_watches[0].links, 38);
    base_links = 39;
    resolve_from(base, "d", "last");
    assert_open("content");
    resolve_from(base, "d", "first");
    ck_assert_int_eq((int)last()->status, FP_OK);
    ck_assert_int_eq((int)last()->target_status, FP_LOOP);
    base_links = 0;
    close(base);
}
END_TEST

START_TEST(walk_from_slash)
{
    const struct fp_task t = { .lookup = { .path = "/proc/version", .path_len = 13 }, .base_len = 1 };

    walk(&t, resolver.slash);
    ck_assert_uint_eq(answer.n_steps, 2);
    ck_assert_uint_eq(answer.steps[0].end, 5);
    ck_assert_int_ne(answer.fd, -1);
}
END_TEST

/* The descriptor counts, whatever bears the name by now. */
START_TEST(base_that_was_renamed)
{
    int base;

    make_dir("d");
    unit_write_file(in_dir("d/file"), "content");
    base = open_place("d");
    ck_assert_int_eq(rename(in_dir("d"), in_dir("old")), 0);
    make_dir("d");
    unit_write_file(in_dir("d/file"), "another");
    resolve_from(base, "d", "file");
    assert_open("content");
    close(base);
}
END_TEST

/* Its path may stand for another directory by now, in which the name is. */
START_TEST(base_that_was_removed)
{
    int base;

    make_dir("d");
    base = open_place("d");
    ck_assert_int_eq(rmdir(in_dir("d")), 0);
    for (int i = 0; i < 2; i++) {
        resolve_from(base, "d", i == 0 ? "file" : "e/file");
        ck_assert_uint_eq(answer.n_steps, 1);
        ck_assert_int_eq((int)last()->status, FP_IOERROR);
    }
    close(base);
}
END_TEST

START_TEST(base_outside_the_roots)
{
    const char *roots[2] = { strdup(in_dir("site")), NULL };
    int base;

    for_each_name(make_dir, "site private");
    unit_write_file(in_dir("private/file"), "private");
    make_link("../private", "site/link");
    base = open_place("private");
    settings.roots = roots;
    resolve_from(base, "private", "file");
    assert_no_answer(FP_REFUSED);
    /* A directory that a link inside the roots led to. */
    resolve_from(base, "site/link", "file");
    assert_no_answer(FP_REFUSED);
    close(base);
    free((void *)(uintptr_t)roots[0]);
}
END_TEST

START_TEST(base_stays_the_callers)
{
    int base;

    make_dir("d");
    base = open_place("d");
    for (int i = 0; i < 20; i++) {
        resolve_from(base, "d", i % 2 == 0 ? "no" : "no/x");
        ck_assert(unit_is_open(base));
    }
    close(base);
}
END_TEST

/* ---- a known file ---- */

static void resolve_known(const char *name, const struct fp_meta *known)
{
    resolve_as_asked(name, (struct fp_task){ .has_known = true, .known = *known });
}

START_TEST(file_that_is_only_looked_at_is_not_opened)
{
    struct fp_meta known;

    unit_write_file(in_dir("file"), "content");
    make_link("file", "link");
    resolve_as_asked("file", (struct fp_task){ .looks_only = true, .content_max = 100 });
    ck_assert(answer.unchanged && !answer.content);
    ck_assert_int_eq(answer.fd, -1);
    ck_assert_uint_eq(last()->self.size, 7);
    known = last()->self;
    known.size++;
    resolve_as_asked("file", (struct fp_task){ .looks_only = true, .has_known = true, .known = known });
    ck_assert(answer.unchanged);
    resolve_as_asked("link", (struct fp_task){ .looks_only = true });
    ck_assert_int_ge(answer.fd, 0);
    /* A directory is to begin other walks at. */
    resolve_as_asked(".", (struct fp_task){ .looks_only = true });
    ck_assert_int_ge(answer.fd, 0);
}
END_TEST

START_TEST(unchanged_file_is_not_opened)
{
    struct fp_meta known;

    unit_write_file(in_dir("file"), "content");
    make_link("file", "link");
    resolve("file");
    known = last()->self;
    resolve_known("file", &known);
    ck_assert(answer.unchanged);
    ck_assert_int_eq(answer.fd, -1);
    ck_assert_uint_eq(last()->self.size, 7);
    /* A link is opened: it may lead elsewhere next time. */
    resolve_known("link", &known);
    ck_assert(!answer.unchanged);
    assert_open("content");
}
END_TEST

START_TEST(changed_file_is_opened)
{
    struct fp_meta known;

    for (int i = 0; i < 4; i++) {
        unit_write_file(in_dir("file"), "content");
        resolve("file");
        known = last()->self;
        switch (i) {
        case 0: unit_write_file(in_dir("file"), "longer content"); break;
        case 1: ck_assert_int_eq(chmod(in_dir("file"), 0600), 0); break;
        case 2:
            unit_write_file(in_dir("new"), "content");
            ck_assert_int_eq(rename(in_dir("new"), in_dir("file")), 0);
            break;
        case 3: known.mtime.nsec ^= 1; break;
        }
        resolve_known("file", &known);
        ck_assert(!answer.unchanged);
        assert_open(i == 0 ? "longer content" : "content");
    }
}
END_TEST

START_TEST(known_file_that_is_gone)
{
    struct fp_meta known;

    unit_write_file(in_dir("file"), "content");
    resolve("file");
    known = last()->self;
    remove_name("file");
    resolve_known("file", &known);
    ck_assert(!answer.unchanged);
    ck_assert_int_eq((int)last()->status, FP_ABSENT);
}
END_TEST

/* Rights may go by the very change: the cache must not take the descriptor for one of after it. */
START_TEST(change_between_open_and_look)
{
    struct stat st;

    unit_write_file(in_dir("file"), "content");
    for (unsigned n = 0; n < 5; n++) {
        struct fp_meta known;

        changes = n;
        opened = 0;
        resolve_as_asked("file", (struct fp_task){ .base_len = 0 });
        ck_assert_int_ne(answer.fd, -1);
        known = last()->self;
        ck_assert_uint_eq(opened, n < 3 ? n + 1 : 3);
        ck_assert_int_eq(stat(in_dir("file"), &st), 0);
        ck_assert_int_eq(known.mode == st.st_mode, n < 3);
        changes = 0;
        resolve_known("file", &known);
        ck_assert_int_eq(answer.unchanged, n < 3);
    }
}
END_TEST

/* ---- access files ---- */

static void resolve_with_names(const char *name, const struct fp_names *names)
{
    resolve_as_asked(name, (struct fp_task){ .names = *names });
    ck_assert_uint_eq(answer.n_names, answer.status == FP_OK ? names->n : 0);
}

static const struct fp_access *access_of(const char *name, unsigned i)
{
    for (unsigned k = 0; k < answer.n_steps; k++) {
        if (answer.steps[k].end == strlen(in_dir(name)))
            return &answer.steps[k].access[i];
    }
    ck_abort_msg("no step for %s", name);
    return NULL;
}

START_TEST(access_files_are_looked_for)
{
    static const struct fp_names names = { 3, { { ".htaccess", 9 }, { ".acl", 4 }, { "link", 4 } } };
    struct stat st;

    for_each_name(make_dir, "d d/e");
    unit_write_file(in_dir("d/.htaccess"), "Require all denied");
    make_link(".htaccess", "d/link");
    make_link("nowhere", "d/e/link");
    unit_write_file(in_dir("d/e/file"), "content");
    resolve_with_names("d/e/file", &names);
    assert_open("content");
    ck_assert_int_eq(stat(in_dir("d/.htaccess"), &st), 0);
    ck_assert_int_eq((int)access_of("d", 0)->status, FP_OK);
    ck_assert_uint_eq(access_of("d", 0)->ino, st.st_ino);
    ck_assert_uint_eq(access_of("d", 0)->size, 18);
    ck_assert_uint_eq(access_of("d", 0)->mode, st.st_mode);
    ck_assert_int_eq(access_of("d", 0)->mtime.sec, st.st_mtim.tv_sec);
    ck_assert_int_eq((int)access_of("d", 1)->status, FP_ABSENT);
    ck_assert_int_eq((int)access_of("d", 2)->status, FP_OK);
    ck_assert_uint_eq(access_of("d", 2)->ino, st.st_ino);
    ck_assert_int_eq((int)access_of("d/e", 0)->status, FP_ABSENT);
    ck_assert_int_eq((int)access_of("d/e", 2)->status, FP_ABSENT);
    ck_assert_int_eq((int)answer.steps[0].access[0].status, FP_ABSENT);
}
END_TEST

START_TEST(access_files_behind_links_and_in_directories)
{
    static const struct fp_names names = { 1, { { ".htaccess", 9 } } };

    make_dir("d");
    unit_write_file(in_dir("d/.htaccess"), "x");
    make_link("d", "l");
    resolve_with_names("l", &names);
    ck_assert_int_eq((int)access_of("l", 0)->status, FP_OK);
    resolve_with_names("d", &names);
    ck_assert_int_eq((int)access_of("d", 0)->status, FP_OK);
    remove_name("d/.htaccess");
    make_dir("d/.htaccess");
    resolve_with_names("d", &names);
    ck_assert_int_eq((int)access_of("d", 0)->status, FP_OK);
    ck_assert_uint_eq(access_of("d", 0)->mode & S_IFMT, S_IFDIR);
}
END_TEST

/* Not "absent": it may hold the rule that denies. */
START_TEST(access_files_that_cannot_be_seen)
{
    static const struct fp_names names = { 1, { { ".htaccess", 9 } } };
    const bool root = geteuid() == 0;

    make_dir("closed");
    unit_write_file(in_dir("closed/.htaccess"), "Require all denied");
    ck_assert_int_eq(chmod(in_dir("closed"), 0600), 0);
    if (root)
        ck_assert_int_eq(seteuid(UNIT_NOBODY), 0);
    resolve_with_names("closed", &names);
    if (root)
        ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq((int)access_of("closed", 0)->status, FP_DENIED);
    ck_assert_int_eq(chmod(in_dir("closed"), 0755), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("resolve_walks");
    TCase *t = add_case(s, "descriptors");

    tcase_add_test(t, no_descriptors_free);
    tcase_add_test(t, every_descriptor_is_closed);
    tcase_add_test(t, local_or_not);
    tcase_add_test(t, file_system_that_fails);
    tcase_add_test(t, metadata_and_descriptor_are_of_one_file);
    t = add_case(s, "base");
    tcase_add_test(t, walk_from_a_base);
    tcase_add_test(t, links_above_the_base);
    tcase_add_test(t, walk_from_slash);
    tcase_add_test(t, base_that_was_renamed);
    tcase_add_test(t, base_that_was_removed);
    tcase_add_test(t, base_outside_the_roots);
    tcase_add_test(t, base_stays_the_callers);
    t = add_case(s, "known");
    tcase_add_test(t, file_that_is_only_looked_at_is_not_opened);
    tcase_add_test(t, unchanged_file_is_not_opened);
    tcase_add_test(t, changed_file_is_opened);
    tcase_add_test(t, known_file_that_is_gone);
    tcase_add_test(t, change_between_open_and_look);
    t = add_case(s, "access_files");
    tcase_add_test(t, access_files_are_looked_for);
    tcase_add_test(t, access_files_behind_links_and_in_directories);
    tcase_add_test(t, access_files_that_cannot_be_seen);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
