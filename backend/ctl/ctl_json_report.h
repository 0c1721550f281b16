/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's reports as JSON.  Names are those of the counters, and of the reports' keys (docs/protocol.md).
 */
#ifndef FP_CTL_JSON_REPORT_H
#define FP_CTL_JSON_REPORT_H

#include "ctl/ctl_json.h"
#include "ctl/ctl_report.h"

/* Prints the lines of a report (NULL: none) as a list of objects, and cuts them.  A line of another form is left out. */
void ctl_json_rows(struct ctl_json *j, const char *key, const struct fp_word *form, char *report);

/* Prints those that were read as one document, and cuts them. */
void ctl_json_reports(const struct ctl_reports *r);

#endif
