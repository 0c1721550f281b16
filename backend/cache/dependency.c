/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "cache/dependency.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/keyed_hash.h"
#include "base/memory.h"
#include "cache/index.h"
#include "cache/recent_changes.h"

/* The kernel's memory for an inotify watch: the mark, and the watched object's inode and name. On ext4 these
 * are 1,128 and 192 bytes, which the kernel cannot reclaim until the watch ends. */
#define INOTIFY_BYTES 1500u

/* Stands for more than one name; no file has it. */
#define ANY_NAME "/"
#define GONE     "//"

TAILQ_HEAD(dependencies, fp_dependency); /* the newest first */

/* A watched directory or file. */
struct watch_object {
    struct fp_indexed indexed;               /* by the key */
    struct dependencies on_itself, on_names; /* those on names in it */
    unsigned n_on_itself;
    bool gone; /* its watch has ended; in no table */
    struct fp_watch_key key;
};

/* A name in an object, with a dependency on it. */
struct name {
    struct fp_indexed indexed; /* by its key */
    struct dependencies dependencies;
    unsigned n;
    size_t key_len;
    char key[]; /* the object's address, then the name */
};

struct fp_dependency {
    struct fp_dependency *next; /* the same owner's */
    TAILQ_ENTRY(fp_dependency) of_object, of_name;
    struct watch_object *object;
    struct name *name; /* NULL: the object itself */
    void *owner;
};

struct fp_dependencies {
    struct fp_index objects, names;
    struct fp_dependencies_deps deps;
    uint64_t lost_ms;      /* when everything may have changed, */
    uint64_t remounted_ms; /* and when mounts did */
    struct fp_recent_changes recent;
};

struct fp_dependencies *fp_dependencies_create(const struct fp_dependencies_deps *deps)
{
    struct fp_dependencies *w = fp_memory_take_zeroed(1, sizeof(*w));

    if (w == NULL)
        return NULL;
    w->deps = *deps;
    return w;
}

void fp_dependencies_destroy(struct fp_dependencies **w)
{
    free(*w);
    *w = NULL;
}

/* ---- the tables ---- */

static size_t name_key(char *to, const struct watch_object *object, const char *name, size_t len)
{
    memcpy(to, &object, sizeof(object));
    memcpy(to + sizeof(object), name, len);
    return sizeof(object) + len;
}

static struct watch_object *find_object(const struct fp_dependencies *w, const struct fp_watch_key *key)
{
    const unsigned hash = fp_keyed_hash(key->bytes, key->len);

    for (struct fp_indexed *i = fp_index_chain(&w->objects, hash); i != NULL; i = i->next) {
        struct watch_object *object = (struct watch_object *)i;

        if (i->hash == hash && object->key.len == key->len
            && memcmp(object->key.bytes, key->bytes, key->len) == 0)
            return object;
    }
    return NULL;
}

static struct name *find_name(const struct fp_dependencies *w, const struct watch_object *object,
                              const char *name, size_t len)
{
    char key[sizeof(object) + FP_MAX_NAME];
    unsigned hash;

    if (len > FP_MAX_NAME)
        return NULL;
    len = name_key(key, object, name, len);
    hash = fp_keyed_hash(key, len);
    for (struct fp_indexed *i = fp_index_chain(&w->names, hash); i != NULL; i = i->next) {
        struct name *n = (struct name *)i;

        if (i->hash == hash && n->key_len == len && memcmp(n->key, key, len) == 0)
            return n;
    }
    return NULL;
}

const struct fp_watch_key *fp_dependencies_find(const struct fp_dependencies *w,
                                                const struct fp_watch_key *key, void **owner_r,
                                                bool *itself_r)
{
    const struct watch_object *object = find_object(w, key);
    const struct fp_dependency *s;

    if (object == NULL)
        return NULL;
    *itself_r = !TAILQ_EMPTY(&object->on_itself);
    s = *itself_r ? TAILQ_FIRST(&object->on_itself) : TAILQ_FIRST(&object->on_names);
    *owner_r = s->owner;
    return &object->key;
}

bool fp_dependencies_has(const struct fp_dependencies *w, const struct fp_watch_key *key)
{
    return find_object(w, key) != NULL;
}

size_t fp_dependencies_count(const struct fp_dependencies *w)
{
    return w->objects.n;
}

/* ---- recent changes ---- */

static uint64_t recent_hash(const struct fp_watch_key *key, const char *name, size_t len)
{
    char all[FP_MAX_WATCH_KEY + FP_MAX_NAME];
    size_t n = len < FP_MAX_NAME ? len : FP_MAX_NAME;

    memcpy(all, key->bytes, key->len);
    memcpy(all + key->len, name, n);
    return fp_keyed_hash_whole(all, key->len + n);
}

static void note(struct fp_dependencies *w, const struct fp_watch_key *key, const char *name, size_t len)
{
    fp_recent_changes_note(&w->recent, recent_hash(key, name, len), w->deps.now_ms());
}

static bool is_noted(const struct fp_dependencies *w, const struct fp_watch_key *key, const char *name,
                     size_t len, uint64_t since_ms)
{
    return fp_recent_changes_has(&w->recent, recent_hash(key, name, len), since_ms);
}

bool fp_dependencies_happened(const struct fp_dependencies *w, const struct fp_watch_key *key,
                              const char *name, size_t len, uint64_t since_ms)
{
    return w->lost_ms >= since_ms || is_noted(w, key, name, len, since_ms)
           || fp_dependencies_ended(w, key, since_ms);
}

bool fp_dependencies_ended(const struct fp_dependencies *w, const struct fp_watch_key *key, uint64_t since_ms)
{
    return is_noted(w, key, GONE, sizeof(GONE) - 1, since_ms);
}

bool fp_dependencies_any_happened(const struct fp_dependencies *w, const struct fp_watch_key *key,
                                  uint64_t since_ms)
{
    return fp_dependencies_happened(w, key, ANY_NAME, sizeof(ANY_NAME) - 1, since_ms);
}

void fp_dependencies_lost(struct fp_dependencies *w)
{
    w->lost_ms = w->deps.now_ms();
}

void fp_dependencies_remounted(struct fp_dependencies *w, const char *point)
{
    w->remounted_ms = w->deps.now_ms();
    if (point != NULL)
        fp_recent_changes_note(&w->recent, fp_keyed_hash_whole(point, strlen(point)), w->remounted_ms);
}

bool fp_dependencies_was_remounted(const struct fp_dependencies *w, const char *path, size_t len,
                                   uint64_t since_ms)
{
    if (w->remounted_ms < since_ms)
        return false;
    if (path == NULL)
        return true;
    for (; len > 1; len = fp_path_parent_len(path, len)) {
        if (fp_recent_changes_has(&w->recent, fp_keyed_hash_whole(path, len), since_ms))
            return true;
    }
    return fp_recent_changes_has(&w->recent, fp_keyed_hash_whole("/", 1), since_ms);
}

bool fp_dependencies_was_lost(const struct fp_dependencies *w, uint64_t since_ms)
{
    return w->lost_ms >= since_ms;
}

/* ---- dependencies ---- */

static struct watch_object *get_object(struct fp_dependencies *w, const struct fp_watch_key *key)
{
    struct watch_object *object = find_object(w, key);

    if (object != NULL)
        return object;
    object = fp_memory_take_zeroed(1, sizeof(*object));
    if (object == NULL)
        return NULL;
    object->key = *key;
    TAILQ_INIT(&object->on_itself);
    TAILQ_INIT(&object->on_names);
    if (!fp_index_add(&w->objects, &object->indexed, fp_keyed_hash(object->key.bytes, object->key.len))) {
        free(object);
        return NULL;
    }
    return object;
}

/* Nobody needs that watch.  A walk may be under way that relies on it: the note of its end stays. */
static void give_up(struct fp_dependencies *w, const struct fp_watch_key *key)
{
    note(w, key, GONE, sizeof(GONE) - 1);
    if (w->deps.forget != NULL)
        w->deps.forget(w->deps.forget_ctx, key);
}

/* Drops the object if nothing depends on it. */
static void drop_object_if_unused(struct fp_dependencies *w, struct watch_object *object)
{
    if (!TAILQ_EMPTY(&object->on_itself) || !TAILQ_EMPTY(&object->on_names))
        return;
    if (!object->gone) {
        fp_index_remove(&w->objects, &object->indexed);
        give_up(w, &object->key);
    }
    free(object);
}

void fp_dependencies_release(struct fp_dependencies *w, const struct fp_watch_key *key)
{
    if (key->len > 0 && find_object(w, key) == NULL)
        give_up(w, key);
}

static struct name *get_name(struct fp_dependencies *w, struct watch_object *object, const char *name,
                             size_t len)
{
    struct name *n = find_name(w, object, name, len);

    if (n != NULL || len > FP_MAX_NAME)
        return n;
    n = fp_memory_take_zeroed(1, sizeof(*n) + sizeof(object) + len);
    if (n == NULL)
        return NULL;
    n->key_len = name_key(n->key, object, name, len);
    TAILQ_INIT(&n->dependencies);
    if (!fp_index_add(&w->names, &n->indexed, fp_keyed_hash(n->key, n->key_len))) {
        free(n);
        return NULL;
    }
    return n;
}

/* How many an event on the object concerns, or one on the dependency's name in it. */
static unsigned *number_of(struct fp_dependency *s)
{
    return s->name != NULL ? &s->name->n : &s->object->n_on_itself;
}

/* The oldest of them gives its place to a dependency of that owner. */
static void make_room(const struct fp_dependencies *w, struct fp_dependency *s, const void *owner)
{
    struct fp_dependency *oldest = s->name != NULL ? TAILQ_LAST(&s->name->dependencies, dependencies)
                                                   : TAILQ_LAST(&s->object->on_itself, dependencies);

    while (oldest != NULL && oldest->owner == owner)
        oldest = s->name != NULL ? TAILQ_PREV(oldest, dependencies, of_name) : TAILQ_PREV(oldest, dependencies, of_object);
    if (oldest != NULL)
        w->deps.lose(w->deps.lose_ctx, oldest->owner, oldest);
}

struct fp_dependency *fp_dependencies_add(struct fp_dependencies *w, struct fp_dependency **dependencies,
                                          void *owner, const struct fp_watch_key *key, const char *name,
                                          size_t len)
{
    struct fp_dependency *s = fp_memory_take_zeroed(1, sizeof(*s));

    if (s != NULL)
        s->object = get_object(w, key);
    if (s != NULL && s->object != NULL && name != NULL)
        s->name = get_name(w, s->object, name, len);
    if (s == NULL || s->object == NULL || (name != NULL && s->name == NULL)) {
        if (s != NULL && s->object != NULL)
            drop_object_if_unused(w, s->object);
        free(s);
        return NULL;
    }
    if (*number_of(s) == FP_MAX_DEPENDENTS)
        make_room(w, s, owner);
    ++*number_of(s);
    if (name != NULL)
        TAILQ_INSERT_HEAD(&s->name->dependencies, s, of_name);
    TAILQ_INSERT_HEAD(name != NULL ? &s->object->on_names : &s->object->on_itself, s, of_object);
    s->owner = owner;
    s->next = *dependencies;
    *dependencies = s;
    return s;
}

static void drop(struct fp_dependencies *w, struct fp_dependency *s)
{
    --*number_of(s);
    TAILQ_REMOVE(s->name != NULL ? &s->object->on_names : &s->object->on_itself, s, of_object);
    if (s->name != NULL) {
        TAILQ_REMOVE(&s->name->dependencies, s, of_name);
        if (TAILQ_EMPTY(&s->name->dependencies)) {
            fp_index_remove(&w->names, &s->name->indexed);
            free(s->name);
        }
    }
    drop_object_if_unused(w, s->object);
    free(s);
}

static void take_off(struct fp_dependency **from, const struct fp_dependency *s)
{
    while (*from != s)
        from = &(*from)->next;
    *from = s->next;
}

void fp_dependencies_move(struct fp_dependency **from, struct fp_dependency *s, struct fp_dependency **to)
{
    take_off(from, s);
    s->next = *to;
    *to = s;
}

void fp_dependencies_drop_one(struct fp_dependencies *w, struct fp_dependency **dependencies, struct fp_dependency *s)
{
    take_off(dependencies, s);
    drop(w, s);
}

void fp_dependencies_drop(struct fp_dependencies *w, struct fp_dependency **dependencies)
{
    while (*dependencies != NULL) {
        struct fp_dependency *s = *dependencies;

        *dependencies = s->next;
        drop(w, s);
    }
}

const struct fp_watch_key *fp_dependency_key(const struct fp_dependency *s)
{
    return s->object->gone ? NULL : &s->object->key;
}

size_t fp_dependency_list_bytes(const struct fp_dependency *dependencies)
{
    size_t n = 0;

    for (; dependencies != NULL; dependencies = dependencies->next) {
        n += sizeof(*dependencies);
        if (dependencies->name != NULL)
            n += sizeof(struct name);
        else
            n += sizeof(struct watch_object) + INOTIFY_BYTES;
    }
    return n;
}

/* ---- events ---- */

static void each_on_itself(const struct watch_object *object, fp_dependencies_each *each, void *ctx)
{
    const struct fp_dependency *s;

    TAILQ_FOREACH(s, &object->on_itself, of_object)
        each(ctx, s->owner);
}

void fp_dependencies_changed(struct fp_dependencies *w, const struct fp_watch_key *key, const char *name,
                             size_t len, fp_dependencies_each *on_object, fp_dependencies_each *on_name,
                             void *ctx)
{
    const struct watch_object *object = find_object(w, key);
    const struct name *n;
    const struct fp_dependency *s;

    note(w, key, name, len);
    if (len > 0)
        note(w, key, ANY_NAME, sizeof(ANY_NAME) - 1);
    if (object == NULL)
        return;
    each_on_itself(object, on_object, ctx);
    n = find_name(w, object, name, len);
    if (n == NULL)
        return;
    TAILQ_FOREACH(s, &n->dependencies, of_name)
        on_name(ctx, s->owner);
}

static void each_there(const struct watch_object *object, fp_dependencies_each *on_object,
                       fp_dependencies_each *on_name, void *ctx)
{
    const struct fp_dependency *s;

    each_on_itself(object, on_object, ctx);
    TAILQ_FOREACH(s, &object->on_names, of_object)
        on_name(ctx, s->owner);
}

void fp_dependencies_all_changed(struct fp_dependencies *w, const struct fp_watch_key *key,
                                 fp_dependencies_each *on_object, fp_dependencies_each *on_name, void *ctx)
{
    const struct watch_object *object = find_object(w, key);

    note(w, key, "", 0);
    if (object != NULL)
        each_there(object, on_object, on_name, ctx);
}

/* most: after the last one the object may be gone. */
static size_t lose_chosen(const struct fp_dependencies *w, struct dependencies *list, size_t most, fp_dependencies_choose *choose)
{
    struct fp_dependency *s = TAILQ_FIRST(list), *next;
    size_t n = 0;

    for (; n < most && s != NULL; s = next) {
        next = TAILQ_NEXT(s, of_object);
        if (!choose(s->owner, s))
            continue;
        n++;
        w->deps.lose(w->deps.lose_ctx, s->owner, s);
    }
    return n;
}

static size_t count_chosen(const struct dependencies *list, fp_dependencies_choose *choose)
{
    const struct fp_dependency *s;
    size_t n = 0;

    TAILQ_FOREACH(s, list, of_object)
        n += choose(s->owner, s);
    return n;
}

void fp_dependencies_lose(struct fp_dependencies *w, const struct fp_watch_key *key, fp_dependencies_choose *choose)
{
    struct watch_object *object = find_object(w, key);
    size_t n = object != NULL ? count_chosen(&object->on_itself, choose) + count_chosen(&object->on_names, choose) : 0;

    if (n > 0)
        n -= lose_chosen(w, &object->on_itself, n, choose);
    if (n > 0)
        lose_chosen(w, &object->on_names, n, choose);
}

void fp_dependencies_gone(struct fp_dependencies *w, const struct fp_watch_key *key,
                          fp_dependencies_each *on_object, fp_dependencies_each *on_name, void *ctx)
{
    struct watch_object *object = find_object(w, key);

    note(w, key, GONE, sizeof(GONE) - 1);
    if (object == NULL)
        return;
    fp_index_remove(&w->objects, &object->indexed);
    object->gone = true;
    each_there(object, on_object, on_name, ctx);
}
