/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of watched objects, the number of changes that can wait, and the queue of mounts. */
#include "config.h"
#include "changes/watch.h"

#include "changes/mounts.h"
#include "watch_kit.h"
#include "wire/packet.h"

#define MAX_QUEUE 100000 /* events; a system with a longer queue is not filled */

/* ---- places ---- */

START_TEST(one_key_for_one_thing)
{
    struct fp_watch_key k;
    int fd;

    begin();
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
    /* For any kind of open. */
    k.len = 0;
    fd = open(in_dir("d"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq((int)fp_watch_place(&watch, fd, true, &k), FP_OK);
    ck_assert(same_key(&k, &dir_key));
    close(fd);
}
END_TEST

START_TEST(place_where_nothing_tells)
{
    const struct fp_watch none = FP_WATCH_NONE;
    struct fp_watch_key k = { .len = 4 };
    int fd = open(dir, O_PATH | O_CLOEXEC);

    ck_assert_int_eq((int)fp_watch_place(&none, fd, true, &k), FP_IOERROR);
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

    begin();
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

static void place_for(enum fp_watch_what what, const char *path, struct fp_watch_key *key)
{
    int fd = open(path, O_PATH | O_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq((int)fp_watch_place(&watch, fd, what, key), FP_OK);
    close(fd);
}

/* The names of a directory alone; a caller that needs a full watch gets it. */
START_TEST(names_alone)
{
    struct fp_watch_key names, again;

    begin();
    place_for(FP_WATCH_NAMES, in_dir("out"), &names);
    unit_write_file(in_dir("out/file"), "content");
    assert_tells('r', &names, "file");
    ck_assert_int_eq(chmod(in_dir("out/file"), 0600), 0);
    ck_assert_int_eq(chmod(in_dir("out"), 0700), 0);
    drain();
    ck_assert_uint_eq(told.n, 0);
    place_for(FP_WATCH_DIRECTORY, in_dir("out"), &again);
    ck_assert(same_key(&names, &again));
    place_for(FP_WATCH_NAMES, in_dir("out"), &again);
    ck_assert(same_key(&names, &again));
    ck_assert_int_eq(chmod(in_dir("out/file"), 0644), 0);
    assert_tells('c', &names, "file");
}
END_TEST

/* The names of a directory alone report no write; with writes it tells of the file by its name. */
START_TEST(writes_to_what_lies_in_a_directory)
{
    struct fp_watch_key names;

    begin();
    unit_write_file(in_dir("out/file"), "content");
    place_for(FP_WATCH_DIRECTORY, in_dir("out"), &names);
    unit_write_file(in_dir("out/file"), "other");
    drain();
    ck_assert_uint_eq(told.n, 0);
    place_for(FP_WATCH_WRITTEN, in_dir("out"), &names);
    unit_write_file(in_dir("out/file"), "content");
    assert_tells('c', &names, "file");
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
        switch (fp_watch_place(&watch, fd, true, &k)) {
        case FP_OK: done++; break;
        case FP_BUSY:
            if (i < 3 || k.len != 0)
                _exit(1);
            break;
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

/* A worker asks for the key, the daemon reads the events. */
START_TEST(workers_share_what_was_opened)
{
    struct fp_watch_key k;
    int ends[2], status;
    pid_t pid;

    begin();
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        int fd = open(in_dir("out"), O_PATH | O_CLOEXEC);

        if (fp_watch_place(&watch, fd, true, &k) != FP_OK || write(ends[1], &k, sizeof(k)) != sizeof(k))
            _exit(1);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(read(ends[0], &k, sizeof(k)), sizeof(k));
    unit_write_file(in_dir("out/new"), "x");
    assert_tells('r', &k, "new");
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* ---- the queue ---- */

START_TEST(events_can_be_waited_for)
{
    int fd;

    begin();
    fd = watch.inotify;
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

    begin();
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
    FILE *f = fopen("/proc/sys/fs/inotify/max_queued_events", "re");
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

    begin();
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

/* ---- mounts ---- */

START_TEST(mounts_are_told_until_they_are_drained)
{
    const struct fp_mounts_settings settings = { NULL, 0, FP_BY_AUTO, 1000, 0, 1000 };
    struct fp_mounts *m;
    int set;

    if (!mount_own()) {
        skip("nothing can be mounted");
        return;
    }
    m = fp_mounts_create(NULL, &settings, NULL);
    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(fp_watch_begin(&watch), 0);
    if (watch.remounts == -1) {
        skip("no queue tells of mounts before Linux 6.15");
        fp_mounts_destroy(&m);
        return;
    }
    set = fp_watch_event_set(&watch);
    ck_assert_int_eq(mkdir(in_dir("b"), 0755), 0);
    ck_assert(!unit_wait_readable(set, 0));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(i == 0 ? mount("b", in_dir("b"), "tmpfs", 0, NULL) : umount(in_dir("b")), 0);
        ck_assert(unit_wait_readable(set, 0));
        ck_assert(fp_watch_is_pending(&watch));
        fp_watch_drain_remounts(&watch);
        ck_assert(!fp_watch_is_pending(&watch));
        ck_assert(!unit_wait_readable(set, 0));
        ck_assert(fp_mounts_changed(m));
        ck_assert(!fp_mounts_changed(m));
    }
    close(set);
    fp_mounts_destroy(&m);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("watch_places");
    TCase *t = unit_add_case(s, "places", setup, teardown, 20);

    tcase_add_test(t, one_key_for_one_thing);
    tcase_add_test(t, place_where_nothing_tells);
    tcase_add_test(t, place_that_may_not_be_read);
    tcase_add_test(t, names_alone);
    tcase_add_test(t, writes_to_what_lies_in_a_directory);
    tcase_add_test(t, no_more_watches);
    tcase_add_test(t, workers_share_what_was_opened);
    t = unit_add_case(s, "queue", setup, teardown, 60);
    tcase_add_test(t, events_can_be_waited_for);
    tcase_add_test(t, many_events_in_one_go);
    tcase_add_test(t, more_events_than_the_queue_holds);
    t = unit_add_case(s, "mounts", setup, teardown, 20);
    tcase_add_test(t, mounts_are_told_until_they_are_drained);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
