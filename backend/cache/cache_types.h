/* SPDX-License-Identifier: Apache-2.0 */
/* What the cache's entries know of its public types (cache.h). */
#ifndef FP_CACHE_TYPES_H
#define FP_CACHE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FP_MAX_LISTS   16       /* of names of access files */
#define FP_CACHE_LOOKS 4096u    /* timers that one search for a refresh may look at */

/* Files whose content is kept in the place of their descriptors. */
struct fp_cache_content {
    uint32_t file_max;   /* bytes of one; 0: of none */
    size_t bytes;        /* of all, in whole pages; what is over it is kept open */
};

struct fp_cache_counts {
    uint64_t hits, misses, inserts, evictions;
    uint64_t changes;    /* entries invalidated because a change was told */
    uint64_t expired;    /* questions whose entry had outlived its time, */
    uint64_t differing;  /* and entries that were another thing when looked at again */
    size_t files, directories, negatives;   /* entries now */
    size_t open_dirs, bytes, watches;
    size_t content_files, content_bytes;   /* of the files */
};

/*
 * Who is told of changes too: of each path that one was told of, or with tree of it
 * and all below.  NULL: nobody.
 */
typedef void fp_cache_report_changed(void *ctx, const char *path, size_t len, bool tree);

#endif
