/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of the fake daemon, and checks of its answers.
 */
#ifndef FP_CLIENT_KIT_H
#define FP_CLIENT_KIT_H

#include <sys/mman.h>

#include "fake_daemon.h"
#include "shared/client.h"

/* Where the daemon answers, however slow the machine; the other one where it does not. */
#define TIMEOUT_MS 20000
#define SHORT_MS   300

static struct fp_client *client;
static struct fp_answer answer;
static int fds_at_rest;

/* ---- time, which a test may hold: a pause of 25 ms is over soon ---- */

static _Atomic uint64_t held_ms; /* 0: it goes on */

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
    const uint64_t ms = held_ms;

    if (clock != CLOCK_MONOTONIC || ms == 0)
        return __real_clock_gettime(clock, ts);
    *ts = (struct timespec){ .tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000 };
    return 0;
}

/* Makes the client anew, by the settings. */
static struct fp_client_settings settings;

static inline void create_client(void)
{
    fp_client_destroy(&client);
    client = fp_client_create(&settings);
    ck_assert_ptr_nonnull(client);
}

static inline void setup(void)
{
    char dir[PATH_MAX];

    unit_fresh_dir(dir);
    ck_assert_int_lt(snprintf(socket_path, sizeof(socket_path), "%s", unit_join(dir, "s")),
                     (int)sizeof(socket_path));
    memset(&d, 0, sizeof(d));
    d.listener = d.sock = d.file = -1;
    held_ms = 0;
    fds_at_rest = unit_open_fds();
    d.file = memfd_create("answer", MFD_CLOEXEC);
    ck_assert_int_eq(write(d.file, "content", 7), 7);
    d.leases = fp_lease_table_create(4);
    ck_assert_ptr_nonnull(d.leases);
    d.answers = fp_answer_table_create(1, fp_lease_table_is_used, d.leases);
    d.contents = fp_contents_create(1);
    ck_assert(d.answers != NULL && d.contents != NULL);
    fp_lease_table_set_expiry(d.leases, 1, 2000);
    fp_lease_table_heartbeat(d.leases, unit_now_ms() + TIMEOUT_MS);
    settings = (struct fp_client_settings){ .path = socket_path, .timeout_ms = TIMEOUT_MS, .max_idle = 4 };
    create_client();
    answer.fd = -1;
}

/* From now on no question waits longer. */
static inline void wait_at_most(uint32_t ms)
{
    settings.timeout_ms = ms;
    create_client();
}

static inline void teardown(void)
{
    fp_close(&answer.fd);
    fp_client_destroy(&client);
    ck_assert_ptr_null(client);
    join();
    fp_close(&d.sock);
    fp_close(&d.listener);
    fp_close(&d.file);
    fp_contents_destroy(&d.contents);
    fp_answer_table_destroy(&d.answers);
    fp_lease_table_destroy(&d.leases);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

static inline fp_status ask(void)
{
    fp_close(&answer.fd);
    return fp_client_lookup(client, PATH, PATH_LEN, &answer, NULL);
}

/* A question that fails so, and one more while the client pauses. */
static inline void assert_fails_and_pauses(fp_status why)
{
    held_ms = unit_now_ms();
    ck_assert_int_eq((int)ask(), (int)why);
    ck_assert_int_eq(answer.fd, -1);
    ck_assert_int_eq((int)ask(), FP_AGAIN);
    held_ms = 0;
}

/* Asks until it is no longer too early to. */
static inline fp_status ask_after_the_pause(void)
{
    const uint64_t end = unit_now_ms() + PATIENCE_MS;
    fp_status st;

    while ((st = ask()) == FP_AGAIN && unit_now_ms() < end)
        unit_sleep_ms(5);
    return st;
}

static inline void assert_answered(void)
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

static inline void *end_after_one(void *arg)
{
    uint64_t id;

    for (int i = 0; i < 2; i++) {
        if (d_greet() && d_question(&id))
            d_answer(id);
        fp_close(&d.sock);
    }
    return arg;
}

/* Two questions, each with an answer on a connection of its own. */
static inline void assert_two_connections(void)
{
    start(end_after_one);
    ck_assert_int_eq((int)ask(), FP_OK);
    ck_assert_int_eq((int)ask(), FP_OK);
    assert_answered();
    join();
    ck_assert_uint_eq(d.connections, 2);
}

/* ---- scripts ---- */

static inline void *answer_three(void *arg)
{
    uint64_t id;

    if (d_greet())
        for (int i = 0; i < 3 && d_question(&id); i++)
            d_answer(id);
    return arg;
}

/* A frame of the greeting with another descriptor than it should bring; -1: without one. */
static inline bool d_pass(enum fp_frame_type type, int fd)
{
    const struct fp_welcome welcome = { FP_WIRE_VERSION, daemons_view, { .n = 0 } };
    uint8_t frame[128];
    struct fp_writer w;

    fp_writer_init(&w, frame, sizeof(frame));
    return (type == FP_FRAME_WELCOME ? fp_welcome_encode(&w, &welcome) : fp_empty_encode(&w, type, 0)) == FP_OK
           && d_send(&w, fd);
}

#endif
