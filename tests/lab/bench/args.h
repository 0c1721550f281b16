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
    uint64_t requests;       /* measured ones; 0: no limit */
    double duration_s;       /* 0: no limit */
    uint64_t per_connection; /* 0: no limit */
    uint64_t warmup;
    double rate;     /* requests per second; 0: closed loop, or sessions */
    double sessions; /* sessions that arrive per second; 0: none */
    uint64_t session_requests;
    bool geometric_sessions; /* session_requests is the mean */
    double think_s;
    bool constant_arrivals;
    bool random;
    bool once; /* each path once */
    bool tls;
    uint64_t seed;
    double timeout_s;
    bool allow_errors;
    const char *urls;    /* file of paths, or NULL */
    const char *verify;  /* directory, or NULL */
    const char *json;    /* file, or NULL */
    const char *records; /* file, or NULL */
    const char *series;  /* file, or NULL */
    double interval_s;   /* of the series */
    char **paths;        /* paths on the command line */
    int path_count;
};

/*
 * Returns -1 when the program shall go on, else the exit status (0 after --help, 2 after an
 * error, which was printed). The strings are those of argv.
 */
int bench_args_parse(int argc, char **argv, struct bench_args *args_r);

/* The arrivals per second, whatever the server does: requests or sessions; 0: closed loop. */
double bench_args_arrivals(const struct bench_args *args);

/* "open", "partly-open" or "closed". */
const char *bench_args_loop(const struct bench_args *args);

#endif
