/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "status/health.h"

#include <apr_lib.h>
#include <apr_strings.h>
#include <stdlib.h>
#include <string.h>

#include "shared/judge.h"
#include "status/snapshot.h"
#include "wire/wire.h"

#define U64           "%" APR_UINT64_T_FMT
#define MANY_FALLBACK 100u /* one fallback in so many requests makes a finding */

struct look {
    apr_pool_t *pool;
    const struct fp_snapshot *f;
    struct fp_health *health;
};

static void find(const struct look *at, enum fp_health_level level, const char *why, const char *advice)
{
    struct fp_finding *finding = apr_array_push(at->health->findings);

    *finding = (struct fp_finding){ level, why, advice };
    if (level > at->health->level)
        at->health->level = level;
}

/* httpd's parent starts its daemon again, however that
 * ended.  Of httpd's restarts only a whole one ends it. */
#define END_BY \
    "`kill -KILL $(cat %s.lock)` ends it and httpd starts it again; a whole restart of httpd " \
    "(`systemctl restart apache2` or `httpd`) does so, too."

static const char *advice_for_daemon(const struct look *at)
{
    switch (at->f->daemon) {
    case FP_CLOSED:
        return "Start it: httpd does with FlashpacheDaemon auto, systemd with "
               "`systemctl start flashpached`. FP0101 in httpd's error log has the reason.";
    case FP_TIMEOUT:
        return apr_psprintf(
            at->pool,
            "Read the end of its log. Then `systemctl restart flashpached`. Where httpd started it, a "
            "graceful restart keeps it: " END_BY,
            at->f->socket);
    case FP_FOREIGN:
        return "Start flashpached as root, by its systemd socket or by httpd (FP0114 in httpd's error log).";
    case FP_ELSEWHERE:
        return "Run both in one container, or set FlashpacheDaemon elsewhere (FP0115 in httpd's error log).";
    case FP_VERSION:
        return "Install module and daemon from one release. Then restart the daemon, and "
               "`apachectl graceful`.";
    default: return "As root, `flashpachectl check` looks at everything between httpd and the daemon.";
    }
}

static void look_at_daemon(const struct look *at)
{
    const struct fp_snapshot *f = at->f;

    if (f->daemon == FP_OK)
        return;
    find(at, FP_DOWN,
         apr_psprintf(at->pool,
                      "The daemon at %s does not answer: %s. httpd serves each request by itself, as without "
                      "Flashpache.",
                      f->socket, fp_snapshot_daemon_problem(f)),
         advice_for_daemon(at));
}

static void look_at_mounts(const struct look *at)
{
    for (int i = 0; i < at->f->mounts->nelts; i++) {
        const struct fp_report_mount *m = &APR_ARRAY_IDX(at->f->mounts, i, struct fp_report_mount);

        if (m->out)
            find(
                at, FP_DEGRADED,
                apr_psprintf(at->pool, "The %s file system at %s does not answer.", m->type, m->point),
                m->stale_ms > 0
                    ? "Check its server. Meanwhile stale answers are served (stale_if_error_ms), and other "
                      "file systems are not affected."
                    : "Check its server. Other file systems are not affected. stale_if_error_ms in its mount "
                      "section would serve stale answers meanwhile.");
    }
}

static uint64_t judged_value(const void *ctx, const char *name)
{
    const struct fp_snapshot *f = ctx;
    const char *word = fp_snapshot_about(f, name);

    /* Each file system that does not answer is told by its name. */
    if (strcmp(name, "out_of_service") == 0)
        return 0;
    if (word == NULL)
        return fp_snapshot_counter(f, name);
    return strcmp(word, "on") == 0 ? 1 : strtoull(word, NULL, 10);
}

static const char *sentence(apr_pool_t *p, const char *text)
{
    return apr_psprintf(p, "%c%s.", apr_toupper(text[0]), text + 1);
}

static void on_found(void *ctx, enum fp_gravity gravity, const char *why, const char *advice)
{
    const struct look *at = ctx;

    if (gravity == FP_FAULT)
        find(at, FP_DEGRADED, sentence(at->pool, why), sentence(at->pool, advice));
}

static void look_at_reports(struct look *at)
{
    const struct fp_snapshot *f = at->f;
    const struct fp_judged by = { judged_value, f, f->socket, fp_snapshot_about(f, "version"), FP_RELEASE };
    const apr_uint64_t queued = fp_snapshot_counter(f, "queued");

    fp_judge(&by, on_found, at);
    if (queued > 0 && queued >= fp_snapshot_counter(f, "workers") && judged_value(f, "uptime_s") >= FP_START_S)
        find(at, FP_DEGRADED, apr_psprintf(at->pool, U64 " lookups wait for a free worker.", queued),
             "FP0046 in the daemon's log shows where the workers are. Raise workers in flashpached.conf if "
             "this lasts.");
}

/* Counters outlive an outage, so these findings say nothing about the present moment. */
static void look_at_requests(const struct look *at)
{
    const struct fp_snapshot_host *t = &at->f->total;
    apr_uint64_t all = fp_snapshot_sum(t, 0, FP_OUTCOMES - 1);
    apr_uint64_t fallback = fp_snapshot_sum(t, FP_COUNT_NOBODY, FP_COUNT_ERROR);

    if (t->counts[FP_COUNT_DIFFERENT] > 0)
        find(at, FP_HEALTHY,
             apr_psprintf(at->pool, "Shadow: " U64 " of " U64 " compared requests differed.",
                          t->counts[FP_COUNT_DIFFERENT], t->counts[FP_COUNT_COMPARED]),
             "FP0120 in httpd's error log has each with both results.");
    if (fallback > 0 && fallback * MANY_FALLBACK >= all)
        find(at, FP_HEALTHY,
             apr_psprintf(at->pool,
                          U64 " of " U64
                              " requests since httpd was started fell back: httpd served them by itself.",
                          fallback, all),
             "If the number grows, the reasons below say what to do.");
    if (at->f->hosts->nelts == 0)
        find(at, FP_HEALTHY, "FlashpacheEngine is off everywhere.", "`FlashpacheEngine On` makes use of it.");
}

struct fp_health fp_health_of(apr_pool_t *p, const struct fp_snapshot *f)
{
    struct fp_health health = { FP_HEALTHY, apr_array_make(p, 8, sizeof(struct fp_finding)) };
    struct look at = { p, f, &health };

    /* The worst come first. */
    look_at_daemon(&at);
    look_at_mounts(&at);
    look_at_reports(&at);
    look_at_requests(&at);
    return health;
}

const char *fp_health_text(enum fp_health_level level)
{
    static const char *const texts[] = { "healthy", "degraded", "down" };

    return texts[level];
}
