/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "file.h"
#include "file_bucket.h"

#include <apr_general.h>
#include <apr_pools.h>
#include <pthread.h>
#include <sys/mman.h>

#include "common/contents.h"
#include "common/packet.h"
#include "unit.h"

#define KIB ((apr_size_t)1024)
#define MIB (1024 * KIB)
#define GIB ((apr_off_t)1024 * 1024 * 1024)

static apr_pool_t *pool;
static apr_bucket_alloc_t *list;
static apr_bucket_brigade *bb;
static struct fp_file *file;
static int fd;    /* the file's own descriptor */
static int other; /* shares its offset, as other processes do */
static int fds_at_rest;

static void setup(void)
{
    ck_assert_int_eq(apr_initialize(), APR_SUCCESS);
    ck_assert_int_eq(apr_pool_create(&pool, NULL), APR_SUCCESS);
    list = apr_bucket_alloc_create(pool);
    bb = apr_brigade_create(pool, list);
    fds_at_rest = unit_open_fds();
    file = NULL;
    other = -1;
}

static void teardown(void)
{
    fp_file_release(&file);
    apr_brigade_cleanup(bb);
    fp_close(&other);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
    apr_pool_destroy(pool);
    apr_terminate();
}

/* The byte at an offset of every test's file. */
static unsigned char byte_at(apr_off_t at)
{
    return (unsigned char)((uint64_t)(at + 1) * 2654435761u >> 13);
}

static void write_at(apr_off_t at, apr_size_t n)
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

static void make_file(apr_size_t size, bool local)
{
    fd = memfd_create("served", MFD_CLOEXEC);
    ck_assert_int_ne(fd, -1);
    other = dup(fd);
    write_at(0, size);
    ck_assert_int_eq(lseek(other, 5, SEEK_SET), 5);
    file = fp_file_create(fd, local);
    ck_assert_ptr_nonnull(file);
}

static apr_bucket *append(apr_off_t offset, apr_size_t length, bool map)
{
    apr_bucket *e = fp_file_bucket_create(file, offset, length, map, list);

    ck_assert_ptr_nonnull(e);
    ck_assert_uint_eq(e->length, length);
    APR_BRIGADE_INSERT_TAIL(bb, e);
    return e;
}

static void assert_bytes(const char *p, apr_size_t n, apr_off_t at)
{
    apr_size_t i = 0;

    while (i < n && (unsigned char)p[i] == byte_at(at + (apr_off_t)i))
        i++;
    ck_assert_msg(i == n, "wrong byte at %lld", (long long)at + (long long)i);
}

/* The work of apr_bucket_read(), a macro that evaluates twice. */
static apr_status_t read_one(apr_bucket *e, const char **p, apr_size_t *n)
{
    return apr_bucket_read(e, p, n, APR_BLOCK_READ);
}

/* Reads every bucket in turn and drops it; returns the number of bytes. */
static apr_size_t read_all(apr_off_t at, apr_status_t *status_r)
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

static void assert_reads(apr_off_t at, apr_size_t n)
{
    apr_status_t rv;

    ck_assert_uint_eq(read_all(at, &rv), n);
    ck_assert_int_eq(rv, APR_SUCCESS);
    ck_assert_int_eq(lseek(other, 0, SEEK_CUR), 5);
}

/* Two buckets, each with the first n bytes. */
static void assert_reads_twice(apr_size_t n)
{
    apr_bucket *second = APR_BUCKET_NEXT(APR_BRIGADE_FIRST(bb));

    APR_BUCKET_REMOVE(second);
    assert_reads(0, n);
    APR_BRIGADE_INSERT_TAIL(bb, second);
    assert_reads(0, n);
}

static bool is_mapped(void)
{
    static char maps[1 << 20];
    int f = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n;

    while (len < sizeof(maps) - 1 && (n = read(f, maps + len, sizeof(maps) - 1 - len)) > 0)
        len += (size_t)n;
    maps[len] = '\0';
    close(f);
    return strstr(maps, "memfd:served") != NULL;
}

/* ---- reading; each both by copying and by mapping ---- */

static const apr_size_t sizes[] = { 1,         100,     8 * KIB,     64 * KIB, 64 * KIB + 1,
                                    300 * KIB, 4 * MIB, 4 * MIB + 1, 9 * MIB };
#define SIZES ((int)(sizeof(sizes) / sizeof(sizes[0])))

START_TEST(whole_file)
{
    for (int map = 0; map <= 1; map++) {
        make_file(sizes[_i], true);
        append(0, sizes[_i], map);
        assert_reads(0, sizes[_i]);
        fp_file_release(&file);
        ck_assert(!is_mapped());
        fp_close(&other);
    }
}
END_TEST

START_TEST(part_of_a_file)
{
    static const apr_off_t offsets[] = { 1, 4095, 4096, 4097, 700000 };

    make_file(2 * MIB, true);
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        append(offsets[i], 1, true);
        assert_reads(offsets[i], 1);
        append(offsets[i], 10000, true);
        assert_reads(offsets[i], 10000);
        append(offsets[i], 600 * KIB, _i == 1);
        assert_reads(offsets[i], 600 * KIB);
    }
}
END_TEST

START_TEST(nothing_of_a_file)
{
    const char *p;
    apr_size_t n = 99;

    make_file(100, true);
    ck_assert_int_eq(read_one(append(0, 0, true), &p, &n), APR_SUCCESS);
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(beyond_three_gigabytes)
{
    const apr_off_t at = 3 * GIB + 12345;

    make_file(0, true);
    write_at(at, MIB);
    append(at, MIB, _i == 1);
    assert_reads(at, MIB);
    append(at + 1000, 10, _i == 1);
    assert_reads(at + 1000, 10);
}
END_TEST

START_TEST(split_beyond_three_gigabytes)
{
    const apr_off_t at = 3 * GIB + 12345;
    apr_bucket *e;

    make_file(0, true);
    write_at(at, MIB);
    e = append(0, (apr_size_t)at + MIB, _i == 1);
    ck_assert_int_eq(apr_bucket_split(e, (apr_size_t)at), APR_SUCCESS);
    ck_assert_uint_eq(e->length, (apr_size_t)at);
    apr_bucket_delete(e);
    assert_reads(at, MIB);
}
END_TEST

START_TEST(split)
{
    static const apr_size_t points[] = { 1, 4095, 64 * KIB, 64 * KIB + 1, 600 * KIB - 1 };
    apr_bucket *e;

    make_file(600 * KIB, true);
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        e = append(0, 600 * KIB, _i == 1);
        ck_assert_int_eq(apr_bucket_split(e, points[i]), APR_SUCCESS);
        ck_assert_uint_eq(e->length, points[i]);
        ck_assert_uint_eq(APR_BUCKET_NEXT(e)->length, 600 * KIB - points[i]);
        assert_reads(0, 600 * KIB);
    }
    e = append(0, 10, false);
    ck_assert_int_ne(apr_bucket_split(e, 11), APR_SUCCESS);
}
END_TEST

START_TEST(split_after_reading)
{
    apr_bucket *e;
    const char *p;
    apr_size_t n;

    make_file(600 * KIB, true);
    e = append(0, 600 * KIB, _i == 1);
    ck_assert_int_eq(read_one(e, &p, &n), APR_SUCCESS);
    ck_assert_int_eq(apr_bucket_split(e, 1000), APR_SUCCESS);
    assert_reads(0, 600 * KIB);
    fp_file_release(&file);
    ck_assert(!is_mapped());
}
END_TEST

START_TEST(copy)
{
    apr_bucket *e, *second;

    make_file(600 * KIB, true);
    e = append(0, 600 * KIB, _i == 1);
    ck_assert_int_eq(apr_bucket_copy(e, &second), APR_SUCCESS);
    assert_reads(0, 600 * KIB);
    APR_BRIGADE_INSERT_TAIL(bb, second);
    assert_reads(0, 600 * KIB);
}
END_TEST

START_TEST(copy_after_reading)
{
    apr_bucket *e, *second;
    const char *p;
    apr_size_t n;

    make_file(600 * KIB, true);
    e = append(0, 600 * KIB, _i == 1);
    ck_assert_int_eq(read_one(e, &p, &n), APR_SUCCESS);
    ck_assert_int_eq(apr_bucket_copy(e, &second), APR_SUCCESS);
    assert_reads(0, 600 * KIB);
    APR_BRIGADE_INSERT_TAIL(bb, second);
    assert_reads(0, n);
    fp_file_release(&file);
    ck_assert(!is_mapped());
}
END_TEST

/* As for a byte range: cut out of the middle, in a brigade. */
START_TEST(partition)
{
    apr_bucket *begin, *end;

    make_file(600 * KIB, true);
    append(0, 600 * KIB, _i == 1);
    ck_assert_int_eq(apr_brigade_partition(bb, 1000, &begin), APR_SUCCESS);
    ck_assert_int_eq(apr_brigade_partition(bb, 400 * KIB, &end), APR_SUCCESS);
    while (APR_BRIGADE_FIRST(bb) != begin)
        apr_bucket_delete(APR_BRIGADE_FIRST(bb));
    while (end != APR_BRIGADE_SENTINEL(bb)) {
        apr_bucket *next = APR_BUCKET_NEXT(end);

        apr_bucket_delete(end);
        end = next;
    }
    assert_reads(1000, 400 * KIB - 1000);
}
END_TEST

START_TEST(setaside)
{
    apr_pool_t *brief;
    apr_bucket *e;

    make_file(600 * KIB, true);
    ck_assert_int_eq(apr_pool_create(&brief, pool), APR_SUCCESS);
    e = append(0, 600 * KIB, _i == 1);
    ck_assert_int_eq(apr_bucket_setaside(e, brief), APR_SUCCESS);
    fp_file_release(&file);
    apr_pool_destroy(brief);
    assert_reads(0, 600 * KIB);
    ck_assert(!unit_is_open(fd));
}
END_TEST

START_TEST(setaside_after_reading)
{
    apr_pool_t *brief;
    apr_bucket *e;
    const char *p;
    apr_size_t n;

    make_file(600 * KIB, true);
    e = append(0, 600 * KIB, _i == 1);
    ck_assert_int_eq(apr_pool_create(&brief, pool), APR_SUCCESS);
    ck_assert_int_eq(read_one(e, &p, &n), APR_SUCCESS);
    ck_assert_int_eq(apr_bucket_setaside(e, brief), APR_SUCCESS);
    fp_file_release(&file);
    apr_pool_destroy(brief);
    assert_reads(0, 600 * KIB);
    ck_assert(!is_mapped());
}
END_TEST

START_TEST(several_buckets_do_not_disturb_each_other)
{
    make_file(MIB, true);
    for (int i = 0; i < 6; i++)
        append(i * 100000, 100000, i % 2 == _i);
    assert_reads(0, 600000);
}
END_TEST

/* ---- contents ---- */

static void make_content(apr_size_t size)
{
    struct fp_contents *contents = fp_contents_create(MIB);
    struct fp_contents_view *view = fp_contents_view_create(fp_contents_fd(contents), false);
    uint64_t at;

    fd = memfd_create("served", MFD_CLOEXEC);
    other = dup(fd);
    write_at(0, size);
    ck_assert_int_eq(lseek(other, 5, SEEK_SET), 5);
    at = fp_contents_put(contents, "/f", 2, fd, size);
    fp_close(&fd);
    file = fp_file_create_content(view, at, size);
    ck_assert_ptr_nonnull(file);
    /* It is a copy. */
    fp_contents_view_destroy(&view);
    fp_contents_destroy(&contents);
}

static bool is_held(void)
{
    return fp_file_mapped() > 0;
}

START_TEST(content_that_is_gone)
{
    struct fp_contents *contents = fp_contents_create(MIB);
    struct fp_contents_view *view = fp_contents_view_create(fp_contents_fd(contents), true);

    /* No place, one behind the end of the ring, one before its tail. */
    ck_assert_ptr_null(fp_file_create_content(view, MIB, 2 * MIB));
    ck_assert_ptr_null(fp_file_create_content(view, 2 * MIB - 1, 2));
    ck_assert_ptr_null(fp_file_create_content(view, 0, 5));
    ck_assert(!is_held());
    fp_contents_view_destroy(&view);
    fp_contents_destroy(&contents);
}
END_TEST

START_TEST(content_needs_no_descriptor)
{
    static const apr_size_t lengths[] = { 1, 500, 4096, 5000, 16 * KIB, 100 * KIB };

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        apr_bucket *e;

        make_content(lengths[i]);
        ck_assert_int_eq(fp_file_descriptor(file), -1);
        ck_assert_uint_eq(fp_file_descriptors(), 0);
        e = fp_file_bucket_of_content(file, (apr_off_t)lengths[i], false, list);
        ck_assert_ptr_nonnull(e);
        APR_BRIGADE_INSERT_TAIL(bb, e);
        assert_reads(0, lengths[i]);
        fp_file_release(&file);
        ck_assert(!is_held());
        fp_close(&other);
    }
}
END_TEST

/* As a content filter sees it with EnableMMAP Off. */
static void assert_pieces(apr_bucket *e, apr_size_t size, apr_size_t piece)
{
    const char *p;
    apr_size_t n;

    APR_BRIGADE_INSERT_TAIL(bb, e);
    fp_file_bucket_set_piece(e, piece);
    for (apr_size_t at = 0; at < size; at += n) {
        ck_assert_int_eq(read_one(e, &p, &n), APR_SUCCESS);
        ck_assert_uint_eq(n, size - at < piece ? size - at : piece);
        assert_bytes(p, n, (apr_off_t)at);
        ck_assert_uint_eq(e->length, n);
        e = APR_BUCKET_NEXT(e);
    }
    ck_assert_ptr_eq(e, APR_BRIGADE_SENTINEL(bb));
    assert_reads(0, size);
    fp_file_release(&file);
    fp_close(&other);
}

START_TEST(reads_in_pieces)
{
    make_content(20000);
    assert_pieces(fp_file_bucket_of_content(file, 20000, false, list), 20000, 8000);
    make_file(20000, true);
    assert_pieces(fp_file_bucket_of_content(file, 20000, false, list), 20000, 8000);
    make_file(300 * KIB, true);
    assert_pieces(fp_file_bucket_create(file, 0, 300 * KIB, false, list), 300 * KIB, 8000);
    make_file(300 * KIB, false);
    assert_pieces(fp_file_bucket_create(file, 0, 300 * KIB, true, list), 300 * KIB, 4 * MIB);
    make_file(9 * MIB, true);
    assert_pieces(fp_file_bucket_create(file, 0, 9 * MIB, true, list), 9 * MIB, 4 * MIB);
}
END_TEST

START_TEST(content_is_not_copied)
{
    const char *p, *q;
    apr_bucket *e, *copied;
    apr_size_t n;

    make_content(5000);
    e = append(0, 5000, false);
    ck_assert_int_eq(read_one(e, &p, &n), APR_SUCCESS);
    ck_assert_uint_eq(n, 5000);
    ck_assert_int_eq(apr_bucket_copy(e, &copied), APR_SUCCESS);
    APR_BRIGADE_INSERT_TAIL(bb, copied);
    ck_assert_int_eq(apr_bucket_split(copied, 100), APR_SUCCESS);
    ck_assert_int_eq(read_one(APR_BUCKET_NEXT(copied), &q, &n), APR_SUCCESS);
    ck_assert_ptr_eq(q, p + 100);
    apr_bucket_delete(e);
    assert_reads(0, 5000);
}
END_TEST

START_TEST(content_outlives_its_file)
{
    apr_pool_t *brief;
    apr_bucket *e;

    make_content(5000);
    ck_assert_int_eq(apr_pool_create(&brief, pool), APR_SUCCESS);
    e = append(1000, 4000, false);
    ck_assert_int_eq(apr_bucket_setaside(e, brief), APR_SUCCESS);
    fp_file_release(&file);
    apr_pool_destroy(brief);
    ck_assert(is_held());
    assert_reads(1000, 4000);
    ck_assert(!is_held());
}
END_TEST

START_TEST(parts_of_a_content)
{
    apr_bucket *begin, *end;

    make_content(16 * KIB);
    append(0, 16 * KIB, true);
    ck_assert_int_eq(apr_brigade_partition(bb, 1000, &begin), APR_SUCCESS);
    ck_assert_int_eq(apr_brigade_partition(bb, 9000, &end), APR_SUCCESS);
    while (APR_BRIGADE_FIRST(bb) != begin)
        apr_bucket_delete(APR_BRIGADE_FIRST(bb));
    while (end != APR_BRIGADE_SENTINEL(bb)) {
        apr_bucket *next = APR_BUCKET_NEXT(end);

        apr_bucket_delete(end);
        end = next;
    }
    assert_reads(1000, 8000);
}
END_TEST

START_TEST(content_of_another_length)
{
    apr_status_t rv;

    make_content(5000);
    ck_assert_ptr_null(fp_file_bucket_of_content(file, 4999, false, list));
    ck_assert_ptr_null(fp_file_bucket_of_content(file, 5001, false, list));
    append(0, 6000, true);
    ck_assert_uint_eq(read_all(0, &rv), 0);
    ck_assert_int_ne(rv, APR_SUCCESS);
    apr_brigade_cleanup(bb);
    append(5000, 1, true);
    ck_assert_uint_eq(read_all(5000, &rv), 0);
    ck_assert_int_ne(rv, APR_SUCCESS);
}
END_TEST

/* Its times are the memfd's. */
START_TEST(content_is_not_looked_at)
{
    apr_off_t size;
    apr_time_t mtime;

    make_content(5000);
    ck_assert(!fp_file_look(file, &size, &mtime));
}
END_TEST

START_TEST(a_content_is_read_for_its_response)
{
    struct fp_contents *contents = fp_contents_create(MIB);
    struct fp_contents_view *view = fp_contents_view_create(fp_contents_fd(contents), false);
    uint64_t at;

    fd = memfd_create("served", MFD_CLOEXEC);
    other = dup(fd);
    write_at(0, 5000);
    ck_assert_int_eq(lseek(other, 5, SEEK_SET), 5);
    at = fp_contents_put(contents, "/f", 2, fd, 5000);
    fp_close(&fd);
    file = fp_file_create_unread();
    ck_assert(fp_file_is_local(file) && fp_file_is_content(file) && fp_file_is_unread(file));
    ck_assert_int_eq(fp_file_descriptor(file), -1);
    ck_assert(!fp_file_may_be_mapped(file, "/f", 0, 0));
    APR_BRIGADE_INSERT_TAIL(bb, fp_file_bucket_of_unread(view, at, 5000, list));
    /* A place behind the ring's end has none. */
    ck_assert_ptr_null(fp_file_bucket_of_unread(view, MIB, 2 * MIB, list));
    fp_contents_view_destroy(&view);
    fp_contents_destroy(&contents);
    /* The bytes are the bucket's own. */
    assert_reads(0, 5000);
}
END_TEST

/* There is nothing to look at, and no way to the file's later bytes. */
START_TEST(content_is_all_there_is)
{
    apr_off_t size;
    apr_time_t mtime;

    make_content(5000);
    ck_assert(fp_file_is_local(file) && fp_file_is_content(file));
    ck_assert(!fp_file_look(file, &size, &mtime));
    append(1000, 3000, true);
    assert_reads(1000, 3000);
}
END_TEST

/* ---- when to map ---- */

START_TEST(only_local_files_are_mapped_and_only_if_allowed)
{
    const char *p;
    apr_size_t n;

    for (int i = 0; i < 4; i++) {
        const bool local = i & 1, map = i & 2;

        make_file(4 * MIB, local);
        ck_assert_int_eq(read_one(append(0, 4 * MIB, map), &p, &n), APR_SUCCESS);
        ck_assert(is_mapped() == (local && map));
        assert_reads(0, 4 * MIB);
        fp_file_release(&file);
        ck_assert(!is_mapped());
        fp_close(&other);
    }
}
END_TEST

/* The first mapping goes with its response. It tells the kernel that the pages were used, which
 * reading through a shared descriptor does not. */
START_TEST(file_that_is_sent_again_stays_mapped)
{
    apr_bucket *first;
    const char *p;
    apr_size_t n;

    make_file(50 * KIB, true);
    ck_assert_ptr_null(fp_file_bucket_of_content(file, 50 * KIB, true, list));
    ck_assert_int_eq(read_one(append(0, 50 * KIB, true), &p, &n), APR_SUCCESS);
    ck_assert(is_mapped());
    assert_reads(0, 50 * KIB);
    ck_assert(!is_mapped());
    append(0, 50 * KIB, true);
    ck_assert(is_mapped());
    append(0, 50 * KIB, true);
    assert_reads_twice(50 * KIB);
    ck_assert(is_mapped());
    ck_assert_ptr_nonnull(first = fp_file_bucket_of_content(file, 50 * KIB, false, list));
    apr_bucket_destroy(first);
    append(1000, 2000, true);
    fp_file_release(&file);
    /* The bucket has it still. */
    ck_assert(is_mapped());
    assert_reads(1000, 2000);
    ck_assert(!is_mapped());
}
END_TEST

/* ---- files that differ from the announcement ---- */

START_TEST(file_that_is_shorter_than_announced)
{
    static const apr_size_t real[] = { 0, 1, 70000, 64 * KIB, 500 * KIB, 4 * MIB };
    apr_status_t rv;

    for (size_t i = 0; i < sizeof(real) / sizeof(real[0]); i++) {
        make_file(real[i], true);
        append(0, 5 * MIB, _i == 1);
        ck_assert_uint_eq(read_all(0, &rv), real[i]);
        ck_assert_int_eq(rv, APR_EOF);
        apr_brigade_cleanup(bb);
        append((apr_off_t)real[i] + 1, 10, _i == 1);
        ck_assert_uint_eq(read_all((apr_off_t)real[i] + 1, &rv), 0);
        ck_assert_int_eq(rv, APR_EOF);
        apr_brigade_cleanup(bb);
        fp_file_release(&file);
        fp_close(&other);
    }
}
END_TEST

START_TEST(file_that_is_cut_while_it_is_sent)
{
    apr_status_t rv;
    const char *p;
    apr_size_t n;
    apr_bucket *e;

    make_file(9 * MIB, true);
    e = append(0, 9 * MIB, _i == 1);
    ck_assert_int_eq(read_one(e, &p, &n), APR_SUCCESS);
    assert_bytes(p, n, 0);
    apr_bucket_delete(e);
    ck_assert_int_eq(ftruncate(other, (off_t)n + 1000), 0);
    ck_assert_uint_eq(read_all((apr_off_t)n, &rv), 1000);
    ck_assert_int_eq(rv, APR_EOF);
}
END_TEST

/* The piece that was read is a copy. */
START_TEST(file_that_is_cut_after_it_was_read)
{
    const char *p;
    apr_size_t n;

    make_file(60 * KIB, true);
    ck_assert_int_eq(read_one(append(0, 60 * KIB, false), &p, &n), APR_SUCCESS);
    ck_assert_int_eq(ftruncate(other, 0), 0);
    assert_bytes(p, n, 0);
    assert_reads(0, 60 * KIB);
}
END_TEST

START_TEST(file_that_grew)
{
    make_file(100 * KIB, true);
    append(0, 70 * KIB, _i == 1);
    assert_reads(0, 70 * KIB);
}
END_TEST

START_TEST(file_that_cannot_be_read)
{
    const char *p;
    apr_size_t n;
    apr_status_t rv;

    file = fp_file_create(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), true);
    rv = read_one(append(0, MIB, _i == 1), &p, &n);
    ck_assert_int_ne(rv, APR_SUCCESS);
    ck_assert_int_ne(rv, APR_EOF);
    ck_assert_uint_eq(n, 0);
}
END_TEST

/* ---- the descriptor's owners ---- */

START_TEST(last_reference_closes)
{
    struct fp_file *second;

    make_file(10, true);
    second = file;
    fp_file_retain(file);
    fp_file_release(&file);
    ck_assert_ptr_null(file);
    ck_assert(unit_is_open(fd));
    fp_file_release(&second);
    ck_assert_ptr_null(second);
    ck_assert(!unit_is_open(fd));
    fp_file_release(&second);
}
END_TEST

START_TEST(last_bucket_closes)
{
    apr_bucket *e, *copied;

    make_file(100 * KIB, true);
    e = append(0, 100 * KIB, false);
    ck_assert_int_eq(apr_bucket_split(e, 10), APR_SUCCESS);
    ck_assert_int_eq(apr_bucket_copy(e, &copied), APR_SUCCESS);
    append(0, 1, false);
    fp_file_release(&file);
    ck_assert(unit_is_open(fd));
    apr_brigade_cleanup(bb);
    ck_assert(unit_is_open(fd));
    apr_bucket_destroy(copied);
    ck_assert(!unit_is_open(fd));
}
END_TEST

START_TEST(pool_does_not_close)
{
    apr_pool_t *request;
    apr_bucket_brigade *brief;

    make_file(10, true);
    ck_assert_int_eq(apr_pool_create(&request, pool), APR_SUCCESS);
    brief = apr_brigade_create(request, list);
    APR_BRIGADE_INSERT_TAIL(brief, fp_file_bucket_create(file, 0, 10, true, list));
    fp_file_release(&file);
    ck_assert(unit_is_open(fd));
    APR_BRIGADE_CONCAT(bb, brief);
    apr_pool_destroy(request);
    assert_reads(0, 10);
    ck_assert(!unit_is_open(fd));
}
END_TEST

static void *hold_and_drop(void *arg)
{
    for (int i = 0; i < 20000; i++) {
        struct fp_file *mine = arg;

        fp_file_retain(mine);
        fp_file_release(&mine);
    }
    return NULL;
}

START_TEST(references_of_several_threads)
{
    pthread_t threads[4];

    make_file(10, true);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hold_and_drop, file), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert(unit_is_open(fd));
    fp_file_release(&file);
    ck_assert(!unit_is_open(fd));
}
END_TEST

/* Tests with _i: 0 copies, 1 may map. */
static Suite *make_suite(void)
{
    Suite *s = suite_create("file");
    TCase *t = unit_add_case(s, "reading", setup, teardown, 30);

    tcase_add_loop_test(t, whole_file, 0, SIZES);
    tcase_add_loop_test(t, part_of_a_file, 0, 2);
    tcase_add_test(t, nothing_of_a_file);
    tcase_add_loop_test(t, beyond_three_gigabytes, 0, 2);
    tcase_add_loop_test(t, split_beyond_three_gigabytes, 0, 2);
    tcase_add_loop_test(t, split, 0, 2);
    tcase_add_loop_test(t, split_after_reading, 0, 2);
    tcase_add_loop_test(t, copy, 0, 2);
    tcase_add_loop_test(t, copy_after_reading, 0, 2);
    tcase_add_loop_test(t, partition, 0, 2);
    tcase_add_loop_test(t, setaside, 0, 2);
    tcase_add_loop_test(t, setaside_after_reading, 0, 2);
    tcase_add_loop_test(t, several_buckets_do_not_disturb_each_other, 0, 2);
    tcase_add_test(t, only_local_files_are_mapped_and_only_if_allowed);
    tcase_add_test(t, file_that_is_sent_again_stays_mapped);
    t = unit_add_case(s, "contents", setup, teardown, 30);
    tcase_add_test(t, content_that_is_gone);
    tcase_add_test(t, content_needs_no_descriptor);
    tcase_add_test(t, reads_in_pieces);
    tcase_add_test(t, content_is_not_copied);
    tcase_add_test(t, content_outlives_its_file);
    tcase_add_test(t, parts_of_a_content);
    tcase_add_test(t, content_of_another_length);
    tcase_add_test(t, content_is_not_looked_at);
    tcase_add_test(t, content_is_all_there_is);
    tcase_add_test(t, a_content_is_read_for_its_response);
    t = unit_add_case(s, "surprises", setup, teardown, 30);
    tcase_add_loop_test(t, file_that_is_shorter_than_announced, 0, 2);
    tcase_add_loop_test(t, file_that_is_cut_while_it_is_sent, 0, 2);
    tcase_add_test(t, file_that_is_cut_after_it_was_read);
    tcase_add_loop_test(t, file_that_grew, 0, 2);
    tcase_add_loop_test(t, file_that_cannot_be_read, 0, 2);
    t = unit_add_case(s, "references", setup, teardown, 30);
    tcase_add_test(t, last_reference_closes);
    tcase_add_test(t, last_bucket_closes);
    tcase_add_test(t, pool_does_not_close);
    tcase_add_test(t, references_of_several_threads);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
