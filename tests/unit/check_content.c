/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/content.h"

#include <sys/mman.h>

#include "changes/mount_list.h"
#include "unit.h"
#include "wire/answer.h"
#include "wire/packet.h"

#define LARGEST 200000u /* several pieces, the last of them not whole */
#define SLOW_MS 1000    /* longer than a worker's patience */

static const struct fp_mount_traits local = { .known = true, .local = true };
static const struct fp_mount_traits remote = { .known = true, .remote = true };

static int file;
static int fds_at_rest;

static bool is_slow; /* SLOW_MS go by between two looks at the clock */
static int looks;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    const int rc = __real_clock_gettime(clock, now);

    if (is_slow)
        now->tv_sec += ++looks * SLOW_MS / 1000;
    return rc;
}

static void setup(void)
{
    fds_at_rest = unit_open_fds();
    file = memfd_create("file", MFD_CLOEXEC);
    ck_assert_int_ne(file, -1);
}

static void teardown(void)
{
    fp_close(&file);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

/* A file whose change time lies that far back. */
static struct fp_meta changed_ago(int seconds)
{
    struct timespec now;
    struct fp_meta m = { .mode = S_IFREG | 0644, .size = 100 };

    clock_gettime(CLOCK_REALTIME, &now);
    m.ctime.sec = now.tv_sec - seconds;
    m.ctime.nsec = (uint32_t)now.tv_nsec;
    return m;
}

START_TEST(files_that_are_due)
{
    struct fp_meta m = changed_ago(2);

    ck_assert(fp_content_is_wanted(&m, 100, &local));
    ck_assert(fp_content_is_wanted(&m, UINT32_MAX, &local));
    ck_assert(!fp_content_is_wanted(&m, 99, &local));
    ck_assert(!fp_content_is_wanted(&m, 0, &local));
    m.size = 0;
    ck_assert(!fp_content_is_wanted(&m, 100, &local));
    m.size = (uint64_t)UINT32_MAX + 1;
    ck_assert(!fp_content_is_wanted(&m, UINT32_MAX, &local));
    m.size = 100;
    m.mode = S_IFDIR | 0755;
    ck_assert(!fp_content_is_wanted(&m, 100, &local));
}
END_TEST

START_TEST(files_that_changed_just_now)
{
    struct fp_meta m = changed_ago(0);

    ck_assert(!fp_content_is_wanted(&m, 100, &local));
    m = changed_ago(1);
    ck_assert(!fp_content_is_wanted(&m, 100, &local));
    m = changed_ago(-100);
    ck_assert(!fp_content_is_wanted(&m, 100, &local));
    m = changed_ago(3);
    ck_assert(fp_content_is_wanted(&m, 100, &local));
    m.ctime.sec = INT64_MIN;
    ck_assert(fp_content_is_wanted(&m, 100, &local));
    m.ctime.sec = INT64_MAX;
    ck_assert(!fp_content_is_wanted(&m, 100, &local));
}
END_TEST

/* There nobody holds a file open, so it is read whenever it changed. */
START_TEST(files_of_remote_mounts)
{
    struct fp_meta m = changed_ago(0);

    ck_assert(fp_content_is_wanted(&m, 100, &remote));
    ck_assert(!fp_content_is_settled(&m, &remote));
    ck_assert(!fp_content_is_wanted(&m, 99, &remote));
    m.size = 0;
    ck_assert(!fp_content_is_wanted(&m, 100, &remote));
}
END_TEST

static void fill(uint8_t *bytes, size_t n)
{
    uint64_t seed = n + 1;

    unit_random_bytes(&seed, bytes, n);
    ck_assert_int_eq(pwrite(file, bytes, n, 0), (ssize_t)n);
}

START_TEST(content_is_the_files)
{
    static const size_t sizes[] = { 1, 4096, 5000, 16384, 16385, 65536, 65537, LARGEST };
    static uint8_t bytes[LARGEST], got[LARGEST + 1];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int fd;

        fill(bytes, sizes[i]);
        ck_assert_int_eq(lseek(file, 7, SEEK_SET), 7);
        fd = fp_content_create(file, sizes[i]);
        ck_assert_int_ne(fd, -1);
        ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
        ck_assert_int_eq(pread(fd, got, sizeof(got), 0), (ssize_t)sizes[i]);
        ck_assert_mem_eq(got, bytes, sizes[i]);
        ck_assert_int_eq(lseek(file, 0, SEEK_CUR), 7);
        ck_assert_int_eq(lseek(fd, 0, SEEK_CUR), 0);
        fp_close(&fd);
    }
}
END_TEST

START_TEST(nobody_can_change_it)
{
    uint8_t bytes[100];
    void *p;
    int fd;

    fill(bytes, sizeof(bytes));
    fd = fp_content_create(file, sizeof(bytes));
    ck_assert(fp_is_sealed(fd, sizeof(bytes)));
    ck_assert_int_eq(pwrite(fd, "x", 1, 0), -1);
    ck_assert_int_eq(ftruncate(fd, 0), -1);
    ck_assert_int_eq(ftruncate(fd, 1000), -1);
    ck_assert_ptr_eq(mmap(NULL, 100, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    p = mmap(NULL, 100, PROT_READ, MAP_PRIVATE, fd, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    ck_assert_mem_eq(p, bytes, sizeof(bytes));
    munmap(p, 100);
    fp_close(&fd);
}
END_TEST

START_TEST(file_that_is_shorter)
{
    uint8_t bytes[100];

    ck_assert_int_eq(fp_content_create(file, 1), -1);
    fill(bytes, sizeof(bytes));
    ck_assert_int_eq(fp_content_create(file, 101), -1);
    ck_assert_int_eq(fp_content_create(file, 1 << 20), -1);
}
END_TEST

/* A mount that is only slow shall not seem to hang.  One piece is always read. */
START_TEST(file_that_takes_too_long)
{
    static uint8_t bytes[LARGEST];
    int fd;

    fill(bytes, sizeof(bytes));
    is_slow = true;
    ck_assert_int_eq(fp_content_create(file, sizeof(bytes)), -1);
    fd = fp_content_create(file, 16384);
    is_slow = false;
    ck_assert_int_ne(fd, -1);
    fp_close(&fd);
}
END_TEST

START_TEST(file_that_cannot_be_read)
{
    int directory = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    ck_assert_int_eq(fp_content_create(directory, 10), -1);
    ck_assert_int_eq(fp_content_create(-1, 10), -1);
    fp_close(&directory);
}
END_TEST

START_TEST(no_descriptor_free)
{
    struct rlimit before;
    uint8_t bytes[10];

    fill(bytes, sizeof(bytes));
    before = unit_leave_fds(0);
    ck_assert_int_eq(fp_content_create(file, 10), -1);
    unit_restore_fds(&before);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("content");
    TCase *t = unit_add_case(s, "due", NULL, NULL, 0);

    tcase_add_test(t, files_that_are_due);
    tcase_add_test(t, files_that_changed_just_now);
    tcase_add_test(t, files_of_remote_mounts);
    t = unit_add_case(s, "made", setup, teardown, 0);
    tcase_add_test(t, content_is_the_files);
    tcase_add_test(t, nobody_can_change_it);
    tcase_add_test(t, file_that_is_shorter);
    tcase_add_test(t, file_that_takes_too_long);
    tcase_add_test(t, file_that_cannot_be_read);
    tcase_add_test(t, no_descriptor_free);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
