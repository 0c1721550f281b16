/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#ifdef HAVE_MALLOC_TRIM
#include <malloc.h>
#endif

#include "base/log.h"

static uint64_t failures;

void *fp_memory_share(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return p != MAP_FAILED ? p : NULL;
}

void fp_memory_is_out(void)
{
    failures++;
    fp_log(
        FP_LOG_ERROR, 91,
        "out of memory: requests are served as without Flashpache, and entries are evicted; raise the limit "
        "on memory (MemoryMax=, ulimit -v), or lower memory");
}

uint64_t fp_memory_failures(void)
{
    return failures;
}

static void *noted(void *p)
{
    if (p == NULL)
        fp_memory_is_out();
    return p;
}

void *fp_memory_take(size_t size)
{
    return noted(malloc(size));
}

void *fp_memory_take_zeroed(size_t n, size_t size)
{
    return noted(calloc(n, size));
}

void *fp_memory_resize(void *p, size_t size)
{
    return noted(realloc(p, size));
}

void fp_memory_give_back(void)
{
#ifdef HAVE_MALLOC_TRIM
    malloc_trim(0);
#endif
}
