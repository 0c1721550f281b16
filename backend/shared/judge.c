/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared/judge.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

/* It is well if the one number is not below the other; "0" and "1" are numbers themselves. */
static const struct rule {
    const char *low, *high;
    enum fp_gravity gravity;
    const char *well; /* NULL: nothing is told then */
    const char *why, *advice;
    const char *httpds; /* the advice where httpd started the daemon; NULL: the same */
} rules[] = {
    { "same_version", "1", FP_FAULT, "flashpached {version} answers, process {pid}, user {uid}",
      "the daemon is of release {version}, and this is {asking}",
      "install both from one release; then restart the daemon, and `apachectl graceful`", NULL },
    { "workers", "workers_wanted", FP_FAULT, "all {workers} workers live",
      "only {workers} of {workers_wanted} workers live", "FP0022 and FP0023 in the daemon's log have the reason",
      NULL },
    { "seccomp", "1", FP_NOTE, "the daemon and its workers have filters of system calls", "no filters of system calls",
      "seccomp = false, or see FP0070 in the log", NULL },
    { "prompt", "1", FP_NOTE, "the daemon runs as soon as a change is reported",
      "the daemon waits for its turn (FP0072), and while the processors are busy each change makes clients ask instead "
      "of using leases",
      "start flashpached as root, or with Nice=-10 and LimitNICE=-10 in its service",
      "start httpd, which started it, as root, or with Nice=-10 and LimitNICE=-10 in its service" },
    { "max_connections", "connections_wanted", FP_NOTE, "{descriptors} descriptors",
      "{descriptors} descriptors allow {max_connections} connections only, of the {connections_wanted} of "
      "max_connections",
      "raise LimitNOFILE= of flashpached.service (or `ulimit -n`), and restart it, or lower max_connections",
      "raise the limit of httpd, which started the daemon (Debian: APACHE_ULIMIT_MAX_FILES in /etc/apache2/envvars; "
      "else LimitNOFILE= of httpd's service), then stop httpd and start it, or lower max_connections" },
    { "0", "refused", FP_FAULT, NULL, "{refused} connections were refused since the daemon began",
      "FP0010 in its log names those of another identity; for the others raise max_connections", NULL },
    { "0", "displaced", FP_NOTE, NULL, "{displaced} idle connections were closed for new ones",
      "raise max_connections", NULL },
    { "0", "watches_refused", FP_FAULT, NULL,
      "{watches_refused} watches were refused since the daemon began (FP0042), and unwatched paths are looked at "
      "for each request, until unused entries give up their watches",
      "raise `sysctl fs.inotify.max_user_watches`; then `systemctl restart flashpached`, which resets the count",
      "raise `sysctl fs.inotify.max_user_watches`; then restart the daemon, which resets the count: `kill $(cat "
      "{socket}.lock)` ends it and httpd starts it again; a whole restart of httpd (`systemctl restart apache2` or "
      "`httpd`) does so, too" },
    { "0", "out_of_service", FP_FAULT, "no file system is out of service", "{out_of_service} file systems do not answer",
      "check their servers; `flashpachectl mounts` names them", NULL },
    { "fleet_connected", "fleet_member", FP_FAULT, "the fleet's stream is being read",
      "the fleet's stream is not being read, and what other machines change is seen after its TTL",
      "see FP0061 in the daemon's log, then url, user and password_file in flashpached.conf", NULL },
    { "fleet_sending", "fleet_member", FP_FAULT, NULL, "Redis accepts no message to the fleet",
      "see FP0061 in the daemon's log", NULL },
    { "0", "fleet_dropped", FP_NOTE, NULL, "{fleet_dropped} entries of the fleet's stream were not messages",
      "see FP0062 in the daemon's log", NULL },
};

static uint64_t value(const struct fp_judged *by, const char *name)
{
    if (name[1] == '\0')
        return (uint64_t)(name[0] - '0');
    if (strcmp(name, "same_version") == 0)
        return by->version == NULL || strcmp(by->version, by->asking) == 0;
    return by->value(by->ctx, name);
}

void fp_judge_fill_in(const struct fp_judged *by, const char *text, char *to, size_t size)
{
    size_t len = 0, n;
    char name[32], *unit;

    for (; *text != '\0' && len + 1 < size; text += n + (*text == '{')) {
        const char *word = NULL;

        n = strcspn(text, *text == '{' ? "}" : "{");
        snprintf(name, sizeof(name), "%.*s", (int)n - 1, text + 1);
        unit = strchr(name, '/');
        if (unit != NULL)
            *unit++ = '\0';
        if (*text != '{')
            len += (size_t)snprintf(to + len, size - len, "%.*s", (int)n, text);
        else if ((word = strcmp(name, "socket") == 0    ? by->socket
                         : strcmp(name, "version") == 0 ? by->version
                         : strcmp(name, "asking") == 0  ? by->asking
                                                        : NULL)
                 != NULL)
            len += (size_t)snprintf(to + len, size - len, "%s", word);
        else
            len += (size_t)snprintf(to + len, size - len, "%" PRIu64,
                                    value(by, name) / (uint64_t)(unit != NULL ? strtoull(unit, NULL, 10) : 1));
    }
    to[len < size ? len : size - 1] = '\0';
}

void fp_judge(const struct fp_judged *by, fp_found *found, void *ctx)
{
    /* Workers of a daemon that has just begun are no fault yet. */
    const char *young = value(by, "uptime_s") < FP_START_S ? "workers" : "";
    const bool httpds = value(by, "supervised") != 0;
    char why[512], advice[1024];

    for (const struct rule *r = rules; r < rules + sizeof(rules) / sizeof(rules[0]); r++) {
        const uint64_t low = value(by, r->low), high = value(by, r->high);
        const bool well = low >= high;

        if (well && (r->well == NULL || (high == 0 && r->low[0] != '0')))
            continue;
        fp_judge_fill_in(by, well ? r->well : r->why, why, sizeof(why));
        fp_judge_fill_in(by, well ? "" : httpds && r->httpds != NULL ? r->httpds : r->advice, advice, sizeof(advice));
        found(ctx, well ? FP_WELL : strcmp(r->low, young) == 0 ? FP_NOTE : r->gravity, why, advice);
    }
}
