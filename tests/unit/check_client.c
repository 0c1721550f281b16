/* SPDX-License-Identifier: Apache-2.0 */
/* Questions and answers, the table of leases, controls: everything that works. */
#include "config.h"
#include "shared/client.h"

#include <stdatomic.h>

#include "client_kit.h"

/* ---- successes ---- */

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
    ck_assert_uint_le(d.deadline_ms, TIMEOUT_MS);
    ck_assert_uint_gt(d.deadline_ms, 0);
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

/* All the daemon's names, the first of them alone, or none. */
static void *answer_names(void *arg)
{
    static struct fp_answer a;
    uint64_t id;

    for (unsigned n = 3; n < 4 && d_greet(); n--) {
        if (!d_question(&id))
            break;
        make_answer(&a, 7);
        a.n_names = n;
        for (unsigned i = 0; i < n; i++)
            a.steps[0].access[i].status = a.steps[1].access[i].status = i == 2 ? FP_DENIED : FP_ABSENT;
        d_send_answer(id, &a);
    }
    return arg;
}

/* Those that it asks about, in its order. The daemon is told of them, or has them; 2: it lacks one. */
START_TEST(access_files)
{
    const struct fp_names names = { 2, { { ".htaccess", 9 }, { ".acl", 4 } } };

    settings.max_idle = 0;
    settings.names = names;
    settings.tells_names = _i == 0;
    create_client();
    d.names = (struct fp_names){ 3, { { ".acl", 4 }, { "x", 1 }, { ".htaccess", _i < 2 ? 9 : 3 } } };
    start(answer_names);
    for (unsigned n = 3; n < 4; n--) {
        fp_close(&answer.fd);
        ck_assert_int_eq((int)fp_client_lookup(client, PATH, PATH_LEN, &answer, NULL), FP_OK);
        ck_assert_uint_eq(d.n_names, _i == 0 ? 2 : 0);
        ck_assert_uint_eq(answer.n_names, n == 3 && _i < 2 ? 2 : 0);
        if (answer.n_names == 0)
            continue;
        ck_assert_int_eq((int)answer.steps[1].access[0].status, FP_DENIED);
        ck_assert_int_eq((int)answer.steps[1].access[1].status, FP_ABSENT);
    }
    join();
}
END_TEST

/* Both would read from one connection, and take each other's answers. */
START_TEST(a_forked_process_does_not_ask)
{
    int status;
    pid_t pid;

    start(answer_three);
    ck_assert_int_eq((int)ask(), FP_OK);
    pid = fork();
    if (pid == 0)
        _exit(ask() == FP_AGAIN ? 0 : 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq((int)ask(), FP_OK);
    ck_assert_uint_eq(d.questions, 2);
}
END_TEST

START_TEST(no_connection_is_kept_without_room)
{
    settings.max_idle = 0;
    create_client();
    assert_two_connections();
}
END_TEST

START_TEST(socket_path_of_the_most_bytes)
{
    char path[109];
    struct fp_client *c;

    memset(path, 's', sizeof(path));
    path[0] = '/';
    path[107] = '\0';
    settings.path = path;
    c = fp_client_create(&settings);
    ck_assert_ptr_nonnull(c);
    fp_client_destroy(&c);
    path[107] = 's';
    path[108] = '\0';
    ck_assert_ptr_null(fp_client_create(&settings));
}
END_TEST

/* ---- the table of leases ---- */

static struct fp_lease_view *ask_with_view(void)
{
    struct fp_lease_view *view = NULL;

    fp_close(&answer.fd);
    ck_assert_int_eq((int)fp_client_lookup(client, PATH, PATH_LEN, &answer, &view), FP_OK);
    return view;
}

START_TEST(answers_come_with_the_table)
{
    struct fp_lease_view *first, *second;

    start(answer_three);
    first = ask_with_view();
    ck_assert_ptr_nonnull(first);
    ck_assert(fp_lease_view_is_of(first, fp_lease_table_generations_fd(d.leases)));
    ck_assert(fp_lease_view_is_valid(first, 1, fp_lease_table_generation(d.leases, 1), 1000));
    fp_lease_table_invalidate(d.leases, 1);
    ck_assert(fp_lease_view_is_valid(first, 1, fp_lease_table_generation(d.leases, 1), 1000));
    /* One mapping serves all. */
    second = ask_with_view();
    ck_assert_ptr_eq(first, second);
    fp_lease_view_release(&second);
    /* It lasts as long as its last reference, and the daemon sees which slots are referenced. */
    fp_client_destroy(&client);
    join();
    fp_lease_view_reference(first, 2);
    ck_assert(fp_lease_table_take_referenced(d.leases, 2));
    fp_lease_view_release(&first);
}
END_TEST

static void *answer_with_another_table(void *arg)
{
    uint64_t id;

    for (int i = 0; i < 2 && d_greet() && d_question(&id); i++) {
        d_answer(id);
        fp_lease_table_destroy(&d.leases);
        d.leases = fp_lease_table_create(9);
    }
    return arg;
}

/* Another daemon's table: its slots are not mixed up with those of the first one. */
START_TEST(another_daemon_has_another_table)
{
    struct fp_lease_view *first, *second;

    settings.max_idle = 0;
    create_client();
    start(answer_with_another_table);
    first = ask_with_view();
    second = ask_with_view();
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(second);
    ck_assert_ptr_ne(first, second);
    ck_assert(fp_lease_view_is_superseded(first) && !fp_lease_view_is_superseded(second));
    fp_lease_view_release(&first);
    fp_lease_view_release(&second);
    join();
}
END_TEST

/* An area that could shrink is never mapped; answers are good without it. */
static void *answer_with_a_wrong_table(void *arg)
{
    uint64_t id;

    if (d_accept() && d_hello() && d_pass(FP_FRAME_WELCOME, d.file) && d_marks() && d_events() && d_areas()
        && d_question(&id))
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

/* A content is a place in the area that came with the greeting. */
static void *answer_with_a_content(void *arg)
{
    static struct fp_answer a;
    uint64_t id;

    make_answer(&a, 7);
    a.fd = -1;
    a.local = a.content = true;
    a.content_at = fp_contents_put(d.contents, PATH, PATH_LEN, d.file, 7);
    if (d_greet() && d_question(&id))
        d_send_answer(id, &a);
    return arg;
}

START_TEST(contents_come_with_the_view)
{
    struct fp_lease_view *view;
    char text[7];

    settings.maps_contents = _i == 1;
    create_client();
    start(answer_with_a_content);
    view = ask_with_view();
    ck_assert_ptr_nonnull(view);
    ck_assert(answer.content && answer.fd == -1);
    ck_assert(fp_contents_view_read(fp_lease_view_contents(view), answer.content_at, text, 7));
    ck_assert_mem_eq(text, "content", 7);
    ck_assert(
        !fp_answer_view_find(fp_lease_view_answers(view), PATH, PATH_LEN, &answer));
    fp_lease_view_release(&view);
    join();
}
END_TEST

/* ---- control ---- */

static uint8_t room[FP_MAX_FRAME];
static struct fp_reply done;

static fp_status purge(const char *path)
{
    const struct fp_control question = {
        .op = FP_CONTROL_PURGE, .scope = FP_SCOPE_TREE, .path = path, .path_len = strlen(path)
    };

    return fp_client_control(client, &question, &done, room);
}

static fp_status report(uint32_t from)
{
    const struct fp_control question = { .op = FP_CONTROL_REPORT, .what = FP_REPORT_STATS, .from = from };

    return fp_client_control(client, &question, &done, room);
}

static void *answer_controls(void *arg)
{
    const struct fp_reply forgotten = { FP_OK, 12, 0, NULL, 0 };
    const struct fp_reply text = { FP_OK, 0, 9, "a 1\n", 4 };
    const struct fp_reply not_done = { FP_FAILED, 0, 0, NULL, 0 };
    struct fp_control c;
    uint64_t id;

    if (d_greet() && d_control(&id, &c) && d_done(id, &forgotten, -1) && d_control(&id, &c) && c.from == 8
        && d_done(id, &text, -1) && d_control(&id, &c) && d_done(id, &not_done, -1) && d_question(&id))
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

static void *take_hints(void *arg)
{
    uint64_t id;

    if (d_greet() && d_question(&id) && d_question(&id) && d_question(&id))
        d_answer(id);
    return arg;
}

static void connect_alone(void)
{
    struct fp_lease_view *view;

    ck_assert_int_eq((int)fp_client_view(client, &view), FP_OK);
    fp_lease_view_release(&view);
}

START_TEST(hints_have_no_answer)
{
    start(take_hints);
    ck_assert(!fp_client_hint(client, PATH, PATH_LEN)); /* it does not connect */
    connect_alone();
    for (int i = 0; i < 2; i++)
        ck_assert(fp_client_hint(client, PATH, PATH_LEN));
    ck_assert_int_eq((int)ask(), FP_OK);
    assert_answered();
    join();
    ck_assert_uint_eq(d.connections, 1);
    ck_assert_uint_eq(d.hints, 2);
}
END_TEST

static atomic_bool all_sent;

static void *read_nothing(void *arg)
{
    if (d_greet()) {
        while (!atomic_load(&all_sent))
            unit_sleep_ms(1);
    }
    return arg;
}

/* It waits for nothing, and its connection stays good. */
START_TEST(hints_that_nobody_reads)
{
    start(read_nothing);
    connect_alone();
    while (fp_client_hint(client, PATH, PATH_LEN))
        ;
    for (int i = 0; i < 10000; i++)
        ck_assert(!fp_client_hint(client, PATH, PATH_LEN));
    atomic_store(&all_sent, true);
    join();
    ck_assert_uint_eq(d.connections, 1);
}
END_TEST

START_TEST(control_that_is_none)
{
    /* The daemon would close the connection: it is not sent. */
    start(answer_controls);
    ck_assert_int_eq((int)fp_client_control(client,
                                            &(struct fp_control){ .op = FP_CONTROL_PURGE,
                                                                  .scope = FP_SCOPE_PATH,
                                                                  .path = "/",
                                                                  .path_len = FP_MAX_PATH + 1 },
                                            &done, room),
                     FP_PROTOCOL);
    ck_assert_uint_eq(d.questions, 0);
}
END_TEST

START_TEST(control_without_a_daemon)
{
    held_ms = unit_now_ms();
    ck_assert_int_eq((int)purge("/srv"), FP_CLOSED);
    ck_assert_int_ne((int)done.status, FP_OK);
    ck_assert_int_eq((int)purge("/srv"), FP_AGAIN);
    held_ms = 0;
}
END_TEST

/* The frames in place of a REPLY, by number. */
static bool send_wrong_done(int which, uint64_t id)
{
    struct fp_reply r = { FP_OK, 0, 0, NULL, 0 };

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

/* As by d_greet(). */
static void welcome(int sock)
{
    int events = epoll_create1(EPOLL_CLOEXEC);
    uint8_t frame[128];
    struct fp_writer w;

    fp_writer_init(&w, frame, sizeof(frame));
    fp_welcome_encode(&w, &(struct fp_welcome){ FP_WIRE_VERSION, daemons_view, { .n = 0 } });
    fp_send_packet(sock, w.data, w.len, fp_lease_table_generations_fd(d.leases));
    fp_writer_init(&w, frame, sizeof(frame));
    fp_empty_encode(&w, FP_FRAME_REFERENCED, 0);
    fp_send_packet(sock, w.data, w.len, fp_lease_table_referenced_fd(d.leases));
    fp_writer_init(&w, frame, sizeof(frame));
    fp_empty_encode(&w, FP_FRAME_EVENTS, 0);
    fp_send_packet(sock, w.data, w.len, events);
    fp_writer_init(&w, frame, sizeof(frame));
    fp_empty_encode(&w, FP_FRAME_ALIVE, 0);
    fp_send_packet(sock, w.data, w.len, events);
    fp_close(&events);
    fp_writer_init(&w, frame, sizeof(frame));
    fp_empty_encode(&w, FP_FRAME_ANSWERS, 0);
    fp_send_packet(sock, w.data, w.len, fp_answer_table_fd(d.answers));
    fp_writer_init(&w, frame, sizeof(frame));
    fp_empty_encode(&w, FP_FRAME_CONTENTS, 0);
    fp_send_packet(sock, w.data, w.len, fp_contents_fd(d.contents));
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

        if (sock != -1 && pthread_create(&threads[n], NULL, serve_connection, (void *)(intptr_t)sock) == 0)
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
        if (fp_client_lookup(client, path, PATH_LEN, a, NULL) != FP_OK
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

    wait_at_most(2000);
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

int main(void)
{
    Suite *s = suite_create("client");
    TCase *t = unit_add_case(s, "answers", setup, teardown, 20);

    tcase_add_test(t, answers_with_a_descriptor_on_one_connection);
    tcase_add_test(t, no_answer_is_no_failure);
    tcase_add_loop_test(t, access_files, 0, 3);
    tcase_add_test(t, a_forked_process_does_not_ask);
    tcase_add_test(t, no_connection_is_kept_without_room);
    tcase_add_test(t, socket_path_of_the_most_bytes);
    tcase_add_test(t, every_thread_gets_its_own_answers);
    t = unit_add_case(s, "table", setup, teardown, 20);
    tcase_add_test(t, answers_come_with_the_table);
    tcase_add_test(t, another_daemon_has_another_table);
    tcase_add_test(t, table_that_is_none);
    tcase_add_loop_test(t, contents_come_with_the_view, 0, 2);
    t = unit_add_case(s, "control", setup, teardown, 20);
    tcase_add_test(t, controls_and_questions_share_a_connection);
    tcase_add_test(t, hints_have_no_answer);
    tcase_add_test(t, hints_that_nobody_reads);
    tcase_add_test(t, control_that_is_none);
    tcase_add_test(t, control_without_a_daemon);
    tcase_add_loop_test(t, wrong_done_ends_the_connection, 0, WRONG_DONES);
    return unit_run(s);
}
