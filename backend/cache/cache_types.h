/* SPDX-License-Identifier: Apache-2.0 */
/* The cache's public types that its entries use (cache.h). */
#ifndef FP_CACHE_TYPES_H
#define FP_CACHE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FP_CACHE_LOOKS 4096u /* timers that the refreshes of one beat may look at */
#define FP_CACHE_AHEAD 256u  /* entries that the question about an expired one may visit */

/* Files that are kept by their content, which lies elsewhere, and not by a descriptor. */
struct fp_cache_content {
    uint32_t file_max;   /* bytes of one file; 0: none is kept */
    uint32_t remote_max; /* bytes of one on a remote mount, which was in use when it was refreshed, */
    size_t remote_room;  /* while all contents together take no more bytes than that */
};

struct fp_cache_counts {
    uint64_t evictions;
    uint64_t closed;                      /* files whose descriptor was given up for others */
    uint64_t visits;                      /* of entries, by evictions and purges */
    uint64_t changes;                     /* entries invalidated by a reported change */
    uint64_t expired;                     /* questions whose entry had expired, */
    uint64_t differing;                   /* and entries that a later walk found to differ */
    size_t files, directories, negatives; /* entries now */
    size_t open_dirs, bytes, watches;
    size_t purging;                      /* trees that were purged, and are not all gone */
    size_t content_files, content_bytes; /* of the files */
};

/* Passes each reported change on: of the path, or with tree of it and all below. */
typedef void fp_cache_report_changed(void *ctx, const char *path, size_t len, bool tree);

/* True if a look at an entry on that mount may begin. */
typedef bool fp_cache_room(const void *ctx, uint32_t mount);

#endif
