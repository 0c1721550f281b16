/* SPDX-License-Identifier: Apache-2.0 */
/* Redis' replies to a fleet's daemon, piece by piece, over one of its two connections. */
#include "config.h"
#include "fleet/fleet.h"

#include <ev.h>

#include "base/log.h"
#include "base/path.h"
#include "conf/conf_fleet.h"
#include "fleet/fleet_message.h"
#include "fuzz.h"
#include "privsep/monitor.h"

enum { LINKS = 2, TURNS = 3 };

static const struct fp_fleet_settings settings = {
    .url = "unix:/fuzz",
    .path = "/fuzz",
    .user = "",
    .password_file = "",
    .name = "fuzz",
    .roots = (const char *const[]){ "/srv", "/data/a", NULL },
    .stream_max = 100,
};
static int peers[LINKS] = { -1, -1 };
static unsigned connects;

void __wrap_ev_timer_start(struct ev_loop *loop, ev_timer *w);
void __real_ev_timer_start(struct ev_loop *loop, ev_timer *w);

int fp_monitor_ask(const struct fp_monitor *m, enum fp_monitor_task task)
{
    int *peer = &peers[connects++ % LINKS], ends[2];

    (void)m;
    FUZZ_MUST(task == FP_MONITOR_REDIS);
    fp_close(peer);
    FUZZ_MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    *peer = ends[1];
    return ends[0];
}

/* Pauses are over at once. */
void __wrap_ev_timer_start(struct ev_loop *loop, ev_timer *w)
{
    w->at = -1;
    __real_ev_timer_start(loop, w);
}

static size_t forget(void *ctx, const char *path, size_t len, bool tree)
{
    (void)ctx;
    (void)tree;
    FUZZ_MUST(fp_path_is_normal(path, len) && fp_path_is_below_any(path, len, settings.roots));
    return 0;
}

static void turn(struct ev_loop *loop)
{
    static char room[16384];

    for (int i = 0; i < TURNS; i++)
        ev_run(loop, EVRUN_NOWAIT);
    for (int i = 0; i < LINKS; i++) {
        while (peers[i] != -1 && recv(peers[i], room, sizeof(room), MSG_DONTWAIT) > 0)
            ;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct ev_loop *loop;
    struct fp_fleet *fleet;
    struct fuzz_piece p;
    struct fp_reader r;
    int fds_at_rest;

    if (loop == NULL) {
        loop = ev_loop_new(EVFLAG_AUTO);
        fp_log_open("stderr", FP_LOG_ERROR);
        ev_run(loop, EVRUN_NOWAIT);
    }
    fds_at_rest = fuzz_free_fd();
    connects = 0;
    fleet = fp_fleet_create(loop, &settings, NULL, forget, NULL);
    FUZZ_MUST(fleet != NULL);
    turn(loop);
    fp_reader_init(&r, data, size);
    while (fuzz_next(&r, &p)) {
        fuzz_send(peers[p.how % LINKS], p.bytes, p.size, NULL, 0);
        turn(loop);
    }
    fp_fleet_destroy(&fleet);
    fp_close(&peers[0]);
    fp_close(&peers[1]);
    FUZZ_MUST(fuzz_free_fd() == fds_at_rest);
    return 0;
}
