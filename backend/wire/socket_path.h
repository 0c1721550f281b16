/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The place of the daemon's socket: its directory, the lock beside it, and the socket itself.  The
 * daemon makes it, before it gives up root's rights, or httpd's parent does.
 */
#ifndef FP_SOCKET_PATH_H
#define FP_SOCKET_PATH_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* True if nobody else can write to the path's directory than root, who makes the socket there, or this
 * user, who does.  False after logging the problem and the way out, for clients of that user and
 * group. */
bool fp_socket_path_check(const char *path, uid_t uid, gid_t gid);

/* Opens the lock, held while the descriptor is open; -1 with errno, EWOULDBLOCK: another daemon holds it. */
int fp_socket_path_open_lock(const char *path);
/* Logs an error of fp_socket_path_open_lock(). */
void fp_socket_path_report_lock(const char *path, int error);
/* Writes this process's id to the lock. */
void fp_socket_path_sign_lock(const char *path, int lock);
/* True if the lock file beside the path is still this one. */
bool fp_socket_path_has_lock(const char *path, int lock);

/* True if a process holds the socket at that path, or it cannot be found out; *maker_r (NULL: not wanted): the one that
 * called listen(2), 0: unknown.  Else errno says why nobody can be reached. */
bool fp_socket_path_is_held(const char *path, pid_t *maker_r);
/* Removes a socket that an earlier daemon left.  False after logging why not, for example that somebody
 * listens there. */
bool fp_socket_path_clear(const char *path);
/* Makes a non-blocking listening socket there, for this user only; made by root, for that group.  No peer may
 * pass descriptors to it where the kernel can see to that.  -1 with errno. */
int fp_socket_path_listen(const char *path, gid_t gid);
/* Does all of it: lock (waiting for a second), clear and listen.  False after logging the problem. */
bool fp_socket_path_take(const char *path, gid_t gid, int *sock_r, int *lock_r);

/* True for a listening socket of our kind that was made at that path. */
bool fp_socket_path_is(int sock, const char *path);
/* Readies a listening socket that another process made: accepting does not wait, and no peer may pass
 * descriptors.  False with errno. */
bool fp_socket_path_adopt(int sock);
/* The user whose process called listen(2): clients judge the socket by it.  (uid_t)-1: unknown. */
uid_t fp_socket_path_maker(int sock);

/* True if the path still leads to the socket that it led to then. */
bool fp_socket_path_same(const struct stat *now, const struct stat *then);

#endif
