/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's reports as members of a JSON object, which has begun.  Names are those of the counters, and of
 * the reports' keys (docs/protocol.md).  A line of another form is left out.
 */
#ifndef FP_CTL_JSON_REPORT_H
#define FP_CTL_JSON_REPORT_H

#include "ctl/ctl_json.h"
#include "shared/report.h"

void ctl_json_stats(struct ctl_json *j, const char *report);
/* "daemon" */
void ctl_json_about(struct ctl_json *j, const char *report);
/* An array of the report's rows, of mounts, latencies or slow lookups; cuts the report. */
void ctl_json_rows(struct ctl_json *j, const char *key, const struct fp_word *form, char *report);

#endif
