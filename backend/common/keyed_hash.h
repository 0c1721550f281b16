/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uthash with SipHash under a secret key: strangers choose URLs and with them
 * paths, but cannot choose the bucket.
 * Include this instead of <uthash.h>; running out of memory leaves the item
 * out of the table (its hh.tbl is NULL) instead of ending the process.
 */
#ifndef FP_KEYED_HASH_H
#define FP_KEYED_HASH_H

#include <stddef.h>

#include "common/memory.h"

/* Makes the key; once, before any table is used.  0, or -1: no randomness. */
int fp_keyed_hash_init(void);
unsigned fp_keyed_hash(const void *key, size_t len);

#define HASH_NONFATAL_OOM              1
#define uthash_malloc(size)            fp_memory_take(size)
#define HASH_FUNCTION(key, len, hashv) ((hashv) = fp_keyed_hash((key), (len)))
#include <uthash.h>

/* uthash's macros convert signs freely: around functions that use them. */
#define FP_HASH_DIAGNOSTICS_OFF \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wsign-conversion\"") \
        _Pragma("GCC diagnostic ignored \"-Wconversion\"")
#define FP_HASH_DIAGNOSTICS_ON _Pragma("GCC diagnostic pop")

#endif
