/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel tells of every kind of change, by inotify and by fanotify.
 * Without the right to mark file systems (CAP_SYS_ADMIN; Linux 5.17), the tests
 * of fanotify say that they are skipped.
 */
#include "config.h"
#include "watch.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include "proto/fdio.h"
#include "unit.h"

#define MAX_EVENTS 4096
#define MAX_QUEUE  100000    /* events; a system with a longer queue is not filled */

#define KINDS      2         /* most tests are run for inotify and for fanotify */

static struct fp_watch watch;
static enum fp_watch_by by;
static char dir[PATH_MAX];
static bool mounted;
static int fds_at_rest;
static struct fp_watch_key dir_key, file_key;

static struct {
    unsigned n, lost;
    struct event {
        bool gone, replaced;
        struct fp_watch_key key;
        char name[FP_MAX_NAME + 1];
    } list[MAX_EVENTS];
} told;

/* ---- what is told ---- */

static struct event *next_event(const struct fp_watch_key *key)
{
    struct event *e = &told.list[told.n < MAX_EVENTS ? told.n++ : MAX_EVENTS - 1];

    memset(e, 0, sizeof(*e));
    e->key = *key;
    return e;
}

static void on_changed(void *ctx, const struct fp_watch_key *key, const char *name, size_t len,
                       bool replaced)
{
    struct event *e = next_event(key);

    ck_assert_ptr_eq(ctx, &told);
    ck_assert_uint_le(len, FP_MAX_NAME);
    ck_assert_ptr_null(memchr(name, '\0', len));
    memcpy(e->name, name, len);
    e->replaced = replaced;
    if (len == 0)
        ck_assert(!replaced);
}

static void on_gone(void *ctx, const struct fp_watch_key *key)
{
    ck_assert_ptr_eq(ctx, &told);
    next_event(key)->gone = true;
}

static void on_lost(void *ctx)
{
    ck_assert_ptr_eq(ctx, &told);
    told.lost++;
}

static void drain(void)
{
    static const struct fp_watch_ops ops = { on_changed, on_gone, on_lost };

    told.n = told.lost = 0;
    while (!fp_watch_drain(&watch, &ops, &told))
        ;
}

static bool same_key(const struct fp_watch_key *a, const struct fp_watch_key *b)
{
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* "c" was told as a change of the name, "r" that it stands for something else. */
static bool was_told(char how, const struct fp_watch_key *key, const char *name)
{
    for (unsigned i = 0; i < told.n; i++) {
        const struct event *e = &told.list[i];

        if (same_key(&e->key, key) && e->gone == (how == 'g') && strcmp(e->name, name) == 0
            && (how == 'g' || e->replaced == (how == 'r')))
            return true;
    }
    return false;
}

static void assert_told(char how, const struct fp_watch_key *key, const char *name)
{
    ck_assert_msg(was_told(how, key, name), "by %s: no '%c' of \"%s\" among %u events",
                  fp_watch_by_text(by), how, name, told.n);
}

static void assert_nothing_of(const char *name)
{
    for (unsigned i = 0; i < told.n; i++)
        ck_assert_str_ne(told.list[i].name, name);
}

/* ---- the place ---- */

static const char *in_dir(const char *name)
{
    return unit_join(dir, name);
}

static fp_status try_place(const char *path, struct fp_watch_key *key)
{
    struct stat st;
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    fp_status status;

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(fstat(fd, &st), 0);
    status = fp_watch_place(&watch, by, fd, S_ISDIR(st.st_mode), key);
    close(fd);
    return status;
}

static struct fp_watch_key place(const char *path)
{
    struct fp_watch_key key;

    ck_assert_int_eq((int)try_place(path, &key), FP_OK);
    ck_assert_uint_gt(key.len, 1);
    ck_assert_uint_eq(key.bytes[0], (unsigned)by);
    return key;
}

static void skip(const char *why)
{
    fprintf(stderr, "SKIPPED: a test of %s: %s (%s)\n", fp_watch_by_text(by), why,
            strerror(errno));
}

/* A file system of its own, so that nobody else's changes are told. */
static bool mount_own(void)
{
    if (unshare(CLONE_NEWNS) == -1
        || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1
        || mount("watch", dir, "tmpfs", 0, "size=64m") == -1)
        return false;
    mounted = true;
    return true;
}

static bool open_fanotify(void)
{
    watch.fanotify = fp_fanotify_open();
    return watch.fanotify != -1 && mount_own() && fp_fanotify_mark(watch.fanotify, dir);
}

/* The directory and the "file" in it are watched.  False: skipped. */
static bool begin(int number)
{
    by = number == 0 ? FP_BY_INOTIFY : FP_BY_FANOTIFY;
    if (by == FP_BY_FANOTIFY && !open_fanotify()) {
        skip("file systems cannot be marked");
        return false;
    }
    if (by == FP_BY_INOTIFY)
        ck_assert(fp_watch_open(&watch));
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(mkdir(in_dir("out"), 0755), 0);
    ck_assert_int_eq(mkdir(in_dir("d"), 0755), 0);
    unit_write_file(in_dir("d/file"), "content");
    dir_key = place(in_dir("d"));
    file_key = place(in_dir("d/file"));
    drain();
    drain();
    ck_assert_uint_eq(told.n, 0);
    return true;
}

static void setup(void)
{
    watch = (struct fp_watch){ -1, -1 };
    mounted = false;
    unit_fresh_dir(dir);
    fds_at_rest = unit_open_fds();
}

static void teardown(void)
{
    fp_watch_close(&watch);
    ck_assert_int_eq(watch.inotify, -1);
    ck_assert_int_eq(watch.fanotify, -1);
    if (mounted)
        ck_assert_int_eq(umount2(dir, MNT_DETACH), 0);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

/* ---- names ---- */

START_TEST(something_is_made)
{
    if (!begin(_i))
        return;
    unit_write_file(in_dir("d/new"), "x");
    drain();
    assert_told('r', &dir_key, "new");
    ck_assert_int_eq(mkdir(in_dir("d/newdir"), 0755), 0);
    drain();
    assert_told('r', &dir_key, "newdir");
    ck_assert_int_eq(symlink("file", in_dir("d/newlink")), 0);
    drain();
    assert_told('r', &dir_key, "newlink");
    ck_assert_int_eq(link(in_dir("d/file"), in_dir("d/hard")), 0);
    drain();
    assert_told('r', &dir_key, "hard");
    assert_told('c', &file_key, "");     /* its number of names */
    ck_assert_int_eq(mkfifo(in_dir("d/.hidden"), 0644), 0);
    drain();
    assert_told('r', &dir_key, ".hidden");
}
END_TEST

START_TEST(something_is_removed)
{
    if (!begin(_i))
        return;
    ck_assert_int_eq(symlink("file", in_dir("d/link")), 0);
    ck_assert_int_eq(mkdir(in_dir("d/sub"), 0755), 0);
    drain();
    ck_assert_int_eq(unlink(in_dir("d/link")), 0);
    drain();
    assert_told('r', &dir_key, "link");
    ck_assert_int_eq(rmdir(in_dir("d/sub")), 0);
    drain();
    assert_told('r', &dir_key, "sub");
    ck_assert_int_eq(unlink(in_dir("d/file")), 0);
    drain();
    assert_told('r', &dir_key, "file");
    if (by == FP_BY_INOTIFY)
        assert_told('g', &file_key, "");
}
END_TEST

/* It has no name any more, but it is still there for those who have it open. */
START_TEST(open_file_is_removed)
{
    int fd;

    if (!begin(_i))
        return;
    fd = open(in_dir("d/file"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(unlink(in_dir("d/file")), 0);
    drain();
    assert_told('r', &dir_key, "file");
    assert_told('c', &file_key, "");
    ck_assert(!was_told('g', &file_key, ""));
    close(fd);
    drain();
    if (by == FP_BY_INOTIFY)
        assert_told('g', &file_key, "");
}
END_TEST

START_TEST(something_is_renamed)
{
    if (!begin(_i))
        return;
    ck_assert_int_eq(rename(in_dir("d/file"), in_dir("d/other")), 0);
    drain();
    assert_told('r', &dir_key, "file");
    assert_told('r', &dir_key, "other");
    ck_assert_int_eq(rename(in_dir("d/other"), in_dir("out/file")), 0);
    drain();
    assert_told('r', &dir_key, "other");
    ck_assert_int_eq(rename(in_dir("out/file"), in_dir("d/back")), 0);
    drain();
    assert_told('r', &dir_key, "back");
    ck_assert_int_eq(mkdir(in_dir("d/sub"), 0755), 0);
    drain();
    ck_assert_int_eq(rename(in_dir("d/sub"), in_dir("out/sub")), 0);
    drain();
    assert_told('r', &dir_key, "sub");
}
END_TEST

START_TEST(something_is_renamed_over)
{
    if (!begin(_i))
        return;
    unit_write_file(in_dir("out/new"), "another content");
    drain();
    ck_assert_int_eq(rename(in_dir("out/new"), in_dir("d/file")), 0);
    drain();
    assert_told('r', &dir_key, "file");
    if (by == FP_BY_INOTIFY)
        assert_told('g', &file_key, "");
    unit_write_file(in_dir("d/new"), "a third content");
    drain();
    ck_assert_int_eq(rename(in_dir("d/new"), in_dir("d/file")), 0);
    drain();
    assert_told('r', &dir_key, "new");
    assert_told('r', &dir_key, "file");
}
END_TEST

START_TEST(two_are_exchanged)
{
    if (!begin(_i))
        return;
    unit_write_file(in_dir("d/other"), "other content");
    drain();
    ck_assert_int_eq(renameat2(AT_FDCWD, in_dir("d/file"), AT_FDCWD, in_dir("d/other"),
                               RENAME_EXCHANGE), 0);
    drain();
    assert_told('r', &dir_key, "file");
    assert_told('r', &dir_key, "other");
}
END_TEST

START_TEST(names_of_the_most_bytes)
{
    char name[FP_MAX_NAME + 1];

    if (!begin(_i))
        return;
    memset(name, 'n', FP_MAX_NAME);
    for (size_t len = FP_MAX_NAME; len > FP_MAX_NAME - 20; len--) {
        name[len] = '\0';
        unit_write_file(unit_join(in_dir("d"), name), "x");
        drain();
        assert_told('r', &dir_key, name);
    }
}
END_TEST

/* ---- content ---- */

static void append(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(write(fd, "more", 4), 4);
    close(fd);
}

/* The file tells, and the directory does or does not. */
static void assert_changed(bool in_directory)
{
    drain();
    if (in_directory)
        assert_told('c', &dir_key, "file");
    else
        assert_nothing_of("file");
    assert_told('c', &file_key, "");
    ck_assert(!was_told('r', &dir_key, "file"));
    ck_assert(!was_told('g', &file_key, ""));
    ck_assert_uint_eq(told.lost, 0);
}

/* By inotify only the file tells what is written. */
static void assert_file_changed(void)
{
    assert_changed(by == FP_BY_FANOTIFY);
}

START_TEST(something_is_written)
{
    int fd;

    if (!begin(_i))
        return;
    unit_write_file(in_dir("d/file"), "other content");
    assert_file_changed();
    append(in_dir("d/file"));
    assert_file_changed();
    ck_assert_int_eq(truncate(in_dir("d/file"), 3), 0);
    assert_file_changed();
    fd = open(in_dir("d/file"), O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, 100), 0);
    assert_file_changed();
    /* At once, not when it is closed. */
    ck_assert_int_eq(pwrite(fd, "x", 1, 50), 1);
    assert_file_changed();
    ck_assert_int_eq(fallocate(fd, 0, 0, 4096), 0);
    assert_file_changed();
    close(fd);
    assert_file_changed();
}
END_TEST

/* While it is mapped nobody tells; when that is over, everybody may know. */
START_TEST(something_is_written_through_a_mapping)
{
    char *p;
    int fd;

    if (!begin(_i))
        return;
    fd = open(in_dir("d/file"), O_RDWR | O_CLOEXEC);
    p = mmap(NULL, 7, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    p[0] = 'C';
    close(fd);
    munmap(p, 7);
    assert_file_changed();
}
END_TEST

START_TEST(something_is_written_by_its_other_name)
{
    if (!begin(_i))
        return;
    ck_assert_int_eq(link(in_dir("d/file"), in_dir("out/name")), 0);
    drain();
    append(in_dir("out/name"));
    drain();
    assert_told('c', &file_key, "");
    ck_assert_int_eq(chmod(in_dir("out/name"), 0600), 0);
    drain();
    assert_told('c', &file_key, "");
    ck_assert_int_eq(unlink(in_dir("out/name")), 0);
    drain();
    assert_told('c', &file_key, "");
}
END_TEST

START_TEST(reading_is_no_change)
{
    char room[16];
    struct stat st;
    int fd;

    if (!begin(_i))
        return;
    fd = open(in_dir("d/file"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(read(fd, room, sizeof(room)), 7);
    close(fd);
    ck_assert_int_eq(stat(in_dir("d/file"), &st), 0);
    fd = open(in_dir("d"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(fd);
    drain();
    ck_assert_uint_eq(told.n, 0);
}
END_TEST

/* ---- attributes ---- */

START_TEST(attributes_of_a_file)
{
    static const struct timespec times[2] = { { 1, 1 }, { 2, 2 } };

    if (!begin(_i))
        return;
    ck_assert_int_eq(chmod(in_dir("d/file"), 0600), 0);
    assert_changed(true);
    ck_assert_int_eq(utimensat(AT_FDCWD, in_dir("d/file"), times, 0), 0);
    assert_changed(true);
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chown(in_dir("d/file"), UNIT_NOBODY, UNIT_NOBODY), 0);
    assert_changed(true);
}
END_TEST

START_TEST(attributes_of_a_directory)
{
    static const struct timespec times[2] = { { 1, 1 }, { 2, 2 } };

    if (!begin(_i))
        return;
    ck_assert_int_eq(chmod(in_dir("d"), 0700), 0);
    drain();
    assert_told('c', &dir_key, "");
    ck_assert_int_eq(utimensat(AT_FDCWD, in_dir("d"), times, 0), 0);
    drain();
    assert_told('c', &dir_key, "");
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chown(in_dir("d"), UNIT_NOBODY, UNIT_NOBODY), 0);
    drain();
    assert_told('c', &dir_key, "");
}
END_TEST

START_TEST(attributes_of_a_directory_in_a_directory)
{
    struct fp_watch_key sub;

    if (!begin(_i))
        return;
    ck_assert_int_eq(mkdir(in_dir("d/sub"), 0755), 0);
    sub = place(in_dir("d/sub"));
    drain();
    ck_assert_int_eq(chmod(in_dir("d/sub"), 0700), 0);
    drain();
    assert_told('c', &sub, "");
    if (by == FP_BY_INOTIFY)
        assert_told('c', &dir_key, "sub");
}
END_TEST

/* ---- the end of watching ---- */

START_TEST(nobody_wants_to_know_any_more)
{
    if (!begin(_i))
        return;
    fp_watch_forget(&watch, &dir_key);
    drain();
    if (by == FP_BY_INOTIFY)
        assert_told('g', &dir_key, "");
    ck_assert_int_eq(chmod(in_dir("d/file"), 0600), 0);
    drain();
    assert_told('c', &file_key, "");
    if (by == FP_BY_INOTIFY)
        ck_assert(!was_told('c', &dir_key, "file"));
    /* What is gone already cannot be forgotten, and that is no harm. */
    fp_watch_forget(&watch, &dir_key);
    fp_watch_forget(&watch, &(struct fp_watch_key){ .len = 0 });
    drain();
    ck_assert_uint_eq(told.n, 0);
}
END_TEST

START_TEST(directory_is_removed)
{
    if (!begin(_i))
        return;
    ck_assert_int_eq(unlink(in_dir("d/file")), 0);
    ck_assert_int_eq(rmdir(in_dir("d")), 0);
    drain();
    if (by == FP_BY_INOTIFY)
        assert_told('g', &dir_key, "");
}
END_TEST

/* Under its new name it is the same directory still. */
START_TEST(directory_is_renamed)
{
    if (!begin(_i))
        return;
    ck_assert_int_eq(rename(in_dir("d"), in_dir("e")), 0);
    drain();
    ck_assert(!was_told('g', &dir_key, ""));
    ck_assert_int_eq(chmod(in_dir("e/file"), 0600), 0);
    drain();
    assert_told('c', &dir_key, "file");
}
END_TEST

START_TEST(numbers_are_not_given_anew)
{
    struct fp_watch_key before = { 0 };

    if (!begin(0))
        return;
    for (int i = 0; i < 50; i++) {
        const struct fp_watch_key k = place(in_dir("out"));

        ck_assert(!same_key(&k, &before));
        ck_assert(!same_key(&k, &dir_key));
        before = k;
        fp_watch_forget(&watch, &k);
        drain();
    }
}
END_TEST

/* ---- places ---- */

START_TEST(one_key_for_one_thing)
{
    struct fp_watch_key k;
    int fd;

    if (!begin(_i))
        return;
    k = place(in_dir("d"));
    ck_assert(same_key(&k, &dir_key));
    k = place(in_dir("d/file"));
    ck_assert(same_key(&k, &file_key));
    ck_assert(!same_key(&dir_key, &file_key));
    k = place(in_dir("out"));
    ck_assert(!same_key(&k, &dir_key));
    ck_assert_int_eq(link(in_dir("d/file"), in_dir("out/name")), 0);
    k = place(in_dir("out/name"));
    ck_assert(same_key(&k, &file_key));
    /* Whatever it was opened for. */
    k.len = 0;
    fd = open(in_dir("d"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq((int)fp_watch_place(&watch, by, fd, true, &k), FP_OK);
    ck_assert(same_key(&k, &dir_key));
    close(fd);
}
END_TEST

START_TEST(place_where_nothing_tells)
{
    const struct fp_watch none = { -1, -1 };
    struct fp_watch_key k = { .len = 5 };
    int fd = open(dir, O_PATH | O_CLOEXEC);

    ck_assert_int_eq((int)fp_watch_place(&none, FP_BY_INOTIFY, fd, true, &k), FP_IOERROR);
    ck_assert_uint_eq(k.len, 0);
    k.len = 5;
    ck_assert_int_eq((int)fp_watch_place(&none, FP_BY_TTL, fd, true, &k), FP_IOERROR);
    ck_assert_uint_eq(k.len, 0);
    watch = none;
    drain();
    ck_assert_uint_eq(told.n + told.lost, 0);
    close(fd);
}
END_TEST

/* inotify asks for the right to read; the directory may still be walked through. */
START_TEST(place_that_may_not_be_read)
{
    struct fp_watch_key k;

    if (!begin(0))
        return;
    ck_assert_int_eq(chmod(in_dir("d"), 0311), 0);
    if (geteuid() == 0)
        ck_assert_int_eq(seteuid(UNIT_NOBODY), 0);
    ck_assert_int_eq((int)try_place(in_dir("d"), &k), FP_DENIED);
    ck_assert_uint_eq(k.len, 0);
    if (getuid() == 0)
        ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(chmod(in_dir("d"), 0755), 0);
}
END_TEST

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd == -1 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        _exit(3);
    close(fd);
}

/* In a namespace of its own, where the limit is ours to set. */
static void reach_the_limit(void)
{
    struct fp_watch_key k;
    char name[16];
    int done = 0;

    if (unshare(CLONE_NEWUSER) == -1)
        _exit(3);
    write_text("/proc/sys/user/max_inotify_watches", "3");
    if (!fp_watch_open(&watch))
        _exit(3);
    for (int i = 0; i < 5; i++) {
        int fd;

        snprintf(name, sizeof(name), "%d", i);
        fd = open(in_dir(name), O_PATH | O_CLOEXEC);
        switch (fp_watch_place(&watch, FP_BY_INOTIFY, fd, true, &k)) {
        case FP_OK: done++; break;
        case FP_BUSY: if (i < 3 || k.len != 0) _exit(1); break;
        default: _exit(2);
        }
        close(fd);
    }
    _exit(done == 3 ? 0 : 1);
}

START_TEST(no_more_watches)
{
    char name[16];
    int status;
    pid_t pid;

    by = FP_BY_INOTIFY;
    for (int i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "%d", i);
        ck_assert_int_eq(mkdir(in_dir(name), 0755), 0);
    }
    pid = fork();
    if (pid == 0)
        reach_the_limit();
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) == 3)
        skip("there is no user namespace to set a limit in");
    else
        ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

/* A helper asks for the key, the daemon reads the events. */
START_TEST(helpers_share_what_was_opened)
{
    struct fp_watch_key k;
    int ends[2], status;
    pid_t pid;

    if (!begin(_i))
        return;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        int fd = open(in_dir("out"), O_PATH | O_CLOEXEC);

        if (fp_watch_place(&watch, by, fd, true, &k) != FP_OK
            || write(ends[1], &k, sizeof(k)) != sizeof(k))
            _exit(1);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(read(ends[0], &k, sizeof(k)), sizeof(k));
    unit_write_file(in_dir("out/new"), "x");
    drain();
    assert_told('r', &k, "new");
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* ---- the queue ---- */

START_TEST(events_can_be_waited_for)
{
    int fd;

    if (!begin(_i))
        return;
    fd = by == FP_BY_INOTIFY ? watch.inotify : watch.fanotify;
    ck_assert(!unit_wait_readable(fd, 0));
    ck_assert_int_eq(chmod(in_dir("d/file"), 0600), 0);
    ck_assert(unit_wait_readable(fd, 3000));
    drain();
    ck_assert(!unit_wait_readable(fd, 0));
}
END_TEST

START_TEST(many_events_in_one_go)
{
    char name[32];

    if (!begin(_i))
        return;
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "d/some-name-%04d", i);
        ck_assert_int_eq(mknod(in_dir(name), S_IFREG | 0644, 0), 0);
    }
    drain();
    ck_assert_uint_eq(told.lost, 0);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "some-name-%04d", i);
        assert_told('r', &dir_key, name);
    }
}
END_TEST

static long queue_length(void)
{
    const char *name = by == FP_BY_INOTIFY ? "/proc/sys/fs/inotify/max_queued_events"
                                           : "/proc/sys/fs/fanotify/max_queued_events";
    FILE *f = fopen(name, "re");
    long n = LONG_MAX;

    if (f == NULL)
        return n;
    if (fscanf(f, "%ld", &n) != 1)
        n = LONG_MAX;
    fclose(f);
    return n;
}

START_TEST(more_events_than_the_queue_holds)
{
    char name[32];
    long n;

    if (!begin(_i))
        return;
    n = queue_length();
    if (n > MAX_QUEUE) {
        skip("its queue is too long to be filled");
        return;
    }
    for (long i = 0; i < n + 10; i++) {
        snprintf(name, sizeof(name), "d/%ld", i);
        ck_assert_int_eq(mkdir(in_dir(name), 0755), 0);
        ck_assert_int_eq(rmdir(in_dir(name)), 0);
    }
    drain();
    ck_assert_uint_ge(told.lost, 1);
    /* And on it goes. */
    append(in_dir("d/file"));
    assert_file_changed();
}
END_TEST

/* ---- marks ---- */

static bool is_marked(dev_t dev)
{
    dev_t devs[64];
    size_t n = fp_watch_marked(&watch, devs, 64);

    for (size_t i = 0; i < n; i++) {
        if (devs[i] == dev)
            return true;
    }
    return false;
}

static dev_t dev_of(const char *path)
{
    struct stat st;

    ck_assert_int_eq(stat(path, &st), 0);
    return st.st_dev;
}

START_TEST(marks_are_listed_until_the_unmount)
{
    dev_t dev, devs[2];

    ck_assert_uint_eq(fp_watch_marked(&watch, devs, 2), 0);
    if (!begin(1))
        return;
    dev = dev_of(dir);
    ck_assert_uint_eq(fp_watch_marked(&watch, devs, 2), 1);
    ck_assert(devs[0] == dev);
    ck_assert_uint_eq(fp_watch_marked(&watch, devs, 0), 0);
    ck_assert_int_eq(umount(dir), 0);
    mounted = false;
    ck_assert_uint_eq(fp_watch_marked(&watch, devs, 2), 0);
}
END_TEST

/* Two file systems below the directory; is the one at the name marked? */
static void mark_and_look(const char *root, enum fp_watch_by rule, bool a, bool b, bool fan)
{
    const char *const roots[] = { root, NULL };
    const struct fp_mount_rule rules[] = { { in_dir("b"), (int)rule, -1, -1 } };
    const struct fp_mounts_settings settings = { rules, rule != FP_BY_TTL ? 1 : 0, FP_BY_AUTO,
                                                 1000, 0 };
    struct fp_mounts *m = fp_mounts_create(NULL, &settings, NULL);

    ck_assert_ptr_nonnull(m);
    fp_watch_mark(&watch, m, root != NULL ? roots : roots + 1);
    ck_assert_int_eq(is_marked(dev_of(in_dir("a"))), a);
    ck_assert_int_eq(is_marked(dev_of(in_dir("b"))), b);
    ck_assert_int_eq(watch.fanotify != -1, fan);
    fp_mounts_destroy(&m);
    fp_watch_close(&watch);
}

START_TEST(what_holds_the_roots_is_marked)
{
    if (!begin(1))
        return;
    fp_close(&watch.fanotify);
    ck_assert_int_eq(mkdir(in_dir("a"), 0755), 0);
    ck_assert_int_eq(mkdir(in_dir("b"), 0755), 0);
    ck_assert_int_eq(mount("a", in_dir("a"), "tmpfs", 0, NULL), 0);
    ck_assert_int_eq(mount("b", in_dir("b"), "tmpfs", 0, NULL), 0);
    ck_assert_int_eq(mkdir(in_dir("a/site"), 0755), 0);
    mark_and_look(NULL, FP_BY_TTL, false, false, false);
    mark_and_look(in_dir("a"), FP_BY_TTL, true, false, true);
    mark_and_look(in_dir("a/site"), FP_BY_TTL, true, false, true);
    mark_and_look(in_dir("a/not/there"), FP_BY_TTL, true, false, true);
    /* All that lies below a root, and what a rule asks for. */
    mark_and_look(dir, FP_BY_TTL, true, true, true);
    mark_and_look(in_dir("a"), FP_BY_FANOTIFY, true, true, true);
    mark_and_look(NULL, FP_BY_FANOTIFY, false, true, true);
    mark_and_look(in_dir("b"), FP_BY_INOTIFY, false, false, false);
}
END_TEST

/* Changes on another file system are not told, whatever their names. */
START_TEST(another_file_system_is_another_one)
{
    if (!begin(1))
        return;
    ck_assert_int_eq(mkdir(in_dir("b"), 0755), 0);
    ck_assert_int_eq(mount("b", in_dir("b"), "tmpfs", 0, NULL), 0);
    drain();
    unit_write_file(in_dir("b/elsewhere"), "x");
    drain();
    assert_nothing_of("elsewhere");
    ck_assert_int_eq(umount(in_dir("b")), 0);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("watch");
    TCase *t = unit_add_case(s, "names", setup, teardown, 20);

    tcase_add_loop_test(t, something_is_made, 0, KINDS);
    tcase_add_loop_test(t, something_is_removed, 0, KINDS);
    tcase_add_loop_test(t, open_file_is_removed, 0, KINDS);
    tcase_add_loop_test(t, something_is_renamed, 0, KINDS);
    tcase_add_loop_test(t, something_is_renamed_over, 0, KINDS);
    tcase_add_loop_test(t, two_are_exchanged, 0, KINDS);
    tcase_add_loop_test(t, names_of_the_most_bytes, 0, KINDS);
    t = unit_add_case(s, "content", setup, teardown, 20);
    tcase_add_loop_test(t, something_is_written, 0, KINDS);
    tcase_add_loop_test(t, something_is_written_through_a_mapping, 0, KINDS);
    tcase_add_loop_test(t, something_is_written_by_its_other_name, 0, KINDS);
    tcase_add_loop_test(t, reading_is_no_change, 0, KINDS);
    t = unit_add_case(s, "attributes", setup, teardown, 20);
    tcase_add_loop_test(t, attributes_of_a_file, 0, KINDS);
    tcase_add_loop_test(t, attributes_of_a_directory, 0, KINDS);
    tcase_add_loop_test(t, attributes_of_a_directory_in_a_directory, 0, KINDS);
    t = unit_add_case(s, "end", setup, teardown, 20);
    tcase_add_loop_test(t, nobody_wants_to_know_any_more, 0, KINDS);
    tcase_add_loop_test(t, directory_is_removed, 0, KINDS);
    tcase_add_loop_test(t, directory_is_renamed, 0, KINDS);
    tcase_add_test(t, numbers_are_not_given_anew);
    t = unit_add_case(s, "places", setup, teardown, 20);
    tcase_add_loop_test(t, one_key_for_one_thing, 0, KINDS);
    tcase_add_test(t, place_where_nothing_tells);
    tcase_add_test(t, place_that_may_not_be_read);
    tcase_add_test(t, no_more_watches);
    tcase_add_loop_test(t, helpers_share_what_was_opened, 0, KINDS);
    t = unit_add_case(s, "queue", setup, teardown, 60);
    tcase_add_loop_test(t, events_can_be_waited_for, 0, KINDS);
    tcase_add_loop_test(t, many_events_in_one_go, 0, KINDS);
    tcase_add_loop_test(t, more_events_than_the_queue_holds, 0, KINDS);
    t = unit_add_case(s, "marks", setup, teardown, 20);
    tcase_add_test(t, marks_are_listed_until_the_unmount);
    tcase_add_test(t, what_holds_the_roots_is_marked);
    tcase_add_test(t, another_file_system_is_another_one);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
