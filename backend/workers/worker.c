/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/worker.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "changes/mounts_view.h"
#include "changes/noise.h"
#include "common/answer.h"
#include "common/packet.h"
#include "common/priv.h"
#include "common/task.h"
#include "common/walk_result.h"
#include "common/wire.h"
#include "privsep/sandbox.h"
#include "workers/resolve.h"

/* A worker does one task at a time. */
struct worker {
    struct fp_resolver resolver;
    uint8_t buf[FP_MAX_FRAME];
    struct fp_answer answer;
    struct fp_walk_result result;
};

static fp_status answer_one(struct worker *worker, int sock)
{
    struct fp_answer *a = &worker->answer;
    size_t len = 0;
    struct fp_frame f;
    struct fp_task t;
    struct fp_writer w;
    bool closed_later;
    int base;
    fp_status st = fp_recv_packet(sock, worker->buf, sizeof(worker->buf), &len, &base);
    const bool lost = st == FP_LOSTFD;

    if (st != FP_OK && !lost)
        return st;
    if (fp_frame_parse(&f, worker->buf, len) != FP_OK || f.type != FP_FRAME_TASK
        || fp_task_decode(&f.body, &t) != FP_OK || (t.base_len != 0) != (base != -1 || lost)) {
        fp_close(&base);
        return FP_PROTOCOL;
    }
    if (lost) {
        fp_answer_init(a, FP_BUSY);
        fp_walk_result_init(&worker->result);
    } else {
        fp_resolve(&worker->resolver, &t, base, a, &worker->result);
    }
    fp_close(&base);
    fp_writer_init(&w, worker->buf, sizeof(worker->buf));
    st = fp_result_encode(&w, f.id, a, &worker->result);
    if (st == FP_OK)
        st = fp_send_packet(sock, w.data, w.len, a->fd);
    closed_later = fp_result_is_closed_later(a);
    fp_close(&a->fd);
    if (st != FP_OK || !closed_later)
        return st;
    fp_writer_init(&w, worker->buf, sizeof(worker->buf));
    st = fp_closed_encode(&w, f.id);
    return st == FP_OK ? fp_send_packet(sock, w.data, w.len, -1) : st;
}

void fp_worker_run(int sock, const void *ctx)
{
    const struct fp_resolver_settings *settings = ctx;
    struct worker *worker = calloc(1, sizeof(*worker));

    prctl(PR_SET_NAME, "fp-worker");
    fp_priv_close_memory();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (worker == NULL || (settings->view != NULL && fp_mounts_view_protect(settings->view) == -1)
        || (settings->noise != NULL && fp_noise_view_protect(settings->noise) == -1)
        || fp_resolver_init(&worker->resolver, settings) == -1
        || (settings->sandbox != NULL && fp_sandbox_enter(settings->sandbox) == -1))
        _exit(1);
    while (answer_one(worker, sock) == FP_OK)
        ;
    _exit(0);
}
