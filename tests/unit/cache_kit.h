/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers as a walk would give them, from a short description, for the tests
 * of the cache.  One letter for each component, "/" first, and after it
 * optionally a digit, its version: another version is another thing.
 *
 *   d directory      l link to a directory    f file with a descriptor
 *   L link to a file with a descriptor        u file that may not be read
 *   a absent         x denied                 b link that leads nowhere
 */
#ifndef FP_CACHE_KIT_H
#define FP_CACHE_KIT_H

#include <sys/mman.h>

#include "cache/cache.h"
#include "cache_check.h"
#include "changes/coherence.h"
#include "lease_kit.h"
#include "shared/lease_table.h"
#include "unit.h"
#include "wire/answer.h"
#include "wire/walk_result.h"

static inline uint64_t kit_number(const char *path, size_t len, char version)
{
    uint64_t h = 14695981039346656037u;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)path[i]) * 1099511628211u;
    return (h ^ (unsigned char)version) * 1099511628211u;
}

static inline struct fp_meta kit_meta(const char *path, size_t len, char version, uint32_t mode)
{
    struct fp_meta m = { .mode = mode,
                         .dev = 1,
                         .nlink = 1,
                         .ino = kit_number(path, len, version),
                         .size = (uint64_t)(version - '0') };

    m.ctime.sec = version - '0';
    return m;
}

static inline void kit_step(struct fp_step *s, const char *path, size_t end, char kind, char version)
{
    const bool link = strchr("lLb", kind) != NULL;
    const uint32_t mode = strchr("fuL", kind) != NULL ? S_IFREG | 0644 : S_IFDIR | 0755;

    memset(s, 0, sizeof(*s));
    s->end = (uint16_t)end;
    s->status = kind == 'a' ? FP_ABSENT : kind == 'x' ? FP_DENIED : FP_OK;
    s->target_status = kind == 'b' ? FP_ABSENT : FP_OK;
    s->self = kit_meta(path, end, version, link ? S_IFLNK | 0777 : mode);
    if (link && kind != 'b')
        s->target = kit_meta(path, end, (char)(version + 64), mode);
}

/* A descriptor whose file holds one byte: the version. */
static inline int kit_file(char version)
{
    int fd = memfd_create("kit", MFD_CLOEXEC);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(write(fd, &version, 1), 1);
    return fd;
}

static inline char kit_version_of(int fd)
{
    char version = '?';

    ck_assert_int_eq(pread(fd, &version, 1, 0), 1);
    return version;
}

static inline size_t kit_component_end(const char *path, size_t at)
{
    return at + strcspn(path + at, "/");
}

/* The result of a walk of the path. */
static inline void kit_answer(struct fp_answer *a, const char *path, const char *what)
{
    size_t end = 1;

    fp_answer_init(a, FP_OK);
    for (; *what != '\0'; what++) {
        const char kind = *what;
        const char version = what[1] >= '0' && what[1] <= '9' ? *++what : '0';

        ck_assert_uint_lt(a->n_steps, FP_MAX_STEPS);
        if (a->n_steps > 0)
            end = kit_component_end(path, a->n_steps == 1 ? 1 : end + 1);
        kit_step(&a->steps[a->n_steps++], path, end, kind, version);
        if (kind == 'f' || kind == 'L')
            a->fd = kit_file(version);
    }
}

static inline bool kit_same_meta(const struct fp_meta *a, const struct fp_meta *b)
{
    return a->ino == b->ino && a->mode == b->mode && a->size == b->size && a->ctime.sec == b->ctime.sec;
}

static inline bool kit_same_step(const struct fp_step *a, const struct fp_step *b)
{
    if (a->end != b->end || a->status != b->status)
        return false;
    if (a->status != FP_OK)
        return true;
    if (!kit_same_meta(&a->self, &b->self) || a->target_status != b->target_status)
        return false;
    return !S_ISLNK(a->self.mode) || a->target_status != FP_OK || kit_same_meta(&a->target, &b->target);
}

/* The clock of caches made by kit_cache(). */
static uint64_t kit_now_ms;

static inline uint64_t kit_clock(void)
{
    return kit_now_ms;
}

/* A cache without leases, which checks itself after each operation. */
static inline struct fp_cache *kit_cache(const struct fp_cache_limits *limits)
{
    const struct fp_cache_deps deps = { .lease_table = NULL, .now_ms = kit_clock, .verify = cache_verify };

    return fp_cache_create(limits, &deps);
}

static uint32_t kit_ttl_ms = 100; /* of what is not watched */

/* The results of a walk that had nothing watched, on a file system of this machine or of another one. */
static inline const struct fp_walk_meta *kit_unwatched(bool local)
{
    static struct fp_walk_result result;
    static struct fp_validity validity[FP_MAX_STEPS];
    static const struct fp_walk_meta meta = { &result, validity };

    fp_walk_result_init(&result);
    result.settled = true;
    for (unsigned i = 0; i < FP_MAX_STEPS; i++)
        validity[i] = (struct fp_validity){ .traits = { .verdict = FP_TTL_UNWATCHED, .local = local },
                                            .ttl_ms = kit_ttl_ms };
    return &meta;
}

/* Such a walk from "/" that looked for no access files, and a question without any. */
static inline void kit_insert(struct fp_cache *c, const char *path, uint64_t ms, struct fp_answer *a)
{
    fp_cache_insert(c, path, strlen(path), NULL, ms, kit_unwatched(true), a);
}

static inline bool kit_lookup(struct fp_cache *c, const char *path, uint64_t ms, struct fp_answer *a)
{
    return fp_cache_lookup(c, path, strlen(path), FP_ASK_ANY, ms, a);
}

/* Of each path, a space between them: it is known, or with "!" before it, unknown. */
static inline void assert_each(bool (*known)(const char *path), const char *paths)
{
    char copy[256], *rest = copy, *path;

    ck_assert_int_lt(snprintf(copy, sizeof(copy), "%s", paths), (int)sizeof(copy));
    while ((path = strsep(&rest, " ")) != NULL) {
        const bool expected = *path != '!';

        ck_assert_msg(known(expected ? path : path + 1) == expected, "%s of \"%s\"", path, paths);
    }
}

/* A child's lease of an answer. */
struct kit_lease {
    unsigned n;
    uint32_t slots[FP_MAX_STEPS], generations[FP_MAX_STEPS];
};

static inline struct kit_lease kit_take_lease(const struct fp_answer *a)
{
    struct kit_lease l = { .n = 0 };

    ck_assert(a->leasable);
    for (; l.n < a->n_steps; l.n++) {
        l.slots[l.n] = a->steps[l.n].slot;
        l.generations[l.n] = a->steps[l.n].generation;
    }
    return l;
}

static inline bool kit_holds_at(const struct kit_lease *l, const struct fp_lease_view *view, uint64_t ms)
{
    for (unsigned i = 0; i < l->n; i++) {
        if (!fp_lease_view_is_valid(view, l->slots[i], l->generations[i], ms))
            return false;
    }
    return l->n > 0;
}

#endif
