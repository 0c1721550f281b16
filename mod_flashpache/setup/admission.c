/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "setup/admission.h"

#include <apr_shm.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define ENTRIES    65536u /* a power of two */
#define COUNT_BITS 16     /* of an entry; the rest is the tag: bits of the hash that do not choose the entry */

static atomic_uint *entries; /* NULL: there is no memory */
static unsigned char key[crypto_shorthash_KEYBYTES];

void fp_admission_init(apr_pool_t *p)
{
    const apr_size_t size = ENTRIES * sizeof(*entries);
    apr_shm_t *memory;

    entries = NULL;
    if (sodium_init() == -1 || apr_shm_create(&memory, size, NULL, p) != APR_SUCCESS)
        return;
    crypto_shorthash_keygen(key);
    entries = apr_shm_baseaddr_get(memory);
}

unsigned fp_admission_count(const char *path, size_t len)
{
    unsigned char hash[crypto_shorthash_BYTES];
    unsigned count, before, tag;
    atomic_uint *entry;
    uint64_t h;

    if (entries == NULL)
        return 0;
    crypto_shorthash(hash, (const unsigned char *)path, len, key);
    memcpy(&h, hash, sizeof(h));
    entry = &entries[h % ENTRIES];
    tag = (unsigned)(h >> 32) >> COUNT_BITS;
    /* Another child may count at once: one of the two is lost. */
    before = atomic_load_explicit(entry, memory_order_relaxed);
    count = before >> COUNT_BITS == tag ? (before + 1) & FP_ADMISSION_MOST : 1;
    atomic_store_explicit(entry, tag << COUNT_BITS | count, memory_order_relaxed);
    return count;
}
