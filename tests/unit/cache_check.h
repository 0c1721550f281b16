/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invariants of the cache (cache/cache_entry.h), for its tests.
 */
#ifndef CACHE_CHECK_H
#define CACHE_CHECK_H

struct fp_cache;

/* NULL, or a text that names the broken invariant.  Looks at every entry. */
const char *cache_check(const struct fp_cache *c);

/* For fp_cache_deps.verify: aborts where an invariant is broken. */
void cache_verify(const struct fp_cache *c);

#endif
