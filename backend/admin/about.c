/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "admin/about.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/text.h"
#include "common/wire.h"
#include "conf/conf.h"

static size_t number(const char *key, uint64_t v, char *room, size_t size)
{
    return (size_t)snprintf(room, size, "%s %" PRIu64 "\n", key, v);
}

static size_t word(const char *key, const char *v, char *room, size_t size)
{
    char text[FP_MAX_PATH + 1];

    fp_text_escape(text, sizeof(text), v, strlen(v));
    return (size_t)snprintf(room, size, "%s %s\n", key, text);
}

size_t fp_about_line(void *ctx, uint32_t n, char *room, size_t size)
{
    const struct fp_about *a = ctx;

    switch (n) {
    case 0: return word("version", PACKAGE_VERSION, room, size);
    case 1: return number("pid", (uint64_t)getpid(), room, size);
    case 2: return number("uid", a->conf->uid, room, size);
    case 3: return number("gid", a->conf->gid, room, size);
    case 4: return number("uptime_s", (fp_now_ms() - a->began_ms) / 1000, room, size);
    case 5: return word("config", a->file, room, size);
    case 6: return word("log", a->conf->log, room, size);
    case 7: return word("log_level", fp_log_level_text(fp_log_level()), room, size);
    case 8: return number("helpers_wanted", a->conf->workers, room, size);
    case 9: return number("descriptors", a->descriptors, room, size);
    case 10: return number("max_connections", a->max_connections, room, size);
    case 11: return number("connections_wanted", a->conf->max_connections, room, size);
    case 12: return word("seccomp", a->seccomp ? "on" : "off", room, size);
    default: return 0;
    }
}
