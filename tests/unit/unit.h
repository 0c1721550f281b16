/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common part of the unit tests: running one suite, a directory that goes away with the
 * program, and looking at this process's descriptors.
 */
#ifndef FP_UNIT_H
#define FP_UNIT_H

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNIT_NOBODY 65534 /* a user and group without rights */

static char unit_dir[PATH_MAX]; /* absolute, without links, readable by all */

static inline int unit_remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

/* A case of the suite; seconds: how long one test may take, 0: Check's default. */
static inline TCase *unit_add_case(Suite *suite, const char *name, SFun setup, SFun teardown, double seconds)
{
    TCase *t = tcase_create(name);

    tcase_add_checked_fixture(t, setup, teardown);
    if (seconds > 0)
        tcase_set_timeout(t, seconds);
    suite_add_tcase(suite, t);
    return t;
}

/* Runs a suite as CK_RUN_CASE, CK_FORK and CK_VERBOSITY say; for main(). */
static inline int unit_run(Suite *suite)
{
    const char *tmp = getenv("TMPDIR");
    char name[PATH_MAX];
    SRunner *runner;
    int failed;

    snprintf(name, sizeof(name), "%s/unit.XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(name) == NULL || chmod(name, 0755) == -1 || realpath(name, unit_dir) == NULL) {
        perror(name);
        return EXIT_FAILURE;
    }
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    nftw(unit_dir, unit_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* A new empty directory, readable by all.  room is of PATH_MAX bytes. */
static inline void unit_fresh_dir(char *room)
{
    ck_assert_int_lt(snprintf(room, PATH_MAX, "%s/XXXXXX", unit_dir), PATH_MAX);
    ck_assert_ptr_nonnull(mkdtemp(room));
    ck_assert_int_eq(chmod(room, 0755), 0);
}

/* "dir/name" in one of a few static rooms, used in turn. */
static inline const char *unit_join(const char *dir, const char *name)
{
    static char rooms[8][PATH_MAX];
    static unsigned turn;
    char *room = rooms[turn++ % 8], made[PATH_MAX]; /* dir may be such a room */

    ck_assert_int_lt(snprintf(made, PATH_MAX, "%s/%s", dir, name), PATH_MAX);
    return strcpy(room, made);
}

static inline void unit_write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* The number of a process's descriptors ("self" or a number); -1: no such process. */
static inline int unit_count_fds(const char *process)
{
    char name[64];
    DIR *d;
    int n = 0;

    snprintf(name, sizeof(name), "/proc/%s/fd", process);
    d = opendir(name);
    if (d == NULL)
        return -1;
    for (const struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        n += e->d_name[0] != '.';
    closedir(d);
    return strcmp(process, "self") == 0 ? n - 1 : n;
}

static inline int unit_open_fds(void)
{
    return unit_count_fds("self");
}

static inline bool unit_is_open(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

/* Leaves the process room for n more descriptors; returns the limit before. */
static inline struct rlimit unit_leave_fds(unsigned n)
{
    struct rlimit before, now;
    unsigned found = 0;
    int fd = 0;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (; found <= n; fd++)
        found += !unit_is_open(fd);
    now = before;
    now.rlim_cur = (rlim_t)(fd - 1);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &now), 0);
    return before;
}

static inline void unit_restore_fds(const struct rlimit *before)
{
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, before), 0);
}

static inline uint64_t unit_now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static inline void unit_sleep_ms(long ms)
{
    const struct timespec ts = { ms / 1000, (ms % 1000) * 1000000 };

    nanosleep(&ts, NULL);
}

/* True if fd becomes readable (or ends) within the time. */
static inline bool unit_wait_readable(int fd, int ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, ms) == 1;
}

/* The same sequence for the same seed, everywhere (xorshift64*). */
static inline uint64_t unit_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717u;
}

static inline void unit_random_bytes(uint64_t *state, uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(unit_random(state) >> 32);
}

#endif
