/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module's directives in Apache 1.3: those of docs/directives.md that make sense there.
 */
#ifndef FP_SETTINGS13_H
#define FP_SETTINGS13_H

#include <httpd.h>
#include <http_config.h>

#include "wire/wire.h"

#if defined(_FILE_OFFSET_BITS) && !defined(__LP64__)
#error "struct stat is another one than httpd's: Apache 1.3 is supported on 64-bit machines"
#endif

extern module MODULE_VAR_EXPORT flashpache_module;

/* A virtual host's settings, merged with the main server's. */
struct fp_settings {
    int engine;             /* 1, 0 or -1: not set */
    const char *socket;     /* main server only */
    int elsewhere;          /* main server only: FlashpacheDaemon elsewhere */
    int timeout_ms;         /* main server only */
    int open_files;         /* main server only: open files of a child; 0: each question is a message */
    array_header *excluded; /* of const char *: path prefixes, normal form */

    /* fp_settings_finish() computes the members below. */
    struct fp_names names; /* AccessFileName; none where AllowOverride is None everywhere */
    bool names_complete;   /* no further AccessFileName */
    bool names_asked;      /* they are the list that the child asks about */
    bool restricts_links;  /* in some directory links are not simply followed */
};

extern const command_rec fp_directives[];

void *fp_settings_create(pool *p, server_rec *s);
void *fp_settings_merge(pool *p, void *base, void *add);

/* Call it once the configuration is complete. */
void fp_settings_finish(pool *p, server_rec *s);
/* After that, for all servers: the names that a child asks about, those of the first server that has any. */
const struct fp_names *fp_settings_ask(server_rec *s);

struct fp_settings *fp_settings_of(const server_rec *s);

/* The <Directory> sections that core's walk applies, directory by directory. */
struct fp_overrides {
    const server_rec *server;
    int i;     /* the next section */
    int value; /* AllowOverride in force */
};

/* In front of "/". */
struct fp_overrides fp_settings_overrides(const server_rec *s);

/* Goes on to a directory, with a slash behind it, of so many components; "/" has one. They come in their
 * order. Returns AllowOverride there, as core compares it. */
int fp_settings_next_override(struct fp_overrides *o, const char *dir, unsigned components);

/* True if FlashpacheExclude names the path (normal form) or a directory above it. */
bool fp_settings_excludes(const struct fp_settings *settings, const char *path, size_t len);

#endif
