/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stats.h"

#include <stdatomic.h>

static atomic_ulong counters[SLOWFS_OP_COUNT];

static const char *const names[SLOWFS_OP_COUNT] = {
#define SLOWFS_OP_NAME(name) [SLOWFS_OP_##name] = #name,
    SLOWFS_OPS(SLOWFS_OP_NAME)
#undef SLOWFS_OP_NAME
};

void slowfs_count(enum slowfs_op op)
{
    atomic_fetch_add_explicit(&counters[op], 1, memory_order_relaxed);
}

void slowfs_stats_print(FILE *out)
{
    for (int i = 0; i < SLOWFS_OP_COUNT; i++)
        (void)fprintf(out, "%s%s=%lu", i == 0 ? "" : " ", names[i],
                      atomic_load_explicit(&counters[i], memory_order_relaxed));
}
