/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/worker.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "changes/mounts_view.h"
#include "common/answer.h"
#include "common/packet.h"
#include "common/task.h"
#include "common/walk_result.h"
#include "common/wire.h"
#include "privsep/sandbox.h"
#include "workers/resolve.h"

static fp_status answer_one(const struct fp_resolver *resolver, int sock,
                            void *buf, struct fp_answer *a)
{
    static struct fp_walk_result trail;
    size_t len = 0;
    struct fp_frame f;
    struct fp_task t;
    struct fp_writer w;
    int base;
    fp_status st = fp_recv_packet(sock, buf, FP_MAX_FRAME, &len, &base);

    if (st != FP_OK)
        return st;
    if (fp_frame_parse(&f, buf, len) != FP_OK || f.type != FP_FRAME_TASK
        || fp_task_decode(&f.body, &t) != FP_OK || (t.base_len != 0) != (base != -1)) {
        fp_close(&base);
        return FP_PROTOCOL;
    }
    fp_resolve(resolver, &t, base, a, &trail);
    fp_close(&base);
    fp_writer_init(&w, buf, FP_MAX_FRAME);
    st = fp_result_encode(&w, f.id, a, &trail);
    if (st == FP_OK)
        st = fp_send_packet(sock, buf, w.len, a->fd);
    fp_close(&a->fd);
    return st;
}

void fp_worker_run(int sock, const void *ctx)
{
    const struct fp_resolver_settings *settings = ctx;
    static uint8_t buf[FP_MAX_FRAME];
    static struct fp_answer answer;
    struct fp_resolver resolver;

    prctl(PR_SET_NAME, "fp-helper");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if ((settings->view != NULL && fp_mounts_view_protect(settings->view) == -1)
        || fp_resolver_init(&resolver, settings) == -1
        || (settings->sandbox != NULL && fp_sandbox_enter(settings->sandbox) == -1))
        _exit(1);
    while (answer_one(&resolver, sock, buf, &answer) == FP_OK)
        ;
    _exit(0);
}
