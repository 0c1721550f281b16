/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "stats.h"

#include <inttypes.h>

#include "cache.h"
#include "dispatch.h"
#include "helper.h"
#include "listener.h"
#include "log.h"

void fp_stats_log(const struct fp_cache *cache, const struct fp_dispatch *dispatch,
                  const struct fp_helpers *helpers, const struct fp_listener *listener)
{
    struct fp_cache_counts c = fp_cache_counts(cache);
    struct fp_dispatch_counts d = fp_dispatch_counts(dispatch);
    struct fp_helpers_counts h = fp_helpers_counts(helpers);
    struct fp_listener_counts l = fp_listener_counts(listener);

    fp_log(FP_LOG_INFO, 6, "hits=%" PRIu64 " misses=%" PRIu64 " joined=%" PRIu64
           " refreshed=%" PRIu64 " unanswered=%" PRIu64 " inflight=%zu files=%zu"
           " directories=%zu places=%zu absent=%zu"
           " evictions=%" PRIu64 " walks=%" PRIu64 " timeouts=%" PRIu64 " deaths=%" PRIu64
           " helpers=%u running=%u queued=%zu connections=%zu accepted=%" PRIu64
           " refused=%" PRIu64, d.hits, d.misses, d.joined, d.refreshed, d.unanswered,
           d.inflight, c.files, c.directories, c.places, c.absent, c.evictions, h.walks, h.timeouts, h.deaths,
           h.alive, h.running, h.queued, l.open, l.accepted, l.refused);
}
