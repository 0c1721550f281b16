/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conf/mount_rule.h"

#include <string.h>

static const char *const by_names[] = {
    [FP_BY_TTL] = "ttl",
    [FP_BY_INOTIFY] = "inotify",
};
#define BY_NAMES ((int)(sizeof(by_names) / sizeof(by_names[0])))

const char *fp_watch_by_text(enum fp_watch_by by)
{
    return (int)by < BY_NAMES ? by_names[by] : "?";
}

bool fp_watch_by_parse(const char *name, int *by_r)
{
    for (int by = 0; by < BY_NAMES; by++) {
        if (strcmp(name, by_names[by]) == 0) {
            *by_r = by;
            return true;
        }
    }
    if (strcmp(name, "auto") != 0)
        return false;
    *by_r = FP_BY_AUTO;
    return true;
}
