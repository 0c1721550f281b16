/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "srpt/srpt_settings.h"

#include <apr_strings.h>
#include <http_log.h>

APLOG_USE_MODULE(flashpache_srpt);

/* A virtual host's settings, merged with the main server's. */
struct settings {
    int scheduled;                        /* 0, 1 or -1: not set */
    const struct fp_classes *bounds;      /* FlashpachePriorities; NULL: not set */
    const apr_array_header_t *priorities; /* of int: FlashpachePriorityValues; NULL: not set */
    struct fp_classes classes;            /* bounds with their priorities, once finished */
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
    if (a->priorities != NULL)
        n->priorities = a->priorities;
    return n;
}

static struct settings *settings_of(const server_rec *s)
{
    return ap_get_module_config(s->module_config, &flashpache_srpt_module);
}

static const struct fp_classes *bounds_of(const struct settings *n)
{
    return n->bounds != NULL ? n->bounds : &fp_usual_classes;
}

/* Bounds and priorities may come from the main server and from a virtual host, so
 * only the merged settings show whether they fit. */
int fp_srpt_settings_check(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s)
{
    (void)pconf;
    (void)plog;
    (void)ptemp;
    for (; s != NULL; s = s->next) {
        const struct settings *n = settings_of(s);
        unsigned needed = bounds_of(n)->n_bounds + 1;

        if (n->priorities == NULL || (unsigned)n->priorities->nelts == needed)
            continue;
        ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, s,
                     "FP0109: "
                     "FlashpachePriorityValues has %d values for %s: FlashpachePriorities makes "
                     "%u classes (one more than its bounds); give one value for each",
                     n->priorities->nelts,
                     s->server_hostname != NULL ? s->server_hostname : "the main server", needed);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return OK;
}

void fp_srpt_settings_finish(server_rec *s)
{
    for (; s != NULL; s = s->next) {
        struct settings *n = settings_of(s);

        n->classes = *bounds_of(n);
        for (int i = 0; n->priorities != NULL && i < n->priorities->nelts; i++)
            n->classes.priorities[i] = APR_ARRAY_IDX(n->priorities, i, int);
    }
}

const struct fp_classes *fp_srpt_settings_classes(const server_rec *s)
{
    const struct settings *n = settings_of(s);

    return n->scheduled == 1 ? &n->classes : NULL;
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
    fp_classes_number(classes);
    settings_of(cmd->server)->bounds = classes;
    return NULL;
}

static const char *set_priorities(cmd_parms *cmd, void *dir, int argc, char *const argv[])
{
    apr_array_header_t *list = apr_array_make(cmd->pool, FP_MAX_CLASSES, sizeof(int));

    (void)dir;
    if (argc < 1 || argc > FP_MAX_CLASSES)
        return apr_psprintf(cmd->pool,
                            "FlashpachePriorityValues: give one value for each "
                            "class, 2 to %d of them, not %d",
                            FP_MAX_CLASSES, argc);
    for (int i = 0; i < argc; i++) {
        if (!fp_priority_parse(argv[i], &APR_ARRAY_PUSH(list, int)))
            return apr_psprintf(cmd->pool,
                                "FlashpachePriorityValues %s: give 0 to %d; more "
                                "would need a privilege (CAP_NET_ADMIN) that httpd's children "
                                "do not have",
                                argv[i], FP_MAX_PRIORITY);
    }
    settings_of(cmd->server)->priorities = list;
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
    AP_INIT_TAKE_ARGV("FlashpachePriorityValues", set_priorities, NULL, RSRC_CONF,
                      "the priority (SO_PRIORITY, 0 to 6) of each class (1 2 3 4 5 6)"),
    { NULL }
};
#pragma GCC diagnostic pop
