/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/noise.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "shared/area.h"

/* The first places are owners': their number stands for the inode. */
#define PLACES   (FP_NOISE_OWNERS + FP_NOISE_PLACES)
#define OF_OWNER UINT64_MAX /* no device */

struct shared_place {
    _Atomic uint64_t dev, ino;
    _Atomic uint32_t what; /* enum fp_left_out */
};

struct fp_noise_list {
    _Atomic uint32_t n; /* the places in use are among the first n */
    struct shared_place places[PLACES];
};
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "a lock would not work between processes");

/* The daemon's knowledge of the place with the same number. */
struct place {
    uint64_t until_ms;    /* so long it is left out; 0: the place is free */
    uint64_t remember_ms; /* if there is noise again until then, it is left out for longer */
    uint32_t ms;          /* how long it was left out the last time */
    uint32_t uid;         /* the object's owner */
};

/*
 * Watches share sets of counters.  In a full set the one with the fewest events in this window gives way,
 * so a watch with much noise keeps its own.
 */
#define SETS 512
#define WAYS 8
struct counter {
    int wd;
    uint64_t window;
    uint32_t names, others;
    size_t visits; /* of entries */
    bool reported;
};

struct fp_noise {
    struct fp_noise_list *list;
    uint64_t window; /* the number of the present one, */
    uint32_t all;    /* and the events in it */
    size_t n;        /* places left out */
    uint64_t next_ms;
    struct place places[PLACES];
    struct counter counters[SETS][WAYS];
};

/* ---- how workers see it ---- */

struct fp_noise_list *fp_noise_list_create(void)
{
    return fp_area_publish("flashpache-noise", sizeof(struct fp_noise_list));
}

int fp_noise_list_protect(struct fp_noise_list *v)
{
    return fp_area_end_writing(v, sizeof(*v));
}

static bool is_at(const struct shared_place *p, uint64_t dev, uint64_t ino)
{
    return atomic_load(&p->ino) == ino && atomic_load(&p->dev) == dev;
}

enum fp_left_out fp_noise_list_find(const struct fp_noise_list *v, const struct fp_noise_object *o)
{
    const size_t n = atomic_load(&v->n);

    for (size_t i = 0; i < n; i++) {
        const uint32_t what = atomic_load(&v->places[i].what);

        if (what != FP_LEFT_OUT_NOT
            && (i < FP_NOISE_OWNERS ? is_at(&v->places[i], OF_OWNER, o->uid) : is_at(&v->places[i], o->dev, o->ino)))
            return (enum fp_left_out)what;
    }
    return FP_LEFT_OUT_NOT;
}

/* ---- the daemon's side ---- */

struct fp_noise *fp_noise_create(struct fp_noise_list *list)
{
    struct fp_noise *n = calloc(1, sizeof(*n));

    if (n != NULL) {
        n->list = list;
        n->next_ms = UINT64_MAX;
    }
    return n;
}

void fp_noise_destroy(struct fp_noise **n)
{
    free(*n);
    *n = NULL;
}

static uint64_t events_of(const struct fp_noise *n, const struct counter *c)
{
    return c->window == n->window ? (uint64_t)c->names + c->others : 0;
}

/* The watch's counter in this window. */
static struct counter *counter_of(struct fp_noise *n, int wd)
{
    struct counter *set = n->counters[(unsigned)wd % SETS], *least = set;

    for (struct counter *c = set; c < set + WAYS; c++) {
        if (c->window == n->window && c->wd == wd)
            return c;
        if (events_of(n, c) < events_of(n, least))
            least = c;
    }
    *least = (struct counter){ .wd = wd, .window = n->window };
    return least;
}

enum fp_left_out fp_noise_count(struct fp_noise *n, int wd, bool names, size_t entries, uint64_t now_ms)
{
    const uint64_t window = now_ms / FP_NOISE_WINDOW_MS;
    struct counter *c;
    uint32_t most;

    if (window != n->window) {
        n->window = window;
        n->all = 0;
    }
    n->all += n->all < UINT32_MAX;
    c = counter_of(n, wd);
    if (names)
        c->names++;
    else
        c->others++;
    c->visits += entries;
    most = n->all > FP_NOISE_ALL ? FP_NOISE_FEW : FP_NOISE_MANY;
    if (c->reported || (c->names <= FP_NOISE_MANY && c->others <= most)) {
        if (c->visits <= FP_NOISE_VISITS)
            return FP_LEFT_OUT_NOT;
        c->visits = 0;
        return FP_LEFT_OUT_LINKED;
    }
    c->reported = true;
    return c->names > FP_NOISE_MANY ? FP_LEFT_OUT_WHOLLY : FP_LEFT_OUT_ATTRIBUTES;
}

/* The place of that device and inode among some; else a free one of them, or NULL. */
static struct place *place_for(struct fp_noise *n, size_t from, size_t to, uint64_t dev, uint64_t ino,
                               uint64_t now_ms)
{
    struct place *free_place = NULL;

    for (size_t i = from; i < to; i++) {
        struct place *p = &n->places[i];

        if (p->ms != 0 && is_at(&n->list->places[i], dev, ino))
            return p;
        if (free_place == NULL && p->until_ms == 0 && p->remember_ms <= now_ms)
            free_place = p;
    }
    if (free_place != NULL)
        free_place->ms = 0;
    return free_place;
}

static void publish(struct fp_noise_list *v, size_t i, uint64_t dev, uint64_t ino, enum fp_left_out what)
{
    struct shared_place *s = &v->places[i];

    atomic_store(&s->what, FP_LEFT_OUT_NOT);
    atomic_store(&s->dev, dev);
    atomic_store(&s->ino, ino);
    atomic_store(&s->what, (uint32_t)what);
    if (atomic_load(&v->n) <= i)
        atomic_store(&v->n, (uint32_t)i + 1);
}

static uint32_t take_place(struct fp_noise *n, struct place *p, uint64_t dev, uint64_t ino, enum fp_left_out what,
                           uint64_t now_ms)
{
    const size_t i = (size_t)(p - n->places);

    /* A watch that was made just before may report the object again: that is no other noise. */
    if (p->until_ms == 0) {
        n->n++;
        p->ms = p->ms == 0 || p->remember_ms <= now_ms ? FP_NOISE_FIRST_MS
                : p->ms < FP_NOISE_MOST_MS             ? 2 * p->ms
                                                       : FP_NOISE_MOST_MS;
    } else if ((uint32_t)what < atomic_load(&n->list->places[i].what)) {
        what = (enum fp_left_out)atomic_load(&n->list->places[i].what);
    }
    p->until_ms = now_ms + p->ms;
    p->remember_ms = p->until_ms + p->ms;
    if (p->until_ms < n->next_ms)
        n->next_ms = p->until_ms;
    publish(n->list, i, dev, ino, what);
    return p->ms;
}

static void end_place(struct fp_noise *n, size_t i)
{
    atomic_store(&n->list->places[i].what, FP_LEFT_OUT_NOT);
    n->places[i].until_ms = 0;
    n->n--;
}

/* The owner's own place comes instead of those of what he owns. */
static struct fp_noise_end leave_owner_out(struct fp_noise *n, uint32_t uid, uint64_t now_ms)
{
    struct place *p = place_for(n, 0, FP_NOISE_OWNERS, OF_OWNER, uid, now_ms);

    if (uid == 0 || p == NULL)
        return (struct fp_noise_end){ .ms = 0 };
    for (size_t i = FP_NOISE_OWNERS; i < PLACES; i++) {
        struct place *own = &n->places[i];

        if (own->uid == uid && own->until_ms != 0)
            end_place(n, i);
        if (own->uid == uid)
            *own = (struct place){ .ms = 0 };
    }
    return (struct fp_noise_end){ .ms = take_place(n, p, OF_OWNER, uid, FP_LEFT_OUT_WHOLLY, now_ms), .owner = true };
}

/* The place where the owner is left out; NULL: he is not. */
static const struct place *owner_place(const struct fp_noise *n, uint32_t uid)
{
    for (size_t i = 0; i < FP_NOISE_OWNERS; i++) {
        if (n->places[i].until_ms != 0 && is_at(&n->list->places[i], OF_OWNER, uid))
            return &n->places[i];
    }
    return NULL;
}

/* Places that are remembered are not free, either. */
static bool owns_too_many(const struct fp_noise *n, uint32_t uid, uint64_t now_ms)
{
    size_t own = 0;

    for (size_t i = FP_NOISE_OWNERS; i < PLACES; i++)
        own += n->places[i].uid == uid && (n->places[i].until_ms != 0 || n->places[i].remember_ms > now_ms);
    return own >= FP_NOISE_OWN && uid != 0;
}

struct fp_noise_end fp_noise_leave_out(struct fp_noise *n, const struct fp_noise_object *o, enum fp_left_out what,
                                       uint64_t now_ms)
{
    const struct place *owner = owner_place(n, o->uid);
    struct place *p;

    if (owner != NULL)
        return (struct fp_noise_end){ .ms = owner->ms, .owner = true, .before = true };
    p = place_for(n, FP_NOISE_OWNERS, PLACES, o->dev, o->ino, now_ms);
    if (p == NULL || (p->ms == 0 && owns_too_many(n, o->uid, now_ms)))
        return leave_owner_out(n, o->uid, now_ms);
    p->uid = o->uid;
    return (struct fp_noise_end){ .ms = take_place(n, p, o->dev, o->ino, what, now_ms) };
}

void fp_noise_expire(struct fp_noise *n, uint64_t now_ms)
{
    uint32_t used = 0;

    if (now_ms < n->next_ms)
        return;
    n->next_ms = UINT64_MAX;
    for (uint32_t i = 0; i < PLACES; i++) {
        const struct place *p = &n->places[i];

        if (p->until_ms != 0 && p->until_ms <= now_ms)
            end_place(n, i);
        if (p->until_ms == 0)
            continue;
        used = i + 1;
        if (p->until_ms < n->next_ms)
            n->next_ms = p->until_ms;
    }
    atomic_store(&n->list->n, used);
}

size_t fp_noise_places(struct fp_noise *n, uint64_t now_ms)
{
    fp_noise_expire(n, now_ms);
    return n->n;
}
