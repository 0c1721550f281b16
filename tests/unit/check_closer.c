/* SPDX-License-Identifier: Apache-2.0 */
/* The closers close the descriptors left to them, in the caller's table, and end with it. */
#include "config.h"
#include "privsep/closer.h"

#include <signal.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "unit.h"
#include "wire/packet.h"

#define LIMIT       256
#define PATIENCE_MS 20000

static pid_t pids[FP_CLOSERS];

static void setup(void)
{
    ck_assert_int_eq(fp_closer_start(LIMIT, NULL, NULL, NULL, pids), 0);
}

static void teardown(void)
{
    fp_closer_stop();
    /* After a test that failed. */
    kill(pids[0], SIGCONT);
}

static void wait_until_closed(void)
{
    for (int i = 0; fp_closer_waiting() > 0; i++) {
        ck_assert_int_lt(i, PATIENCE_MS);
        usleep(1000);
    }
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) != -1;
}

START_TEST(a_closer_closes)
{
    int fds[100];

    for (int i = 0; i < 100; i++)
        ck_assert_int_ne(fds[i] = open("/", O_PATH | O_CLOEXEC), -1);
    for (int i = 0; i < 100; i++) {
        int fd = fds[i];

        errno = EIO;
        fp_close_file(&fd, (uint32_t)i % 7);
        ck_assert_int_eq(fd, -1);
        ck_assert_int_eq(errno, EIO);
    }
    wait_until_closed();
    for (int i = 0; i < 100; i++)
        ck_assert(!is_open(fds[i]));
    ck_assert(!fp_closer_is_stuck(1, 1));
}
END_TEST

/* A number that is free again belongs to another file. */
START_TEST(numbers_are_used_again)
{
    for (int i = 0; i < 1000; i++) {
        int fd = open("/", O_PATH | O_CLOEXEC), other = open("/", O_PATH | O_CLOEXEC);

        fp_close_file(&fd, (uint32_t)i);
        fp_close_file(&other, 0);
        fd = open("/", O_PATH | O_CLOEXEC);
        wait_until_closed();
        ck_assert(is_open(fd));
        close(fd);
    }
}
END_TEST

START_TEST(nothing_is_closed_that_is_none_or_beyond_the_limit)
{
    int none = -1, beyond = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, LIMIT + 10), was = beyond;

    fp_close_file(&none, 0);
    ck_assert_uint_eq(fp_closer_waiting(), 0);
    ck_assert_int_ge(beyond, LIMIT);
    fp_close_file(&beyond, 0);
    ck_assert_int_eq(beyond, -1);
    ck_assert(!is_open(was));
}
END_TEST

/* Some closers are stopped: as if they hung, or had much work. */
START_TEST(mounts_do_not_wait_for_each_other)
{
    int hung[70], other;

    ck_assert_int_eq(kill(pids[0], SIGSTOP), 0);
    ck_assert_int_eq(waitpid(pids[0], &other, WUNTRACED), pids[0]);
    for (int i = 0; i < 70; i++) {
        hung[i] = open("/", O_PATH | O_CLOEXEC);
        other = hung[i];
        fp_close_file(&other, 5);
    }
    ck_assert(!fp_closer_is_stuck(5, fp_now_ms()));
    for (int i = 0; i < 50; i++) {
        int fd = open("/", O_PATH | O_CLOEXEC), was = fd;

        fp_close_file(&fd, 6);
        for (int n = 0; is_open(was); n++) {
            ck_assert_int_lt(n, PATIENCE_MS);
            usleep(1000);
        }
    }
    ck_assert_uint_eq(fp_closer_waiting(), 70);
    ck_assert(fp_closer_is_stuck(5, fp_now_ms() + 5000));
    ck_assert(!fp_closer_is_stuck(6, fp_now_ms() + 5000));
    ck_assert_int_eq(kill(pids[0], SIGCONT), 0);
    wait_until_closed();
    ck_assert(!fp_closer_is_stuck(5, fp_now_ms() + 10000));
}
END_TEST

/* One hangs and keeps the table: the others close the connections. */
START_TEST(sockets_are_hung_up_when_the_parent_is_dead)
{
    int ends[2];
    char c;
    pid_t pid;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    fp_closer_stop();
    pid = fork();
    if (pid == 0) {
        close(ends[0]);
        if (fp_closer_start(LIMIT, NULL, NULL, NULL, pids) == -1 || kill(pids[1], SIGSTOP) == -1
            || write(ends[1], &pids[1], sizeof(pids[1])) != sizeof(pids[1]))
            _exit(1);
        raise(SIGKILL);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &pids[1], sizeof(pids[1])), sizeof(pids[1]));
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    ck_assert(unit_wait_readable(ends[0], PATIENCE_MS));
    ck_assert_int_eq(read(ends[0], &c, 1), 0);
    kill(pids[1], SIGKILL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("closer");
    TCase *t = unit_add_case(s, "closer", setup, teardown, 60);

    tcase_add_test(t, a_closer_closes);
    tcase_add_test(t, numbers_are_used_again);
    tcase_add_test(t, nothing_is_closed_that_is_none_or_beyond_the_limit);
    tcase_add_test(t, mounts_do_not_wait_for_each_other);
    tcase_add_test(t, sockets_are_hung_up_when_the_parent_is_dead);
    return unit_run(s);
}
