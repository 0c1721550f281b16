/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "settings.h"

#include <apr_file_info.h>
#include <apr_strings.h>
#include <sys/un.h>

#include "mod_flashpache.h"
#include "wire.h"

#define USUAL_TIMEOUT apr_time_from_sec(1)
#define LEAST_TIMEOUT   (apr_time_from_sec(1) / 1000)
#define MOST_TIMEOUT    apr_time_from_sec(60)

void *fp_settings_create(apr_pool_t *p, server_rec *s)
{
    struct fp_settings *n = apr_pcalloc(p, sizeof(*n));

    (void)s;
    n->engine = -1;
    return n;
}

void *fp_settings_merge(apr_pool_t *p, void *base, void *add)
{
    const struct fp_settings *b = base, *a = add;
    struct fp_settings *n = apr_pmemdup(p, b, sizeof(*n));

    /* Socket and timeout are the main server's, for all. */
    if (a->engine != -1)
        n->engine = a->engine;
    if (a->excluded != NULL)
        n->excluded = b->excluded == NULL
            ? a->excluded : apr_array_append(p, b->excluded, a->excluded);
    return n;
}

struct fp_settings *fp_settings_of(const server_rec *s)
{
    return ap_get_module_config(s->module_config, &flashpache_module);
}

const char *fp_settings_socket(const struct fp_settings *settings)
{
    return settings->socket != NULL ? settings->socket : FP_DEFAULT_SOCKET;
}

apr_interval_time_t fp_settings_timeout(const struct fp_settings *settings)
{
    return settings->timeout != 0 ? settings->timeout : USUAL_TIMEOUT;
}

static int is_below(const char *path, apr_size_t len, const char *prefix)
{
    apr_size_t n = strlen(prefix);

    if (n == 1)
        return 1;
    return len >= n && memcmp(path, prefix, n) == 0 && (len == n || path[n] == '/');
}

int fp_settings_excludes(const struct fp_settings *settings, const char *path,
                         apr_size_t len)
{
    const apr_array_header_t *x = settings->excluded;

    for (int i = 0; x != NULL && i < x->nelts; i++) {
        if (is_below(path, len, APR_ARRAY_IDX(x, i, const char *)))
            return 1;
    }
    return 0;
}

static const char *set_engine(cmd_parms *cmd, void *dir, int flag)
{
    (void)dir;
    fp_settings_of(cmd->server)->engine = flag;
    return NULL;
}

static const char *set_socket(cmd_parms *cmd, void *dir, const char *path)
{
    const apr_size_t room = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    apr_finfo_t finfo;

    (void)dir;
    if (wrong != NULL)
        return wrong;
    if (!fp_path_is_normal(path, strlen(path)))
        return apr_psprintf(cmd->pool, "FlashpacheSocket %s: give the absolute path of "
                            "flashpached's socket, as its configuration has it", path);
    if (strlen(path) > room)
        return apr_psprintf(cmd->pool, "FlashpacheSocket %s: the path is too long: a "
                            "Unix-domain socket's may have %" APR_SIZE_T_FMT " bytes, "
                            "choose a shorter one", path, room);
    if (apr_stat(&finfo, path, APR_FINFO_TYPE, cmd->temp_pool) == APR_SUCCESS
        && finfo.filetype != APR_SOCK)
        return apr_psprintf(cmd->pool, "FlashpacheSocket %s: this exists and is not a "
                            "socket; name the socket of flashpached", path);
    fp_settings_of(cmd->server)->socket = path;
    return NULL;
}

static const char *set_timeout(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    apr_interval_time_t t = 0;

    (void)dir;
    if (wrong != NULL)
        return wrong;
    if (ap_timeout_parameter_parse(arg, &t, "s") != APR_SUCCESS || t < LEAST_TIMEOUT
        || t > MOST_TIMEOUT)
        return apr_psprintf(cmd->pool, "FlashpacheTimeout %s: give a time from 1ms to 60s, "
                            "such as 500ms or 2 (seconds)", arg);
    fp_settings_of(cmd->server)->timeout = t;
    return NULL;
}

static const char *add_excluded(cmd_parms *cmd, void *dir, const char *path)
{
    struct fp_settings *n = fp_settings_of(cmd->server);
    char *prefix = apr_pstrdup(cmd->pool, path);
    apr_size_t len = strlen(prefix);

    (void)dir;
    if (len > 1 && prefix[len - 1] == '/')
        prefix[--len] = '\0';
    if (!fp_path_is_normal(prefix, len))
        return apr_psprintf(cmd->pool, "FlashpacheExclude %s: give an absolute directory of "
                            "the file system, without \"//\", \".\" and \"..\"", path);
    if (n->excluded == NULL)
        n->excluded = apr_array_make(cmd->pool, 4, sizeof(const char *));
    APR_ARRAY_PUSH(n->excluded, const char *) = prefix;
    return NULL;
}

/* httpd's macros call every kind of handler through one function type. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-function-type"
const command_rec fp_directives[] = {
    AP_INIT_FLAG("FlashpacheEngine", set_engine, NULL, RSRC_CONF,
                 "On: paths are asked of flashpached; Off: never"),
    AP_INIT_TAKE1("FlashpacheSocket", set_socket, NULL, RSRC_CONF,
                  "the absolute path of flashpached's socket"),
    AP_INIT_TAKE1("FlashpacheTimeout", set_timeout, NULL, RSRC_CONF,
                  "how long a question may take (500ms, 2), then the request is served "
                  "without an answer"),
    AP_INIT_ITERATE("FlashpacheExclude", add_excluded, NULL, RSRC_CONF,
                    "directories of the file system that are never asked about"),
    { NULL }
};
#pragma GCC diagnostic pop
