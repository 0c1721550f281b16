/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes calls on files in a child of httpd as mod_php does, by its own import table and by that of an extension. The
 * module has mod_php's name. A request for /php?WORD%20ARGUMENT... is answered by the word's result:
 *
 *   stat PATH, extension PATH, access PATH    "0", or the error's number
 *   list PATH                                 the names in a directory
 *   glob PATTERN                              the paths that match
 *   fork PATH                                 stat in a forked process
 *   truth DIRECTORY own|other|directories|... NUMBER SEED    what files_truth says
 *
 * PhpExtension: a library, loaded once the configuration is read.
 */
#include <httpd.h>

#include <apr_strings.h>
#include <glob.h>
#include <http_config.h>
#include <http_protocol.h>
#include <sys/wait.h>

static FILE *out;
#define main              truth
#define printf(...)       fprintf(out, __VA_ARGS__)
#include "files_truth.c"
#undef main
#undef printf

static const char *extension;
static int (*extension_look)(const char *, struct stat *);

static int post_config(apr_pool_t *p, apr_pool_t *log, apr_pool_t *temp, server_rec *s)
{
    void *handle = extension != NULL ? dlopen(extension, RTLD_LAZY | RTLD_GLOBAL | RTLD_DEEPBIND) : NULL;

    if (handle != NULL)
        *(void **)&extension_look = dlsym(handle, "extension_stat");
    return OK;
}

static int in_a_child(const char *path)
{
    struct stat st;
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        _exit(stat(path, &st) == 0 ? 0 : errno);
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

static void list(const char *path)
{
    DIR *d = opendir(path);
    const struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL)
        fprintf(out, "%s\n", e->d_name);
    if (d != NULL)
        closedir(d);
}

static void match(const char *pattern)
{
    glob_t g = { 0 };

    if (glob(pattern, GLOB_MARK, NULL, &g) == 0) {
        for (size_t i = 0; i < g.gl_pathc; i++)
            fprintf(out, "%s\n", g.gl_pathv[i]);
    }
    globfree(&g);
}

static void obey(char **words)
{
    struct stat st;

    if (strcmp(words[0], "stat") == 0)
        fprintf(out, "%d", stat(words[1], &st) == 0 ? 0 : errno);
    else if (strcmp(words[0], "access") == 0)
        fprintf(out, "%d", access(words[1], F_OK) == 0 ? 0 : errno);
    else if (strcmp(words[0], "extension") == 0)
        fprintf(out, "%d", extension_look(words[1], &st) == 0 ? 0 : errno);
    else if (strcmp(words[0], "fork") == 0)
        fprintf(out, "%d", in_a_child(words[1]));
    else if (strcmp(words[0], "list") == 0)
        list(words[1]);
    else if (strcmp(words[0], "glob") == 0)
        match(words[1]);
    else if (strcmp(words[0], "truth") == 0)
        truth(5, words);
}

static int handler(request_rec *r)
{
    char *words[8] = { NULL }, *rest, *text = NULL;
    size_t size;
    int n = 0;

    if (strcmp(r->uri, "/php") != 0 || r->args == NULL)
        return DECLINED;
    ap_unescape_url(r->args);
    for (char *word = apr_strtok(r->args, " ", &rest); word != NULL && n < 7; word = apr_strtok(NULL, " ", &rest))
        words[n++] = word;
    out = open_memstream(&text, &size);
    obey(words);
    fclose(out);
    ap_rputs(text, r);
    free(text);
    return OK;
}

static const char *set_extension(cmd_parms *cmd, void *unused, const char *name)
{
    extension = apr_pstrdup(cmd->pool, name);
    return NULL;
}

static const command_rec directives[] = { AP_INIT_TAKE1("PhpExtension", set_extension, NULL, RSRC_CONF, "a library"),
                                          { .name = NULL } };

static void hooks(apr_pool_t *p)
{
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

AP_DECLARE_MODULE(php) = { STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, directives, hooks };
