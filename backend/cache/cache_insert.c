/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "cache/cache_entry.h"
#include "cache/dependency.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/server_clock.h"
#include "wire/walk_result.h"

static bool same_object(const struct fp_meta *a, const struct fp_meta *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->mode == b->mode && a->uid == b->uid && a->gid == b->gid;
}

static bool same_content(const struct fp_meta *a, const struct fp_meta *b)
{
    return a->size == b->size && fp_time_equal(&a->mtime, &b->mtime) && fp_time_equal(&a->ctime, &b->ctime);
}

/* The results of a walk, and the time it began. */
struct seen {
    uint64_t now_ms;
    struct fp_answer *answer;
    const struct fp_walk_meta *meta;
    const struct fp_step *last;
    bool opened; /* the last step is the whole path: it was opened, unless it cannot be */
};

/* How an entry, as it was before the walk, resembles the step of its path. */
struct likeness {
    bool same_thing;  /* as same_thing() */
    bool same_rights; /* the same thing, and no list or label of it may differ */
    bool unchanged;   /* and so are the contents of a thing that exists */
    bool same_inode;  /* of things that are no links */
    bool same_access; /* the access files in it */
    bool was_invalid; /* a change had been reported, or the entry is new */
    bool was_watched; /* its changes were reported */
};

/* Links followed to the step's end. */
static uint8_t links_of(const struct seen *seen, const struct fp_step *s)
{
    return seen->meta->result->step_watches[s - seen->answer->steps].links;
}

/* True if the entries below this one would be seen below the step as well: behind more links they
 * might be too many. */
static bool same_thing(const struct fp_entry *e, const struct fp_step *s, const struct seen *seen)
{
    if (e->status != s->status || e->target_status != s->target_status)
        return false;
    if (s->status != FP_OK)
        return true;
    if (!same_object(&e->self, &s->self) || e->links != links_of(seen, s))
        return false;
    if (!S_ISLNK(s->self.mode))
        return true;
    /* An inode number is used again soon, a change time is not. */
    return fp_time_equal(&e->self.ctime, &s->self.ctime)
           && (s->target_status != FP_OK || (e->target != NULL && same_object(e->target, &s->target)));
}

static bool set_target(struct fp_entry *e, const struct fp_step *s)
{
    if (s->status != FP_OK || !S_ISLNK(s->self.mode) || s->target_status != FP_OK) {
        free(e->target);
        e->target = NULL;
        return true;
    }
    if (e->target == NULL)
        e->target = fp_memory_take(sizeof(*e->target));
    if (e->target != NULL)
        *e->target = s->target;
    return e->target != NULL;
}

static bool set_access(struct fp_entry *e, const struct fp_step *s, const struct seen *seen)
{
    unsigned n = seen->answer->n_names;

    fp_entry_forget_access(e);
    if (n == 0 || !fp_step_is_dir(s))
        return true;
    e->access = fp_memory_take(n * sizeof(e->access[0]));
    if (e->access == NULL)
        return false;
    memcpy(e->access, s->access, n * sizeof(e->access[0]));
    e->n_access = n;
    return true;
}

/*
 * FUSE keeps a page that was read during a write to it, although the page is older than the file, until the
 * file is opened again. No time shows this. So a file that was opened so soon after a change is opened again
 * later.
 */
static bool was_written_lately(const struct fp_entry *e, const struct seen *seen)
{
    return !e->validity.traits.local && e->fd != -1 && !fp_entry_had_settled(e, &e->self, seen->now_ms);
}

static void take_descriptor(struct fp_cache *c, struct fp_entry *e, const struct seen *seen)
{
    struct fp_answer *a = seen->answer;
    const bool lent = a->content ? !seen->meta->result->settled : a->fd != -1 && fp_entry_is_lent(e);

    /* Clients that have the file then take its content, or the other way round. */
    if (a->content && !lent ? e->fd != -1 || e->opened == FP_OPENED_LENT : e->content_at != 0)
        fp_entry_end_leases(c, e);
    if (a->content && !lent)
        fp_entry_set_content(c, e, a->content_at);
    else
        fp_entry_set_fd(c, e, lent ? -1 : a->fd);
    if (lent)
        e->opened = FP_OPENED_LENT;
    else
        a->fd = -1;
    e->reopen = was_written_lately(e, seen);
}

/*
 * Sets the descriptor that the walk brought, or keeps the entry's if that is still good.
 * A directory's is good while it is the same directory, a file's while nothing
 * about the file has changed.  After a report (was_invalid) a link may lead another way to the directory,
 * and the file may have other bytes under the same times.  No walk begins at a directory that each request looks at,
 * and on 9p an open one would still have its former name at the server after a rename.
 */
static void set_descriptor(struct fp_cache *c, struct fp_entry *e, const struct fp_step *s,
                           const struct seen *seen, const struct likeness *is)
{
    const bool useless = fp_entry_is_dir(e) && e->ttl_ms == 0;

    if (s == seen->last && seen->opened && !seen->answer->unchanged && !useless)
        take_descriptor(c, e, seen);
    else if (fp_entry_is_dir(e) ? useless || !is->same_thing || (is->was_invalid && e->linked)
                                : !is->unchanged || is->was_invalid)
        fp_entry_drop_fd(c, e);
}

/* ---- is it watched? ---- */

static const char *name_of(const struct fp_entry *e, size_t *len_r)
{
    size_t above = e->parent == NULL ? 0 : e->parent->parent == NULL ? 1 : e->parent->len + 1u;

    *len_r = e->len - above;
    return e->path + above;
}

/* An object that may not be read cannot be watched anew, but the watch that it has goes on. Only on local file systems is
 * that sure to be the object's: elsewhere the kernel may have several inodes of one number, or a new one by now. */
static const struct fp_watch_key *new_key(const struct fp_entry *e, const struct fp_walk_result *t,
                                          size_t step, bool same_inode)
{
    if (t->step_watches[step].watch.len > 0)
        return &t->step_watches[step].watch;
    return same_inode && e->validity.traits.local ? fp_entry_own_key(e) : NULL;
}

static bool same_key(const struct fp_watch_key *a, const struct fp_watch_key *b)
{
    return b != NULL && a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* The watch reports changes, but not for this entry: too many others depend on it, or there is no
 * memory. */
static void no_answer_outlives_its_question(struct fp_entry *e)
{
    e->verdict = FP_EACH_REQUEST;
}

/* Has the entry depend on the names that the walk passed in this step. */
static void depend_on_traversed(struct fp_cache *c, struct fp_entry *e, size_t step,
                                const struct fp_walk_result *t)
{
    for (unsigned i = 0; i < t->n_traversed; i++) {
        const struct fp_traversed_name *v = &t->traversed[i];

        if (v->step == step
            && fp_dependencies_add(c->dependencies, &e->dependencies, e, &v->watch, t->names + v->at, v->len)
                   == NULL)
            no_answer_outlives_its_question(e);
    }
}

static void set_dependencies(struct fp_cache *c, struct fp_entry *e, size_t step, const struct seen *seen,
                             bool same_inode)
{
    struct fp_dependency *old = e->dependencies, *former = e->own;
    const struct fp_walk_result *t = seen->meta->result;
    const struct fp_watch_key *own = new_key(e, t, step, same_inode);
    const struct fp_watch_key *had = fp_entry_own_key(e);
    const bool same_watch = had != NULL && same_key(had, own);

    /* The entries below were seen while another watch was on it, which reported changes
     * that this one does not know. */
    if (had != NULL && !same_watch) {
        e->generation = ++c->last_generation;
        fp_entry_end_leases(c, e);
    }
    /* A watch may end while the walk that brings it is under way: the report of that came when nothing
     * depended on it.  The end of a watch that the entry had all the time would have been reported to it. */
    if (own != NULL && !same_watch && fp_dependencies_ended(c->dependencies, own, seen->now_ms)) {
        own = NULL;
        e->generation = 0;
        fp_entry_end_leases(c, e);
    }
    /* The old dependencies go after the new ones are there: an object of both stays watched.  An entry keeps
     * its place among the dependents of its own object, whoever else has links to that. */
    e->dependencies = e->own = NULL;
    if (same_watch) {
        e->own = former;
        fp_dependencies_move(&old, former, &e->dependencies);
    } else if (own != NULL) {
        e->own = fp_dependencies_add(c->dependencies, &e->dependencies, e, own, NULL, 0);
    }
    if (own != NULL && e->own == NULL)
        no_answer_outlives_its_question(e);
    depend_on_traversed(c, e, step, t);
    fp_dependencies_drop(c->dependencies, &old);
}

/* Takes the validity of the mount that the step leads to, or lies on, and the verdict on the step alone. */
static void set_validity(struct fp_cache *c, struct fp_entry *e, size_t step, const struct seen *seen)
{
    const struct fp_validity *above = e->parent != NULL ? &e->parent->validity : NULL;
    const struct fp_validity *own = &seen->meta->validity[step];
    /* Nothing is there: then the mount above counts.  The names seen on the way there may lie elsewhere. */
    const struct fp_validity now = own->mount == 0 && above != NULL ? *above : *own;

    /* A directory that is mounted over itself is the same one, but its descriptor leads beneath the mount. */
    if (now.mount != e->validity.mount && e->opened == FP_OPENED_DIR)
        fp_entry_drop_fd(c, e);
    e->validity = now;
    e->verdict = fp_verdict_both(now.traits.verdict, seen->meta->result->step_watches[step].verdict);
}

/* A directory's watch reports the names in it.  Only an object's own watch reports a change
 * of a mounted directory, of a link's target, or of what is written to a file. */
static bool needs_own(const struct fp_entry *e, unsigned n_names)
{
    const struct fp_meta *m = fp_entry_target(e);

    if (e->status != FP_OK || e->target_status != FP_OK)
        return false;
    if (e->parent == NULL || e->target != NULL || e->validity.mount != e->parent->validity.mount)
        return true;
    return S_ISDIR(m->mode) ? n_names > 0 : S_ISREG(m->mode);
}

/* True if the link of that step has a watch of its own, beside that of its target. */
static bool link_is_watched(const struct fp_entry *e, size_t step, const struct fp_walk_result *t)
{
    for (unsigned i = 0; i < t->n_traversed; i++) {
        const struct fp_traversed_name *v = &t->traversed[i];

        if (v->step == step && v->len == 0 && v->watch.ino == e->self.ino && v->watch.dev == e->self.dev)
            return true;
    }
    return false;
}

/* True if the entry's own watch may report names alone. */
static bool is_quiet(const struct fp_entry *e)
{
    return e->verdict == FP_REPORTED_NAMES || e->verdict == FP_EACH_REQUEST;
}

/*
 * A directory's watch may report names alone: anybody who owns something in it can bring that about.  Then only
 * its own watch reports the attributes of a directory, file or link in it, and none those of anything else.
 */
static bool attributes_are_reported(const struct fp_entry *e, size_t step, const struct fp_walk_result *t)
{
    const bool by_own = fp_entry_own_key(e) != NULL && !is_quiet(e);
    const bool by_parent = e->parent != NULL && !is_quiet(e->parent);

    if (e->status == FP_ABSENT)
        return true;
    if (e->status == FP_OK && S_ISLNK(e->self.mode))
        return (by_parent || link_is_watched(e, step, t)) && (by_own || e->target == NULL);
    return by_own || (by_parent && e->validity.mount == e->parent->validity.mount);
}

/* True if every change that could make the entry wrong is reported. */
static bool is_watched(const struct fp_entry *e, size_t step, const struct seen *seen)
{
    if (!fp_entry_is_watched(e))
        return false;
    if (e->parent != NULL
        && (!fp_verdict_is_reported(e->parent->validity.traits.verdict) || fp_entry_own_key(e->parent) == NULL))
        return false;
    return (fp_entry_own_key(e) != NULL || !needs_own(e, seen->answer->n_names))
           && attributes_are_reported(e, step, seen->meta->result);
}

static bool access_happened(const struct fp_cache *c, const struct fp_entry *e,
                            const struct fp_watch_key *own, uint64_t since_ms)
{
    for (unsigned i = 0; i < e->n_access; i++) {
        if (fp_dependencies_happened(c->dependencies, own, c->names->list[i].name, c->names->list[i].len,
                                     since_ms))
            return true;
    }
    return false;
}

/* True if a change was reported since the walk that saw the entry began.  An entry that is watched in
 * part has its reports too.  Lost events say nothing of it: it has its TTL. */
static bool has_changed(const struct fp_cache *c, const struct fp_entry *e, size_t step,
                        const struct seen *seen)
{
    const struct fp_walk_result *t = seen->meta->result;
    const struct fp_watch_key *above = fp_entry_own_key(e->parent), *own = fp_entry_own_key(e);
    size_t len;
    const char *name = name_of(e, &len);

    /* It was seen on a mount that is newer than the walk, or gone; or by a link, which may lead to any.
     * Watched objects have their own reports of an unmount. */
    if (e->validity.mounted_ms >= seen->now_ms
        || fp_dependencies_was_remounted(c->dependencies,
                                         e->linked || !fp_entry_is_watched(e) ? NULL : e->path, e->len,
                                         seen->now_ms))
        return true;
    if (!fp_entry_is_watched(e) && fp_dependencies_was_lost(c->dependencies, seen->now_ms))
        return false;
    /* The entry's name in the directory above, or the right to pass that directory. */
    if (above != NULL
        && (fp_dependencies_happened(c->dependencies, above, name, len, seen->now_ms)
            || fp_dependencies_happened(c->dependencies, above, "", 0, seen->now_ms)))
        return true;
    /* There a name is many names. */
    if (above != NULL && e->parent->validity.traits.folds
        && fp_dependencies_any_happened(c->dependencies, above, seen->now_ms))
        return true;
    if (own != NULL
        && (fp_dependencies_happened(c->dependencies, own, "", 0, seen->now_ms)
            || access_happened(c, e, own, seen->now_ms)))
        return true;
    if (own != NULL && e->n_access > 0 && e->validity.traits.folds
        && fp_dependencies_any_happened(c->dependencies, own, seen->now_ms))
        return true;
    for (unsigned i = 0; i < t->n_traversed; i++) {
        const struct fp_traversed_name *v = &t->traversed[i];

        if (v->step == step
            && (fp_dependencies_happened(c->dependencies, &v->watch, t->names + v->at, v->len, seen->now_ms)
                || fp_dependencies_happened(c->dependencies, &v->watch, "", 0, seen->now_ms)))
            return true;
    }
    return false;
}

/* The TTL of an entry whose changes nobody reports.  An absent
 * name is often one that another machine is about to make. */
static uint32_t unreported_ms(const struct fp_entry *e, const struct fp_validity *validity)
{
    const bool absent = e->status == FP_ABSENT || e->target_status == FP_ABSENT;

    return absent && validity->negative_ms != 0 && validity->negative_ms < validity->ttl_ms
               ? validity->negative_ms
               : validity->ttl_ms;
}

/* The verdict on the entry in its directory, which may have to report what its own watch does not. */
static enum fp_verdict judge(const struct fp_entry *e, size_t step, const struct seen *seen)
{
    const struct fp_entry *above = e->parent;

    if (is_watched(e, step, seen))
        return above != NULL ? fp_verdict_both(e->verdict, above->validity.traits.verdict) : e->verdict;
    return fp_verdict_both(fp_verdict_both(e->verdict, FP_TTL_UNREPORTED),
                           above != NULL ? above->verdict : FP_REPORTED);
}

static uint32_t ttl_ms(const struct fp_cache *c, const struct fp_entry *e)
{
    const struct fp_validity *above = e->parent != NULL ? &e->parent->validity : &e->validity;
    uint32_t ms = unreported_ms(e, &e->validity);

    if ((!fp_entry_is_watched(e) || above->traits.verdict != FP_REPORTED) && unreported_ms(e, above) < ms)
        ms = unreported_ms(e, above);
    return fp_verdict_ms(e->verdict, c->watched_ttl_ms, ms);
}

/* True if something may have happened in the directory since it was seen, or nobody will report what does. */
static bool has_changed_inside(const struct fp_cache *c, const struct fp_entry *e, const struct seen *seen)
{
    const struct fp_watch_key *own = fp_entry_own_key(e);

    if (!fp_entry_is_dir(e) || !fp_entry_is_watched(e))
        return false;
    return own != NULL ? fp_dependencies_any_happened(c->dependencies, own, seen->now_ms)
                       : e->verdict >= FP_REPORTED_NOISE;
}

static void set_expiry(struct fp_cache *c, struct fp_entry *e, size_t step, const struct seen *seen,
                       const struct likeness *is)
{
    e->verdict = judge(e, step, seen);
    /* Clients hold answers that say so (fp_answer.watched). */
    if (is->was_watched && !fp_entry_is_watched(e))
        fp_entry_end_leases(c, e);
    e->ttl_ms = ttl_ms(c, e);
    if (has_changed(c, e, step, seen)) {
        fp_entry_invalidate(c, e);
        return;
    }
    fp_entry_validate(c, e);
    e->inside_changed = has_changed_inside(c, e, seen);
}

/* ---- inserting ---- */

static bool same_access(const struct fp_entry *e, const struct fp_step *s, const struct seen *seen)
{
    unsigned n = fp_step_is_dir(s) ? seen->answer->n_names : 0;

    if (e->n_access != n)
        return false;
    for (unsigned i = 0; i < n; i++) {
        if (!fp_access_equal(&e->access[i], &s->access[i]))
            return false;
    }
    return true;
}

/*
 * True if an access list or a label of the directory may have changed.  Its change time shows that, but
 * also that names in it came and went.  Where all events are reported, these have done the rest already.
 */
static bool rights_may_differ(const struct fp_entry *e, const struct fp_step *s)
{
    const struct fp_meta *before = fp_entry_target(e), *now = fp_step_target(s);

    if (!fp_entry_is_dir(e) || now == NULL || fp_time_equal(&before->ctime, &now->ctime))
        return false;
    return fp_time_equal(&before->mtime, &now->mtime) || fp_entry_own_key(e) == NULL || is_quiet(e)
           || e->validity.traits.verdict != FP_REPORTED;
}

/* True if the step depends on names elsewhere: it is a link, or an access file is one. */
static bool has_traversed(const struct seen *seen, size_t step)
{
    const struct fp_walk_result *t = seen->meta->result;

    for (unsigned i = 0; i < t->n_traversed; i++) {
        if (t->traversed[i].step == step && t->traversed[i].len > 0)
            return true;
    }
    return false;
}

static struct likeness compare(const struct fp_entry *e, const struct fp_step *s, const struct seen *seen)
{
    const bool known = e->generation != 0, both_there = s->status == FP_OK && e->status == FP_OK;
    struct likeness is = { .was_invalid = e->expires_ms == 0, .same_access = same_access(e, s, seen) };

    is.same_thing = known && same_thing(e, s, seen);
    is.same_rights = is.same_thing && !rights_may_differ(e, s);
    is.unchanged = is.same_rights && s->status == FP_OK && same_content(&e->self, &s->self)
                   && (e->target == NULL || same_content(e->target, &s->target));
    is.same_inode = known && both_there && e->self.dev == s->self.dev && e->self.ino == s->self.ino
                    && !S_ISLNK(s->self.mode);
    is.was_watched = fp_entry_is_watched(e);
    return is;
}

/* Ends the leases of answers that say something else than the step. */
static void end_leases(struct fp_cache *c, struct fp_entry *e, const struct fp_step *s,
                       const struct likeness *is)
{
    if (is->unchanged && is->same_access)
        return;
    /* Leases through a directory go on while only its own times change. */
    if (is->same_rights && is->same_access && (fp_entry_is_dir(e) || s->status != FP_OK))
        fp_entry_end_leases_at(c, e);
    else
        fp_entry_end_leases(c, e);
}

/* Brings an entry up to date with the walk's results. */
static void update(struct fp_cache *c, struct fp_entry *e, const struct fp_step *s, const struct seen *seen)
{
    const struct likeness is = compare(e, s, seen);
    const size_t step = (size_t)(s - seen->answer->steps), before = fp_entry_bytes(e);
    const struct fp_meta *m = fp_step_target(s);

    c->counts.differing +=
        e->generation != 0 && !is.was_invalid && !(fp_entry_is_file(e) ? is.unchanged : is.same_thing);
    end_leases(c, e, s, &is);
    fp_entry_count_place(c, e, -1);
    e->seen_ms = seen->now_ms;
    if (m != NULL)
        fp_server_clock_note(m->dev, &m->ctime);
    if (!is.same_rights)
        e->generation = ++c->last_generation;
    if (!is.unchanged)
        e->wanted_ms = 0;
    if (!set_target(e, s) || !set_access(e, s, seen))
        e->generation = 0;
    if (e->parent != NULL)
        e->parent_generation = e->parent->generation;
    e->status = s->status;
    e->target_status = s->target_status;
    e->self = s->self;
    e->links = links_of(seen, s);
    e->linked = (s->status == FP_OK && S_ISLNK(s->self.mode)) || (e->parent != NULL && e->parent->linked)
                || has_traversed(seen, step);
    set_validity(c, e, step, seen);
    set_dependencies(c, e, step, seen, is.same_inode);
    set_expiry(c, e, step, seen, &is);
    set_descriptor(c, e, s, seen, &is);
    fp_entry_set_kind(c, e, fp_entry_kind(e));
    fp_entry_count_place(c, e, 1);
    c->bytes += fp_entry_bytes(e) - before;
}

static struct fp_entry *insert_step(struct fp_cache *c, const char *path, struct fp_entry *parent,
                                    const struct fp_step *s, const struct seen *seen)
{
    struct fp_entry *e = fp_entry_find(c, path, s->end);

    if (e == NULL)
        e = fp_entry_create(c, path, s->end, parent);
    if (e == NULL)
        return NULL;
    if (fp_entry_is_purged(c, e))
        fp_entry_revive(c, e);
    /* Walks overlap: the results of an earlier walk do not replace those of a later one.
     * Below the same directory they are still good. */
    if (e->seen_ms > seen->now_ms)
        return e->generation != 0 && same_thing(e, s, seen) ? e : NULL;
    update(c, e, s, seen);
    return e;
}

/* True if the steps may become entries below e, where the walk began: it is what it was then.  A walk that
 * began before a name was appended did not look for that. */
static bool may_insert(const struct fp_cache *c, size_t len, const struct fp_cache_base *base,
                       const struct fp_entry *e, const struct fp_answer *a)
{
    if (a->status != FP_OK || a->n_names != c->names->n || a->n_steps == 0
        || a->steps[a->n_steps - 1].end > len || fp_answer_is_failure(a))
        return false;
    return base == NULL || (e != NULL && e->generation == base->generation && !fp_entry_is_purged(c, e));
}

void fp_cache_insert(struct fp_cache *c, const char *path, size_t len,
                     const struct fp_cache_base *base, uint64_t now_ms, const struct fp_walk_meta *meta,
                     struct fp_answer *a)
{
    /* The entry to begin below; NULL for "/". */
    struct fp_entry *e = base != NULL ? fp_entry_find(c, path, base->len) : NULL;
    const struct seen seen = { now_ms,
                               a,
                               meta,
                               a->n_steps > 0 ? &a->steps[a->n_steps - 1] : NULL,
                               a->n_steps > 0 && a->steps[a->n_steps - 1].end == len };

    if (may_insert(c, len, base, e, a)) {
        for (unsigned i = 0; i < a->n_steps; i++) {
            e = insert_step(c, path, e, &a->steps[i], &seen);
            if (e == NULL)
                break;
        }
    }
    if (e == NULL || e->opened != FP_OPENED_LENT)
        fp_close_file(&a->fd, a->n_steps > 0 ? meta->validity[a->n_steps - 1].mount : 0);
    c->newest = e;
    fp_entry_trim(c);
    c->newest = NULL;
    fp_cache_verify(c);
}

void fp_cache_release_watches(struct fp_cache *c, const struct fp_walk_result *result)
{
    for (unsigned i = 0; i < result->n_steps; i++)
        fp_dependencies_release(c->dependencies, &result->step_watches[i].watch);
    for (unsigned i = 0; i < result->n_traversed; i++)
        fp_dependencies_release(c->dependencies, &result->traversed[i].watch);
}
