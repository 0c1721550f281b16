/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "srpt/srpt_settings.h"

#include <apr_strings.h>

/* A virtual host's settings, merged with the main server's. */
struct settings {
    int scheduled;                   /* 0, 1 or -1: not set */
    const struct fp_classes *bounds; /* FlashpachePriorities; NULL: not set */
};

void *fp_srpt_settings_create(apr_pool_t *p, server_rec *s)
{
    struct settings *n = apr_pcalloc(p, sizeof(*n));

    (void)s;
    n->scheduled = -1;
    return n;
}

void *fp_srpt_settings_merge(apr_pool_t *p, void *base, void *add)
{
    struct settings *n = apr_pmemdup(p, base, sizeof(*n));
    const struct settings *a = add;

    if (a->scheduled != -1)
        n->scheduled = a->scheduled;
    if (a->bounds != NULL)
        n->bounds = a->bounds;
    return n;
}

static struct settings *settings_of(const server_rec *s)
{
    return ap_get_module_config(s->module_config, &flashpache_srpt_module);
}

const struct fp_classes *fp_srpt_settings_classes(const server_rec *s)
{
    const struct settings *n = settings_of(s);

    if (n->scheduled != 1)
        return NULL;
    return n->bounds != NULL ? n->bounds : &fp_usual_classes;
}

/* ---- directives ---- */

static const char *set_schedule(cmd_parms *cmd, void *dir, const char *arg)
{
    (void)dir;
    if (strcasecmp(arg, "Off") != 0 && strcasecmp(arg, "SRPT") != 0)
        return apr_psprintf(cmd->pool, "FlashpacheSchedule %s: give Off or SRPT", arg);
    settings_of(cmd->server)->scheduled = strcasecmp(arg, "SRPT") == 0;
    return NULL;
}

static const char *set_bounds(cmd_parms *cmd, void *dir, int argc, char *const argv[])
{
    struct fp_classes *classes = apr_pcalloc(cmd->pool, sizeof(*classes));

    (void)dir;
    if (argc < 1 || argc > FP_MAX_BOUNDS)
        return apr_psprintf(cmd->pool, "FlashpachePriorities: give 1 to %d sizes, not %d", FP_MAX_BOUNDS,
                            argc);
    for (int i = 0; i < argc; i++) {
        if (!fp_bytes_parse(argv[i], &classes->bounds[i]))
            return apr_psprintf(cmd->pool,
                                "FlashpachePriorities %s: give a number of bytes, "
                                "such as 500, 20K or 1M",
                                argv[i]);
        if (i > 0 && classes->bounds[i] <= classes->bounds[i - 1])
            return apr_psprintf(cmd->pool,
                                "FlashpachePriorities %s %s: give the smaller "
                                "size first",
                                argv[i - 1], argv[i]);
    }
    classes->n_bounds = (unsigned)argc;
    settings_of(cmd->server)->bounds = classes;
    return NULL;
}

/* httpd's macros call every kind of handler through one function type. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-function-type"
const command_rec fp_srpt_directives[] = {
    AP_INIT_TAKE1("FlashpacheSchedule", set_schedule, NULL, RSRC_CONF,
                  "SRPT: a socket's priority is by what remains of its response; Off: untouched"),
    AP_INIT_TAKE_ARGV("FlashpachePriorities", set_bounds, NULL, RSRC_CONF,
                      "ascending sizes at which priorities change (1K 2K 5K 20K 50K)"),
    { NULL }
};
#pragma GCC diagnostic pop
