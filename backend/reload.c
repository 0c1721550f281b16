/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "reload.h"

#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "cache/cache.h"
#include "changes/coherence.h"
#include "changes/mounts.h"
#include "conf/conf.h"
#include "conf/conf_fleet.h"
#include "derive.h"
#include "flashpached.h"
#include "fleet/fleet.h"
#include "ipc/listener.h"
#include "lookup/dispatch.h"
#include "shared/lease_table.h"
#include "workers/worker_pool.h"

/* errno says why. */
static void report_log(const struct fp_conf *c)
{
    const char *way = errno == ENXIO ? "; it is a socket, or a FIFO whose reader has to start first"
                      : errno == ELOOP ? "; it is a link: name the file that it leads to"
                                       : "";

    fp_log(FP_LOG_ERROR, 8, "cannot open the log %s: %m%s", c->log, way);
}

void fp_check_log(const struct fp_conf *c)
{
    if (c->log[0] == '/' && access(c->log, W_OK) == -1)
        fp_log(FP_LOG_WARNING, 8,
               "uid %u cannot open the log %s again after a rotation (%m): give the file to that user, and "
               "let the rotation do so (logrotate's create)",
               (unsigned)c->uid, c->log);
}

bool fp_open_log(const struct fp_conf *c)
{
    if (fp_log_open(c->log, (enum fp_log_level)c->log_level) == 0) {
        if (geteuid() == 0 && fp_log_chown(c->uid, c->gid) == -1)
            fp_log(FP_LOG_WARNING, 8, "cannot give the log %s to uid %u: %m", c->log, (unsigned)c->uid);
        return true;
    }
    report_log(c);
    return false;
}

static void reopen_log(const struct flashpached *d, const struct fp_conf *c)
{
    int fd;

    if (c->log[0] != '/') {
        fp_open_log(c);
        return;
    }
    fd = fp_monitor_ask(&d->monitor, FP_MONITOR_LOG);
    if (fd != -1)
        fp_log_take_file(fd, (enum fp_log_level)c->log_level);
    else
        report_log(c);
}

size_t fp_forget(void *ctx, const char *path, size_t len, bool tree)
{
    const struct flashpached *d = ctx;

    return fp_dispatch_forget(d->dispatch, path, len, tree);
}

void fp_publish_change(void *ctx, const char *path, size_t len, bool tree)
{
    const struct flashpached *d = ctx;

    fp_fleet_publish(d->fleet, path, len, tree);
}

void fp_leave_fleet(struct flashpached *d)
{
    fp_cache_set_report_changed(d->cache, NULL, NULL);
    fp_fleet_destroy(&d->fleet);
    if (d->fleet_conf != d->conf)
        fp_conf_destroy(&d->fleet_conf);
    d->fleet_conf = NULL;
}

void fp_join_fleet(struct flashpached *d, struct fp_conf *c)
{
    if (c->fleet == NULL)
        return;
    d->fleet = fp_fleet_create(d->loop, c->fleet, &d->monitor, fp_forget, d);
    if (d->fleet == NULL) {
        fp_log(FP_LOG_ERROR, 61, "fleet: out of memory; this daemon is in none");
        return;
    }
    d->fleet_conf = c;
    if (c->fleet->publish_changes)
        fp_cache_set_report_changed(d->cache, fp_publish_change, d);
}

/* Applies a configuration; entries stay, with the TTL that they have. */
static void apply(struct flashpached *d, const struct fp_conf *c)
{
    const struct fp_mounts_settings mounts = fp_derive_mounts(c);
    const struct fp_dispatch_settings dispatch = fp_derive_dispatch(d, c);
    const struct fp_worker_pool_settings workers = fp_derive_workers(d, c);
    const struct fp_cache_content content = fp_derive_content(d, c);
    struct fp_cache_limits limits;

    fp_derive_limits(d, c, &limits);
    fp_cache_set_limits(d->cache, &limits);
    fp_cache_set_content(d->cache, &content);
    fp_worker_pool_set(d->workers, &workers);
    fp_dispatch_set(d->dispatch, &dispatch);
    fp_lease_table_set_unreported(d->tables.leases, 0);
    /* Entries have the validity that the former rules of mounts gave them. */
    fp_cache_invalidate(d->cache, "/");
    if (fp_mounts_set(d->mounts, &mounts) != -1)
        fp_lease_table_set_unreported(d->tables.leases, fp_derive_unreported_ms(c));
    else
        fp_log(FP_LOG_ERROR, 8, "the settings of mounts stay as they were: %m");
}

void fp_reload(struct flashpached *d)
{
    const int fd = fp_monitor_ask(&d->monitor, FP_MONITOR_CONFIGURATION);
    struct fp_conf *c;
    char keys[256];

    if (fd == -1 && errno != EINVAL) {
        fp_log(FP_LOG_ERROR, 8,
               "cannot open %s as uid %u: %m; keeping the old settings: that user must be able to read it",
               d->args.file, (unsigned)d->conf->uid);
        return;
    }
    c = fd == -1 ? NULL : fp_conf_reload(fd, d->conf, d->args.overrides, d->args.n_overrides);
    if (c == NULL) {
        fp_log(FP_LOG_ERROR, 8,
               "%s has mistakes: keeping the old settings; check it with flashpached -t -c %s", d->args.file,
               d->args.file);
        return;
    }
    reopen_log(d, c);
    apply(d, c);
    if (fp_conf_needs_restart(d->conf, c, keys, sizeof(keys)))
        fp_log(FP_LOG_WARNING, 9, "changed settings that take effect after a restart only: %s", keys);
    fp_log(FP_LOG_INFO, 8, "configuration %s reread", d->args.file);
    if (d->fleet != NULL && c->fleet != NULL ? !fp_fleet_settings_equal(d->fleet_conf->fleet, c->fleet)
                                             : d->fleet != NULL || c->fleet != NULL) {
        fp_leave_fleet(d);
        fp_join_fleet(d, c);
    }
    if (c != d->fleet_conf)
        fp_conf_destroy(&c);
}
