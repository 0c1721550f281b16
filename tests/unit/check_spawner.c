/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "privsep/spawner.h"

#include <sys/prctl.h>
#include <sys/socket.h>

#include "privsep/sandbox.h"
#include "unit.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/task.h"
#include "wire/walk_result.h"
#include "wire/wire.h"
#include "workers/resolve.h"
#include "workers/worker.h"

#define PATIENCE_MS 3000

static struct fp_resolver_settings everywhere; /* and nothing is watched */
static const struct fp_worker_job job = { fp_worker_run, &everywhere, -1, false };
static struct fp_sandbox *sandbox;
static struct fp_spawner spawner;
static struct fp_answer answer;
static char dir[PATH_MAX];
static int fds_at_rest;

static void setup(void)
{
    unit_fresh_dir(dir);
    fds_at_rest = unit_open_fds();
    /* Workers do all that is tested here in their own sandbox; NULL in a build without. */
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    everywhere.sandbox = sandbox = fp_sandbox_create(FP_SANDBOX_WORKER);
    ck_assert_int_eq(fp_spawner_start(&spawner, &job), 0);
    answer.fd = -1;
}

static void teardown(void)
{
    fp_close(&answer.fd);
    fp_spawner_stop(&spawner);
    fp_sandbox_destroy(&sandbox);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

/* ---- processes ---- */

/* A field of /proc/PID/status; "" when there is no such process. */
static const char *status_of(pid_t pid, const char *field)
{
    static char line[256];
    char name[64];
    FILE *f;

    snprintf(name, sizeof(name), "/proc/%d/status", (int)pid);
    f = fopen(name, "re");
    if (f == NULL)
        return "";
    while (fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, field, strlen(field)) != 0)
            continue;
        fclose(f);
        line[strcspn(line, "\n")] = '\0';
        return line + strlen(field) + 2;
    }
    fclose(f);
    return "";
}

/* Ended, whether somebody has reaped it or not. */
static bool is_dead(pid_t pid)
{
    const char *state = status_of(pid, "State");

    return state[0] == '\0' || state[0] == 'Z' || state[0] == 'X';
}

static bool is_reaped(pid_t pid)
{
    return status_of(pid, "State")[0] == '\0';
}

/* Waits for its next task, and has cleared up after the last. */
static bool is_asleep(pid_t pid)
{
    return status_of(pid, "State")[0] == 'S';
}

static bool wait_for(bool (*happened)(pid_t), pid_t pid)
{
    const uint64_t end = unit_now_ms() + PATIENCE_MS;

    while (!happened(pid) && unit_now_ms() < end)
        unit_sleep_ms(2);
    return happened(pid);
}

/* ---- workers ---- */

static fp_status read_worker(pid_t *pid_r, int *sock_r)
{
    ck_assert(unit_wait_readable(spawner.sock, PATIENCE_MS));
    return fp_spawner_read(&spawner, pid_r, sock_r);
}

static int spawn(pid_t *pid_r)
{
    int sock = -1;

    ck_assert_int_eq((int)fp_spawner_ask(&spawner), FP_OK);
    ck_assert_int_eq((int)read_worker(pid_r, &sock), FP_OK);
    ck_assert_int_gt(*pid_r, 0);
    ck_assert_int_ne(sock, -1);
    return sock;
}

static fp_status send_task(int sock, uint64_t id, const char *path, size_t base_len, int base)
{
    static uint8_t buf[FP_MAX_FRAME];
    const struct fp_task t = {
        .lookup = { .deadline_ms = 1000, .path = path, .path_len = strlen(path) },
        .base_len = base_len,
    };
    struct fp_writer w;

    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_task_encode(&w, id, &t), FP_OK);
    return fp_send_packet(sock, buf, w.len, base);
}

/* Behind an answer with a file that may wait when it is closed. */
static void read_closed(int sock, uint64_t id)
{
    uint8_t buf[64];
    struct fp_frame f;
    size_t len = 0;

    ck_assert(unit_wait_readable(sock, PATIENCE_MS));
    ck_assert_int_eq((int)fp_recv_packet(sock, buf, sizeof(buf), &len, NULL), FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, len), FP_OK);
    ck_assert_uint_eq(f.type, FP_FRAME_CLOSED);
    ck_assert_uint_eq(f.id, id);
    ck_assert(fp_reader_done(&f.body));
}

static void read_answer(int sock, uint64_t id, const char *path, size_t base_len)
{
    static uint8_t buf[FP_MAX_FRAME];
    static struct fp_walk_result result;
    const struct fp_task t = { .lookup = { .path = path, .path_len = strlen(path) }, .base_len = base_len };
    struct fp_frame f;
    size_t len = 0;
    int fd = -1;

    fp_close(&answer.fd);
    ck_assert(unit_wait_readable(sock, PATIENCE_MS));
    ck_assert_int_eq((int)fp_recv_packet(sock, buf, sizeof(buf), &len, &fd), FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, len), FP_OK);
    ck_assert_uint_eq(f.type, FP_FRAME_ANSWER);
    ck_assert_uint_eq(f.id, id);
    ck_assert_int_eq((int)fp_result_decode(&f.body, &t, fd, &answer, &result), FP_OK);
    if (fp_result_is_closed_later(&answer))
        read_closed(sock, id);
}

static void ask(int sock, uint64_t id, const char *path)
{
    ck_assert_int_eq((int)send_task(sock, id, path, 0, -1), FP_OK);
    read_answer(sock, id, path, 0);
}

static void assert_content(const char *text)
{
    char room[64];

    ck_assert_int_eq((int)answer.status, FP_OK);
    ck_assert_int_ne(answer.fd, -1);
    ck_assert_int_eq(pread(answer.fd, room, sizeof(room), 0), (ssize_t)strlen(text));
    ck_assert_mem_eq(room, text, strlen(text));
}

/* Its end of the pair is closed. */
static bool has_ended(int sock)
{
    char c;

    return unit_wait_readable(sock, PATIENCE_MS) && recv(sock, &c, 1, 0) <= 0;
}

/* ---- with one worker from the start ---- */

static pid_t worker;
static int worker_sock;

static void setup_worker(void)
{
    setup();
    worker_sock = spawn(&worker);
}

static void teardown_worker(void)
{
    fp_close(&worker_sock);
    teardown();
}

/* ---- the work of workers ---- */

START_TEST(worker_answers)
{
    const char *path = unit_join(dir, "file"), *no = unit_join(dir, "no");

    unit_write_file(path, "content");
    ask(worker_sock, 1, path);
    assert_content("content");
    ask(worker_sock, UINT64_MAX, no);
    ck_assert_int_eq((int)answer.steps[answer.n_steps - 1].status, FP_ABSENT);
    ck_assert_int_eq(answer.fd, -1);
    ask(worker_sock, 3, path);
    assert_content("content");
}
END_TEST

START_TEST(worker_begins_at_a_base)
{
    const char *path = unit_join(dir, "file");
    int base = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    unit_write_file(path, "content");
    ck_assert_int_eq((int)send_task(worker_sock, 5, path, strlen(dir), base), FP_OK);
    read_answer(worker_sock, 5, path, strlen(dir));
    ck_assert_uint_eq(answer.n_steps, 1);
    assert_content("content");
    close(base);
}
END_TEST

/* The kernel has no number for the base: the worker says so and stays. */
START_TEST(worker_without_descriptors)
{
    const char *path = unit_join(dir, "file");
    struct rlimit none, before;
    int base = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

    unit_write_file(path, "content");
    ask(worker_sock, 1, path);
    ck_assert(wait_for(is_asleep, worker));
    ck_assert_int_eq(prlimit(worker, RLIMIT_NOFILE, NULL, &before), 0);
    none = (struct rlimit){ 0, before.rlim_max };
    ck_assert_int_eq(prlimit(worker, RLIMIT_NOFILE, &none, NULL), 0);
    ck_assert_int_eq((int)send_task(worker_sock, 2, path, strlen(dir), base), FP_OK);
    read_answer(worker_sock, 2, path, strlen(dir));
    ck_assert_int_eq((int)answer.status, FP_BUSY);
    ck_assert_int_eq(prlimit(worker, RLIMIT_NOFILE, &before, NULL), 0);
    ck_assert_int_eq((int)send_task(worker_sock, 3, path, strlen(dir), base), FP_OK);
    read_answer(worker_sock, 3, path, strlen(dir));
    assert_content("content");
    close(base);
}
END_TEST

START_TEST(workers_work_side_by_side)
{
    const char *path = unit_join(dir, "file");
    pid_t pids[8];
    int socks[8];

    unit_write_file(path, "content");
    for (int i = 0; i < 8; i++)
        socks[i] = spawn(&pids[i]);
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq((int)send_task(socks[i], (uint64_t)i, path, 0, -1), FP_OK);
    for (int i = 7; i >= 0; i--) {
        read_answer(socks[i], (uint64_t)i, path, 0);
        assert_content("content");
        for (int j = 0; j < i; j++)
            ck_assert_int_ne(pids[i], pids[j]);
        close(socks[i]);
    }
}
END_TEST

START_TEST(worker_keeps_to_the_roots)
{
    static const char *const roots[] = { "/proc", NULL };
    static const struct fp_resolver_settings settings = { .roots = roots };
    static const struct fp_worker_job limited = { fp_worker_run, &settings, -1, false };
    const char *path = unit_join(dir, "file");
    pid_t pid;
    int sock;

    unit_write_file(path, "content");
    fp_spawner_stop(&spawner);
    ck_assert_int_eq(fp_spawner_start(&spawner, &limited), 0);
    sock = spawn(&pid);
    ask(sock, 1, path);
    ck_assert_int_eq((int)answer.status, FP_REFUSED);
    ask(sock, 2, "/proc/version");
    ck_assert_int_ne(answer.fd, -1);
    close(sock);
}
END_TEST

START_TEST(worker_leaks_nothing)
{
    const char *path = unit_join(dir, "file");
    char process[16];
    int before;

    unit_write_file(path, "content");
    snprintf(process, sizeof(process), "%d", (int)worker);
    ask(worker_sock, 0, path);
    ck_assert(wait_for(is_asleep, worker));
    before = unit_count_fds(process);
    for (uint64_t i = 1; i < 50; i++)
        ask(worker_sock, i, i % 2 == 0 ? path : dir);
    ck_assert(wait_for(is_asleep, worker));
    ck_assert_int_eq(unit_count_fds(process), before);
}
END_TEST

/* Each ends the worker, and nothing else. */
static void send_nonsense(int sock, int which)
{
    uint8_t buf[64] = { 0 };
    struct fp_writer w;
    int fd = open("/", O_PATH | O_CLOEXEC);

    fp_writer_init(&w, buf, sizeof(buf));
    switch (which) {
    case 0: ck_assert_int_eq((int)fp_send_packet(sock, "x", 1, -1), FP_OK); break;
    case 1: ck_assert_int_eq((int)fp_send_packet(sock, buf, sizeof(buf), fd), FP_OK); break;
    case 2: ck_assert_int_eq((int)send_task(sock, 1, "/a/../b", 0, -1), FP_OK); break;
    case 3: ck_assert_int_eq((int)send_task(sock, 1, "/a", 0, fd), FP_OK); break;
    case 4: ck_assert_int_eq((int)send_task(sock, 1, "/a/b", 2, -1), FP_OK); break;
    case 5: ck_assert_int_eq((int)send_task(sock, 1, "/a/b", 3, fd), FP_OK); break;
    case 6: ck_assert_int_eq((int)send_task(sock, 1, "/a/b", 4, fd), FP_OK); break;
    case 7:
        fp_empty_encode(&w, FP_FRAME_REFERENCED, 0);
        ck_assert_int_eq((int)fp_send_packet(sock, buf, w.len, -1), FP_OK);
        break;
    }
    close(fd);
}
#define NONSENSE 8

START_TEST(nonsense_ends_the_worker)
{
    pid_t next;
    int another;

    send_nonsense(worker_sock, _i);
    ck_assert(has_ended(worker_sock));
    ck_assert(wait_for(is_dead, worker));
    another = spawn(&next);
    ask(another, 1, "/");
    close(another);
}
END_TEST

/* ---- their life ---- */

START_TEST(processes_have_names)
{
    char number[16];

    ask(worker_sock, 1, "/");
    ck_assert_str_eq(status_of(worker, "Name"), "fp-worker");
    ck_assert_str_eq(status_of(spawner.pid, "Name"), "fp-spawner");
    snprintf(number, sizeof(number), "%d", (int)spawner.pid);
    ck_assert_str_eq(status_of(worker, "PPid"), number);
}
END_TEST

START_TEST(daemons_end_of_the_socket)
{
    ck_assert_int_eq(fcntl(worker_sock, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_eq(fcntl(worker_sock, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
    ck_assert_int_eq(fcntl(spawner.sock, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_eq(fcntl(spawner.sock, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
}
END_TEST

static bool has_few_fds(pid_t pid)
{
    char process[16];

    snprintf(process, sizeof(process), "%d", (int)pid);
    return unit_count_fds(process) <= 5;
}

/* Standard streams, its socket and "/" are all its descriptors. */
START_TEST(nothing_is_inherited)
{
    const char *secret = unit_join(dir, "secret");
    char name[64], target[PATH_MAX];
    int held[3], sock, other;
    pid_t pid, sibling;

    unit_write_file(secret, "secret");
    fp_spawner_stop(&spawner);
    for (int i = 0; i < 3; i++)
        held[i] = open(secret, O_RDONLY);
    ck_assert_int_eq(fp_spawner_start(&spawner, &job), 0);
    other = spawn(&sibling);
    sock = spawn(&pid);
    ask(sock, 1, "/");
    /* A moment after its answer it closes the answered file. */
    ck_assert(wait_for(has_few_fds, pid));
    for (int fd = 3; fd < 64; fd++) {
        ssize_t n;

        snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)pid, fd);
        n = readlink(name, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        ck_assert_str_ne(target, secret);
    }
    for (int i = 0; i < 3; i++)
        close(held[i]);
    close(other);
    close(sock);
}
END_TEST

START_TEST(nobody_has_asked)
{
    pid_t pid;
    int sock = -1;

    ck_assert_int_eq((int)fp_spawner_read(&spawner, &pid, &sock), FP_AGAIN);
    ck_assert_int_eq(sock, -1);
}
END_TEST

START_TEST(spawner_without_descriptors)
{
    const struct rlimit none = { 0, 0 };
    struct rlimit before;
    pid_t pid = 99;
    int sock = 99;

    ck_assert_int_eq(prlimit(spawner.pid, RLIMIT_NOFILE, &none, &before), 0);
    ck_assert_int_eq((int)fp_spawner_ask(&spawner), FP_OK);
    ck_assert_int_eq((int)read_worker(&pid, &sock), FP_BUSY);
    ck_assert_int_eq(sock, -1);
    /* Later it can again; only root may raise the limit that far. */
    if (prlimit(spawner.pid, RLIMIT_NOFILE, &before, NULL) == 0) {
        sock = spawn(&pid);
        close(sock);
    }
}
END_TEST

/* The worker whose socket did not come would be nobody's, and hold a place of the spawner's table. */
START_TEST(daemon_without_descriptors)
{
    struct rlimit none, before;
    pid_t pid = 0;
    int sock = 99;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ 0, before.rlim_max };
    ck_assert_int_eq((int)fp_spawner_ask(&spawner), FP_OK);
    ck_assert(unit_wait_readable(spawner.sock, PATIENCE_MS));
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    ck_assert_int_eq((int)fp_spawner_read(&spawner, &pid, &sock), FP_LOSTFD);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    ck_assert_int_eq(sock, -1);
    ck_assert_int_gt(pid, 0);
    ck_assert(wait_for(is_reaped, pid));
}
END_TEST

/* ---- their end ---- */

/* "Kills and reaps": without any other request to the spawner. */
START_TEST(killed_worker_is_gone_and_leaves_no_zombie)
{
    ck_assert_int_eq((int)fp_spawner_kill(&spawner, worker), FP_OK);
    ck_assert(has_ended(worker_sock));
    ck_assert(wait_for(is_dead, worker));
    ck_assert(wait_for(is_reaped, worker));
}
END_TEST

START_TEST(killed_workers_do_not_pile_up)
{
    pid_t pids[20], last;
    int sock;

    for (int i = 0; i < 20; i++) {
        sock = spawn(&pids[i]);
        ck_assert_int_eq((int)fp_spawner_kill(&spawner, pids[i]), FP_OK);
        ck_assert(has_ended(sock));
        ck_assert(wait_for(is_dead, pids[i]));
        close(sock);
    }
    sock = spawn(&last);
    for (int i = 0; i < 20; i++)
        ck_assert(wait_for(is_reaped, pids[i]));
    close(sock);
}
END_TEST

START_TEST(worker_that_died_by_itself_is_reaped_when_told)
{
    pid_t next;
    int another;

    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    ck_assert(has_ended(worker_sock));
    ck_assert(wait_for(is_dead, worker));
    /* Until then no other process has its number. */
    another = spawn(&next);
    ck_assert(!is_reaped(worker));
    ck_assert_int_eq((int)fp_spawner_kill(&spawner, worker), FP_OK);
    ck_assert(wait_for(is_reaped, worker));
    close(another);
}
END_TEST

START_TEST(only_its_own_workers_are_killed)
{
    pid_t stranger = fork(), pid;
    int sock;

    if (stranger == 0) {
        pause();
        _exit(0);
    }
    ck_assert_int_eq((int)fp_spawner_kill(&spawner, stranger), FP_OK);
    ck_assert_int_eq((int)fp_spawner_kill(&spawner, getpid()), FP_OK);
    ck_assert_int_eq((int)fp_spawner_kill(&spawner, -1), FP_OK);
    ck_assert_int_eq((int)fp_spawner_kill(&spawner, 0), FP_OK);
    sock = spawn(&pid); /* the notes before were read by now */
    ck_assert(!is_dead(stranger));
    kill(stranger, SIGKILL);
    ck_assert_int_eq(waitpid(stranger, NULL, 0), stranger);
    close(sock);
}
END_TEST

START_TEST(worker_ends_when_the_daemon_hangs_up)
{
    fp_close(&worker_sock);
    ck_assert(wait_for(is_dead, worker));
}
END_TEST

START_TEST(workers_die_with_the_spawner)
{
    const pid_t was = spawner.pid;
    pid_t pids[3], pid;
    int socks[3], sock = -1;

    for (int i = 0; i < 3; i++) {
        socks[i] = spawn(&pids[i]);
        ask(socks[i], 1, "/");
    }
    ck_assert_int_eq(kill(was, SIGKILL), 0);
    for (int i = 0; i < 3; i++) {
        ck_assert(has_ended(socks[i]));
        ck_assert(wait_for(is_dead, pids[i]));
        close(socks[i]);
    }
    ck_assert_int_eq((int)read_worker(&pid, &sock), FP_CLOSED);
    ck_assert_int_eq((int)fp_spawner_ask(&spawner), FP_CLOSED);
    ck_assert_int_eq((int)fp_spawner_kill(&spawner, pids[0]), FP_CLOSED);
}
END_TEST

START_TEST(stop_ends_everything)
{
    const pid_t was = spawner.pid;
    pid_t pids[3];
    int socks[3];

    for (int i = 0; i < 3; i++)
        socks[i] = spawn(&pids[i]);
    fp_spawner_stop(&spawner);
    ck_assert_int_eq(spawner.sock, -1);
    ck_assert(wait_for(is_dead, was));
    for (int i = 0; i < 3; i++) {
        ck_assert(wait_for(is_dead, pids[i]));
        close(socks[i]);
    }
    fp_spawner_stop(&spawner);
}
END_TEST

/* A terminal or a service manager signals the whole group. */
START_TEST(signals_to_the_group_do_not_end_the_spawner)
{
    static const int signals[] = { SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGPIPE };
    pid_t pid;
    int sock = spawn(&pid);

    ask(sock, 1, "/");
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        ck_assert_int_eq(kill(spawner.pid, signals[i]), 0);
        ck_assert_int_eq(kill(pid, signals[i]), 0);
    }
    ask(sock, 2, "/");
    close(sock);
    sock = spawn(&pid);
    ask(sock, 3, "/");
    close(sock);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("spawner");
    TCase *t = unit_add_case(s, "worker", setup_worker, teardown_worker, 20);

    tcase_add_test(t, worker_answers);
    tcase_add_test(t, worker_begins_at_a_base);
    tcase_add_test(t, worker_without_descriptors);
    tcase_add_test(t, worker_leaks_nothing);
    tcase_add_loop_test(t, nonsense_ends_the_worker, 0, NONSENSE);
    tcase_add_test(t, processes_have_names);
    tcase_add_test(t, daemons_end_of_the_socket);
    tcase_add_test(t, killed_worker_is_gone_and_leaves_no_zombie);
    tcase_add_test(t, worker_that_died_by_itself_is_reaped_when_told);
    tcase_add_test(t, worker_ends_when_the_daemon_hangs_up);
    t = unit_add_case(s, "workers", setup, teardown, 20);
    tcase_add_test(t, workers_work_side_by_side);
    tcase_add_test(t, worker_keeps_to_the_roots);
    tcase_add_test(t, nothing_is_inherited);
    tcase_add_test(t, nobody_has_asked);
    tcase_add_test(t, spawner_without_descriptors);
    tcase_add_test(t, daemon_without_descriptors);
    tcase_add_test(t, killed_workers_do_not_pile_up);
    tcase_add_test(t, only_its_own_workers_are_killed);
    tcase_add_test(t, workers_die_with_the_spawner);
    tcase_add_test(t, stop_ends_everything);
    tcase_add_test(t, signals_to_the_group_do_not_end_the_spawner);
    return unit_run(s);
}
