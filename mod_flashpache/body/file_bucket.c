/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "body/file_bucket.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "question/file.h"
#include "shared/contents.h"

#define READ_SIZE ((apr_size_t)FP_FILE_SMALL) /* most bytes of one read, if no others are set */

/* The data of a bucket, shared with its splits and copies. */
struct shared {
    apr_bucket_refcount refcount; /* must be the first */
    struct fp_file *file;         /* NULL: the bucket is a piece, which has a mapping of its own */
    bool map;
    void *base; /* of the piece; NULL: the mapping ends with the file */
    size_t size;
    const char *bytes; /* where mapped bytes begin */
    apr_size_t piece;  /* most bytes of one read */
};

static void bucket_destroy(void *data)
{
    struct shared *s = data;

    if (apr_bucket_shared_destroy(s)) {
        if (s->base != NULL)
            munmap(s->base, s->size);
        fp_file_release(&s->file);
        apr_bucket_free(s);
    }
}

/* Moves the bucket's share of the file, without the first len bytes, into a new bucket behind it. */
static void leave_rest(apr_bucket *e, apr_size_t len)
{
    apr_bucket *rest;

    if (len == e->length) {
        bucket_destroy(e->data);
        return;
    }
    rest = apr_bucket_alloc(sizeof(*rest), e->list);
    *rest = *e;
    rest->start += (apr_off_t)len;
    rest->length -= len;
    APR_BUCKET_INSERT_AFTER(e, rest);
}

/* ---- mapped: a piece, or all of it ---- */

static apr_status_t mapped_read(apr_bucket *e, const char **str, apr_size_t *len, apr_read_type_e block)
{
    const struct shared *s = e->data;

    (void)block;
    if (e->length > s->piece)
        apr_bucket_split(e, s->piece);
    *str = s->bytes + e->start;
    *len = e->length;
    return APR_SUCCESS;
}

static const apr_bucket_type_t bucket_type_mapped = { "FLASHPACHE_MAP",
                                                      5,
                                                      APR_BUCKET_DATA,
                                                      bucket_destroy,
                                                      mapped_read,
                                                      apr_bucket_setaside_noop,
                                                      apr_bucket_shared_split,
                                                      apr_bucket_shared_copy };

/* ---- reading ---- */

/*
 * Makes the bucket a mapped piece of its first bytes, and puts the rest behind it. False: nothing
 * was changed, and the caller reads instead.
 */
static bool become_piece(apr_bucket *e)
{
    struct shared *s = e->data;
    apr_size_t n = e->length < FP_FILE_MAP_MOST ? e->length : FP_FILE_MAP_MOST;
    apr_off_t from = e->start & ~(apr_off_t)(sysconf(_SC_PAGESIZE) - 1);
    size_t skip = (size_t)(e->start - from);
    void *base = s->map && n >= (apr_size_t)FP_FILE_MAP_LEAST ? fp_file_map(s->file, from, skip + n) : NULL;
    struct shared *piece;

    if (base == NULL)
        return false;
    piece = apr_bucket_alloc(sizeof(*piece), e->list);
    *piece =
        (struct shared){ .base = base, .size = skip + n, .bytes = (const char *)base + skip, .piece = n };
    leave_rest(e, n);
    e->type = &bucket_type_mapped;
    apr_bucket_shared_make(e, piece, 0, n);
    return true;
}

static apr_status_t bucket_read(apr_bucket *e, const char **str, apr_size_t *len, apr_read_type_e block)
{
    struct shared *s = e->data;
    apr_size_t n = e->length < s->piece ? e->length : s->piece;
    ssize_t got;
    char *buf;

    if (become_piece(e))
        return mapped_read(e, str, len, block);
    *str = NULL;
    *len = 0;
    buf = apr_bucket_alloc(n, e->list);
    got = n > 0 ? fp_file_read(s->file, buf, n, e->start) : 0;
    if (got == -1 || (got == 0 && n > 0)) {
        /* mod_ssl takes APR_EOF for the end of the bucket alone, and goes on with the next response. */
        const apr_status_t rv = got == -1 ? errno : APR_EGENERAL;

        apr_bucket_free(buf);
        return rv;
    }
    n = (apr_size_t)got;
    /* This bucket becomes the bytes just read; the next one has the rest of the file. */
    leave_rest(e, n);
    apr_bucket_heap_make(e, buf, n, apr_bucket_free);
    *str = buf;
    *len = n;
    return APR_SUCCESS;
}

static const apr_bucket_type_t bucket_type_file = { "FLASHPACHE",
                                                    5,
                                                    APR_BUCKET_DATA,
                                                    bucket_destroy,
                                                    bucket_read,
                                                    apr_bucket_setaside_noop,
                                                    apr_bucket_shared_split,
                                                    apr_bucket_shared_copy };

apr_bucket *fp_file_bucket_create(struct fp_file *file, apr_off_t offset, apr_size_t length, bool map,
                                  apr_bucket_alloc_t *list)
{
    apr_bucket *e = apr_bucket_alloc(sizeof(*e), list);
    struct shared *s = apr_bucket_alloc(sizeof(*s), list);
    const struct fp_mapping *whole = NULL;

    if (map)
        whole = fp_file_keep_mapped(file, length);
    APR_BUCKET_INIT(e);
    e->free = apr_bucket_free;
    e->list = list;
    e->type = &bucket_type_file;
    *s = (struct shared){ .file = file, .map = map, .piece = READ_SIZE };
    fp_file_retain(file);
    if (whole != NULL && offset + (apr_off_t)length <= (apr_off_t)whole->size) {
        e->type = &bucket_type_mapped;
        s->bytes = whole->base;
        s->piece = whole->size;
    }
    return apr_bucket_shared_make(e, s, offset, length);
}

void fp_file_bucket_set_piece(apr_bucket *e, apr_size_t piece)
{
    if (e->type == &bucket_type_file || e->type == &bucket_type_mapped)
        ((struct shared *)e->data)->piece = piece;
    for (; APR_BUCKET_IS_HEAP(e) && e->length > piece; e = APR_BUCKET_NEXT(e))
        apr_bucket_split(e, piece);
}

bool fp_file_bucket_reads(const apr_bucket *e)
{
    return e->type == &bucket_type_file;
}

apr_bucket *fp_file_bucket_of_content(const struct fp_contents_view *contents, apr_uint64_t at,
                                     apr_off_t length, apr_bucket_alloc_t *list)
{
    char *buf = apr_bucket_alloc((apr_size_t)length, list);

    if (!fp_contents_view_read(contents, at, buf, (size_t)length)) {
        apr_bucket_free(buf);
        return NULL;
    }
    return apr_bucket_heap_create(buf, (apr_size_t)length, apr_bucket_free, list);
}
