/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "access/access_file.h"

#include <apr_strings.h>
#include <httpd.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "access/htaccess_pure.h"
#include "base/text.h"
#include "question/held.h"
#include "question/lookup.h"
#include "question/request.h"
#include "question/shared.h"
#include "setup/settings.h"
#include "shared/client.h"
#include "wire/answer.h"
#include "wire/server_clock.h"

/* ---- which file ---- */

int fp_access_file_of(const request_rec *r, const struct fp_request *q, const struct fp_step *s)
{
    const struct fp_settings *settings = fp_settings_of(r->server);

    for (unsigned i = 0; i < settings->own.n && fp_step_is_dir(s); i++) {
        const unsigned name = settings->own.at[i];

        if (name >= q->held->answer->n_names)
            return -1;
        if (s->access[name].status == FP_OK)
            return (int)name;
        if (s->access[name].status != FP_ABSENT)
            return -1;
    }
    return -1;
}

bool fp_access_file_is_known(const struct htaccess_result *h, const char *dir)
{
    while (h != NULL && strcmp(h->dir, dir) != 0)
        h = h->next;
    return h != NULL;
}

bool fp_access_file_is_settled(const request_rec *r, const char *dir, const struct fp_access *a)
{
    struct statfs fs;

    if (a->ctime.sec >= apr_time_sec(r->request_time) - FP_SETTLED_MS / 1000)
        return false;
    /* A disk of this machine, and no call is needed to see that. */
    if (major(a->dev) != 0)
        return true;
    return statfs(dir, &fs) == 0 && fp_server_clock_has_settled_on((uint32_t)fs.f_type, a->dev, &a->ctime);
}

const char *fp_access_file_path(const request_rec *r, const char *dir, unsigned name)
{
    const struct fp_names *names = &fp_settings_of(r->server)->names;

    return ap_make_full_path(r->pool, dir,
                             apr_pstrmemdup(r->pool, names->list[name].name, names->list[name].len));
}

/* ---- the content ---- */

static apr_status_t content_getch(char *ch, void *param)
{
    struct fp_access_text *c = param;

    if (c->pos == c->end)
        return APR_EOF;
    *ch = *c->pos++;
    return APR_SUCCESS;
}

static apr_status_t content_gets(void *buf, apr_size_t size, void *param)
{
    struct fp_access_text *c = param;

    return fp_text_line(buf, size, &c->pos, c->end) != NULL ? APR_SUCCESS : APR_EOF;
}

bool fp_access_file_is_pure(const request_rec *r, const char *path, const struct fp_access_text *c)
{
    struct fp_access_text copy = *c;

    return fp_htaccess_is_pure(r->pool, fp_access_file_open(r->pool, path, &copy));
}

/* The answer from the shared table, or from the daemon. */
static fp_status find_answer(struct fp_held *h)
{
    fp_status st = fp_shared_find(fp_child_client, false, h);

    return st == FP_UNKNOWN || st == FP_ASK ? fp_held_ask(fp_child_client, false, false, h) : st;
}

struct fp_access_text *fp_access_file_fetch(const request_rec *r, const char *path, const struct fp_access *x)
{
    struct fp_held h = { .path = path, .path_len = strlen(path) };
    struct fp_access_text *c = NULL;
    char *text;

    if (!S_ISREG(x->mode) || x->size > FP_ACCESS_FILE_MOST || !fp_path_is_normal(path, h.path_len))
        return NULL;
    h.answer = fp_request_buf(r);
    text = apr_palloc(r->pool, (apr_size_t)x->size + 1);
    if (find_answer(&h) == FP_OK && fp_held_read_access_file(&h, x, text)) {
        c = apr_palloc(r->pool, sizeof(*c));
        *c = (struct fp_access_text){ text, text + x->size };
    }
    fp_held_end(&h);
    return c;
}

ap_configfile_t *fp_access_file_open(apr_pool_t *p, const char *path, struct fp_access_text *c)
{
    return ap_pcfg_open_custom(p, path, c, content_getch, content_gets, NULL);
}
