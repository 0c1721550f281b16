/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared/answer_table.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "shared/area.h"
#include "shared/ring.h"
#include "wire/answer.h"
#include "wire/packet.h"
#include "wire/wire.h"

#define MAGIC 0x46504137u /* "FPA7": another layout, another number */

#define BUCKET       8u    /* words of the index in a cache line */
#define RECORD_BYTES 192u  /* of the ring for each two words: about the smallest record */
#define RECORD_MOST  32768 /* bytes; longer ones, of 60 directories with access files, are asked about */
#define ROOM         4096u /* of a reader's first try: some 35 directories without access files */
#define KEY_ROOM     512u
#define TRIES        2     /* a record that has moved meanwhile is looked for again */

/* A word has the hash's upper 16 bits, and 48 bits of the position in units. */
#define PLACE_BITS 48
#define PLACE_MASK (((uint64_t)1 << PLACE_BITS) - 1)

enum kind { DIR = 1, LEAF = 2 };

/* Flags of a LEAF; a DIR has MAY_LOOK and WATCHED. */
enum { READABLE = 1, LOCAL = 2, MAY_LOOK = 2, WATCHED = 4, CONTENT = 16 };

/* Stands in front of a record's key and body, whose lengths it has; zeros fill the record's last unit. */
struct record {
    struct fp_ring_item ring; /* len: the key's */
    uint32_t body_len;
    uint32_t zero;
    uint32_t slot, generation; /* of the last step */
    uint64_t hash;             /* of the key */
};

struct bucket {
    _Atomic uint64_t words[BUCKET];
};

#define KEY_MOST (1 + FP_MAX_PATH)

/* Kind and path in one buffer. */
struct key {
    uint8_t *bytes;
    size_t size; /* of the buffer */
    size_t len;
    uint64_t hash;
};

static void hash_key(struct key *k, const uint8_t secret[crypto_shorthash_KEYBYTES])
{
    uint8_t h[crypto_shorthash_BYTES];

    crypto_shorthash(h, k->bytes, k->len, secret);
    k->hash = 0;
    for (size_t i = sizeof(h); i-- > 0;)
        k->hash = k->hash << 8 | h[i];
}

static void set_key(struct key *k, enum kind kind, const char *path, size_t len, const uint8_t *secret)
{
    k->bytes[0] = (uint8_t)kind;
    memcpy(k->bytes + 1, path, len);
    k->len = 1 + len;
    hash_key(k, secret);
}

static uint64_t word_for(uint64_t hash, uint64_t at)
{
    return hash >> PLACE_BITS << PLACE_BITS | at / FP_RING_UNIT;
}

static uint64_t place_of(uint64_t word)
{
    return (word & PLACE_MASK) * FP_RING_UNIT;
}

/* ---- the daemon's side ---- */

struct fp_answer_table {
    struct fp_ring ring;
    struct bucket *index;
    fp_slot_is_used *is_used;
    void *ctx;
    struct key key;
    uint8_t key_bytes[KEY_MOST];
    /* The record that is being made; aligned as a record is. */
    union {
        struct record head;
        uint8_t bytes[RECORD_MOST];
    } made;
};

static struct bucket *bucket_of(const struct fp_answer_table *t, uint64_t hash)
{
    return &t->index[hash & (t->ring.area->n_buckets - 1)];
}

static uint64_t word_at(const struct bucket *b, unsigned i)
{
    return atomic_load_explicit(&b->words[i], memory_order_relaxed);
}

/* The word of just that record; BUCKET: the record has none any more. */
static unsigned find_word(const struct bucket *b, uint64_t word)
{
    unsigned i = 0;

    while (i < BUCKET && word_at(b, i) != word)
        i++;
    return i;
}

static bool keep(void *ctx, uint64_t at, const struct fp_ring_item *item)
{
    const struct fp_answer_table *t = ctx;
    const struct record *r = (const struct record *)item;

    return find_word(bucket_of(t, r->hash), word_for(r->hash, at)) < BUCKET
           && t->is_used(t->ctx, r->slot, r->generation);
}

static void moved(void *ctx, uint64_t from, uint64_t to, const struct fp_ring_item *item)
{
    const struct fp_answer_table *t = ctx;
    const struct record *r = (const struct record *)item;
    struct bucket *b = bucket_of(t, r->hash);
    const unsigned i = find_word(b, word_for(r->hash, from));

    if (i < BUCKET)
        atomic_store_explicit(&b->words[i], word_for(r->hash, to), memory_order_release);
}

static const struct fp_ring_ops ring_ops = { keep, moved, NULL };

static uint32_t buckets_for(size_t bytes)
{
    uint32_t n = 1;

    while ((uint64_t)n * BUCKET < bytes / RECORD_BYTES * 2 && n < 1u << 28)
        n *= 2;
    return n;
}

struct fp_answer_table *fp_answer_table_create(size_t bytes, fp_slot_is_used *is_used, void *ctx)
{
    struct fp_answer_table *t = sodium_init() != -1 ? calloc(1, sizeof(*t)) : NULL;
    const size_t size = bytes > FP_ANSWERS_LEAST ? bytes : FP_ANSWERS_LEAST;
    const uint32_t n_buckets = buckets_for(size);

    if (t == NULL)
        return NULL;
    t->key = (struct key){ .bytes = t->key_bytes, .size = sizeof(t->key_bytes) };
    t->is_used = is_used;
    t->ctx = ctx;
    if (!fp_ring_create(&t->ring, "flashpache-answers", MAGIC, n_buckets * sizeof(struct bucket), size, &ring_ops, t)) {
        free(t);
        return NULL;
    }
    t->index = (struct bucket *)(t->ring.area + 1);
    t->ring.area->n_buckets = n_buckets;
    randombytes_buf(t->ring.area->key, sizeof(t->ring.area->key));
    return t;
}

void fp_answer_table_destroy(struct fp_answer_table **tp)
{
    if (*tp != NULL)
        fp_ring_destroy(&(*tp)->ring);
    free(*tp);
    *tp = NULL;
}

int fp_answer_table_fd(const struct fp_answer_table *t)
{
    return t->ring.fd;
}

static bool has_key(const struct fp_answer_table *t, uint64_t at)
{
    const struct record *r = (const struct record *)fp_ring_at(&t->ring, at);

    return r->hash == t->key.hash && r->ring.len == t->key.len
           && memcmp(r + 1, t->key.bytes, t->key.len) == 0;
}

/* The word of the present key's record; BUCKET if there is none. */
static unsigned find_key(const struct fp_answer_table *t, const struct bucket *b)
{
    for (unsigned i = 0; i < BUCKET; i++) {
        const uint64_t word = word_at(b, i), at = place_of(word);

        if (word == word_for(t->key.hash, at) && fp_ring_has(&t->ring, at) && has_key(t, at))
            return i;
    }
    return BUCKET;
}

/* The word to use for another key: one whose record is gone, if there is any, else the oldest's. */
static unsigned oldest_word(const struct bucket *b)
{
    unsigned oldest = 0;

    for (unsigned i = 1; i < BUCKET; i++) {
        if (place_of(word_at(b, i)) < place_of(word_at(b, oldest)))
            oldest = i;
    }
    return oldest;
}

/* Ends the record of the present key; w: its body, behind the place of the key. */
static void finish_record(struct fp_answer_table *t, const struct fp_writer *w, const struct fp_step *last)
{
    const size_t len = sizeof(struct record) + t->key.len + w->len, size = fp_ring_round(len);

    t->made.head = (struct record){ .ring = { (uint32_t)size, (uint32_t)t->key.len },
                                    .body_len = (uint32_t)w->len,
                                    .slot = last->slot,
                                    .generation = last->generation,
                                    .hash = t->key.hash };
    memcpy(t->made.bytes + sizeof(struct record), t->key.bytes, t->key.len);
    memset(t->made.bytes + len, 0, size - len);
}

static void begin_body(struct fp_answer_table *t, struct fp_writer *w)
{
    const size_t before = sizeof(struct record) + t->key.len;

    fp_writer_init(w, t->made.bytes + before, sizeof(t->made.bytes) - before);
}

/* Puts the record into the table, unless it stands there as it is. */
static void put_record(struct fp_answer_table *t)
{
    const size_t size = t->made.head.ring.size;
    struct bucket *b = bucket_of(t, t->key.hash);
    unsigned i = find_key(t, b);
    uint64_t at;

    if (i < BUCKET && memcmp(fp_ring_at(&t->ring, place_of(word_at(b, i))), t->made.bytes, size) == 0)
        return;
    /* No position is given twice, so the last positions are not used.  At 100 MB/s they come after a year. */
    if (t->ring.head / FP_RING_UNIT > PLACE_MASK - 2 * t->ring.size / FP_RING_UNIT)
        return;
    at = fp_ring_append(&t->ring, size);
    if (at == FP_RING_NOWHERE)
        return;
    memcpy(fp_ring_at(&t->ring, at), t->made.bytes, size);
    /* Other records have moved meanwhile. */
    i = find_key(t, b);
    if (i == BUCKET)
        i = oldest_word(b);
    /* Release: the word comes after all of the record. */
    atomic_store_explicit(&b->words[i], word_for(t->key.hash, at), memory_order_release);
}

/* Puts the answer's steps but the last: those of the directory that it lies in. */
static void put_dir(struct fp_answer_table *t, const char *path, const struct fp_answer *a)
{
    const unsigned n = a->n_steps - 1;
    struct fp_writer w;

    set_key(&t->key, DIR, path, a->steps[n - 1].end, t->ring.area->key);
    begin_body(t, &w);
    fp_put_u8(&w, (uint8_t)((a->may_look ? MAY_LOOK : 0) | (a->above_watched ? WATCHED : 0)));
    fp_put_u8(&w, (uint8_t)a->n_names);
    fp_put_u8(&w, (uint8_t)n);
    for (unsigned i = 0; i < n; i++)
        fp_put_step(&w, &a->steps[i], a->n_names);
    if (w.bad)
        return;
    finish_record(t, &w, &a->steps[n - 1]);
    put_record(t);
}

static void put_leaf(struct fp_answer_table *t, const char *path, size_t len, const struct fp_answer *a)
{
    const struct fp_step *last = &a->steps[a->n_steps - 1], *dir = a->n_steps > 1 ? last - 1 : last;
    struct fp_writer w;

    set_key(&t->key, LEAF, path, len, t->ring.area->key);
    begin_body(t, &w);
    fp_put_u8(&w, (uint8_t)((a->fd != -1 || a->content || a->readable ? READABLE : 0) | (a->local ? LOCAL : 0)
                            | (a->watched ? WATCHED : 0) | (a->content ? CONTENT : 0)));
    fp_put_u8(&w, (uint8_t)a->n_names);
    fp_put_u32(&w, dir->slot);
    fp_put_u32(&w, dir->generation);
    fp_put_u64(&w, a->content ? a->content_at : 0);
    fp_put_step(&w, last, a->n_names);
    if (w.bad)
        return;
    finish_record(t, &w, last);
    put_record(t);
}

void fp_answer_table_publish(struct fp_answer_table *t, const char *path, size_t len,
                             const struct fp_answer *a)
{
    if (a->status != FP_OK || !a->leasable || len > FP_MAX_PATH)
        return;
    /* The order matters: the leaf may take the place of an old record of the directory. */
    put_leaf(t, path, len, a);
    if (a->n_steps > 1)
        put_dir(t, path, a);
}

struct fp_ring_counts fp_answer_table_counts(const struct fp_answer_table *t)
{
    return fp_ring_counts(&t->ring);
}

/* ---- a client's side ---- */

struct fp_answer_view {
    struct fp_ring_view ring;
    uint64_t mask; /* buckets less one */
    uint8_t key[crypto_shorthash_KEYBYTES];
    struct fp_chosen chosen;
};

/* Reads what the head says of the index; false: it does not lie in front of the ring. */
static bool read_index_head(struct fp_answer_view *v)
{
    const struct fp_ring_head *head = (const void *)v->ring.area.bytes;
    const uint64_t n = head->n_buckets;

    v->mask = n - 1;
    memcpy(v->key, head->key, sizeof(v->key));
    return n > 0 && (n & v->mask) == 0 && sizeof(*head) + n * sizeof(struct bucket) <= v->ring.data;
}

struct fp_answer_view *fp_answer_view_create(int fd, const struct fp_chosen *chosen)
{
    struct fp_answer_view *v = sodium_init() != -1 ? calloc(1, sizeof(*v)) : NULL;

    if (v == NULL)
        return NULL;
    v->chosen = *chosen;
    if (fp_ring_view_open(&v->ring, fd, MAGIC, true) && read_index_head(v))
        return v;
    fp_answer_view_destroy(&v);
    errno = EPROTO;
    return NULL;
}

void fp_answer_view_destroy(struct fp_answer_view **vp)
{
    if (*vp != NULL)
        fp_area_view_close(&(*vp)->ring.area);
    free(*vp);
    *vp = NULL;
}

/* A key, and a buffer for the copy of its record. */
struct search {
    struct key key;
    uint8_t *bytes;
    size_t size;
    bool is_short; /* the key, or a record that may be the right one, did not fit */
};

/* Copies the record there and its body, if the key is its own. */
static bool copy_record(const struct fp_answer_view *v, uint64_t at, struct search *x,
                        struct fp_reader *body_r)
{
    const struct key *k = &x->key;
    const size_t size = fp_ring_view_item(&v->ring, at, x->bytes, x->size);
    struct record head;

    if (size > RECORD_MOST || size < sizeof(head) + k->len)
        return false;
    if (size > x->size) {
        x->is_short = true;
        return false;
    }
    memcpy(&head, x->bytes, sizeof(head));
    if (head.ring.len != k->len || memcmp(x->bytes + sizeof(head), k->bytes, k->len) != 0
        || head.body_len > size - sizeof(head) - k->len)
        return false;
    fp_reader_init(body_r, x->bytes + sizeof(head) + k->len, head.body_len);
    return true;
}

/* Copies a bucket's words: they are read before the bytes of the records to which they lead. */
static void copy_bucket(const struct fp_answer_view *v, uint64_t hash, uint64_t words[BUCKET])
{
    const size_t at = sizeof(struct fp_ring_head) + (size_t)(hash & v->mask) * sizeof(struct bucket);

    for (unsigned i = 0; i < BUCKET; i++)
        words[i] = word_at((const void *)(v->ring.area.bytes + at), i);
    atomic_thread_fence(memory_order_acquire);
}

/* *led_r: a word of such a hash led to a record; without one no try is worth another. */
static bool find_once(const struct fp_answer_view *v, struct search *x, struct fp_reader *body_r, bool *led_r)
{
    const uint64_t hash = x->key.hash;
    uint64_t words[BUCKET];

    *led_r = false;
    copy_bucket(v, hash, words);
    for (unsigned i = 0; i < BUCKET; i++) {
        const uint64_t at = place_of(words[i]);

        if (words[i] == 0 || words[i] != word_for(hash, at))
            continue;
        *led_r = true;
        if (copy_record(v, at, x, body_r))
            return true;
    }
    return false;
}

static bool find_record(const struct fp_answer_view *v, struct search *x, struct fp_reader *body_r)
{
    bool led = true;

    for (int i = 0; i < TRIES && led; i++) {
        if (find_once(v, x, body_r, &led))
            return true;
    }
    return false;
}

struct question {
    const char *path;
    size_t len;
};

static bool begin_search(const struct fp_answer_view *v, enum kind kind, const struct question *q,
                         struct search *x)
{
    if (q->len > FP_MAX_PATH)
        return false;
    if (1 + q->len > x->key.size) {
        x->is_short = true;
        return false;
    }
    set_key(&x->key, kind, q->path, q->len, v->key);
    return true;
}

/* Finds the record and decodes it into *found, if there is room. */
typedef bool find_with(const struct fp_answer_view *v, const struct question *q, void *found,
                       struct search *x);

/* Not inlined: the compiler has each page of a large frame touched.  Each would stay with the process, even
 * if that never meets a long record. */
__attribute__((noinline)) static bool find_long(find_with *how, const struct fp_answer_view *v,
                                                const struct question *q, void *found)
{
    uint8_t key[KEY_MOST], bytes[RECORD_MOST];
    struct search x = { { .bytes = key, .size = sizeof(key) }, bytes, sizeof(bytes), false };

    return how(v, q, found, &x);
}

/* Not inlined, for one frame in the place of two. */
__attribute__((noinline)) static bool find_usual(find_with *how, const struct fp_answer_view *v,
                                                 const struct question *q, void *found)
{
    uint8_t key[KEY_ROOM], bytes[ROOM];
    struct search x = { { .bytes = key, .size = sizeof(key) }, bytes, sizeof(bytes), false };

    return how(v, q, found, &x) || (x.is_short && find_long(how, v, q, found));
}

/* ---- a DIR ---- */

/* The steps to a directory; *found is an answer without any. */
static bool find_dir(const struct fp_answer_view *v, const struct question *q, void *found, struct search *x)
{
    struct fp_answer *a = found;
    struct fp_reader r;
    unsigned flags, n_names;

    if (!begin_search(v, DIR, q, x) || !find_record(v, x, &r))
        return false;
    flags = fp_get_u8(&r);
    n_names = fp_get_u8(&r);
    a->n_steps = fp_get_u8(&r);
    if ((flags & ~(unsigned)(MAY_LOOK | WATCHED)) != 0 || n_names > FP_MAX_NAMES || a->n_steps == 0
        || a->n_steps >= FP_MAX_STEPS)
        return false;
    for (unsigned i = 0; i < a->n_steps && !r.bad; i++)
        fp_get_step(&r, &a->steps[i], n_names);
    fp_steps_choose(a->steps, a->n_steps, &v->chosen);
    a->n_names = fp_chosen_of(&v->chosen, n_names);
    a->may_look = (flags & MAY_LOOK) != 0;
    a->above_watched = (flags & WATCHED) != 0;
    return fp_reader_done(&r) && fp_answer_fits(a, q->len) && fp_step_is_dir(&a->steps[a->n_steps - 1]);
}

/* ---- a LEAF ---- */

struct leaf {
    unsigned flags, n_names;
    uint32_t dir_slot, dir_generation;
    uint64_t content_at;
    struct fp_step step;
};

static bool find_leaf(const struct fp_answer_view *v, const struct question *q, void *found, struct search *x)
{
    struct leaf *l = found;
    struct fp_reader r;

    if (!begin_search(v, LEAF, q, x) || !find_record(v, x, &r))
        return false;
    l->flags = fp_get_u8(&r);
    l->n_names = fp_get_u8(&r);
    l->dir_slot = fp_get_u32(&r);
    l->dir_generation = fp_get_u32(&r);
    l->content_at = fp_get_u64(&r);
    if ((l->flags & ~(unsigned)(READABLE | LOCAL | WATCHED | CONTENT)) != 0 || l->n_names > FP_MAX_NAMES)
        return false;
    fp_get_step(&r, &l->step, l->n_names);
    fp_steps_choose(&l->step, 1, &v->chosen);
    return fp_reader_done(&r) && l->step.end > 0 && l->step.end <= q->len;
}

/* ---- what a client asks ---- */

static void begin_answer(struct fp_answer *a)
{
    fp_answer_init(a, FP_OK);
    a->source = FP_SOURCE_CACHE;
}

/* Finds the steps above a LEAF's.  A directory further up may have changed since: the DIR is newer then. */
static bool find_above(const struct fp_answer_view *v, const char *path, const struct leaf *l,
                       struct fp_answer *a)
{
    const struct question q = { path, fp_path_parent_len(path, l->step.end) };
    const struct fp_step *dir;

    if (l->step.end == 1) {
        a->n_names = fp_chosen_of(&v->chosen, l->n_names);
        return true;
    }
    if (!find_usual(find_dir, v, &q, a))
        return false;
    dir = &a->steps[a->n_steps - 1];
    return dir->slot == l->dir_slot && dir->generation == l->dir_generation
           && a->n_names == fp_chosen_of(&v->chosen, l->n_names);
}

bool fp_answer_view_find(const struct fp_answer_view *v, const char *path, size_t len, struct fp_answer *a)
{
    const struct question q = { path, len };
    struct leaf l;

    begin_answer(a);
    if (!find_usual(find_leaf, v, &q, &l) || !find_above(v, path, &l, a))
        return false;
    a->steps[a->n_steps++] = l.step;
    a->leasable = true;
    a->readable = (l.flags & READABLE) != 0;
    a->local = (l.flags & LOCAL) != 0;
    a->watched = (l.flags & WATCHED) != 0 && (a->above_watched || a->n_steps == 1);
    a->content = (l.flags & CONTENT) != 0;
    a->content_at = l.content_at;
    return fp_answer_fits(a, len);
}

bool fp_answer_view_find_dir(const struct fp_answer_view *v, const char *path, size_t len,
                             struct fp_answer *a)
{
    const struct question q = { path, len };

    begin_answer(a);
    return find_usual(find_dir, v, &q, a);
}
