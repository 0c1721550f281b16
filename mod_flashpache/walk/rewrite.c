/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk/rewrite.h"

#include <apr_strings.h>
#include <httpd.h>
#include <http_config.h>
#include <http_log.h>
#include <mod_rewrite.h>
#include <stdbool.h>

#include "question/request.h"
#include "walk/condition.h"
#include "walk/file_test.h"

APLOG_USE_MODULE(flashpache);

#define RECORD "mod_flashpache_rewrite.c"

/* A directive of the configuration, kept to be shown as written. */
struct written {
    ap_directive_t *directive;
    const char *args;
};

static module *rewrite;             /* mod_rewrite; NULL: its conditions are not translated */
static int rewrite_index;           /* for requests */
static apr_array_header_t *written; /* of struct written, while httpd reads the configuration */

/* ---- answers ---- */

/* The map: its key is "-f:" and the name. Its result is a number, 0 for true; traces show it with
 * the name. */
static char *test(request_rec *r, char *key)
{
    static char yes[] = "0", no[] = "1";
    const bool known = key[0] == '-' && key[1] != '\0' && key[2] == ':';
    const bool result = known && fp_file_test(r, key[1], key + 3, 0, r->pool);

    if (!known || !APLOG_R_MODULE_IS_LEVEL(r, rewrite_index, APLOG_TRACE1))
        return result ? yes : no;
    return apr_psprintf(r->pool, "%s: %s", result ? "0, true" : "1, false", key + 3);
}

/* ---- the directive ---- */

static const char *translate(cmd_parms *cmd, void *dir, const char *args)
{
    ap_directive_t *directive = cmd->directive;
    char *translated = apr_palloc(cmd->pool, strlen(args) + FP_CONDITION_MORE);

    (void)dir;
    if (directive == NULL || directive->args != args || !fp_condition_translate(args, translated))
        return NULL;
    if (written != NULL)
        APR_ARRAY_PUSH(written, struct written) = (struct written){ directive, args };
    /* httpd calls mod_rewrite next, with these arguments. */
    directive->args = translated;
    return NULL;
}

/*
 * httpd checks for each module whether the directive is allowed. Here it always is, where httpd
 * would log a violation and not refuse it. So httpd logs it once, in mod_rewrite's turn.
 */
#define ALLOWED (OR_FILEINFO | OR_ALL | NONFATAL_OVERRIDE)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-function-type"
static const command_rec directives[] = { AP_INIT_RAW_ARGS("RewriteCond", translate, NULL, ALLOWED,
                                                           "mod_rewrite's; tests of files are translated"),
                                          { NULL } };
#pragma GCC diagnostic pop

static module record = { MODULE_MAGIC_NUMBER_MAJOR,
                         MODULE_MAGIC_NUMBER_MINOR,
                         -1,
                         RECORD,
                         NULL,
                         NULL,
                         MODULE_MAGIC_COOKIE,
                         NULL,
                         NULL,
                         NULL,
                         NULL,
                         NULL,
                         directives,
                         NULL,
#if AP_MODULE_MAGIC_AT_LEAST(20120211, 70)
                         AP_MODULE_FLAG_NONE
#endif
};

/* ---- the start ---- */

static bool off; /* FlashpacheRewrite */

bool fp_rewrite_is_off(void)
{
    return off;
}

/* Before httpd carries out any directive: conditions may stand above this one. */
static bool read_off(apr_pool_t *ptemp)
{
    bool found = false;

    for (const ap_directive_t *d = ap_conftree; d != NULL; d = d->next) {
        const char *args = d->args;

        if (strcasecmp(d->directive, "FlashpacheRewrite") == 0)
            found = strcasecmp(ap_getword_conf(ptemp, &args), "Off") == 0;
    }
    return found;
}

/* True if a RewriteMap runs a program. */
static bool has_program(const ap_directive_t *d)
{
    for (; d != NULL; d = d->next) {
        if (strcasecmp(d->directive, "RewriteMap") == 0 && ap_strcasestr(d->args, "prg:") != NULL)
            return true;
        if (has_program(d->first_child))
            return true;
    }
    return false;
}

/* True if another module than mod_rewrite has RewriteCond, too, and would read translations. */
static bool is_shared(void)
{
    module *m = ap_top_module;

    while (m != NULL && ap_find_command_in_modules("RewriteCond", &m) != NULL) {
        if (m != rewrite)
            return true;
        m = m->next;
    }
    return false;
}

static apr_status_t remove_record(void *unused)
{
    (void)unused;
    ap_remove_loaded_module(&record);
    record.next = NULL;
    rewrite = NULL;
    return APR_SUCCESS;
}

static int fail(const server_rec *s, const char *why)
{
    ap_log_error(APLOG_MARK, APLOG_STARTUP | APLOG_ERR, 0, s,
                 "FP0122: RewriteCond: the map " FP_CONDITION_MAP
                 " cannot be registered with mod_rewrite: %s; set FlashpacheRewrite Off",
                 why);
    return HTTP_INTERNAL_SERVER_ERROR;
}

static int begin(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp)
{
    APR_OPTIONAL_FN_TYPE(ap_register_rewrite_mapfunc) *add =
        APR_RETRIEVE_OPTIONAL_FN(ap_register_rewrite_mapfunc);
    const char *wrong;

    (void)plog;
    off = read_off(ptemp);
    fp_request_expect_programs(has_program(ap_conftree));
    written = NULL;
    rewrite = ap_find_linked_module("mod_rewrite.c");
    if (rewrite == NULL || off || is_shared()) {
        rewrite = NULL;
        return OK;
    }
    if (add == NULL)
        return fail(NULL, "it has no ap_register_rewrite_mapfunc");
    rewrite_index = rewrite->module_index;
    add((char *)FP_CONDITION_MAP, test);
    wrong = ap_add_loaded_module(&record, pconf, "flashpache_rewrite_module");
    if (wrong != NULL)
        return fail(NULL, wrong);
    apr_pool_cleanup_register(pconf, NULL, remove_record, apr_pool_cleanup_null);
    written = apr_array_make(ptemp, 16, sizeof(struct written));
    return OK;
}

/* The configuration has been read: mod_info shall show it as written. */
static int restore(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s)
{
    (void)pconf;
    (void)plog;
    (void)ptemp;
    (void)s;
    for (int i = 0; written != NULL && i < written->nelts; i++) {
        const struct written *w = &APR_ARRAY_IDX(written, i, struct written);

        w->directive->args = w->args;
    }
    written = NULL;
    return OK;
}

/* Does what the directive "RewriteMap flashpache-file int:flashpache-file" would do. */
static const char *add_map(const command_rec *directive, apr_pool_t *p, apr_pool_t *ptemp, server_rec *s)
{
    ap_directive_t here = { .directive = "RewriteMap",
                            .args = FP_CONDITION_MAP " int:" FP_CONDITION_MAP,
                            .filename = RECORD };
    cmd_parms cmd = { .limited = -1, .pool = p, .temp_pool = ptemp, .server = s, .directive = &here };

    cmd.override = RSRC_CONF;
    cmd.err_directive = &here;
    cmd.cmd = directive;
    switch (directive->args_how) {
    case TAKE2: return directive->AP_TAKE2(&cmd, NULL, FP_CONDITION_MAP, "int:" FP_CONDITION_MAP);
    case TAKE23: return directive->AP_TAKE3(&cmd, NULL, FP_CONDITION_MAP, "int:" FP_CONDITION_MAP, NULL);
    default: return "its RewriteMap is another one";
    }
}

/* Each server has maps of its own. */
static int add_maps(apr_pool_t *pconf, apr_pool_t *plog, apr_pool_t *ptemp, server_rec *s)
{
    const command_rec *directive = rewrite != NULL ? ap_find_command("RewriteMap", rewrite->cmds) : NULL;

    (void)plog;
    if (rewrite != NULL && directive == NULL)
        return fail(s, "it has no RewriteMap");
    for (; rewrite != NULL && s != NULL; s = s->next) {
        const char *wrong = add_map(directive, pconf, ptemp, s);

        if (wrong != NULL)
            return fail(s, wrong);
    }
    return OK;
}

void fp_rewrite_register(void)
{
    /* Core counts the modules at the very end of this hook, and has no room for later ones. */
    ap_hook_pre_config(begin, NULL, NULL, APR_HOOK_LAST);
    ap_hook_check_config(restore, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_post_config(add_maps, NULL, NULL, APR_HOOK_MIDDLE);
}
