/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of the status page at one moment: the module's counters and the daemon's own.
 */
#ifndef FP_SNAPSHOT_H
#define FP_SNAPSHOT_H

#include <httpd.h>
#include <stdbool.h>

#include "base/errors.h"
#include "shared/report.h"
#include "status/counters.h"

struct fp_snapshot_host {
    const char *name;
    apr_uint64_t counts[FP_COUNTS];
};

/* One of the daemon's counters or gauges that this release knows. */
struct fp_snapshot_counter {
    const struct fp_stat *stat;
    apr_uint64_t value;
};

/* A fact that the daemon reports of itself. */
struct fp_snapshot_fact {
    const char *key, *value;
};

struct fp_snapshot {
    const apr_array_header_t *hosts; /* of struct fp_snapshot_host */
    struct fp_snapshot_host total;
    struct fp_usage usage;
    unsigned children;
    const char *socket;
    fp_status daemon;                /* FP_OK, or the reason for no reply */
    apr_array_header_t *from_daemon; /* of struct fp_snapshot_counter */
    apr_array_header_t *mounts;      /* of struct fp_report_mount */
    apr_array_header_t *latencies;   /* of struct fp_report_latency */
    apr_array_header_t *about;       /* of struct fp_snapshot_fact */
};

/* As fp_client_create(). */
struct fp_client;
struct fp_client_settings;
typedef struct fp_client *fp_snapshot_client(const struct fp_client_settings *settings);

/*
 * post_config, once settings are finished: makes the counters. socket: the daemon's. counted_as
 * returns the place where a server's number among the counters is stored; NULL: the server has no
 * counter.
 */
void fp_snapshot_init(apr_pool_t *pconf, server_rec *s, const char *socket, fp_snapshot_client *make_client,
                      unsigned *(*counted_as)(const server_rec *s));

/* Takes the module's numbers; does not ask the daemon. */
void fp_snapshot_count(request_rec *r, struct fp_snapshot *f);

/* Takes the daemon's counters, or all of its reports. Waits at most half a second to connect, and for each
 * answer. */
void fp_snapshot_ask(request_rec *r, struct fp_snapshot *f, bool all);

/* 0: the daemon has no counter of that name, or did not answer. */
apr_uint64_t fp_snapshot_counter(const struct fp_snapshot *f, const char *name);

/* NULL: the daemon did not report it. */
const char *fp_snapshot_about(const struct fp_snapshot *f, const char *key);

/* NULL: no mount has that mount point. */
const struct fp_report_mount *fp_snapshot_mount_at(const struct fp_snapshot *f, const char *point);
const struct fp_report_latency *fp_snapshot_latency_at(const struct fp_snapshot *f, const char *point);

/* The sum of the counts from one outcome to another, both included. */
apr_uint64_t fp_snapshot_sum(const struct fp_snapshot_host *h, enum fp_count from, enum fp_count to);

/* The reason why the daemon did not answer, for people. */
const char *fp_snapshot_daemon_problem(const struct fp_snapshot *f);

#endif
