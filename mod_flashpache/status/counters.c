/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "status/counters.h"

#include <apr_strings.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define LINE         64u /* bytes of a cache line */
#define MOST_STRIPES 64u /* a power of two, as every number of stripes is */

#define ROW (((FP_COUNTS * sizeof(apr_uint64_t) + LINE - 1) / LINE) * LINE / sizeof(apr_uint64_t))

/* The counts of a virtual host from the processors of one stripe. */
struct block {
    alignas(LINE) atomic_ullong counts[ROW];
};

struct child {
    alignas(LINE) atomic_int pid; /* 0: the row is free */
    atomic_uint open_files, descriptors;
    atomic_ullong mapped;
};

/* This process's and, in the parent, also its children's. */
static struct block *blocks; /* for each stripe one for each host; NULL: none */
static struct child *children, *mine;
static unsigned n_hosts, n_stripes, n_children;

/* ---- the memory ---- */

static unsigned stripes(void)
{
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    unsigned n = 1;

    while (n < MOST_STRIPES && (long)n < processors)
        n *= 2;
    return n;
}

static struct block *blocks_in(apr_shm_t *memory)
{
    uintptr_t base = (uintptr_t)apr_shm_baseaddr_get(memory);

    return (struct block *)((base + LINE - 1) / LINE * LINE);
}

static void use(const struct fp_counters *kept)
{
    n_hosts = (unsigned)kept->hosts->nelts;
    n_stripes = kept->n_stripes;
    n_children = kept->n_children;
    blocks = blocks_in(kept->memory);
    children = (struct child *)(blocks + n_stripes * n_hosts);
}

static bool same_hosts(const apr_array_header_t *a, const apr_array_header_t *b)
{
    if (a->nelts != b->nelts)
        return false;
    for (int i = 0; i < a->nelts; i++) {
        if (strcmp(APR_ARRAY_IDX(a, i, const char *), APR_ARRAY_IDX(b, i, const char *)) != 0)
            return false;
    }
    return true;
}

static apr_status_t create(struct fp_counters *made, apr_pool_t *process, const apr_array_header_t *hosts)
{
    apr_size_t size = LINE + made->n_stripes * (apr_size_t)hosts->nelts * sizeof(struct block)
                      + made->n_children * sizeof(struct child);
    apr_status_t rv = apr_pool_create(&made->pool, process);

    if (rv != APR_SUCCESS)
        return rv;
    rv = apr_shm_create(&made->memory, size, NULL, made->pool);
    if (rv != APR_SUCCESS) {
        apr_pool_destroy(made->pool);
        return rv;
    }
    memset(apr_shm_baseaddr_get(made->memory), 0, size);
    made->hosts = apr_array_make(made->pool, hosts->nelts, sizeof(const char *));
    for (int i = 0; i < hosts->nelts; i++)
        APR_ARRAY_PUSH(made->hosts, const char *) =
            apr_pstrdup(made->pool, APR_ARRAY_IDX(hosts, i, const char *));
    return APR_SUCCESS;
}

/* Adds the old counts of the hosts that still exist. */
static void carry(const struct fp_counters *from, const struct fp_counters *to)
{
    struct block *target = blocks_in(to->memory);

    use(from);
    for (int i = 0; i < from->hosts->nelts; i++) {
        for (int j = 0; j < to->hosts->nelts; j++) {
            if (strcmp(APR_ARRAY_IDX(from->hosts, i, const char *), APR_ARRAY_IDX(to->hosts, j, const char *))
                != 0)
                continue;
            for (unsigned what = 0; what < FP_COUNTS; what++)
                atomic_init(&target[j].counts[what], fp_counters_sum((unsigned)i, (enum fp_count)what));
        }
    }
}

apr_status_t fp_counters_init(struct fp_counters *kept, apr_pool_t *process, const apr_array_header_t *hosts,
                              int most_children)
{
    struct fp_counters made = { .n_stripes = stripes(),
                                .n_children = most_children > 0 ? (unsigned)most_children : 1 };
    apr_status_t rv;

    if (kept->pool != NULL && same_hosts(kept->hosts, hosts) && kept->n_children == made.n_children) {
        use(kept);
        return APR_SUCCESS;
    }
    rv = create(&made, process, hosts);
    if (rv != APR_SUCCESS)
        return rv;
    if (kept->pool != NULL) {
        carry(kept, &made);
        apr_pool_destroy(kept->pool);
    }
    *kept = made;
    use(kept);
    return APR_SUCCESS;
}

/* ---- counting ---- */

void fp_count(unsigned host, enum fp_count what)
{
    unsigned stripe;

    if (blocks == NULL || host >= n_hosts)
        return;
    /* Glibc knows the processor without asking the system. */
    stripe = (unsigned)sched_getcpu() & (n_stripes - 1);
    atomic_fetch_add_explicit(&blocks[stripe * n_hosts + host].counts[what], 1, memory_order_relaxed);
}

apr_uint64_t fp_counters_sum(unsigned host, enum fp_count what)
{
    apr_uint64_t sum = 0;

    if (blocks == NULL || host >= n_hosts)
        return 0;
    for (unsigned i = 0; i < n_stripes; i++)
        sum += atomic_load_explicit(&blocks[i * n_hosts + host].counts[what], memory_order_relaxed);
    return sum;
}

/* ---- the usage of children ---- */

/* A crashed child did not end its row. All children run as one user, so kill() may ask. */
static bool is_alive(int pid)
{
    return pid != 0 && kill(pid, 0) == 0;
}

void fp_counters_begin_child(void)
{
    for (unsigned i = 0; blocks != NULL && i < n_children; i++) {
        int owner = atomic_load(&children[i].pid);

        if (is_alive(owner) || !atomic_compare_exchange_strong(&children[i].pid, &owner, getpid()))
            continue;
        mine = &children[i];
        fp_counters_set_usage(&(struct fp_usage){ 0, 0, 0 });
        return;
    }
}

void fp_counters_end_child(void)
{
    if (mine != NULL)
        atomic_store(&mine->pid, 0);
    mine = NULL;
}

static void report(atomic_uint *number, unsigned now)
{
    /* Others read this cache line, so only a new number is written. */
    if (atomic_load_explicit(number, memory_order_relaxed) != now)
        atomic_store_explicit(number, now, memory_order_relaxed);
}

void fp_counters_set_usage(const struct fp_usage *now)
{
    if (mine == NULL)
        return;
    report(&mine->open_files, now->open_files);
    report(&mine->descriptors, now->descriptors);
    if (atomic_load_explicit(&mine->mapped, memory_order_relaxed) != now->mapped)
        atomic_store_explicit(&mine->mapped, now->mapped, memory_order_relaxed);
}

unsigned fp_counters_usage(struct fp_usage *sum)
{
    unsigned n = 0;

    memset(sum, 0, sizeof(*sum));
    for (unsigned i = 0; blocks != NULL && i < n_children; i++) {
        if (!is_alive(atomic_load(&children[i].pid)))
            continue;
        n++;
        sum->open_files += atomic_load_explicit(&children[i].open_files, memory_order_relaxed);
        sum->descriptors += atomic_load_explicit(&children[i].descriptors, memory_order_relaxed);
        sum->mapped += atomic_load_explicit(&children[i].mapped, memory_order_relaxed);
    }
    return n;
}
