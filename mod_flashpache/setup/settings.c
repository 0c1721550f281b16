/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "setup/settings.h"

#include <apr_file_info.h>
#include <apr_strings.h>
#include <http_core.h>
#include <http_log.h>
#include <stddef.h>

#include "base/text.h"
#include "setup/admission.h"
#include "setup/daemon.h"
#include "setup/overrides.h"
#include "wire/packet.h"

APLOG_USE_MODULE(flashpache);

#define USUAL_TIMEOUT_MS 10000
#define USUAL_PARSED     500
#define USUAL_OPEN_FILES 2000
#define MOST_KEPT        1000000
#define MOST_TIMEOUT_MS  60000

bool fp_settings_allow_status(const request_rec *r)
{
    const struct fp_section_settings *section = ap_get_module_config(r->per_dir_config, &flashpache_module);

    return section != NULL && section->status == 1;
}

void *fp_settings_create_section(apr_pool_t *p, char *dir)
{
    struct fp_section_settings *n = apr_palloc(p, sizeof(*n));

    (void)dir;
    n->status = -1;
    return n;
}

void *fp_settings_merge_sections(apr_pool_t *p, void *base, void *add)
{
    (void)p;
    return ((struct fp_section_settings *)add)->status != -1 ? add : base;
}

void *fp_settings_create(apr_pool_t *p, server_rec *s)
{
    struct fp_settings *n = apr_pcalloc(p, sizeof(*n));

    (void)s;
    n->engine = FP_ENGINE_UNSET;
    n->rewrite = 1;
    n->external = n->parsed = n->open_files = n->admission = n->server_timing = n->refuses_unavailable = -1;
    return n;
}

void *fp_settings_merge(apr_pool_t *p, void *base, void *add)
{
    const struct fp_settings *b = base, *a = add;
    struct fp_settings *n = apr_pmemdup(p, b, sizeof(*n));

    /* Daemon, socket and timeout are the main server's, for all. */
    if (a->engine != FP_ENGINE_UNSET)
        n->engine = a->engine;
    if (a->server_timing != -1)
        n->server_timing = a->server_timing;
    if (a->refuses_unavailable != -1)
        n->refuses_unavailable = a->refuses_unavailable;
    if (a->excluded != NULL)
        n->excluded = b->excluded == NULL ? a->excluded : apr_array_append(p, b->excluded, a->excluded);
    return n;
}

struct fp_settings *fp_settings_of(const server_rec *s)
{
    return ap_get_module_config(s->module_config, &flashpache_module);
}

/* ---- the daemon ---- */

int fp_settings_check(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s)
{
    const struct fp_settings *n = fp_settings_of(s);

    (void)pconf;
    (void)plog;
    (void)ptemp;
    if (n->external != 0 || n->socket == NULL)
        return OK;
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, s,
                 "FP0113: FlashpacheDaemon auto and "
                 "FlashpacheSocket %s: httpd's own flashpached has a socket of its own; leave out "
                 "FlashpacheSocket, or set FlashpacheDaemon external",
                 n->socket);
    return HTTP_INTERNAL_SERVER_ERROR;
}

/* A named socket belongs to another daemon, and FlashpacheEngine says when to use it. */
static void set_defaults(apr_pool_t *p, struct fp_settings *n)
{
    if (n->external == -1)
        n->external = n->socket != NULL;
    if (n->engine == FP_ENGINE_UNSET)
        n->engine = n->external ? FP_ENGINE_OFF : FP_ENGINE_ON;
    if (!n->external)
        n->socket = fp_daemon_socket(p);
    else if (n->socket == NULL)
        n->socket = FP_DEFAULT_SOCKET;
    if (n->program == NULL)
        n->program = FP_DAEMON_PROGRAM;
    if (n->timeout_ms == 0)
        n->timeout_ms = USUAL_TIMEOUT_MS;
    if (n->parsed == -1)
        n->parsed = USUAL_PARSED;
    if (n->open_files == -1)
        n->open_files = USUAL_OPEN_FILES;
}

/* ---- .htaccess files ---- */

static void take_names(apr_pool_t *p, const char *access_names, struct fp_names *names)
{
    while (access_names[0] != '\0' && names->n < FP_MAX_NAMES) {
        const char *name = ap_getword_conf(p, &access_names);
        apr_size_t len = strlen(name);

        /* Core takes the first file that exists, so without this name the state of later ones is
         * unknown. */
        if (!fp_name_is_single(name, len))
            return;
        names->list[names->n].name = name;
        names->list[names->n++].len = len;
    }
}

void fp_settings_finish(apr_pool_t *p, server_rec *s)
{
    /* A host without a directive of this module shares the main server's struct. */
    struct fp_settings *n = apr_pmemdup(p, fp_settings_of(s), sizeof(*n));
    const core_server_config *core = ap_get_core_module_config(s->module_config);
    bool lists, may_have;

    ap_set_module_config(s->module_config, &flashpache_module, n);
    set_defaults(p, n);
    n->names.n = 0;
    may_have = fp_overrides_allow(s, &lists);
    n->keep_parsed = !lists;
    if (may_have)
        take_names(p, core->access_name, &n->names);
}

static void use_names(struct fp_settings *n, const struct fp_names *all)
{
    n->own = fp_choose(&n->names, all);
    n->names = *all;
}

void fp_settings_share_names(server_rec *s)
{
    struct fp_names all = { .n = 0 };

    for (const server_rec *each = s; each != NULL; each = each->next)
        fp_names_join(&all, &fp_settings_of(each)->names);
    for (const server_rec *each = s; each != NULL; each = each->next)
        use_names(fp_settings_of(each), &all);
}

int fp_settings_excludes(const struct fp_settings *settings, const char *path, apr_size_t len)
{
    const apr_array_header_t *x = settings->excluded;

    for (int i = 0; x != NULL && i < x->nelts; i++) {
        if (fp_path_is_below(path, len, APR_ARRAY_IDX(x, i, const char *)))
            return 1;
    }
    return 0;
}

/* ---- directives ---- */

/* A directive of one word, as cmd->info; it sets a member of type int. */
struct words {
    size_t offset;      /* in struct fp_settings */
    unsigned forbidden; /* contexts, for ap_check_cmd_context() */
    const char *advice;
    struct {
        const char *word;
        int value;
    } list[3];
};

static const struct words engine_words = {
    offsetof(struct fp_settings, engine),
    0,
    "give On, Off or Shadow",
    { { "On", FP_ENGINE_ON }, { "Off", FP_ENGINE_OFF }, { "Shadow", FP_ENGINE_SHADOW } }
};
static const struct words server_timing_words = {
    offsetof(struct fp_settings, server_timing), 0, "give On or Off", { { "On", 1 }, { "Off", 0 } }
};
static const struct words unavailable_words = { offsetof(struct fp_settings, refuses_unavailable),
                                                0,
                                                "give httpd (it looks itself, and waits) or 503",
                                                { { "httpd", 0 }, { "503", 1 } } };
static const struct words daemon_words = {
    offsetof(struct fp_settings, external),
    GLOBAL_ONLY,
    "give auto (httpd starts flashpached), external (something else does) or elsewhere (something else "
    "does, in another container with the same documents)",
    { { "auto", FP_DAEMON_AUTO }, { "external", FP_DAEMON_EXTERNAL }, { "elsewhere", FP_DAEMON_ELSEWHERE } }
};

static const struct words rewrite_words = {
    offsetof(struct fp_settings, rewrite), GLOBAL_ONLY, "give On or Off", { { "On", 1 }, { "Off", 0 } }
};

static void *member_of(const cmd_parms *cmd, size_t offset)
{
    return (char *)fp_settings_of(cmd->server) + offset;
}

static const char *set_word(cmd_parms *cmd, void *dir, const char *arg)
{
    const struct words *words = cmd->info;
    const char *wrong = ap_check_cmd_context(cmd, words->forbidden);

    (void)dir;
    if (wrong != NULL)
        return wrong;
    for (size_t i = 0; i < 3 && words->list[i].word != NULL; i++) {
        if (strcasecmp(arg, words->list[i].word) != 0)
            continue;
        *(int *)member_of(cmd, words->offset) = words->list[i].value;
        return NULL;
    }
    return apr_psprintf(cmd->pool, "%s %s: %s", cmd->cmd->name, arg, words->advice);
}

static const char *set_status(cmd_parms *cmd, void *section, int on)
{
    (void)cmd;
    ((struct fp_section_settings *)section)->status = on;
    return NULL;
}

/* cmd->info: the offset of a path, which is relative to ServerRoot as in httpd's own directives. */
static const char *set_file(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    const char **file = member_of(cmd, (size_t)cmd->info);

    (void)dir;
    if (wrong != NULL)
        return wrong;
    *file = ap_server_root_relative(cmd->pool, arg);
    return *file != NULL ? NULL
                         : apr_psprintf(cmd->pool, "%s %s: this is not the path of a file", cmd->cmd->name, arg);
}

/* A directive of one number, as cmd->info; it sets a member of type int. */
struct number {
    size_t offset; /* in struct fp_settings */
    int least, most;
    const char *advice;
};

static const struct number parsed_number = { offsetof(struct fp_settings, parsed), 0, MOST_KEPT,
                                             "how many each child may keep" };
static const struct number leases_number = { offsetof(struct fp_settings, open_files), 0, MOST_KEPT,
                                             "how many each child may keep" };
static const struct number admission_number = {
    offsetof(struct fp_settings, admission), 1, FP_ADMISSION_MOST,
    "the number of the look at which the daemon is told of a file that it does not know"
};

static const char *set_number(cmd_parms *cmd, void *dir, const char *arg)
{
    const struct number *number = cmd->info;
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    char *end;
    long n = strtol(arg, &end, 10);

    (void)dir;
    if (wrong != NULL)
        return wrong;
    if (end == arg || *end != '\0' || n < number->least || n > number->most)
        return apr_psprintf(cmd->pool, "%s %s: give %s, %d to %d", cmd->cmd->name, arg, number->advice,
                            number->least, number->most);
    *(int *)member_of(cmd, number->offset) = (int)n;
    return NULL;
}

static const char *set_socket(cmd_parms *cmd, void *dir, const char *path)
{
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    apr_finfo_t finfo;

    (void)dir;
    if (wrong != NULL)
        return wrong;
    if (!fp_path_is_normal(path, strlen(path)))
        return apr_psprintf(cmd->pool,
                            "FlashpacheSocket %s: give the absolute path of "
                            "flashpached's socket, as its configuration has it",
                            path);
    if (strlen(path) > FP_MAX_SOCKET_PATH)
        return apr_psprintf(cmd->pool,
                            "FlashpacheSocket %s: the path is too long: a "
                            "Unix-domain socket's may have %" APR_SIZE_T_FMT " bytes, "
                            "choose a shorter one",
                            path, FP_MAX_SOCKET_PATH);
    if (apr_stat(&finfo, path, APR_FINFO_TYPE, cmd->temp_pool) == APR_SUCCESS && finfo.filetype != APR_SOCK)
        return apr_psprintf(cmd->pool,
                            "FlashpacheSocket %s: this exists and is not a "
                            "socket; name the socket of flashpached",
                            path);
    fp_settings_of(cmd->server)->socket = path;
    return NULL;
}

static const char *set_timeout(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    const int ms = fp_text_ms(arg, MOST_TIMEOUT_MS);

    (void)dir;
    if (wrong != NULL)
        return wrong;
    if (ms == -1)
        return apr_psprintf(cmd->pool,
                            "FlashpacheTimeout %s: give a time from 1ms to 60s, "
                            "such as 500ms or 2 (seconds)",
                            arg);
    fp_settings_of(cmd->server)->timeout_ms = ms;
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
        return apr_psprintf(cmd->pool,
                            "FlashpacheExclude %s: give an absolute directory of "
                            "the file system, without \"//\", \".\" and \"..\"",
                            path);
    if (n->excluded == NULL)
        n->excluded = apr_array_make(cmd->pool, 4, sizeof(const char *));
    APR_ARRAY_PUSH(n->excluded, const char *) = prefix;
    return NULL;
}

/* A module as <IfModule> names it, with or without ".c". */
static const char *add_intercepted(cmd_parms *cmd, void *dir, const char *name)
{
    struct fp_settings *n = fp_settings_of(cmd->server);
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    module *m = ap_find_linked_module(name);

    (void)dir;
    if (wrong != NULL)
        return wrong;
    if (m == NULL)
        m = ap_find_linked_module(apr_pstrcat(cmd->temp_pool, name, ".c", NULL));
    if (m == NULL)
        return apr_psprintf(cmd->pool,
                            "FlashpacheIntercept %s: no such module is loaded; give core, or a loaded module "
                            "as <IfModule> names it, such as mod_rewrite",
                            name);
    if (strncmp(m->name, "mod_flashpache", strlen("mod_flashpache")) == 0)
        return apr_psprintf(cmd->pool,
                            "FlashpacheIntercept %s: that is Flashpache itself; name another module", name);
    if (n->intercepted == NULL)
        n->intercepted = apr_array_make(cmd->pool, 4, sizeof(module *));
    APR_ARRAY_PUSH(n->intercepted, module *) = m;
    return NULL;
}

/* httpd's macros call every kind of handler through one function type. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-function-type"
const command_rec fp_directives[] = {
    AP_INIT_TAKE1("FlashpacheEngine", set_word, (void *)&engine_words, RSRC_CONF,
                  "On: ask flashpached for paths; Off: never ask; Shadow: ask, compare with what httpd "
                  "finds, and serve that"),
    AP_INIT_TAKE1("FlashpacheDaemon", set_word, (void *)&daemon_words, RSRC_CONF,
                  "auto: httpd starts flashpached and ends it; external: something else does; "
                  "elsewhere: it runs in another container with the same documents"),
    AP_INIT_TAKE1("FlashpacheDaemonProgram", set_file, (void *)offsetof(struct fp_settings, program),
                  RSRC_CONF, "the flashpached that httpd starts"),
    AP_INIT_TAKE1("FlashpacheDaemonConfig", set_file, (void *)offsetof(struct fp_settings, configuration),
                  RSRC_CONF, "the configuration file of the flashpached that httpd starts (none)"),
    AP_INIT_TAKE1("FlashpacheRewrite", set_word, (void *)&rewrite_words, RSRC_CONF,
                  "On (default): Flashpache answers RewriteCond's file tests"),
    AP_INIT_ITERATE(
        "FlashpacheIntercept", add_intercepted, NULL, RSRC_CONF,
        "core and modules whose own calls of stat() Flashpache answers (none)"),
    AP_INIT_TAKE1("FlashpacheServerTiming", set_word, (void *)&server_timing_words, RSRC_CONF,
                  "On: responses say in Server-Timing how their path was found"),
    AP_INIT_TAKE1("FlashpacheUnavailable", set_word, (void *)&unavailable_words, RSRC_CONF,
                  "while a file system is out of service: httpd (it looks itself, default) or 503"),
    AP_INIT_FLAG("FlashpacheStatus", set_status, NULL, ACCESS_CONF,
                 "On: the handler flashpache-status works in this section (not in .htaccess)"),
    AP_INIT_TAKE1("FlashpacheSocket", set_socket, NULL, RSRC_CONF,
                  "the absolute path of flashpached's socket"),
    AP_INIT_TAKE1("FlashpacheTimeout", set_timeout, NULL, RSRC_CONF,
                  "how long a question may take (500ms, 2), then the request is served "
                  "without an answer"),
    AP_INIT_ITERATE("FlashpacheExclude", add_excluded, NULL, RSRC_CONF,
                    "directories about which Flashpache never asks"),
    AP_INIT_TAKE1("FlashpacheHtaccess", set_number, (void *)&parsed_number, RSRC_CONF,
                  "how many parsed .htaccess files each child keeps (500); 0: none"),
    AP_INIT_TAKE1("FlashpacheLeases", set_number, (void *)&leases_number, RSRC_CONF,
                  "how many larger files each child keeps open (2000); 0: none, and each request asks the daemon"),
    AP_INIT_TAKE1("FlashpacheAdmission", set_number, (void *)&admission_number, RSRC_CONF,
                  "the number of the look at which the daemon is told of a file; until then children look "
                  "themselves (8, or 1 with less than 2 GiB of memory)"),
    { NULL }
};
#pragma GCC diagnostic pop
