/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared/lease_table.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shared/answer_table.h"
#include "shared/area.h"
#include "shared/contents.h"
#include "wire/packet.h"

#define MAGIC 0x46505335u /* "FPS5": another layout, another number */

#define READER_CACHE 1
#define ALL_READERS  (READER_CACHE | FP_READER_ANSWERS | FP_READER_CONTENTS)

#define EXHAUSTED UINT32_MAX /* a generation at which no lease is valid */

/* The first area.  Slot 0's byte in the second says that leases are in use. */
struct generations {
    uint32_t magic, n;
    _Atomic uint64_t current_until_ms;
    _Atomic uint64_t busy;    /* not 0: events were taken out of the queue and are not all in force */
    _Atomic uint64_t unreported_ms;
    _Atomic uint64_t words[]; /* generation << 32 | expiry, in ticks */
};

struct fp_lease_table {
    struct generations *area;
    _Atomic uint8_t *referenced;
    uint8_t *owed; /* for each slot, which readers have still to hear of a use */
    int area_fd, referenced_fd;
    uint32_t n;      /* slots, slot 0 included */
    uint32_t unused; /* the first slot that was never taken */
    uint32_t n_free;
    uint32_t free[]; /* a stack of the released slots */
};

static size_t area_size(uint32_t n)
{
    return sizeof(struct generations) + n * sizeof(_Atomic uint64_t);
}

struct fp_lease_table *fp_lease_table_create(uint32_t n)
{
    struct fp_lease_table *t = malloc(sizeof(*t) + n * sizeof(t->free[0]));

    if (t == NULL)
        return NULL;
    t->n = n + 1;
    t->owed = calloc(t->n, sizeof(t->owed[0]));
    t->area_fd = t->referenced_fd = -1;
    t->referenced = NULL;
    t->area = fp_area_create("flashpache-generations", area_size(t->n), F_SEAL_FUTURE_WRITE, &t->area_fd);
    if (t->area != NULL && t->owed != NULL)
        t->referenced = fp_area_create("flashpache-referenced", t->n, 0, &t->referenced_fd);
    if (t->referenced == NULL) {
        fp_lease_table_destroy(&t);
        return NULL;
    }
    t->area->magic = MAGIC;
    t->area->n = t->n;
    t->unused = FP_NO_SLOT + 1;
    t->n_free = 0;
    return t;
}

void fp_lease_table_destroy(struct fp_lease_table **tp)
{
    struct fp_lease_table *t = *tp;

    *tp = NULL;
    if (t == NULL)
        return;
    if (t->area != NULL)
        munmap(t->area, area_size(t->n));
    if (t->referenced != NULL)
        munmap((void *)t->referenced, t->n);
    fp_close(&t->area_fd);
    fp_close(&t->referenced_fd);
    free(t->owed);
    free(t);
}

void fp_lease_table_retire(struct fp_lease_table *t)
{
    atomic_store_explicit(&t->area->current_until_ms, 0, memory_order_release);
}

int fp_lease_table_generations_fd(const struct fp_lease_table *t)
{
    return t->area_fd;
}

int fp_lease_table_referenced_fd(const struct fp_lease_table *t)
{
    return t->referenced_fd;
}

uint32_t fp_lease_table_take(struct fp_lease_table *t)
{
    if (t->n_free > 0)
        return t->free[--t->n_free];
    return t->unused < t->n ? t->unused++ : FP_NO_SLOT;
}

static uint32_t generation_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static uint32_t ticks(uint64_t ms)
{
    return (uint32_t)(ms / FP_SLOT_TICK_MS);
}

/* Only the daemon writes words: this is the word that it wrote last. */
static uint64_t word_of(const struct fp_lease_table *t, uint32_t slot)
{
    return atomic_load_explicit(&t->area->words[slot], memory_order_relaxed);
}

/* Release: together with fp_lease_table_heartbeat() this makes the order that lease_table.h promises. */
static void set_word(struct fp_lease_table *t, uint32_t slot, uint32_t generation, uint32_t expiry)
{
    atomic_store_explicit(&t->area->words[slot], (uint64_t)generation << 32 | expiry, memory_order_release);
}

uint32_t fp_lease_table_generation(const struct fp_lease_table *t, uint32_t slot)
{
    return generation_of(word_of(t, slot));
}

bool fp_lease_table_is_exhausted(const struct fp_lease_table *t, uint32_t slot)
{
    return slot != FP_NO_SLOT && fp_lease_table_generation(t, slot) == EXHAUSTED;
}

void fp_lease_table_invalidate(struct fp_lease_table *t, uint32_t slot)
{
    uint64_t word = word_of(t, slot);

    if (slot != FP_NO_SLOT && generation_of(word) != EXHAUSTED)
        set_word(t, slot, generation_of(word) + 1, (uint32_t)word);
}

void fp_lease_table_set_expiry(struct fp_lease_table *t, uint32_t slot, uint64_t expires_ms)
{
    if (slot != FP_NO_SLOT)
        set_word(t, slot, fp_lease_table_generation(t, slot), ticks(expires_ms));
}

void fp_lease_table_release(struct fp_lease_table *t, uint32_t slot)
{
    if (slot == FP_NO_SLOT)
        return;
    fp_lease_table_invalidate(t, slot);
    if (!fp_lease_table_is_exhausted(t, slot))
        t->free[t->n_free++] = slot;
}

static bool take_byte(struct fp_lease_table *t, uint32_t slot)
{
    /* The byte is a hint: one set between the two lines is lost, and an entry evicted earlier. */
    if (atomic_load_explicit(&t->referenced[slot], memory_order_relaxed) == 0)
        return false;
    atomic_store_explicit(&t->referenced[slot], 0, memory_order_relaxed);
    return true;
}

/* A client's byte is read once, for all readers. */
static bool take_owed(struct fp_lease_table *t, uint32_t slot, uint8_t to)
{
    bool used;

    if (slot == FP_NO_SLOT)
        return false;
    if (take_byte(t, slot))
        t->owed[slot] = ALL_READERS;
    used = (t->owed[slot] & to) != 0;
    t->owed[slot] &= (uint8_t)~to;
    return used;
}

bool fp_lease_table_take_referenced(struct fp_lease_table *t, uint32_t slot)
{
    return take_owed(t, slot, READER_CACHE);
}

bool fp_lease_table_take_recent(struct fp_lease_table *t, uint32_t slot, enum fp_lease_reader reader)
{
    return take_owed(t, slot, (uint8_t)reader);
}

bool fp_lease_table_is_used(void *table, uint32_t slot, uint32_t generation)
{
    struct fp_lease_table *t = table;

    return slot < t->n && fp_lease_table_generation(t, slot) == generation
           && fp_lease_table_take_recent(t, slot, FP_READER_ANSWERS);
}

bool fp_lease_table_take_use(struct fp_lease_table *t)
{
    return take_byte(t, FP_NO_SLOT);
}

void fp_lease_table_set_busy(struct fp_lease_table *t)
{
    atomic_store_explicit(&t->area->busy, 1, memory_order_seq_cst);
    /* The store comes before the read that empties the queue. */
    atomic_thread_fence(memory_order_seq_cst);
}

void fp_lease_table_clear_busy(struct fp_lease_table *t)
{
    atomic_store_explicit(&t->area->busy, 0, memory_order_release);
}

void fp_lease_table_heartbeat(struct fp_lease_table *t, uint64_t now_ms)
{
    /* The heartbeat comes after every generation that was changed: see lease_table.h. */
    atomic_store_explicit(&t->area->current_until_ms, now_ms + FP_HEARTBEAT_MS, memory_order_release);
}

void fp_lease_table_set_unreported(struct fp_lease_table *t, uint64_t ms)
{
    atomic_store_explicit(&t->area->unreported_ms, ms, memory_order_relaxed);
}

/* ---- a client's side ---- */

struct fp_lease_view {
    atomic_uint references;
    atomic_bool superseded;
    const struct generations *area;
    _Atomic uint8_t *referenced;
    int alive;                         /* keeps the pipe in the set */
    int events;                        /* an epoll set of the daemon's queues of events */
    struct fp_answer_view *answers;    /* may be NULL, */
    struct fp_contents_view *contents; /* as this */
    uint32_t n;
    uint64_t number;
    dev_t dev; /* of the generations' memfd */
    ino_t ino;
};

static atomic_uint_fast64_t last_number;

struct fp_lease_view *fp_lease_view_create(int generations, int referenced, int events, int alive)
{
    size_t size = fp_area_sealed_size(generations), n = fp_area_sealed_size(referenced);
    struct epoll_event event;
    struct fp_lease_view *v;
    struct stat st;

    if (n <= 1 || n > FP_MAX_SLOTS + 1u || size != area_size((uint32_t)n) || fstat(generations, &st) == -1) {
        errno = EPROTO;
        return NULL;
    }
    v = calloc(1, sizeof(*v));
    if (v == NULL)
        return NULL;
    atomic_init(&v->references, 1);
    v->n = (uint32_t)n;
    v->number = atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
    v->dev = st.st_dev;
    v->ino = st.st_ino;
    v->events = fcntl(events, F_DUPFD_CLOEXEC, 0);
    v->alive = fcntl(alive, F_DUPFD_CLOEXEC, 0);
    v->area = mmap(NULL, size, PROT_READ, MAP_SHARED, generations, 0);
    v->referenced = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, referenced, 0);
    if (epoll_wait(v->events, &event, 1, 0) != -1 && v->alive != -1 && v->area != MAP_FAILED
        && (void *)v->referenced != MAP_FAILED && v->area->magic == MAGIC && v->area->n == v->n)
        return v;
    if (v->area != MAP_FAILED)
        munmap((void *)v->area, size);
    if ((void *)v->referenced != MAP_FAILED)
        munmap((void *)v->referenced, n);
    fp_close(&v->events);
    fp_close(&v->alive);
    free(v);
    errno = EPROTO;
    return NULL;
}

void fp_lease_view_attach(struct fp_lease_view *v, struct fp_answer_view *answers,
                          struct fp_contents_view *contents)
{
    v->answers = answers;
    v->contents = contents;
}

const struct fp_answer_view *fp_lease_view_answers(const struct fp_lease_view *v)
{
    return v->answers;
}

const struct fp_contents_view *fp_lease_view_contents(const struct fp_lease_view *v)
{
    return v->contents;
}

uint64_t fp_lease_view_unreported_ms(const struct fp_lease_view *v)
{
    return atomic_load_explicit(&v->area->unreported_ms, memory_order_relaxed);
}

uint64_t fp_lease_view_number(const struct fp_lease_view *v)
{
    return v != NULL ? v->number : 0;
}

void fp_lease_view_supersede(struct fp_lease_view *v)
{
    atomic_store_explicit(&v->superseded, true, memory_order_relaxed);
}

bool fp_lease_view_is_superseded(const struct fp_lease_view *v)
{
    return atomic_load_explicit(&v->superseded, memory_order_relaxed);
}

bool fp_lease_view_is_of(const struct fp_lease_view *v, int generations)
{
    struct stat st;

    return fstat(generations, &st) == 0 && st.st_dev == v->dev && st.st_ino == v->ino;
}

void fp_lease_view_retain(struct fp_lease_view *v)
{
    atomic_fetch_add_explicit(&v->references, 1, memory_order_relaxed);
}

void fp_lease_view_release(struct fp_lease_view **vp)
{
    struct fp_lease_view *v = *vp;

    *vp = NULL;
    /* The uses of other threads end before the last one unmaps. */
    if (v == NULL || atomic_fetch_sub_explicit(&v->references, 1, memory_order_acq_rel) != 1)
        return;
    munmap((void *)v->area, area_size(v->n));
    munmap((void *)v->referenced, v->n);
    fp_answer_view_destroy(&v->answers);
    fp_contents_view_destroy(&v->contents);
    fp_close(&v->events);
    fp_close(&v->alive);
    free(v);
}

/* The queue comes first: one that is empty because the daemon has just read it leaves busy behind.
 * Acquire: words are read after both.  epoll_wait() would not do: with a timeout of 0
 * it may find nothing while another thread looks at the same set. */
static bool nothing_waits(const struct fp_lease_view *v)
{
    struct pollfd events = { .fd = v->events, .events = POLLIN };

    return poll(&events, 1, 0) == 0 && atomic_load_explicit(&v->area->busy, memory_order_acquire) == 0;
}

bool fp_lease_view_is_overdue(const struct fp_lease_view *v, uint64_t now_ms)
{
    return now_ms >= atomic_load_explicit(&v->area->current_until_ms, memory_order_acquire);
}

bool fp_lease_view_is_current(const struct fp_lease_view *v, uint64_t now_ms)
{
    /* The daemon, which runs before others, may only wait for this processor. */
    if (!nothing_waits(v)) {
        sched_yield();
        if (!nothing_waits(v))
            return false;
    }
    return !fp_lease_view_is_overdue(v, now_ms);
}

bool fp_lease_view_is_alive(const struct fp_lease_view *v, uint64_t now_ms, uint32_t silence_ms)
{
    const uint64_t until = atomic_load_explicit(&v->area->current_until_ms, memory_order_relaxed);

    return until != 0 && (now_ms < until || now_ms - until < silence_ms);
}

/* *word_r is set if the slot has that generation. */
static bool has_generation(const struct fp_lease_view *v, uint32_t slot, uint32_t generation, uint64_t *word_r)
{
    if (slot == FP_NO_SLOT || slot >= v->n || generation == EXHAUSTED)
        return false;
    *word_r = atomic_load_explicit(&v->area->words[slot], memory_order_acquire);
    return generation_of(*word_r) == generation;
}

uint64_t fp_lease_view_ms_left(const struct fp_lease_view *v, uint32_t slot, uint32_t generation, uint64_t now_ms)
{
    uint64_t word;
    uint32_t ahead;

    if (!has_generation(v, slot, generation, &word))
        return 0;
    ahead = (uint32_t)word - ticks(now_ms);
    return ahead <= FP_SLOT_TICKS_AHEAD ? (uint64_t)ahead * FP_SLOT_TICK_MS : 0;
}

bool fp_lease_view_is_valid(const struct fp_lease_view *v, uint32_t slot, uint32_t generation,
                            uint64_t now_ms)
{
    return fp_lease_view_ms_left(v, slot, generation, now_ms) > 0;
}

bool fp_lease_view_is_known(const struct fp_lease_view *v, uint32_t slot, uint32_t generation)
{
    uint64_t word;

    return has_generation(v, slot, generation, &word);
}

static void set_referenced(const struct fp_lease_view *v, uint32_t slot)
{
    /* The read comes first: a cache line that all write would travel between processors. */
    if (slot < v->n && atomic_load_explicit(&v->referenced[slot], memory_order_relaxed) == 0)
        atomic_store_explicit(&v->referenced[slot], 1, memory_order_relaxed);
}

void fp_lease_view_reference(const struct fp_lease_view *v, uint32_t slot)
{
    set_referenced(v, slot);
    set_referenced(v, FP_NO_SLOT);
}
