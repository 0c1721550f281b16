/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's log: one line a message, with a stable id (FP0001) that the
 * documentation explains.  Messages of one id and level are limited to a few in
 * ten seconds; the next one says how many were left out.
 */
#ifndef FP_LOG_H
#define FP_LOG_H

#include <stdbool.h>
#include <sys/types.h>

enum fp_log_level { FP_LOG_ERROR, FP_LOG_WARNING, FP_LOG_INFO, FP_LOG_DEBUG };

/* Returns -1 unless the name is error, warning, info or debug. */
int fp_log_level_parse(const char *name);

/* The present level's name in the configuration; a constant. */
const char *fp_log_level_text(void);

/*
 * Opens a log's file for appending, and creates it if necessary.  Returns the descriptor, or -1 with
 * errno: ELOOP for a symbolic link, ENXIO for a socket, and for a FIFO that nobody reads.
 */
int fp_log_open_file(const char *path);

/* Writes the log to that file from now on, and owns it. */
void fp_log_take_file(int fd, enum fp_log_level level);

/*
 * target: "stderr", "syslog" or an absolute path, opened for appending.
 * 0, or -1 with errno; then the log stays where it was (at first: stderr).
 * Opening the same path again follows a rotation.
 */
int fp_log_open(const char *target, enum fp_log_level level);

/*
 * Gives the log's file to the user that will reopen it, if fp_log_open() made it: one that was there may
 * be another program's.  0, or -1 with errno.
 */
int fp_log_chown(uid_t uid, gid_t gid);

/* While on, errors also go to standard error: during the start, when an operator looks there. */
void fp_log_echo(bool on);

/* id is the number behind "FP"; the text needs no line end. */
void fp_log(enum fp_log_level level, int id, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
