/* SPDX-License-Identifier: Apache-2.0 */
#define CORE_PRIVATE
#include "config.h"
#include "httpd13/htaccess.h"

#include <http_config.h>
#include <string.h>

#include "base/text.h"
#include "httpd13/lookup13.h"
#include "httpd13/settings.h"
#include "question/held.h"

#define CONTENT_MOST (1u << 20) /* bytes; larger ones are core's */

/* A directory on the way. */
struct place {
    const struct fp_held *held;
    const struct fp_step *step;
    char *dir; /* as core names it, with a slash behind it */
    int override;
    bool fresh;
};

/* ---- the content ---- */

struct content {
    const char *pos, *end;
};

static int content_getch(void *param)
{
    struct content *c = param;

    return c->pos != c->end ? (unsigned char)*c->pos++ : EOF;
}

static void *content_gets(void *buf, size_t size, void *param)
{
    struct content *c = param;

    return fp_text_line(buf, size, &c->pos, c->end);
}

/* The content of the directory's access file of that name. */
static bool fetch(request_rec *r, const struct place *at, const char *path, const struct fp_access *x,
                  struct content *c)
{
    struct fp_held file;
    char *text;
    bool ok;

    if (!S_ISREG(x->mode) || x->size > CONTENT_MOST || !fp_path_is_normal(path, strlen(path)))
        return false;
    if (fp_lookup13(path, strlen(path), at->fresh, &file) != FP_OK)
        return false;
    text = ap_palloc(r->pool, (int)x->size + 1);
    *c = (struct content){ text, text + x->size };
    ok = fp_held_read_access_file(&file, x, text);
    fp_held_end(&file);
    return ok;
}

/* ---- what core finds ---- */

/* A request of the same family may have parsed the file already; all see that one. */
static bool is_known(const request_rec *r, const struct place *at)
{
    for (const struct htaccess_result *h = r->htaccess; h != NULL; h = h->next) {
        if (h->override == at->override && strcmp(h->dir, at->dir) == 0)
            return true;
    }
    return false;
}

/* conf: the parsed file; NULL if there is none. */
static void add(request_rec *r, const struct place *at, void *conf)
{
    struct htaccess_result *h = ap_pcalloc(r->pool, sizeof(*h));

    h->dir = at->dir;
    h->override = at->override;
    h->htaccess = conf;
    h->next = r->htaccess;
    r->htaccess = h;
}

/* As core's ap_parse_htaccess(). NULL: there is a mistake in it, which core reports when it parses the
 * file itself. */
static void *parse(request_rec *r, const struct place *at, const char *path, struct content *c)
{
    cmd_parms parms = { .override = at->override,
                        .limited = -1,
                        .pool = r->pool,
                        .temp_pool = r->pool,
                        .server = r->server,
                        .path = ap_pstrdup(r->pool, at->dir) };
    void *conf = ap_create_per_dir_config(r->pool);

    parms.config_file = ap_pcfg_open_custom(r->pool, path, c, content_getch, content_gets, NULL);
    return ap_srm_command_loop(&parms, conf) == NULL ? conf : NULL;
}

/* Where links are restricted core may refuse the path before it parses the file. */
static bool add_parsed(request_rec *r, const struct place *at, unsigned name)
{
    const struct fp_settings *settings = fp_settings_of(r->server);
    const char *path = ap_pstrcat(
        r->pool, at->dir,
        ap_pstrndup(r->pool, settings->names.list[name].name, (int)settings->names.list[name].len), NULL);
    struct content c;
    void *conf;

    if (settings->restricts_links || !fetch(r, at, path, &at->step->access[name], &c))
        return false;
    conf = parse(r, at, path, &c);
    if (conf == NULL)
        return false;
    add(r, at, conf);
    return true;
}

/* True if core need not open an access file here. Core takes the first name that is there. */
static bool inject(request_rec *r, const struct place *at)
{
    const struct fp_settings *settings = fp_settings_of(r->server);
    const unsigned n = settings->names_asked ? at->held->answer->n_names : 0;
    unsigned name = 0;

    if (at->override == OR_NONE || is_known(r, at))
        return true;
    while (name < n && at->step->access[name].status == FP_ABSENT)
        name++;
    if (name < n)
        return at->step->access[name].status == FP_OK && add_parsed(r, at, name);
    if (!settings->names_complete || n != settings->names.n)
        return false;
    add(r, at, NULL);
    return true;
}

bool fp_htaccess_inject(request_rec *r, const struct fp_held *held, bool fresh)
{
    struct fp_overrides overrides = fp_settings_overrides(r->server);
    bool left = false;

    for (unsigned i = 0; fp_settings_of(r->server)->names.n > 0 && i < held->answer->n_steps; i++) {
        const struct fp_step *s = &held->answer->steps[i];
        struct place at = { held, s, NULL, 0, fresh };

        if (!fp_step_is_dir(s))
            break;
        at.dir =
            s->end == 1 ? "/" : ap_pstrcat(r->pool, ap_pstrndup(r->pool, held->path, s->end), "/", NULL);
        at.override = fp_settings_next_override(&overrides, at.dir, i + 1);
        left = !inject(r, &at) || left;
    }
    return left;
}
