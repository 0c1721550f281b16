/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the daemon that another configuration changes while it runs.
 */
#ifndef FP_RELOAD_H
#define FP_RELOAD_H

#include <stdbool.h>
#include <stddef.h>

struct flashpached;
struct fp_conf;

/* Reads the configuration again.  With mistakes the old one stays, which is logged. */
void fp_reload(struct flashpached *d);

/* Opens the log.  False after logging why not. */
bool fp_open_log(const struct fp_conf *c);

/* Warns if this process could not open the log again; to be called with the rights of the daemon's user. */
void fp_check_log(const struct fp_conf *c);

/* Joins the fleet of that configuration, if it has one; d->fleet_conf is c then. */
void fp_join_fleet(struct flashpached *d, struct fp_conf *c);
void fp_leave_fleet(struct flashpached *d);

/* Does as fp_dispatch_forget(); ctx is the daemon. */
size_t fp_forget(void *ctx, const char *path, size_t len, bool tree);

/* Publishes a changed path to the fleet; ctx is the daemon. */
void fp_publish_change(void *ctx, const char *path, size_t len, bool tree);

#endif
