/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "access/htaccess.h"

#include <apr_portable.h>
#include <apr_strings.h>
#include <errno.h>
#include <http_core.h>
#include <stdbool.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/access_file.h"
#include "access/parsed.h"
#include "access/sections.h"
#include "base/path.h"
#include "question/held.h"
#include "question/open_path.h"
#include "question/request.h"
#include "setup/settings.h"
#include "wire/packet.h"

/* ---- the content ---- */

/* Core parses an access file in one thread, from open_htaccess to the file's close. */
static _Thread_local unsigned logged; /* lines, by this thread */

struct parsing {
    struct fp_access_text text; /* must be the first: core reads it */
    struct fp_request *q;
    apr_uint64_t bit; /* of its step */
    unsigned logged;  /* before it */
};

void fp_htaccess_note_line(const ap_errorlog_info *info, const char *line)
{
    (void)info;
    (void)line;
    logged++;
}

/* Each parse has to log: a result that is used again would not. */
static apr_status_t end_parse(void *param)
{
    const struct parsing *parsing = param;

    if (logged != parsing->logged)
        parsing->q->access_pure &= ~parsing->bit;
    return APR_SUCCESS;
}

static apr_status_t open_present(request_rec *r, struct fp_request *q, const char *dir, const char *path,
                                 const struct fp_access *x, ap_configfile_t **file)
{
    const struct fp_access_text *c = fp_access_file_fetch(r, path, x);
    struct parsing *parsing;
    apr_uint64_t bit;
    int below;

    if (c == NULL)
        return AP_DECLINED;
    bit = fp_request_bit(q, fp_request_find_step(q, dir, fp_path_len(dir), &below));
    q->access_opened++;
    q->access_text = c->pos;
    q->access_given |= bit;
    if (fp_parsed_is_used() && fp_access_file_is_pure(r, path, c))
        q->access_pure |= bit;
    else
        q->access_pure &= ~bit;
    parsing = apr_palloc(r->pool, sizeof(*parsing));
    *parsing = (struct parsing){ *c, q, bit, logged };
    *file = fp_access_file_open(r->pool, path, &parsing->text);
    (*file)->close = end_parse;
    return APR_SUCCESS;
}

/* ---- by name ---- */

static apr_status_t file_getch(char *ch, void *param)
{
    return apr_file_getc(ch, param);
}

static apr_status_t file_gets(void *buf, apr_size_t size, void *param)
{
    return apr_file_gets(buf, (int)size, param);
}

static apr_status_t file_close(void *param)
{
    return apr_file_close(param);
}

/*
 * Opens and reads as core does, but in the answer's own directory, and without waiting for a FIFO's writer. A
 * FIFO put there would block an httpd worker for good.
 */
static apr_status_t open_by_name(request_rec *r, struct fp_request *q, const char *dir, const char *name,
                                 const char *path, ap_configfile_t **file)
{
    int below = 0;
    const struct fp_step *s = fp_request_find_step(q, dir, fp_path_len(dir), &below);
    const bool known = s != NULL && !below && fp_step_is_dir(s);
    int fd = known ? fp_open_in_step(dir, s, name) : -1;
    const enum fp_rules_are rules = !known                        ? FP_RULES_UNKNOWN
                                    : fd == -1 && errno == ESTALE ? FP_RULES_OTHER
                                                                  : FP_RULES_OWN;
    apr_file_t *f = NULL;

    /* The request will be served once more. */
    if (rules != FP_RULES_OWN)
        fd = fp_open_now(path);
    if (rules > q->rules)
        q->rules = rules;
    /* Any other error says nothing of the file: core finds it itself. */
    if (fd == -1)
        return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? errno : AP_DECLINED;
    if (!fp_is_readable_file(fd)) {
        fp_close(&fd);
        return APR_EBADF;
    }
    apr_os_file_put(&f, &fd, APR_FOPEN_READ | APR_FOPEN_BUFFERED, r->pool);
    *file = ap_pcfg_open_custom(r->pool, path, f, file_getch, file_gets, file_close);
    return APR_SUCCESS;
}

fp_status fp_htaccess_find(const request_rec *r, const struct fp_request *q, const char *dir,
                           const char *name, const struct fp_access **access_r)
{
    int below, n = fp_names_find(&fp_settings_of(r->server)->names, name, strlen(name));
    bool asked = n != -1 && n < (int)q->held->answer->n_names;
    const struct fp_step *s = asked ? fp_request_find_step(q, dir, fp_path_len(dir), &below) : NULL;

    *access_r = NULL;
    if (s == NULL)
        return FP_UNKNOWN;
    if (!fp_step_is_dir(s))
        return fp_request_error_below(s);
    *access_r = &s->access[n];
    return s->access[n].status;
}

apr_status_t fp_htaccess_open(request_rec *r, const char *dir, const char *name, ap_configfile_t **file,
                              const char **full_name)
{
    struct fp_request *q = fp_request_of(r);
    const struct fp_access *access;
    apr_status_t rv = AP_DECLINED;
    fp_status st;

    /* The daemon looks from within the directory; by a name
     * that is too long core finds nothing, and refuses. */
    if (q == NULL || fp_path_len(dir) + 1 + strlen(name) > FP_MAX_PATH)
        return AP_DECLINED;
    st = fp_htaccess_find(r, q, dir, name, &access);
    if (st == FP_ABSENT || st == FP_NOTDIR)
        return fp_status_to_errno(st);
    *full_name = ap_make_full_path(r->pool, dir, name);
    if (st == FP_OK)
        rv = open_present(r, q, dir, *full_name, access, file);
    return rv == AP_DECLINED ? open_by_name(r, q, dir, name, *full_name, file) : rv;
}

/* ---- parsed files ---- */

static void inject(request_rec *r, struct fp_parsed *p)
{
    struct htaccess_result *h = apr_pcalloc(r->pool, sizeof(*h));

    h->dir = p->dir;
    h->override = p->override;
    h->override_opts = p->parse.override_opts;
    h->htaccess = p->parse.conf;
    h->next = r->htaccess;
    r->htaccess = h;
#ifdef AP_TAINT_HTACCESS
    r->taint |= AP_TAINT_HTACCESS;
#endif
    fp_parsed_hold(r, p);
}

/* How many access files the step has, or may have. */
static unsigned count_present(const struct fp_request *q, const struct fp_step *s)
{
    unsigned n = 0;

    for (unsigned i = 0; i < q->held->answer->n_names && fp_step_is_dir(s); i++)
        n += s->access[i].status != FP_ABSENT;
    return n;
}

void fp_htaccess_inject(request_rec *r)
{
    const struct htaccess_result *before = r->htaccess;
    struct fp_request *q = fp_request_of(r);
    unsigned present = 0;

    if (q == NULL || q->held->answer->n_names == 0 || fp_answer_lacks_access_files(q->held->answer) || !fp_parsed_is_for(r))
        return;
    for (unsigned i = 0; i < q->held->answer->n_steps; i++) {
        const struct fp_step *s = &q->held->answer->steps[i];
        int name = fp_access_file_of(r, q, s);
        struct fp_parsed *p = name != -1 ? fp_parsed_find(r, q, s, (unsigned)name) : NULL;

        present += count_present(q, s);
        if (p != NULL && p->parse.conf != NULL && !fp_access_file_is_known(before, p->dir)) {
            inject(r, p);
            q->merged = &p->parse.merged;
        } else if (p != NULL) {
            fp_item_release(&p->item);
        }
    }
    if (present != 1)
        q->merged = NULL;
    q->injected = r->htaccess;
}

/* Core parses into the pool of the request that it gets, so it gets a request with our pool. */
static ap_conf_vector_t *parse(const request_rec *r, apr_pool_t *pool, const struct htaccess_result *h)
{
    const core_server_config *core = ap_get_core_module_config(r->server->module_config);
    ap_conf_vector_t *conf = NULL;
    request_rec copy = *r;

    copy.pool = pool;
    copy.htaccess = NULL;
    copy.notes = apr_table_make(pool, 1);
    if (ap_parse_htaccess(&conf, &copy, h->override, h->override_opts, NULL, apr_pstrdup(pool, h->dir),
                          core->access_name)
        != OK)
        return NULL;
    return conf;
}

static struct fp_merged merge(const request_rec *r, const struct fp_parse *made,
                              const struct htaccess_result *h)
{
    struct htaccess_result *file = apr_pcalloc(made->pool, sizeof(*file));

    file->dir = apr_pstrdup(made->pool, h->dir);
    file->override = h->override;
    file->override_opts = h->override_opts;
    file->htaccess = made->conf;
    return fp_sections_merge_with(made->pool, r->server, file);
}

/* Parses the file once more if the result may be used again and kept. Otherwise keeps only the fact that the
 * file is to be parsed for each request. */
static void keep_one(request_rec *r, struct fp_request *q, const struct fp_step *s, unsigned name,
                     const struct htaccess_result *h)
{
    const bool pure = (q->access_pure & fp_request_bit(q, s)) != 0 && fp_parsed_may_keep(&s->access[name]);
    const unsigned opened = q->access_opened;
    struct fp_parse made = { .override_opts = h->override_opts, .before = fp_parsed_memory() };

    /* The pool has no parent: it lives longer than the request, and the thread that releases it
     * last destroys it. */
    if (apr_pool_create_unmanaged_ex(&made.pool, NULL, NULL) != APR_SUCCESS)
        return;
    if (pure)
        made.conf = parse(r, made.pool, h);
    /* Only a configuration made from the very file that the answer shows is kept. */
    if (pure && (made.conf == NULL || q->access_opened != opened + 1)) {
        apr_pool_destroy(made.pool);
        return;
    }
    if (pure) {
        made.text = q->access_text;
        made.merged = merge(r, &made, h);
    }
    fp_parsed_keep(r, q, s, name, h, &made);
}

int fp_htaccess_keep(request_rec *r)
{
    struct fp_request *q = fp_request_of(r);

    if (q == NULL || !fp_parsed_is_for(r))
        return DECLINED;
    /* Core puts its own results before those that it was given. */
    for (const struct htaccess_result *h = r->htaccess; h != NULL && h != q->injected; h = h->next) {
        const struct fp_step *s;
        const int name = h->htaccess != NULL ? fp_parsed_missing(r, q, h, &s) : -1;

        /* Core may have opened by name another file than the answer's. */
        if (name != -1 && (q->access_given & fp_request_bit(q, s)) != 0)
            keep_one(r, q, s, (unsigned)name, h);
    }
    return DECLINED;
}
