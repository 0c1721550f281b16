/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "wire/packet.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"

void fp_close(int *fd)
{
    int saved = errno;

    if (*fd != -1)
        close(*fd);
    *fd = -1;
    errno = saved;
}

static void (*file_closer)(int fd, uint32_t mount);

void fp_set_file_closer(void (*closer)(int fd, uint32_t mount))
{
    file_closer = closer;
}

void fp_close_file(int *fd, uint32_t mount)
{
    if (file_closer == NULL || *fd == -1) {
        fp_close(fd);
        return;
    }
    file_closer(*fd, mount);
    *fd = -1;
}

void fp_close_all(unsigned first, unsigned last)
{
    DIR *dir;
    const struct dirent *entry;

    if (close_range(first, last, 0) == 0)
        return;
    dir = opendir("/proc/self/fd");
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const unsigned fd = (unsigned)strtoul(entry->d_name, NULL, 10);

        if (entry->d_name[0] != '.' && fd >= first && fd <= last && fd != (unsigned)dirfd(dir))
            close((int)fd);
    }
    if (dir != NULL)
        closedir(dir);
}

void fp_hang_up(int *sock)
{
    struct pollfd p = { .fd = *sock, .events = POLLIN };
    char rest;
    ssize_t n = 0;

    if (*sock == -1)
        return;
    shutdown(*sock, SHUT_WR);
    do {
        if (poll(&p, 1, FP_HANG_UP_MS) == 0)
            break;
        n = recv(*sock, &rest, sizeof(rest), MSG_DONTWAIT);
    } while (n > 0 || (n == -1 && (errno == EINTR || errno == EAGAIN)));
    fp_close(sock);
}

void fp_fd_name(char name[FP_FD_NAME], int fd)
{
    snprintf(name, FP_FD_NAME, "/proc/self/fd/%d", fd);
}

bool fp_lead_to_null(int fd)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool done;

    /* fd was closed before. */
    if (null != -1 && null == fd)
        return fcntl(fd, F_SETFD, 0) == 0;
    done = null != -1 && dup2(null, fd) != -1;
    fp_close(&null);
    return done;
}

bool fp_is_sealed(int fd, uint64_t size)
{
    const int wanted = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    int seals = fcntl(fd, F_GET_SEALS);
    struct stat st;

    /* Seals first: a file without any may lie on a file system that hangs. */
    return seals != -1 && (seals & wanted) == wanted && fstat(fd, &st) == 0 && (uint64_t)st.st_size == size;
}

bool fp_write_all(int fd, const void *data, size_t len)
{
    const char *bytes = data;

    while (len > 0) {
        const ssize_t done = write(fd, bytes, len);

        if (done == -1 && errno != EINTR)
            return false;
        bytes += done > 0 ? done : 0;
        len -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

int fp_open_now(const char *path)
{
    return open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int fp_identify(int fd, const char *path, struct stat *st)
{
    struct statx x;

    if (statx(fd, path, AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &x) == -1)
        return fstatat(fd, path, st, AT_EMPTY_PATH);
    st->st_mode = x.stx_mode;
    st->st_dev = makedev(x.stx_dev_major, x.stx_dev_minor);
    st->st_ino = x.stx_ino;
    return 0;
}

bool fp_is_readable_file(int fd)
{
    const int flags = fcntl(fd, F_GETFL);
    struct stat st;

    return flags != -1 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_WRONLY
           && fp_identify(fd, "", &st) == 0 && S_ISREG(st.st_mode);
}

static fp_status status_of_errno(void)
{
    if (errno == EAGAIN)
        return FP_AGAIN;
    return errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN ? FP_CLOSED : FP_SYSTEM;
}

/* True after a signal, while the socket's time for the call is not over: the kernel would begin it anew. */
static bool goes_on(int sock, int option, uint64_t began_ms)
{
    struct timeval most = { 0, 0 };
    socklen_t len = sizeof(most);
    uint64_t most_ms;

    if (errno != EINTR)
        return false;
    most_ms = getsockopt(sock, SOL_SOCKET, option, &most, &len) == 0
                  ? (uint64_t)most.tv_sec * 1000 + (uint64_t)most.tv_usec / 1000
                  : 0;
    errno = EAGAIN;
    return most_ms == 0 || fp_now_ms() < began_ms + most_ms;
}

bool fp_unix_address(struct sockaddr_un *addr_r, const char *path)
{
    const size_t len = strlen(path);

    *addr_r = (struct sockaddr_un){ .sun_family = AF_UNIX };
    if (len > FP_MAX_SOCKET_PATH)
        return false;
    memcpy(addr_r->sun_path, path, len + 1);
    return true;
}

static fp_status send_packet(int sock, const void *data, size_t len, int fd, int flags)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
    const uint64_t began_ms = fp_now_ms();
    ssize_t n;

    if (fd != -1) {
        struct cmsghdr *c;

        memset(&control, 0, sizeof(control));
        msg.msg_control = control.buf;
        msg.msg_controllen = sizeof(control.buf);
        c = CMSG_FIRSTHDR(&msg);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
    }
    do {
        n = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);
    } while (n == -1 && goes_on(sock, SO_SNDTIMEO, began_ms));
    if (n == -1)
        return status_of_errno();
    return (size_t)n == len ? FP_OK : FP_PROTOCOL;
}

fp_status fp_send_packet(int sock, const void *data, size_t len, int fd)
{
    return send_packet(sock, data, len, fd, 0);
}

fp_status fp_send_packet_now(int sock, const void *data, size_t len)
{
    return send_packet(sock, data, len, -1, MSG_DONTWAIT);
}

/* Takes the descriptors out of a received message; all but the first are closed.  Returns how many
 * there were. */
static size_t take_fds(struct msghdr *msg, int *fd_r)
{
    size_t came = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL; c = CMSG_NXTHDR(msg, c)) {
        size_t n;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (came++ == 0)
                *fd_r = fd;
            else
                fp_close_file(&fd, 0);
        }
    }
    return came;
}

fp_status fp_recv_packet(int sock, void *data, size_t cap, size_t *len_r, int *fd_r)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = { .iov_base = data, .iov_len = cap };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
    const uint64_t began_ms = fp_now_ms();
    fp_status st = FP_OK;
    int fd = -1;
    size_t came;
    ssize_t n;

    /* The kernel gives this process no descriptor for which there is no room.  So none that nobody
     * expects is ever closed here: a close may wait for a file system.  CMSG_SPACE of one int would
     * have room for two on 64-bit machines. */
    if (fd_r != NULL) {
        *fd_r = -1;
        msg.msg_control = control.buf;
        msg.msg_controllen = CMSG_LEN(sizeof(int));
    }
    do {
        n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
    } while (n == -1 && goes_on(sock, SO_RCVTIMEO, began_ms));
    if (n == -1)
        return status_of_errno();
    came = take_fds(&msg, &fd);
    *len_r = (size_t)n;
    if ((msg.msg_flags & MSG_TRUNC) || came > 1 || (came == 1 && fd_r == NULL))
        st = FP_PROTOCOL;
    else if (msg.msg_flags & MSG_CTRUNC)
        /* If none was received, this process has no free descriptor; if one was received,
         * the peer sent more than fit. */
        st = came == 0 && fd_r != NULL ? FP_LOSTFD : FP_PROTOCOL;
    else if (n == 0)
        st = FP_CLOSED; /* SEQPACKET: an empty packet looks like the end. */
    if (st != FP_OK)
        fp_close_file(&fd, 0);
    if (fd_r != NULL)
        *fd_r = fd;
    return st;
}
