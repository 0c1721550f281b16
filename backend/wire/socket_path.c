/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "wire/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "wire/packet.h"

#define BACKLOG       1024
#define LOCK_MS       1000 /* how long a lock is waited for, */
#define LOCK_PAUSE_MS 20   /* and how often looked at */
#define LOCK_SUFFIX   ".lock"
#define LOCK_SIZE     (FP_MAX_SOCKET_PATH + sizeof(LOCK_SUFFIX))

/* A user who can write to the directory can put another socket in the place of the daemon's. */
bool fp_socket_path_check(const char *path, uid_t uid, gid_t gid)
{
    const uid_t us = geteuid();
    char copy[FP_MAX_SOCKET_PATH + 1];
    const char *dir;
    struct stat st;

    snprintf(copy, sizeof(copy), "%s", path);
    dir = dirname(copy);
    if (stat(dir, &st) == -1) {
        fp_log(FP_LOG_ERROR, 2,
               "the socket's directory %s: %m; make it with: install -d -o %u -g %u -m %s %s", dir,
               (unsigned)us, (unsigned)gid, us == 0 ? "0710" : "0700", dir);
        return false;
    }
    if (!S_ISDIR(st.st_mode)) {
        fp_log(FP_LOG_ERROR, 2, "the socket's directory %s is not a directory", dir);
        return false;
    }
    if ((st.st_uid == 0 || st.st_uid == us) && !(st.st_mode & (S_IWGRP | S_IWOTH)))
        return true;
    if (us == 0)
        fp_log(
            FP_LOG_ERROR, 2,
            "the socket's directory %s (owner uid %u, mode %04o) must belong to root, and nobody else may "
            "write to it: otherwise processes of uid %u could put their own socket in its place: "
            "chown 0:%u %s; "
            "chmod 0710 %s",
            dir, (unsigned)st.st_uid, st.st_mode & 07777u, (unsigned)uid, (unsigned)gid, dir, dir);
    else
        fp_log(FP_LOG_ERROR, 2,
               "the socket's directory %s (owner uid %u, mode %04o) must belong "
               "to root or to uid %u and be writable by its owner only: chown %u %s; chmod "
               "go-w %s",
               dir, (unsigned)st.st_uid, st.st_mode & 07777u, (unsigned)us, (unsigned)us, dir, dir);
    return false;
}

/* ---- the lock: a daemon holds it for its life, so a socket without a holder is left behind ---- */

static void lock_name(const char *path, char name[LOCK_SIZE])
{
    snprintf(name, LOCK_SIZE, "%s" LOCK_SUFFIX, path);
}

int fp_socket_path_open_lock(const char *path)
{
    char name[LOCK_SIZE];
    int fd, error;

    lock_name(path, name);
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd == -1 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    error = errno;
    fp_close(&fd);
    errno = error;
    return -1;
}

static void report_holder(const char *name)
{
    char pid[16] = "";
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd == -1 ? -1 : read(fd, pid, sizeof(pid) - 1);

    fp_close(&fd);
    if (n > 0)
        pid[strcspn(pid, "\n")] = '\0';
    fp_log(FP_LOG_ERROR, 3,
           "another flashpached (process %s) already serves this socket: it "
           "holds %s; stop it, or choose another socket",
           n > 0 ? pid : "unknown", name);
}

void fp_socket_path_report_lock(const char *path, int error)
{
    char name[LOCK_SIZE];

    lock_name(path, name);
    if (error == EWOULDBLOCK) {
        report_holder(name);
        return;
    }
    errno = error;
    fp_log(FP_LOG_ERROR, 3,
           "cannot open the lock %s: %m; where the directory is root's, start flashpached as root, by "
           "flashpached.socket or by httpd (FlashpacheDaemon auto)",
           name);
}

void fp_socket_path_sign_lock(const char *path, int lock)
{
    char pid[16];
    int n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());

    if (ftruncate(lock, 0) == -1 || write(lock, pid, (size_t)n) != n)
        fp_log(FP_LOG_WARNING, 3, "cannot write to the lock %s.lock: %m", path);
}

bool fp_socket_path_has_lock(const char *path, int lock)
{
    char name[LOCK_SIZE];
    struct stat held, named;

    lock_name(path, name);
    return fstat(lock, &held) == 0 && lstat(name, &named) == 0 && held.st_ino == named.st_ino
           && held.st_dev == named.st_dev;
}

/* ---- the socket ---- */

/* Another kind of socket is another program's. */
bool fp_socket_path_is_held(const char *path, pid_t *maker_r)
{
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct ucred peer = { .pid = 0 };
    socklen_t len = sizeof(peer);
    struct sockaddr_un addr;
    bool held = sock == -1
                || (fp_unix_address(&addr, path)
                    && (connect(sock, (struct sockaddr *)&addr, sizeof(addr)) == 0 || errno == EAGAIN
                        || errno == EPROTOTYPE));

    if (held && maker_r != NULL)
        *maker_r = getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 ? peer.pid : 0;
    fp_close(&sock);
    return held;
}

bool fp_socket_path_clear(const char *path)
{
    struct stat st;
    pid_t holder;

    if (lstat(path, &st) == -1) {
        if (errno != ENOENT)
            fp_log(FP_LOG_ERROR, 4, "cannot look at %s: %m", path);
        return errno == ENOENT;
    }
    if (!S_ISSOCK(st.st_mode)) {
        fp_log(FP_LOG_ERROR, 4,
               "%s exists and is not a socket: remove it, or choose another "
               "socket path",
               path);
        return false;
    }
    if (fp_socket_path_is_held(path, &holder)) {
        fp_log(FP_LOG_ERROR, 3,
               "another process (%d made the socket) already listens at %s: stop it "
               "(systemctl stop flashpached.socket flashpached.service), or choose another socket",
               (int)holder, path);
        return false;
    }
    if (unlink(path) == -1) {
        fp_log(FP_LOG_ERROR, 4, "cannot remove the socket %s that was left behind: %m", path);
        return false;
    }
    return true;
}

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

/* Keeps peers from having us close their files, even those in frames that nobody reads. */
static void refuse_descriptors(int sock)
{
    const int no = 0;

    setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no));
}

/* Binds the socket with its group and its mode: to change them later by name would follow
 * any other file that has the name then. */
static int bind_for(int sock, const struct sockaddr_un *addr, gid_t gid)
{
    const bool root = geteuid() == 0;
    const gid_t ours = getegid();
    const mode_t mask = umask(root ? 0117 : 0177);
    int rc = root && gid != ours ? setegid(gid) : 0, error;

    if (rc == 0)
        rc = bind(sock, (const struct sockaddr *)addr, sizeof(*addr));
    error = errno;
    if (root && gid != ours && setegid(ours) == -1)
        rc = -1;
    umask(mask);
    errno = error;
    return rc;
}

int fp_socket_path_listen(const char *path, gid_t gid)
{
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_un addr;

    if (sock == -1)
        return -1;
    refuse_descriptors(sock);
    if (!fp_unix_address(&addr, path) || bind_for(sock, &addr, gid) == -1 || listen(sock, BACKLOG) == -1)
        fp_close(&sock);
    return sock;
}

/* A daemon that was killed leaves processes that have its descriptors for a moment more. */
static int wait_for_lock(const char *path)
{
    const struct timespec pause = { .tv_nsec = LOCK_PAUSE_MS * 1000000L };
    int lock = fp_socket_path_open_lock(path);

    for (int i = 0; lock == -1 && errno == EWOULDBLOCK && i < LOCK_MS / LOCK_PAUSE_MS; i++) {
        nanosleep(&pause, NULL);
        lock = fp_socket_path_open_lock(path);
    }
    return lock;
}

bool fp_socket_path_take(const char *path, gid_t gid, int *sock_r, int *lock_r)
{
    *sock_r = -1;
    *lock_r = wait_for_lock(path);
    if (*lock_r == -1) {
        fp_socket_path_report_lock(path, errno);
        return false;
    }
    fp_socket_path_sign_lock(path, *lock_r);
    if (!fp_socket_path_clear(path))
        return false;
    *sock_r = fp_socket_path_listen(path, gid);
    if (*sock_r == -1)
        fp_log(FP_LOG_ERROR, 5, "cannot listen on %s: %m", path);
    return *sock_r != -1;
}

bool fp_socket_path_is(int sock, const char *path)
{
    struct sockaddr_un addr = { .sun_family = AF_UNSPEC };
    socklen_t len = sizeof(int), addr_len = sizeof(addr);
    int type = 0, listens = 0;

    /* The last byte stays zero. */
    addr_len--;
    return getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET
           && getsockopt(sock, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens != 0
           && getsockname(sock, (struct sockaddr *)&addr, &addr_len) == 0 && addr.sun_family == AF_UNIX
           && strcmp(addr.sun_path, path) == 0;
}

bool fp_socket_path_adopt(int sock)
{
    refuse_descriptors(sock);
    return fcntl(sock, F_SETFD, FD_CLOEXEC) == 0 && fcntl(sock, F_SETFL, O_NONBLOCK) == 0;
}

uid_t fp_socket_path_maker(int sock)
{
    struct ucred maker;
    socklen_t len = sizeof(maker);

    return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &maker, &len) == 0 ? maker.uid : (uid_t)-1;
}

bool fp_socket_path_same(const struct stat *now, const struct stat *then)
{
    /* A file system may use an inode's number again at once. */
    return now->st_nlink > 0 && now->st_dev == then->st_dev && now->st_ino == then->st_ino
           && now->st_mtim.tv_sec == then->st_mtim.tv_sec && now->st_mtim.tv_nsec == then->st_mtim.tv_nsec;
}
