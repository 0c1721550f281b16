/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the outcomes of requests in memory that all children of httpd share. Uses no httpd.
 *
 * Counting is one addition, without a lock and without a system call: each processor has its own
 * block for each virtual host. The status page computes a sum; it is no snapshot, since counting
 * goes on meanwhile.
 */
#ifndef FP_COUNTERS_H
#define FP_COUNTERS_H

#include <apr_pools.h>
#include <apr_shm.h>
#include <apr_tables.h>

#include "status/outcomes.h"

/* The files and memory that a child holds. */
struct fp_usage {
    unsigned open_files, descriptors;
    apr_uint64_t mapped; /* bytes */
};

/* Survives restarts; all zero at first. */
struct fp_counters {
    apr_pool_t *pool;
    apr_shm_t *memory;
    apr_array_header_t *hosts; /* of const char *: the hosts' names, each once */
    unsigned n_stripes, n_children;
};

/*
 * In the parent, before it makes children. hosts: names of virtual hosts, of const char *. The
 * counts of a known name go on. The last generation's children count on, too, if all names are the
 * same. Without memory nothing is counted.
 */
apr_status_t fp_counters_init(struct fp_counters *kept, apr_pool_t *process, const apr_array_header_t *hosts,
                              int most_children);

/* Once in a child, and at its end: between them it reports its usage. */
void fp_counters_begin_child(void);
void fp_counters_end_child(void);

/* host: its index among the names. */
void fp_count(unsigned host, enum fp_count what);

/* Reports what this child holds now. */
void fp_counters_set_usage(const struct fp_usage *now);

/* The host's count since httpd was started; 0 where nothing is counted. */
apr_uint64_t fp_counters_sum(unsigned host, enum fp_count what);

/* The sum over all living children; returns their number. */
unsigned fp_counters_usage(struct fp_usage *sum);

#endif
