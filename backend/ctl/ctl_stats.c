/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl stats: the daemon's counters, for people and as JSON.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <getopt.h>
#include <stdlib.h>

#include "ctl/ctl_json_report.h"
#include "ctl/ctl_report.h"

static enum ctl_exit print_json_stats(const struct ctl *ctl)
{
    static const enum fp_report wanted[] = { FP_REPORT_STATS, FP_REPORT_MOUNTS, FP_REPORT_LATENCY,
                                             FP_REPORT_ABOUT, 0 };
    struct ctl_json j = { .to = stdout };
    char version[64] = "";
    struct ctl_reports r;
    enum ctl_exit rc = ctl_read_reports(ctl, wanted, &r);

    if (rc == CTL_DONE) {
        ctl_word(r.about, "version", version, sizeof(version));
        ctl_json_begin(&j, NULL, '{');
        ctl_json_text(&j, "version", version);
        ctl_json_stats(&j, r.stats);
        ctl_json_rows(&j, "mounts", fp_mount_form, r.mounts);
        ctl_json_rows(&j, "lookups", fp_latency_form, r.latency);
        ctl_json_finish(&j, '}');
    }
    ctl_free_reports(&r);
    return rc;
}

static enum ctl_exit print_latency(const struct ctl *ctl)
{
    enum ctl_exit rc;
    char *text = ctl_report(ctl, FP_REPORT_LATENCY, &rc);

    if (text != NULL)
        ctl_print_latency(text);
    free(text);
    return rc;
}

enum ctl_exit ctl_stats(const struct ctl *ctl, int argc, char **argv)
{
    static const struct option options[] = { { "prometheus", no_argument, NULL, 'p' },
                                             { "latency", no_argument, NULL, 'l' },
                                             { NULL, 0, NULL, 0 } };
    bool latency = false;
    int c;

    while ((c = ctl_option(argc, argv, "", options)) != -1) {
        if (c == '?')
            return ctl_misused(NULL);
        if (c == 'p')
            return ctl_misused("stats no longer has --prometheus: let Prometheus read the module's "
                               "status page, http://SERVER/flashpache-status?prometheus");
        latency = true;
    }
    if (optind != argc)
        return ctl_misused("stats takes no arguments but options");
    if (latency && ctl->json)
        return ctl_misused("stats takes one of --json and --latency");
    if (latency)
        return print_latency(ctl);
    return ctl->json ? print_json_stats(ctl) : ctl_print_report(ctl, FP_REPORT_STATS);
}
