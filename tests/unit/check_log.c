/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/log.h"

#include <ctype.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

/* Seconds pass at will, and the wall clock is set. */
static time_t passed, set;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ts);

    ts->tv_sec += passed + (clock == CLOCK_REALTIME ? set : 0);
    return rc;
}

time_t time(time_t *t)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    if (t != NULL)
        *t = ts.tv_sec;
    return ts.tv_sec;
}

static char dir[PATH_MAX], path[PATH_MAX];
static char text[1 << 20]; /* what the log holds */

static void setup(void)
{
    unit_fresh_dir(dir);
    strcpy(path, unit_join(dir, "log"));
    ck_assert_int_eq(fp_log_open(path, FP_LOG_DEBUG), 0);
}

static void teardown(void)
{
    ck_assert_int_eq(fp_log_open("stderr", FP_LOG_INFO), 0);
    passed = set = 0;
}

static const char *read_file(const char *name)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    ck_assert_int_ne(fd, -1);
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    return text;
}

static size_t count(const char *in, const char *what)
{
    size_t n = 0;

    for (const char *p = strstr(in, what); p != NULL; p = strstr(p + 1, what))
        n++;
    return n;
}

static bool has(const char *what)
{
    return strstr(read_file(path), what) != NULL;
}

static size_t lines(void)
{
    return count(read_file(path), "\n");
}

static void repeat(int times, enum fp_log_level level, int id)
{
    for (int i = 0; i < times; i++)
        fp_log(level, id, "again");
}

/* ---- one line ---- */

START_TEST(levels)
{
    static const char *const wrong[] = { "", "errors", "ERROR", "warn", "notice", " info" };

    ck_assert_int_eq(fp_log_level_parse("error"), FP_LOG_ERROR);
    ck_assert_int_eq(fp_log_level_parse("warning"), FP_LOG_WARNING);
    ck_assert_int_eq(fp_log_level_parse("info"), FP_LOG_INFO);
    ck_assert_int_eq(fp_log_level_parse("debug"), FP_LOG_DEBUG);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        ck_assert_int_eq(fp_log_level_parse(wrong[i]), -1);
}
END_TEST

START_TEST(line_has_id_level_and_text)
{
    char pid[32];

    snprintf(pid, sizeof(pid), "[%d]", (int)getpid());
    fp_log(FP_LOG_WARNING, 7, "worker %d is %s", 42, "gone");
    read_file(path);
    ck_assert_ptr_nonnull(strstr(text, "FP0007"));
    ck_assert_ptr_nonnull(strstr(text, "warning"));
    ck_assert_ptr_nonnull(strstr(text, "worker 42 is gone\n"));
    ck_assert_ptr_nonnull(strstr(text, pid));
    ck_assert(isdigit((unsigned char)text[0]));
    ck_assert_uint_eq(count(text, "\n"), 1);
}
END_TEST

START_TEST(threshold)
{
    static const enum fp_log_level all[] = { FP_LOG_ERROR, FP_LOG_WARNING, FP_LOG_INFO, FP_LOG_DEBUG };

    for (size_t at = 0; at < 4; at++) {
        unlink(path);
        ck_assert_int_eq(fp_log_open(path, all[at]), 0);
        for (size_t i = 0; i < 4; i++)
            fp_log(all[i], (int)(10 * at + i), "text");
        ck_assert_uint_eq(lines(), at + 1);
    }
}
END_TEST

START_TEST(errno_is_kept_and_can_be_told)
{
    errno = ENOTDIR;
    fp_log(FP_LOG_ERROR, 1, "cannot open: %m");
    ck_assert_int_eq(errno, ENOTDIR);
    ck_assert(has(strerror(ENOTDIR)));
    errno = EIO;
    repeat(20, FP_LOG_DEBUG, 1);
    fp_log(FP_LOG_ERROR, 1, "left out");
    ck_assert_int_eq(errno, EIO);
}
END_TEST

START_TEST(long_message_is_still_one_line)
{
    static char big[100000];

    memset(big, 'x', sizeof(big) - 1);
    fp_log(FP_LOG_ERROR, 1, "%s", big);
    fp_log(FP_LOG_ERROR, 2, "next");
    read_file(path);
    ck_assert_uint_eq(count(text, "\n"), 2);
    ck_assert_ptr_nonnull(strstr(text, "xxxx\n"));
    ck_assert_ptr_nonnull(strstr(text, "next\n"));
}
END_TEST

/* Paths come from URLs: a stranger must not write lines of his own. */
START_TEST(message_with_line_ends_is_still_one_line)
{
    fp_log(FP_LOG_ERROR, 1, "while it looked at %s",
           "/a\n2026-01-01T00:00:00+0000 flashpached[1] FP0001 info: ready\r\x1b[2J");
    read_file(path);
    ck_assert_uint_eq(count(text, "\n"), 1);
    ck_assert_ptr_null(strchr(text, '\r'));
    ck_assert_ptr_null(strchr(text, '\x1b'));
}
END_TEST

START_TEST(empty_message)
{
    fp_log(FP_LOG_ERROR, 1, "%s", "");
    ck_assert_uint_eq(lines(), 1);
}
END_TEST

/* ---- repetition ---- */

START_TEST(repeated_message_is_limited)
{
    repeat(1000, FP_LOG_ERROR, 3);
    ck_assert_uint_ge(lines(), 1);
    ck_assert_uint_le(lines(), 10);
}
END_TEST

START_TEST(what_was_left_out_is_said_afterwards)
{
    char number[32];
    size_t before;

    repeat(1000, FP_LOG_WARNING, 3);
    before = lines();
    snprintf(number, sizeof(number), " %zu ", 1000 - before);
    passed += 10;
    fp_log(FP_LOG_WARNING, 3, "once more");
    read_file(path);
    ck_assert_msg(strstr(text, number) != NULL, "no%s in: %s", number, text);
    ck_assert_ptr_nonnull(strstr(text, "once more\n"));
    ck_assert_uint_eq(count(text, "FP0003"), count(text, "\n"));
    /* Once said, it is not said again. */
    passed += 10;
    fp_log(FP_LOG_WARNING, 3, "and more");
    ck_assert_uint_eq(lines(), before + 3);
}
END_TEST

START_TEST(few_messages_are_not_limited)
{
    for (int i = 0; i < 50; i++, passed += 10)
        fp_log(FP_LOG_INFO, 4, "now and then");
    ck_assert_uint_eq(lines(), 50);
}
END_TEST

/* Five successes must not hide a failure. */
START_TEST(other_levels_of_an_id_are_not_limited)
{
    repeat(1000, FP_LOG_INFO, 8);
    repeat(1000, FP_LOG_WARNING, 8);
    fp_log(FP_LOG_ERROR, 8, "cannot open the log");
    read_file(path);
    ck_assert_uint_eq(count(text, " info: again"), 5);
    ck_assert_uint_eq(count(text, " warning: again"), 5);
    ck_assert_ptr_nonnull(strstr(text, " error: cannot open the log\n"));
    /* Each level reports how many of its own were left out. */
    passed += 10;
    fp_log(FP_LOG_ERROR, 8, "cannot open the log");
    ck_assert(!has("left out"));
    fp_log(FP_LOG_INFO, 8, "once more");
    ck_assert(has(" info: 995 messages like the next one were left out\n"));
}
END_TEST

START_TEST(other_messages_are_not_limited)
{
    repeat(1000, FP_LOG_ERROR, 3);
    fp_log(FP_LOG_ERROR, 5, "something else");
    ck_assert(has("something else"));
}
END_TEST

START_TEST(debugging_is_not_limited)
{
    repeat(200, FP_LOG_DEBUG, 6);
    ck_assert_uint_eq(lines(), 200);
}
END_TEST

START_TEST(what_is_below_the_threshold_does_not_count)
{
    ck_assert_int_eq(fp_log_open(path, FP_LOG_ERROR), 0);
    repeat(100, FP_LOG_INFO, 8);
    fp_log(FP_LOG_ERROR, 8, "wanted");
    ck_assert_uint_eq(lines(), 1);
}
END_TEST

START_TEST(clock_that_is_set_back)
{
    repeat(100, FP_LOG_ERROR, 9);
    set = -3600;
    passed += 10;
    fp_log(FP_LOG_ERROR, 9, "once more");
    ck_assert(has("once more"));
}
END_TEST

/* ---- the log's places ---- */

START_TEST(file_is_appended_to_and_private)
{
    struct stat st;

    fp_log(FP_LOG_ERROR, 1, "first");
    ck_assert_int_eq(fp_log_open(path, FP_LOG_INFO), 0);
    fp_log(FP_LOG_ERROR, 1, "second");
    ck_assert_uint_eq(lines(), 2);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0137, 0);
}
END_TEST

START_TEST(opening_again_follows_a_rotation)
{
    const char *old = unit_join(dir, "log.1");

    fp_log(FP_LOG_ERROR, 1, "before");
    ck_assert_int_eq(rename(path, old), 0);
    fp_log(FP_LOG_ERROR, 1, "between");
    ck_assert_int_eq(fp_log_open(path, FP_LOG_INFO), 0);
    fp_log(FP_LOG_ERROR, 1, "after");
    ck_assert_uint_eq(count(read_file(old), "\n"), 2);
    ck_assert(has("after"));
    ck_assert_uint_eq(lines(), 1);
}
END_TEST

START_TEST(opening_again_leaks_nothing)
{
    const int before = unit_open_fds();

    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(fp_log_open(path, FP_LOG_INFO), 0);
    ck_assert_int_eq(unit_open_fds(), before);
    ck_assert_int_eq(fp_log_open("stderr", FP_LOG_INFO), 0);
    ck_assert_int_eq(unit_open_fds(), before - 1);
    ck_assert(unit_is_open(STDERR_FILENO));
}
END_TEST

START_TEST(log_and_level_stay_what_they_were_if_the_new_log_cannot_be_opened)
{
    ck_assert_int_eq(fp_log_open(unit_join(dir, "no/log"), FP_LOG_ERROR), -1);
    ck_assert_int_eq(errno, ENOENT);
    ck_assert_int_eq(fp_log_open(dir, FP_LOG_ERROR), -1);
    ck_assert_int_eq(errno, EISDIR);
    fp_log(FP_LOG_ERROR, 1, "still here");
    ck_assert_uint_eq(lines(), 1);
    fp_log(FP_LOG_INFO, 1, "still here");
    ck_assert_uint_eq(lines(), 2);
}
END_TEST

/* Started as root, the daemon would write wherever the link leads. */
START_TEST(link_is_not_followed)
{
    const char *link = unit_join(dir, "link");

    ck_assert_int_eq(symlink("log", link), 0);
    ck_assert_int_eq(fp_log_open(link, FP_LOG_INFO), -1);
    ck_assert_int_eq(errno, ELOOP);
}
END_TEST

/* Started as root, the daemon would give away whatever the path names. */
START_TEST(only_a_file_that_was_made_is_given_away)
{
    const char *other = unit_join(dir, "other");
    struct stat st;

    ck_assert_int_eq(fp_log_chown(geteuid(), getegid()), 0);
    ck_assert_int_eq(close(open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)), 0);
    ck_assert_int_eq(fp_log_open(other, FP_LOG_INFO), 0);
    /* Without root's rights this would fail. */
    ck_assert_int_eq(fp_log_chown(geteuid() + 1, getegid()), 0);
    ck_assert_int_eq(stat(other, &st), 0);
    ck_assert_uint_eq(st.st_uid, geteuid());
    unlink(other);
    ck_assert_int_eq(fp_log_open(other, FP_LOG_INFO), 0);
    if (geteuid() != 0)
        return;
    ck_assert_int_eq(fp_log_chown(1, 1), 0);
    ck_assert_int_eq(stat(other, &st), 0);
    ck_assert_uint_eq(st.st_uid, 1);
}
END_TEST

START_TEST(fifo_holds_nobody_up)
{
    const char *fifo = unit_join(dir, "fifo");
    int reader;

    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    ck_assert_int_eq(fp_log_open(fifo, FP_LOG_DEBUG), -1);
    ck_assert_int_eq(errno, ENXIO);
    reader = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_eq(fp_log_open(fifo, FP_LOG_DEBUG), 0);
    /* More than it holds: the rest is lost. */
    repeat(10000, FP_LOG_DEBUG, 1);
    ck_assert_int_gt(read(reader, text, sizeof(text)), 0);
    close(reader);
}
END_TEST

START_TEST(children_do_not_inherit_the_log)
{
    const int here = unit_open_fds();
    char name[64], target[PATH_MAX];
    int seen = 0;

    for (int fd = 3; fd < here + 16; fd++) {
        ssize_t n;

        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        n = readlink(name, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = '\0';
        if (strcmp(target, path) != 0)
            continue;
        seen++;
        ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
    ck_assert_int_eq(seen, 1);
}
END_TEST

static void with_stderr_in(const char *name, const char *target)
{
    const int saved = dup(STDERR_FILENO);
    int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_ne(dup2(fd, STDERR_FILENO), -1);
    close(fd);
    ck_assert_int_eq(fp_log_open(target, FP_LOG_INFO), 0);
    fp_log(FP_LOG_ERROR, 1, "where am I");
    ck_assert_int_eq(fp_log_open(path, FP_LOG_INFO), 0);
    ck_assert_int_ne(dup2(saved, STDERR_FILENO), -1);
    close(saved);
}

START_TEST(stderr_and_syslog)
{
    const char *name = unit_join(dir, "stderr");

    with_stderr_in(name, "stderr");
    ck_assert_uint_eq(count(read_file(name), "where am I\n"), 1);
    unlink(name);
    with_stderr_in(name, "syslog");
    ck_assert_str_eq(read_file(name), "");
    ck_assert_uint_eq(lines(), 0);
    fp_log(FP_LOG_ERROR, 2, "back in the file");
    ck_assert_uint_eq(lines(), 1);
}
END_TEST

START_TEST(full_disk_does_not_end_the_service)
{
    ck_assert_int_eq(fp_log_open("/dev/full", FP_LOG_INFO), 0);
    errno = 0;
    fp_log(FP_LOG_ERROR, 1, "lost");
    ck_assert_int_eq(errno, 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("log");
    TCase *t = unit_add_case(s, "line", setup, teardown, 0);

    tcase_add_test(t, levels);
    tcase_add_test(t, line_has_id_level_and_text);
    tcase_add_test(t, threshold);
    tcase_add_test(t, errno_is_kept_and_can_be_told);
    tcase_add_test(t, long_message_is_still_one_line);
    tcase_add_test(t, message_with_line_ends_is_still_one_line);
    tcase_add_test(t, empty_message);
    t = unit_add_case(s, "repetition", setup, teardown, 0);
    tcase_add_test(t, repeated_message_is_limited);
    tcase_add_test(t, what_was_left_out_is_said_afterwards);
    tcase_add_test(t, few_messages_are_not_limited);
    tcase_add_test(t, other_levels_of_an_id_are_not_limited);
    tcase_add_test(t, other_messages_are_not_limited);
    tcase_add_test(t, debugging_is_not_limited);
    tcase_add_test(t, what_is_below_the_threshold_does_not_count);
    tcase_add_test(t, clock_that_is_set_back);
    t = unit_add_case(s, "target", setup, teardown, 0);
    tcase_add_test(t, file_is_appended_to_and_private);
    tcase_add_test(t, opening_again_follows_a_rotation);
    tcase_add_test(t, opening_again_leaks_nothing);
    tcase_add_test(t, log_and_level_stay_what_they_were_if_the_new_log_cannot_be_opened);
    tcase_add_test(t, link_is_not_followed);
    tcase_add_test(t, only_a_file_that_was_made_is_given_away);
    tcase_add_test(t, fifo_holds_nobody_up);
    tcase_add_test(t, children_do_not_inherit_the_log);
    tcase_add_test(t, stderr_and_syslog);
    tcase_add_test(t, full_disk_does_not_end_the_service);
    return unit_run(s);
}
