/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "privsep/sandbox.h"

#include <errno.h>
#include <stdlib.h>

#ifdef HAVE_SECCOMP

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shared/area.h"
#include "wire/packet.h"

#define END            (-1) /* of a list: no call has this number */
#define MAX_CONDITIONS 2

struct fp_sandbox {
    struct sock_fprog program;
};

/* A call that is allowed with some arguments only. */
struct narrowed {
    int call;
    unsigned n;
    struct scmp_arg_cmp conditions[MAX_CONDITIONS];
};

/* clang-format off */
#define BITS(argument, mask, value) { argument, SCMP_CMP_MASKED_EQ, mask, value }
#define IS(argument, value) { argument, SCMP_CMP_EQ, value, 0 }

/* The C library needs these in every process.  Where the vDSO has no clock, time is a call, too. */
static const int common_calls[] = {
    SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
    SCMP_SYS(clock_gettime), SCMP_SYS(clock_gettime64), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid),
    SCMP_SYS(getegid), SCMP_SYS(getrandom), SCMP_SYS(futex), SCMP_SYS(sched_yield),
    SCMP_SYS(rt_sigreturn), SCMP_SYS(sigreturn), SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigaction), SCMP_SYS(restart_syscall), SCMP_SYS(exit), SCMP_SYS(exit_group),
    SCMP_SYS(close), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(pread64), END
};

/* Other commands of fcntl reach other processes.  F_SETOWN and O_ASYNC send them signals; a lease
 * (F_SETLEASE) or a lock makes them wait. */
#define FCNTL(call) \
    { call, 1, { IS(1, F_DUPFD_CLOEXEC) } }, \
    { call, 1, { IS(1, F_GETFD) } }, \
    { call, 1, { IS(1, F_SETFD) } }, \
    { call, 1, { IS(1, F_GETFL) } }, \
    { call, 2, { IS(1, F_SETFL), BITS(2, O_ASYNC | O_DIRECT | O_NOATIME, 0) } }, \
    { call, 1, { IS(1, F_ADD_SEALS) } }, \
    { call, 1, { IS(1, F_GET_SEALS) } }

static const struct narrowed common_narrowed[] = {
    FCNTL(SCMP_SYS(fcntl)),
    FCNTL(SCMP_SYS(fcntl64)),
    { SCMP_SYS(memfd_create), 1,
      { BITS(1, ~(scmp_datum_t)(MFD_CLOEXEC | MFD_ALLOW_SEALING | FP_MFD_NOEXEC_SEAL), 0) } },
    { SCMP_SYS(mmap), 1, { BITS(2, PROT_EXEC, 0) } },
    { SCMP_SYS(mmap2), 1, { BITS(2, PROT_EXEC, 0) } },
    { SCMP_SYS(mprotect), 1, { BITS(2, PROT_EXEC, 0) } },
    { .call = END }
};

/* libev makes a new epoll set if it finds an unknown descriptor in the old one. */
static const int daemon_calls[] = {
    SCMP_SYS(epoll_create), SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl), SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait),
    SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(select), SCMP_SYS(pselect6),
    SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(lseek), SCMP_SYS(_llseek),
    SCMP_SYS(fstat), SCMP_SYS(fstat64), SCMP_SYS(newfstatat), SCMP_SYS(fstatat64),
    SCMP_SYS(stat), SCMP_SYS(stat64), SCMP_SYS(lstat), SCMP_SYS(lstat64),
    SCMP_SYS(dup2), SCMP_SYS(dup3), SCMP_SYS(ftruncate), SCMP_SYS(ftruncate64),
    SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(recvfrom), SCMP_SYS(recv), SCMP_SYS(sendto),
    SCMP_SYS(send), SCMP_SYS(shutdown), SCMP_SYS(getsockopt),
    SCMP_SYS(inotify_rm_watch), SCMP_SYS(wait4), SCMP_SYS(waitpid),
#if !defined(__NR_fstat) && !defined(__NR_fstat64)
    SCMP_SYS(statx),
#endif
    SCMP_SYS(connect), END
};
/* syslog(3) and sd_notify(3) make their sockets when they need them.  Beside these connect can reach
 * the fleet's connection to Redis alone. */
static const struct narrowed daemon_narrowed[] = {
    { SCMP_SYS(socket), 2, { IS(0, AF_UNIX),
                             BITS(1, ~(scmp_datum_t)(SOCK_CLOEXEC | SOCK_NONBLOCK), SOCK_DGRAM) } },
    { SCMP_SYS(fallocate), 1, { IS(1, 0) } },
    { SCMP_SYS(ioctl), 1, { IS(1, FIONREAD) } },
    /* sd_notify(3) */
    { SCMP_SYS(setsockopt), 2, { IS(1, SOL_SOCKET), IS(2, SO_SNDBUF) } },
    { SCMP_SYS(setsockopt), 2, { IS(1, SOL_SOCKET), IS(2, SO_SNDBUFFORCE) } },
    { .call = END }
};

static const int worker_calls[] = {
    SCMP_SYS(statx), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(inotify_add_watch),
    SCMP_SYS(fstatfs), SCMP_SYS(fstatfs64), SCMP_SYS(pwrite64), END
};
/* openat2 has its flags in memory, which a filter cannot read. */
static const struct narrowed worker_narrowed[] = {
    { SCMP_SYS(open), 1, { BITS(1, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY) } },
    { SCMP_SYS(openat), 1, { BITS(2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY) } },
    { .call = END }
};
static const int closer_calls[] = { SCMP_SYS(getppid), END };
static const struct narrowed closer_narrowed[] = { { .call = END } };
/* clang-format on */

static const struct {
    const int *calls;
    const struct narrowed *narrowed;
} lists[] = {
    [FP_SANDBOX_DAEMON] = { daemon_calls, daemon_narrowed },
    [FP_SANDBOX_WORKER] = { worker_calls, worker_narrowed },
    [FP_SANDBOX_CLOSER] = { closer_calls, closer_narrowed },
};

/* A number below zero is libseccomp's own for a call that this machine lacks: libseccomp translates it
 * or leaves it out. */
static bool allow(scmp_filter_ctx ctx, const int *calls, const struct narrowed *narrowed)
{
    int rc = 0;

    for (; rc == 0 && *calls != END; calls++)
        rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, *calls, 0);
    for (; rc == 0 && narrowed->call != END; narrowed++)
        rc = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, narrowed->call, narrowed->n, narrowed->conditions);
    errno = -rc;
    return rc == 0;
}

/* Reads the filter's program from fd. */
static struct fp_sandbox *take_program(int fd)
{
    const off_t size = lseek(fd, 0, SEEK_END);
    struct fp_sandbox *s = size > 0 ? calloc(1, sizeof(*s)) : NULL;

    if (s == NULL)
        return NULL;
    s->program.len = (unsigned short)((size_t)size / sizeof(*s->program.filter));
    s->program.filter = malloc((size_t)size);
    if (s->program.filter == NULL || pread(fd, s->program.filter, (size_t)size, 0) != size)
        fp_sandbox_destroy(&s);
    return s;
}

struct fp_sandbox *fp_sandbox_create(enum fp_sandbox_kind kind)
{
    const unsigned refuse = SECCOMP_RET_ERRNO;
    struct fp_sandbox *s = NULL;
    scmp_filter_ctx ctx;
    int fd;

    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &refuse) == -1)
        return NULL;
    ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (ctx == NULL)
        return NULL;
    /* Level 2 makes a tree of comparisons instead of a list. */
    seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    /* The filter is compiled once, so that workers enter it by a single call. */
    fd = fp_memfd_create("flashpache-filter");
    if (fd != -1 && allow(ctx, common_calls, common_narrowed)
        && allow(ctx, lists[kind].calls, lists[kind].narrowed) && seccomp_export_bpf(ctx, fd) == 0)
        s = take_program(fd);
    fp_close(&fd);
    seccomp_release(ctx);
    return s;
}

void fp_sandbox_destroy(struct fp_sandbox **s)
{
    if (*s != NULL)
        free((*s)->program.filter);
    free(*s);
    *s = NULL;
}

int fp_sandbox_enter(const struct fp_sandbox *s)
{
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_LOG, &s->program);
}

#else

struct fp_sandbox *fp_sandbox_create(enum fp_sandbox_kind kind)
{
    (void)kind;
    errno = ENOSYS;
    return NULL;
}

void fp_sandbox_destroy(struct fp_sandbox **s)
{
    *s = NULL;
}

int fp_sandbox_enter(const struct fp_sandbox *s)
{
    (void)s;
    errno = ENOSYS;
    return -1;
}

#endif
