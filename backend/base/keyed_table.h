/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uthash with the keyed hash.  Include this instead of <uthash.h>; running out of memory leaves the item
 * out of the table (its hh.tbl is NULL) instead of ending the process.
 */
#ifndef FP_KEYED_TABLE_H
#define FP_KEYED_TABLE_H

#include "base/keyed_hash.h"
#include "base/memory.h"

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
