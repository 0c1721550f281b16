/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of flashpache-bench.
 */
#ifndef BENCH_ARGS_H
#define BENCH_ARGS_H

#include <stdbool.h>
#include <stdint.h>

struct bench_args {
    const char *host;
    const char *port;
    unsigned connections;
    uint64_t requests; /* measured ones; 0: no limit */
    double duration_s; /* 0: no limit */
    uint64_t per_connection; /* 0: no limit */
    uint64_t warmup;
    double rate; /* requests per second; 0: closed loop */
    bool constant_arrivals;
    bool random;
    uint64_t seed;
    double timeout_s;
    bool allow_errors;
    const char *urls;    /* file of paths, or NULL */
    const char *verify;  /* directory, or NULL */
    const char *json;    /* file, or NULL */
    const char *records; /* file, or NULL */
    char **paths;        /* paths on the command line */
    int path_count;
};

/*
 * Returns -1 when the program shall go on, else the exit status (0 after --help, 2 after an
 * error, which was printed). The strings are those of argv.
 */
int bench_args_parse(int argc, char **argv, struct bench_args *args_r);

#endif
