/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "httpd13/counters.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#define SIZE (FP_COUNTS * sizeof(atomic_ullong))

static atomic_ullong *counts; /* NULL: there is no memory */

void fp_counters13_begin(void)
{
    void *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    counts = memory != MAP_FAILED ? memory : NULL;
}

void fp_counters13_end(void)
{
    if (counts != NULL)
        munmap(counts, SIZE);
    counts = NULL;
}

void fp_counters13_add(enum fp_count what)
{
    if (counts != NULL)
        atomic_fetch_add_explicit(&counts[what], 1, memory_order_relaxed);
}

uint64_t fp_counters13_get(enum fp_count what)
{
    return counts != NULL ? atomic_load_explicit(&counts[what], memory_order_relaxed) : 0;
}
