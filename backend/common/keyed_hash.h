/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SipHash under a secret key: strangers choose URLs and with them paths, but cannot choose where in a
 * table these lie.
 */
#ifndef FP_KEYED_HASH_H
#define FP_KEYED_HASH_H

#include <stddef.h>

/* Makes the key; once, before any table is used.  0, or -1: no randomness. */
int fp_keyed_hash_init(void);
unsigned fp_keyed_hash(const void *key, size_t len);

#endif
