/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's reports as members of a JSON object, which has begun.  Names are those of the counters, and of
 * the reports' keys (docs/protocol.md).  A line of another form is left out.
 */
#ifndef FP_CTL_JSON_REPORT_H
#define FP_CTL_JSON_REPORT_H

#include "ctl/ctl_json.h"

void ctl_json_stats(struct ctl_json *j, const char *report);
/* "daemon" */
void ctl_json_about(struct ctl_json *j, const char *report);
/* "mounts", "lookups", "slow" and "hot": they cut the report. */
void ctl_json_mounts(struct ctl_json *j, char *report);
void ctl_json_lookups(struct ctl_json *j, char *report);
void ctl_json_slow(struct ctl_json *j, char *report);
void ctl_json_hot(struct ctl_json *j, char *report);

#endif
