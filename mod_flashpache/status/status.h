/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The status page: for people, as lines "Name: value" (?auto) and for Prometheus (?prometheus), and
 * a section of mod_status. docs/status.md explains the numbers.
 */
#ifndef FP_STATUS_H
#define FP_STATUS_H

#include <httpd.h>
#include <stdbool.h>

struct fp_snapshot;

/* The handler "flashpache-status". */
int fp_status_respond(request_rec *r, bool allowed);

/* mod_status's hook: writes the module's own numbers. */
int fp_status_section(request_rec *r, int flags);

/* ---- the forms ---- */

void fp_status_page(request_rec *r, const struct fp_snapshot *f);
void fp_status_lines(request_rec *r, const struct fp_snapshot *f);
void fp_status_metrics(request_rec *r, const struct fp_snapshot *f);

/* A section of fp_status_page(): file systems with their latency. */
void fp_status_write_mounts(request_rec *r, const struct fp_snapshot *f);

/* A part of fp_status_lines(): the module's totals. */
void fp_status_total_lines(request_rec *r, const struct fp_snapshot *f);

#endif
