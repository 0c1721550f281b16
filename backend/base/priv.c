/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/priv.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LEAST_DESCRIPTORS 256
#define MOST_DESCRIPTORS  1048576
#define PROMPT_NICE       (-10)
#define PROMPT_SLICE_NS   100000u

/* The structure of sched_setattr(2), which glibc declares since 2.41 only. */
struct scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

void fp_priv_empty_bounding_set(void)
{
    for (unsigned long cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != -1; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

static int become(const char *user, uid_t uid, gid_t gid)
{
    if (initgroups(user, gid) == -1 || setresgid(gid, gid, gid) == -1 || setresuid(uid, uid, uid) == -1)
        return -1;
    /* A way back to root would be a way to every file. */
    if (setuid(0) != -1) {
        errno = EPERM;
        return -1;
    }
    return 0;
}

int fp_priv_drop(const char *user, uid_t uid, gid_t gid)
{
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0, 0, 0 } };

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1)
        return -1;
    fp_priv_empty_bounding_set();
    if (geteuid() == 0 && become(user, uid, gid) == -1)
        return -1;
    /* A service manager may have given ambient capabilities to a user who is not root. */
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == -1)
        return -1;
    if (syscall(SYS_capset, &head, none) == -1)
        return -1;
    fp_priv_close_memory();
    return 0;
}

bool fp_priv_is_exposed(void)
{
    return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 1;
}

void fp_priv_close_memory(void)
{
    /* fs.suid_dumpable 2 (dumps for root alone) is as closed, and nobody could set it again. */
    if (fp_priv_is_exposed())
        prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

bool fp_priv_passes_permissions(void)
{
    const uint32_t passing = CAP_TO_MASK(CAP_DAC_OVERRIDE) | CAP_TO_MASK(CAP_DAC_READ_SEARCH);
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3] = { { 0, 0, 0 } };

    if (syscall(SYS_capget, &head, has) == -1)
        return false;
    return (has[CAP_TO_INDEX(CAP_DAC_OVERRIDE)].effective & passing) != 0;
}

size_t fp_priv_raise_descriptors(void)
{
    struct rlimit rl;

    if (getrlimit(RLIMIT_NOFILE, &rl) == -1)
        return LEAST_DESCRIPTORS;
    rl.rlim_cur = rl.rlim_max;
    setrlimit(RLIMIT_NOFILE, &rl);
    getrlimit(RLIMIT_NOFILE, &rl);
    return rl.rlim_cur < MOST_DESCRIPTORS ? (size_t)rl.rlim_cur : MOST_DESCRIPTORS;
}

/*
 * With autogroups the kernel shares the processors among sessions, and a nice value counts only within its
 * own.  So a session that the process leads gets the value, too; in another one there is more than this
 * process.  False with errno: it may not be set.
 */
static bool prefer_session(void)
{
    static const char path[] = "/proc/self/autogroup";
    char text[64] = "";
    int fd, now = 0, saved;
    bool done;

    if (getsid(0) != getpid() || (fd = open(path, O_RDWR | O_CLOEXEC)) == -1)
        return true; /* the kernel may have none */
    if (read(fd, text, sizeof(text) - 1) <= 0 || sscanf(text, "/autogroup-%*d nice %d", &now) != 1)
        done = true; /* the process is in a control group of its own */
    else
        done = now <= PROMPT_NICE || dprintf(fd, "%d", PROMPT_NICE) > 0;
    saved = errno;
    close(fd);
    errno = saved;
    return done;
}

bool fp_priv_run_promptly(void)
{
    struct scheduling s = { .size = sizeof(s),
                            .flags = SCHED_FLAG_RESET_ON_FORK,
                            .nice = getpriority(PRIO_PROCESS, 0),
                            .runtime = PROMPT_SLICE_NS };

    if (s.nice > PROMPT_NICE) {
        s.nice = PROMPT_NICE;
        if (syscall(SYS_sched_setattr, 0, &s, 0) == 0)
            return prefer_session();
        s.nice = getpriority(PRIO_PROCESS, 0);
    }
    /* A short slice needs no right. */
    syscall(SYS_sched_setattr, 0, &s, 0);
    return s.nice <= PROMPT_NICE && prefer_session();
}
