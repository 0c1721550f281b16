/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keyed hash with one key in all runs, so that the same names collide in each.
 */
#ifndef FP_HASH_KIT_H
#define FP_HASH_KIT_H

#include <sodium.h>

#include "base/keyed_hash.h"
#include "unit.h"

static inline const char *hash_kit_name(void)
{
    return "fixed";
}

static inline uint32_t hash_kit_random(void)
{
    return 1;
}

static inline void hash_kit_bytes(void *const buf, const size_t size)
{
    memset(buf, 0x5a, size);
}

static inline void unit_init_hash(void)
{
    static struct randombytes_implementation fixed = { .implementation_name = hash_kit_name,
                                                       .random = hash_kit_random,
                                                       .buf = hash_kit_bytes };

    ck_assert_int_eq(randombytes_set_implementation(&fixed), 0);
    ck_assert_int_eq(fp_keyed_hash_init(), 0);
}

#endif
