/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

/* Longer paths are not kept. */
#define KEY_MAX 256
#define NONE    0 /* of entries, which count from 1: a cache begins as zeros, without memory */

struct entry {
    char path[KEY_MAX];
    struct file file;
    unsigned references;
    int chain;        /* the next of the same bucket */
    int older, newer; /* by last use */
};

struct cache {
    pthread_mutex_t lock;
    bool is_locked; /* one thread alone needs no lock */
    unsigned capacity, used;
    uint64_t bytes, max_bytes; /* of contents */
    int free;                  /* entries taken out, by their chain */
    int oldest, newest;
    unsigned buckets; /* a power of two */
    size_t entries_at;
    int bucket[];
};

static struct entry *entry_at(struct cache *c, int index)
{
    return (struct entry *)(void *)((char *)c + c->entries_at) + index - 1;
}

static void lock(struct cache *c)
{
    if (c->is_locked)
        (void)pthread_mutex_lock(&c->lock);
}

static void unlock(struct cache *c)
{
    if (c->is_locked)
        (void)pthread_mutex_unlock(&c->lock);
}

static void make_lock(struct cache *c, enum cache_users users)
{
    pthread_mutexattr_t attributes;

    c->is_locked = users != CACHE_ONE;
    (void)pthread_mutexattr_init(&attributes);
    if (users == CACHE_PROCESSES)
        (void)pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    (void)pthread_mutex_init(&c->lock, &attributes);
    (void)pthread_mutexattr_destroy(&attributes);
}

struct cache *cache_create(unsigned entries, uint64_t bytes, enum cache_users users)
{
    int flags = MAP_ANONYMOUS | (users == CACHE_PROCESSES ? MAP_SHARED : MAP_PRIVATE);
    unsigned buckets = 1;
    size_t entries_at;
    struct cache *c;

    while (buckets < entries)
        buckets *= 2;
    entries_at = sizeof(*c) + buckets * sizeof(c->bucket[0]);
    entries_at = (entries_at + _Alignof(struct entry) - 1) / _Alignof(struct entry) * _Alignof(struct entry);
    c = mmap(NULL, entries_at + entries * sizeof(struct entry), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (c == MAP_FAILED)
        return NULL;
    c->capacity = entries;
    c->max_bytes = bytes;
    c->buckets = buckets;
    c->entries_at = entries_at;
    make_lock(c, users);
    return c;
}

/* FNV-1a. */
static unsigned bucket_of(const struct cache *c, const char *path)
{
    uint32_t hash = 2166136261u;

    for (; *path != '\0'; path++)
        hash = (hash ^ (unsigned char)*path) * 16777619u;
    return hash & (c->buckets - 1);
}

static int find(struct cache *c, const char *path)
{
    int index = c->bucket[bucket_of(c, path)];

    while (index != NONE && strcmp(entry_at(c, index)->path, path) != 0)
        index = entry_at(c, index)->chain;
    return index;
}

static void unlink_used(struct cache *c, int index)
{
    struct entry *e = entry_at(c, index);

    *(e->older != NONE ? &entry_at(c, e->older)->newer : &c->oldest) = e->newer;
    *(e->newer != NONE ? &entry_at(c, e->newer)->older : &c->newest) = e->older;
}

static void link_newest(struct cache *c, int index)
{
    struct entry *e = entry_at(c, index);

    e->older = c->newest;
    e->newer = NONE;
    *(c->newest != NONE ? &entry_at(c, c->newest)->newer : &c->oldest) = index;
    c->newest = index;
}

static void take(struct cache *c, int index, struct file *file_r)
{
    struct entry *e = entry_at(c, index);

    e->references++;
    unlink_used(c, index);
    link_newest(c, index);
    *file_r = e->file;
    file_r->entry = index;
}

static uint64_t bytes_of(const struct file *file)
{
    return file->content != NULL ? file->size : 0;
}

static void remove_entry(struct cache *c, int index)
{
    struct entry *e = entry_at(c, index);
    int *at = &c->bucket[bucket_of(c, e->path)];

    while (*at != index)
        at = &entry_at(c, *at)->chain;
    *at = e->chain;
    unlink_used(c, index);
    c->bytes -= bytes_of(&e->file);
    file_end(&e->file);
    e->chain = c->free;
    c->free = index;
}

/* True if something could leave. */
static bool evict_one(struct cache *c)
{
    int index = c->oldest;

    while (index != NONE && entry_at(c, index)->references > 0)
        index = entry_at(c, index)->newer;
    if (index != NONE)
        remove_entry(c, index);
    return index != NONE;
}

/* An entry for a newcomer, or NONE. */
static int make_room(struct cache *c, uint64_t bytes)
{
    int index;

    if (bytes > c->max_bytes)
        return NONE;
    while (c->bytes + bytes > c->max_bytes)
        if (!evict_one(c))
            return NONE;
    if (c->free == NONE && c->used == c->capacity && !evict_one(c))
        return NONE;
    if (c->free == NONE)
        return (int)++c->used;
    index = c->free;
    c->free = entry_at(c, index)->chain;
    return index;
}

static void insert(struct cache *c, int index, const char *path, const struct file *file)
{
    struct entry *e = entry_at(c, index);
    int *bucket = &c->bucket[bucket_of(c, path)];

    strcpy(e->path, path);
    e->file = *file;
    e->references = 0;
    e->chain = *bucket;
    *bucket = index;
    c->bytes += bytes_of(file);
    link_newest(c, index);
}

bool cache_find(struct cache *c, const char *path, struct file *file_r)
{
    int index;

    lock(c);
    index = find(c, path);
    if (index != NONE)
        take(c, index, file_r);
    unlock(c);
    return index != NONE;
}

void cache_keep(struct cache *c, const char *path, struct file *file)
{
    struct file own = *file;
    int index;

    if (strlen(path) >= KEY_MAX)
        return;
    lock(c);
    index = find(c, path); /* another was faster */
    if (index != NONE) {
        take(c, index, file);
    } else if ((index = make_room(c, bytes_of(file))) != NONE) {
        insert(c, index, path, file);
        take(c, index, file);
        own = FILE_NONE;
    } else {
        own = FILE_NONE;
    }
    unlock(c);
    file_end(&own);
}

void cache_release(struct cache *c, struct file *file)
{
    if (file->entry == NONE) {
        file_end(file);
        return;
    }
    lock(c);
    entry_at(c, file->entry)->references--;
    unlock(c);
    *file = FILE_NONE;
}
