/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread, one epoll loop. Connections wait in a queue (first in, first out, so all of
 * them are used) until a request is due. In the open loop a request that is due while every
 * connection is busy waits here, and its latency counts from when it was due: a stalled
 * server cannot hide its stall by keeping us from asking (no coordinated omission). So do
 * sessions; in a session the next request is due when the user has thought.
 */
#include "config.h"
#include "load.h"

#include "args.h"
#include "clients.h"
#include "peer.h"
#include "plan.h"
#include "sessions.h"
#include "tls.h"
#include "verify.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND UINT64_C(1000000000)
#define NEVER         UINT64_MAX
#define LATE_NS       UINT64_C(1000000)
/* The time between two looks at time limits. */
#define TICK_MS    50
#define MAX_EVENTS 256
/* After so many messages about failed requests there are no more. */
#define MAX_MESSAGES 10

struct load {
    const struct bench_args *args;
    struct bench_plan *plan;
    struct bench_verify *verify;
    struct bench_tally *tally;
    const volatile int *stop;
    struct bench_peer peer;
    struct bench_clients clients;
    struct bench_sessions *sessions;
    struct bench_list free;
    struct bench_list busy;
    int epoll_fd;
    int timer_fd;
    uint64_t timer_set;
    uint64_t begin_ns;
    uint64_t end_ns;       /* of the measurement */
    uint64_t next_arrival; /* of a request in the open loop, of a session in the partly open one */
    uint64_t issued;
    uint64_t messages;
    bool impossible;
};

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static uint64_t to_ns(double seconds)
{
    return (uint64_t)(seconds * 1e9);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void complain(struct load *load, const char *path, const char *kind, const char *problem)
{
    if (++load->messages > MAX_MESSAGES)
        return;
    (void)fprintf(stderr, "flashpache-bench: %s: %s: %s%s\n", path, kind, problem,
                  load->messages == MAX_MESSAGES ? " (no more messages of this kind)" : "");
}

/* The mistake in a complete answer, or NULL. */
static const char *judge(struct load *load, struct bench_client *client, enum bench_failure *failure_r)
{
    const struct bench_request *request = client->conn.request;
    int status = bench_http_status(client->conn.http);
    const char *problem = NULL;

    if (request->status != 0 ? status != request->status : status >= 400) {
        static char text[64];

        (void)snprintf(text, sizeof(text), "answered %d", status);
        *failure_r = BENCH_FAIL_STATUS;
        return text;
    }
    if (load->verify != NULL && status == 200 && !request->head) {
        problem = bench_check_problem(&client->conn.check);
        *failure_r = BENCH_FAIL_BODY;
    }
    return problem;
}

static struct bench_event event_of(const struct load *load, const struct bench_client *client)
{
    return (struct bench_event){
        .start_ns = client->start_ns,
        .sent_ns = client->issued_ns,
        .end_ns = now_ns(),
        .path = bench_plan_request(load->plan, client->path)->path,
        .line = client->line,
        .connection = client->conn.number,
        .warmup = client->warmup,
    };
}

/* After a request: its session thinks, or the connection is free. */
static void release(struct load *load, struct bench_client *client, uint64_t now)
{
    bench_list_remove(&load->busy, client);
    client->busy = false;
    client->freed_ns = now;
    if (client->left > 0) {
        bench_sessions_think(load->sessions, client, now);
        return;
    }
    if (load->args->sessions > 0) {
        load->tally->sessions_completed++;
        bench_conn_close(&client->conn);
    }
    bench_list_append(&load->free, client);
}

static void on_answer(struct load *load, struct bench_client *client)
{
    struct bench_event event = event_of(load, client);
    const char *problem = judge(load, client, &event.failure);

    event.status = bench_http_status(client->conn.http);
    event.bytes = bench_http_body_bytes(client->conn.http);
    event.failed = problem != NULL;
    if (problem != NULL)
        complain(load, event.path, bench_failure_name(event.failure), problem);
    bench_tally_add(load->tally, &event);
    if (load->args->per_connection > 0 && client->conn.served >= load->args->per_connection)
        bench_conn_close(&client->conn);
    release(load, client, event.end_ns);
}

static void on_failure(struct load *load, struct bench_client *client, enum bench_failure failure,
                       const char *problem)
{
    struct bench_event event = event_of(load, client);

    event.failed = true;
    event.failure = failure;
    complain(load, event.path, bench_failure_name(failure), problem);
    bench_tally_add(load->tally, &event);
    release(load, client, event.end_ns);
    /* Nothing has ever been answered: going on would only measure refusals. */
    if (failure == BENCH_FAIL_CONNECT && load->tally->answered == 0 && !load->args->allow_errors) {
        load->impossible = true;
        (void)fprintf(stderr, "flashpache-bench: cannot connect to %s port %s: %s\n", load->args->host,
                      load->args->port, problem);
    }
}

static void on_result(struct load *load, struct bench_client *client, enum bench_conn_result result)
{
    if (result == BENCH_CONN_DONE)
        on_answer(load, client);
    else if (result == BENCH_CONN_FAILED)
        on_failure(load, client, client->conn.failure, client->conn.problem);
}

static bool is_open(const struct load *load)
{
    return bench_args_arrivals(load->args) > 0;
}

/* True if no request may be issued any more, whatever the time. */
static bool issued_enough(const struct load *load)
{
    const struct bench_args *args = load->args;

    return *load->stop || load->impossible
           || (args->requests > 0 && load->issued >= args->warmup + args->requests);
}

/* True if all planned requests have been issued. */
static bool all_issued(const struct load *load, uint64_t now)
{
    uint64_t arrival = is_open(load) ? load->next_arrival : now;

    return issued_enough(load) || earlier(arrival, bench_sessions_due(load->sessions)) >= load->end_ns;
}

/* The time of the next request for which there is a connection; NEVER when there is none. */
static uint64_t next_start(const struct load *load, uint64_t now)
{
    uint64_t arrival = is_open(load) ? load->next_arrival : now;

    if (load->free.first == NULL)
        arrival = NEVER;
    arrival = earlier(arrival, bench_sessions_due(load->sessions));
    return issued_enough(load) || arrival >= load->end_ns ? NEVER : arrival;
}

static uint64_t arrival_after(struct load *load)
{
    return load->begin_ns + bench_plan_next_arrival(load->plan);
}

/* The connection for the request that next_start() found. */
static struct bench_client *take_client(struct load *load, uint64_t start)
{
    struct bench_client *client = load->free.first;

    if (bench_sessions_due(load->sessions) == start) {
        client = bench_sessions_take(load->sessions);
        client->left--;
        return client;
    }
    bench_list_remove(&load->free, client);
    if (is_open(load))
        load->next_arrival = arrival_after(load);
    if (load->args->sessions > 0) {
        client->left = bench_sessions_length(load->sessions) - 1;
        load->tally->sessions_started++;
    }
    return client;
}

static void begin_measurement(struct load *load, uint64_t start)
{
    load->tally->start_ns = start;
    load->tally->end_ns = start;
    bench_effort_begin(&load->tally->effort, now_ns());
    if (load->args->duration_s > 0)
        load->end_ns = start + to_ns(load->args->duration_s);
}

static void note_lateness(struct load *load, const struct bench_client *client)
{
    uint64_t start = client->start_ns;
    uint64_t possible = start > client->freed_ns ? start : client->freed_ns;

    if (client->warmup || !is_open(load))
        return;
    bench_histogram_add(load->tally->effort.late_sends, client->issued_ns - possible);
    if (client->issued_ns - start > LATE_NS)
        load->tally->late++;
}

static enum bench_conn_result issue(struct load *load, struct bench_client *client, uint64_t start)
{
    client->warmup = load->issued < load->args->warmup;
    if (load->issued++ == load->args->warmup)
        begin_measurement(load, start);
    client->start_ns = start;
    client->issued_ns = now_ns();
    note_lateness(load, client);
    client->path = bench_plan_next(load->plan, &client->line);
    client->conn.checked = load->verify != NULL;
    if (load->verify != NULL)
        bench_verify_begin(load->verify, client->path, &client->conn.check);
    client->busy = true;
    bench_list_append(&load->busy, client);
    return bench_conn_start(&client->conn, bench_plan_request(load->plan, client->path));
}

/* Issues the due requests, as far as there are free connections. */
static void dispatch(struct load *load)
{
    for (;;) {
        uint64_t now = now_ns();
        uint64_t start = next_start(load, now);
        struct bench_client *client;
        enum bench_conn_result result;

        if (start > now)
            return;
        client = take_client(load, start);
        result = issue(load, client, start);
        on_result(load, client, result);
        /* Not on and on while connecting fails at once: other connections have events, too. */
        if (result == BENCH_CONN_FAILED)
            return;
    }
}

static void expire(struct load *load)
{
    uint64_t limit = to_ns(load->args->timeout_s);
    uint64_t now = now_ns();

    while (load->busy.first != NULL && load->busy.first->issued_ns + limit <= now) {
        struct bench_client *client = load->busy.first;

        bench_conn_close(&client->conn);
        on_failure(load, client, BENCH_FAIL_TIMEOUT, "no complete answer in time");
    }
}

/* Wakes us when the next request is due. */
static void set_timer(struct load *load)
{
    uint64_t when;
    struct itimerspec spec = { 0 };

    if (!is_open(load))
        return;
    when = next_start(load, now_ns());
    if (when == load->timer_set)
        return;
    load->timer_set = when;
    if (when != NEVER) {
        spec.it_value.tv_sec = (time_t)(when / NS_PER_SECOND);
        spec.it_value.tv_nsec = (long)(when % NS_PER_SECOND);
    }
    (void)timerfd_settime(load->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void on_event(struct load *load, struct bench_client *client, uint32_t events)
{
    const char *problem;

    if (client->busy) {
        on_result(load, client, bench_conn_event(&client->conn, events));
        return;
    }
    if (client->conn.state != BENCH_IDLE)
        return;
    problem = bench_conn_idle_event(&client->conn);
    if (problem != NULL) {
        load->tally->failures[BENCH_FAIL_MALFORMED]++;
        complain(load, bench_plan_request(load->plan, client->path)->path, "malformed", problem);
    }
}

static void wait_for_events(struct load *load)
{
    struct epoll_event events[MAX_EVENTS];
    int count = epoll_wait(load->epoll_fd, events, MAX_EVENTS, TICK_MS);

    for (int i = 0; i < count; i++) {
        if (events[i].data.ptr != NULL)
            on_event(load, events[i].data.ptr, events[i].events);
        else
            load->timer_set = NEVER; /* it has fired */
        dispatch(load);
    }
}

/* The time is over. Requests under way, and due ones that were never issued, have no latency; they
 * are counted as unfinished. */
static void count_unfinished(struct load *load)
{
    for (const struct bench_client *client = load->busy.first; client != NULL; client = client->next)
        bench_tally_add_unfinished(load->tally, client->start_ns);
    while (is_open(load) && !issued_enough(load) && load->next_arrival < load->end_ns) {
        bench_tally_add_unfinished(load->tally, load->next_arrival);
        load->issued++;
        load->next_arrival = arrival_after(load);
    }
}

static void run_loop(struct load *load)
{
    load->begin_ns = now_ns();
    load->end_ns = NEVER;
    if (is_open(load))
        load->next_arrival = arrival_after(load);
    dispatch(load);
    while (load->busy.first != NULL || !all_issued(load, now_ns())) {
        set_timer(load);
        wait_for_events(load);
        dispatch(load);
        expire(load);
        /* Requests that are due at the end of the duration get as long as one request may take. */
        if (load->end_ns != NEVER && now_ns() >= load->end_ns + to_ns(load->args->timeout_s)) {
            count_unfinished(load);
            break;
        }
    }
    bench_effort_end(&load->tally->effort, now_ns());
}

static int no_resource(const char *what)
{
    (void)fprintf(stderr, "flashpache-bench: %s: %s\n", what, strerror(errno));
    return -1;
}

static int open_descriptors(struct load *load)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLET }; /* data NULL: the timer */

    load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    load->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (load->epoll_fd < 0 || load->timer_fd < 0)
        return no_resource("cannot make epoll and timer descriptors");
    if (epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, load->timer_fd, &event) != 0)
        return no_resource("cannot wait for the timer");
    return 0;
}

static int open_all(struct load *load)
{
    load->sessions = bench_sessions_create(load->args);
    if (load->sessions == NULL)
        return no_resource("sessions");
    if (bench_peer_open(&load->peer, load->args) != 0 || open_descriptors(load) != 0)
        return -1;
    return bench_clients_open(&load->clients, load->args->connections, &load->peer, load->epoll_fd,
                              &load->free);
}

static void close_all(struct load *load)
{
    struct bench_tally *tally = load->tally;

    tally->retries = bench_clients_close(&load->clients);
    tally->connections = load->peer.opened;
    if (load->peer.tls != NULL) {
        tally->tls_protocol = bench_tls_protocol(load->peer.tls);
        tally->tls_cipher = bench_tls_cipher(load->peer.tls);
    }
    bench_peer_close(&load->peer);
    bench_sessions_destroy(&load->sessions);
    if (load->epoll_fd >= 0)
        (void)close(load->epoll_fd);
    if (load->timer_fd >= 0)
        (void)close(load->timer_fd);
}

int bench_load_run(const struct bench_args *args, struct bench_plan *plan, struct bench_verify *verify,
                   struct bench_tally *tally, const volatile int *stop)
{
    struct load load = {
        .args = args,
        .plan = plan,
        .verify = verify,
        .tally = tally,
        .stop = stop,
        .epoll_fd = -1,
        .timer_fd = -1,
        .timer_set = NEVER,
    };
    int status = open_all(&load);

    if (status == 0) {
        run_loop(&load);
        status = load.impossible ? -1 : 0;
    }
    close_all(&load);
    return status;
}
