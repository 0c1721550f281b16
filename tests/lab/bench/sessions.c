/* SPDX-License-Identifier: Apache-2.0
 *
 * Those who think are in a binary heap by the end of their thinking.
 */
#include "config.h"
#include "sessions.h"

#include "args.h"
#include "rng.h"

#include <math.h>
#include <stdlib.h>

/* So that lengths and think times do not repeat the sequences of paths and arrivals. */
#define SEED_STEP UINT64_C(0x5851f42d4c957f2d)

struct thinker {
    uint64_t due;
    void *user;
};

struct bench_sessions {
    const struct bench_args *args;
    struct bench_rng lengths;
    struct bench_rng thoughts;
    struct thinker *heap;
    unsigned count;
};

struct bench_sessions *bench_sessions_create(const struct bench_args *args)
{
    struct bench_sessions *sessions = calloc(1, sizeof(*sessions));

    if (sessions == NULL)
        return NULL;
    sessions->args = args;
    bench_rng_seed(&sessions->lengths, args->seed + SEED_STEP);
    bench_rng_seed(&sessions->thoughts, args->seed + 2 * SEED_STEP);
    sessions->heap = calloc(args->connections, sizeof(*sessions->heap));
    if (sessions->heap == NULL)
        bench_sessions_destroy(&sessions);
    return sessions;
}

void bench_sessions_destroy(struct bench_sessions **sessions)
{
    if (*sessions != NULL)
        free((*sessions)->heap);
    free(*sessions);
    *sessions = NULL;
}

uint64_t bench_sessions_length(struct bench_sessions *sessions)
{
    uint64_t mean = sessions->args->session_requests;

    if (!sessions->args->geometric_sessions || mean == 1)
        return mean;
    /* The exponential distribution cut into steps is the geometric one. */
    return 1 + (uint64_t)floor(bench_rng_exponential(&sessions->lengths) / -log1p(-1.0 / (double)mean));
}

void bench_sessions_think(struct bench_sessions *sessions, void *user, uint64_t now)
{
    double think_ns = sessions->args->think_s * 1e9;
    uint64_t due = now + (uint64_t)(think_ns * bench_rng_exponential(&sessions->thoughts));
    unsigned place = sessions->count++;

    while (place > 0 && sessions->heap[(place - 1) / 2].due > due) {
        sessions->heap[place] = sessions->heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    sessions->heap[place] = (struct thinker){ due, user };
}

uint64_t bench_sessions_due(const struct bench_sessions *sessions)
{
    return sessions->count > 0 ? sessions->heap[0].due : UINT64_MAX;
}

void *bench_sessions_take(struct bench_sessions *sessions)
{
    struct thinker *heap = sessions->heap;
    void *user = heap[0].user;
    struct thinker last = heap[--sessions->count];
    unsigned place = 0;

    for (;;) {
        unsigned child = 2 * place + 1;

        if (child + 1 < sessions->count && heap[child + 1].due < heap[child].due)
            child++;
        if (child >= sessions->count || heap[child].due >= last.due)
            break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = last;
    return user;
}
