/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FP_STATS_H
#define FP_STATS_H

struct fp_cache;
struct fp_dispatch;
struct fp_helpers;
struct fp_listener;

/* Logs one line of counters, "name=value" each. */
void fp_stats_log(const struct fp_cache *cache, const struct fp_dispatch *dispatch,
                  const struct fp_helpers *helpers, const struct fp_listener *listener);

#endif
