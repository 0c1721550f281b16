/* SPDX-License-Identifier: Apache-2.0 */
/* A list takes the file's place when it is whole; failures are reported, and leave the file as it was. */
#include "config.h"
#include "privsep/lister.h"

#include <sys/socket.h>

#include "shared/area.h"
#include "unit.h"
#include "wire/packet.h"

#define PATIENCE_MS 20000
#define LARGE       ((size_t)300000) /* bytes: more than the process copies at once */

static char dir[PATH_MAX], file[PATH_MAX];
static struct fp_lister lister;

static void start(void)
{
    lister = (struct fp_lister)FP_LISTER_NONE;
    ck_assert_int_eq(fp_lister_start(&lister, file, false), 0);
}

static void setup(void)
{
    unit_fresh_dir(dir);
    strcpy(file, unit_join(dir, "paths"));
    start();
}

static void teardown(void)
{
    fp_lister_stop(&lister);
}

static int list_of(const char *text, size_t len)
{
    const int fd = fp_memfd_create("list");

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(write(fd, text, len), (ssize_t)len);
    return fd;
}

/* 0, or errno. */
static int written(const char *text, size_t len)
{
    int fd = list_of(text, len), why;

    ck_assert_int_eq(fp_lister_write(&lister, fd), 0);
    why = fp_lister_hear(&lister, PATIENCE_MS) == 0 ? 0 : errno;
    fp_close(&fd);
    return why;
}

static void assert_file(const char *text, size_t len)
{
    static char found[LARGE + 1];
    struct stat st;
    int fd = open(file, O_RDONLY | O_CLOEXEC);

    ck_assert_int_eq(read(fd, found, sizeof(found)), (ssize_t)len);
    ck_assert_mem_eq(found, text, len);
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0600);
    close(fd);
    ck_assert_int_eq(access(unit_join(dir, "paths.new"), F_OK), -1);
}

START_TEST(lists_replace_each_other)
{
    static char large[LARGE];

    memset(large, 'x', sizeof(large));
    ck_assert_int_eq(written("one", 3), 0);
    assert_file("one", 3);
    ck_assert_int_eq(written(large, sizeof(large)), 0);
    assert_file(large, sizeof(large));
    ck_assert_int_eq(written("two", 3), 0);
    assert_file("two", 3);
}
END_TEST

START_TEST(others_files_are_not_written_to)
{
    unit_write_file(unit_join(dir, "target"), "theirs");
    ck_assert_int_eq(symlink("target", unit_join(dir, "paths.new")), 0);
    ck_assert_int_eq(written("ours", 4), 0);
    assert_file("ours", 4);
    strcpy(file, unit_join(dir, "target"));
    ck_assert_int_eq(access(file, F_OK), 0);
    ck_assert_int_eq(chmod(file, 0600), 0);
    assert_file("theirs", 6);
}
END_TEST

START_TEST(a_failure_leaves_the_file)
{
    ck_assert_int_eq(written("one", 3), 0);
    ck_assert_int_eq(mkdir(unit_join(dir, "paths.new"), 0700), 0);
    ck_assert_int_ne(written("two", 3), 0);
    ck_assert_int_eq(rmdir(unit_join(dir, "paths.new")), 0);
    assert_file("one", 3);
    ck_assert_int_eq(written("two", 3), 0);
    assert_file("two", 3);
}
END_TEST

START_TEST(no_result_is_waited_for_too_long)
{
    ck_assert_int_eq(fp_lister_hear(&lister, 10), -1);
    ck_assert_int_eq(errno, ETIMEDOUT);
}
END_TEST

/* The stop does not wait for a list that is being written, and the process writes it all the same. */
START_TEST(a_list_survives_the_stop)
{
    struct stat st;
    int fd = list_of("last", 4);

    ck_assert_int_eq(fp_lister_write(&lister, fd), 0);
    fp_close(&fd);
    fp_lister_stop(&lister);
    ck_assert_int_eq(lister.sock, -1);
    for (int i = 0; stat(file, &st) == -1; i++) {
        ck_assert_int_lt(i, PATIENCE_MS);
        unit_sleep_ms(1);
    }
    start();
    assert_file("last", 4);
}
END_TEST

START_TEST(an_ended_process_is_noticed)
{
    int fd = list_of("x", 1);

    ck_assert_int_eq(shutdown(lister.sock, SHUT_WR), 0);
    ck_assert(unit_wait_readable(lister.sock, PATIENCE_MS));
    ck_assert_int_eq(fp_lister_hear(&lister, 0), -1);
    ck_assert_int_eq(errno, EPIPE);
    ck_assert_int_eq(fp_lister_write(&lister, fd), -1);
    ck_assert_int_eq(errno, EPIPE);
    fp_close(&fd);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("lister");
    TCase *t = unit_add_case(s, "lists", setup, teardown, 0);

    tcase_add_test(t, lists_replace_each_other);
    tcase_add_test(t, others_files_are_not_written_to);
    tcase_add_test(t, a_failure_leaves_the_file);
    tcase_add_test(t, no_result_is_waited_for_too_long);
    tcase_add_test(t, a_list_survives_the_stop);
    tcase_add_test(t, an_ended_process_is_noticed);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
