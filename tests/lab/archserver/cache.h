/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files by path, the least recently used leave first.  All of a cache is one
 * mapping without a pointer into itself, so processes can share it.
 *
 * It does not look at a file again: a change of what is served shows only
 * after the entry left.  One that is being sent never leaves; where all are, the
 * newcomer is not kept.
 */
#ifndef ARCHSERVER_CACHE_H
#define ARCHSERVER_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "file.h"

struct cache;

/* Its users: one thread, threads of one process, or processes that share their descriptors. */
enum cache_users { CACHE_ONE, CACHE_THREADS, CACHE_PROCESSES };

/* NULL, with errno, if there is no memory for it. */
struct cache *cache_create(unsigned entries, uint64_t bytes, enum cache_users users);

/* True if the path is known: *file_r is a counted copy, for cache_release. */
bool cache_find(struct cache *cache, const char *path, struct file *file_r);

/* Gives a file to the cache; the caller's becomes a counted copy, or stays its own if it cannot be kept. */
void cache_keep(struct cache *cache, const char *path, struct file *file);

/* Ends the use of a file, whoever owns it. cache may be NULL where the file is its holder's own. */
void cache_release(struct cache *cache, struct file *file);

#endif
