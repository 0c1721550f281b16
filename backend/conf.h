/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration: file and flags, checked, in one struct that does not
 * change.  docs/flashpached.conf.md explains every setting.
 */
#ifndef FP_CONF_H
#define FP_CONF_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fp_conf {
    const char *socket;       /* absolute, fits sun_path */
    const char *user;         /* name; "" where none was set */
    uid_t uid;                /* whom we are and whom we answer */
    gid_t gid;
    const char *pid_file;     /* "" for none */
    const char *log;
    int log_level;            /* enum fp_log_level */
    unsigned helpers;
    uint32_t lookup_timeout_ms;
    uint32_t ttl_ms;
    size_t max_entries;       /* directories and absent names, each */
    size_t max_descriptors;   /* 0: from RLIMIT_NOFILE */
    size_t max_connections;
    size_t max_queue;         /* lookups waiting for a helper */
    const char *const *roots; /* NULL-terminated, normal form */
};

/*
 * Reads file (NULL: none), then the overrides ("key=value").  NULL after one
 * line on stderr for each mistake, with file, line and key.
 */
struct fp_conf *fp_conf_load(const char *file, char *const *overrides, size_t n);
void fp_conf_destroy(struct fp_conf **conf);

#endif
