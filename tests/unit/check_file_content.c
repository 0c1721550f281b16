/* SPDX-License-Identifier: Apache-2.0 */
/* Buckets that send a content, and those whose reads are in pieces. */
#include "config.h"
#include "file_kit.h"

#include "shared/contents.h"

/* A bucket with a content of so many bytes, which is all that is left of it. */
static apr_bucket *content_bucket(apr_size_t size)
{
    struct fp_contents *contents = fp_contents_create(MIB);
    struct fp_contents_view *view = fp_contents_view_create(fp_contents_fd(contents), false);
    apr_bucket *e;
    uint64_t at;

    fd = memfd_create("served", MFD_CLOEXEC);
    other = dup(fd);
    write_at(0, size);
    ck_assert_int_eq(lseek(other, 5, SEEK_SET), 5);
    at = fp_contents_put(contents, "/f", 2, fd, size);
    fp_close(&fd);
    e = fp_file_bucket_of_content(view, at, (apr_off_t)size, list);
    ck_assert_ptr_nonnull(e);
    fp_contents_view_destroy(&view);
    fp_contents_destroy(&contents);
    return e;
}

START_TEST(content_that_is_gone)
{
    struct fp_contents *contents = fp_contents_create(MIB);
    struct fp_contents_view *view = fp_contents_view_create(fp_contents_fd(contents), true);

    /* No place, one behind the end of the ring, one before its tail. */
    ck_assert_ptr_null(fp_file_bucket_of_content(view, MIB, 2 * MIB, list));
    ck_assert_ptr_null(fp_file_bucket_of_content(view, 2 * MIB - 1, 2, list));
    ck_assert_ptr_null(fp_file_bucket_of_content(view, 0, 5, list));
    fp_contents_view_destroy(&view);
    fp_contents_destroy(&contents);
}
END_TEST

START_TEST(content_needs_no_descriptor)
{
    static const apr_size_t lengths[] = { 1, 500, 4096, 5000, 16 * KIB, 100 * KIB };

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        APR_BRIGADE_INSERT_TAIL(bb, content_bucket(lengths[i]));
        ck_assert_uint_eq(fp_file_descriptors(), 0);
        assert_reads(0, lengths[i]);
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
    assert_pieces(content_bucket(20000), 20000, 8000);
    make_file(20000, true);
    assert_pieces(fp_file_bucket_create(file, 0, 20000, false, list), 20000, 8000);
    make_file(300 * KIB, true);
    assert_pieces(fp_file_bucket_create(file, 0, 300 * KIB, false, list), 300 * KIB, 8000);
    make_file(300 * KIB, false);
    assert_pieces(fp_file_bucket_create(file, 0, 300 * KIB, true, list), 300 * KIB, 4 * MIB);
    make_file(9 * MIB, true);
    assert_pieces(fp_file_bucket_create(file, 0, 9 * MIB, true, list), 9 * MIB, 4 * MIB);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("file_content");
    TCase *t = unit_add_case(s, "contents", setup, teardown, 30);

    tcase_add_test(t, content_that_is_gone);
    tcase_add_test(t, content_needs_no_descriptor);
    tcase_add_test(t, reads_in_pieces);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
