/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One frame, and at most one descriptor, over a SOCK_SEQPACKET socket.
 */
#ifndef FP_PACKET_H
#define FP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/errors.h"

/* Bytes of a Unix-domain socket's path, without a terminator. */
#define FP_MAX_SOCKET_PATH (sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1)

/* The address of the socket at path.  False: path is longer than FP_MAX_SOCKET_PATH. */
bool fp_unix_address(struct sockaddr_un *addr_r, const char *path);

/*
 * Sends one packet; fd, unless -1, goes along and stays the caller's.
 * FP_OK, FP_AGAIN (non-blocking socket, nothing was sent), FP_CLOSED or
 * FP_SYSTEM.  Never raises SIGPIPE.
 */
fp_status fp_send_packet(int sock, const void *data, size_t len, int fd);
/* Sends a packet without a descriptor. FP_AGAIN also if a blocking socket has no room. */
fp_status fp_send_packet_now(int sock, const void *data, size_t len);

/*
 * Receives one packet of at most cap bytes.  A descriptor that came along is
 * the caller's in *fd_r (close-on-exec), else *fd_r is -1; fd_r NULL means
 * that none may come.
 * FP_OK, FP_AGAIN, FP_CLOSED (end of stream or reset), FP_PROTOCOL, FP_LOSTFD or FP_SYSTEM.
 * FP_PROTOCOL: the packet is longer than cap, or has a descriptor too many; all received ones
 * are closed.  FP_LOSTFD: the process had no descriptor free for the one that came; the data is
 * good.
 */
fp_status fp_recv_packet(int sock, void *data, size_t cap, size_t *len_r, int *fd_r);

/* True for a memfd of that very size whose bytes are sealed against changes. */
bool fp_is_sealed(int fd, uint64_t size);

/* Writes all of it, however often that takes.  False with errno. */
bool fp_write_all(int fd, const void *data, size_t len);

/* Opens a file for reading that another user may have replaced: does not wait for the writer of a
 * FIFO.  -1 with errno; EAGAIN: another process has a lease on it (fcntl(2)). */
int fp_open_now(const char *path);

struct stat;

/*
 * fstatat(2) of kind, device and inode alone; an empty path means fd itself.  Waits for no file system,
 * unless statx(2) is refused: then it looks as httpd does.
 */
int fp_identify(int fd, const char *path, struct stat *st);

/* True if fd is open for reading on a regular file.  Waits for no file system. */
bool fp_is_readable_file(int fd);

/* Room for the name by which this process can open, watch or examine the object of fd. */
#define FP_FD_NAME 32
void fp_fd_name(char name[FP_FD_NAME], int fd);

/* Makes fd a descriptor of /dev/null, also after an exec.  False: it stays as it was. */
bool fp_lead_to_null(int fd);

/* Shuts *sock down, waits until the process at the other end has closed its own, and closes *sock, unless it
 * is -1.  A process that was stopped, or hangs, is not waited for. */
#define FP_HANG_UP_MS 3000
void fp_hang_up(int *sock);

/* Closes the descriptors from first to last, also where the kernel has no close_range(2) or a
 * container's filter refuses it. */
void fp_close_all(unsigned first, unsigned last);

/* Closes *fd unless it is -1, and makes it -1.  Keeps errno. */
void fp_close(int *fd);

/*
 * As fp_close(), for a file or directory on that mount (0: unknown): its closing may
 * wait for the file system.  The descriptor is left to the closer, if one was set.
 */
void fp_close_file(int *fd, uint32_t mount);
void fp_set_file_closer(void (*closer)(int fd, uint32_t mount)); /* keeps errno; NULL: none */

#endif
