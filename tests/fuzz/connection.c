/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer of the daemon, packet by packet, up to and without what its question is
 * about.
 */
#include "config.h"
#include "ipc/connection.h"

#include <ev.h>

#include "base/log.h"
#include "changes/watch.h"
#include "fuzz.h"
#include "shared/tables.h"
#include "wire/answer.h"

enum { DESCRIPTORS = 3, READS = 4, WAITS = 8, SILENT = 16 }; /* bits of a piece's first byte */

static struct fp_connection *conn;
static char lines[30000]; /* a report that soon finds no room in a socket */
static bool waits;        /* the answer comes with the next packet only */

static void answer(uint64_t id)
{
    struct fp_answer a;

    fp_answer_init(&a, FP_TIMEOUT);
    fp_connection_answer(conn, id, &a);
}

static fp_status on_question(void *ctx, struct fp_connection *c, const struct fp_frame *f)
{
    struct fp_reader body = f->body;
    struct fp_lookup l;
    struct fp_control q;
    const struct fp_reply done = { .status = FP_OK, .text = lines, .text_len = sizeof(lines) };

    FUZZ_MUST(c == conn && ctx == &conn);
    if (f->type == FP_FRAME_LOOKUP && fp_lookup_decode(&body, &l) == FP_OK) {
        if (l.hint)
            fp_connection_pass(conn);
        else if (!waits)
            answer(f->id);
        return FP_OK;
    }
    if (f->type != FP_FRAME_CONTROL || fp_control_decode(&body, &q) != FP_OK)
        return FP_PROTOCOL;
    fp_connection_reply(conn, f->id, &done);
    return FP_OK;
}

static const struct fp_names *on_names(void *ctx, const struct fp_names *brought)
{
    (void)ctx;
    return brought;
}

static void on_closed(void *ctx, struct fp_connection *c)
{
    (void)c;
    FUZZ_MUST(ctx == &conn);
    conn = NULL;
}

static void take(struct ev_loop *loop, const struct fuzz_piece *p, int peer)
{
    static uint8_t room[FP_MAX_FRAME];
    const int fds[4] = { peer, peer, peer, peer };

    waits = (p->how & WAITS) != 0;
    if ((p->how & SILENT) == 0)
        fuzz_send(peer, p->bytes, p->size, fds, p->how & DESCRIPTORS);
    ev_run(loop, EVRUN_NOWAIT);
    while ((p->how & READS) != 0 && recv(peer, room, sizeof(room), MSG_DONTWAIT) > 0)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fp_connection_ops ops = { on_question, on_names, on_closed };
    static struct fp_tables tables;
    static struct ev_loop *loop;
    struct fuzz_piece p;
    struct fp_reader r;
    static struct fp_watch watch = FP_WATCH_NONE;
    static struct fp_sight sees;
    static const struct fp_connection_deps deps = { &ops, &conn, &tables, &watch, &sees };
    struct fp_connections all;
    int ends[2], fds_at_rest;

    if (loop == NULL) {
        FUZZ_MUST(fp_watch_begin(&watch) == 0);
        FUZZ_MUST(fp_tables_create(&tables, &(struct fp_tables_sizes){ 8, 1, 1 }));
        loop = ev_loop_new(EVFLAG_AUTO);
        memset(lines, '\n', sizeof(lines));
        fp_log_open("stderr", FP_LOG_ERROR);
        ev_run(loop, EVRUN_NOWAIT);
    }
    fds_at_rest = fuzz_free_fd();
    FUZZ_MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    fp_connections_init(&all);
    conn = fp_connection_create(loop, ends[0], false, &deps, &all);
    FUZZ_MUST(conn != NULL);
    fp_reader_init(&r, data, size);
    while (conn != NULL && fuzz_next(&r, &p))
        take(loop, &p, ends[1]);
    fp_connection_destroy(&conn);
    fp_close(&ends[1]);
    FUZZ_MUST(fuzz_free_fd() == fds_at_rest);
    return 0;
}
