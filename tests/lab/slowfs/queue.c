/* SPDX-License-Identifier: Apache-2.0
 *
 * A heap by due time and a few threads. One idle thread, the leader, sleeps until the first
 * call is due; the others sleep until the leader leaves to run one (otherwise every due call
 * would wake all of them). Calls block only in the source's own file system.
 */
#include "config.h"
#include "queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#define QUEUE_THREADS 8
/* The longest time that a killed caller may stay: calls that wait longer are looked at. */
#define KILL_CHECK_NS UINT64_C(100000000)
#define NS_PER_SECOND UINT64_C(1000000000)

struct slowfs_queue {
    pthread_mutex_t lock;
    pthread_cond_t first_changed; /* for the leader */
    pthread_cond_t leader_left;   /* for the others */
    bool has_leader;
    bool stopping;
    struct slowfs_behaviour behaviour;
    struct slowfs_call **heap;
    size_t count;
    size_t capacity;
    uint64_t next_kill_check;
    pthread_t threads[QUEUE_THREADS];
    int thread_count;
};

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

static void swap(struct slowfs_queue *q, size_t a, size_t b)
{
    struct slowfs_call *call = q->heap[a];

    q->heap[a] = q->heap[b];
    q->heap[b] = call;
}

static void sift_up(struct slowfs_queue *q, size_t i)
{
    while (i > 0 && q->heap[i]->due < q->heap[(i - 1) / 2]->due) {
        swap(q, i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
}

static void sift_down(struct slowfs_queue *q, size_t i)
{
    for (;;) {
        size_t least = i;
        size_t left = 2 * i + 1;

        for (size_t child = left; child < left + 2 && child < q->count; child++)
            if (q->heap[child]->due < q->heap[least]->due)
                least = child;
        if (least == i)
            return;
        swap(q, i, least);
        i = least;
    }
}

static int heap_push(struct slowfs_queue *q, struct slowfs_call *call)
{
    if (q->count == q->capacity) {
        size_t capacity = q->capacity == 0 ? 256 : q->capacity * 2;
        struct slowfs_call **heap = realloc(q->heap, capacity * sizeof(*heap));

        if (heap == NULL)
            return -1;
        q->heap = heap;
        q->capacity = capacity;
    }
    q->heap[q->count] = call;
    sift_up(q, q->count++);
    return 0;
}

static struct slowfs_call *heap_remove(struct slowfs_queue *q, size_t i)
{
    struct slowfs_call *call = q->heap[i];

    q->count--;
    if (i != q->count) {
        q->heap[i] = q->heap[q->count];
        sift_up(q, i);
        sift_down(q, i);
    }
    return call;
}

/* True if SIGKILL is pending for the thread: the kernel sets it for every fatal signal. */
static bool kill_pending(pid_t thread)
{
    char path[64];
    char line[256];
    bool killed = false;
    FILE *status;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
    status = fopen(path, "re");
    if (status == NULL)
        return true;
    while (!killed && fgets(line, sizeof(line), status) != NULL) {
        if (strncmp(line, "SigPnd:", 7) == 0 || strncmp(line, "ShdPnd:", 7) == 0)
            killed = (strtoull(line + 7, NULL, 16) & (UINT64_C(1) << 8)) != 0;
    }
    (void)fclose(status);
    return killed;
}

static struct slowfs_call *take_killed(struct slowfs_queue *q, uint64_t now)
{
    if (now < q->next_kill_check)
        return NULL;
    for (size_t i = 0; i < q->count; i++) {
        struct slowfs_call *call = q->heap[i];

        if (call->arrived + KILL_CHECK_NS <= now && fuse_req_interrupted(call->req)
            && kill_pending(fuse_req_ctx(call->req)->pid))
            return heap_remove(q, i);
    }
    q->next_kill_check = now + KILL_CHECK_NS;
    return NULL;
}

/* True if the call waits until the behaviour changes. */
static bool is_held(const struct slowfs_queue *q, const struct slowfs_call *call)
{
    return q->behaviour.mode == SLOWFS_HANG
           || (q->behaviour.mode == SLOWFS_HANG_FLUSH && call->kind == SLOWFS_FLUSH);
}

/* The call to finish now; *error_r is 0 to run it, else its answer. */
static struct slowfs_call *take_call(struct slowfs_queue *q, int *error_r)
{
    uint64_t now = now_ns();
    struct slowfs_call *call;

    *error_r = ENOTCONN;
    if (q->count == 0)
        return NULL;
    if (q->stopping)
        return heap_remove(q, 0);
    *error_r = EINTR;
    call = take_killed(q, now);
    if (call != NULL)
        return call;
    *error_r = q->behaviour.mode == SLOWFS_ERROR ? q->behaviour.error : 0;
    if (is_held(q, q->heap[0]) || q->heap[0]->due > now)
        return NULL;
    return heap_remove(q, 0);
}

static void wait_as_leader(struct slowfs_queue *q)
{
    uint64_t until = q->next_kill_check;
    struct timespec t;

    if (q->count == 0) {
        (void)pthread_cond_wait(&q->first_changed, &q->lock);
        return;
    }
    if (!is_held(q, q->heap[0]) && q->heap[0]->due < until)
        until = q->heap[0]->due;
    t.tv_sec = (time_t)(until / NS_PER_SECOND);
    t.tv_nsec = (long)(until % NS_PER_SECOND);
    (void)pthread_cond_timedwait(&q->first_changed, &q->lock, &t);
}

static void wait_for_work(struct slowfs_queue *q)
{
    if (q->has_leader) {
        (void)pthread_cond_wait(&q->leader_left, &q->lock);
        return;
    }
    q->has_leader = true;
    wait_as_leader(q);
    q->has_leader = false;
}

static void finish(struct slowfs_call *call, int error)
{
    if (error == 0)
        call->run(call);
    else
        (void)fuse_reply_err(call->req, error);
    free(call);
}

static void *work(void *arg)
{
    struct slowfs_queue *q = arg;

    /* The kernel's default slack of 50 us would lengthen every delay. */
    (void)prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    (void)pthread_mutex_lock(&q->lock);
    for (;;) {
        int error;
        struct slowfs_call *call = take_call(q, &error);

        if (call != NULL) {
            (void)pthread_cond_signal(&q->leader_left);
            (void)pthread_mutex_unlock(&q->lock);
            finish(call, error);
            (void)pthread_mutex_lock(&q->lock);
        } else if (q->stopping) {
            break;
        } else {
            wait_for_work(q);
        }
    }
    (void)pthread_mutex_unlock(&q->lock);
    return NULL;
}

static int start_threads(struct slowfs_queue *q)
{
    while (q->thread_count < QUEUE_THREADS) {
        int error = pthread_create(&q->threads[q->thread_count], NULL, work, q);

        if (error != 0)
            return error;
        q->thread_count++;
    }
    return 0;
}

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

struct slowfs_queue *slowfs_queue_create(const struct slowfs_behaviour *behaviour)
{
    struct slowfs_queue *q = calloc(1, sizeof(*q));
    int error;

    if (q == NULL)
        return NULL;
    q->behaviour = *behaviour;
    (void)pthread_mutex_init(&q->lock, NULL);
    init_condition(&q->first_changed);
    init_condition(&q->leader_left);
    error = start_threads(q);
    if (error != 0) {
        slowfs_queue_destroy(&q);
        errno = error;
    }
    return q;
}

/* True if the call may run without waiting; sets its times otherwise. */
static bool without_delay(struct slowfs_queue *q, struct slowfs_call *call)
{
    uint64_t delay = q->behaviour.delay_us[call->kind];

    if (delay == 0
        && (q->behaviour.mode == SLOWFS_NORMAL
            || (q->behaviour.mode == SLOWFS_HANG_FLUSH && call->kind != SLOWFS_FLUSH)))
        return true;
    call->arrived = now_ns();
    call->due = call->arrived + delay * 1000;
    return false;
}

void slowfs_queue_submit(struct slowfs_queue *q, struct slowfs_call *call)
{
    bool now;
    int error = 0;

    (void)pthread_mutex_lock(&q->lock);
    now = without_delay(q, call);
    if (!now && heap_push(q, call) != 0) {
        now = true;
        error = ENOMEM;
    } else if (!now && q->heap[0] == call) {
        (void)pthread_cond_signal(&q->first_changed);
    }
    (void)pthread_mutex_unlock(&q->lock);
    if (now)
        finish(call, error);
}

void slowfs_queue_behave(struct slowfs_queue *q, const struct slowfs_behaviour *behaviour)
{
    (void)pthread_mutex_lock(&q->lock);
    q->behaviour = *behaviour;
    (void)pthread_cond_broadcast(&q->first_changed);
    (void)pthread_mutex_unlock(&q->lock);
}

struct slowfs_behaviour slowfs_queue_behaviour(struct slowfs_queue *q)
{
    struct slowfs_behaviour behaviour;

    (void)pthread_mutex_lock(&q->lock);
    behaviour = q->behaviour;
    (void)pthread_mutex_unlock(&q->lock);
    return behaviour;
}

size_t slowfs_queue_waiting(struct slowfs_queue *q)
{
    size_t count;

    (void)pthread_mutex_lock(&q->lock);
    count = q->count;
    (void)pthread_mutex_unlock(&q->lock);
    return count;
}

void slowfs_queue_destroy(struct slowfs_queue **queue)
{
    struct slowfs_queue *q = *queue;

    if (q == NULL)
        return;
    (void)pthread_mutex_lock(&q->lock);
    q->stopping = true;
    (void)pthread_cond_broadcast(&q->first_changed);
    (void)pthread_cond_broadcast(&q->leader_left);
    (void)pthread_mutex_unlock(&q->lock);
    for (int i = 0; i < q->thread_count; i++)
        (void)pthread_join(q->threads[i], NULL);
    (void)pthread_cond_destroy(&q->first_changed);
    (void)pthread_cond_destroy(&q->leader_left);
    (void)pthread_mutex_destroy(&q->lock);
    free(q->heap);
    free(q);
    *queue = NULL;
}
