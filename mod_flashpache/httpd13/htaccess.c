/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "httpd13/htaccess.h"

#include <http_config.h>
#include <string.h>

#include "httpd13/lease13.h"
#include "httpd13/settings.h"

/* The directory of a step as core names it, with a slash behind it. */
static const char *name_of(pool *p, const struct fp_lease13 *lease, const struct fp_step *s)
{
    return s->end == 1 ? "/" : ap_pstrcat(p, ap_pstrndup(p, lease->path, s->end), "/", NULL);
}

/* True if the directory has none of the files that core would look for. */
static bool has_none(const struct fp_settings *settings, const struct fp_lease13 *lease,
                     const struct fp_step *s)
{
    for (unsigned i = 0; i < lease->n_names; i++) {
        if (s->access[i].status != FP_ABSENT)
            return false;
    }
    return settings->names_complete && lease->n_names == settings->names.n;
}

/* A request of the same family may have parsed the file already; all see that one. */
static bool is_known(const request_rec *r, const char *dir, int override)
{
    for (const struct htaccess_result *h = r->htaccess; h != NULL; h = h->next) {
        if (h->override == override && strcmp(h->dir, dir) == 0)
            return true;
    }
    return false;
}

/* Core compares the directory's own value of AllowOverride, which is one of the server's. */
static void add_none(request_rec *r, const struct fp_settings *settings, char *dir)
{
    for (unsigned i = 0; i < settings->n_overrides; i++) {
        struct htaccess_result *h;

        if (is_known(r, dir, settings->overrides[i]))
            continue;
        h = ap_pcalloc(r->pool, sizeof(*h));
        h->dir = dir;
        h->override = settings->overrides[i];
        h->next = r->htaccess;
        r->htaccess = h;
    }
}

bool fp_htaccess_inject(request_rec *r, const struct fp_lease13 *lease)
{
    const struct fp_settings *settings = fp_settings_of(r->server);
    bool left = false;

    for (unsigned i = 0; settings->n_overrides > 0 && i < lease->n_steps; i++) {
        const struct fp_step *s = lease->steps[i];

        if (!fp_step_is_dir(s))
            continue;
        if (has_none(settings, lease, s))
            add_none(r, settings, (char *)name_of(r->pool, lease, s));
        else
            left = true;
    }
    return left;
}
