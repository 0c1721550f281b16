/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/file.h"
#include "body/file_apr.h"

#include <apr_general.h>
#include <apr_portable.h>
#include <apr_strings.h>
#include <pthread.h>
#include <sys/mman.h>

#include "unit.h"
#include "wire/packet.h"

#define SIZE   (100 * 1000)
#define SPARES 8 /* most that a file keeps */

static apr_pool_t *connection, *request;
static conn_rec conn;
static struct fp_file_use *use; /* of the last bucket */
static apr_bucket_alloc_t *list;
static apr_bucket_brigade *bb;
static struct fp_file *file;
static int other; /* shares the offset of the file's descriptor, as other processes do */
static int fds_at_rest;
static char bytes[SIZE], got[SIZE];

static void setup(void)
{
    int fd = memfd_create("served", MFD_CLOEXEC);

    ck_assert_int_eq(apr_initialize(), APR_SUCCESS);
    ck_assert_int_eq(apr_pool_create(&connection, NULL), APR_SUCCESS);
    ck_assert_int_eq(apr_pool_create(&request, connection), APR_SUCCESS);
    list = apr_bucket_alloc_create(connection);
    conn = (conn_rec){ .pool = connection, .bucket_alloc = list };
    bb = apr_brigade_create(connection, list);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 31 % 251);
    ck_assert_int_eq(write(fd, bytes, SIZE), SIZE);
    other = dup(fd);
    ck_assert_int_eq(lseek(other, 5, SEEK_SET), 5);
    fds_at_rest = unit_open_fds();
    file = fp_file_create(fd, false);
    fp_file_set_own_most(100);
}

static void teardown(void)
{
    ck_assert_int_eq(lseek(other, 0, SEEK_CUR), 5);
    apr_brigade_cleanup(bb);
    apr_pool_destroy(connection);
    fp_file_release(&file);
    ck_assert_uint_eq(fp_file_own_descriptors(), 0);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest - 1);
    fp_close(&other);
    apr_terminate();
}

static apr_bucket *append_for(apr_pool_t *p, bool sendfile)
{
    return fp_file_apr_append(bb, file, 0, SIZE, sendfile, &(request_rec){ .pool = p, .connection = &conn },
                              &use);
}

static apr_bucket *append(apr_pool_t *p)
{
    apr_bucket *e = append_for(p, false);

    ck_assert_ptr_nonnull(e);
    ck_assert(APR_BUCKET_IS_FILE(e));
    ck_assert_int_eq(apr_bucket_file_enable_mmap(e, 0), APR_SUCCESS);
    return e;
}

static int descriptor_of(const apr_bucket *e)
{
    const apr_bucket_file *f = e->data;
    apr_os_file_t fd;

    ck_assert_int_eq(apr_os_file_get(&fd, f->fd), APR_SUCCESS);
    return fd;
}

static void assert_reads(void)
{
    apr_size_t n = SIZE;

    ck_assert_int_eq(apr_brigade_flatten(bb, got, &n), APR_SUCCESS);
    ck_assert_uint_eq(n, SIZE);
    ck_assert_int_eq(memcmp(got, bytes, SIZE), 0);
    apr_brigade_cleanup(bb);
}

START_TEST(descriptor_is_used_again)
{
    int fd = descriptor_of(append(request));

    assert_reads();
    for (int i = 0; i < 3; i++) {
        apr_pool_clear(request);
        ck_assert_int_eq(descriptor_of(append(request)), fd);
        ck_assert_uint_eq(fp_file_own_descriptors(), 1);
        assert_reads();
    }
}
END_TEST

/* As core does it with what a slow client has not taken yet. The pool of what is set aside is cleared
 * before the request is over. _i: the whole bucket, or a part of it. */
START_TEST(descriptor_is_used_again_after_it_was_set_aside)
{
    apr_pool_t *deferred;
    apr_bucket *e = append(request);
    int fd = descriptor_of(e);

    ck_assert_int_eq(apr_pool_create(&deferred, connection), APR_SUCCESS);
    if (_i == 1)
        ck_assert_int_eq(apr_bucket_split(e, 10), APR_SUCCESS);
    ck_assert_int_eq(apr_bucket_setaside(e, deferred), APR_SUCCESS);
    assert_reads();
    apr_pool_clear(deferred);
    memset(apr_palloc(deferred, 4000), 0x55, 4000);
    apr_pool_clear(request);
    ck_assert_int_eq(descriptor_of(append(request)), fd);
    assert_reads();
}
END_TEST

START_TEST(responses_at_once_have_descriptors_of_their_own)
{
    apr_pool_t *second;
    apr_bucket *e = append(request);
    int fd = descriptor_of(e), fd2;

    ck_assert_int_eq(apr_pool_create(&second, connection), APR_SUCCESS);
    APR_BUCKET_REMOVE(e);
    fd2 = descriptor_of(append(second));
    ck_assert_int_ne(fd, fd2);
    assert_reads();
    APR_BRIGADE_INSERT_TAIL(bb, e);
    assert_reads();
    apr_pool_destroy(second);
    apr_pool_clear(request);
    ck_assert_uint_eq(fp_file_own_descriptors(), 2);
}
END_TEST

START_TEST(no_more_are_kept_than_a_file_may_have)
{
    int fds = unit_open_fds();

    for (int i = 0; i < SPARES + 3; i++)
        append(request);
    ck_assert_int_eq(unit_open_fds(), fds + SPARES + 3);
    apr_brigade_cleanup(bb);
    apr_pool_clear(request);
    ck_assert_uint_eq(fp_file_own_descriptors(), SPARES);
    ck_assert_int_eq(unit_open_fds(), fds + SPARES);
}
END_TEST

/* The place of one that is in use is not for a file that few ask for. */
START_TEST(no_more_are_kept_than_all_may_have)
{
    struct fp_file *hot = file, *rare = fp_file_create(dup(other), false);
    apr_pool_t *second;
    int fd;

    ck_assert_int_eq(apr_pool_create(&second, connection), APR_SUCCESS);
    fp_file_set_own_most(1);
    fd = descriptor_of(append(request));
    apr_pool_clear(request);
    ck_assert_int_eq(descriptor_of(append(request)), fd);
    file = rare;
    append(second);
    ck_assert_uint_eq(fp_file_own_descriptors(), 2);
    apr_brigade_cleanup(bb);
    apr_pool_destroy(second);
    apr_pool_clear(request);
    ck_assert_uint_eq(fp_file_own_descriptors(), 1);
    file = hot;
    ck_assert_int_eq(descriptor_of(append(request)), fd);
    fp_file_release(&rare);
}
END_TEST

/* Where a file cannot be read, core sets the connection aborted (_i: 0), or a filter reports it (1). The next
 * response opens the file. */
START_TEST(descriptor_of_a_broken_response_is_closed)
{
    int fd = descriptor_of(append(request));

    apr_brigade_cleanup(bb);
    if (_i == 0)
        conn.aborted = 1;
    else
        fp_file_apr_broke(use);
    apr_pool_clear(request);
    ck_assert_uint_eq(fp_file_own_descriptors(), 0);
    ck_assert(!unit_is_open(fd));
}
END_TEST

static void *send_often(void *arg)
{
    apr_pool_t *mine = arg;
    apr_bucket_alloc_t *its = apr_bucket_alloc_create(mine);
    conn_rec c = { .pool = mine, .bucket_alloc = its };
    char first[100];

    for (int i = 0; i < 2000; i++) {
        apr_pool_t *p;
        apr_bucket_brigade *b;
        apr_size_t n = sizeof(first);
        struct fp_file_use *mine_use;

        ck_assert_int_eq(apr_pool_create(&p, mine), APR_SUCCESS);
        b = apr_brigade_create(p, its);
        ck_assert_ptr_nonnull(fp_file_apr_append(b, file, i % 1000, SIZE / 2, false,
                                                 &(request_rec){ .pool = p, .connection = &c }, &mine_use));
        ck_assert_int_eq(apr_brigade_flatten(b, first, &n), APR_SUCCESS);
        ck_assert_int_eq(memcmp(first, bytes + i % 1000, sizeof(first)), 0);
        apr_brigade_destroy(b);
        apr_pool_destroy(p);
    }
    return NULL;
}

START_TEST(several_threads)
{
    pthread_t threads[4];
    apr_pool_t *pools[4];

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(apr_pool_create_unmanaged_ex(&pools[i], NULL, NULL), APR_SUCCESS);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, send_often, pools[i]), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_le(fp_file_own_descriptors(), 4);
    for (int i = 0; i < 4; i++)
        apr_pool_destroy(pools[i]);
}
END_TEST

START_TEST(file_ends_before_its_response)
{
    append(request);
    fp_file_release(&file);
    assert_reads();
    apr_pool_clear(request);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest - 1);
}
END_TEST

START_TEST(none_without_a_descriptor)
{
    struct rlimit before = unit_leave_fds(0);

    ck_assert_ptr_null(append_for(request, true));
    ck_assert(APR_BRIGADE_EMPTY(bb));
    unit_restore_fds(&before);
}
END_TEST

START_TEST(sendfile_is_for_core_to_see)
{
    for (int sendfile = 0; sendfile < 2; sendfile++) {
        apr_bucket *e = append_for(request, sendfile == 1);
        const apr_bucket_file *f = e->data;

        ck_assert_int_eq((apr_file_flags_get(f->fd) & APR_FOPEN_SENDFILE_ENABLED) != 0, sendfile == 1);
        apr_brigade_cleanup(bb);
        apr_pool_clear(request);
    }
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("file_apr");
    TCase *t = unit_add_case(s, "descriptors", setup, teardown, 30);

    tcase_add_test(t, descriptor_is_used_again);
    tcase_add_loop_test(t, descriptor_is_used_again_after_it_was_set_aside, 0, 2);
    tcase_add_test(t, responses_at_once_have_descriptors_of_their_own);
    tcase_add_test(t, no_more_are_kept_than_a_file_may_have);
    tcase_add_test(t, no_more_are_kept_than_all_may_have);
    tcase_add_loop_test(t, descriptor_of_a_broken_response_is_closed, 0, 2);
    tcase_add_test(t, several_threads);
    tcase_add_test(t, file_ends_before_its_response);
    tcase_add_test(t, none_without_a_descriptor);
    tcase_add_test(t, sendfile_is_for_core_to_see);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
