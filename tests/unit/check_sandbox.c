/* SPDX-License-Identifier: Apache-2.0 */
/* Each list of system calls: all others are refused, the needed ones work. */
#include "config.h"
#include "privsep/sandbox.h"

#include <asm/sockios.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "shared/area.h"
#include "unit.h"
#include "wire/packet.h"

static char dir[PATH_MAX];

static void setup(void)
{
    unit_fresh_dir(dir);
}

#ifndef HAVE_SECCOMP

START_TEST(there_is_none)
{
    ck_assert_ptr_null(fp_sandbox_create(FP_SANDBOX_DAEMON));
    ck_assert_int_eq(errno, ENOSYS);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, there_is_none);
}

#else

/* The result of a process in that sandbox. */
static bool holds(enum fp_sandbox_kind kind, bool (*what)(void))
{
    struct fp_sandbox *s = fp_sandbox_create(kind);
    int status;
    pid_t pid;

    ck_assert_ptr_nonnull(s);
    pid = fork();
    if (pid == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 || fp_sandbox_enter(s) == -1)
            _exit(2);
        _exit(what() ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    fp_sandbox_destroy(&s);
    ck_assert_ptr_null(s);
    ck_assert(WIFEXITED(status));
    ck_assert_int_ne(WEXITSTATUS(status), 2);
    return WEXITSTATUS(status) == 0;
}

static bool is_refused(long number, long a, long b, long c)
{
    errno = 0;
    return syscall(number, a, b, c, 0, 0, 0) == -1 && errno == ENOSYS;
}

/* ---- calls that neither may make ---- */

/* None of them does anything when it is given nothing. */
/* clang-format off */
static const struct { const char *name; long number; } never[] = {
#define CALL(name) { #name, SYS_ ## name }
    CALL(execve), CALL(execveat), CALL(clone3), CALL(ptrace), CALL(process_vm_readv),
    CALL(process_vm_writev), CALL(kill), CALL(tkill), CALL(rt_sigqueueinfo), CALL(pidfd_getfd),
    CALL(openat2), CALL(open_by_handle_at), CALL(unlinkat), CALL(renameat2), CALL(linkat),
    CALL(symlinkat), CALL(mkdirat), CALL(mknodat), CALL(truncate), CALL(fchmod), CALL(fchmodat),
    CALL(fchown), CALL(fchownat), CALL(utimensat), CALL(setxattr), CALL(mount), CALL(umount2),
    CALL(move_mount), CALL(fsopen), CALL(pivot_root), CALL(chroot), CALL(chdir), CALL(unshare),
    CALL(setns), CALL(setuid), CALL(setresuid), CALL(setgid), CALL(setgroups), CALL(capset),
    CALL(prctl), CALL(seccomp), CALL(bpf), CALL(perf_event_open), CALL(io_uring_setup),
    CALL(userfaultfd), CALL(init_module), CALL(finit_module), CALL(kexec_load), CALL(add_key),
    CALL(keyctl), CALL(fanotify_init), CALL(bind), CALL(listen), CALL(socketpair), CALL(shmget),
    CALL(personality), CALL(setrlimit), CALL(prlimit64), CALL(getdents64),
#ifdef SYS_open
    CALL(creat), CALL(unlink), CALL(rename), CALL(link), CALL(symlink), CALL(mkdir), CALL(mknod),
    CALL(chmod), CALL(chown),
#endif
#undef CALL
};
/* clang-format on */

static bool nothing_dangerous(void)
{
    for (size_t i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        if (is_refused(never[i].number, 0, 0, 0))
            continue;
        fprintf(stderr, "%s is not refused\n", never[i].name);
        return false;
    }
    return true;
}

/* Were it not refused there would be two processes, and a file. */
static bool no_process(void)
{
    return fork() == -1 && errno == ENOSYS;
}

static bool no_code(void)
{
    void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p != MAP_FAILED && mprotect(p, 4096, PROT_READ) == 0
           && mprotect(p, 4096, PROT_READ | PROT_EXEC) == -1
           && mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static bool no_network(void)
{
    return socket(AF_INET, SOCK_STREAM, 0) == -1 && socket(AF_INET, SOCK_DGRAM, 0) == -1
           && socket(AF_INET6, SOCK_STREAM, 0) == -1 && socket(AF_UNIX, SOCK_STREAM, 0) == -1
           && socket(AF_UNIX, SOCK_SEQPACKET, 0) == -1 && socket(AF_NETLINK, SOCK_RAW, 0) == -1
           && socket(AF_PACKET, SOCK_DGRAM, 0) == -1;
}

static bool no_writing(void)
{
    const char *path = unit_join(dir, "new");
    static const int flags[] = { O_WRONLY,           O_RDWR,
                                 O_RDONLY | O_CREAT, O_WRONLY | O_CREAT,
                                 O_RDONLY | O_TRUNC, O_RDWR | O_TMPFILE };

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (openat(AT_FDCWD, path, flags[i], 0600) != -1 || errno != ENOSYS)
            return false;
#ifdef SYS_open
        if (!is_refused(SYS_open, (long)path, flags[i], 0600))
            return false;
#endif
    }
    return true;
}

/* Each could send other processes signals, or make them wait. */
static bool no_owner(void)
{
    static const int commands[] = { F_SETOWN, F_SETOWN_EX, F_SETSIG,     F_NOTIFY,     F_SETLEASE, F_SETLK,
                                    F_SETLKW, F_OFD_SETLK, F_OFD_SETLKW, F_SETPIPE_SZ, F_DUPFD,    1u << 20 };

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (!is_refused(SYS_fcntl, STDIN_FILENO, commands[i], 0)) {
            fprintf(stderr, "fcntl %d is not refused\n", commands[i]);
            return false;
        }
    }
    /* The kernel looks at the lower half of a command. */
    return is_refused(SYS_fcntl, STDIN_FILENO, (long)(1ull << 32 | F_SETOWN), getppid())
           && is_refused(SYS_ioctl, STDIN_FILENO, FIOASYNC, 0)
           && is_refused(SYS_ioctl, STDIN_FILENO, FIOSETOWN, 0)
           && is_refused(SYS_ioctl, STDIN_FILENO, SIOCSPGRP, 0);
}

static bool no_asynchronous_io(void)
{
    const int flags = fcntl(STDIN_FILENO, F_GETFL);

    return flags != -1 && is_refused(SYS_fcntl, STDIN_FILENO, F_SETFL, flags | O_ASYNC)
           && is_refused(SYS_fcntl, STDIN_FILENO, F_SETFL, O_ASYNC | O_NONBLOCK)
           && (fcntl(STDIN_FILENO, F_GETFL) & O_ASYNC) == 0
           && is_refused(SYS_setsockopt, STDIN_FILENO, SOL_SOCKET, SO_RCVBUFFORCE)
           && is_refused(SYS_setsockopt, STDIN_FILENO, IPPROTO_TCP, SO_SNDBUF)
           && is_refused(SYS_memfd_create, (long)"huge", MFD_HUGETLB, 0);
}

/* The commands of fcntl that the daemon and the libraries use. */
static bool descriptors_work(void)
{
    const int flags = fcntl(STDIN_FILENO, F_GETFL), copy = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);

    return flags != -1 && copy != -1 && fcntl(copy, F_GETFD) == FD_CLOEXEC && fcntl(copy, F_SETFD, 0) == 0
           && fcntl(copy, F_SETFL, flags | O_NONBLOCK) == 0 && fcntl(copy, F_SETFL, flags) == 0
           && close(copy) == 0 && fcntl(copy, F_GETFL) == -1 && errno == EBADF;
}

static bool memory_for_data_works(void)
{
    const int fd = fp_memfd_create("data");

    return fd != -1 && fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) == 0 && close(fd) == 0;
}

/* ---- calls that one may make, and the other may not ---- */

static bool daemon_opens_nothing(void)
{
    return open("/", O_RDONLY) == -1 && errno == ENOSYS && open("/", O_PATH) == -1
#ifdef SYS_open
           && is_refused(SYS_open, (long)"/", O_RDONLY, 0)
#endif
           && is_refused(SYS_inotify_add_watch, -1, (long)"/", IN_CREATE)
           && is_refused(SYS_statx, AT_FDCWD, (long)"/", 0);
}

static bool worker_has_no_sockets(void)
{
    return socket(AF_UNIX, SOCK_DGRAM, 0) == -1 && errno == ENOSYS && is_refused(SYS_connect, 0, 0, 0)
           && is_refused(SYS_accept4, 0, 0, 0);
}

/* Ends of a connection, made before. */
static int ends[2];

static bool daemon_serves(void)
{
    struct epoll_event e = { .events = EPOLLIN };
    char text[8];
    size_t len;
    int fd, waiting = 0;

    return fp_send_packet(ends[0], "abc", 3, ends[0]) == FP_OK
           && epoll_ctl(ends[1] + 1, EPOLL_CTL_ADD, ends[1], &e) == 0
           && epoll_wait(ends[1] + 1, &e, 1, 1000) == 1
           && fp_recv_packet(ends[1], text, sizeof(text), &len, &fd) == FP_OK && fd != -1
           && ioctl(fd, FIONREAD, &waiting) == 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO;
}

START_TEST(a_daemon_serves)
{
    int loop;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    loop = epoll_create1(0);
    ck_assert_int_eq(dup2(loop, ends[1] + 1), ends[1] + 1);
    ck_assert(holds(FP_SANDBOX_DAEMON, daemon_serves));
}
END_TEST

static bool daemon_shares_memory(void)
{
    int fd = memfd_create("shared", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *p = MAP_FAILED;

    if (fd != -1 && ftruncate(fd, 4096) == 0 && fallocate(fd, 0, 0, 4096) == 0
        && is_refused(SYS_fallocate, fd, FALLOC_FL_KEEP_SIZE, 0))
        p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return p != MAP_FAILED && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0
           && !fp_is_sealed(fd, 4096) && munmap(p, 4096) == 0;
}

/* As syslog(3) and sd_notify(3) do. */
static bool daemon_sends_datagrams(void)
{
    struct sockaddr_un to = { .sun_family = AF_UNIX };
    int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    snprintf(to.sun_path, sizeof(to.sun_path), "%s", unit_join(dir, "log"));
    return sock != -1 && connect(sock, (struct sockaddr *)&to, sizeof(to)) == 0
           && send(sock, "text", 4, MSG_NOSIGNAL) == 4;
}

START_TEST(a_daemon_logs)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    char text[8];
    int sock = socket(AF_UNIX, SOCK_DGRAM, 0);

    snprintf(at.sun_path, sizeof(at.sun_path), "%s", unit_join(dir, "log"));
    ck_assert_int_eq(bind(sock, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert(holds(FP_SANDBOX_DAEMON, daemon_sends_datagrams));
    ck_assert_int_eq(recv(sock, text, sizeof(text), MSG_DONTWAIT), 4);
    close(sock);
}
END_TEST

static bool worker_looks(void)
{
    int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), inotify = STDIN_FILENO;
    int file = openat(root, unit_join(dir, "file") + 1, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct statx st;
    char text[8];

    return root != -1 && file != -1 && statx(file, "", AT_EMPTY_PATH, STATX_ALL, &st) == 0
           && pread(file, text, sizeof(text), 0) == 4 && st.stx_size == 4
           && readlink("/proc/self/exe", text, sizeof(text)) > 0
           && inotify_add_watch(inotify, dir, IN_CREATE) > 0;
}

START_TEST(a_worker_looks)
{
    int inotify = inotify_init1(IN_CLOEXEC);

    unit_write_file(unit_join(dir, "file"), "text");
    ck_assert_int_eq(dup2(inotify, STDIN_FILENO), STDIN_FILENO);
    ck_assert(holds(FP_SANDBOX_WORKER, worker_looks));
}
END_TEST

/* More than the heap has, so that it grows, and time where the vDSO has none. */
static bool library_works(void)
{
    struct timespec t;
    char *p = malloc(100), *q = malloc(10u << 20);

    if (p == NULL || q == NULL)
        return false;
    q[0] = 1;
    p = realloc(p, 20u << 20);
    free(q);
    free(p);
    return p != NULL && syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t) == 0
           && getrandom(&t, sizeof(t), 0) == sizeof(t);
}

START_TEST(all)
{
    static const enum fp_sandbox_kind kinds[] = { FP_SANDBOX_DAEMON, FP_SANDBOX_WORKER, FP_SANDBOX_CLOSER };
    const enum fp_sandbox_kind kind = kinds[_i];

    ck_assert(holds(kind, nothing_dangerous));
    ck_assert(holds(kind, no_process));
    ck_assert(holds(kind, no_code));
    ck_assert(holds(kind, no_network));
    ck_assert(holds(kind, no_writing));
    ck_assert(holds(kind, no_owner));
    ck_assert(holds(kind, no_asynchronous_io));
    ck_assert(holds(kind, descriptors_work));
    ck_assert(holds(kind, memory_for_data_works));
    ck_assert(holds(kind, library_works));
    ck_assert_int_eq(access(unit_join(dir, "new"), F_OK), -1);
}
END_TEST

START_TEST(each)
{
    ck_assert(holds(FP_SANDBOX_DAEMON, daemon_opens_nothing));
    ck_assert(!holds(FP_SANDBOX_WORKER, daemon_opens_nothing));
    ck_assert(holds(FP_SANDBOX_WORKER, worker_has_no_sockets));
    ck_assert(!holds(FP_SANDBOX_DAEMON, worker_has_no_sockets));
    ck_assert(holds(FP_SANDBOX_DAEMON, daemon_shares_memory));
    ck_assert(holds(FP_SANDBOX_CLOSER, daemon_opens_nothing));
    ck_assert(holds(FP_SANDBOX_CLOSER, worker_has_no_sockets));
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, all, 0, 3);
    tcase_add_test(t, each);
    tcase_add_test(t, a_daemon_serves);
    tcase_add_test(t, a_daemon_logs);
    tcase_add_test(t, a_worker_looks);
}

#endif

int main(void)
{
    Suite *s = suite_create("sandbox");

    add_tests(unit_add_case(s, "calls", setup, NULL, 0));
    return unit_run(s);
}
