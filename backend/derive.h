/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings that each part of the daemon gets from a configuration, at the start and at a reload.
 */
#ifndef FP_DERIVE_H
#define FP_DERIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cache/cache.h"
#include "changes/mounts.h"
#include "lookup/dispatch.h"
#include "workers/worker_pool.h"

struct flashpached;
struct fp_conf;

/* False after logging that the limit on descriptors is too low for the daemon to be of use. */
bool fp_derive_fits(const struct flashpached *d, const struct fp_conf *c);

/* How many connections there may be: max_connections, or a share of the descriptors. */
size_t fp_derive_connections(const struct flashpached *d, const struct fp_conf *c);

/* The bytes for entries, contents and answers; machine: how much memory there is (memory_limit.h). */
size_t fp_derive_memory(const struct fp_conf *c, size_t machine);

/* Logs if the limit on descriptors leaves few files. */
void fp_derive_limits(const struct flashpached *d, const struct fp_conf *c, struct fp_cache_limits *limits_r);

/* How many slots the lease table has, and the bytes of the rings. */
struct fp_tables_sizes fp_derive_tables(const struct flashpached *d, const struct fp_cache_limits *limits);

/* Up to which size files are kept by their content, 0: none, and how much room larger ones have. */
struct fp_cache_content fp_derive_content(const struct flashpached *d, const struct fp_conf *c);
/* The rules stay the configuration's. */
struct fp_mounts_settings fp_derive_mounts(const struct fp_conf *c);

/* See fp_lease_table_set_unreported(). */
uint64_t fp_derive_unreported_ms(const struct fp_conf *c);

/* The number of workers and the roots are those of the start. */
struct fp_worker_pool_settings fp_derive_workers(struct flashpached *d, const struct fp_conf *c);
/* True for a mounted local file system; ctx: the daemon. False if it is not known. */
bool fp_derive_is_local(void *ctx, uint32_t mount);
struct fp_dispatch_settings fp_derive_dispatch(const struct flashpached *d, const struct fp_conf *c);

#endif
