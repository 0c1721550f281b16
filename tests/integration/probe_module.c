/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A module of another author, for the tests: uses a request's configuration as late as it can, and
 * runs hooks again. It has directives whose parsing shows outside. It appends its actions to files,
 * a line for each.
 */
#include <httpd.h>

#include <apr_strings.h>
#include <fcntl.h>
#include <http_config.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <mod_auth.h>
#include <string.h>
#include <unistd.h>

#define EARLIEST (APR_HOOK_REALLY_FIRST - 10) /* before the module under test */

static void append(const char *path, const char *line)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);

    if (fd == -1 || write(fd, line, strlen(line)) == -1 || write(fd, "\n", 1) == -1)
        _exit(99);
    close(fd);
}

/* ---- how often configurations of directories are merged ---- */

static unsigned merges; /* in this request, where there is one at a time */

static void *create_directory(apr_pool_t *p, char *path)
{
    (void)path;
    return apr_pcalloc(p, 1);
}

static void *merge_directories(apr_pool_t *p, void *base, void *add)
{
    (void)base;
    (void)add;
    merges++;
    return apr_pcalloc(p, 1);
}

/* ---- the configuration at the end of a request ---- */

static const char *seen_path; /* ProbeSeen */

static apr_status_t look(void *data)
{
    request_rec *r = data;
    const char *name;

    while (r->next != NULL)
        r = r->next;
    name = ap_auth_name(r);
    if (name != NULL)
        append(seen_path, name);
    return APR_SUCCESS;
}

static int post_read_request(request_rec *r)
{
    if (r->main == NULL && r->prev == NULL)
        merges = 0;
    if (r->main == NULL && r->prev == NULL && seen_path != NULL)
        apr_pool_cleanup_register(r->pool, r, look, apr_pool_cleanup_null);
    return DECLINED;
}

/* ?wait=FILE, with the name of the phase in the place of "wait": makes that file, and goes on when
 * the test has removed it. */
static void wait_in(const request_rec *r, const char *phase)
{
    const size_t len = strlen(phase);
    const char *file;

    if (r->args == NULL || strncmp(r->args, phase, len) != 0 || r->args[len] != '=' || r->main != NULL
        || r->prev != NULL)
        return;
    file = r->args + len + 1;
    append(file, "waiting");
    for (int i = 0; i < 1000 && access(file, F_OK) == 0; i++)
        usleep(10000);
}

static int fixups(request_rec *r)
{
    if (r->args != NULL && strcmp(r->args, "merges") == 0)
        apr_table_setn(r->headers_out, "X-Merges", apr_psprintf(r->pool, "%u", merges));
    wait_in(r, "wait");
    if (r->args != NULL && strcmp(r->args, "twice") == 0)
        ap_run_map_to_storage(r);
    return DECLINED;
}

static int before_translation(request_rec *r)
{
    wait_in(r, "begun");
    return DECLINED;
}

/* ?included=FILE: core itself has looked at the file of a subrequest. */
static int before_walk(request_rec *r)
{
    wait_in(r, "translated");
    if (r->main != NULL && r->finfo.filetype == APR_REG)
        wait_in(r->main, "included");
    return DECLINED;
}

static int after_walk(request_rec *r)
{
    wait_in(r, "walked");
    return DECLINED;
}

static int before_handler(request_rec *r)
{
    wait_in(r, "fixed");
    return DECLINED;
}

/* ---- directives ---- */

static const char *set_seen(cmd_parms *cmd, void *conf, const char *path)
{
    (void)conf;
    seen_path = apr_pstrdup(cmd->server->process->pconf, path);
    return NULL;
}

static const char *note_parsing(cmd_parms *cmd, void *conf, const char *path)
{
    (void)cmd;
    (void)conf;
    append(path, "directive");
    return NULL;
}

/* Where it stands this module has a configuration. */
static const char *count_merges(cmd_parms *cmd, void *conf)
{
    (void)cmd;
    (void)conf;
    return NULL;
}

static const command_rec directives[] = {
    AP_INIT_NO_ARGS("ProbeMerges", count_merges, NULL, OR_ALL, "whose merges are counted"),
    AP_INIT_TAKE1("ProbeSeen", set_seen, NULL, RSRC_CONF, "where the AuthName is told at a request's end"),
    AP_INIT_TAKE1("ProbeParsed", note_parsing, NULL, OR_ALL, "where its parsing is told"),
    { NULL },
};

static authz_status allow(request_rec *r, const char *line, const void *parsed)
{
    (void)r;
    (void)line;
    (void)parsed;
    return AUTHZ_GRANTED;
}

static const char *parse_require(cmd_parms *cmd, const char *line, const void **parsed)
{
    const char *args = line;

    *parsed = NULL;
    append(ap_getword_conf(cmd->temp_pool, &args), "provider");
    return NULL;
}

static const authz_provider provider = { allow, parse_require };

static void register_hooks(apr_pool_t *p)
{
    ap_register_auth_provider(p, AUTHZ_PROVIDER_GROUP, "probe", AUTHZ_PROVIDER_VERSION, &provider,
                              AP_AUTH_INTERNAL_PER_CONF);
    ap_hook_post_read_request(post_read_request, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_fixups(fixups, NULL, NULL, APR_HOOK_FIRST);
    ap_hook_translate_name(before_translation, NULL, NULL, EARLIEST);
    ap_hook_map_to_storage(before_walk, NULL, NULL, EARLIEST);
    ap_hook_header_parser(after_walk, NULL, NULL, EARLIEST);
    ap_hook_handler(before_handler, NULL, NULL, EARLIEST);
}

AP_DECLARE_MODULE(probe) = { STANDARD20_MODULE_STUFF, create_directory, merge_directories, NULL, NULL, directives,
                              register_hooks };
