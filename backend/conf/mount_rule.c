/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conf/mount_rule.h"

#include <string.h>

bool fp_watch_by_parse(const char *name, int *by_r)
{
    static const char *const names[] = { "auto", "ttl", "inotify" };

    for (int by = FP_BY_AUTO; by <= FP_BY_INOTIFY; by++) {
        if (strcmp(name, names[by - FP_BY_AUTO]) == 0) {
            *by_r = by;
            return true;
        }
    }
    return false;
}
