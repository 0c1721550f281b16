/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "access/htaccess_pure.h"

#include <string.h>
#include <strings.h>
#include <util_varbuf.h>

#define LINE_FIRST 256                /* bytes */
#define LINE_MOST  (16 * 1024 * 1024) /* bytes; core's limit */

/*
 * httpd's own modules whose directives only fill the directory's configuration. Others may open
 * files (mod_session_crypto), define things for the whole process (mod_macro, mod_dbd) or be
 * unknown.
 */
static const char *const modules[] = {
    "core.c",
    "mod_access_compat.c",
    "mod_actions.c",
    "mod_alias.c",
    "mod_asis.c",
    "mod_auth_basic.c",
    "mod_auth_digest.c",
    "mod_auth_form.c",
    "mod_authn_anon.c",
    "mod_authn_core.c",
    "mod_authn_dbm.c",
    "mod_authn_file.c",
    "mod_authz_core.c",
    "mod_authz_dbm.c",
    "mod_authz_groupfile.c",
    "mod_authz_host.c",
    "mod_authz_owner.c",
    "mod_authz_user.c",
    "mod_autoindex.c",
    "mod_cern_meta.c",
    "mod_cgi.c",
    "mod_cgid.c",
    "mod_charset_lite.c",
    "mod_deflate.c",
    "mod_dir.c",
    "mod_env.c",
    "mod_expires.c",
    "mod_filter.c",
    "mod_headers.c",
    "mod_imagemap.c",
    "mod_include.c",
    "mod_mime.c",
    "mod_negotiation.c",
    "mod_rewrite.c",
    "mod_session.c",
    "mod_session_cookie.c",
    "mod_setenvif.c",
    "mod_speling.c",
    "mod_ssl.c",
    "mod_substitute.c",
    "mod_userdir.c",
    "mod_usertrack.c",
    "mod_version.c",
    "mod_flashpache.c",
    "mod_flashpache_rewrite.c",
};

/* Directives of those modules that look at files, read further ones, or change the meaning of later
 * lines in other files. */
static const char *const impure[] = { "<IfFile", "Define", "Include", "IncludeOptional", "UnDefine" };

/* The known arguments of "Require"; modules of other authors may parse further ones. */
static const char *const required[] = {
    "all",        "dbm-file-group", "dbm-group",   "env",   "expr",
    "file-group", "file-owner",     "forward-dns", "group", "host",
    "ip",         "local",          "method",      "ssl",   "ssl-verify-client",
    "user",       "valid-user",
};

static bool is_one_of(const char *word, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (strcasecmp(word, list[i]) == 0)
            return true;
    }
    return false;
}

#define IS_ONE_OF(word, list) is_one_of(word, list, sizeof(list) / sizeof((list)[0]))

/* Several modules may have a directive of one name, and each gets its turn. */
static bool has_pure_modules(const char *directive)
{
    module *m = ap_top_module;

    while (m != NULL && ap_find_command_in_modules(directive, &m) != NULL) {
        if (!IS_ONE_OF(m->name, modules))
            return false;
        m = m->next;
    }
    return true;
}

static bool is_pure_require(apr_pool_t *p, const char *args)
{
    const char *word = ap_getword_conf(p, &args);

    if (strcasecmp(word, "not") == 0)
        word = ap_getword_conf(p, &args);
    return IS_ONE_OF(word, required);
}

static bool names_a_program(const char *line)
{
    for (; *line != '\0'; line++) {
        if (strncasecmp(line, "exec:", sizeof("exec:") - 1) == 0)
            return true;
    }
    return false;
}

/* Takes the line apart as core does (ap_build_config). */
static bool is_pure_line(apr_pool_t *p, const char *line)
{
    const char *args = line;
    char *directive;
    size_t len;

    if (line[0] == '#' || line[0] == '\0')
        return true;
    /* A variable may stand for any directive. */
    if (memchr(line, '$', strcspn(line, " \t")) != NULL)
        return false;
    directive = ap_getword_conf(p, &args);
    if (directive[0] == '\0' || directive[1] == '/')
        return true;
    len = strlen(directive);
    if (directive[len - 1] == '>')
        directive[len - 1] = '\0';
    if (IS_ONE_OF(directive, impure) || names_a_program(args) || !has_pure_modules(directive))
        return false;
    return strcasecmp(directive, "Require") != 0 || is_pure_require(p, args);
}

bool fp_htaccess_is_pure(apr_pool_t *p, ap_configfile_t *file)
{
    struct ap_varbuf line;
    apr_status_t rv;
    bool pure = true;

    ap_varbuf_init(p, &line, LINE_FIRST);
    while ((rv = ap_varbuf_cfg_getline(&line, file, LINE_MOST)) == APR_SUCCESS && pure)
        pure = is_pure_line(p, line.buf);
    ap_varbuf_free(&line);
    return pure && rv == APR_EOF;
}
