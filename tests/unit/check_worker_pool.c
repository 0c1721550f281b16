/* SPDX-License-Identifier: Apache-2.0 */
/* The pool with real workers, which answer nothing. */
#include "config.h"
#include "workers/worker_pool.h"

#include <ev.h>
#include <sys/prctl.h>

#include "privsep/monitor.h"
#include "privsep/spawner.h"
#include "unit.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/task.h"
#include "wire/walk_result.h"

#define WORKERS  3
#define WALKS    200
#define TIMEOUT  60000
#define A_MINUTE 60.0

static struct ev_loop *loop;
static struct fp_worker_pool *pool;
static struct fp_spawner spawner;
static bool can_spawn;
static int begun[2]; /* a pipe, into which each worker writes its number at its beginning */
static pid_t workers[WORKERS];
static unsigned ended;
static fp_status last;

static void wait_for_the_end(int sock, const void *ctx)
{
    const pid_t self = getpid();
    char c;

    (void)ctx;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (write(begun[1], &self, sizeof(self)) != sizeof(self))
        _exit(1);
    while (read(sock, &c, 1) == 1)
        continue;
    _exit(0);
}

/* In place of the monitor. */
int fp_monitor_ask(const struct fp_monitor *m, enum fp_monitor_task task)
{
    const struct fp_worker_job job = { wait_for_the_end, NULL, begun[1], false };

    (void)m;
    ck_assert_int_eq((int)task, (int)FP_MONITOR_SPAWNER);
    if (can_spawn && fp_spawner_start(&spawner, &job) == 0)
        return spawner.sock;
    errno = EAGAIN;
    return -1;
}

static void on_done(void *ctx, fp_status st, struct fp_answer *a, const struct fp_walk_result *result,
                    uint64_t began_ms)
{
    (void)ctx;
    (void)result;
    (void)began_ms;
    ck_assert_ptr_null(a);
    last = st;
    ended++;
}

static void setup(void)
{
    const struct fp_worker_pool_settings settings = {
        .workers = WORKERS, .timeout_ms = TIMEOUT, .limits = { WORKERS, WORKERS, 2 * WALKS, NULL, NULL }
    };

    loop = ev_loop_new(EVFLAG_AUTO);
    ck_assert_int_eq(pipe2(begun, O_CLOEXEC), 0);
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    can_spawn = true;
    ended = 0;
    pool = fp_worker_pool_create(loop, &settings);
    ck_assert_ptr_nonnull(pool);
    fp_close(&begun[1]);
    while (fp_worker_pool_counts(pool).alive < WORKERS)
        ev_run(loop, EVRUN_ONCE);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(read(begun[0], &workers[i], sizeof(workers[i])), sizeof(workers[i]));
}

static void teardown(void)
{
    fp_worker_pool_destroy(&pool);
    fp_close(&begun[0]);
    ev_loop_destroy(loop);
}

static fp_status submit(void)
{
    static const struct fp_task task = { .lookup = { .path = "/nowhere", .path_len = 8 } };

    return fp_worker_pool_submit(pool, 0, &task, -1, on_done, NULL);
}

/* The spawner ends, and so do its workers, which are then this process's own; the pool does not know it. */
static void end_all_processes(void)
{
    can_spawn = false;
    ck_assert_int_eq(kill(spawner.pid, SIGKILL), 0);
    for (int i = 0; i < 1 + WORKERS; i++)
        ck_assert_int_gt(waitpid(-1, NULL, 0), 0);
}

static void run_until_ended(unsigned n)
{
    const ev_tstamp end = ev_time() + A_MINUTE;

    while (ended < n && ev_time() < end)
        ev_run(loop, EVRUN_ONCE);
    ck_assert_uint_eq(ended, n);
}

/* Its owner still uses a walk after it has submitted it. */
START_TEST(no_walk_ends_while_it_is_submitted)
{
    end_all_processes();
    ck_assert_int_eq((int)submit(), FP_OK);
    ck_assert_uint_eq(fp_worker_pool_counts(pool).alive, 0);
    ck_assert_uint_eq(ended, 0);
    run_until_ended(1);
    ck_assert_int_eq((int)last, FP_FAILED);
    ck_assert_int_eq((int)submit(), FP_BUSY);
}
END_TEST

START_TEST(walks_without_workers_end_in_turns)
{
    unsigned most = 0;

    for (unsigned i = 0; i < WALKS; i++)
        ck_assert_int_eq((int)submit(), FP_OK);
    end_all_processes();
    while (ended < WALKS) {
        const unsigned before = ended;

        ev_run(loop, EVRUN_ONCE);
        if (ended - before > most)
            most = ended - before;
    }
    ck_assert_uint_lt(most, WALKS / 2);
    ck_assert_uint_eq(fp_worker_pool_counts(pool).running, 0);
}
END_TEST

/* As somebody of the same user may stop it. */
START_TEST(spawner_that_does_not_answer_is_replaced)
{
    const pid_t stopped = spawner.pid;

    can_spawn = false;
    ck_assert_int_eq(kill(stopped, SIGSTOP), 0);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(kill(workers[i], SIGKILL), 0);
    while (fp_worker_pool_counts(pool).alive > 0)
        ev_run(loop, EVRUN_ONCE);
    ck_assert_int_eq((int)submit(), FP_OK);
    run_until_ended(1);
    ck_assert_int_eq((int)last, FP_FAILED);
    ck_assert_int_eq((int)submit(), FP_BUSY);
    can_spawn = true;
    while (fp_worker_pool_counts(pool).alive < WORKERS)
        ev_run(loop, EVRUN_ONCE);
    ck_assert_int_eq(kill(stopped, SIGKILL), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("worker pool");
    TCase *t = unit_add_case(s, "pool", setup, teardown, 0);

    tcase_add_test(t, no_walk_ends_while_it_is_submitted);
    tcase_add_test(t, walks_without_workers_end_in_turns);
    tcase_add_test(t, spawner_that_does_not_answer_is_replaced);
    return unit_run(s);
}
