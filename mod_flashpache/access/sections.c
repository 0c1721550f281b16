/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "access/sections.h"

#include <apr_fnmatch.h>
#include <apr_strings.h>
#include <http_request.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "question/held.h"
#include "question/request.h"
#include "setup/settings.h"
#include "walk/walk.h"
#include "wire/answer.h"

#define MERGED_MOST 5000u /* sections of all servers; each takes 3 KB, and some time of the start */

/* Of a path: core refuses longer ones, or those whose access file has too long a name. */
#define PATH_MOST (FP_MAX_PATH - 1 - FP_MAX_NAME)

/* A section without a pattern, with all those of the directories above it. */
struct fp_section {
    const char *path; /* with a slash at its end */
    apr_size_t len;
    struct fp_merged merged; /* without access files */
    bool access_files;       /* core looks for them on the way */
};

struct fp_sections {
    unsigned n, n_patterns;
    struct fp_section *list;          /* in core's order: the longest path that fits stands last */
    const core_dir_config **patterns; /* <DirectoryMatch>, and <Directory> with a wildcard */
};

/* ---- which sections ---- */

/* Core takes a file for a directory here: a section may have its name. */
static bool is_in(const struct fp_section *x, const char *path, apr_size_t len)
{
    return (x->len <= len && memcmp(x->path, path, x->len) == 0)
           || (x->len == len + 1 && memcmp(x->path, path, len) == 0);
}

static struct fp_section *find(const struct fp_sections *all, const char *path, apr_size_t len)
{
    for (unsigned i = all->n; i-- > 0;) {
        if (is_in(&all->list[i], path, len))
            return &all->list[i];
    }
    return NULL;
}

/* True if the path's first components, so many, fit the pattern. */
static bool fits(const char *pattern, unsigned components, char *path)
{
    char *end = path;
    bool found;
    char next;

    for (unsigned i = 0; i < components; i++) {
        end = strchr(end, '/');
        if (end++ == NULL)
            return false;
    }
    next = *end;
    *end = '\0';
    found = apr_fnmatch(pattern, path, APR_FNM_PATHNAME) == APR_SUCCESS;
    *end = next;
    return found;
}

/* True if a section with a pattern is about that file, or a directory that it lies in. */
static bool has_pattern(const struct fp_sections *all, apr_pool_t *p, const char *file)
{
    char *path = NULL;

    for (unsigned i = 0; i < all->n_patterns; i++) {
        const core_dir_config *d = all->patterns[i];

        if (d->r != NULL && ap_regexec(d->r, file, 0, NULL, 0) == 0)
            return true;
        if (d->r != NULL)
            continue;
        if (path == NULL)
            path = apr_pstrcat(p, file, "/", NULL);
        if (fits(d->d, d->d_components, path))
            return true;
    }
    return false;
}

/* ---- merging ---- */

/* The handler of requests for a merge: hooks know them by its address. */
static const char MERGING[] = "flashpache-merging";

/* Core's walk for a merge. Its request has only what that walk looks at. */
struct merging {
    request_rec r;     /* the first member: a hook gets only this */
    const char *dir;   /* whose access file it was given; NULL: none */
    bool access_files; /* core looks for others */
    bool unknown;      /* core asks for a link, or again for that access file */
};

static struct merging *merging_of(request_rec *r)
{
    return r->handler == MERGING ? (struct merging *)r : NULL;
}

apr_status_t fp_sections_stat(apr_finfo_t *finfo, request_rec *r, apr_int32_t wanted)
{
    struct merging *m = merging_of(r);

    (void)wanted;
    if (m == NULL)
        return AP_DECLINED;
    m->unknown = true;
    finfo->valid = APR_FINFO_TYPE;
    finfo->filetype = APR_DIR;
    return APR_SUCCESS;
}

apr_status_t fp_sections_open(request_rec *r, const char *dir, const char *name, ap_configfile_t **file,
                              const char **full_name)
{
    struct merging *m = merging_of(r);

    (void)name;
    (void)file;
    (void)full_name;
    if (m == NULL)
        return AP_DECLINED;
    m->access_files = true;
    m->unknown |= m->dir != NULL && strcmp(dir, m->dir) == 0;
    return APR_ENOENT;
}

/* Core's walk to a regular file, whose note goes to config. */
static int walk(struct merging *m, apr_pool_t *p, server_rec *s, ap_conf_vector_t *config, char *file)
{
    m->r.handler = MERGING;
    m->r.pool = p;
    m->r.server = s;
    m->r.per_dir_config = s->lookup_defaults;
    m->r.request_config = config;
    m->r.filename = file;
    m->r.finfo.filetype = APR_REG;
    return ap_directory_walk(&m->r);
}

static ap_conf_vector_t *make_config(apr_pool_t *p)
{
    core_request_config *core = apr_pcalloc(p, sizeof(*core));
    ap_conf_vector_t *config = ap_create_request_config(p);

    core->notes = apr_pcalloc(p, AP_NUM_STD_NOTES * sizeof(*core->notes));
    ap_set_core_module_config(config, core);
    return config;
}

/* True if core gives a part of that request's page, in another directory, the very same configuration. It
 * merges anew where a module has a hook for access of httpd 2.2's kind. */
static bool is_shared(apr_pool_t *p, const char *dir, request_rec *from)
{
    struct merging part = { .r = { .prev = from, .htaccess = from->htaccess } };
    apr_pool_t *own;
    bool shared;

    apr_pool_create(&own, p);
    shared = walk(&part, own, from->server, make_config(own), apr_pstrcat(own, dir, "-/-", NULL)) == OK
             && part.r.per_dir_config == from->per_dir_config;
    apr_pool_destroy(own);
    return shared;
}

/* Has core walk to a file that the directory might have. */
static struct fp_merged merge(apr_pool_t *p, server_rec *s, const struct fp_section *x, const char *dir,
                              struct merging *m)
{
    const struct fp_sections *all = fp_settings_of(s)->sections;
    const char *below = apr_pstrcat(p, dir, "-/-", NULL); /* the longest name that is tried */
    char *file = apr_pstrcat(p, dir, "-", NULL);

    if (strlen(dir) > PATH_MOST || has_pattern(all, p, file) || find(all, below, strlen(below)) != x
        || walk(m, p, s, make_config(p), file) != OK || m->unknown || !is_shared(p, dir, &m->r))
        return (struct fp_merged){ x, NULL };
    return (struct fp_merged){ x, &m->r };
}

/* True if answers tell of all names that core may look for. */
static bool asks_about_all_names(apr_pool_t *p, const server_rec *s)
{
    const core_server_config *core = ap_get_core_module_config(s->module_config);
    const struct fp_settings *settings = fp_settings_of(s);
    const char *rest = core->access_name;

    while (rest[0] != '\0') {
        const char *name = ap_getword_conf(p, &rest);

        if (fp_names_find(&settings->names, name, strlen(name)) == -1)
            return false;
    }
    return true;
}

static struct fp_sections *collect(apr_pool_t *p, const server_rec *s)
{
    const core_server_config *core = ap_get_core_module_config(s->module_config);
    const unsigned n = (unsigned)core->sec_dir->nelts;
    struct fp_sections *all = apr_pcalloc(p, sizeof(*all));

    all->list = apr_pcalloc(p, n * sizeof(*all->list));
    all->patterns = apr_pcalloc(p, n * sizeof(*all->patterns));
    for (unsigned i = 0; i < n; i++) {
        const core_dir_config *d =
            ap_get_core_module_config(APR_ARRAY_IDX(core->sec_dir, i, ap_conf_vector_t *));

        if (d->r != NULL || d->d_is_fnmatch)
            all->patterns[all->n_patterns++] = d;
        else
            all->list[all->n++] = (struct fp_section){ .path = d->d, .len = strlen(d->d) };
    }
    return all;
}

static bool is_others(const char *file)
{
    return strcmp(file, "core.c") != 0 && strcmp(file, "mod_flashpache.c") != 0;
}

/* True if another module takes part in core's walk. */
static bool has_other_hooks(void)
{
    const apr_array_header_t *stats = ap_hook_get_dirwalk_stat(), *opens = ap_hook_get_open_htaccess();

    for (int i = 0; i < stats->nelts; i++) {
        if (is_others(APR_ARRAY_IDX(stats, i, ap_LINK_dirwalk_stat_t).szName))
            return true;
    }
    for (int i = 0; i < opens->nelts; i++) {
        if (is_others(APR_ARRAY_IDX(opens, i, ap_LINK_open_htaccess_t).szName))
            return true;
    }
    return false;
}

void fp_sections_merge(apr_pool_t *p, server_rec *s)
{
    unsigned merged = 0;

    /* A program in Perl may write into its request's configuration. */
    if (has_other_hooks() || ap_find_linked_module("mod_perl.c") != NULL)
        return;
    for (; s != NULL; s = s->next) {
        struct fp_sections *all = collect(p, s);

        fp_settings_of(s)->sections = all;
        for (unsigned i = 0; i < all->n && merged < MERGED_MOST; i++, merged++) {
            struct fp_section *x = &all->list[i];
            struct merging *m = apr_pcalloc(p, sizeof(*m));

            x->merged = merge(p, s, x, x->path, m);
            x->access_files = m->access_files;
            if (x->access_files && !asks_about_all_names(p, s))
                x->merged.walk = NULL;
        }
    }
}

struct fp_merged fp_sections_merge_with(apr_pool_t *p, server_rec *s, const struct htaccess_result *file)
{
    const struct fp_sections *all = fp_settings_of(s)->sections;
    const struct fp_section *x = all != NULL ? find(all, file->dir, strlen(file->dir)) : NULL;
    struct merging *m;

    if (x == NULL || x->merged.walk == NULL || !x->access_files)
        return (struct fp_merged){ x, NULL };
    m = apr_pcalloc(p, sizeof(*m));
    m->r.htaccess = file;
    m->dir = file->dir;
    return merge(p, s, x, file->dir, m);
}

/* ---- a request ---- */

/* True if core's walk would find that file, whole, and has not begun to. */
static bool is_whole_file(const request_rec *r, const struct fp_request *q)
{
    const struct fp_held *h = q->held;
    const struct fp_meta *m = fp_held_target(h);

    return r->main == NULL && r->prev == NULL && r->finfo.filetype == APR_NOFILE
           && r->per_dir_config == r->server->lookup_defaults
           && (r->path_info == NULL || r->path_info[0] == '\0') && m != NULL && S_ISREG(m->mode)
           && strlen(r->filename) == h->path_len
           && memcmp(r->filename, h->path, h->path_len) == 0;
}

/* The result that core's walk would have, without a look; NULL: unknown. */
static const struct fp_merged *merged_for(const struct fp_section *x, const struct fp_request *q)
{
    if (q->held->path_len > PATH_MOST)
        return NULL;
    if (!x->access_files || fp_answer_lacks_access_files(q->held->answer))
        return &x->merged;
    return q->merged != NULL && q->merged->section == x ? q->merged : NULL;
}

int fp_sections_walk(request_rec *r)
{
    const struct fp_sections *all = fp_settings_of(r->server)->sections;
    struct fp_request *q = fp_request_of(r);
    const struct fp_merged *merged;
    const struct fp_section *x;

    if (all == NULL || q == NULL || !is_whole_file(r, q))
        return DECLINED;
    x = find(all, r->filename, q->held->path_len);
    merged = x != NULL ? merged_for(x, q) : NULL;
    if (merged == NULL || merged->walk == NULL || has_pattern(all, r->pool, r->filename)
        || fp_walk_answer_stat(&r->finfo, r, q, APR_FINFO_MIN) != APR_SUCCESS)
        return DECLINED;
    r->canonical_filename = r->filename;
    r->path_info = r->filename + q->held->path_len;
    r->per_dir_config = merged->walk->per_dir_config;
    q->walked = merged;
    return ap_file_walk(r);
}

/* Core makes the note of the walk that was left out, from the kept one's. It merges nothing, as is_shared() has
 * seen: only the directory that the note names is another one. */
static void make_note(request_rec *r)
{
    struct fp_request *q = r != NULL ? fp_request_of(r) : NULL;
    struct merging *m;

    if (q == NULL || q->walked == NULL)
        return;
    m = apr_pcalloc(r->pool, sizeof(*m));
    m->r.prev = q->walked->walk;
    m->r.htaccess = r->htaccess;
    q->walked = NULL;
    walk(m, r->pool, r->server, r->request_config,
         apr_pstrmemdup(r->pool, q->held->path, q->held->path_len));
}

void fp_sections_begin(request_rec *r)
{
    make_note(r); /* another module may run this hook again */
    make_note(r->prev);
    make_note(r->main);
}
