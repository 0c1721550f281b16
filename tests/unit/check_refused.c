/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that a filter refuses are found, by any errno, before anything depends on them. */
#include "config.h"
#include "base/refused.h"

#include <sys/syscall.h>

#include "unit.h"
#include "wire/packet.h"

START_TEST(a_whole_system_refuses_none)
{
    ck_assert_ptr_null(fp_refused_call());
    ck_assert(!fp_call_is_refused(SYS_inotify_add_watch));
    ck_assert(!fp_call_is_refused(SYS_name_to_handle_at));
}
END_TEST

START_TEST(an_unknown_call_is_refused)
{
    ck_assert(fp_call_is_refused(100000));
    ck_assert_int_eq(errno, ENOSYS);
}
END_TEST

#ifdef HAVE_SECCOMP

#include <seccomp.h>

/* The words of a process for which that call fails with that errno. */
static int in_filter(int call, int error, int (*what)(void))
{
    int status;
    const pid_t pid = fork();

    if (pid == 0) {
        scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

        if (seccomp_rule_add(ctx, SCMP_ACT_ERRNO((uint32_t)error), call, 0) != 0 || seccomp_load(ctx) != 0)
            _exit(255);
        _exit(what());
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int name_statx(void)
{
    const char *call = fp_refused_call();
    const int error = errno;

    return call != NULL && strcmp(call, "statx") == 0 ? error : 0;
}

START_TEST(the_refused_call_is_named)
{
    static const int errors[] = { EPERM, ENOSYS, EACCES, ENOTSUP };

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        ck_assert_int_eq(in_filter(SCMP_SYS(statx), errors[i], name_statx), errors[i]);
    ck_assert_int_eq(in_filter(SCMP_SYS(openat2), EPERM, name_statx), 0);
}
END_TEST

static int identify(void)
{
    const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat seen, known;

    return fp_is_readable_file(fd) && fp_identify(fd, "", &known) == 0 && fstat(fd, &seen) == 0
           && known.st_ino == seen.st_ino && known.st_dev == seen.st_dev && known.st_mode == seen.st_mode;
}

START_TEST(a_file_is_known_without_statx)
{
    ck_assert_int_eq(in_filter(SCMP_SYS(openat2), EPERM, identify), 1);
    ck_assert_int_eq(in_filter(SCMP_SYS(statx), EPERM, identify), 1);
    ck_assert_int_eq(in_filter(SCMP_SYS(statx), ENOSYS, identify), 1);
}
END_TEST

static void add_filtered(TCase *t)
{
    tcase_add_test(t, the_refused_call_is_named);
    tcase_add_test(t, a_file_is_known_without_statx);
}

#else

static void add_filtered(TCase *t)
{
    (void)t;
}

#endif

int main(void)
{
    Suite *s = suite_create("refused");
    TCase *t = tcase_create("calls");

    tcase_add_test(t, a_whole_system_refuses_none);
    tcase_add_test(t, an_unknown_call_is_refused);
    add_filtered(t);
    suite_add_tcase(s, t);
    return unit_run(s);
}
