/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the daemon's socket is: its directory, the lock beside it, and the socket itself.
 */
#ifndef FP_SOCKET_PATH_H
#define FP_SOCKET_PATH_H

#include <stdbool.h>
#include <sys/types.h>

/* True if only root and uid can write to the path's directory.  False after logging the problem
 * and the way out (which gid is for). */
bool fp_socket_path_check(const char *path, uid_t uid, gid_t gid);

/* The lock, held while the descriptor is open; -1 with errno, EWOULDBLOCK: another daemon holds it. */
int fp_socket_path_open_lock(const char *path);
/* Logs that error. */
void fp_socket_path_report_lock(const char *path, int error);
/* Writes this process's id to it. */
void fp_socket_path_sign_lock(const char *path, int lock);
/* True if the file beside the path is still this one. */
bool fp_socket_path_has_lock(const char *path, int lock);

/* Removes a socket that an earlier daemon left.  False after logging why not. */
bool fp_socket_path_clear(const char *path);
/* A non-blocking listening socket there, for its owner only; -1 with errno. */
int fp_socket_path_listen(const char *path);

#endif
