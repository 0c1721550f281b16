/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon built without hiredis: a configuration with a fleet is refused before
 * any of this is asked (conf_fleet.c). */
#include "config.h"
#include "fleet/fleet.h"

#include <errno.h>

#include "fleet/fleet_link.h"

struct fp_fleet *fp_fleet_create(struct ev_loop *loop, const struct fp_fleet_settings *settings,
                                 const struct fp_monitor *monitor, fp_fleet_forget *forget, void *ctx)
{
    (void)loop;
    (void)settings;
    (void)monitor;
    (void)forget;
    (void)ctx;
    return NULL;
}

void fp_fleet_destroy(struct fp_fleet **f)
{
    *f = NULL;
}

void fp_fleet_publish(struct fp_fleet *f, const char *path, size_t len, bool tree)
{
    (void)f;
    (void)path;
    (void)len;
    (void)tree;
}

int fp_fleet_connect(const struct fp_fleet_settings *settings)
{
    (void)settings;
    errno = ENOSYS;
    return -1;
}

struct fp_fleet_counts fp_fleet_counts(const struct fp_fleet *f)
{
    (void)f;
    return (struct fp_fleet_counts){ 0 };
}
