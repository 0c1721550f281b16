/* SPDX-License-Identifier: Apache-2.0 */
/* The table of leases that a peer gets, and the fate of peers that have another. */
#include "config.h"
#include "ipc/connection.h"

#include <ev.h>
#include <sys/socket.h>

#include "changes/watch.h"
#include "shared/answer_table.h"
#include "shared/contents.h"
#include "shared/lease_table.h"
#include "shared/tables.h"
#include "unit.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/wire.h"

#define PATIENCE_MS 3000

static struct ev_loop *loop;
static struct fp_tables tables; /* those of new peers: one of these two */
static struct fp_tables leases, other;
static struct fp_connection *conn;
static int peer, fds_at_rest;
static unsigned questions, ends;
static uint64_t question_id;

static fp_status on_question(void *ctx, struct fp_connection *c, const struct fp_frame *f)
{
    ck_assert_ptr_eq(ctx, &questions);
    ck_assert_ptr_eq(c, conn);
    questions++;
    question_id = f->id;
    return FP_OK;
}

static const struct fp_names *on_names(void *ctx, const struct fp_names *brought)
{
    static const struct fp_names all = { 1, { { ".acl", 4 } } };

    ck_assert_ptr_eq(ctx, &questions);
    ck_assert_uint_eq(brought->n, 0);
    return &all;
}

static void on_closed(void *ctx, struct fp_connection *c)
{
    ck_assert_ptr_eq(ctx, &questions);
    ck_assert_ptr_eq(c, conn);
    ends++;
    conn = NULL;
}

static struct fp_watch watch = FP_WATCH_NONE;
static struct fp_connections all;
static struct fp_sight sees;

static void connect_peer(void)
{
    static const struct fp_connection_ops ops = { on_question, on_names, on_closed };
    static const struct fp_connection_deps deps = { &ops, &questions, &tables, &watch, &sees };
    int ends_of[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends_of), 0);
    peer = ends_of[0];
    fp_connections_init(&all);
    conn = fp_connection_create(loop, ends_of[1], false, &deps, &all);
    ck_assert_ptr_nonnull(conn);
}

static void setup(void)
{
    loop = ev_loop_new(EVFLAG_AUTO);
    ck_assert_ptr_nonnull(loop);
    ck_assert_int_eq(fp_watch_begin(&watch), 0);
    ck_assert(fp_tables_create(&leases, &(struct fp_tables_sizes){ 4, 1, 1 }));
    ck_assert(fp_tables_create(&other, &(struct fp_tables_sizes){ 9, 1, 1 }));
    tables = leases;
    fds_at_rest = unit_open_fds();
    questions = ends = 0;
    connect_peer();
}

static void teardown(void)
{
    struct fp_connection *c = conn;

    fp_connection_destroy(&c);
    fp_close(&peer);
    ck_assert_uint_eq(ends, 1);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
    fp_watch_close(&watch);
    fp_tables_destroy(&leases);
    fp_tables_destroy(&other);
    ev_loop_destroy(loop);
}

/* ---- the peer ---- */

static void say(const struct fp_writer *w)
{
    ck_assert_int_eq((int)fp_send_packet(peer, w->data, w->len, -1), FP_OK);
    ev_run(loop, EVRUN_NOWAIT);
}

static void say_hello(void)
{
    const struct fp_hello hello = { FP_WIRE_VERSION, FP_WIRE_VERSION, { .n = 0 } };
    uint8_t buf[64];
    struct fp_writer w;

    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_hello_encode(&w, &hello), FP_OK);
    say(&w);
}

static void ask(uint64_t id)
{
    const struct fp_lookup l = { .deadline_ms = 1000, .path = "/a", .path_len = 2 };
    uint8_t buf[128];
    struct fp_writer w;

    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_lookup_encode(&w, id, &l), FP_OK);
    say(&w);
}

/* The descriptor that comes with a frame of that type. */
static int hear(uint8_t type)
{
    static uint8_t buf[FP_MAX_FRAME];
    struct fp_frame f;
    size_t len = 0;
    int fd = -1;

    ck_assert(unit_wait_readable(peer, PATIENCE_MS));
    ck_assert_int_eq((int)fp_recv_packet(peer, buf, sizeof(buf), &len, &fd), FP_OK);
    ck_assert_int_eq((int)fp_frame_parse(&f, buf, len), FP_OK);
    ck_assert_uint_eq(f.type, type);
    return fd;
}

static bool is_same_file(int a, int b)
{
    struct stat x, y;

    return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

static void assert_welcomed_with(const struct fp_tables *wanted)
{
    int generations = hear(FP_FRAME_WELCOME), marks = hear(FP_FRAME_REFERENCED),
        events = hear(FP_FRAME_EVENTS), alive = hear(FP_FRAME_ALIVE), answers = hear(FP_FRAME_ANSWERS),
        contents = hear(FP_FRAME_CONTENTS);
    struct fp_lease_view *view = fp_lease_view_create(generations, marks, events, alive);

    ck_assert_ptr_nonnull(view);
    ck_assert(fp_lease_view_is_of(view, fp_lease_table_generations_fd(wanted->leases)));
    fp_lease_view_release(&view);
    fp_close(&generations);
    fp_close(&marks);
    fp_close(&events);
    fp_close(&alive);
    ck_assert(is_same_file(answers, fp_answer_table_fd(wanted->answers)));
    ck_assert(is_same_file(contents, fp_contents_fd(wanted->contents)));
    fp_close(&answers);
    fp_close(&contents);
}

static void answer(void)
{
    static struct fp_answer a;

    fp_answer_init(&a, FP_UNAVAILABLE);
    fp_connection_answer(conn, question_id, &a);
}

/* ---- tests ---- */

START_TEST(one_table)
{
    say_hello();
    assert_welcomed_with(&leases);
    for (uint64_t id = 1; id <= 3; id++) {
        ask(id);
        ck_assert_uint_eq(questions, id);
        answer();
        ck_assert_int_eq(hear(FP_FRAME_ANSWER), -1);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("connection");
    TCase *t = unit_add_case(s, "tables", setup, teardown, 0);

    tcase_add_test(t, one_table);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
