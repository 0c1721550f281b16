/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "file.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/packet.h"

#define READ_SIZE  ((apr_size_t)FP_FILE_SMALL)   /* most bytes of one read */
#define MAP_LEAST  ((apr_size_t)16 * 1024)       /* below this copying is cheaper */
#define KEEP_LEAST ((apr_size_t)256 * 1024)      /* stays mapped from its first response */
#define MAP_SIZE   ((apr_size_t)4 * 1024 * 1024) /* most bytes of one mapping */
#define WHOLES_MOST 32768u                       /* half of what vm.max_map_count usually allows */

struct fp_file {
    atomic_uint references;
    int fd;                         /* -1: it is mapped, and never read */
    bool local;
    bool sealed;                    /* fd is, or was, of a content, not of a file */
    atomic_bool served;             /* in a response before */
    _Atomic(struct whole *) whole;  /* NULL: nobody wanted it mapped yet */
};

/* All of a file or content, mapped once for all its responses. */
struct whole {
    void *base;
    size_t size;
};

/* The data of a bucket and its splits and copies. */
struct shared {
    apr_bucket_refcount refcount;   /* must be the first */
    struct fp_file *file;
    bool map;
};

/* A mapping, shared by the splits and copies of its bucket. */
struct mapping {
    apr_bucket_refcount refcount;   /* must be the first */
    void *base;
    size_t size;
    size_t skip;                    /* where the bucket's bytes begin in it */
};

static atomic_uint descriptors;
static atomic_uint wholes;
static atomic_ullong mapped;        /* bytes of all wholes */

int fp_file_descriptor(const struct fp_file *file)
{
    return file->sealed ? -1 : file->fd;
}

unsigned fp_file_descriptors(void)
{
    return atomic_load_explicit(&descriptors, memory_order_relaxed);
}

apr_uint64_t fp_file_mapped(void)
{
    return atomic_load_explicit(&mapped, memory_order_relaxed);
}

static void close_descriptor(struct fp_file *file)
{
    if (file->fd == -1)
        return;
    fp_close(&file->fd);
    atomic_fetch_sub_explicit(&descriptors, 1, memory_order_relaxed);
}

struct fp_file *fp_file_create(int fd, bool local)
{
    struct fp_file *file = malloc(sizeof(*file));

    if (file == NULL) {
        fp_close(&fd);
        return NULL;
    }
    atomic_init(&file->references, 1);
    file->fd = fd;
    atomic_fetch_add_explicit(&descriptors, 1, memory_order_relaxed);
    file->local = local;
    file->sealed = false;
    atomic_init(&file->served, false);
    atomic_init(&file->whole, NULL);
    return file;
}

static struct whole *map_whole(int fd, size_t size, int flags)
{
    struct whole *whole = malloc(sizeof(*whole));

    if (whole == NULL)
        return NULL;
    whole->size = size;
    whole->base = MAP_FAILED;
    if (atomic_fetch_add_explicit(&wholes, 1, memory_order_relaxed) < WHOLES_MOST)
        whole->base = mmap(NULL, size, PROT_READ, flags, fd, 0);
    if (whole->base == MAP_FAILED) {
        atomic_fetch_sub_explicit(&wholes, 1, memory_order_relaxed);
        free(whole);
        return NULL;
    }
    atomic_fetch_add_explicit(&mapped, size, memory_order_relaxed);
    return whole;
}

static void unmap(struct whole *whole)
{
    if (whole == NULL)
        return;
    munmap(whole->base, whole->size);
    atomic_fetch_sub_explicit(&wholes, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&mapped, whole->size, memory_order_relaxed);
    free(whole);
}

static struct whole *whole_of(const struct fp_file *file)
{
    /* Acquire: another thread may have filled it in. */
    return atomic_load_explicit(&file->whole, memory_order_acquire);
}

struct fp_file *fp_file_create_content(int fd, apr_size_t size, bool again)
{
    struct fp_file *file = fp_file_create(fd, true);

    if (file == NULL)
        return NULL;
    file->sealed = true;
    /* Private: Linux before 6.7 maps what is sealed in no other way. */
    if (again)
        atomic_init(&file->whole, map_whole(fd, size, MAP_PRIVATE | MAP_POPULATE));
    if (whole_of(file) != NULL)
        close_descriptor(file);
    return file;
}

void fp_file_retain(struct fp_file *file)
{
    /* Whoever retains has a reference already: no ordering is needed. */
    atomic_fetch_add_explicit(&file->references, 1, memory_order_relaxed);
}

void fp_file_release(struct fp_file **fp)
{
    struct fp_file *file = *fp;

    *fp = NULL;
    /* Every other thread's use must be over before the last one closes. */
    if (file == NULL
        || atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel) != 1)
        return;
    unmap(whole_of(file));
    close_descriptor(file);
    free(file);
}

static void bucket_destroy(void *data)
{
    struct shared *s = data;

    if (apr_bucket_shared_destroy(s)) {
        fp_file_release(&s->file);
        apr_bucket_free(s);
    }
}

static apr_status_t read_at(int fd, char *buf, apr_size_t *len, apr_off_t offset)
{
    ssize_t n;

    do {
        n = pread(fd, buf, *len, offset);
    } while (n == -1 && errno == EINTR);
    *len = n > 0 ? (apr_size_t)n : 0;
    if (n == -1)
        return errno;
    return n == 0 ? APR_EOF : APR_SUCCESS;
}

extern const apr_bucket_type_t fp_bucket_type_file;

/* The rest of the bucket e, behind its first len bytes, as a bucket after it. */
static void insert_rest(apr_bucket *e, apr_size_t len)
{
    apr_bucket *rest = apr_bucket_alloc(sizeof(*rest), e->list);

    *rest = *e;
    rest->start += (apr_off_t)len;
    rest->length -= len;
    APR_BUCKET_INSERT_AFTER(e, rest);
}

/* ---- a mapped piece ---- */

static void mapping_destroy(void *data)
{
    struct mapping *m = data;

    if (apr_bucket_shared_destroy(m)) {
        munmap(m->base, m->size);
        apr_bucket_free(m);
    }
}

static apr_status_t mapping_read(apr_bucket *e, const char **str, apr_size_t *len,
                                 apr_read_type_e block)
{
    const struct mapping *m = e->data;

    (void)block;
    *str = (const char *)m->base + m->skip + e->start;
    *len = e->length;
    return APR_SUCCESS;
}

static const apr_bucket_type_t bucket_type_mapping = {
    "FLASHPACHE_MAP", 5, APR_BUCKET_DATA,
    mapping_destroy,
    mapping_read,
    apr_bucket_setaside_noop,
    apr_bucket_shared_split,
    apr_bucket_shared_copy
};

/* ---- what stays mapped ---- */

static struct whole *map_file(int fd)
{
    struct stat st;

    if (fstat(fd, &st) == -1 || st.st_size <= 0 || (apr_size_t)st.st_size > MAP_SIZE)
        return NULL;
    return map_whole(fd, (size_t)st.st_size, MAP_SHARED);
}

/* Also says that it is served now. */
static bool was_served(struct fp_file *file)
{
    return atomic_exchange_explicit(&file->served, true, memory_order_relaxed);
}

/* The mapping to send length bytes from; NULL: read them, or map them alone. */
static const struct whole *keep(struct fp_file *file, apr_size_t length, bool map)
{
    struct whole *there = whole_of(file), *mine;

    if (file->sealed)
        return there;
    if (!map || !file->local || (length < KEEP_LEAST && !was_served(file)))
        return NULL;
    if (there != NULL)
        return there;
    mine = map_file(file->fd);
    if (mine == NULL)
        return NULL;
    if (atomic_compare_exchange_strong_explicit(&file->whole, &there, mine,
                                                memory_order_acq_rel, memory_order_acquire))
        return mine;
    /* Another thread was faster: one mapping is enough. */
    unmap(mine);
    return there;
}

static apr_status_t whole_read(apr_bucket *e, const char **str, apr_size_t *len,
                               apr_read_type_e block)
{
    const struct shared *s = e->data;

    (void)block;
    *str = (const char *)whole_of(s->file)->base + e->start;
    *len = e->length;
    return APR_SUCCESS;
}

static const apr_bucket_type_t bucket_type_whole = {
    "FLASHPACHE_WHOLE", 5, APR_BUCKET_DATA,
    bucket_destroy,
    whole_read,
    apr_bucket_setaside_noop,
    apr_bucket_shared_split,
    apr_bucket_shared_copy
};

static bool has_bytes(int fd, apr_off_t end)
{
    struct stat st;

    return fstat(fd, &st) == 0 && st.st_size >= end;
}

/*
 * Makes the bucket a mapping of its first bytes and puts the rest behind it.
 * False, and nothing is changed, where reading is the better way.
 */
static bool become_mapping(apr_bucket *e)
{
    struct shared *s = e->data;
    apr_size_t n = e->length < MAP_SIZE ? e->length : MAP_SIZE;
    apr_off_t from = e->start & ~(apr_off_t)(sysconf(_SC_PAGESIZE) - 1);
    struct mapping *m;

    if (!s->map || !s->file->local || n < MAP_LEAST
        || !has_bytes(s->file->fd, e->start + (apr_off_t)n))
        return false;
    m = apr_bucket_alloc(sizeof(*m), e->list);
    m->skip = (size_t)(e->start - from);
    m->size = m->skip + n;
    m->base = mmap(NULL, m->size, PROT_READ, MAP_SHARED, s->file->fd, from);
    if (m->base == MAP_FAILED) {
        apr_bucket_free(m);
        return false;
    }
    if (n < e->length)
        insert_rest(e, n);
    else
        bucket_destroy(s);
    e->type = &bucket_type_mapping;
    apr_bucket_shared_make(e, m, 0, n);
    return true;
}

/* ---- reading ---- */

static apr_status_t bucket_read(apr_bucket *e, const char **str, apr_size_t *len,
                                apr_read_type_e block)
{
    struct shared *s = e->data;
    apr_size_t n = e->length < READ_SIZE ? e->length : READ_SIZE;
    apr_status_t rv;
    char *buf;

    if (become_mapping(e))
        return mapping_read(e, str, len, block);
    *str = NULL;
    *len = 0;
    buf = apr_bucket_alloc(n, e->list);
    rv = n > 0 ? read_at(s->file->fd, buf, &n, e->start) : APR_SUCCESS;
    if (rv != APR_SUCCESS) {
        apr_bucket_free(buf);
        return rv;
    }
    /* This bucket becomes what was read; the file goes on in the next. */
    if (n < e->length)
        insert_rest(e, n);
    else
        bucket_destroy(s);
    apr_bucket_heap_make(e, buf, n, apr_bucket_free);
    *str = buf;
    *len = n;
    return APR_SUCCESS;
}

const apr_bucket_type_t fp_bucket_type_file = {
    "FLASHPACHE", 5, APR_BUCKET_DATA,
    bucket_destroy,
    bucket_read,
    apr_bucket_setaside_noop,
    apr_bucket_shared_split,
    apr_bucket_shared_copy
};

apr_bucket *fp_file_bucket_create(struct fp_file *file, apr_off_t offset,
                                  apr_size_t length, bool map,
                                  apr_bucket_alloc_t *list)
{
    apr_bucket *e = apr_bucket_alloc(sizeof(*e), list);
    struct shared *s = apr_bucket_alloc(sizeof(*s), list);
    const struct whole *whole = keep(file, length, map);

    APR_BUCKET_INIT(e);
    e->free = apr_bucket_free;
    e->list = list;
    e->type = whole != NULL && offset + (apr_off_t)length <= (apr_off_t)whole->size
        ? &bucket_type_whole : &fp_bucket_type_file;
    s->file = file;
    s->map = map;
    fp_file_retain(file);
    return apr_bucket_shared_make(e, s, offset, length);
}

bool fp_file_bucket_reads(const apr_bucket *e)
{
    return e->type == &fp_bucket_type_file;
}

apr_bucket *fp_file_content_create(struct fp_file *file, apr_off_t length, bool map,
                                   apr_bucket_alloc_t *list)
{
    /* One byte more would show that it has grown. */
    apr_size_t n = (apr_size_t)length + 1;
    apr_bucket *e;
    char *buf;

    if (file->fd == -1)
        return (apr_off_t)whole_of(file)->size == length
            ? fp_file_bucket_create(file, 0, (apr_size_t)length, false, list) : NULL;
    if (!file->local || length > FP_FILE_SMALL
        || (map && length >= (apr_off_t)MAP_LEAST && !file->sealed))
        return NULL;
    buf = apr_bucket_alloc(n, list);
    read_at(file->fd, buf, &n, 0);
    if ((apr_off_t)n != length) {
        apr_bucket_free(buf);
        return NULL;
    }
    e = apr_bucket_alloc(sizeof(*e), list);
    APR_BUCKET_INIT(e);
    e->free = apr_bucket_free;
    e->list = list;
    return apr_bucket_heap_make(e, buf, n, apr_bucket_free);
}

bool fp_file_look(const struct fp_file *file, apr_off_t *size_r, apr_time_t *mtime_r)
{
    struct stat st;

    if (!file->local || file->sealed || fstat(file->fd, &st) == -1)
        return false;
    *size_r = st.st_size;
    *mtime_r = apr_time_from_sec(st.st_mtim.tv_sec) + st.st_mtim.tv_nsec / 1000;
    return true;
}
