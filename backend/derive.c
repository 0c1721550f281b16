/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "derive.h"

#include "base/log.h"
#include "conf/conf.h"
#include "flashpached.h"
#include "shared/contents.h"
#include "shared/lease_table.h"
#include "wire/answer.h"

/* Descriptors that are neither files nor connections: log, loop, lock, standard streams, answers
 * on their way. */
#define OWN_DESCRIPTORS 64

#define LEAST_FILES 16 /* even if too few are left for them */

/* With fewer, and one for each worker, hardly any connection could be accepted. 23 are open at the start, and
 * more with the queue of mounts, a fleet and a log's file. Each connection and each answer needs one. */
#define LEAST_DESCRIPTORS 40

/* Sites have more files than this.  With descriptors for so few, most files that are too large to be kept by
 * their content are opened again and again. */
#define FEW_FILES 4096

/* One in so many descriptors is an open directory's, and at most one in so many a connection's. */
#define OPEN_DIRS_SHARE   4
#define CONNECTIONS_SHARE 4

/* The memory for everything that the daemon knows: a share of what there is, for in a small container the files
 * themselves lack the memory that the cache takes. Of 13 parts entries with their watches take 8, contents 4
 * and answers 1. Contents replace their files' pages, which nobody uses while there is a content. So a content
 * that has to be read again comes from the disk. */
#define MEMORY_SHARE   8
#define MEMORY_MOST    ((size_t)832 << 20)
#define PARTS          13
#define ENTRIES_PARTS  8
#define CONTENTS_PARTS 4

/* There may be one directory, link or content, and one absent name, for so many bytes of their memory. An entry
 * takes about 600, and 1.5 KB more if it is watched. */
#define ENTRY_BYTES 1024

#define LOOKUPS_MOST 4096 /* that wait for a worker, and that are under way */

/* There are larger contents, of files on remote mounts, while all take at most one in so many bytes of their
 * room.  Beyond that small ones would be read again and again. */
#define REMOTE_SHARE 2

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t fp_derive_memory(const struct fp_conf *c, size_t machine)
{
    return c->memory != FP_CONF_BY_MEMORY ? c->memory : least(machine / MEMORY_SHARE, MEMORY_MOST);
}

static size_t derive_contents(const struct flashpached *d)
{
    return d->memory / PARTS * CONTENTS_PARTS;
}

bool fp_derive_fits(const struct flashpached *d, const struct fp_conf *c)
{
    const size_t needed = c->workers + LEAST_DESCRIPTORS;

    if (d->descriptors >= needed)
        return true;
    fp_log(FP_LOG_ERROR, 7,
           "the limit of %zu descriptors is too low for %u workers: raise it (LimitNOFILE=, ulimit -n) to "
           "at least %zu, better to 16384 or more, or lower workers",
           d->descriptors, c->workers, needed);
    return false;
}

size_t fp_derive_connections(const struct flashpached *d, const struct fp_conf *c)
{
    return least(c->max_connections, d->descriptors / CONNECTIONS_SHARE);
}

void fp_derive_limits(const struct flashpached *d, const struct fp_conf *c, struct fp_cache_limits *l)
{
    size_t reserve = fp_derive_connections(d, c) + 2 * c->workers + OWN_DESCRIPTORS;
    size_t most = d->descriptors > reserve + LEAST_FILES ? d->descriptors - reserve : LEAST_FILES;

    if (most < FEW_FILES)
        fp_log(
            FP_LOG_WARNING, 7,
            "the limit of %zu descriptors leaves %zu for open files: others are closed for them and opened again "
            "for requests (files_closed in flashpachectl stats); raise it (LimitNOFILE=, ulimit -n), to 16384 or more",
            d->descriptors, most);
    /* Files that requests ask for come first. */
    l->open_dirs = most / OPEN_DIRS_SHARE + 1;
    l->files = most - most / OPEN_DIRS_SHARE;
    l->bytes = d->memory / PARTS * ENTRIES_PARTS;
    l->directories = l->negatives = l->bytes / ENTRY_BYTES;
    if (d->memory < MEMORY_MOST)
        fp_log(FP_LOG_INFO, 7,
               "%zu KiB of memory: %zu for entries, %zu for contents and %zu for answers; set memory for another sum",
               d->memory / 1024, l->bytes / 1024, derive_contents(d) / 1024, d->memory / PARTS / 1024);
    l->watched_ttl_ms = c->watched_ttl_ms;
}

struct fp_mounts_settings fp_derive_mounts(const struct fp_conf *c)
{
    return (struct fp_mounts_settings){ c->mounts, c->n_mounts,          c->watch,
                                        c->ttl_ms, c->stale_if_error_ms, c->negative_ttl_ms };
}

uint64_t fp_derive_unreported_ms(const struct fp_conf *c)
{
    long ttl_ms = c->ttl_ms, stale_ms = c->stale_if_error_ms;

    for (size_t i = 0; i < c->n_mounts; i++) {
        if (c->mounts[i].ttl_ms > ttl_ms)
            ttl_ms = c->mounts[i].ttl_ms;
        if (c->mounts[i].stale_if_error_ms > stale_ms)
            stale_ms = c->mounts[i].stale_if_error_ms;
    }
    return (uint64_t)ttl_ms + (uint64_t)stale_ms + c->lookup_timeout_ms;
}

bool fp_derive_is_local(void *ctx, uint32_t mount)
{
    const struct flashpached *d = ctx;

    return fp_mounts_known(d->mounts, mount)->traits.local;
}

struct fp_worker_pool_settings fp_derive_workers(struct flashpached *d, const struct fp_conf *c)
{
    const unsigned n = d->conf->workers, most = n > 1 ? n * 3 / 4 : 1;
    const unsigned at_one = c->mount_workers != 0 ? c->mount_workers : most;

    return (struct fp_worker_pool_settings){
        .workers = n,
        .timeout_ms = c->lookup_timeout_ms,
        /* A mount that answers in its own time must be found back in service. */
        .probe_timeout_ms =
            c->lookup_timeout_ms > c->mount_timeout_ms ? c->lookup_timeout_ms : c->mount_timeout_ms,
        /* Half of the workers that no mount may have alone are left for local file systems. */
        .limits = { at_one, n > at_one ? n - (n - at_one) / 2 : n, LOOKUPS_MOST, fp_derive_is_local, d },
        .monitor = &d->monitor,
        .whereabouts = d->whereabouts
    };
}

struct fp_dispatch_settings fp_derive_dispatch(const struct flashpached *d, const struct fp_conf *c)
{
    return (struct fp_dispatch_settings){ .max_inflight = LOOKUPS_MOST,
                                          .mount_timeout_ms = c->mount_timeout_ms,
                                          .roots = d->conf->roots };
}

/* A slot for each entry, and another one for each directory that ends a path. Entries beyond the greatest table
 * are asked about by a message each time. */
static uint32_t derive_leases(const struct fp_cache_limits *l)
{
    size_t n = l->files + l->negatives + 2 * l->directories;

    return n < FP_MAX_SLOTS ? (uint32_t)n : FP_MAX_SLOTS;
}

struct fp_tables_sizes fp_derive_tables(const struct flashpached *d, const struct fp_cache_limits *l)
{
    return (struct fp_tables_sizes){ derive_leases(l), d->memory / PARTS, derive_contents(d) };
}

struct fp_cache_content fp_derive_content(const struct flashpached *d, const struct fp_conf *c)
{
    const size_t bytes = derive_contents(d), most = fp_contents_most(bytes);
    const size_t file_max = least(c->content_file_max, most);

    return (struct fp_cache_content){ .file_max = (uint32_t)file_max,
                                      .remote_max = file_max > 0 ? (uint32_t)least(FP_CONTENT_MOST, most) : 0,
                                      .remote_room = bytes / REMOTE_SHARE };
}
