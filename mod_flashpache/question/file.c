/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/local_types.h"
#include "wire/packet.h"

#define KEEP_LEAST    ((size_t)256 * 1024) /* bytes; such a file stays mapped from the first response */
#define MAPPINGS_MOST 32768u                   /* half of what vm.max_map_count usually allows */

enum mappable { NOT_LOOKED, MAPPABLE, NOT_MAPPABLE };

struct fp_file {
    atomic_uint references;
    int fd;
    bool local;
    atomic_int mappable;                  /* enum mappable */
    atomic_bool served;                   /* a response has sent it before */
    _Atomic(struct fp_mapping *) mapping; /* of all of it; NULL: not mapped yet */
};

static atomic_uint descriptors;
static atomic_uint mappings;
static atomic_ullong mapped; /* bytes of all mappings */

int fp_file_descriptor(const struct fp_file *file)
{
    return file->fd;
}

unsigned fp_file_descriptors(void)
{
    return atomic_load_explicit(&descriptors, memory_order_relaxed);
}

uint64_t fp_file_mapped(void)
{
    return atomic_load_explicit(&mapped, memory_order_relaxed);
}

bool fp_file_is_local(const struct fp_file *file)
{
    return file->local;
}

struct fp_file *fp_file_create(int fd, bool local)
{
    struct fp_file *file = calloc(1, sizeof(*file));

    if (file == NULL) {
        fp_close(&fd);
        return NULL;
    }
    atomic_init(&file->references, 1);
    file->fd = fd;
    file->local = local;
    atomic_fetch_add_explicit(&descriptors, 1, memory_order_relaxed);
    return file;
}

void fp_file_trust(struct fp_file *file)
{
    atomic_store_explicit(&file->mappable, MAPPABLE, memory_order_relaxed);
}

static struct fp_mapping *map_all(int fd, size_t size, int flags)
{
    struct fp_mapping *m = malloc(sizeof(*m));

    if (m == NULL)
        return NULL;
    m->size = size;
    m->base = MAP_FAILED;
    if (atomic_fetch_add_explicit(&mappings, 1, memory_order_relaxed) < MAPPINGS_MOST)
        m->base = mmap(NULL, size, PROT_READ, flags, fd, 0);
    if (m->base == MAP_FAILED) {
        atomic_fetch_sub_explicit(&mappings, 1, memory_order_relaxed);
        free(m);
        return NULL;
    }
    atomic_fetch_add_explicit(&mapped, size, memory_order_relaxed);
    return m;
}

static void unmap(struct fp_mapping *m)
{
    if (m == NULL)
        return;
    munmap(m->base, m->size);
    atomic_fetch_sub_explicit(&mappings, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&mapped, m->size, memory_order_relaxed);
    free(m);
}

/* Acquire pairs with the store of the thread that filled the mapping in. */
struct fp_mapping *fp_file_mapping(const struct fp_file *file)
{
    return atomic_load_explicit(&file->mapping, memory_order_acquire);
}

void fp_file_retain(struct fp_file *file)
{
    /* Relaxed: the caller has a reference already, so nothing needs ordering. */
    atomic_fetch_add_explicit(&file->references, 1, memory_order_relaxed);
}

void fp_file_release(struct fp_file **fp)
{
    struct fp_file *file = *fp;

    *fp = NULL;
    /* Acquire and release: every other thread's use must be over before the last one closes. */
    if (file == NULL
        || atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel) != 1)
        return;
    unmap(fp_file_mapping(file));
    fp_close(&file->fd);
    atomic_fetch_sub_explicit(&descriptors, 1, memory_order_relaxed);
    free(file);
}

/* ---- bytes ---- */

ssize_t fp_file_read(const struct fp_file *file, char *buf, size_t len, off_t offset)
{
    ssize_t n;

    do {
        n = pread(file->fd, buf, len, offset);
    } while (n == -1 && errno == EINTR);
    return n;
}

const struct fp_mapping *fp_file_keep_mapped(struct fp_file *file, size_t length)
{
    struct fp_mapping *there = fp_file_mapping(file), *mine;
    struct stat st;

    if (!file->local
        || (length < KEEP_LEAST && !atomic_exchange_explicit(&file->served, true, memory_order_relaxed)))
        return NULL;
    if (there != NULL)
        return there;
    if (fstat(file->fd, &st) == -1 || st.st_size <= 0 || (size_t)st.st_size > FP_FILE_MAP_MOST)
        return NULL;
    mine = map_all(file->fd, (size_t)st.st_size, MAP_SHARED);
    if (mine == NULL)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(&file->mapping, &there, mine, memory_order_acq_rel,
                                                memory_order_acquire))
        return mine;
    /* Another thread was faster, and one mapping is enough. */
    unmap(mine);
    return there;
}

void *fp_file_map(const struct fp_file *file, off_t offset, size_t length)
{
    struct stat st;
    void *base;

    if (!file->local || fstat(file->fd, &st) == -1 || st.st_size < offset + (off_t)length)
        return NULL;
    base = mmap(NULL, length, PROT_READ, MAP_SHARED, file->fd, offset);
    return base != MAP_FAILED ? base : NULL;
}

static bool is_named(const struct stat *st, const char *path)
{
    struct stat named;

    return stat(path, &named) == 0 && named.st_dev == st->st_dev && named.st_ino == st->st_ino;
}

static bool is_mappable(int fd, const char *path, uint64_t dev, uint64_t ino)
{
    struct stat st;
    struct statfs fs;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_dev == dev && st.st_ino == ino
           && fstatfs(fd, &fs) == 0 && fp_type_may_be_mapped((uint32_t)fs.f_type)
           && ((st.st_uid == 0 && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0) || is_named(&st, path));
}

bool fp_file_may_be_mapped(struct fp_file *file, const char *path, uint64_t dev, uint64_t ino)
{
    int known = atomic_load_explicit(&file->mappable, memory_order_relaxed);

    if (!file->local)
        return false;
    /* Threads that look at once find the same, or see the file before and after a change. Either is
     * true. */
    if (known == NOT_LOOKED) {
        known = is_mappable(file->fd, path, dev, ino) ? MAPPABLE : NOT_MAPPABLE;
        atomic_store_explicit(&file->mappable, known, memory_order_relaxed);
    }
    return known == MAPPABLE;
}

int64_t fp_file_time(int64_t sec, uint32_t nsec)
{
    return (int64_t)((uint64_t)sec * 1000000 + nsec / 1000);
}

bool fp_file_look(const struct fp_file *file, off_t *size_r, int64_t *mtime_r)
{
    struct stat st;

    if (fstat(file->fd, &st) == -1)
        return false;
    *size_r = st.st_size;
    *mtime_r = fp_file_time(st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec);
    return true;
}
