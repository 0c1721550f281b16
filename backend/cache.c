/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "keyed_hash.h"
#include "proto/answer.h"
#include "proto/fdio.h"
#include "proto/wire.h"

enum kind { KIND_FILE, KIND_DIRECTORY, KIND_ABSENT, KINDS };

struct entry {
    UT_hash_handle hh;
    TAILQ_ENTRY(entry) link;      /* in its kind's queue while it has no children */
    TAILQ_ENTRY(entry) place;     /* while it is a directory with a descriptor */
    struct entry *parent;         /* NULL for "/" */
    size_t children;              /* entries whose parent this is, dead ones too */
    uint64_t generation;          /* changes when this becomes another thing;
                                     0: nothing is known */
    uint64_t parent_generation;   /* the parent's, when this was seen */
    uint64_t seen_ms;             /* when the walk that saw it began */
    enum kind kind;
    bool visited;
    bool is_place;                /* fd is a directory's */
    bool local;                   /* of the file that fd is */
    bool tried;                   /* a file without fd is one that cannot be read */
    int fd;
    fp_status status, target_status;
    struct fp_meta self;
    struct fp_meta *target;       /* only a link has one */
    struct fp_access *access;     /* n_access of them, of list number names */
    unsigned names, n_access;
    uint16_t len;
    char path[];
};

TAILQ_HEAD(queue, entry);

/*
 * One SIEVE for each kind (Zhang et al., "SIEVE is Simpler than LRU", NSDI
 * 2024): new entries at the head, a hand that moves from tail to head, clears
 * the visited mark where it finds one and evicts where it finds none.  The
 * kinds do not compete, so a scan of absent names evicts no file.  An entry
 * with children is in no queue: it cannot go before them.
 */
struct sieve {
    struct queue queue;
    struct entry *hand;
    size_t count;        /* entries of this kind, queued or not */
    size_t limit;
};

struct fp_cache {
    struct entry *table;
    struct sieve sieves[KINDS];
    struct queue places;          /* the one used last is the first */
    size_t n_places, max_places;
    uint32_t ttl_ms;
    uint64_t last_generation;
    struct fp_cache_counts counts;
};

FP_HASH_DIAGNOSTICS_OFF
static struct entry *find(const struct fp_cache *c, const char *path, size_t len)
{
    struct entry *e;

    HASH_FIND(hh, c->table, path, len, e);
    return e;
}

static bool table_add(struct fp_cache *c, struct entry *e)
{
    HASH_ADD_KEYPTR(hh, c->table, e->path, e->len, e);
    return e->hh.tbl != NULL;
}

static void table_remove(struct fp_cache *c, struct entry *e)
{
    HASH_DEL(c->table, e);
}
FP_HASH_DIAGNOSTICS_ON

static void enqueue(struct fp_cache *c, struct entry *e)
{
    TAILQ_INSERT_HEAD(&c->sieves[e->kind].queue, e, link);
}

static void dequeue(struct fp_cache *c, struct entry *e)
{
    struct sieve *s = &c->sieves[e->kind];

    if (s->hand == e)
        s->hand = TAILQ_PREV(e, queue, link);
    TAILQ_REMOVE(&s->queue, e, link);
}

static void set_kind(struct fp_cache *c, struct entry *e, enum kind kind)
{
    if (e->kind == kind)
        return;
    if (e->children == 0)
        dequeue(c, e);
    c->sieves[e->kind].count--;
    e->kind = kind;
    c->sieves[kind].count++;
    if (e->children == 0)
        enqueue(c, e);
}

static void adopt(struct fp_cache *c, struct entry *parent)
{
    if (parent != NULL && parent->children++ == 0)
        dequeue(c, parent);
}

static void abandon(struct fp_cache *c, struct entry *parent)
{
    if (parent != NULL && --parent->children == 0)
        enqueue(c, parent);
}

static const struct fp_meta *target_of(const struct entry *e)
{
    return e->target != NULL ? e->target : &e->self;
}

/* A directory leads further down; at anything else every walk ends. */
static bool leads_on(const struct entry *e)
{
    return e->status == FP_OK && e->target_status == FP_OK && S_ISDIR(target_of(e)->mode);
}

static bool is_file(const struct entry *e)
{
    return e->status == FP_OK && e->target_status == FP_OK && S_ISREG(target_of(e)->mode);
}

/* ---- descriptors ---- */

static void drop_fd(struct fp_cache *c, struct entry *e)
{
    if (e->is_place) {
        TAILQ_REMOVE(&c->places, e, place);
        c->n_places--;
        e->is_place = false;
    }
    fp_close(&e->fd);
}

static void use_place(struct fp_cache *c, struct entry *e)
{
    TAILQ_REMOVE(&c->places, e, place);
    TAILQ_INSERT_HEAD(&c->places, e, place);
}

static void trim_places(struct fp_cache *c)
{
    while (c->n_places > c->max_places)
        drop_fd(c, TAILQ_LAST(&c->places, queue));
}

static void set_fd(struct fp_cache *c, struct entry *e, int fd)
{
    drop_fd(c, e);
    e->fd = fd;
    if (fd == -1 || !leads_on(e))
        return;
    e->is_place = true;
    TAILQ_INSERT_HEAD(&c->places, e, place);
    c->n_places++;
    trim_places(c);
}

/* ---- entries ---- */

static void entry_free(struct entry *e)
{
    free(e->target);
    free(e->access);
    free(e);
}

/* Only for an entry without children. */
static void evict(struct fp_cache *c, struct entry *e)
{
    dequeue(c, e);
    c->sieves[e->kind].count--;
    table_remove(c, e);
    abandon(c, e->parent);
    drop_fd(c, e);
    entry_free(e);
}

static bool evict_from(struct fp_cache *c, enum kind kind)
{
    struct sieve *s = &c->sieves[kind];
    struct entry *e = s->hand;

    for (;;) {
        if (e == NULL)
            e = TAILQ_LAST(&s->queue, queue);
        if (e == NULL)
            return false;
        if (!e->visited)
            break;
        e->visited = false;
        e = TAILQ_PREV(e, queue, link);
    }
    s->hand = e;
    evict(c, e);
    c->counts.evictions++;
    return true;
}

/* Directories above a file cannot go before it: then files have to. */
static bool evict_for(struct fp_cache *c, enum kind kind)
{
    return evict_from(c, kind) || evict_from(c, KIND_ABSENT)
        || evict_from(c, KIND_FILE) || evict_from(c, KIND_DIRECTORY);
}

static void trim(struct fp_cache *c)
{
    for (int k = 0; k < KINDS; k++) {
        while (c->sieves[k].count > c->sieves[k].limit
               && evict_for(c, (enum kind)k))
            ;
    }
}

void fp_cache_set_limits(struct fp_cache *c, const struct fp_cache_limits *limits)
{
    c->sieves[KIND_FILE].limit = limits->files;
    c->sieves[KIND_DIRECTORY].limit = limits->directories;
    c->sieves[KIND_ABSENT].limit = limits->absent;
    c->max_places = limits->places;
    c->ttl_ms = limits->ttl_ms;
    trim(c);
    trim_places(c);
}

struct fp_cache *fp_cache_create(const struct fp_cache_limits *limits)
{
    struct fp_cache *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return NULL;
    for (int k = 0; k < KINDS; k++)
        TAILQ_INIT(&c->sieves[k].queue);
    TAILQ_INIT(&c->places);
    fp_cache_set_limits(c, limits);
    return c;
}

void fp_cache_clear(struct fp_cache *c)
{
    while (evict_for(c, KIND_FILE))
        ;
}

void fp_cache_destroy(struct fp_cache **c)
{
    if (*c == NULL)
        return;
    fp_cache_clear(*c);
    free(*c);
    *c = NULL;
}

static void tell(const struct entry *e, struct fp_step *s)
{
    s->end = e->len;
    s->status = e->status;
    s->self = e->self;
    s->target_status = e->target_status;
    if (e->target != NULL)
        s->target = *e->target;
    for (unsigned i = 0; i < e->n_access; i++)
        s->access[i] = e->access[i];
}

/* How many steps from "/" to here; 0 unless every one is still believed and
 * every directory among them knows the access files in question. */
static unsigned count_steps(const struct fp_cache *c, const struct entry *e,
                            unsigned names, uint64_t now_ms)
{
    unsigned n = 0;

    for (; e != NULL; e = e->parent) {
        if (e->generation == 0 || now_ms >= e->seen_ms + c->ttl_ms
            || ++n > FP_MAX_STEPS)
            return 0;
        if (names != 0 && e->names != names && leads_on(e))
            return 0;
        if (e->parent != NULL && e->parent_generation != e->parent->generation)
            return 0;
    }
    return n;
}

/*
 * The believed entry at which a walk of path ends, its own or one above that
 * leads no further, and in *n_r the steps to it; NULL if there is none.
 */
static struct entry *find_end(const struct fp_cache *c, const char *path,
                              size_t len, unsigned names, uint64_t now_ms,
                              unsigned *n_r)
{
    for (size_t n = len;; n = fp_path_parent_len(path, n)) {
        struct entry *e = find(c, path, n);

        *n_r = count_steps(c, e, names, now_ms);
        if (*n_r > 0)
            return n == len || !leads_on(e) ? e : NULL;
        if (n == 1)
            return NULL;
    }
}

/* A file that was only seen, on a walk to something behind it. */
static bool wants_open(const struct entry *e)
{
    return is_file(e) && !e->tried;
}

static const struct entry *root_of(const struct entry *e)
{
    while (e->parent != NULL)
        e = e->parent;
    return e;
}

uint32_t fp_cache_good_for(const struct fp_cache *c, uint64_t began_ms, uint64_t now_ms)
{
    uint64_t until = began_ms + c->ttl_ms / 2;

    return until > now_ms ? (uint32_t)(until - now_ms) : 0;
}

bool fp_cache_lookup(struct fp_cache *c, const char *path, size_t len,
                     unsigned names, uint64_t now_ms, struct fp_answer *a,
                     struct fp_cache_age *age)
{
    uint32_t good_for;
    unsigned n;
    struct entry *end = find_end(c, path, len, names, now_ms, &n);

    fp_answer_init(a, FP_OK);
    if (end == NULL || (end->len == len && wants_open(end))) {
        c->counts.misses++;
        return false;
    }
    c->counts.hits++;
    end->visited = true;
    age->itself = fp_cache_good_for(c, end->seen_ms, now_ms) == 0;
    age->above = false;
    a->good_for_ms = UINT32_MAX;
    a->source = FP_SOURCE_CACHE;
    a->n_steps = n;
    /* "/" is a directory and knows all the names, or we were not here. */
    a->n_names = names != 0 ? root_of(end)->n_access : 0;
    if (end->len == len && end->kind == KIND_FILE) {
        a->fd = end->fd;
        a->local = end->local;
    }
    for (const struct entry *e = end; e != NULL; e = e->parent) {
        tell(e, &a->steps[--n]);
        good_for = fp_cache_good_for(c, e->seen_ms, now_ms);
        if (e != end && good_for == 0)
            age->above = true;
        if (good_for < a->good_for_ms)
            a->good_for_ms = good_for;
    }
    return true;
}

bool fp_cache_find_base(struct fp_cache *c, const char *path, size_t len, unsigned names,
                        uint64_t now_ms, struct fp_cache_base *base)
{
    struct entry *e = len > 1 ? find(c, path, fp_path_parent_len(path, len)) : NULL;

    if (count_steps(c, e, names, now_ms) == 0 || !e->is_place)
        return false;
    use_place(c, e);
    base->fd = e->fd;
    base->len = e->len;
    base->generation = e->generation;
    return true;
}

bool fp_cache_find_known(const struct fp_cache *c, const char *path, size_t len,
                         struct fp_meta *m)
{
    const struct entry *e = find(c, path, len);

    if (e == NULL || e->kind != KIND_FILE || e->target != NULL)
        return false;
    *m = e->self;
    return true;
}

static bool same_object(const struct fp_meta *a, const struct fp_meta *b)
{
    return a->dev == b->dev && a->ino == b->ino && a->mode == b->mode
        && a->uid == b->uid && a->gid == b->gid;
}

static bool same_content(const struct fp_meta *a, const struct fp_meta *b)
{
    return a->size == b->size && fp_time_equal(&a->mtime, &b->mtime)
        && fp_time_equal(&a->ctime, &b->ctime);
}

/* Would what was seen below this entry be seen below the step as well? */
static bool same_thing(const struct entry *e, const struct fp_step *s)
{
    if (e->status != s->status || e->target_status != s->target_status)
        return false;
    if (s->status != FP_OK)
        return true;
    if (!same_object(&e->self, &s->self))
        return false;
    if (!S_ISLNK(s->self.mode))
        return true;
    /* An inode number is used again soon, a change time is not. */
    return fp_time_equal(&e->self.ctime, &s->self.ctime)
        && (s->target_status != FP_OK
            || (e->target != NULL && same_object(e->target, &s->target)));
}

static struct entry *entry_create(struct fp_cache *c, const char *path, size_t len,
                                  struct entry *parent)
{
    struct entry *e = calloc(1, sizeof(*e) + len + 1);

    if (e == NULL)
        return NULL;
    memcpy(e->path, path, len);
    e->len = (uint16_t)len;
    e->fd = -1;
    e->kind = KIND_ABSENT;
    e->status = FP_ABSENT;
    e->parent = parent;
    if (!table_add(c, e)) {
        free(e);
        return NULL;
    }
    c->sieves[e->kind].count++;
    enqueue(c, e);
    adopt(c, parent);
    return e;
}

static bool set_target(struct entry *e, const struct fp_step *s)
{
    bool wanted = s->status == FP_OK && S_ISLNK(s->self.mode)
        && s->target_status == FP_OK;

    if (!wanted) {
        free(e->target);
        e->target = NULL;
        return true;
    }
    if (e->target == NULL)
        e->target = malloc(sizeof(*e->target));
    if (e->target != NULL)
        *e->target = s->target;
    return e->target != NULL;
}

/* What a walk saw, and when it began. */
struct seen {
    unsigned names;
    uint64_t now_ms;
    struct fp_answer *answer;
    const struct fp_step *last;
    bool opened;               /* the last step is the whole path: it was
                                  opened, unless it cannot be */
};

static void forget_access(struct entry *e)
{
    free(e->access);
    e->access = NULL;
    e->names = e->n_access = 0;
}

static void set_access(struct entry *e, const struct fp_step *s,
                       const struct seen *seen)
{
    unsigned n = seen->answer->n_names;

    forget_access(e);
    if (n == 0 || !fp_step_leads_on(s))
        return;
    e->access = malloc(n * sizeof(e->access[0]));
    if (e->access == NULL)
        return;
    memcpy(e->access, s->access, n * sizeof(e->access[0]));
    e->names = seen->names;
    e->n_access = n;
}

/*
 * The descriptor that the walk brought, or the one that is there if it is still
 * good: a directory's while it is the same directory, a file's while nothing
 * about the file has changed.
 */
static void set_descriptor(struct fp_cache *c, struct entry *e, const struct fp_step *s,
                           const struct seen *seen, bool same, bool unchanged)
{
    struct fp_answer *a = seen->answer;

    if (s == seen->last && seen->opened && !a->unchanged) {
        set_fd(c, e, a->fd);
        a->fd = -1;
        e->local = a->local;
        e->tried = true;
    } else if (leads_on(e) ? !same : !unchanged) {
        drop_fd(c, e);
        e->tried = false;
    }
}

static enum kind kind_of(const struct entry *e)
{
    if (e->fd != -1 && !e->is_place)
        return KIND_FILE;
    return e->status == FP_OK ? KIND_DIRECTORY : KIND_ABSENT;
}

/* Brings an entry up to what a walk has just seen. */
static void update(struct fp_cache *c, struct entry *e, const struct fp_step *s,
                   const struct seen *seen)
{
    bool same = e->generation != 0 && same_thing(e, s);
    bool unchanged = same && s->status == FP_OK && same_content(&e->self, &s->self)
        && (e->target == NULL || same_content(e->target, &s->target));

    e->seen_ms = seen->now_ms;
    if (!same)
        e->generation = ++c->last_generation;
    if (!set_target(e, s))
        e->generation = 0;
    if (e->parent != NULL)
        e->parent_generation = e->parent->generation;
    e->status = s->status;
    e->target_status = s->target_status;
    e->self = s->self;
    set_access(e, s, seen);
    set_descriptor(c, e, s, seen, same, unchanged);
    set_kind(c, e, kind_of(e));
}

static struct entry *insert_step(struct fp_cache *c, const char *path,
                                 struct entry *parent, const struct fp_step *s,
                                 const struct seen *seen)
{
    struct entry *e = find(c, path, s->end);

    if (e == NULL)
        e = entry_create(c, path, s->end, parent);
    if (e == NULL)
        return NULL;
    /* Walks overlap: what an earlier one saw does not replace the later.
     * Below the same directory it is still good. */
    if (e->seen_ms > seen->now_ms)
        return e->generation != 0 && same_thing(e, s) ? e : NULL;
    update(c, e, s, seen);
    return e;
}

/* The entry to begin below: NULL for "/".  False: it is no longer the same. */
static bool find_start(const struct fp_cache *c, const char *path,
                       const struct fp_cache_base *base, struct entry **e_r)
{
    *e_r = NULL;
    if (base == NULL)
        return true;
    *e_r = find(c, path, base->len);
    return *e_r != NULL && (*e_r)->generation == base->generation;
}

/* An error that may be gone the next moment is no knowledge. */
static bool is_worth_keeping(const struct fp_answer *a)
{
    const struct fp_step *last = &a->steps[a->n_steps - 1];

    return last->status != FP_IOERROR
        && (last->status != FP_OK || last->target_status != FP_IOERROR);
}

void fp_cache_insert(struct fp_cache *c, const char *path, size_t len, unsigned names,
                     const struct fp_cache_base *base, uint64_t now_ms,
                     struct fp_answer *a)
{
    struct entry *e;
    const struct seen seen = { names, now_ms, a,
                               a->n_steps > 0 ? &a->steps[a->n_steps - 1] : NULL,
                               a->n_steps > 0 && a->steps[a->n_steps - 1].end == len };

    if (a->status == FP_OK && a->n_steps > 0 && seen.last->end <= len
        && is_worth_keeping(a) && find_start(c, path, base, &e)) {
        c->counts.inserts++;
        for (unsigned i = 0; i < a->n_steps; i++) {
            e = insert_step(c, path, e, &a->steps[i], &seen);
            if (e == NULL)
                break;
        }
    }
    fp_close(&a->fd);
    trim(c);
}

size_t fp_cache_shed_files(struct fp_cache *c, size_t n)
{
    size_t done = 0;

    while (done < n && evict_from(c, KIND_FILE))
        done++;
    return done;
}

/* ---- forgetting ---- */

static bool is_below(const struct entry *e, const char *path, size_t len)
{
    return fp_path_common_len(e->path, e->len, path, len) == len;
}

/* Evicts what lies below the path and has no children.  Parents that lose their
 * last child come to the head of a queue, maybe of one that was done. */
static size_t evict_leaves(struct fp_cache *c, const char *path, size_t len)
{
    size_t n = 0;

    for (int k = 0; k < KINDS; k++) {
        struct entry *e = TAILQ_LAST(&c->sieves[k].queue, queue), *before;

        for (; e != NULL; e = before) {
            before = TAILQ_PREV(e, queue, link);
            if (!is_below(e, path, len))
                continue;
            evict(c, e);
            n++;
        }
    }
    return n;
}

static size_t forget_tree(struct fp_cache *c, const char *path, size_t len)
{
    size_t all = 0, n;

    while ((n = evict_leaves(c, path, len)) > 0)
        all += n;
    return all;
}

/* An entry with children stays, with nothing known of it; they are dead until it
 * is known again. */
static size_t forget_entry(struct fp_cache *c, struct entry *e)
{
    size_t known = e->generation != 0;

    if (e->children == 0) {
        evict(c, e);
        return known;
    }
    e->generation = 0;
    drop_fd(c, e);
    forget_access(e);
    set_kind(c, e, kind_of(e));
    return known;
}

/* Questions about the path are answered from what is above it where walks end
 * there, and the directory it lies in tells of its access files. */
static void forget_above(struct fp_cache *c, const char *path, size_t len)
{
    const size_t parent_len = len > 1 ? fp_path_parent_len(path, len) : 0;

    for (size_t n = parent_len; n > 0; n = n > 1 ? fp_path_parent_len(path, n) : 0) {
        struct entry *e = find(c, path, n);

        if (e != NULL && !leads_on(e))
            forget_entry(c, e);
        else if (e != NULL && n == parent_len)
            forget_access(e);
    }
}

size_t fp_cache_forget(struct fp_cache *c, const char *path, size_t len, bool tree)
{
    struct entry *e = find(c, path, len);
    size_t n = 0;

    if (tree)
        n = forget_tree(c, path, len);
    else if (e != NULL)
        n = forget_entry(c, e);
    forget_above(c, path, len);
    return n;
}

struct fp_cache_counts fp_cache_counts(const struct fp_cache *c)
{
    struct fp_cache_counts counts = c->counts;

    counts.files = c->sieves[KIND_FILE].count;
    counts.directories = c->sieves[KIND_DIRECTORY].count;
    counts.absent = c->sieves[KIND_ABSENT].count;
    counts.places = c->n_places;
    return counts;
}
