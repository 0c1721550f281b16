/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: file and flags, checked, in one struct that does not
 * change.  docs/flashpached.conf.md explains every setting.
 */
#ifndef FP_CONF_H
#define FP_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fp_fleet_settings;
struct fp_mount_rule;

#define FP_CONF_BY_MEMORY SIZE_MAX /* not set: a share of the memory that there is */

struct fp_conf {
    const char *socket; /* absolute, fits sun_path */
    const char *user;   /* name; "" where none was set */
    const char *group;  /* likewise */
    uid_t uid;          /* of the daemon and of its clients */
    gid_t gid;
    const char *log;
    int log_level;         /* enum fp_log_level */
    const char *warm_file; /* the list of paths in use, over a restart; "": none */
    uint32_t warm_file_s;  /* from one list to the next; 0: one at the end alone */
    unsigned workers;
    uint32_t lookup_timeout_ms;
    unsigned mount_workers;             /* at one mount at most; 0: three quarters of workers */
    uint32_t mount_timeout_ms;          /* of a walk; a longer one counts against its mount */
    int watch;                          /* FP_BY_AUTO, FP_BY_INOTIFY or FP_BY_TTL (mount_rule.h) */
    uint32_t ttl_ms;                    /* of entries that are not watched */
    uint32_t negative_ttl_ms;           /* of absent names among them, if that is less */
    uint32_t watched_ttl_ms;            /* of watched entries */
    uint32_t stale_if_error_ms;         /* beyond ttl_ms, while the file system fails */
    const struct fp_mount_rule *mounts; /* mount sections, one a mount point */
    size_t n_mounts;
    uint32_t content_file_max; /* bytes of a file that is kept by its content; 0: none */
    size_t memory;             /* bytes for entries, contents and answers, or FP_CONF_BY_MEMORY */
    size_t max_connections;
    const char *const *roots;              /* NULL-terminated, normal form */
    const struct fp_fleet_settings *fleet; /* NULL if there is none */
    bool seccomp;                          /* filters of system calls */
};

/*
 * Reads file (NULL: none), then the overrides ("key=value").  NULL after one
 * line on stderr for each mistake, with file, line and key.
 */
struct fp_conf *fp_conf_load(const char *file, char *const *overrides, size_t n);

/*
 * Reads the file for a process that is not to become the daemon. Any user may do so, whatever user and group
 * it names; uid and gid stay 0. *socket_given_r: the file has a socket; else the field is the default.
 */
struct fp_conf *fp_conf_read(const char *file, bool *socket_given_r);

/*
 * Like fp_conf_load(), but reads an open file, which another process has checked (monitor.h). It does not
 * look up the names of user and group, but takes uid and gid from now.
 */
struct fp_conf *fp_conf_reload(int fd, const struct fp_conf *now, char *const *overrides, size_t n);
void fp_conf_destroy(struct fp_conf **conf);

/* True if settings differ that take effect after a restart only; keys is then the list of them. */
bool fp_conf_needs_restart(const struct fp_conf *now, const struct fp_conf *new, char *keys, size_t size);

#endif
