/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the daemon's socket is: its directory, the lock beside it, and the socket itself.
 */
#ifndef FP_SOCKET_PATH_H
#define FP_SOCKET_PATH_H

#include <stdbool.h>
#include <sys/types.h>

/* Is the path's directory one in which only root and uid can put anything?  False after logging what
 * is wrong and the way out (gid is for a directory that is to be made). */
bool fp_socket_path_check(const char *path, uid_t uid, gid_t gid);

/* The lock, held as long as the descriptor is open; -1 with errno, EWOULDBLOCK: another daemon has
 * it. */
int fp_socket_path_open_lock(const char *path);
/* Logs that. */
void fp_socket_path_tell_lock(const char *path, int error);
/* Writes whose it is into it. */
void fp_socket_path_sign_lock(const char *path, int lock);
/* Is it still the one beside the path? */
bool fp_socket_path_has_lock(const char *path, int lock);

/* Removes a socket that was left behind.  False after logging why it cannot be. */
bool fp_socket_path_clear(const char *path);
/* A listening socket there, for its owner only, that does not block; -1 with errno. */
int fp_socket_path_listen(const char *path);

#endif
