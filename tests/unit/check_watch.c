/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's reports of every kind of change, by inotify. */
#include "config.h"
#include "changes/watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "watch_kit.h"

/* ---- names ---- */

static void something_is_made(void)
{
    unit_write_file(in_dir("d/new"), "x");
    assert_tells('r', &dir_key, "new");
    ck_assert_int_eq(mkdir(in_dir("d/newdir"), 0755), 0);
    assert_tells('r', &dir_key, "newdir");
    ck_assert_int_eq(symlink("file", in_dir("d/newlink")), 0);
    assert_tells('r', &dir_key, "newlink");
    ck_assert_int_eq(link(in_dir("d/file"), in_dir("d/hard")), 0);
    assert_tells('r', &dir_key, "hard");
    assert_told('c', &file_key, ""); /* its number of names */
    ck_assert_int_eq(mkfifo(in_dir("d/.hidden"), 0644), 0);
    assert_tells('r', &dir_key, ".hidden");
}

static void something_is_removed(void)
{
    ck_assert_int_eq(symlink("file", in_dir("d/link")), 0);
    ck_assert_int_eq(mkdir(in_dir("d/sub"), 0755), 0);
    drain();
    ck_assert_int_eq(unlink(in_dir("d/link")), 0);
    assert_tells('r', &dir_key, "link");
    ck_assert_int_eq(rmdir(in_dir("d/sub")), 0);
    assert_tells('r', &dir_key, "sub");
    ck_assert_int_eq(unlink(in_dir("d/file")), 0);
    assert_tells('r', &dir_key, "file");
    assert_told('g', &file_key, "");
}

/* It has no name any more, but still exists for processes that have it open. */
static void open_file_is_removed(void)
{
    int fd;

    fd = open(in_dir("d/file"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(unlink(in_dir("d/file")), 0);
    assert_tells('r', &dir_key, "file");
    assert_told('c', &file_key, "");
    ck_assert(!was_told('g', &file_key, ""));
    close(fd);
    drain();
    assert_told('g', &file_key, "");
}

static void something_is_renamed(void)
{
    ck_assert_int_eq(rename(in_dir("d/file"), in_dir("d/other")), 0);
    assert_tells('r', &dir_key, "file");
    assert_told('r', &dir_key, "other");
    ck_assert_int_eq(rename(in_dir("d/other"), in_dir("out/file")), 0);
    assert_tells('r', &dir_key, "other");
    ck_assert_int_eq(rename(in_dir("out/file"), in_dir("d/back")), 0);
    assert_tells('r', &dir_key, "back");
    ck_assert_int_eq(mkdir(in_dir("d/sub"), 0755), 0);
    drain();
    ck_assert_int_eq(rename(in_dir("d/sub"), in_dir("out/sub")), 0);
    assert_tells('r', &dir_key, "sub");
}

static void something_is_renamed_over(void)
{
    unit_write_file(in_dir("out/new"), "another content");
    drain();
    ck_assert_int_eq(rename(in_dir("out/new"), in_dir("d/file")), 0);
    assert_tells('r', &dir_key, "file");
    assert_told('g', &file_key, "");
    unit_write_file(in_dir("d/new"), "a third content");
    drain();
    ck_assert_int_eq(rename(in_dir("d/new"), in_dir("d/file")), 0);
    assert_tells('r', &dir_key, "new");
    assert_told('r', &dir_key, "file");
}

static void two_are_exchanged(void)
{
    unit_write_file(in_dir("d/other"), "other content");
    drain();
    ck_assert_int_eq(renameat2(AT_FDCWD, in_dir("d/file"), AT_FDCWD, in_dir("d/other"), RENAME_EXCHANGE), 0);
    assert_tells('r', &dir_key, "file");
    assert_told('r', &dir_key, "other");
}

static void names_of_the_most_bytes(void)
{
    char name[FP_MAX_NAME + 1];

    memset(name, 'n', FP_MAX_NAME);
    for (size_t len = FP_MAX_NAME; len > FP_MAX_NAME - 20; len--) {
        name[len] = '\0';
        unit_write_file(unit_join(in_dir("d"), name), "x");
        drain();
        assert_told('r', &dir_key, name);
    }
}

/* ---- content ---- */

static void something_is_written(void)
{
    int fd;

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

/* While the mapping exists no event comes; at its end, one does. */
static void something_is_written_through_a_mapping(void)
{
    char *p;
    int fd;

    fd = open(in_dir("d/file"), O_RDWR | O_CLOEXEC);
    p = mmap(NULL, 7, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    p[0] = 'C';
    close(fd);
    munmap(p, 7);
    assert_file_changed();
}

static void something_is_written_by_its_other_name(void)
{
    ck_assert_int_eq(link(in_dir("d/file"), in_dir("out/name")), 0);
    drain();
    append(in_dir("out/name"));
    assert_tells('c', &file_key, "");
    ck_assert_int_eq(chmod(in_dir("out/name"), 0600), 0);
    assert_tells('c', &file_key, "");
    ck_assert_int_eq(unlink(in_dir("out/name")), 0);
    assert_tells('c', &file_key, "");
}

static void reading_is_no_change(void)
{
    char room[16];
    struct stat st;
    int fd;

    fd = open(in_dir("d/file"), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(read(fd, room, sizeof(room)), 7);
    close(fd);
    ck_assert_int_eq(stat(in_dir("d/file"), &st), 0);
    fd = open(in_dir("d"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(fd);
    drain();
    ck_assert_uint_eq(told.n, 0);
}

/* ---- attributes ---- */

static void attributes_of_a_file(void)
{
    static const struct timespec times[2] = { { 1, 1 }, { 2, 2 } };

    ck_assert_int_eq(chmod(in_dir("d/file"), 0600), 0);
    assert_changed(true);
    ck_assert_int_eq(utimensat(AT_FDCWD, in_dir("d/file"), times, 0), 0);
    assert_changed(true);
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chown(in_dir("d/file"), UNIT_NOBODY, UNIT_NOBODY), 0);
    assert_changed(true);
}

static void attributes_of_a_directory(void)
{
    static const struct timespec times[2] = { { 1, 1 }, { 2, 2 } };

    ck_assert_int_eq(chmod(in_dir("d"), 0700), 0);
    assert_tells('c', &dir_key, "");
    ck_assert_int_eq(utimensat(AT_FDCWD, in_dir("d"), times, 0), 0);
    assert_tells('c', &dir_key, "");
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chown(in_dir("d"), UNIT_NOBODY, UNIT_NOBODY), 0);
    assert_tells('c', &dir_key, "");
}

static void attributes_of_a_directory_in_a_directory(void)
{
    struct fp_watch_key sub;

    ck_assert_int_eq(mkdir(in_dir("d/sub"), 0755), 0);
    sub = place(in_dir("d/sub"));
    drain();
    ck_assert_int_eq(chmod(in_dir("d/sub"), 0700), 0);
    assert_tells('c', &sub, "");
    assert_told('c', &dir_key, "sub");
}

/* ---- the end of watching ---- */

static void a_watch_that_is_not_needed_ends(void)
{
    fp_watch_forget(&watch, &dir_key);
    drain();
    assert_told('g', &dir_key, "");
    ck_assert_int_eq(chmod(in_dir("d/file"), 0600), 0);
    assert_tells('c', &file_key, "");
    ck_assert(!was_told('c', &dir_key, "file"));
    /* To forget a key that is gone already does no harm. */
    fp_watch_forget(&watch, &dir_key);
    fp_watch_forget(&watch, &(struct fp_watch_key){ .len = 0 });
    drain();
    ck_assert_uint_eq(told.n, 0);
}

static void directory_is_removed(void)
{
    ck_assert_int_eq(unlink(in_dir("d/file")), 0);
    ck_assert_int_eq(rmdir(in_dir("d")), 0);
    drain();
    assert_told('g', &dir_key, "");
}

/* Under its new name it is the same directory still. */
static void directory_is_renamed(void)
{
    ck_assert_int_eq(rename(in_dir("d"), in_dir("e")), 0);
    drain();
    ck_assert(!was_told('g', &dir_key, ""));
    ck_assert_int_eq(chmod(in_dir("e/file"), 0600), 0);
    assert_tells('c', &dir_key, "file");
}

START_TEST(numbers_are_not_given_anew)
{
    struct fp_watch_key before = { 0 };

    begin();
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

struct placer {
    int fd;
    atomic_bool stops;
};

static void *place_all_the_time(void *arg)
{
    struct placer *p = arg;
    struct fp_watch_key key;

    while (!atomic_load(&p->stops) && fp_watch_place(&watch, p->fd, true, &key) == FP_OK)
        ;
    return NULL;
}

/* Workers watch what is watched already, whenever they pass it. */
START_TEST(nothing_is_missed_while_it_is_watched_anew)
{
    struct placer placer = { .stops = false };
    pthread_t thread;

    begin();
    placer.fd = open(in_dir("d"), O_PATH | O_CLOEXEC);
    ck_assert_int_eq(pthread_create(&thread, NULL, place_all_the_time, &placer), 0);
    for (int i = 0; i < 4000; i++) {
        unit_write_file(in_dir("d/new"), "");
        assert_tells('r', &dir_key, "new");
        ck_assert_int_eq(unlink(in_dir("d/new")), 0);
        assert_tells('r', &dir_key, "new");
    }
    atomic_store(&placer.stops, true);
    pthread_join(thread, NULL);
    close(placer.fd);
}
END_TEST

static int kernel_number(const char *name)
{
    char path[64];
    int number;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/sys/fs/inotify/%s", name);
    f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%d", &number), 1);
    fclose(f);
    return number;
}

/* Watches of this process's inotify. */
static unsigned watches_left(void)
{
    char path[64], line[256];
    unsigned n = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", watch.inotify);
    f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof(line), f) != NULL)
        n += strncmp(line, "inotify wd:", 11) == 0;
    fclose(f);
    return n;
}

/* n watched files, needed no more. False, with a line that says so, if other processes hold the watches. */
static bool watch_and_forget(struct fp_watch_key *keys, int n)
{
    char name[32];

    for (int i = 0; i < n; i++) {
        fp_status status;

        snprintf(name, sizeof(name), "out/%d", i);
        unit_write_file(in_dir(name), "");
        status = try_place(in_dir(name), &keys[i]);
        if (status == FP_BUSY) {
            /* No more than these and those of begin() are ours. */
            ck_assert_uint_eq(watches_left(), (unsigned)i + 3);
            skip("other processes hold the watches; fs.inotify.max_user_watches allows no more");
            return false;
        }
        ck_assert_int_eq((int)status, FP_OK);
    }
    drain();
    for (int i = 0; i < n; i++)
        fp_watch_forget(&watch, &keys[i]);
    return true;
}

/* More than the kernel's queue has room for; one of them is needed again before its turn comes. */
START_TEST(very_many_are_not_needed)
{
    const int n = kernel_number("max_queued_events") + 4000;
    struct fp_watch_key *keys = calloc((size_t)n, sizeof(*keys));
    char name[32];

    ck_assert_ptr_nonnull(keys);
    if (n + 1000 > kernel_number("max_user_watches") || n > 100000) {
        skip("too few watches are allowed");
        free(keys);
        return;
    }
    begin();
    if (!watch_and_forget(keys, n)) {
        free(keys);
        return;
    }
    needed = keys[n / 2];
    ck_assert_int_eq(chmod(in_dir("d/file"), 0600), 0);
    drain();
    ck_assert_uint_eq(told.lost, 0);
    do {
        drain();
        ck_assert_uint_eq(told.lost, 0);
    } while (told.n > 0);
    ck_assert_uint_eq(watches_left(), 3); /* those of begin(), too */
    snprintf(name, sizeof(name), "out/%d", n / 2);
    ck_assert_int_eq(chmod(in_dir(name), 0600), 0);
    assert_tells('c', &needed, "");
    free(keys);
}
END_TEST

/* Those end without a report, and the rest still waits for its turn. */
START_TEST(very_many_are_gone)
{
    const int n = 4000;
    struct fp_watch_key *keys = calloc((size_t)n, sizeof(*keys));
    unsigned drains = 0;
    char name[32];

    ck_assert_ptr_nonnull(keys);
    begin();
    if (!watch_and_forget(keys, n)) {
        free(keys);
        return;
    }
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "out/%d", i);
        ck_assert_int_eq(unlink(in_dir(name)), 0);
    }
    while (fp_watch_is_pending(&watch)) {
        drain();
        drains++;
    }
    ck_assert_uint_ge(drains, 3);
    free(keys);
}
END_TEST

/* clang-format would give each of them a line. */
/* clang-format off */
static void (*const kinds[])(void) = {
    something_is_made, something_is_removed, open_file_is_removed, something_is_renamed,
    something_is_renamed_over, two_are_exchanged, names_of_the_most_bytes, something_is_written,
    something_is_written_through_a_mapping, something_is_written_by_its_other_name,
    reading_is_no_change, attributes_of_a_file, attributes_of_a_directory,
    attributes_of_a_directory_in_a_directory, a_watch_that_is_not_needed_ends, directory_is_removed,
    directory_is_renamed
};
/* clang-format on */

START_TEST(each_kind_tells)
{
    begin();
    kinds[_i]();
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("watch");
    TCase *t = unit_add_case(s, "changes", setup, teardown, 20);

    tcase_add_loop_test(t, each_kind_tells, 0, sizeof(kinds) / sizeof(kinds[0]));
    tcase_add_test(t, nothing_is_missed_while_it_is_watched_anew);
    tcase_add_test(t, numbers_are_not_given_anew);
    tcase_add_test(t, very_many_are_not_needed);
    tcase_add_test(t, very_many_are_gone);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
