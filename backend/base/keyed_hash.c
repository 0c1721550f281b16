/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/keyed_hash.h"

#include <sodium.h>
#include <string.h>

static unsigned char secret[crypto_shorthash_KEYBYTES];

int fp_keyed_hash_init(void)
{
    if (sodium_init() == -1)
        return -1;
    crypto_shorthash_keygen(secret);
    return 0;
}

uint64_t fp_keyed_hash_whole(const void *key, size_t len)
{
    unsigned char h[crypto_shorthash_BYTES];
    uint64_t v;

    _Static_assert(sizeof(h) == sizeof(v), "another hash");
    crypto_shorthash(h, key, len, secret);
    memcpy(&v, h, sizeof(v));
    return v;
}

unsigned fp_keyed_hash(const void *key, size_t len)
{
    return (unsigned)fp_keyed_hash_whole(key, len);
}
