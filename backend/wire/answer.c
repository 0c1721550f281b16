/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "wire/answer.h"

#include <endian.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "wire/packet.h"

/* Flags of an ANSWER. */
enum { HAS_FD = 1, LOCAL = 2, UNCHANGED = 4, LEASABLE = 8, CONTENT = 16, WATCHED = 32 };

const struct fp_meta *fp_step_target(const struct fp_step *s)
{
    if (s->status != FP_OK)
        return NULL;
    if (!S_ISLNK(s->self.mode))
        return &s->self;
    return s->target_status == FP_OK ? &s->target : NULL;
}

void fp_answer_init(struct fp_answer *a, fp_status status)
{
    a->status = status;
    a->source = FP_SOURCE_WORKER;
    a->n_steps = a->n_names = 0;
    a->fd = -1;
    a->leasable = a->local = a->content = a->readable = a->unchanged = false;
    a->watched = a->above_watched = a->may_look = false;
    a->content_at = 0;
}

struct fp_chosen fp_choose(const struct fp_names *own, const struct fp_names *all)
{
    struct fp_chosen chosen = { .n = own->n };

    for (unsigned i = 0; i < own->n; i++) {
        const int at = fp_names_find(all, own->list[i].name, own->list[i].len);

        if (at == -1)
            return (struct fp_chosen){ .n = 0 };
        chosen.at[i] = (unsigned)at;
    }
    return chosen;
}

unsigned fp_chosen_of(const struct fp_chosen *chosen, unsigned n_names)
{
    for (unsigned i = 0; i < chosen->n; i++) {
        if (chosen->at[i] >= n_names)
            return 0;
    }
    return chosen->n;
}

void fp_steps_choose(struct fp_step *steps, unsigned n, const struct fp_chosen *chosen)
{
    unsigned same = 0;

    while (same < chosen->n && chosen->at[same] == same)
        same++;
    for (unsigned i = 0; same < chosen->n && i < n; i++) {
        struct fp_access access[FP_MAX_NAMES];

        memcpy(access, steps[i].access, sizeof(access));
        for (unsigned k = 0; k < chosen->n; k++)
            steps[i].access[k] = access[chosen->at[k]];
    }
}

bool fp_answer_is_failure(const struct fp_answer *a)
{
    const struct fp_step *last = a != NULL ? &a->steps[a->n_steps - 1] : NULL;

    return last == NULL || last->status == FP_IOERROR
           || (last->status == FP_OK && last->target_status == FP_IOERROR);
}

bool fp_answer_is_unopened(const struct fp_answer *a)
{
    return a->readable && !a->content && a->fd == -1;
}

bool fp_time_equal(const struct fp_time *a, const struct fp_time *b)
{
    return a->sec == b->sec && a->nsec == b->nsec;
}

static struct fp_time time_of(const struct timespec *ts)
{
    return (struct fp_time){ .sec = ts->tv_sec, .nsec = (uint32_t)ts->tv_nsec };
}

struct fp_meta fp_meta_from_stat(const struct stat *st)
{
    return (struct fp_meta){ .mode = st->st_mode,
                             .uid = st->st_uid,
                             .gid = st->st_gid,
                             .dev = st->st_dev,
                             .ino = st->st_ino,
                             .nlink = st->st_nlink,
                             .size = (uint64_t)st->st_size,
                             .blocks = (uint64_t)st->st_blocks,
                             .atime = time_of(&st->st_atim),
                             .mtime = time_of(&st->st_mtim),
                             .ctime = time_of(&st->st_ctim),
                             .blksize = (uint32_t)st->st_blksize };
}

bool fp_meta_equal(const struct fp_meta *a, const struct fp_meta *b)
{
    return a->mode == b->mode && a->uid == b->uid && a->gid == b->gid && a->dev == b->dev && a->ino == b->ino
           && a->nlink == b->nlink && a->size == b->size && fp_time_equal(&a->mtime, &b->mtime)
           && fp_time_equal(&a->ctime, &b->ctime);
}

bool fp_meta_had_settled(const struct fp_meta *m, uint64_t at_ms)
{
    struct timespec now;
    int64_t last_ms; /* the last moment at which a change leaves it settled */

    clock_gettime(CLOCK_REALTIME, &now);
    last_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    last_ms -= (int64_t)(fp_now_ms() - at_ms) + FP_SETTLED_MS;
    return m->ctime.sec < last_ms / 1000
           || (m->ctime.sec == last_ms / 1000 && m->ctime.nsec / 1000000 <= (uint32_t)(last_ms % 1000));
}

struct fp_access fp_access_of(const struct fp_meta *m)
{
    return (struct fp_access){ .status = FP_OK,
                               .mode = m->mode,
                               .dev = m->dev,
                               .ino = m->ino,
                               .size = m->size,
                               .mtime = m->mtime,
                               .ctime = m->ctime };
}

bool fp_access_equal(const struct fp_access *a, const struct fp_access *b)
{
    if (a->status != b->status)
        return false;
    return a->status != FP_OK
           || (a->mode == b->mode && a->dev == b->dev && a->ino == b->ino && a->size == b->size
               && fp_time_equal(&a->mtime, &b->mtime) && fp_time_equal(&a->ctime, &b->ctime));
}

bool fp_step_is_dir(const struct fp_step *s)
{
    const struct fp_meta *m = fp_step_target(s);

    return m != NULL && S_ISDIR(m->mode);
}

size_t fp_answer_size(const struct fp_answer *a)
{
    return offsetof(struct fp_answer, steps) + a->n_steps * sizeof(a->steps[0]);
}

static void put_time(struct fp_writer *w, const struct fp_time *t)
{
    fp_put_u64(w, (uint64_t)t->sec);
    fp_put_u32(w, t->nsec);
}

void fp_put_meta(struct fp_writer *w, const struct fp_meta *m)
{
    fp_put_u32(w, m->mode);
    fp_put_u32(w, m->uid);
    fp_put_u32(w, m->gid);
    fp_put_u64(w, m->dev);
    fp_put_u64(w, m->ino);
    fp_put_u64(w, m->nlink);
    fp_put_u64(w, m->size);
    fp_put_u64(w, m->blocks);
    put_time(w, &m->atime);
    put_time(w, &m->mtime);
    put_time(w, &m->ctime);
    fp_put_u32(w, m->blksize);
}

static void put_access(struct fp_writer *w, const struct fp_access *x)
{
    fp_put_u8(w, (uint8_t)x->status);
    if (x->status != FP_OK)
        return;
    fp_put_u32(w, x->mode);
    fp_put_u64(w, x->dev);
    fp_put_u64(w, x->ino);
    fp_put_u64(w, x->size);
    put_time(w, &x->mtime);
    put_time(w, &x->ctime);
}

static void put_objects(struct fp_writer *w, const struct fp_step *s)
{
    fp_put_u16(w, s->end);
    fp_put_u8(w, (uint8_t)s->status);
    if (s->status != FP_OK)
        return;
    fp_put_meta(w, &s->self);
    if (!S_ISLNK(s->self.mode))
        return;
    fp_put_u8(w, (uint8_t)s->target_status);
    if (s->target_status == FP_OK)
        fp_put_meta(w, &s->target);
}

void fp_put_step(struct fp_writer *w, const struct fp_step *s, unsigned n_names)
{
    put_objects(w, s);
    for (unsigned i = 0; i < n_names && fp_step_is_dir(s); i++)
        put_access(w, &s->access[i]);
    fp_put_u32(w, s->slot);
    fp_put_u32(w, s->generation);
}

void fp_put_answer(struct fp_writer *w, const struct fp_answer *a)
{
    fp_put_u8(w, (uint8_t)a->status);
    fp_put_u8(w, (uint8_t)a->source);
    fp_put_u8(w, (uint8_t)((a->fd != -1 ? HAS_FD : 0) | (a->local ? LOCAL : 0) | (a->unchanged ? UNCHANGED : 0)
                           | (a->leasable ? LEASABLE : 0) | (a->content ? CONTENT : 0) | (a->watched ? WATCHED : 0)));
    fp_put_u8(w, (uint8_t)a->n_names);
    fp_put_u8(w, (uint8_t)a->n_steps);
    for (const struct fp_step *s = a->steps; s < a->steps + a->n_steps; s++)
        fp_put_step(w, s, a->n_names);
    /* A worker sends the content itself. */
    if (a->content && a->fd == -1)
        fp_put_u64(w, a->content_at);
}

fp_status fp_answer_encode(struct fp_writer *w, uint64_t id, const struct fp_answer *a)
{
    fp_frame_begin(w, FP_FRAME_ANSWER, id);
    fp_put_answer(w, a);
    return fp_frame_end(w);
}

static bool is_time(const struct fp_time *t)
{
    return t->nsec < 1000000000;
}

static void get_time(struct fp_reader *r, struct fp_time *t)
{
    t->sec = (int64_t)fp_get_u64(r);
    t->nsec = fp_get_u32(r);
    if (!is_time(t))
        r->bad = true;
}

/* Each hit decodes the steps of its path, mostly metadata: the room for these is looked at once. */
#define META_BYTES 92u /* as fp_put_meta() writes: 4 * 4 + 5 * 8, and 3 times of 12 */

static uint32_t take_u32(const uint8_t **p)
{
    uint32_t v;

    memcpy(&v, *p, sizeof(v));
    *p += sizeof(v);
    return be32toh(v);
}

static uint64_t take_u64(const uint8_t **p)
{
    uint64_t v;

    memcpy(&v, *p, sizeof(v));
    *p += sizeof(v);
    return be64toh(v);
}

static struct fp_time take_time(const uint8_t **p)
{
    struct fp_time t;

    t.sec = (int64_t)take_u64(p);
    t.nsec = take_u32(p);
    return t;
}

void fp_get_meta(struct fp_reader *r, struct fp_meta *m)
{
    const uint8_t *p = fp_get_bytes(r, META_BYTES);

    if (p == NULL) {
        memset(m, 0, sizeof(*m));
        return;
    }
    m->mode = take_u32(&p);
    m->uid = take_u32(&p);
    m->gid = take_u32(&p);
    m->dev = take_u64(&p);
    m->ino = take_u64(&p);
    m->nlink = take_u64(&p);
    m->size = take_u64(&p);
    m->blocks = take_u64(&p);
    m->atime = take_time(&p);
    m->mtime = take_time(&p);
    m->ctime = take_time(&p);
    m->blksize = take_u32(&p);
    if (m->size > INT64_MAX || !is_time(&m->atime) || !is_time(&m->mtime) || !is_time(&m->ctime))
        r->bad = true;
}

/* Reads a status that the file system may give, FP_OK included. */
static fp_status get_status(struct fp_reader *r)
{
    uint8_t v = fp_get_u8(r);

    if (v > FP_IOERROR)
        r->bad = true;
    return (fp_status)v;
}

static void get_access(struct fp_reader *r, struct fp_access *x)
{
    x->status = get_status(r);
    if (x->status != FP_OK)
        return;
    x->mode = fp_get_u32(r);
    x->dev = fp_get_u64(r);
    x->ino = fp_get_u64(r);
    x->size = fp_get_u64(r);
    get_time(r, &x->mtime);
    get_time(r, &x->ctime);
}

static void get_objects(struct fp_reader *r, struct fp_step *s)
{
    s->end = fp_get_u16(r);
    s->status = get_status(r);
    s->target_status = FP_OK;
    if (s->status != FP_OK)
        return;
    fp_get_meta(r, &s->self);
    if (!S_ISLNK(s->self.mode))
        return;
    s->target_status = get_status(r);
    if (s->target_status == FP_OK)
        fp_get_meta(r, &s->target);
}

void fp_get_step(struct fp_reader *r, struct fp_step *s, unsigned n_names)
{
    get_objects(r, s);
    for (unsigned i = 0; i < n_names && !r->bad && fp_step_is_dir(s); i++)
        get_access(r, &s->access[i]);
    s->slot = fp_get_u32(r);
    s->generation = fp_get_u32(r);
}

/* The question that an answer must fit. */
struct frame_of {
    size_t path_len, base_len;
    bool from_worker;
};

static bool steps_fit(const struct fp_answer *a, const struct frame_of *x)
{
    const struct fp_step *last = &a->steps[a->n_steps - 1];
    unsigned end = a->steps[0].end;

    if (x->base_len == 0 ? end != 1 : end <= x->base_len)
        return false;
    for (unsigned i = 1; i < a->n_steps; i++) {
        const unsigned above = end;

        end = a->steps[i].end;
        if (end <= above || !fp_step_is_dir(&a->steps[i - 1]))
            return false;
    }
    return last->end == x->path_len || (last->end < x->path_len && !fp_step_is_dir(last));
}

static bool fd_fits(const struct fp_answer *a, const struct frame_of *x)
{
    const struct fp_step *last = &a->steps[a->n_steps - 1];
    const struct fp_meta *m = fp_step_target(last);

    if (a->content
        && (!a->local || m == NULL || !S_ISREG(m->mode) || m->size == 0 || m->size > FP_CONTENT_MOST))
        return false;
    return m != NULL && last->end == x->path_len
           && (S_ISREG(m->mode) || (x->from_worker && S_ISDIR(m->mode)));
}

bool fp_answer_lacks_access_files(const struct fp_answer *a)
{
    for (unsigned i = 0; i + 1 < a->n_steps; i++) {
        for (unsigned n = 0; n < a->n_names; n++) {
            if (a->steps[i].access[n].status != FP_ABSENT)
                return false;
        }
    }
    return a->n_names > 0;
}

bool fp_answer_fits(const struct fp_answer *a, size_t path_len)
{
    const struct frame_of x = { path_len, 0, false };

    return a->n_steps > 0 && a->n_steps <= FP_MAX_STEPS && steps_fit(a, &x)
           && ((!a->content && !a->readable) || fd_fits(a, &x));
}

static fp_status decode(struct fp_reader *r, const struct frame_of *x, int fd, struct fp_answer *a)
{
    const unsigned flags_allowed =
        HAS_FD | LOCAL | CONTENT | (x->from_worker ? UNCHANGED : LEASABLE | WATCHED);
    uint8_t flags;

    a->status = (fp_status)fp_get_u8(r);
    a->source = (enum fp_source)fp_get_u8(r);
    flags = fp_get_u8(r);
    a->local = (flags & LOCAL) != 0;
    a->unchanged = (flags & UNCHANGED) != 0;
    a->leasable = (flags & LEASABLE) != 0;
    a->content = (flags & CONTENT) != 0;
    a->watched = (flags & WATCHED) != 0;
    a->n_names = fp_get_u8(r);
    a->n_steps = fp_get_u8(r);
    a->readable = a->unchanged;
    a->content_at = 0;
    a->fd = -1;
    if (a->n_steps > FP_MAX_STEPS || a->n_names > FP_MAX_NAMES)
        return FP_PROTOCOL;
    for (unsigned i = 0; i < a->n_steps && !r->bad; i++)
        fp_get_step(r, &a->steps[i], a->n_names);
    if (a->content && !x->from_worker)
        a->content_at = fp_get_u64(r);
    if (r->bad || (!x->from_worker && !fp_reader_done(r)) || (flags & ~flags_allowed) != 0
        || ((flags & HAS_FD) != 0) != (fd != -1) || (a->content && (fd != -1) != x->from_worker)
        || (a->watched && !a->leasable))
        return FP_PROTOCOL;
    if (a->source < FP_SOURCE_CACHE || a->source > FP_SOURCE_STALE)
        return FP_PROTOCOL;
    if (a->status != FP_OK)
        return fp_status_is_reason(a->status) && a->n_steps == 0 && fd == -1 && !a->content ? FP_OK
                                                                                            : FP_PROTOCOL;
    if (a->n_steps == 0 || !steps_fit(a, x) || ((fd != -1 || a->content) && !fd_fits(a, x)))
        return FP_PROTOCOL;
    a->fd = fd;
    return FP_OK;
}

fp_status fp_answer_decode(struct fp_reader *r, size_t path_len, int fd, struct fp_answer *a)
{
    const struct frame_of x = { path_len, 0, false };

    return decode(r, &x, fd, a);
}

bool fp_answer_is_sealed(const struct fp_answer *a)
{
    return !a->content || fp_is_sealed(a->fd, fp_step_target(&a->steps[a->n_steps - 1])->size);
}

fp_status fp_get_answer(struct fp_reader *r, size_t path_len, size_t base_len, int fd, struct fp_answer *a)
{
    const struct frame_of x = { path_len, base_len, true };

    return decode(r, &x, fd, a);
}
