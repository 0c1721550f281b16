/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/sweeper.h"

#include <pthread.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <time.h>

#define STACK    ((size_t)64 * 1024) /* bytes; a thousand children may have one each */
#define SLACK_NS 100000000ul         /* many children's threads may wake together */
#define END_MS   100u                /* prefork ends a child from a signal handler, which may have interrupted a holder */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* held while the thread does anything */
static pthread_cond_t changed;
static unsigned (*look)(void);
static bool begun, over;
static atomic_uint pause_ms; /* between two looks, UINT_MAX: for ever; set under the mutex, read without it */

static struct timespec in_ms(clockid_t clock, unsigned ms)
{
    struct timespec at;

    clock_gettime(clock, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_nsec -= 1000000000;
        at.tv_sec++;
    }
    return at;
}

static void *run(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "fp-sweeper");
    prctl(PR_SET_TIMERSLACK, SLACK_NS);
    pthread_mutex_lock(&mutex);
    while (!over) {
        const unsigned ms = look();

        /* A wake-up meanwhile counted on the shorter pause. */
        if (ms > atomic_exchange(&pause_ms, ms))
            continue;
        if (ms == UINT_MAX) {
            pthread_cond_wait(&changed, &mutex);
        } else {
            const struct timespec until = in_ms(CLOCK_MONOTONIC, ms);

            pthread_cond_timedwait(&changed, &mutex, &until);
        }
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void begin(void)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_t thread;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attr, STACK);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    begun = pthread_create(&thread, &attr, run, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

void fp_sweeper_wake(unsigned ms)
{
    if (look == NULL || atomic_load_explicit(&pause_ms, memory_order_relaxed) <= ms)
        return;
    pthread_mutex_lock(&mutex);
    if (!begun && !over)
        begin();
    if (begun)
        atomic_store(&pause_ms, ms);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static apr_status_t end(void *unused)
{
    const struct timespec until = in_ms(CLOCK_REALTIME, END_MS);

    (void)unused;
    if (pthread_mutex_timedlock(&mutex, &until) != 0)
        return APR_SUCCESS;
    over = true;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
    return APR_SUCCESS;
}

void fp_sweeper_init(apr_pool_t *p, unsigned (*sweep)(void))
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
    pthread_condattr_destroy(&attr);
    look = sweep;
    begun = over = false;
    atomic_store(&pause_ms, UINT_MAX);
    apr_pool_cleanup_register(p, NULL, end, apr_pool_cleanup_null);
}
