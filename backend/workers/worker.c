/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/worker.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/priv.h"
#include "changes/mount_list.h"
#include "changes/noise.h"
#include "privsep/sandbox.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/task.h"
#include "wire/walk_result.h"
#include "wire/wire.h"
#include "workers/resolve.h"

/* A worker does one task at a time. */
struct worker {
    struct fp_resolver resolver;
    uint8_t buf[FP_MAX_FRAME];
    struct fp_answer answer;
    struct fp_walk_result result;
};

/* Reads a task, and the directory to begin at: -1, none.  *lost_r: no descriptor was free for it. */
static fp_status read_task(struct worker *worker, int sock, uint64_t *id_r, struct fp_task *t, int *base_r,
                           bool *lost_r)
{
    struct fp_frame f;
    size_t len = 0;
    const fp_status st = fp_recv_packet(sock, worker->buf, sizeof(worker->buf), &len, base_r);

    *lost_r = st == FP_LOSTFD;
    if (st != FP_OK && !*lost_r)
        return st;
    if (fp_frame_parse(&f, worker->buf, len) != FP_OK || f.type != FP_FRAME_TASK
        || fp_task_decode(&f.body, t) != FP_OK || (t->base_len != 0) != (*base_r != -1 || *lost_r)) {
        fp_close(base_r);
        return FP_PROTOCOL;
    }
    *id_r = f.id;
    return FP_OK;
}

static fp_status send_answer(struct worker *worker, int sock, uint64_t id)
{
    struct fp_writer w;
    fp_status st;

    fp_writer_init(&w, worker->buf, sizeof(worker->buf));
    st = fp_result_encode(&w, id, &worker->answer, &worker->result);
    return st == FP_OK ? fp_send_packet(sock, w.data, w.len, worker->answer.fd) : st;
}

static fp_status send_closed(struct worker *worker, int sock, uint64_t id)
{
    struct fp_writer w;
    fp_status st;

    fp_writer_init(&w, worker->buf, sizeof(worker->buf));
    st = fp_empty_encode(&w, FP_FRAME_CLOSED, id);
    return st == FP_OK ? fp_send_packet(sock, w.data, w.len, -1) : st;
}

static fp_status answer_one(struct worker *worker, int sock)
{
    struct fp_answer *a = &worker->answer;
    struct fp_task t;
    uint64_t id;
    bool lost, closed_later;
    int base;
    fp_status st = read_task(worker, sock, &id, &t, &base, &lost);

    if (st != FP_OK)
        return st;
    if (lost) {
        fp_answer_init(a, FP_BUSY);
        fp_walk_result_init(&worker->result);
    } else {
        fp_resolve(&worker->resolver, &t, base, a, &worker->result);
    }
    fp_close(&base);
    st = send_answer(worker, sock, id);
    closed_later = fp_result_is_closed_later(a);
    fp_close(&a->fd);
    return st == FP_OK && closed_later ? send_closed(worker, sock, id) : st;
}

void fp_worker_run(int sock, const void *ctx)
{
    const struct fp_resolver_settings *settings = ctx;
    struct worker *worker = calloc(1, sizeof(*worker));

    prctl(PR_SET_NAME, "fp-worker");
    fp_priv_close_memory();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (worker == NULL || (settings->mounts != NULL && fp_mount_list_protect(settings->mounts) == -1)
        || (settings->noise != NULL && fp_noise_list_protect(settings->noise) == -1)
        || fp_resolver_init(&worker->resolver, settings) == -1
        || (settings->sandbox != NULL && fp_sandbox_enter(settings->sandbox) == -1))
        _exit(1);
    while (answer_one(worker, sock) == FP_OK)
        ;
    _exit(0);
}
