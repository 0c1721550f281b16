/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file whose bytes are known by their offset, a brigade for its buckets, and checks of what is read.
 */
#ifndef FP_FILE_KIT_H
#define FP_FILE_KIT_H

#include "body/file_bucket.h"
#include "question/file.h"

#include <apr_general.h>
#include <apr_pools.h>
#include <sys/mman.h>

#include "unit.h"
#include "wire/packet.h"

#define KIB ((apr_size_t)1024)
#define MIB (1024 * KIB)

static apr_pool_t *pool;
static apr_bucket_alloc_t *list;
static apr_bucket_brigade *bb;
static struct fp_file *file;
static int fd;    /* the file's own descriptor */
static int other; /* shares its offset, as other processes do */
static int fds_at_rest;

static inline void setup(void)
{
    ck_assert_int_eq(apr_initialize(), APR_SUCCESS);
    ck_assert_int_eq(apr_pool_create(&pool, NULL), APR_SUCCESS);
    list = apr_bucket_alloc_create(pool);
    bb = apr_brigade_create(pool, list);
    fds_at_rest = unit_open_fds();
    file = NULL;
    other = -1;
}

static inline void teardown(void)
{
    fp_file_release(&file);
    apr_brigade_cleanup(bb);
    fp_close(&other);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
    apr_pool_destroy(pool);
    apr_terminate();
}

/* The byte at an offset of every test's file. */
static inline unsigned char byte_at(apr_off_t at)
{
    return (unsigned char)((uint64_t)(at + 1) * 2654435761u >> 13);
}

static inline void write_at(apr_off_t at, apr_size_t n)
{
    static unsigned char piece[64 * 1024];

    while (n > 0) {
        apr_size_t k = n < sizeof(piece) ? n : sizeof(piece);

        for (apr_size_t i = 0; i < k; i++)
            piece[i] = byte_at(at + (apr_off_t)i);
        ck_assert_int_eq(pwrite(fd, piece, k, at), (ssize_t)k);
        at += (apr_off_t)k;
        n -= k;
    }
}

static inline void make_file(apr_size_t size, bool local)
{
    fd = memfd_create("served", MFD_CLOEXEC);
    ck_assert_int_ne(fd, -1);
    other = dup(fd);
    write_at(0, size);
    ck_assert_int_eq(lseek(other, 5, SEEK_SET), 5);
    file = fp_file_create(fd, local);
    ck_assert_ptr_nonnull(file);
}

static inline apr_bucket *append(apr_off_t offset, apr_size_t length, bool map)
{
    apr_bucket *e = fp_file_bucket_create(file, offset, length, map, list);

    ck_assert_ptr_nonnull(e);
    ck_assert_uint_eq(e->length, length);
    APR_BRIGADE_INSERT_TAIL(bb, e);
    return e;
}

static inline void assert_bytes(const char *p, apr_size_t n, apr_off_t at)
{
    apr_size_t i = 0;

    while (i < n && (unsigned char)p[i] == byte_at(at + (apr_off_t)i))
        i++;
    ck_assert_msg(i == n, "wrong byte at %lld", (long long)at + (long long)i);
}

/* The work of apr_bucket_read(), a macro that evaluates twice. */
static inline apr_status_t read_one(apr_bucket *e, const char **p, apr_size_t *n)
{
    return apr_bucket_read(e, p, n, APR_BLOCK_READ);
}

/* Reads every bucket in turn and drops it; returns the number of bytes. */
static inline apr_size_t read_all(apr_off_t at, apr_status_t *status_r)
{
    apr_size_t total = 0;

    *status_r = APR_SUCCESS;
    while (!APR_BRIGADE_EMPTY(bb)) {
        apr_bucket *e = APR_BRIGADE_FIRST(bb);
        const char *p = NULL;
        apr_size_t n = 0;

        *status_r = read_one(e, &p, &n);
        if (*status_r != APR_SUCCESS)
            return total;
        ck_assert_uint_eq(e->length, n);
        assert_bytes(p, n, at + (apr_off_t)total);
        total += n;
        apr_bucket_delete(e);
    }
    return total;
}

static inline void assert_reads(apr_off_t at, apr_size_t n)
{
    apr_status_t rv;

    ck_assert_uint_eq(read_all(at, &rv), n);
    ck_assert_int_eq(rv, APR_SUCCESS);
    ck_assert_int_eq(lseek(other, 0, SEEK_CUR), 5);
}

#endif
