/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds numbers in a snapshot. Uses no httpd.
 */
#include "config.h"
#include "status/snapshot.h"

#include <string.h>

apr_uint64_t fp_snapshot_sum(const struct fp_snapshot_host *h, enum fp_count from, enum fp_count to)
{
    apr_uint64_t sum = 0;

    for (unsigned what = from; what <= (unsigned)to; what++)
        sum += h->counts[what];
    return sum;
}

apr_uint64_t fp_snapshot_counter(const struct fp_snapshot *f, const char *name)
{
    for (int i = 0; i < f->from_daemon->nelts; i++) {
        const struct fp_snapshot_counter *c = &APR_ARRAY_IDX(f->from_daemon, i, struct fp_snapshot_counter);

        if (strcmp(c->stat->name, name) == 0)
            return c->value;
    }
    return 0;
}

const char *fp_snapshot_about(const struct fp_snapshot *f, const char *key)
{
    for (int i = 0; i < f->about->nelts; i++) {
        const struct fp_snapshot_fact *fact = &APR_ARRAY_IDX(f->about, i, struct fp_snapshot_fact);

        if (strcmp(fact->key, key) == 0)
            return fact->value;
    }
    return NULL;
}

const struct fp_report_mount *fp_snapshot_mount_at(const struct fp_snapshot *f, const char *point)
{
    for (int i = 0; i < f->mounts->nelts; i++) {
        const struct fp_report_mount *m = &APR_ARRAY_IDX(f->mounts, i, struct fp_report_mount);

        if (strcmp(m->point, point) == 0)
            return m;
    }
    return NULL;
}

const struct fp_report_latency *fp_snapshot_latency_at(const struct fp_snapshot *f, const char *point)
{
    for (int i = 0; i < f->latencies->nelts; i++) {
        const struct fp_report_latency *l = &APR_ARRAY_IDX(f->latencies, i, struct fp_report_latency);

        if (strcmp(l->point, point) == 0)
            return l;
    }
    return NULL;
}

const char *fp_snapshot_daemon_problem(const struct fp_snapshot *f)
{
    switch (f->daemon) {
    case FP_CLOSED: return "nobody listens at its socket";
    case FP_TIMEOUT: return "it hangs or is stopped";
    case FP_FOREIGN: return "its socket was not made by root, so it is not trusted";
    case FP_ELSEWHERE: return "it does not see the files that httpd sees";
    default: return fp_status_text(f->daemon);
    }
}
