/* SPDX-License-Identifier: Apache-2.0 */
/* The test replaces the functions that the monitor calls, and checks what they are asked for. */
#include "config.h"
#include "privsep/monitor.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include "base/log.h"
#include "conf/conf.h"
#include "conf/conf_fleet.h"
#include "privsep/spawner.h"
#include "unit.h"
#include "wire/packet.h"
#include "wire/socket_path.h"

static char dir[PATH_MAX], file[PATH_MAX], password[PATH_MAX], socket_path[PATH_MAX];
static struct fp_fleet_settings fleet;
static struct fp_conf conf;
static struct fp_worker_job job = { .inherited = -1 };
static struct fp_monitor_settings settings;
static struct fp_monitor monitor;
static int fds_at_rest;

/* ---- in the monitor's process ---- */

/* A file that begins with "log=" is good, and its log is what follows. */
struct fp_conf *fp_conf_load(const char *name, char *const *overrides, size_t n)
{
    static char text[PATH_MAX];
    struct fp_conf *c;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t len = read(fd, text, sizeof(text) - 1);

    (void)overrides;
    (void)n;
    close(fd);
    text[len > 0 ? len : 0] = '\0';
    if (strncmp(text, "log=", 4) != 0) {
        fputs("a mistake\n", stderr);
        return NULL;
    }
    c = calloc(1, sizeof(*c));
    c->log = text + 4;
    return c;
}

void fp_conf_destroy(struct fp_conf **c)
{
    free(*c);
    *c = NULL;
}

int fp_log_open_file(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

void fp_log(enum fp_log_level level, int id, const char *format, ...)
{
    (void)level;
    (void)id;
    (void)format;
}

/* Opening hangs while there is a file with the name of the file and ".hangs". */
int __real_fp_open_now(const char *path);
int __wrap_fp_open_now(const char *path);

int __wrap_fp_open_now(const char *path)
{
    char hangs[PATH_MAX + 8];

    snprintf(hangs, sizeof(hangs), "%s.hangs", path);
    while (access(hangs, F_OK) == 0)
        pause();
    return __real_fp_open_now(path);
}

static int connect_fleet(const struct fp_fleet_settings *s)
{
    ck_assert_ptr_eq(s, &fleet);
    errno = ECONNREFUSED;
    return -1;
}

int fp_spawner_start(struct fp_spawner *s, const struct fp_worker_job *j)
{
    int ends[2];

    ck_assert_ptr_eq(j, &job);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == -1)
        return -1;
    close(ends[1]);
    s->sock = ends[0];
    return 0;
}

/* ---- */

static void setup(void)
{
    unit_fresh_dir(dir);
    strcpy(file, unit_join(dir, "conf"));
    strcpy(password, unit_join(dir, "password"));
    strcpy(socket_path, unit_join(dir, "socket"));
    unit_write_file(file, "log=/nowhere/log");
    unit_write_file(password, "secret");
    unit_write_file(socket_path, "");
    fleet.password_file = password;
    conf = (struct fp_conf){ .socket = socket_path, .log = file, .fleet = &fleet };
    settings = (struct fp_monitor_settings){ .file = file,
                                             .conf = &conf,
                                             .job = &job,
                                             .connect_fleet = connect_fleet };
    fds_at_rest = unit_open_fds();
    ck_assert_int_eq(fp_monitor_start(&monitor, &settings), 0);
}

static void teardown(void)
{
    fp_monitor_stop(&monitor);
    ck_assert_int_eq(monitor.sock, -1);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

static int ask(enum fp_monitor_task task)
{
    errno = 0;
    return fp_monitor_ask(&monitor, task);
}

static void assert_fails(enum fp_monitor_task task, int why)
{
    ck_assert_int_eq(ask(task), -1);
    ck_assert_int_eq(errno, why);
}

static void assert_reads(int fd, const char *text)
{
    char room[64];

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_eq(pread(fd, room, sizeof(room), 0), (ssize_t)strlen(text));
    ck_assert_mem_eq(room, text, strlen(text));
    close(fd);
}

/* The pipe brings that text.  A reader that was killed has its place until the kernel has ended it. */
static void assert_password(const char *text)
{
    int fd = ask(FP_MONITOR_PASSWORD);
    char room[64];

    for (int i = 0; i < 3000 && fd == -1 && errno == EBUSY; i++) {
        usleep(1000);
        fd = ask(FP_MONITOR_PASSWORD);
    }
    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert(unit_wait_readable(fd, 3000));
    ck_assert_int_eq(read(fd, room, sizeof(room)), (ssize_t)strlen(text));
    ck_assert_mem_eq(room, text, strlen(text));
    close(fd);
}

START_TEST(files_that_the_configuration_names)
{
    assert_password("secret");
    ck_assert_int_eq(unlink(password), 0);
    assert_password("");
    assert_reads(ask(FP_MONITOR_CONFIGURATION), "log=/nowhere/log");
}
END_TEST

START_TEST(the_log_is_the_present_configurations)
{
    const char *log = unit_join(dir, "log");
    char text[PATH_MAX + 8];
    int fd = ask(FP_MONITOR_LOG); /* at first: that of the start */

    ck_assert_int_eq(write(fd, "", 0), 0);
    close(fd);
    ck_assert_int_eq(access(log, F_OK), -1);
    snprintf(text, sizeof(text), "log=%s", log);
    unit_write_file(file, text);
    close(ask(FP_MONITOR_CONFIGURATION));
    fd = ask(FP_MONITOR_LOG);
    ck_assert_int_eq(write(fd, "line", 4), 4);
    close(fd);
    fd = open(log, O_RDONLY | O_CLOEXEC);
    assert_reads(fd, "line");
}
END_TEST

/* The good settings still hold. The monitor keeps a lent log for the task alone. */
START_TEST(mistakes_are_told_here)
{
    struct fp_worker_job lent = { .inherited = -1, .lent_log = true };
    const int saved = dup(STDERR_FILENO);
    int room = memfd_create("stderr", MFD_CLOEXEC), rc, why;

    if (_i == 1) {
        fp_monitor_stop(&monitor);
        settings.job = &lent;
        ck_assert_int_eq(fp_monitor_start(&monitor, &settings), 0);
    }
    unit_write_file(file, "nonsense");
    dup2(room, STDERR_FILENO);
    rc = ask(FP_MONITOR_CONFIGURATION);
    why = errno;
    dup2(saved, STDERR_FILENO);
    close(saved);
    ck_assert_int_eq(rc, -1);
    ck_assert_int_eq(why, EINVAL);
    assert_reads(room, "a mistake\n");
    assert_password("secret");
}
END_TEST

/* No mistake in it. */
START_TEST(a_configuration_that_is_not_there)
{
    ck_assert_int_eq(unlink(file), 0);
    assert_fails(FP_MONITOR_CONFIGURATION, ENOENT);
    unit_write_file(file, "log=/nowhere/log");
    assert_reads(ask(FP_MONITOR_CONFIGURATION), "log=/nowhere/log");
}
END_TEST

/* Neither the daemon nor the monitor waits for the password's file system. */
START_TEST(a_password_that_cannot_be_read_in_time)
{
    char hangs[PATH_MAX + 8], c;
    int fd;

    snprintf(hangs, sizeof(hangs), "%s.hangs", password);
    unit_write_file(hangs, "");
    fd = ask(FP_MONITOR_PASSWORD);
    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(read(fd, &c, 1), -1);
    ck_assert_int_eq(errno, EAGAIN);
    assert_reads(ask(FP_MONITOR_CONFIGURATION), "log=/nowhere/log");
    close(fd);
}
END_TEST

/* Two processes read at a time, one for each connection; of two that hang, the older gives its place. */
START_TEST(readers_that_hang)
{
    char hangs[PATH_MAX + 8], c;
    int older, newer;

    snprintf(hangs, sizeof(hangs), "%s.hangs", password);
    unit_write_file(hangs, "");
    older = ask(FP_MONITOR_PASSWORD);
    newer = ask(FP_MONITOR_PASSWORD);
    assert_fails(FP_MONITOR_PASSWORD, EBUSY);
    ck_assert(unit_wait_readable(older, 3000));
    ck_assert_int_eq(read(older, &c, 1), 0);
    ck_assert_int_eq(read(newer, &c, 1), -1);
    ck_assert_int_eq(unlink(hangs), 0);
    assert_password("secret");
    close(older);
    close(newer);
}
END_TEST

START_TEST(without_a_fleet)
{
    close(ask(FP_MONITOR_CONFIGURATION));
    assert_fails(FP_MONITOR_PASSWORD, ENOENT);
    assert_fails(FP_MONITOR_REDIS, ENOENT);
}
END_TEST

START_TEST(errors_are_told)
{
    assert_fails(FP_MONITOR_REDIS, ECONNREFUSED);
    ck_assert_int_eq(unlink(socket_path), 0);
    assert_fails(FP_MONITOR_END_SOCKET, ENOENT);
}
END_TEST

START_TEST(a_spawner)
{
    int sock = ask(FP_MONITOR_SPAWNER);
    char c;

    ck_assert_int_ne(sock, -1);
    ck_assert_int_eq(recv(sock, &c, 1, MSG_DONTWAIT), 0); /* the other end is nobody's */
    close(sock);
}
END_TEST

START_TEST(the_socket_and_its_lock_are_made_again)
{
    int lock = ask(FP_MONITOR_LOCK), sock, listens = 0;
    socklen_t len = sizeof(listens);

    ck_assert_int_ne(lock, -1);
    ck_assert(fp_socket_path_has_lock(socket_path, lock));
    assert_fails(FP_MONITOR_LOCK, EWOULDBLOCK);
    assert_fails(FP_MONITOR_SOCKET, EADDRINUSE);
    ck_assert_int_eq(unlink(socket_path), 0);
    sock = ask(FP_MONITOR_SOCKET);
    ck_assert_int_eq(getsockopt(sock, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len), 0);
    ck_assert_int_eq(listens, 1);
    close(sock);
    close(lock);
}
END_TEST

START_TEST(the_socket_goes)
{
    ck_assert_int_ne(ask(FP_MONITOR_END_SOCKET), -1);
    ck_assert_int_eq(access(socket_path, F_OK), -1);
    assert_fails(FP_MONITOR_END_SOCKET, ENOENT);
}
END_TEST

/* The daemon's end of the socket can name no path. */
START_TEST(nonsense_ends_it)
{
    const uint8_t no_task = 200, two[2] = { 0, 0 };

    if (_i == 0)
        fp_send_packet(monitor.sock, &no_task, 1, -1);
    else
        fp_send_packet(monitor.sock, two, 2, -1);
    ck_assert(unit_wait_readable(monitor.sock, 3000));
    assert_fails(FP_MONITOR_LOG, EPIPE);
}
END_TEST

START_TEST(out_of_descriptors)
{
    struct rlimit now, few;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &now), 0);
    few = now;
    few.rlim_cur = (rlim_t)monitor.sock + 1;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_fails(FP_MONITOR_PASSWORD, EMFILE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &now), 0);
    assert_password("secret");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("monitor");
    TCase *t = unit_add_case(s, "tasks", setup, teardown, 0);

    tcase_add_test(t, files_that_the_configuration_names);
    tcase_add_test(t, the_log_is_the_present_configurations);
    tcase_add_loop_test(t, mistakes_are_told_here, 0, 2);
    tcase_add_test(t, a_configuration_that_is_not_there);
    tcase_add_test(t, a_password_that_cannot_be_read_in_time);
    tcase_add_test(t, readers_that_hang);
    tcase_add_test(t, without_a_fleet);
    tcase_add_test(t, errors_are_told);
    tcase_add_test(t, a_spawner);
    tcase_add_test(t, the_socket_and_its_lock_are_made_again);
    tcase_add_test(t, the_socket_goes);
    tcase_add_loop_test(t, nonsense_ends_it, 0, 2);
    tcase_add_test(t, out_of_descriptors);
    return unit_run(s);
}
