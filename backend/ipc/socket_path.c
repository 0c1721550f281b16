/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ipc/socket_path.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/packet.h"

#define BACKLOG     1024
#define LOCK_SUFFIX ".lock"
#define LOCK_SIZE   (FP_MAX_SOCKET_PATH + sizeof(LOCK_SUFFIX))

/* A user who can write to the directory can put another socket in the place of the daemon's. */
bool fp_socket_path_check(const char *path, uid_t uid, gid_t gid)
{
    char copy[FP_MAX_SOCKET_PATH + 1];
    const char *dir;
    struct stat st;

    snprintf(copy, sizeof(copy), "%s", path);
    dir = dirname(copy);
    if (stat(dir, &st) == -1) {
        fp_log(FP_LOG_ERROR, 2,
               "the socket's directory %s: %m; make it with: install -d -o %u "
               "-g %u -m 0750 %s",
               dir, (unsigned)uid, (unsigned)gid, dir);
        return false;
    }
    if (!S_ISDIR(st.st_mode)) {
        fp_log(FP_LOG_ERROR, 2, "the socket's directory %s is not a directory", dir);
        return false;
    }
    if ((st.st_uid != 0 && st.st_uid != uid) || (st.st_mode & (S_IWGRP | S_IWOTH))) {
        fp_log(FP_LOG_ERROR, 2,
               "the socket's directory %s (owner uid %u, mode %04o) must belong "
               "to root or to uid %u and be writable by its owner only: chown %u %s; chmod "
               "go-w %s",
               dir, (unsigned)st.st_uid, st.st_mode & 07777u, (unsigned)uid, (unsigned)uid, dir, dir);
        return false;
    }
    return true;
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
    fp_log(FP_LOG_ERROR, 3, "cannot open the lock %s: %m", name);
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

bool fp_socket_path_clear(const char *path)
{
    struct stat st;

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
    if (unlink(path) == -1) {
        fp_log(FP_LOG_ERROR, 4, "cannot remove the socket %s that was left behind: %m", path);
        return false;
    }
    return true;
}

int fp_socket_path_listen(const char *path)
{
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;
    struct sockaddr_un addr;
    mode_t mask;

    if (sock == -1)
        return -1;
    fp_unix_address(&addr, path); /* conf.c has checked its length */
    mask = umask(0077);
    rc = bind(sock, (struct sockaddr *)&addr, sizeof(addr));
    umask(mask);
    if (rc == -1 || listen(sock, BACKLOG) == -1)
        fp_close(&sock);
    return sock;
}
