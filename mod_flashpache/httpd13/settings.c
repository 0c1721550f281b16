/* SPDX-License-Identifier: Apache-2.0 */
#define CORE_PRIVATE
#include "config.h"
#include "httpd13/settings.h"

#include <fnmatch.h>
#include <http_core.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "wire/packet.h"

#define USUAL_TIMEOUT_MS 10000
#define MOST_TIMEOUT_MS  60000
#define USUAL_OPEN_FILES 128
#define MOST_OPEN_FILES  1000000

void *fp_settings_create(pool *p, server_rec *s)
{
    struct fp_settings *n = ap_pcalloc(p, sizeof(*n));

    (void)s;
    n->engine = -1;
    n->timeout_ms = USUAL_TIMEOUT_MS;
    n->open_files = USUAL_OPEN_FILES;
    return n;
}

void *fp_settings_merge(pool *p, void *base, void *add)
{
    const struct fp_settings *b = base, *a = add;
    struct fp_settings *n = ap_palloc(p, sizeof(*n));

    *n = *b;
    if (a->engine != -1)
        n->engine = a->engine;
    if (a->excluded != NULL)
        n->excluded = b->excluded == NULL ? a->excluded : ap_append_arrays(p, b->excluded, a->excluded);
    return n;
}

struct fp_settings *fp_settings_of(const server_rec *s)
{
    return ap_get_module_config(s->module_config, &flashpache_module);
}

bool fp_settings_excludes(const struct fp_settings *settings, const char *path, size_t len)
{
    const array_header *x = settings->excluded;

    for (int i = 0; x != NULL && i < x->nelts; i++) {
        if (fp_path_is_below(path, len, ((const char *const *)(void *)x->elts)[i]))
            return true;
    }
    return false;
}

/* ---- what core's directives say ---- */

/* True if the section lets access files change something. */
static bool allows_override(const core_dir_config *d)
{
    return !(d->override & OR_UNSET) && d->override != OR_NONE;
}

static bool is_restricting_links(const core_dir_config *d)
{
    return (!(d->opts & OPT_UNSET) && !(d->opts & OPT_SYM_LINKS)) || (d->opts_remove & OPT_SYM_LINKS);
}

/* True for <Directory /> with an AllowOverride: then core's own default is in force nowhere. */
static bool is_root_section(const core_dir_config *d)
{
    return !(d->override & OR_UNSET) && d->d != NULL && strcmp(d->d, "/") == 0;
}

static void take_names(pool *p, const char *access_names, struct fp_settings *n)
{
    while (access_names[0] != '\0') {
        const char *name = ap_getword_conf(p, &access_names);
        const size_t len = strlen(name);

        if (n->names.n == FP_MAX_NAMES || !fp_name_is_single(name, len)) {
            n->names_complete = false;
            return;
        }
        n->names.list[n->names.n].name = name;
        n->names.list[n->names.n++].len = len;
    }
}

static const core_dir_config *section(const server_rec *s, int i)
{
    const core_server_config *core = ap_get_module_config(s->module_config, &core_module);

    return ap_get_module_config(((void *const *)(void *)core->sec->elts)[i], &core_module);
}

static int sections(const server_rec *s)
{
    const core_server_config *core = ap_get_module_config(s->module_config, &core_module);

    return core->sec->nelts;
}

void fp_settings_finish(pool *p, server_rec *s)
{
    /* A host without a directive of this module shares the main server's struct. */
    struct fp_settings *n = ap_palloc(p, sizeof(*n));
    const core_server_config *core = ap_get_module_config(s->module_config, &core_module);
    const core_dir_config *top = ap_get_module_config(s->lookup_defaults, &core_module);
    bool from_root = false, some = false;

    *n = *fp_settings_of(s);
    ap_set_module_config(s->module_config, &flashpache_module, n);
    if (n->socket == NULL)
        n->socket = FP_DEFAULT_SOCKET;
    n->names.n = 0;
    n->names_complete = true;
    n->restricts_links = !(top->opts & OPT_SYM_LINKS);
    for (int i = 0; i < sections(s); i++) {
        const core_dir_config *d = section(s, i);

        n->restricts_links = n->restricts_links || is_restricting_links(d);
        some = some || allows_override(d);
        from_root = from_root || is_root_section(d);
    }
    if (some || !from_root)
        take_names(p, core->access_name, n);
}

const struct fp_names *fp_settings_ask(server_rec *s)
{
    const struct fp_names *asked = &fp_settings_of(s)->names;

    for (const server_rec *each = s; each != NULL && asked->n == 0; each = each->next)
        asked = &fp_settings_of(each)->names;
    for (const server_rec *each = s; each != NULL; each = each->next)
        fp_settings_of(each)->names_asked = fp_names_equal(&fp_settings_of(each)->names, asked);
    return asked;
}

struct fp_overrides fp_settings_overrides(const server_rec *s)
{
    const core_dir_config *top = ap_get_module_config(s->lookup_defaults, &core_module);

    return (struct fp_overrides){ s, 0, top->override };
}

static bool is_for(const core_dir_config *d, const char *dir)
{
    return d->d_is_fnmatch ? ap_fnmatch(d->d, dir, FNM_PATHNAME) == 0 : strcmp(d->d, dir) == 0;
}

int fp_settings_next_override(struct fp_overrides *o, const char *dir, unsigned components)
{
    for (; o->i < sections(o->server); o->i++) {
        const core_dir_config *d = section(o->server, o->i);

        /* Core has them in the order of their components; those with a regular expression come last, after
         * all access files. */
        if (d->r != NULL || !ap_os_is_path_absolute(d->d) || d->d_components > components)
            break;
        if (is_for(d, dir) && !(d->override & OR_UNSET))
            o->value = d->override;
    }
    return o->value;
}

/* ---- directives ---- */

static const char *set_engine(cmd_parms *cmd, void *dir, int on)
{
    (void)dir;
    fp_settings_of(cmd->server)->engine = on;
    return NULL;
}

static const char *set_daemon(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    (void)dir;
    if (wrong != NULL)
        return wrong;
    fp_settings_of(cmd->server)->elsewhere = strcasecmp(arg, "elsewhere") == 0;
    if (strcasecmp(arg, "external") == 0 || strcasecmp(arg, "elsewhere") == 0)
        return NULL;
    return ap_psprintf(
        cmd->pool,
        "FlashpacheDaemon %s: give external or elsewhere; Apache 1.3 does not start flashpached, "
        "a service manager does",
        arg);
}

static const char *set_socket(cmd_parms *cmd, void *dir, const char *path)
{
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);

    (void)dir;
    if (wrong != NULL)
        return wrong;
    if (!fp_path_is_normal(path, strlen(path)) || strlen(path) > FP_MAX_SOCKET_PATH)
        return ap_psprintf(cmd->pool,
                           "FlashpacheSocket %s: give the absolute path of flashpached's socket, as its "
                           "configuration has it, of at most %d bytes",
                           path, (int)FP_MAX_SOCKET_PATH);
    fp_settings_of(cmd->server)->socket = ap_pstrdup(cmd->pool, path);
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
        return ap_psprintf(cmd->pool,
                           "FlashpacheTimeout %s: give a time from 1ms to 60s, such as 500ms or 2 (seconds)",
                           arg);
    fp_settings_of(cmd->server)->timeout_ms = ms;
    return NULL;
}

static const char *set_leases(cmd_parms *cmd, void *dir, const char *arg)
{
    const char *wrong = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    char *end;
    const long n = strtol(arg, &end, 10);

    (void)dir;
    if (wrong != NULL)
        return wrong;
    if (end == arg || *end != '\0' || n < 0 || n > MOST_OPEN_FILES)
        return ap_psprintf(cmd->pool,
                           "FlashpacheLeases %s: give the number of files each child keeps open, or 0 (each question is a message)", arg);
    fp_settings_of(cmd->server)->open_files = (int)n;
    return NULL;
}

static const char *add_excluded(cmd_parms *cmd, void *dir, const char *path)
{
    struct fp_settings *n = fp_settings_of(cmd->server);
    char *prefix = ap_pstrdup(cmd->pool, path);
    const size_t len = fp_path_len(prefix);

    (void)dir;
    prefix[len] = '\0';
    if (!fp_path_is_normal(prefix, len))
        return ap_psprintf(
            cmd->pool,
            "FlashpacheExclude %s: give an absolute directory of the file system, without \"//\", "
            "\".\" and \"..\"",
            path);
    if (n->excluded == NULL)
        n->excluded = ap_make_array(cmd->pool, 4, sizeof(const char *));
    *(const char **)ap_push_array(n->excluded) = prefix;
    return NULL;
}

const command_rec fp_directives[] = {
    { "FlashpacheEngine", set_engine, NULL, RSRC_CONF, FLAG,
      "On: ask flashpached for paths; Off: never ask" },
    { "FlashpacheDaemon", set_daemon, NULL, RSRC_CONF, TAKE1, "external or elsewhere" },
    { "FlashpacheSocket", set_socket, NULL, RSRC_CONF, TAKE1, "the socket of flashpached" },
    { "FlashpacheTimeout", set_timeout, NULL, RSRC_CONF, TAKE1, "the longest wait for an answer" },
    { "FlashpacheLeases", set_leases, NULL, RSRC_CONF, TAKE1,
      "how many larger files each child keeps open (128); 0: none, and each question is a message" },
    { "FlashpacheExclude", add_excluded, NULL, RSRC_CONF, ITERATE, "directories never asked about" },
    { NULL, NULL, NULL, 0, RAW_ARGS, NULL }
};
