/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_stock.h"

#include <sys/stat.h>

struct state {
    const struct ctl_stock *settings;
    const struct ctl_walk *walk;
    ctl_on_call *each;
    void *ctx;
    mode_t found; /* the type from the first stat; 0: none */
    bool forbidden;
};

static void report(const struct state *s, const char *call, size_t len, fp_status outcome)
{
    const struct ctl_call c = { call, len, NULL, 0, outcome };

    s->each(s->ctx, &c);
}

/* The outcome of a stat of the path's first len bytes, and the type. */
static fp_status stat_of(const struct fp_answer *a, size_t len, mode_t *type_r)
{
    *type_r = 0;
    for (unsigned i = 0; i < a->n_steps; i++) {
        const struct fp_step *step = &a->steps[i];
        const struct fp_meta *m = fp_step_target(step);

        if (step->end < len && fp_step_is_dir(step))
            continue;
        if (m == NULL)
            return step->status != FP_OK ? step->status : step->target_status;
        if (step->end < len)
            return FP_NOTDIR;
        *type_r = m->mode & S_IFMT;
        return FP_OK;
    }
    return FP_ABSENT;
}

static const struct fp_step *step_at(const struct fp_answer *a, size_t len)
{
    for (unsigned i = 0; i < a->n_steps; i++) {
        if (a->steps[i].end == len)
            return &a->steps[i];
    }
    return NULL;
}

/* The outcome of an open of the access file of that number. The answer may be without access files. */
static fp_status access_of(const struct fp_answer *a, size_t len, unsigned i)
{
    const struct fp_step *step = step_at(a, len);

    if (step == NULL || !fp_step_is_dir(step))
        return FP_NOTDIR;
    return i < a->n_names ? step->access[i].status : FP_UNKNOWN;
}

/* Opens access files; httpd uses the first that exists. */
static void open_access_files(struct state *s, size_t len)
{
    const struct fp_names *names = s->settings->names;

    for (unsigned i = 0; i < names->n; i++) {
        const fp_status st = access_of(s->walk->answer, len, i);
        const struct ctl_call c = { "open", len, names->list[i].name, names->list[i].len, st };

        s->each(s->ctx, &c);
        if (st == FP_OK)
            return;
        if (st != FP_ABSENT && st != FP_NOTDIR && st != FP_UNKNOWN) {
            s->forbidden = true;
            return;
        }
    }
}

/* The parent directory's Options count for a component. */
static enum ctl_links links_at(const struct state *s, size_t len)
{
    const size_t parent_len = fp_path_parent_len(s->walk->path, len);

    return fp_path_is_below(s->walk->path, parent_len, s->settings->root) ? s->settings->links
                                                                          : CTL_LINKS_FOLLOW;
}

/* Calls lstat, and for a link stat.  True if it is a directory. */
static bool look_at(struct state *s, size_t len)
{
    const struct fp_step *step = step_at(s->walk->answer, len);
    const fp_status st = step != NULL ? step->status : FP_ABSENT;
    mode_t type = 0;

    report(s, "lstat", len, st);
    if (st == FP_OK && S_ISLNK(step->self.mode)) {
        const enum ctl_links links = links_at(s, len);

        if (links != CTL_LINKS_NONE)
            report(s, "stat", len, step->target_status);
        s->forbidden = step->target_status != FP_OK || links == CTL_LINKS_NONE
                       || (links == CTL_LINKS_OWNER && step->self.uid != step->target.uid);
    }
    if (st != FP_OK || s->forbidden) {
        s->forbidden = s->forbidden || st != FP_ABSENT;
        return false;
    }
    stat_of(s->walk->answer, len, &type);
    s->forbidden = type != S_IFDIR && type != S_IFREG;
    s->found = s->found != 0 ? s->found : type == S_IFREG ? type : 0;
    return type == S_IFDIR;
}

/* The length at which the walk ends. */
static size_t descend(struct state *s)
{
    const struct ctl_walk *w = s->walk;
    const bool exists = s->found != 0;
    /* httpd keeps the access files of a directory for subrequests. */
    const size_t tried = w->sub ? fp_path_parent_len(w->path, w->len) : 0;
    size_t len = 1;

    for (;;) {
        if (len > tried && s->settings->htaccess && fp_path_is_below(w->path, len, s->settings->root))
            open_access_files(s, len);
        if (s->forbidden || len == w->len)
            return len;
        len = fp_path_child_len(w->path, w->len, len);
        /* After the first stat httpd does not call lstat for each component. */
        if (!(exists && links_at(s, len) == CTL_LINKS_FOLLOW) && !look_at(s, len))
            return len;
    }
}

static enum ctl_end end_of(const struct state *s, size_t len)
{
    if (s->forbidden)
        return CTL_END_FORBIDDEN;
    switch (s->found) {
    case 0: return CTL_END_ABSENT;
    case S_IFDIR: return CTL_END_DIRECTORY;
    case S_IFREG: return len < s->walk->len || s->walk->slash ? CTL_END_INFO : CTL_END_FILE;
    default: return CTL_END_SPECIAL;
    }
}

enum ctl_end ctl_stock_walk(const struct ctl_stock *settings, const struct ctl_walk *w, ctl_on_call *each,
                            void *ctx)
{
    struct state s = { settings, w, each, ctx, 0, false };
    fp_status st = stat_of(w->answer, w->len, &s.found);

    if (st == FP_OK && w->slash && s.found != S_IFDIR) {
        st = FP_NOTDIR;
        s.found = 0;
    }
    report(&s, "stat", w->len, st);
    /* httpd knows the directory from the main request. */
    if (w->sub && s.found == S_IFREG) {
        if (links_at(&s, w->len) != CTL_LINKS_FOLLOW)
            look_at(&s, w->len);
        return end_of(&s, w->len);
    }
    return end_of(&s, descend(&s));
}
