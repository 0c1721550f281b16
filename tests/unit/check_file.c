/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "file_kit.h"

#include <pthread.h>

#define GIB ((apr_off_t)1024 * 1024 * 1024)

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
    const char *p;
    apr_size_t n;

    make_file(50 * KIB, true);
    ck_assert_int_eq(read_one(append(0, 50 * KIB, true), &p, &n), APR_SUCCESS);
    ck_assert(is_mapped());
    assert_reads(0, 50 * KIB);
    ck_assert(!is_mapped());
    append(0, 50 * KIB, true);
    ck_assert(is_mapped());
    append(0, 50 * KIB, true);
    assert_reads_twice(50 * KIB);
    ck_assert(is_mapped());
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
        ck_assert_int_eq(rv, APR_EGENERAL);
        apr_brigade_cleanup(bb);
        append((apr_off_t)real[i] + 1, 10, _i == 1);
        ck_assert_uint_eq(read_all((apr_off_t)real[i] + 1, &rv), 0);
        ck_assert_int_eq(rv, APR_EGENERAL);
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
    ck_assert_int_eq(rv, APR_EGENERAL);
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
    ck_assert_int_ne(rv, APR_EGENERAL);
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
