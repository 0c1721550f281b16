/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/cache.h"

#include <string.h>

#include "cache/cache_entry.h"
#include "cache/dependency.h"

/* ---- changes ---- */

/* A change, while the entries that depend on it are looked at. */
struct event {
    struct fp_cache *c;
    const char *name;
    size_t len;
    bool replaced;
    bool of_any_name; /* it may be of other names: they differ in case, or this one is a removed file's */
    size_t visited;   /* entries */
};

static void report(const struct fp_cache *c, const char *path, size_t len, bool tree)
{
    if (c->report_changed != NULL)
        c->report_changed(c->report_ctx, path, len, tree);
}

/* Writes the path of that name in the directory, at most FP_MAX_PATH bytes; 0: it is too
 * long. */
static size_t make_path(char *buf, const struct fp_entry *e, const char *name, size_t len)
{
    size_t at = e->parent == NULL ? 1 : e->len + 1u;

    if (at + len > FP_MAX_PATH)
        return 0;
    memcpy(buf, e->path, e->len);
    buf[at - 1] = '/';
    memcpy(buf + at, name, len);
    return at + len;
}

static void close_entry(struct fp_cache *c, struct fp_entry *e)
{
    fp_entry_drop_fd(c, e);
    fp_entry_set_kind(c, e, fp_entry_kind(e));
}

/* A file that has gone must not be kept open: its space would stay in use. After any change, nobody uses the
 * descriptor of an invalid entry. */
static void close_file(struct fp_cache *c, struct fp_entry *e)
{
    if (fp_entry_is_file(e))
        close_entry(c, e);
}

/* Rights may be gone without a trace in the directory's mode and owner: by an access list, a label.  So the
 * next lookups walk to the entries below again, even if the directory then looks as it did. */
static void renew_directory(struct fp_cache *c, struct fp_entry *e)
{
    if (fp_entry_is_dir(e))
        e->generation = ++c->last_generation;
}

/* A link may lead another way to the same directory, and from there ".." leads elsewhere. */
static void on_name(void *ctx, void *owner)
{
    struct event *ev = ctx;
    struct fp_entry *e = owner;

    ev->visited++;
    report(ev->c, e->path, e->len, false);
    renew_directory(ev->c, e);
    fp_entry_invalidate(ev->c, e);
    close_file(ev->c, e);
}

static void on_object(void *ctx, void *owner)
{
    struct event *ev = ctx;
    struct fp_entry *e = owner, *child;
    char path[FP_MAX_PATH];
    size_t len;

    if (ev->len == 0 || !fp_entry_is_dir(e)) {
        on_name(ctx, owner);
        return;
    }
    ev->visited++;
    ev->of_any_name = ev->of_any_name || e->validity.traits.folds;
    e->inside_changed = true;
    fp_entry_end_leases_at(ev->c, e);
    if (fp_names_find(ev->c->names, ev->name, ev->len) != -1)
        fp_entry_invalidate(ev->c, e);
    len = make_path(path, e, ev->name, ev->len);
    if (len == 0)
        return;
    report(ev->c, path, len, false);
    child = fp_entry_find(ev->c, path, len);
    if (child == NULL)
        return;
    fp_entry_invalidate(ev->c, child);
    if (ev->replaced)
        close_file(ev->c, child);
    else
        renew_directory(ev->c, child);
}

/* NFS renames a removed file that somebody has open, and reports its removal under the new name alone. */
static bool stands_for_another(const char *name, size_t len)
{
    static const char prefix[] = ".nfs";

    return len >= sizeof(prefix) && memcmp(name, prefix, sizeof(prefix) - 1) == 0;
}

static size_t on_changed(void *ctx, const struct fp_watch_key *key, const char *name, size_t len,
                         bool replaced)
{
    struct fp_cache *c = ctx;
    struct event ev = { .c = c, .name = name, .len = len, .replaced = replaced,
                        .of_any_name = replaced && stands_for_another(name, len) };
    struct event of_all = { .c = c, .name = "" };

    fp_dependencies_changed(c->dependencies, key, name, len, on_object, on_name, &ev);
    if (ev.of_any_name)
        fp_dependencies_all_changed(c->dependencies, key, on_object, on_name, &of_all);
    fp_cache_verify(c);
    return ev.visited + of_all.visited;
}

/* No report of a change reaches the entry any more, nor those below it. */
static void lose_reports(struct fp_cache *c, struct fp_entry *e)
{
    e->generation = ++c->last_generation;
    fp_entry_invalidate(c, e);
    close_file(c, e);
}

static void on_object_gone(void *ctx, void *owner)
{
    const struct event *ev = ctx;
    struct fp_entry *e = owner;

    report(ev->c, e->path, e->len, true);
    lose_reports(ev->c, e);
}

void fp_entry_lose(void *ctx, void *owner, struct fp_dependency *s)
{
    struct fp_cache *c = ctx;
    struct fp_entry *e = owner;
    const size_t before = fp_entry_bytes(e);

    if (e->own == s)
        e->own = NULL;
    fp_dependencies_drop_one(c->dependencies, &e->dependencies, s);
    c->bytes += fp_entry_bytes(e) - before;
    lose_reports(c, e);
}

/* A tenant can lead as many paths as he likes to an object: by links, or to his own by many names for a file. All other
 * paths to it are mounts of root's. */
static bool is_one_of_many(const void *owner, const struct fp_dependency *s)
{
    const struct fp_entry *e = owner;

    return s != e->own || e->linked || (!fp_entry_is_dir(e) && e->self.nlink > 1);
}

static void on_crowded(void *ctx, const struct fp_watch_key *key)
{
    struct fp_cache *c = ctx;

    fp_dependencies_lose(c->dependencies, key, is_one_of_many);
    fp_cache_verify(c);
}

static void on_unwatched(void *ctx, const struct fp_watch_key *key)
{
    struct fp_cache *c = ctx;
    struct event ev = { .c = c };

    fp_dependencies_gone(c->dependencies, key, on_object_gone, on_name, &ev);
    fp_cache_verify(c);
}

/* True if the place is an access file of the directory, which has it in its entry. */
static bool is_access_of(const struct fp_cache *c, const struct fp_entry *e, const char *at, size_t len)
{
    const size_t parent_len = len > 1 ? fp_path_parent_len(at, len) : 0;
    const size_t begin = parent_len > 1 ? parent_len + 1 : 1;

    return e->len == parent_len && memcmp(e->path, at, parent_len) == 0
           && fp_names_find(c->names, at + begin, len - begin) != -1;
}

/* Links lead anywhere. */
static bool is_concerned(const struct fp_cache *c, const struct fp_entry *e, const char *at)
{
    const size_t len = strlen(at);

    return e->linked || fp_path_is_below(e->path, e->len, at) || is_access_of(c, e, at, len);
}

void fp_cache_invalidate(struct fp_cache *c, const char *at)
{
    struct fp_entry *e;

    fp_dependencies_lost(c->dependencies);
    FP_ENTRIES_FOREACH(e, c)
    {
        if (at != NULL ? is_concerned(c, e, at) : fp_entry_is_watched(e))
            fp_entry_invalidate(c, e);
    }
    fp_cache_verify(c);
}

static void on_lost(void *ctx)
{
    report(ctx, "/", 1, true);
    fp_cache_invalidate(ctx, NULL);
}

/* ---- mounts ---- */

/* A walk under way looked below that point.  An access file that is mounted concerns its directory.  Returns
 * false if no entry is concerned, as with most of what strangers mount. */
static bool note_remounted(struct fp_cache *c, const struct fp_remount *m)
{
    const size_t len = strlen(m->point), parent_len = len > 1 ? fp_path_parent_len(m->point, len) : 0;
    const struct fp_entry *above = parent_len > 0 ? fp_entry_find(c, m->point, parent_len) : NULL;
    char dir[FP_MAX_PATH + 1];

    fp_dependencies_remounted(c->dependencies, m->point);
    if (above != NULL && is_access_of(c, above, m->point, len)) {
        memcpy(dir, m->point, parent_len);
        dir[parent_len] = '\0';
        fp_dependencies_remounted(c->dependencies, dir);
        return true;
    }
    return c->n_linked > 0 || (m->mount != 0 && c->n_on_mount[m->mount % FP_MOUNT_BUCKETS] > 0)
           || fp_entry_find(c, m->point, len) != NULL;
}

/* Below a directory that was renamed meanwhile the mount lies elsewhere: its entries name it. A file system that
 * was unmounted by umount -l goes once nothing of it is open, and nobody may ask for these entries again. */
static bool is_remounted(struct fp_cache *c, struct fp_entry *e, const struct fp_remount *list, size_t n)
{
    bool concerned = false;

    for (size_t i = 0; i < n; i++) {
        const bool on_mount = list[i].mount != 0 && e->validity.mount == list[i].mount;

        if (on_mount && e->fd != -1)
            close_entry(c, e);
        concerned = concerned || on_mount || is_concerned(c, e, list[i].point);
    }
    return concerned && e->expires_ms != 0;
}

static size_t on_remounted(void *ctx, const struct fp_remount *list, size_t n)
{
    struct fp_cache *c = ctx;
    struct fp_entry *e;
    size_t invalid = 0;
    bool any = n == 0;

    if (n == 0)
        fp_dependencies_remounted(c->dependencies, NULL);
    for (size_t i = 0; i < n; i++)
        any = note_remounted(c, &list[i]) || any;
    if (!any)
        return 0;
    FP_ENTRIES_FOREACH(e, c)
    {
        /* A mount like the one before may have taken its place. Watched entries have heard of that. */
        if (n > 0 ? !is_remounted(c, e, list, n) : fp_entry_is_watched(e) || e->expires_ms == 0)
            continue;
        fp_entry_invalidate(c, e);
        invalid++;
    }
    fp_cache_verify(c);
    return invalid;
}

static bool is_needed(void *ctx, const struct fp_watch_key *key)
{
    const struct fp_cache *c = ctx;

    return fp_dependencies_has(c->dependencies, key);
}

static bool find(void *ctx, const struct fp_watch_key *key, struct fp_watched *watched_r)
{
    const struct fp_cache *c = ctx;
    const struct fp_watch_key *known;
    const struct fp_entry *e;
    void *owner;

    known = fp_dependencies_find(c->dependencies, key, &owner, &watched_r->itself);
    if (known == NULL)
        return false;
    e = owner;
    watched_r->dev = known->dev;
    watched_r->ino = known->ino;
    watched_r->uid = known->uid;
    watched_r->path = e->path;
    watched_r->len = e->len;
    return true;
}

const struct fp_change_ops fp_cache_change_ops = { on_changed,   on_crowded, on_unwatched, on_lost,
                                                   on_remounted, is_needed,  find };

void fp_cache_set_report_changed(struct fp_cache *c, fp_cache_report_changed *report_changed, void *ctx)
{
    c->report_changed = report_changed;
    c->report_ctx = ctx;
}

/* ---- forgetting ---- */

/* An entry with children stays, with nothing known of it.  The children are detached until it is known
 * again. */
static size_t forget_entry(struct fp_cache *c, struct fp_entry *e)
{
    size_t known = e->generation != 0 && !fp_entry_is_purged(c, e);

    if (LIST_EMPTY(&e->children))
        fp_entry_evict(c, e);
    else
        fp_entry_wipe(c, e);
    return known;
}

/* Entries above the path answer questions about it where walks end there.  The directory's entry has its
 * access files. */
static void forget_above(struct fp_cache *c, const char *path, size_t len)
{
    const size_t parent_len = len > 1 ? fp_path_parent_len(path, len) : 0;
    struct fp_entry *e = parent_len > 0 ? fp_entry_find_nearest(c, path, parent_len) : NULL, *above;

    for (; e != NULL; e = above) {
        above = e->parent;
        if (!fp_entry_is_dir(e))
            forget_entry(c, e);
        else if (e->len == parent_len && (e->validity.traits.folds || is_access_of(c, e, path, len)))
            fp_entry_invalidate(c, e);
    }
}

size_t fp_cache_forget(struct fp_cache *c, const char *path, size_t len, bool tree)
{
    struct fp_entry *e = fp_entry_find(c, path, len);
    size_t n = 0;

    if (tree && e != NULL)
        n = fp_entry_purge_below(c, e);
    if (e != NULL)
        n += forget_entry(c, e);
    forget_above(c, path, len);
    fp_cache_verify(c);
    return n;
}

bool fp_cache_evict_purged(struct fp_cache *c, size_t visits)
{
    size_t evicted;
    const bool more = fp_entry_evict_purged(c, visits, &evicted);

    fp_cache_verify(c);
    return more;
}
