/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the daemon's socket is: its directory, the lock beside it, and the socket itself.  Made by
 * the daemon, before it gives up root's rights, or by httpd's parent.
 */
#ifndef FP_SOCKET_PATH_H
#define FP_SOCKET_PATH_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

/* True if nobody can write to the path's directory but root, who makes the socket there, or this
 * user, who does.  False after logging the problem and the way out, for clients of that user and
 * group. */
bool fp_socket_path_check(const char *path, uid_t uid, gid_t gid);

/* The lock, held while the descriptor is open; -1 with errno, EWOULDBLOCK: another daemon holds it. */
int fp_socket_path_open_lock(const char *path);
/* Logs that error. */
void fp_socket_path_report_lock(const char *path, int error);
/* Writes this process's id to it. */
void fp_socket_path_sign_lock(const char *path, int lock);
/* True if the file beside the path is still this one. */
bool fp_socket_path_has_lock(const char *path, int lock);

/* Removes a socket that an earlier daemon left.  False after logging why not, for example that somebody
 * listens there. */
bool fp_socket_path_clear(const char *path);
/* A non-blocking listening socket there, for this user only; made by root, for that group.  No peer may
 * pass descriptors to it where the kernel can see to that.  -1 with errno. */
int fp_socket_path_listen(const char *path, gid_t gid);
/* All of it: lock (waiting for a second), clear and listen.  False after logging what is wrong. */
bool fp_socket_path_take(const char *path, gid_t gid, int *sock_r, int *lock_r);

/* True for a listening socket of our kind that was made at that path. */
bool fp_socket_path_is(int sock, const char *path);
/* Readies a listening socket that another process made: accepting does not wait, and no peer may pass
 * descriptors.  False with errno. */
bool fp_socket_path_adopt(int sock);
/* The user whose process called listen(2): clients judge by it.  (uid_t)-1: unknown. */
uid_t fp_socket_path_maker(int sock);

/* True if the path still leads to the socket that it led to then. */
bool fp_socket_path_same(const struct stat *now, const struct stat *then);

#endif
