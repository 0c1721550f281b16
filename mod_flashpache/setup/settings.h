/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module's directives (docs/directives.md).
 *
 * This room holds what stands fast before the first request: directives, the overrides of all sections, and httpd's
 * own flashpached. All rooms above it read it; the module for Apache 1.3 has settings of its own. It calls none of
 * them, and knows no request's answer.
 */
#ifndef FP_SETTINGS_H
#define FP_SETTINGS_H

#include <httpd.h>
#include <http_config.h>
#include <stdbool.h>

#include "wire/answer.h"

extern module AP_MODULE_DECLARE_DATA flashpache_module;

enum fp_engine {
    FP_ENGINE_UNSET = -1,
    FP_ENGINE_OFF = 0,
    FP_ENGINE_ON = 1,
    FP_ENGINE_SHADOW = 2 /* asks and compares; httpd serves */
};

enum fp_daemon_is { FP_DAEMON_AUTO = 0, FP_DAEMON_EXTERNAL = 1, FP_DAEMON_ELSEWHERE = 2 };

/* A virtual host's settings, merged with the main server's.  The values that mean "not set"
 * are gone after fp_settings_finish(). */
struct fp_settings {
    int engine;                      /* enum fp_engine */
    const char *socket;              /* main server only */
    int external;                    /* main server only: enum fp_daemon_is; -1: not set */
    const char *program;             /* main server only: FlashpacheDaemonProgram; NULL: not set */
    const char *configuration;       /* main server only: FlashpacheDaemonConfig; NULL: none */
    int timeout_ms;                  /* main server only; 0: not set */
    apr_array_header_t *excluded;    /* of const char *: path prefixes, normal form */
    int parsed;                      /* main server only: FlashpacheHtaccess; -1: not set */
    int open_files;                  /* main server only: FlashpacheLeases, open files of a child; -1: not set */
    int admission;                   /* main server only: FlashpacheAdmission; -1: by memory */
    int server_timing;               /* 0, 1 or -1: not set */
    int refuses_unavailable;         /* 1: FlashpacheUnavailable 503; 0, or -1: not set */
    int rewrite;                     /* main server only: FlashpacheRewrite, see rewrite.h */
    apr_array_header_t *intercepted; /* main server only: of module *, see intercept.h; NULL: none */

    /* fp_settings_finish() computes the members below. */
    struct fp_names names; /* to ask about: those of all servers, unless AllowOverride is None everywhere */
    struct fp_chosen own;  /* which of names are this server's; none where these find no room */
    int keep_parsed;       /* 1: a parsed .htaccess serves all requests */
    unsigned host;         /* the server's number among the counters */
    struct fp_sections *sections; /* sections.h; NULL: core merges them */
    const void *rules;     /* httpd22/rules.h; NULL with httpd 2.4 */
};

/* The settings of a section, <Directory> or <Location>. */
struct fp_section_settings {
    int status; /* FlashpacheStatus: 0, 1 or -1: not set */
};

extern const command_rec fp_directives[];

/* True where FlashpacheStatus is on. */
bool fp_settings_allow_status(const request_rec *r);

void *fp_settings_create_section(apr_pool_t *p, char *dir);
void *fp_settings_merge_sections(apr_pool_t *p, void *base, void *add);

void *fp_settings_create(apr_pool_t *p, server_rec *s);
void *fp_settings_merge(apr_pool_t *p, void *base, void *add);

/* Call it once the configuration is complete: fills in the access file names, and the defaults of
 * unset directives. */
void fp_settings_finish(apr_pool_t *p, server_rec *s);

/* After that, for all servers: they ask about the names of all of them, as a child asks about one list.  A
 * server whose names find no room in it has core look for its access files. */
void fp_settings_share_names(server_rec *s);

/* check_config: OK if the directives fit together; logs an error otherwise. */
int fp_settings_check(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s);

/* The server's settings, which live as long as the configuration. */
struct fp_settings *fp_settings_of(const server_rec *s);

/* True if FlashpacheExclude names the path (normal form) or a directory above it. */
int fp_settings_excludes(const struct fp_settings *settings, const char *path, apr_size_t len);

#endif
