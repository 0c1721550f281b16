/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part that flashpachectl's commands share.
 */
#ifndef FP_CTL_H
#define FP_CTL_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/wire.h"

/* The result of a command: flashpachectl's exit status. */
enum ctl_exit {
    CTL_DONE = 0,
    CTL_FAILED = 1, /* in part or in all */
    CTL_USAGE = 2,
    CTL_NO_DAEMON = 3
};

/* The options, and what was made of them. */
struct ctl {
    const char *socket;
    const char *conf;      /* the configuration's file; NULL: not read */
    uint32_t timeout_ms;   /* for one question */
    bool json;             /* reports are to be JSON */
    enum fp_scope scope;   /* of a purge */
    struct fp_names names; /* of access files that answers have */
    struct fp_client *client;
};

/* Writes a line to standard error, after the program's name. */
void ctl_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A name that strangers may have chosen, on one line, with "?" for control characters.  It lasts until the third next
 * call. */
const char *ctl_name(const char *name, size_t len);

/* Says why there is no answer; CTL_NO_DAEMON. */
enum ctl_exit ctl_no_daemon(const struct ctl *ctl, fp_status why);

/* The usual sockets of daemons, that of the service first; the last one is NULL. */
extern const char *const ctl_usual_sockets[];

/* Calls each() with the number of each process that is to be seen here. */
void ctl_each_process(void (*each)(void *ctx, const char *pid), void *ctx);

/* Whether a file of the process in /proc has the text in a piece that ends with the delimiter.  -1 with errno: it
 * cannot be opened. */
int ctl_process_has(const char *pid, const char *file, int delimiter, const char *text);

/* Puts the path in normal form, relative ones below the working directory, into buf, which has
 * FP_MAX_PATH + 1 bytes.  Symbolic links stay.  False after saying why not. */
bool ctl_absolute(const char *path, char *buf);

/* The commands in files of their own; args: their arguments, as many as they take, and NULL. */
enum ctl_exit ctl_warm(const struct ctl *ctl, char **args);
enum ctl_exit ctl_explain(const struct ctl *ctl, char **args);
enum ctl_exit ctl_status(const struct ctl *ctl, char **args);
enum ctl_exit ctl_php(const struct ctl *ctl, char **args);
enum ctl_exit ctl_check(const struct ctl *ctl, char **args);

#endif
