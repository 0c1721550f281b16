/* SPDX-License-Identifier: Apache-2.0 */
/* The pauses between attempts to connect.  The test is Redis and the clock, and lets no pause pass. */
#include "config.h"
#include "fleet/fleet_link.h"

#include <ev.h>
#include <sys/socket.h>

#include "conf/conf_fleet.h"
#include "played_clock.h"
#include "privsep/monitor.h"
#include "unit.h"
#include "wire/packet.h"

#define PONG     "+PONG\r\n"
#define LONGEST  30. /* seconds; a pause is between half of the value that grows and all of it */
#define FIRST    0.1
#define ATTEMPTS 12 /* enough for the longest pause */

static const struct fp_fleet_settings settings = { .user = "", .password_file = "" };
static struct ev_loop *loop;
static struct fp_fleet_link *fleet_link;
static int redis = -1;
static double pause_s; /* the last one */
static unsigned lost;
static bool answer_is_good;

/* ---- the clock ---- */

void __real_ev_timer_start(struct ev_loop *l, ev_timer *w);
void __wrap_ev_timer_start(struct ev_loop *l, ev_timer *w);

void __wrap_ev_timer_start(struct ev_loop *l, ev_timer *w)
{
    pause_s = w->at;
    w->at = 0;
    __real_ev_timer_start(l, w);
}

/* ---- the link's world ---- */

int fp_monitor_ask(const struct fp_monitor *m, enum fp_monitor_task task)
{
    int ends[2];

    ck_assert_ptr_null(m);
    ck_assert_int_eq(task, FP_MONITOR_REDIS);
    fp_close(&redis);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    redis = ends[1];
    return ends[0];
}

static void on_ready(void *ctx)
{
    const struct fp_fleet_word ping = { "PING", 4 };

    (void)ctx;
    fp_fleet_link_ask(fleet_link, &ping, 1);
}

static bool on_answer(void *ctx, const struct redisReply *reply)
{
    (void)ctx;
    (void)reply;
    return answer_is_good;
}

static void on_lost(void *ctx, const char *why, bool refused)
{
    (void)ctx;
    (void)why;
    ck_assert(!refused);
    lost++;
}

static void setup(void)
{
    static const struct fp_fleet_link_ops ops = { on_ready, on_answer, on_lost };

    loop = ev_loop_new(EVFLAG_AUTO);
    fleet_link = fp_fleet_link_create(loop, &settings, NULL, &ops, NULL);
    ck_assert_ptr_nonnull(fleet_link);
    answer_is_good = true;
}

static void teardown(void)
{
    fp_fleet_link_destroy(&fleet_link);
    fp_close(&redis);
    ev_loop_destroy(loop);
}

static void say(const char *text)
{
    ck_assert_int_eq(write(redis, text, strlen(text)), (ssize_t)strlen(text));
}

static void connect_again(void)
{
    do {
        ev_run(loop, EVRUN_ONCE);
    } while (redis == -1);
}

static void greet(void)
{
    connect_again();
    say(PONG);
    while (!fp_fleet_link_is_ready(fleet_link))
        ev_run(loop, EVRUN_ONCE);
}

static void hang_up(void)
{
    const unsigned before = lost;

    fp_close(&redis);
    while (lost == before)
        ev_run(loop, EVRUN_ONCE);
}

/* A Redis that answers the greeting, and then a command: the connection ends after that. */
static void answer_and_hang_up(void)
{
    const unsigned before = lost;

    greet();
    say(PONG);
    while (!answer_is_good && lost == before)
        ev_run(loop, EVRUN_ONCE);
    if (answer_is_good)
        hang_up();
    fp_close(&redis);
}

START_TEST(pauses_grow_while_connections_end_at_once)
{
    answer_is_good = _i == 1;
    for (int i = 0; i < ATTEMPTS; i++) {
        if (_i == 2) {
            connect_again();
            hang_up();
        } else {
            answer_and_hang_up();
        }
    }
    ck_assert(pause_s >= LONGEST / 2);
}
END_TEST

/* Nobody had anything to say on it. */
START_TEST(pauses_are_short_after_a_connection_that_held)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        connect_again();
        hang_up();
    }
    ck_assert(pause_s >= LONGEST / 2);
    greet();
    let_pass(60000);
    hang_up();
    ck_assert(pause_s <= FIRST);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fleet_link");
    TCase *t = unit_add_case(s, "pauses", setup, teardown, 0);

    tcase_add_loop_test(t, pauses_grow_while_connections_end_at_once, 0, 3);
    tcase_add_test(t, pauses_are_short_after_a_connection_that_held);
    return unit_run(s);
}
