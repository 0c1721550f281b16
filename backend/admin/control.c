/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "cache/cache.h"
#include "changes/mounts.h"
#include "wire/answer.h"

static void purge(const struct fp_control_deps *deps, const struct fp_control *question,
                  struct fp_reply *reply)
{
    const bool all = question->scope == FP_SCOPE_ALL;
    const bool tree = question->scope != FP_SCOPE_PATH;
    const char *path = all ? "/" : question->path;
    const size_t len = all ? 1 : question->path_len;

    reply->count = deps->forget(deps->ctx, path, len, tree);
    if (deps->purged != NULL)
        deps->purged(deps->ctx, path, len, tree);
    fp_log(FP_LOG_INFO, 50, "forgotten as asked: %.*s%s, %" PRIu64 " entries", (int)len, path,
           tree ? " and all below" : "", reply->count);
}

/* Writes as many lines from that number on as one answer can hold, at least one if there is one. */
static void report(const struct fp_report_source *source, uint32_t from, struct fp_reply *reply)
{
    static char text[FP_MAX_REPORT];
    size_t n = 1;

    if (source->line == NULL) {
        reply->status = FP_FAILED;
        return;
    }
    reply->text = text;
    /* The cursor stops before it would begin anew. */
    while (n > 0 && from < UINT32_MAX && sizeof(text) - reply->text_len >= FP_REPORT_LINE) {
        n = source->line(source->ctx, from, text + reply->text_len, FP_REPORT_LINE);
        reply->text_len += n;
        from += n > 0;
    }
    reply->next = n > 0 && reply->text_len > 0 ? from : 0;
}

/* ---- the state of a path ---- */

/* "LEN STATE WATCH REASON LEFT_MS LEASE KEPT POINT", for each component. */
static size_t explain_line(const struct fp_control_deps *deps, const struct fp_control *question, size_t len,
                           char *buf, size_t size)
{
    static const char *const states[] = { "unknown", "detached", "changed", "expired", "known" };
    const uint64_t now_ms = fp_now_ms();
    const struct fp_cache_snapshot v = fp_cache_snapshot(deps->cache, question->path, len, now_ms);
    const struct fp_mount *m = fp_mounts_find(deps->mounts, v.mount);
    const char *mount = m != NULL ? m->point : "?";
    char point[FP_MAX_PATH + 1];

    fp_text_escape(point, sizeof(point), mount, strlen(mount));
    return (size_t)snprintf(buf, size, "%zu %s %s %s %" PRIu64 " %s %s %s\n", len, states[v.state],
                            fp_verdict_text(v.verdict), fp_verdict_reason(v.verdict),
                            v.expires_ms > now_ms ? v.expires_ms - now_ms : 0, v.leased ? "lease" : "-",
                            v.content ? "content"
                            : v.open  ? "open"
                                      : "-",
                            point);
}

static void explain(const struct fp_control_deps *deps, const struct fp_control *question,
                    struct fp_reply *reply)
{
    static char text[FP_MAX_REPORT];

    reply->text = text;
    /* Nothing is known of deeper components. */
    for (size_t at = 1, n = 0; n < FP_MAX_STEPS && sizeof(text) - reply->text_len >= FP_REPORT_LINE;
         at = fp_path_child_len(question->path, question->path_len, at), n++) {
        reply->text_len +=
            explain_line(deps, question, at, text + reply->text_len, sizeof(text) - reply->text_len);
        if (at == question->path_len)
            return;
    }
}

void fp_control_answer(const struct fp_control_deps *deps, const struct fp_control *question,
                       struct fp_reply *reply)
{
    memset(reply, 0, sizeof(*reply));
    switch (question->op) {
    case FP_CONTROL_PURGE: purge(deps, question, reply); break;
    case FP_CONTROL_EXPLAIN: explain(deps, question, reply); break;
    default: report(&deps->reports[question->what], question->from, reply);
    }
}
