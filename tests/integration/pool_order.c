/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded beside ThreadSanitizer's runtime: tells it in which order threads use the memory of APR's pools.
 *
 * A thread may get the memory that another one gave back. APR orders that by
 * its own locks, which were not instrumented.  So all that a thread did before
 * it cleared a pool counts as done before any later allocation from a pool.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

void __tsan_acquire(void *at) __attribute__((weak));
void __tsan_release(void *at) __attribute__((weak));
void __tsan_init(void) __attribute__((weak));

/* A program that was not instrumented, such as the shell
 * that starts a server, may call nothing early that does it. */
__attribute__((constructor)) static void begin(void)
{
    if (__tsan_init != NULL)
        __tsan_init();
}

static char order;

static void taken(void)
{
    if (__tsan_acquire != NULL)
        __tsan_acquire(&order);
}

static void given_back(void)
{
    if (__tsan_release != NULL)
        __tsan_release(&order);
}

void *apr_palloc(void *pool, size_t size)
{
    static void *(*real)(void *, size_t);
    void *p;

    if (real == NULL)
        real = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "apr_palloc");
    p = real(pool, size);
    taken();
    return p;
}

static void give_back(void *pool, const char *call)
{
    void (*real)(void *) = (void (*)(void *))dlsym(RTLD_NEXT, call);

    given_back();
    real(pool);
    given_back();
}

void apr_pool_clear(void *pool)
{
    give_back(pool, "apr_pool_clear");
}

void apr_pool_destroy(void *pool)
{
    give_back(pool, "apr_pool_destroy");
}
