/* SPDX-License-Identifier: Apache-2.0
 *
 * One thread, one epoll loop. Connections wait in a queue (first in, first out, so all of
 * them are used) until a request is due. In the open loop a request that is due while every
 * connection is busy waits here, and its latency counts from when it was due: a stalled
 * server cannot hide its stall by keeping us from asking (no coordinated omission).
 */
#include "config.h"
#include "load.h"

#include "args.h"
#include "plan.h"
#include "verify.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SECOND UINT64_C(1000000000)
#define NEVER UINT64_MAX
#define LATE_NS UINT64_C(1000000)
/* How often time limits are looked at. */
#define TICK_MS 50
#define MAX_EVENTS 256
/* After so many messages about failed requests there are no more. */
#define MAX_MESSAGES 10
/* Descriptors needed besides the connections'. */
#define SPARE_DESCRIPTORS 16

struct client {
    struct bench_conn conn; /* first: epoll's data points to it */
    struct client *next;    /* in the queue of free ones, or in that of busy ones by age */
    struct client *previous;
    bool busy;
    bool warmup;
    size_t path;
    uint64_t start_ns;  /* intended */
    uint64_t issued_ns; /* actual; the time limit counts from here */
};

struct list {
    struct client *first;
    struct client *last;
};

struct load {
    const struct bench_args *args;
    struct bench_plan *plan;
    struct bench_verify *verify;
    struct bench_tally *tally;
    const volatile int *stop;
    struct bench_address address;
    struct client *clients;
    unsigned client_count;
    struct list free;
    struct list busy;
    int epoll_fd;
    int timer_fd;
    uint64_t timer_set;
    uint64_t begin_ns;
    uint64_t end_ns;       /* of the measurement */
    uint64_t next_arrival; /* open loop */
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

static void list_append(struct list *list, struct client *client)
{
    client->next = NULL;
    client->previous = list->last;
    if (list->last != NULL)
        list->last->next = client;
    else
        list->first = client;
    list->last = client;
}

static void list_remove(struct list *list, struct client *client)
{
    if (client->previous != NULL)
        client->previous->next = client->next;
    else
        list->first = client->next;
    if (client->next != NULL)
        client->next->previous = client->previous;
    else
        list->last = client->previous;
}

static void complain(struct load *load, const char *path, const char *kind, const char *problem)
{
    if (++load->messages > MAX_MESSAGES)
        return;
    (void)fprintf(stderr, "flashpache-bench: %s: %s: %s%s\n", path, kind, problem,
                  load->messages == MAX_MESSAGES ? " (no more messages of this kind)" : "");
}

/* What is wrong with a complete answer, or NULL. */
static const char *judge(struct load *load, struct client *client, enum bench_failure *failure_r)
{
    int status = bench_http_status(client->conn.http);
    const char *problem = NULL;

    if (status >= 400) {
        static char text[64];

        (void)snprintf(text, sizeof(text), "answered %d", status);
        *failure_r = BENCH_FAIL_STATUS;
        return text;
    }
    if (load->verify != NULL && status == 200) {
        problem = bench_check_problem(&client->conn.check);
        *failure_r = BENCH_FAIL_BODY;
    }
    return problem;
}

static struct bench_event event_of(const struct load *load, const struct client *client)
{
    return (struct bench_event){
        .start_ns = client->start_ns,
        .end_ns = now_ns(),
        .path = bench_plan_path(load->plan, client->path),
        .warmup = client->warmup,
    };
}

static void release(struct load *load, struct client *client)
{
    list_remove(&load->busy, client);
    client->busy = false;
    list_append(&load->free, client);
}

static void on_answer(struct load *load, struct client *client)
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
    release(load, client);
}

static void on_failure(struct load *load, struct client *client, enum bench_failure failure,
                       const char *problem)
{
    struct bench_event event = event_of(load, client);

    event.failed = true;
    event.failure = failure;
    complain(load, event.path, bench_failure_name(failure), problem);
    bench_tally_add(load->tally, &event);
    release(load, client);
    /* Nothing has ever been answered: going on would only measure refusals. */
    if (failure == BENCH_FAIL_CONNECT && load->tally->answered == 0 && !load->args->allow_errors) {
        load->impossible = true;
        (void)fprintf(stderr, "flashpache-bench: cannot connect to %s port %s: %s\n",
                      load->args->host, load->args->port, problem);
    }
}

static void on_result(struct load *load, struct client *client, enum bench_conn_result result)
{
    if (result == BENCH_CONN_DONE)
        on_answer(load, client);
    else if (result == BENCH_CONN_FAILED)
        on_failure(load, client, client->conn.failure, client->conn.problem);
}

/* Whether all requests have been issued that are to be. */
static bool all_issued(const struct load *load, uint64_t now)
{
    const struct bench_args *args = load->args;

    if (*load->stop || load->impossible)
        return true;
    if (args->requests > 0 && load->issued >= args->warmup + args->requests)
        return true;
    return (args->rate > 0 ? load->next_arrival : now) >= load->end_ns;
}

/* When the next request is due; NEVER when none is left. */
static uint64_t next_start(const struct load *load, uint64_t now)
{
    if (all_issued(load, now))
        return NEVER;
    return load->args->rate > 0 ? load->next_arrival : now;
}

static void begin_measurement(struct load *load, uint64_t start)
{
    load->tally->start_ns = start;
    load->tally->end_ns = start;
    if (load->args->duration_s > 0)
        load->end_ns = start + to_ns(load->args->duration_s);
}

static enum bench_conn_result issue(struct load *load, struct client *client, uint64_t start)
{
    const char *text;
    size_t size;

    client->warmup = load->issued < load->args->warmup;
    if (load->issued++ == load->args->warmup)
        begin_measurement(load, start);
    client->start_ns = start;
    client->issued_ns = now_ns();
    if (load->args->rate > 0) {
        load->next_arrival = load->begin_ns + bench_plan_next_arrival(load->plan);
        if (!client->warmup && client->issued_ns - start > LATE_NS)
            load->tally->late++;
    }
    client->path = bench_plan_next(load->plan);
    client->conn.checked = load->verify != NULL;
    if (load->verify != NULL)
        bench_verify_begin(load->verify, client->path, &client->conn.check);
    text = bench_plan_request(load->plan, client->path, &size);
    list_remove(&load->free, client);
    client->busy = true;
    list_append(&load->busy, client);
    return bench_conn_start(&client->conn, text, size);
}

/* Issues what is due, as far as there are free connections. */
static void dispatch(struct load *load)
{
    while (load->free.first != NULL) {
        struct client *client = load->free.first;
        uint64_t now = now_ns();
        uint64_t start = next_start(load, now);
        enum bench_conn_result result;

        if (start > now)
            return;
        result = issue(load, client, start);
        on_result(load, client, result);
        /* Not on and on while connecting fails at once: let the others be heard. */
        if (result == BENCH_CONN_FAILED)
            return;
    }
}

static void expire(struct load *load)
{
    uint64_t limit = to_ns(load->args->timeout_s);
    uint64_t now = now_ns();

    while (load->busy.first != NULL && load->busy.first->issued_ns + limit <= now) {
        struct client *client = load->busy.first;

        bench_conn_close(&client->conn);
        on_failure(load, client, BENCH_FAIL_TIMEOUT, "no complete answer in time");
    }
}

/* For the open loop: wakes us when the next request is due. */
static void set_timer(struct load *load)
{
    uint64_t when = load->free.first != NULL ? next_start(load, now_ns()) : NEVER;
    struct itimerspec spec = {0};

    if (load->args->rate <= 0 || when == load->timer_set)
        return;
    load->timer_set = when;
    if (when != NEVER) {
        spec.it_value.tv_sec = (time_t)(when / NS_PER_SECOND);
        spec.it_value.tv_nsec = (long)(when % NS_PER_SECOND);
    }
    (void)timerfd_settime(load->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void on_event(struct load *load, struct client *client, uint32_t events)
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
        complain(load, bench_plan_path(load->plan, client->path), "malformed", problem);
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

/* The time is over: requests under way, and in the open loop those that were due but never
 * issued, are lost to the measurement, and are counted so that nobody misses it. */
static void count_unfinished(struct load *load)
{
    const struct bench_args *args = load->args;

    for (const struct client *client = load->busy.first; client != NULL; client = client->next)
        load->tally->unfinished++;
    while (args->rate > 0 && !all_issued(load, load->next_arrival)) {
        load->tally->unfinished++;
        load->issued++;
        load->next_arrival = load->begin_ns + bench_plan_next_arrival(load->plan);
    }
}

/* Requests that are due at the end of the duration get as long as one request may take. */
static bool overtime(const struct load *load, uint64_t now)
{
    return load->end_ns != NEVER && now >= load->end_ns + to_ns(load->args->timeout_s);
}

static void run_loop(struct load *load)
{
    load->begin_ns = now_ns();
    load->end_ns = NEVER;
    if (load->args->rate > 0)
        load->next_arrival = load->begin_ns + bench_plan_next_arrival(load->plan);
    dispatch(load);
    while (load->busy.first != NULL || !all_issued(load, now_ns())) {
        set_timer(load);
        wait_for_events(load);
        dispatch(load);
        expire(load);
        if (overtime(load, now_ns())) {
            count_unfinished(load);
            break;
        }
    }
}

static int resolve(const struct bench_args *args, struct bench_address *address_r)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct addrinfo *found;
    int error = getaddrinfo(args->host, args->port, &hints, &found);

    if (error != 0) {
        (void)fprintf(stderr, "flashpache-bench: %s port %s: %s\n", args->host, args->port,
                      gai_strerror(error));
        return -1;
    }
    memcpy(&address_r->storage, found->ai_addr, found->ai_addrlen);
    address_r->size = found->ai_addrlen;
    address_r->family = found->ai_family;
    freeaddrinfo(found);
    return 0;
}

static int raise_descriptor_limit(unsigned connections)
{
    rlim_t needed = (rlim_t)connections + SPARE_DESCRIPTORS;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
        return 0;
    limit.rlim_cur = needed;
    if (limit.rlim_max < needed)
        limit.rlim_max = needed;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return 0;
    (void)fprintf(stderr,
                  "flashpache-bench: %u connections need more descriptors than allowed; raise "
                  "the limit (ulimit -Hn %llu) or use fewer\n",
                  connections, (unsigned long long)needed);
    return -1;
}

static int no_resource(const char *what)
{
    (void)fprintf(stderr, "flashpache-bench: %s: %s\n", what, strerror(errno));
    return -1;
}

static int open_descriptors(struct load *load)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET}; /* data NULL: the timer */

    load->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    load->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (load->epoll_fd < 0 || load->timer_fd < 0)
        return no_resource("cannot make epoll and timer descriptors");
    if (epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, load->timer_fd, &event) != 0)
        return no_resource("cannot wait for the timer");
    return 0;
}

static int open_clients(struct load *load)
{
    load->clients = calloc(load->args->connections, sizeof(*load->clients));
    if (load->clients == NULL)
        return no_resource("connections");
    while (load->client_count < load->args->connections) {
        struct client *client = &load->clients[load->client_count];

        if (bench_conn_init(&client->conn, &load->address, load->epoll_fd) != 0)
            return no_resource("connections");
        list_append(&load->free, client);
        load->client_count++;
    }
    return 0;
}

static void close_all(struct load *load)
{
    for (unsigned i = 0; i < load->client_count; i++) {
        load->tally->connections += load->clients[i].conn.opened;
        load->tally->retries += load->clients[i].conn.retries;
        bench_conn_destroy(&load->clients[i].conn);
    }
    free(load->clients);
    if (load->epoll_fd >= 0)
        (void)close(load->epoll_fd);
    if (load->timer_fd >= 0)
        (void)close(load->timer_fd);
}

int bench_load_run(const struct bench_args *args, struct bench_plan *plan,
                   struct bench_verify *verify, struct bench_tally *tally,
                   const volatile int *stop)
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
    int status = resolve(args, &load.address);

    if (status == 0)
        status = raise_descriptor_limit(args->connections);
    if (status == 0)
        status = open_descriptors(&load);
    if (status == 0)
        status = open_clients(&load);
    if (status == 0) {
        run_loop(&load);
        status = load.impossible ? -1 : 0;
    }
    close_all(&load);
    return status;
}
