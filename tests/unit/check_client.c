/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "client.h"

#include <sys/mman.h>

#include "fake_daemon.h"

#define TIMEOUT_MS 300

static struct fp_client *client;
static struct fp_answer answer;
static int fds_at_rest;

static void setup(void)
{
    char dir[PATH_MAX];

    unit_fresh_dir(dir);
    ck_assert_int_lt(snprintf(socket_path, sizeof(socket_path), "%s", unit_join(dir, "s")),
                     (int)sizeof(socket_path));
    memset(&d, 0, sizeof(d));
    d.listener = d.sock = d.file = -1;
    fds_at_rest = unit_open_fds();
    d.file = memfd_create("answer", MFD_CLOEXEC);
    ck_assert_int_eq(write(d.file, "content", 7), 7);
    d.slots = fp_slots_create(4);
    ck_assert_ptr_nonnull(d.slots);
    fp_slots_set_until(d.slots, 1, 2000);
    client = fp_client_create(socket_path, TIMEOUT_MS, 4);
    ck_assert_ptr_nonnull(client);
    answer.fd = -1;
}

static void teardown(void)
{
    fp_close(&answer.fd);
    fp_client_destroy(&client);
    ck_assert_ptr_null(client);
    join();
    fp_close(&d.sock);
    fp_close(&d.listener);
    fp_close(&d.file);
    fp_slots_destroy(&d.slots);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

static fp_status ask(void)
{
    fp_close(&answer.fd);
    return fp_client_lookup(client, PATH, PATH_LEN, NULL, &answer, NULL);
}

/* Asks until it is no longer too early to. */
static fp_status ask_after_the_pause(void)
{
    const uint64_t end = unit_now_ms() + PATIENCE_MS;
    fp_status st;

    while ((st = ask()) == FP_AGAIN && unit_now_ms() < end)
        unit_sleep_ms(5);
    return st;
}

static void assert_answered(void)
{
    char text[8];

    ck_assert_int_eq((int)answer.status, FP_OK);
    ck_assert_uint_eq(answer.n_steps, 3);
    ck_assert_uint_eq(answer.steps[2].self.size, 7);
    ck_assert_int_ne(answer.fd, -1);
    ck_assert_int_ne(answer.fd, d.file);
    ck_assert_int_eq(fcntl(answer.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_int_eq(pread(answer.fd, text, sizeof(text), 0), 7);
    ck_assert_mem_eq(text, "content", 7);
}

/* ---- what works ---- */

static void *answer_three(void *arg)
{
    uint64_t id;

    if (d_greet())
        for (int i = 0; i < 3 && d_question(&id); i++)
            d_answer(id);
    return arg;
}

START_TEST(answers_with_a_descriptor_on_one_connection)
{
    start(answer_three);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq((int)ask(), FP_OK);
        assert_answered();
    }
    join();
    ck_assert_uint_eq(d.connections, 1);
    ck_assert_uint_eq(d.questions, 3);
    ck_assert_str_eq(d.path, PATH);
    ck_assert_uint_eq(d.deadline_ms, TIMEOUT_MS);
    ck_assert_uint_eq(d.n_names, 0);
    ck_assert_uint_ne(d.ids[0], d.ids[1]);
    ck_assert_uint_ne(d.ids[1], d.ids[2]);
    ck_assert_uint_ne(d.ids[0], d.ids[2]);
}
END_TEST

static void *answer_without(void *arg)
{
    static struct fp_answer a;
    uint64_t id;

    if (d_greet() && d_question(&id)) {
        fp_answer_init(&a, FP_BUSY);
        d_send_answer(id, &a);
    }
    if (d_question(&id))
        d_answer(id);
    return arg;
}

START_TEST(no_answer_is_no_failure)
{
    start(answer_without);
    ck_assert_int_eq((int)ask(), FP_OK);
    ck_assert_int_eq((int)answer.status, FP_BUSY);
    ck_assert_int_eq(answer.fd, -1);
    ck_assert_int_eq((int)ask(), FP_OK);
    assert_answered();
    join();
    ck_assert_uint_eq(d.connections, 1);
}
END_TEST

/* As many names as were asked about, none, or one too many. */
static void *answer_names(void *arg)
{
    static struct fp_answer a;
    uint64_t id;

    for (unsigned n = 2; n != 4 && d_greet(); n = n == 2 ? 0 : n == 0 ? 3 : 4) {
        if (!d_question(&id))
            break;
        make_answer(&a, 7);
        a.n_names = n;
        for (unsigned i = 0; i < n; i++)
            a.steps[0].access[i].status = a.steps[1].access[i].status = FP_ABSENT;
        d_send_answer(id, &a);
    }
    return arg;
}

START_TEST(access_files)
{
    const struct fp_names names = { 2, { { ".htaccess", 9 }, { ".acl", 4 } } };
    static const fp_status expected[] = { FP_OK, FP_OK, FP_PROTOCOL };

    fp_client_destroy(&client);
    client = fp_client_create(socket_path, TIMEOUT_MS, 0);
    start(answer_names);
    for (int i = 0; i < 3; i++) {
        fp_close(&answer.fd);
        ck_assert_int_eq((int)fp_client_lookup(client, PATH, PATH_LEN, &names, &answer,
                                               NULL), (int)expected[i]);
        ck_assert_uint_eq(d.n_names, 2);
        ck_assert_int_eq(answer.fd != -1, expected[i] == FP_OK);
    }
    join();
}
END_TEST

static void *answer_on_two_connections(void *arg)
{
    uint64_t id;

    for (int i = 0; i < 2 && d_greet() && d_question(&id); i++)
        d_answer(id);
    return arg;
}

START_TEST(no_connection_is_kept_without_room)
{
    fp_client_destroy(&client);
    client = fp_client_create(socket_path, TIMEOUT_MS, 0);
    start(answer_on_two_connections);
    ck_assert_int_eq((int)ask(), FP_OK);
    ck_assert_int_eq((int)ask(), FP_OK);
    assert_answered();
    join();
    ck_assert_uint_eq(d.connections, 2);
}
END_TEST

START_TEST(socket_path_of_the_most_bytes)
{
    char path[109];
    struct fp_client *c;

    memset(path, 's', sizeof(path));
    path[0] = '/';
    path[107] = '\0';
    c = fp_client_create(path, TIMEOUT_MS, 1);
    ck_assert_ptr_nonnull(c);
    fp_client_destroy(&c);
    path[107] = 's';
    path[108] = '\0';
    ck_assert_ptr_null(fp_client_create(path, TIMEOUT_MS, 1));
}
END_TEST

/* ---- the table of leases ---- */

static struct fp_slots_view *ask_with_view(void)
{
    struct fp_slots_view *view = NULL;

    fp_close(&answer.fd);
    ck_assert_int_eq((int)fp_client_lookup(client, PATH, PATH_LEN, NULL, &answer, &view), FP_OK);
    return view;
}

START_TEST(answers_come_with_the_table)
{
    struct fp_slots_view *first, *second;

    start(answer_three);
    first = ask_with_view();
    ck_assert_ptr_nonnull(first);
    ck_assert(fp_slots_view_is(first, fp_slots_generations_fd(d.slots)));
    ck_assert(fp_slots_view_holds(first, 1, fp_slots_generation(d.slots, 1), 1000));
    fp_slots_bump(d.slots, 1);
    ck_assert(fp_slots_view_holds(first, 1, fp_slots_generation(d.slots, 1), 1000));
    /* One mapping serves all. */
    second = ask_with_view();
    ck_assert_ptr_eq(first, second);
    fp_slots_view_release(&second);
    /* It lasts as long as somebody has it, and marks arrive. */
    join();
    fp_client_destroy(&client);
    fp_slots_view_mark(first, 2);
    ck_assert(fp_slots_take_mark(d.slots, 2));
    fp_slots_view_release(&first);
}
END_TEST

static void *answer_with_another_table(void *arg)
{
    uint64_t id;

    for (int i = 0; i < 2 && d_greet() && d_question(&id); i++) {
        d_answer(id);
        fp_slots_destroy(&d.slots);
        d.slots = fp_slots_create(9);
    }
    return arg;
}

/* Another daemon's: what was said of the first one's slots is not mixed up. */
START_TEST(another_daemon_has_another_table)
{
    struct fp_slots_view *first, *second;

    fp_client_destroy(&client);
    client = fp_client_create(socket_path, TIMEOUT_MS, 0);
    start(answer_with_another_table);
    first = ask_with_view();
    second = ask_with_view();
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_ne(first, second);
    fp_slots_view_release(&first);
    fp_slots_view_release(&second);
    join();
}
END_TEST

static fp_status encode_welcome(struct fp_writer *w)
{
    return fp_welcome_encode(w, FP_WIRE_VERSION);
}

/* What could shrink is never mapped; answers are good without it. */
static void *answer_with_a_wrong_table(void *arg)
{
    uint8_t frame[64];
    struct fp_writer w;
    uint64_t id;

    fp_writer_init(&w, frame, sizeof(frame));
    if (d_accept() && d_hello() && encode_welcome(&w) == FP_OK && d_send(&w, d.file)
        && d_marks() && d_question(&id))
        d_answer(id);
    return arg;
}

START_TEST(table_that_is_none)
{
    start(answer_with_a_wrong_table);
    ck_assert_ptr_null(ask_with_view());
    assert_answered();
    join();
}
END_TEST

/* ---- control ---- */

static uint8_t room[FP_MAX_FRAME];
static struct fp_done done;

static fp_status purge(const char *path)
{
    const struct fp_control question = { .op = FP_CONTROL_PURGE, .scope = FP_SCOPE_TREE,
                                         .path = path, .path_len = strlen(path) };

    return fp_client_control(client, &question, &done, room);
}

static fp_status report(uint32_t from)
{
    const struct fp_control question = { .op = FP_CONTROL_REPORT, .what = FP_REPORT_STATS,
                                         .from = from };

    return fp_client_control(client, &question, &done, room);
}

static void *answer_controls(void *arg)
{
    const struct fp_done forgotten = { FP_OK, 12, 0, NULL, 0 };
    const struct fp_done text = { FP_OK, 0, 9, "a 1\n", 4 };
    const struct fp_done not_done = { FP_FAILED, 0, 0, NULL, 0 };
    struct fp_control c;
    uint64_t id;

    if (d_greet() && d_control(&id, &c) && d_done(id, &forgotten, -1)
        && d_control(&id, &c) && c.from == 8 && d_done(id, &text, -1)
        && d_control(&id, &c) && d_done(id, &not_done, -1) && d_question(&id))
        d_answer(id);
    return arg;
}

START_TEST(controls_and_questions_share_a_connection)
{
    start(answer_controls);
    ck_assert_int_eq((int)purge("/srv"), FP_OK);
    ck_assert_int_eq((int)done.status, FP_OK);
    ck_assert_uint_eq(done.count, 12);
    ck_assert_str_eq(d.path, "/srv");
    ck_assert_int_eq((int)report(8), FP_OK);
    ck_assert_uint_eq(done.next, 9);
    ck_assert_uint_eq(done.text_len, 4);
    ck_assert_mem_eq(done.text, "a 1\n", 4);
    ck_assert_int_eq((int)report(9), FP_OK);
    ck_assert_int_eq((int)done.status, FP_FAILED);
    ck_assert_int_eq((int)ask(), FP_OK);
    assert_answered();
    join();
    ck_assert_uint_eq(d.connections, 1);
}
END_TEST

START_TEST(control_that_is_none)
{
    /* The daemon would close the connection: it is not sent. */
    start(answer_controls);
    ck_assert_int_eq((int)fp_client_control(client, &(struct fp_control){
        .op = FP_CONTROL_PURGE, .scope = FP_SCOPE_PATH, .path = "/",
        .path_len = FP_MAX_PATH + 1 }, &done, room), FP_PROTOCOL);
    ck_assert_uint_eq(d.questions, 0);
}
END_TEST

START_TEST(control_without_a_daemon)
{
    ck_assert_int_eq((int)purge("/srv"), FP_CLOSED);
    ck_assert_int_ne((int)done.status, FP_OK);
    ck_assert_int_eq((int)purge("/srv"), FP_AGAIN);
}
END_TEST

/* What comes instead of a DONE, by number. */
static bool send_wrong_done(int which, uint64_t id)
{
    struct fp_done r = { FP_OK, 0, 0, NULL, 0 };

    switch (which) {
    case 0: return d_done(id + 1, &r, -1);
    case 1: return d_done(id, &r, d.file);
    case 2: return d_answer(id);
    case 3: return d_error(FP_FAILED);
    case 4: r.next = 7; return d_done(id, &r, -1);
    case 5: r.next = 8; return d_done(id, &r, -1);
    case 6: r.status = FP_ABSENT; return d_done(id, &r, -1);
    case 7: return fp_send_packet(d.sock, "garbage", 7, -1) == FP_OK;
    }
    return false;
}
#define WRONG_DONES 8

static int wrong_done;

static void *err_in_control(void *arg)
{
    struct fp_control c;
    uint64_t id;

    if (d_greet() && d_control(&id, &c) && send_wrong_done(wrong_done, id))
        d_wait_for_end();
    return arg;
}

START_TEST(wrong_done_ends_the_connection)
{
    wrong_done = _i;
    start(err_in_control);
    ck_assert_int_eq((int)report(8), FP_PROTOCOL);
    join();
    ck_assert(d.saw_end);
}
END_TEST

/* ---- several threads ---- */

/* Both areas, as by d_greet(). */
static void welcome(int sock)
{
    uint8_t frame[64];
    struct fp_writer w;

    fp_writer_init(&w, frame, sizeof(frame));
    fp_welcome_encode(&w, FP_WIRE_VERSION);
    fp_send_packet(sock, w.data, w.len, fp_slots_generations_fd(d.slots));
    fp_writer_init(&w, frame, sizeof(frame));
    fp_marks_encode(&w);
    fp_send_packet(sock, w.data, w.len, fp_slots_marks_fd(d.slots));
}

static void *serve_connection(void *arg)
{
    const int sock = (int)(intptr_t)arg;
    uint8_t *buf = malloc(FP_MAX_FRAME);
    struct fp_answer *a = malloc(sizeof(*a));
    struct fp_writer w;
    struct fp_frame f;
    struct fp_lookup l;
    size_t len;

    while (fp_recv_packet(sock, buf, FP_MAX_FRAME, &len, NULL) == FP_OK
           && fp_frame_parse(&f, buf, len) == FP_OK) {
        if (f.type == FP_FRAME_HELLO) {
            welcome(sock);
            continue;
        }
        if (fp_lookup_decode(&f.body, &l) != FP_OK)
            break;
        make_answer(a, (uint64_t)atoi(l.path + 5));
        a->fd = -1;
        fp_writer_init(&w, buf, FP_MAX_FRAME);
        fp_answer_encode(&w, f.id, a);
        fp_send_packet(sock, buf, w.len, -1);
    }
    free(a);
    free(buf);
    close(sock);
    return NULL;
}

static void *serve_all(void *arg)
{
    pthread_t threads[32];
    unsigned n = 0;

    while (n < 32 && unit_wait_readable(d.listener, 1000)) {
        int sock = accept4(d.listener, NULL, NULL, SOCK_CLOEXEC);

        if (sock != -1
            && pthread_create(&threads[n], NULL, serve_connection, (void *)(intptr_t)sock) == 0)
            n++;
    }
    d.connections = n;
    while (n > 0)
        pthread_join(threads[--n], NULL);
    return arg;
}

static void *ask_often(void *arg)
{
    const int me = (int)(intptr_t)arg;
    struct fp_answer *a = malloc(sizeof(*a));
    intptr_t wrong = 0;
    char path[16];

    for (int i = 0; i < 200; i++) {
        const int number = 1000 + me * 1000 + i;

        snprintf(path, sizeof(path), "/srv/%d", number);
        if (fp_client_lookup(client, path, PATH_LEN, NULL, a, NULL) != FP_OK
            || a->steps[2].self.size != (uint64_t)number)
            wrong++;
    }
    free(a);
    return (void *)wrong;
}

START_TEST(every_thread_gets_its_own_answers)
{
    pthread_t threads[4];
    intptr_t wrong = 0;

    fp_client_destroy(&client);
    client = fp_client_create(socket_path, 2000, 4);
    start(serve_all);
    for (intptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_often, (void *)i), 0);
    for (int i = 0; i < 4; i++) {
        void *result;

        ck_assert_int_eq(pthread_join(threads[i], &result), 0);
        wrong += (intptr_t)result;
    }
    ck_assert_int_eq(wrong, 0);
    fp_client_destroy(&client);
    join();
    ck_assert_uint_le(d.connections, 4);
}
END_TEST

/* ---- versions ---- */

static void *refuse_version(void *arg)
{
    if (d_accept() && d_hello() && d_error(FP_VERSION))
        d_wait_for_end();
    return arg;
}

START_TEST(version_is_refused)
{
    start(refuse_version);
    ck_assert_int_eq((int)ask(), FP_VERSION);
    join();
    ck_assert(d.saw_end);
    ck_assert_int_eq((int)ask(), FP_AGAIN);
}
END_TEST

static void *welcome_with_another_version(void *arg)
{
    if (d_accept() && d_hello() && d_welcome(FP_WIRE_VERSION + 1))
        d_wait_for_end();
    return arg;
}

START_TEST(another_version_is_chosen)
{
    start(welcome_with_another_version);
    ck_assert_int_eq((int)ask(), FP_VERSION);
    join();
    ck_assert(d.saw_end);
}
END_TEST

/* ---- a daemon that errs ---- */

/* What it sends instead of an answer, by number. */
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
    }
    fp_writer_init(&w, buf, sizeof(buf));
    fp_answer_encode(&w, id, &a);
    switch (which) {
    case 7: return fp_send_packet(d.sock, buf, w.len, -1) == FP_OK;
    case 8: return fp_send_packet(d.sock, buf, w.len - 1, d.file) == FP_OK;
    case 9: return fp_send_packet(d.sock, "garbage", 7, d.file) == FP_OK;
    case 10: a.fd = -1; fp_writer_init(&w, buf, sizeof(buf)); fp_answer_encode(&w, id, &a);
        return fp_send_packet(d.sock, buf, w.len, d.file) == FP_OK;
    }
    return false;
}
#define WRONGS 11

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
    ck_assert_int_eq((int)ask(), FP_PROTOCOL);
    ck_assert_int_eq(answer.fd, -1);
    ck_assert_int_eq((int)ask(), FP_AGAIN);
    ck_assert_int_eq((int)ask_after_the_pause(), FP_OK);
    assert_answered();
    join();
    ck_assert(d.saw_end);
    ck_assert_uint_eq(d.connections, 2);
}
END_TEST

/* A frame that should have brought a descriptor, without one. */
static void pass_none(fp_status (*encode)(struct fp_writer *w))
{
    uint8_t frame[64];
    struct fp_writer w;

    fp_writer_init(&w, frame, sizeof(frame));
    if (encode(&w) == FP_OK)
        d_send(&w, -1);
}

static void *err_in_greeting(void *arg)
{
    static struct fp_answer a;

    make_answer(&a, 7);
    if (!d_accept() || !d_hello())
        return arg;
    switch (wrong) {
    case 0: d_send_answer(0, &a); break;
    case 1: fp_send_packet(d.sock, "garbage", 7, -1); break;
    case 2: d_error(FP_BUSY); break;
    case 3: d_marks(); break;
    case 4: pass_none(encode_welcome); break;
    case 5: d_welcome(FP_WIRE_VERSION); pass_none(fp_marks_encode); break;
    case 6: d_welcome(FP_WIRE_VERSION); d_send_answer(0, &a); break;
    case 7: d_welcome(FP_WIRE_VERSION); d_welcome(FP_WIRE_VERSION); break;
    case 8: d_welcome(FP_WIRE_VERSION); d_error(FP_FAILED); break;
    }
    d_wait_for_end();
    return arg;
}

START_TEST(wrong_greeting_ends_the_connection)
{
    wrong = _i;
    start(err_in_greeting);
    ck_assert_int_eq((int)ask(), FP_PROTOCOL);
    ck_assert_int_eq(answer.fd, -1);
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
    ck_assert_int_eq((int)ask(), FP_CLOSED);
    ck_assert_int_eq((int)ask(), FP_AGAIN);
}
END_TEST

/* SO_PEERCRED tells who called listen(). */
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
    ck_assert_int_eq((int)ask(), FP_DENIED);
    ck_assert_int_eq((int)ask(), FP_AGAIN);
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

static void assert_times_out(uint64_t at_most_ms)
{
    const uint64_t begin = unit_now_ms();

    ck_assert_int_eq((int)ask(), FP_TIMEOUT);
    ck_assert_uint_ge(unit_now_ms() - begin, TIMEOUT_MS - 20);
    ck_assert_uint_le(unit_now_ms() - begin, at_most_ms);
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
    assert_times_out(4 * TIMEOUT_MS);
    join();
    ck_assert(d.saw_end);
}
END_TEST

START_TEST(daemon_does_not_accept)
{
    listen_there(8);
    assert_times_out(4 * TIMEOUT_MS);
}
END_TEST

/* Then connect() itself waits.  It hangs just the same, and must not cost a
 * timeout again after a pause that is shorter than that. */
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
    assert_times_out(4 * TIMEOUT_MS);
    for (int i = 0; i < 4; i++)
        close(fillers[i]);
}
END_TEST

static void *be_slow_twice(void *arg)
{
    uint64_t id;

    if (!d_accept() || !d_hello())
        return arg;
    unit_sleep_ms(TIMEOUT_MS * 2 / 3);
    if (d_welcome(FP_WIRE_VERSION) && d_marks() && d_question(&id)) {
        unit_sleep_ms(TIMEOUT_MS * 2 / 3);
        d_answer(id);
    }
    return arg;
}

/* "How long one question may take", the greeting included. */
START_TEST(timeout_is_that_of_the_whole_question)
{
    start(be_slow_twice);
    assert_times_out(4 * TIMEOUT_MS);
}
END_TEST

START_TEST(hanging_daemon_is_left_alone_for_a_while)
{
    const uint64_t begin = unit_now_ms();

    start(say_nothing);
    ck_assert_int_eq((int)ask(), FP_TIMEOUT);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq((int)ask(), FP_AGAIN);
    ck_assert_uint_le(unit_now_ms() - begin, 4 * TIMEOUT_MS);
    join();
    ck_assert_uint_eq(d.connections, 1);
}
END_TEST

/* ---- a daemon that is gone ---- */

START_TEST(no_daemon_at_all)
{
    const uint64_t begin = unit_now_ms();
    unsigned tries = 0;

    ck_assert_int_eq((int)ask(), FP_CLOSED);
    ck_assert_int_eq((int)ask(), FP_AGAIN);
    /* It is tried now and then, and that costs nothing. */
    while (unit_now_ms() - begin < 400) {
        tries += ask() == FP_CLOSED;
        unit_sleep_ms(1);
    }
    ck_assert_uint_ge(tries, 1);
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
}
END_TEST

static void *end_after_one(void *arg)
{
    uint64_t id;

    for (int i = 0; i < 2; i++) {
        if (d_greet() && d_question(&id))
            d_answer(id);
        fp_close(&d.sock);
    }
    return arg;
}

START_TEST(idle_connection_that_outlived_its_daemon)
{
    start(end_after_one);
    ck_assert_int_eq((int)ask(), FP_OK);
    ck_assert_int_eq((int)ask(), FP_OK);
    assert_answered();
    join();
    ck_assert_uint_eq(d.connections, 2);
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

static Suite *make_suite(void)
{
    Suite *s = suite_create("client");
    TCase *t = unit_add_case(s, "answers", setup, teardown, 20);

    tcase_add_test(t, answers_with_a_descriptor_on_one_connection);
    tcase_add_test(t, no_answer_is_no_failure);
    tcase_add_test(t, access_files);
    tcase_add_test(t, no_connection_is_kept_without_room);
    tcase_add_test(t, socket_path_of_the_most_bytes);
    tcase_add_test(t, every_thread_gets_its_own_answers);
    t = unit_add_case(s, "table", setup, teardown, 20);
    tcase_add_test(t, answers_come_with_the_table);
    tcase_add_test(t, another_daemon_has_another_table);
    tcase_add_test(t, table_that_is_none);
    t = unit_add_case(s, "control", setup, teardown, 20);
    tcase_add_test(t, controls_and_questions_share_a_connection);
    tcase_add_test(t, control_that_is_none);
    tcase_add_test(t, control_without_a_daemon);
    tcase_add_loop_test(t, wrong_done_ends_the_connection, 0, WRONG_DONES);
    t = unit_add_case(s, "errors", setup, teardown, 20);
    tcase_add_test(t, version_is_refused);
    tcase_add_test(t, another_version_is_chosen);
    tcase_add_loop_test(t, wrong_answer_ends_the_connection, 0, WRONGS);
    tcase_add_loop_test(t, wrong_greeting_ends_the_connection, 0, 9);
    tcase_add_test(t, daemon_ends_before_the_answer);
    tcase_add_test(t, daemon_of_another_user);
    t = unit_add_case(s, "late", setup, teardown, 20);
    tcase_add_test(t, late_answer_is_never_another_ones);
    tcase_add_test(t, daemon_says_nothing);
    tcase_add_test(t, daemon_does_not_accept);
    tcase_add_test(t, daemon_does_not_accept_and_its_backlog_is_full);
    tcase_add_test(t, timeout_is_that_of_the_whole_question);
    tcase_add_test(t, hanging_daemon_is_left_alone_for_a_while);
    t = unit_add_case(s, "gone", setup, teardown, 20);
    tcase_add_test(t, no_daemon_at_all);
    tcase_add_test(t, daemon_comes_back);
    tcase_add_test(t, socket_without_a_listener);
    tcase_add_test(t, idle_connection_that_outlived_its_daemon);
    tcase_add_test(t, no_descriptor_free_for_the_answer);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
