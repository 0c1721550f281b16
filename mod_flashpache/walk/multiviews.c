/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk/multiviews.h"

#include <apr_strings.h>
#include <http_config.h>
#include <http_core.h>
#include <http_protocol.h>
#include <http_request.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "files/names.h"
#include "question/finfo.h"
#include "question/held.h"
#include "question/lookup.h"
#include "question/request.h"
#include "setup/settings.h"
#include "shared/lease_table.h"
#include "wire/answer.h"

static bool negotiates; /* mod_negotiation is loaded */

void fp_multiviews_begin(void)
{
    negotiates = ap_find_linked_module("mod_negotiation.c") != NULL;
}

/* True if mod_negotiation would read the directory. */
static bool is_negotiated(const request_rec *r)
{
    return negotiates && fp_request_of(r) != NULL && r->finfo.filetype == APR_NOFILE
           && (ap_allow_options((request_rec *)r) & OPT_MULTI) != 0 && r->proxyreq == PROXYREQ_NONE;
}

/*
 * An answer about the absent name has the directory as a part of the path, perhaps with older
 * times. mod_negotiation makes an entity tag of these times.
 */
static void renew_times(request_rec *r, const struct fp_meta *dir)
{
    apr_finfo_t f = r->finfo;

    if (r->finfo.inode != dir->ino || r->finfo.device != dir->dev)
        return;
    fp_finfo_fill(&f, dir, r->finfo.fname, r->finfo.pool);
    f.valid = r->finfo.valid;
    f.filetype = APR_NOFILE;
    r->finfo = f;
}

static bool wants_digest(const request_rec *r)
{
#ifdef ETAG_DIGEST
    const core_dir_config *d = ap_get_core_module_config(r->per_dir_config);

    return ((d->etag_bits | d->etag_add) & ETAG_DIGEST) != 0;
#else
    (void)r;
    return false;
#endif
}

/* Sets what mod_negotiation sets where it finds nothing. */
static void find_nothing(request_rec *r)
{
    ap_update_mtime(r, r->finfo.mtime);
    r->vlist_validator = ap_make_etag(r, 0);
}

/* Until fixups the request has another configuration, one without MultiViews. */
static void hide_option(request_rec *r)
{
    struct fp_record *record = fp_record_make(r);
    core_dir_config *core =
        apr_pmemdup(r->pool, ap_get_core_module_config(r->per_dir_config), sizeof(core_dir_config));

    core->opts &= (allow_options_t)~OPT_MULTI;
    record->hidden = r->per_dir_config;
    record->shown = ap_merge_per_dir_configs(r->pool, record->hidden, ap_create_request_config(r->pool));
    ap_set_core_module_config(record->shown, core);
    r->per_dir_config = record->shown;
}

/* True if the answer is as current as the file system itself, and about a directory that is no link: no event for a
 * link reports a change of its target. */
static bool is_current(const struct fp_held *dir)
{
    const struct fp_step *last = fp_held_last(dir);
    const uint64_t now_ms = fp_now_ms();

    return !fp_held_is_stale(dir) && last->end == dir->path_len && last->status == FP_OK && S_ISDIR(last->self.mode)
           && dir->view != NULL && fp_lease_view_is_current(dir->view, now_ms)
           && fp_lease_view_is_valid(dir->view, last->slot, last->generation, now_ms);
}

/* False also where the names are unknown. Then the directory is unreadable, too large, or was changed a moment ago, or
 * only a question would show its changes. */
static bool has_none(const struct fp_held *dir, const char *begin)
{
    const size_t len = strlen(begin);
    const struct dirent64 *entry;
    struct fp_files_names *n = is_current(dir) ? fp_files_names_of(dir->view, dir->path, dir->path_len, fp_held_last(dir)) : NULL;
    bool none = n != NULL;
    size_t at = 0;

    while (none && (entry = fp_files_names_next(n, &at)) != NULL)
        none = strncmp(entry->d_name, begin, len) != 0;
    fp_files_names_release(&n);
    return none;
}

int fp_multiviews_before(request_rec *r)
{
    const char *name = is_negotiated(r) ? ap_strrchr_c(r->filename, '/') : NULL;
    struct fp_held *dir;

    if (name == NULL || name[1] == '\0')
        return DECLINED;
    dir = fp_lookup_directory(r, r->filename, name == r->filename ? 1 : (apr_size_t)(name - r->filename));
    if (dir == NULL)
        return DECLINED;
    if (fp_step_target(fp_held_last(dir)) != NULL)
        renew_times(r, fp_step_target(fp_held_last(dir)));
    if (fp_settings_of(r->server)->open_files > 0 && !wants_digest(r)
        && has_none(dir, apr_pstrcat(r->pool, name + 1, ".", NULL))) {
        find_nothing(r);
        hide_option(r);
    }
    return DECLINED;
}

int fp_multiviews_after(request_rec *r)
{
    const struct fp_record *record = fp_record_of(r);

    if (record->shown != NULL && record->shown == r->per_dir_config)
        r->per_dir_config = record->hidden;
    return DECLINED;
}
