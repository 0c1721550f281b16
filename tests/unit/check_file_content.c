/* SPDX-License-Identifier: Apache-2.0 */
/* Files that came as their content, and the buckets that send it. */
#include "config.h"
#include "file_kit.h"

#include "common/contents.h"

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
    file = fp_file_unread();
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

static Suite *make_suite(void)
{
    Suite *s = suite_create("file_content");
    TCase *t = unit_add_case(s, "contents", setup, teardown, 30);

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
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
