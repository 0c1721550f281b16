/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash under a secret key: strangers choose URLs and with them paths, but cannot choose where in a
 * table these lie.
 */
#ifndef FP_KEYED_HASH_H
#define FP_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Makes the key; once, before any table is used.  0, or -1: no randomness. */
int fp_keyed_hash_init(void);
unsigned fp_keyed_hash(const void *key, size_t len);
/* All of it: two keys have the same one by no chance that matters. */
uint64_t fp_keyed_hash_whole(const void *key, size_t len);

#endif
