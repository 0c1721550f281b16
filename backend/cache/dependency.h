/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dependencies on watched objects.  The key of a directory or file, and a name in it, lead
 * to the owners (entries of the cache) that a change there concerns.
 * For walks under way the changes of the recent past are remembered too.
 */
#ifndef FP_DEPENDENCY_H
#define FP_DEPENDENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/walk_result.h"

struct fp_dependencies;

/* The dependency of an owner on an object, or on a name in it. */
struct fp_dependency;

struct fp_dependencies_deps {
    /* No dependency on the key is left; NULL: nobody wants to know. */
    void (*forget)(void *ctx, const struct fp_watch_key *key);
    void *forget_ctx;
    /* The owner gets no more reports by that dependency, and has to drop it (fp_dependencies_drop_one()). */
    void (*lose)(void *ctx, void *owner, struct fp_dependency *s);
    void *lose_ctx;
    uint64_t (*now_ms)(void);
};

struct fp_dependencies *fp_dependencies_create(const struct fp_dependencies_deps *deps);
/* To be called when no dependency is left. */
void fp_dependencies_destroy(struct fp_dependencies **w);

/* How many dependencies there may be on one object, and on one name in it: so many an event may concern. */
#define FP_MAX_DEPENDENTS 4096u

/*
 * Puts a dependency of the owner's in front of *dependencies: on the name, or with NULL
 * on the object itself.  Where there are FP_MAX_DEPENDENTS, the oldest of another owner is lost.  NULL when out of
 * memory: then the owner gets no reports of changes there.
 */
struct fp_dependency *fp_dependencies_add(struct fp_dependencies *w, struct fp_dependency **dependencies,
                                          void *owner, const struct fp_watch_key *key, const char *name,
                                          size_t len);
/* Moves one of *from to *to, which are the same owner's. */
void fp_dependencies_move(struct fp_dependency **from, struct fp_dependency *s, struct fp_dependency **to);
/* Drops one of them, and all of them, which leaves NULL. */
void fp_dependencies_drop_one(struct fp_dependencies *w, struct fp_dependency **dependencies, struct fp_dependency *s);
void fp_dependencies_drop(struct fp_dependencies *w, struct fp_dependency **dependencies);

/* The key; NULL once its watch has ended. */
const struct fp_watch_key *fp_dependency_key(const struct fp_dependency *s);

/* About how much memory a list of dependencies takes, with what the kernel keeps for their watches. */
size_t fp_dependency_list_bytes(const struct fp_dependency *dependencies);

/* Gives up a watch that a walk brought, unless something depends on it. */
void fp_dependencies_release(struct fp_dependencies *w, const struct fp_watch_key *key);

typedef void fp_dependencies_each(void *ctx, void *owner);

/*
 * The name has changed (empty: the object itself).  Remembers that and calls on_object for
 * each owner with a dependency on the object, then on_name for each with one on the name.
 * The callbacks must not add or drop dependencies.
 */
void fp_dependencies_changed(struct fp_dependencies *w, const struct fp_watch_key *key, const char *name,
                             size_t len, fp_dependencies_each *on_object, fp_dependencies_each *on_name,
                             void *ctx);

/* The object has changed, and any name in it may have. Calls the callbacks for each owner with a dependency there. */
void fp_dependencies_all_changed(struct fp_dependencies *w, const struct fp_watch_key *key,
                                 fp_dependencies_each *on_object, fp_dependencies_each *on_name, void *ctx);

typedef bool fp_dependencies_choose(const void *owner, const struct fp_dependency *s);
/* The owners lose those dependencies on the object, and on names in it. */
void fp_dependencies_lose(struct fp_dependencies *w, const struct fp_watch_key *key, fp_dependencies_choose *choose);

/* The watch has ended: calls the callbacks for each owner with a dependency there. */
void fp_dependencies_gone(struct fp_dependencies *w, const struct fp_watch_key *key,
                          fp_dependencies_each *on_object, fp_dependencies_each *on_name, void *ctx);

/* Events were lost: everything may have changed. */
void fp_dependencies_lost(struct fp_dependencies *w);
/* Something was mounted or unmounted at that point. NULL: at an unknown one, and what was mounted there is gone
 * again. A walk under way may have seen things that no longer lie there. */
void fp_dependencies_remounted(struct fp_dependencies *w, const char *point);
/* True if that happened since then at a part of the path. NULL: anywhere. */
bool fp_dependencies_was_remounted(const struct fp_dependencies *w, const char *path, size_t len,
                                   uint64_t since_ms);
bool fp_dependencies_was_lost(const struct fp_dependencies *w, uint64_t since_ms);

/* True if the name (empty: the object itself) may have changed since then; also for some names that
 * have not. */
bool fp_dependencies_happened(const struct fp_dependencies *w, const struct fp_watch_key *key,
                              const char *name, size_t len, uint64_t since_ms);
/* True if the object's watch may have ended since then. */
bool fp_dependencies_ended(const struct fp_dependencies *w, const struct fp_watch_key *key,
                           uint64_t since_ms);
/* As fp_dependencies_happened(), of any name in the object. */
bool fp_dependencies_any_happened(const struct fp_dependencies *w, const struct fp_watch_key *key,
                                  uint64_t since_ms);

/* The key as it came with its first dependency, and one owner of a dependency there; NULL: there is
 * none.  *itself_r: it depends on the object itself. */
const struct fp_watch_key *fp_dependencies_find(const struct fp_dependencies *w,
                                                const struct fp_watch_key *key, void **owner_r,
                                                bool *itself_r);
/* True if there is a dependency on the key. */
bool fp_dependencies_has(const struct fp_dependencies *w, const struct fp_watch_key *key);
/* The number of keys, which is that of watches. */
size_t fp_dependencies_count(const struct fp_dependencies *w);

#endif
