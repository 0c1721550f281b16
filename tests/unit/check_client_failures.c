/* SPDX-License-Identifier: Apache-2.0 */
/* Daemons that err, are late or gone: the client does without, and asks again later. */
#include "config.h"
#include "shared/client.h"

#include <libgen.h>

#include "base/mount_table.h"
#include "client_kit.h"

/* ---- a daemon that errs ---- */

/* The frames in place of an answer, by number. */
static bool send_wrong(int which, uint64_t id)
{
    static struct fp_answer a;
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_writer w;

    make_answer(&a, 7);
    switch (which) {
    case 0: return d_send_answer(id + 1, &a);
    case 1: return d_send_answer(0, &a);
    case 2: return d_error(FP_FAILED);
    case 3: return d_welcome(FP_WIRE_VERSION);
    case 4: a.steps[2].end = PATH_LEN + 1; return d_send_answer(id, &a);
    case 5: a.n_steps = 2; return d_send_answer(id, &a);
    case 6: a.steps[1].self.mode = S_IFREG; return d_send_answer(id, &a);
    case 11: a.fd = d.sock; return d_send_answer(id, &a);
    }
    fp_writer_init(&w, buf, sizeof(buf));
    fp_answer_encode(&w, id, &a);
    switch (which) {
    case 7: return d_send(&w, -1);
    case 8: return fp_send_packet(d.sock, buf, w.len - 1, d.file) == FP_OK;
    case 9: return fp_send_packet(d.sock, "garbage", 7, d.file) == FP_OK;
    case 10:
        a.fd = -1;
        fp_writer_init(&w, buf, sizeof(buf));
        fp_answer_encode(&w, id, &a);
        return fp_send_packet(d.sock, buf, w.len, d.file) == FP_OK;
    }
    return false;
}
#define WRONGS 12

static int wrong;

static void *err(void *arg)
{
    uint64_t id;

    if (d_greet() && d_question(&id) && send_wrong(wrong, id))
        d_wait_for_end();
    if (d_greet() && d_question(&id))
        d_answer(id);
    return arg;
}

START_TEST(wrong_answer_ends_the_connection)
{
    wrong = _i;
    start(err);
    assert_fails_and_pauses(FP_PROTOCOL);
    ck_assert_int_eq((int)ask_after_the_pause(), FP_OK);
    assert_answered();
    join();
    ck_assert(d.saw_end);
    ck_assert_uint_eq(d.connections, 2);
}
END_TEST

static void *err_in_greeting(void *arg)
{
    static struct fp_answer a;

    make_answer(&a, 7);
    if (!d_accept() || !d_hello())
        return arg;
    if (wrong >= 5 && wrong <= 8)
        d_welcome(FP_WIRE_VERSION);
    if (wrong >= 11) {
        d_welcome(FP_WIRE_VERSION);
        d_marks();
    }
    if (wrong >= 14)
        d_events();
    switch (wrong) {
    case 0: d_send_answer(0, &a); break;
    case 1: fp_send_packet(d.sock, "garbage", 7, -1); break;
    case 2: d_error(FP_BUSY); break;
    case 3: d_marks(); break;
    case 4: d_pass(FP_FRAME_WELCOME, -1); break;
    case 5: d_pass(FP_FRAME_REFERENCED, -1); break;
    case 6: d_send_answer(0, &a); break;
    case 7: d_welcome(FP_WIRE_VERSION); break;
    case 8: d_error(FP_FAILED); break;
    case 9: d_error(FP_VERSION); break;
    case 10: d_welcome(FP_WIRE_VERSION + 1); break;
    case 11: d_pass(FP_FRAME_EVENTS, -1); break;
    case 12: d_marks(); break;
    case 13: d_error(FP_FAILED); break;
    case 14: d_pass(FP_FRAME_ANSWERS, -1); break;
    case 15: d_pass(FP_FRAME_CONTENTS, d.file); break;
    case 16:
        d_pass(FP_FRAME_ANSWERS, d.file);
        d_pass(FP_FRAME_ANSWERS, d.file);
        break;
    }
    d_wait_for_end();
    return arg;
}

START_TEST(wrong_greeting_ends_the_connection)
{
    wrong = _i;
    start(err_in_greeting);
    assert_fails_and_pauses(_i == 9 || _i == 10 ? FP_VERSION : FP_PROTOCOL);
    join();
    ck_assert(d.saw_end);
}
END_TEST

static void *answer_nothing_and_close(void *arg)
{
    uint64_t id;

    if (d_greet() && d_question(&id))
        fp_close(&d.sock);
    return arg;
}

START_TEST(daemon_ends_before_the_answer)
{
    start(answer_nothing_and_close);
    assert_fails_and_pauses(FP_CLOSED);
    ck_assert_int_eq((int)fp_client_last(client).no_connection, FP_NO_CONNECTION_ENDED);
}
END_TEST

/* SO_PEERCRED names the process that called listen(). */
START_TEST(daemon_of_another_user)
{
    pid_t pid;
    int status;

    if (geteuid() != 0)
        return;
    listen_there(1);
    pid = fork();
    if (pid == 0) {
        if (setgid(UNIT_NOBODY) == -1 || setuid(UNIT_NOBODY) == -1)
            _exit(1);
        _exit(listen(d.listener, 1) == 0 ? 0 : 2);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    assert_fails_and_pauses(FP_FOREIGN);
    ck_assert_uint_eq(fp_client_last(client).maker, UNIT_NOBODY);
}
END_TEST

/* A child of an httpd that root started, as another user than root: any process of this very user
 * could be such a daemon. */
START_TEST(root_alone_is_trusted)
{
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(chmod(dirname(strdupa(socket_path)), 0711), 0);
    listen_there(1);
    ck_assert_int_eq(chmod(socket_path, 0666), 0);
    ck_assert_int_eq(setresuid(UNIT_NOBODY, UNIT_NOBODY, 0), 0);
    settings.root_only = true;
    create_client();
    start(answer_three);
    ck_assert_int_eq((int)ask(), FP_OK);
    assert_answered();
    ck_assert_uint_eq(fp_client_last(client).maker, 0);
    fp_client_destroy(&client);
    join();
    ck_assert_int_eq(listen(d.listener, 1), 0);
    create_client();
    ck_assert_int_eq((int)ask(), FP_FOREIGN);
    ck_assert_uint_eq(fp_client_last(client).maker, UNIT_NOBODY);
    ck_assert_int_eq(setresuid(0, 0, 0), 0);
}
END_TEST

/* The effect of each field of a daemon's sight on a client with another one. */
START_TEST(daemon_that_sees_other_files)
{
    static const enum fp_sight_difference expected[] = { FP_SIGHT_SAME,   FP_SIGHT_ROOT,   FP_SIGHT_ROOT,
                                                         FP_SIGHT_MOUNTS, FP_SIGHT_MOUNTS, FP_SIGHT_USERS,
                                                         FP_SIGHT_TIME };
    uint64_t *const fields[] = { &daemons_view.mounts,     &daemons_view.root_dev,  &daemons_view.root_ino,
                                 &daemons_view.root_mount, &daemons_view.mounts_ns, &daemons_view.users_ns,
                                 &daemons_view.time_ns };

    fp_sight_take(&daemons_view);
    ++*fields[_i];
    settings.compares = settings.compares_files = true;
    create_client();
    start(answer_three);
    ck_assert_int_eq((int)ask(), _i == 0 ? FP_OK : FP_ELSEWHERE);
    ck_assert_int_eq((int)fp_client_last(client).difference, (int)expected[_i]);
    fp_client_destroy(&client);
}
END_TEST

/* An operator may know that it has the same files, in another container. */
START_TEST(daemon_whose_files_are_not_compared)
{
    uint64_t *const fields[] = { &daemons_view.mounts,    &daemons_view.root_dev, &daemons_view.root_ino,
                                 &daemons_view.mounts_ns, &daemons_view.users_ns, &daemons_view.time_ns };

    fp_sight_take(&daemons_view);
    ++*fields[_i];
    settings.compares = true;
    create_client();
    start(answer_three);
    ck_assert_int_eq((int)ask(), _i < 4 ? FP_OK : FP_ELSEWHERE);
    fp_client_destroy(&client);
}
END_TEST

/* In another mount namespace the same files may be mounted at the same places. */
START_TEST(daemon_in_another_namespace_that_sees_the_same)
{
    struct fp_mount_table t = { 0 };
    int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);

    fp_sight_take(&daemons_view);
    daemons_view.mounts_ns++;
    ck_assert_int_eq(fp_mount_table_read(&t, fd), 0);
    daemons_view.mounts = fp_sight_mounts(&t);
    fp_mount_table_free(&t);
    close(fd);
    settings.compares = settings.compares_files = true;
    create_client();
    start(answer_three);
    ck_assert_int_eq((int)ask(), FP_OK);
    fp_client_destroy(&client);
}
END_TEST

/* ---- a daemon that is late ---- */

static void *answer_late(void *arg)
{
    uint64_t id, second;
    int old;

    if (!d_greet() || !d_question(&id))
        return arg;
    /* The client closes, and the answer comes then. */
    old = d.sock;
    ck_assert(unit_wait_readable(old, PATIENCE_MS));
    d_answer(id);
    d.sock = -1;
    if (d_greet() && d_question(&second)) {
        static struct fp_answer a;

        make_answer(&a, 8);
        d_send_answer(second, &a);
    }
    close(old);
    return arg;
}

START_TEST(late_answer_is_never_another_ones)
{
    wait_at_most(2000);
    start(answer_late);
    ck_assert_int_eq((int)ask(), FP_TIMEOUT);
    ck_assert_int_eq(answer.fd, -1);
    ck_assert_int_eq((int)ask_after_the_pause(), FP_OK);
    ck_assert_uint_eq(answer.steps[2].self.size, 8);
    join();
    ck_assert_uint_eq(d.connections, 2);
    ck_assert_uint_ne(d.ids[0], d.ids[1]);
}
END_TEST

/* How much later is the machine's affair; libcheck's own limit ends a hang. */
static void assert_times_out(void)
{
    const uint64_t begin = unit_now_ms();

    wait_at_most(SHORT_MS);
    ck_assert_int_eq((int)ask(), FP_TIMEOUT);
    ck_assert_uint_ge(unit_now_ms() - begin, SHORT_MS - 20);
}

static void *say_nothing(void *arg)
{
    if (d_accept() && d_hello())
        d_wait_for_end();
    return arg;
}

START_TEST(daemon_says_nothing)
{
    start(say_nothing);
    assert_times_out();
    join();
    ck_assert(d.saw_end);
}
END_TEST

START_TEST(daemon_does_not_accept)
{
    listen_there(8);
    assert_times_out();
}
END_TEST

/* Then connect() itself waits. It hangs just the same, and must not cost a timeout again after a
 * pause that is shorter than that. */
START_TEST(daemon_does_not_accept_and_its_backlog_is_full)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fillers[4];

    listen_there(0);
    strcpy(addr.sun_path, socket_path);
    for (int i = 0; i < 4; i++) {
        fillers[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)!connect(fillers[i], (struct sockaddr *)&addr, sizeof(addr));
    }
    assert_times_out();
    for (int i = 0; i < 4; i++)
        close(fillers[i]);
}
END_TEST

static void *be_slow_twice(void *arg)
{
    uint64_t id;

    if (!d_accept() || !d_hello())
        return arg;
    unit_sleep_ms(SHORT_MS * 2 / 3);
    if (d_welcome(FP_WIRE_VERSION) && d_marks() && d_question(&id)) {
        unit_sleep_ms(SHORT_MS * 2 / 3);
        d_answer(id);
    }
    return arg;
}

/* "How long one question may take", the greeting included. */
START_TEST(timeout_is_that_of_the_whole_question)
{
    start(be_slow_twice);
    assert_times_out();
}
END_TEST

START_TEST(hanging_daemon_is_left_alone_for_a_while)
{
    wait_at_most(SHORT_MS);
    start(say_nothing);
    ck_assert_int_eq((int)ask(), FP_TIMEOUT);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq((int)ask(), FP_AGAIN);
    join();
    ck_assert_uint_eq(d.connections, 1);
}
END_TEST

/* It ends when all the time of the question is gone. */
static void *answer_and_end_too_late(void *arg)
{
    uint64_t id;

    if (d_greet() && d_question(&id) && d_answer(id) && d_question(&id)) {
        held_ms += TIMEOUT_MS;
        fp_close(&d.sock);
    }
    return arg;
}

START_TEST(no_time_is_left_to_connect_again)
{
    held_ms = unit_now_ms();
    start(answer_and_end_too_late);
    ck_assert_int_eq((int)ask(), FP_OK);
    ck_assert_int_eq((int)ask(), FP_TIMEOUT);
    ck_assert_int_eq((int)ask(), FP_AGAIN);
    held_ms = 0;
}
END_TEST

/* Longer than the time until the client looks at the daemon's heartbeat. */
#define LONG_MS 1200u

/* Its heartbeat is good for a moment from now, and the answer comes after that. */
static void *be_silent_and_answer(void *arg)
{
    uint64_t id;

    if (!d_greet() || !d_question(&id))
        return arg;
    fp_lease_table_heartbeat(d.leases, unit_now_ms() + LONG_MS / 2);
    unit_sleep_ms(LONG_MS);
    d_answer(id);
    return arg;
}

START_TEST(daemon_that_was_silent_for_a_moment_is_waited_for)
{
    start(be_silent_and_answer);
    ck_assert_int_eq((int)ask(), FP_OK);
    assert_answered();
}
END_TEST

/* ---- a daemon that is gone ---- */

#define FIRST_PAUSE_MS 25 /* ABSENT_FIRST_MS of client.c */

START_TEST(no_daemon_at_all)
{
    const uint64_t begin = unit_now_ms();
    unsigned tries = 0;

    assert_fails_and_pauses(FP_CLOSED);
    /* It is tried now and then, and that costs nothing. */
    while (unit_now_ms() - begin < 400 || tries == 0) {
        tries += ask() == FP_CLOSED;
        unit_sleep_ms(1);
    }
    ck_assert_uint_le(tries, 10);
}
END_TEST

START_TEST(daemon_comes_back)
{
    ck_assert_int_eq((int)ask(), FP_CLOSED);
    start(answer_three);
    ck_assert_int_eq((int)ask_after_the_pause(), FP_OK);
    assert_answered();
    /* And the pause is over. */
    ck_assert_int_eq((int)ask(), FP_OK);
}
END_TEST

START_TEST(socket_without_a_listener)
{
    listen_there(1);
    fp_close(&d.listener);
    ck_assert_int_eq((int)ask(), FP_CLOSED);
    ck_assert_int_eq((int)fp_client_last(client).no_connection, FP_NO_CONNECTION_DESERTED);
}
END_TEST

START_TEST(no_socket)
{
    ck_assert_int_eq((int)ask(), FP_CLOSED);
    ck_assert_int_eq((int)fp_client_last(client).no_connection, FP_NO_CONNECTION_MISSING);
}
END_TEST

static void *close_in_greeting(void *arg)
{
    if (d_accept() && d_hello())
        fp_close(&d.sock);
    return arg;
}

/* As a daemon does with another user's. */
START_TEST(connection_that_is_refused)
{
    start(close_in_greeting);
    ck_assert_int_eq((int)ask(), FP_CLOSED);
    ck_assert_int_eq((int)fp_client_last(client).no_connection, FP_NO_CONNECTION_REFUSED);
}
END_TEST

START_TEST(idle_connection_that_outlived_its_daemon)
{
    assert_two_connections();
}
END_TEST

/* Answers one question on each of two connections, and errs in place of the next answer on each. */
static void *answer_two_and_err(void *arg)
{
    uint64_t ids[2];
    int socks[2], erred = 0;

    for (int i = 0; i < 2; i++) {
        if (!d_greet() || !d_question(&ids[i]))
            return arg;
        socks[i] = d.sock;
        d.sock = -1;
    }
    for (int i = 0; i < 2; i++) {
        d.sock = socks[i];
        d_answer(ids[i]);
    }
    while (erred < 2) {
        int *sock = &socks[unit_wait_readable(socks[0], 5) ? 0 : 1];
        const unsigned hints = d.hints;

        d.sock = *sock;
        if (!unit_wait_readable(d.sock, 5) || !d_question(&ids[0]) || d.hints != hints)
            continue;
        fp_send_packet(d.sock, "garbage", 7, -1);
        fp_close(sock);
        erred++;
    }
    d.sock = -1;
    return arg;
}

static void *ask_beside(void *a)
{
    static struct fp_answer another;

    ck_assert_int_eq((int)fp_client_lookup(client, PATH, PATH_LEN, &another, NULL), FP_OK);
    fp_close(&another.fd);
    return a;
}

/* A hint is not answered, so it says nothing about the daemon: the next pause is longer. */
START_TEST(hint_does_not_end_the_pauses)
{
    pthread_t beside;

    start(answer_two_and_err);
    ck_assert_int_eq(pthread_create(&beside, NULL, ask_beside, NULL), 0);
    ck_assert_int_eq((int)ask(), FP_OK);
    ck_assert_int_eq(pthread_join(beside, NULL), 0);
    held_ms = unit_now_ms();
    ck_assert_int_eq((int)ask(), FP_PROTOCOL);
    held_ms += FIRST_PAUSE_MS;
    ck_assert(fp_client_hint(client, PATH, PATH_LEN));
    ck_assert_int_eq((int)ask(), FP_PROTOCOL);
    held_ms += FIRST_PAUSE_MS;
    ck_assert_int_eq((int)ask(), FP_AGAIN);
    held_ms = 0;
    join();
    ck_assert_uint_eq(d.hints, 1);
}
END_TEST

/* ---- our own limits ---- */

START_TEST(no_descriptor_free_for_the_answer)
{
    struct rlimit before;
    fp_status st;

    start(answer_three);
    ck_assert_int_eq((int)ask(), FP_OK);
    fp_close(&answer.fd);
    before = unit_leave_fds(0);
    st = ask();
    unit_restore_fds(&before);
    ck_assert_int_eq((int)st, FP_LOSTFD);
    ck_assert_int_eq(answer.fd, -1);
    /* The daemon is not to blame: it is asked again at once. */
    ck_assert_int_ne((int)ask(), FP_AGAIN);
}
END_TEST

/* Nor is it if a socket gets none. No time passes, so no pause could end. */
START_TEST(no_descriptor_free_for_a_connection)
{
    struct rlimit before;
    fp_status st;

    start(answer_three);
    held_ms = unit_now_ms();
    before = unit_leave_fds(0);
    st = ask();
    unit_restore_fds(&before);
    ck_assert_int_eq((int)st, FP_LOSTFD);
    ck_assert_int_eq((int)ask(), FP_OK);
    assert_answered();
    held_ms = 0;
}
END_TEST

static void *answer_on_two_connections(void *arg)
{
    uint64_t id;

    for (int i = 0; i < 2 && d_greet(); i++) {
        while (d_question(&id) && d_answer(id))
            continue;
    }
    return arg;
}

/* The socket, its other end and what is passed. The view needs more. */
#define WITHOUT_VIEW 9

START_TEST(no_descriptor_free_for_the_tables)
{
    struct fp_lease_view *view;
    struct rlimit before;

    listen_there(8);
    before = unit_leave_fds(WITHOUT_VIEW);
    start(answer_on_two_connections);
    ck_assert_int_eq((int)fp_client_lookup(client, PATH, PATH_LEN, &answer, &view), FP_OK);
    unit_restore_fds(&before);
    ck_assert_ptr_null(view);
    fp_close(&answer.fd);
    ck_assert_int_eq((int)fp_client_lookup(client, PATH, PATH_LEN, &answer, &view), FP_OK);
    ck_assert_ptr_nonnull(view);
    fp_lease_view_release(&view);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("client_failures");
    TCase *t = unit_add_case(s, "errors", setup, teardown, 20);

    tcase_add_loop_test(t, wrong_answer_ends_the_connection, 0, WRONGS);
    tcase_add_loop_test(t, wrong_greeting_ends_the_connection, 0, 17);
    tcase_add_test(t, daemon_ends_before_the_answer);
    tcase_add_test(t, daemon_of_another_user);
    tcase_add_test(t, root_alone_is_trusted);
    tcase_add_loop_test(t, daemon_that_sees_other_files, 0, 7);
    tcase_add_loop_test(t, daemon_whose_files_are_not_compared, 0, 6);
    tcase_add_test(t, daemon_in_another_namespace_that_sees_the_same);
    t = unit_add_case(s, "late", setup, teardown, 20);
    tcase_add_test(t, late_answer_is_never_another_ones);
    tcase_add_test(t, daemon_says_nothing);
    tcase_add_test(t, daemon_does_not_accept);
    tcase_add_test(t, daemon_does_not_accept_and_its_backlog_is_full);
    tcase_add_test(t, timeout_is_that_of_the_whole_question);
    tcase_add_test(t, hanging_daemon_is_left_alone_for_a_while);
    tcase_add_test(t, daemon_that_was_silent_for_a_moment_is_waited_for);
    tcase_add_test(t, no_time_is_left_to_connect_again);
    t = unit_add_case(s, "gone", setup, teardown, 20);
    tcase_add_test(t, no_daemon_at_all);
    tcase_add_test(t, daemon_comes_back);
    tcase_add_test(t, socket_without_a_listener);
    tcase_add_test(t, no_socket);
    tcase_add_test(t, connection_that_is_refused);
    tcase_add_test(t, idle_connection_that_outlived_its_daemon);
    tcase_add_test(t, hint_does_not_end_the_pauses);
    tcase_add_test(t, no_descriptor_free_for_the_answer);
    tcase_add_test(t, no_descriptor_free_for_a_connection);
    tcase_add_test(t, no_descriptor_free_for_the_tables);
    return unit_run(s);
}
