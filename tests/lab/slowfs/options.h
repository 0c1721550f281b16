/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of slowfs.
 */
#ifndef SLOWFS_OPTIONS_H
#define SLOWFS_OPTIONS_H

#include "behaviour.h"

#include <stdbool.h>

struct slowfs_options {
    char *source;     /* absolute, without symbolic links */
    char *mountpoint; /* absolute, without symbolic links */
    char *stats;      /* absolute path or NULL */
    char *control;    /* absolute path or NULL */
    struct slowfs_behaviour behaviour;
    double attr_timeout;
    double entry_timeout;
    double absent_timeout;
    double clock_lag; /* seconds, */
    bool whole_seconds; /* and times are shown in whole ones */
    bool keep_cache;
    bool flush;
    bool foreground;
};

/*
 * Parses the command line and checks the directories. Returns -1 when slowfs shall go on,
 * else the exit status (0 after --help, 1 after an error, which was printed).
 * Free with slowfs_options_free() in any case.
 */
int slowfs_options_parse(int argc, char **argv, struct slowfs_options *options_r);

void slowfs_options_free(struct slowfs_options *options);

#endif
