/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "common/lease_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/packet.h"

#define MAGIC 0x46505333u    /* "FPS3": another layout, another number */

#define WORN  UINT32_MAX     /* a generation that holds for nobody */

/* The first area.  Slot 0's byte in the second says that leases are in use. */
struct generations {
    uint32_t magic, n;
    _Atomic uint64_t fresh_until_ms;
    _Atomic uint64_t words[];   /* generation << 32 | until, in ticks */
};

struct fp_lease_table {
    struct generations *table;
    _Atomic uint8_t *marks;
    int table_fd, marks_fd;
    uint32_t n;               /* slots, slot 0 included; the table's own number could
                                 not be trusted if anybody else could write it */
    uint32_t unused;          /* the first that was never taken */
    uint32_t n_free;
    uint32_t free[];          /* a stack of those that were given back */
};

static size_t table_size(uint32_t n)
{
    return sizeof(struct generations) + n * sizeof(_Atomic uint64_t);
}

/* A sealed memfd of that size, mapped for us to write. */
static void *make_area(const char *name, size_t size, unsigned seals, int *fd_r)
{
    void *p = MAP_FAILED;
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd != -1 && ftruncate(fd, (off_t)size) == 0)
        p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p != MAP_FAILED && fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SHRINK | F_SEAL_GROW
                                 | F_SEAL_SEAL) == -1) {
        munmap(p, size);
        p = MAP_FAILED;
    }
    if (p == MAP_FAILED)
        fp_close(&fd);
    *fd_r = fd;
    return p == MAP_FAILED ? NULL : p;
}

struct fp_lease_table *fp_lease_table_create(uint32_t n)
{
    struct fp_lease_table *s = malloc(sizeof(*s) + n * sizeof(s->free[0]));

    if (s == NULL)
        return NULL;
    s->n = n + 1;
    s->table_fd = s->marks_fd = -1;
    s->marks = NULL;
    s->table = make_area("flashpache-generations", table_size(s->n), F_SEAL_FUTURE_WRITE,
                         &s->table_fd);
    if (s->table != NULL)
        s->marks = make_area("flashpache-marks", s->n, 0, &s->marks_fd);
    if (s->marks == NULL) {
        fp_lease_table_destroy(&s);
        return NULL;
    }
    s->table->magic = MAGIC;
    s->table->n = s->n;
    s->unused = FP_NO_SLOT + 1;
    s->n_free = 0;
    return s;
}

void fp_lease_table_destroy(struct fp_lease_table **sp)
{
    struct fp_lease_table *s = *sp;

    *sp = NULL;
    if (s == NULL)
        return;
    if (s->table != NULL)
        munmap(s->table, table_size(s->n));
    if (s->marks != NULL)
        munmap((void *)s->marks, s->n);
    fp_close(&s->table_fd);
    fp_close(&s->marks_fd);
    free(s);
}

void fp_lease_table_retire(struct fp_lease_table *s)
{
    atomic_store_explicit(&s->table->fresh_until_ms, 0, memory_order_release);
}

uint32_t fp_lease_table_count(const struct fp_lease_table *s)
{
    return s->n - 1;
}

int fp_lease_table_generations_fd(const struct fp_lease_table *s)
{
    return s->table_fd;
}

int fp_lease_table_referenced_fd(const struct fp_lease_table *s)
{
    return s->marks_fd;
}

uint32_t fp_lease_table_take(struct fp_lease_table *s)
{
    if (s->n_free > 0)
        return s->free[--s->n_free];
    return s->unused < s->n ? s->unused++ : FP_NO_SLOT;
}

static uint32_t generation_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static uint32_t ticks(uint64_t ms)
{
    return (uint32_t)(ms / FP_SLOT_TICK_MS);
}

/* Nobody else writes them: what is read here is what was written last. */
static uint64_t word_of(const struct fp_lease_table *s, uint32_t slot)
{
    return atomic_load_explicit(&s->table->words[slot], memory_order_relaxed);
}

/* Release: whoever sees the new word and asks sees what it is for; with
 * fp_lease_table_heartbeat() also the order that lease_table.h promises. */
static void set_word(struct fp_lease_table *s, uint32_t slot, uint32_t generation, uint32_t until)
{
    atomic_store_explicit(&s->table->words[slot], (uint64_t)generation << 32 | until,
                          memory_order_release);
}

uint32_t fp_lease_table_generation(const struct fp_lease_table *s, uint32_t slot)
{
    return generation_of(word_of(s, slot));
}

bool fp_lease_table_is_exhausted(const struct fp_lease_table *s, uint32_t slot)
{
    return slot != FP_NO_SLOT && fp_lease_table_generation(s, slot) == WORN;
}

void fp_lease_table_invalidate(struct fp_lease_table *s, uint32_t slot)
{
    uint64_t word = word_of(s, slot);

    if (slot != FP_NO_SLOT && generation_of(word) != WORN)
        set_word(s, slot, generation_of(word) + 1, (uint32_t)word);
}

void fp_lease_table_set_expiry(struct fp_lease_table *s, uint32_t slot, uint64_t expires_ms)
{
    if (slot != FP_NO_SLOT)
        set_word(s, slot, fp_lease_table_generation(s, slot), ticks(expires_ms));
}

void fp_lease_table_release(struct fp_lease_table *s, uint32_t slot)
{
    if (slot == FP_NO_SLOT)
        return;
    fp_lease_table_invalidate(s, slot);
    if (!fp_lease_table_is_exhausted(s, slot))
        s->free[s->n_free++] = slot;
}

bool fp_lease_table_take_referenced(struct fp_lease_table *s, uint32_t slot)
{
    /* A hint: a mark that is lost between the two makes an entry go earlier. */
    if (slot == FP_NO_SLOT || atomic_load_explicit(&s->marks[slot], memory_order_relaxed) == 0)
        return false;
    atomic_store_explicit(&s->marks[slot], 0, memory_order_relaxed);
    return true;
}

bool fp_lease_table_take_use(struct fp_lease_table *s)
{
    bool used = atomic_load_explicit(&s->marks[FP_NO_SLOT], memory_order_relaxed) != 0;

    if (used)
        atomic_store_explicit(&s->marks[FP_NO_SLOT], 0, memory_order_relaxed);
    return used;
}

void fp_lease_table_heartbeat(struct fp_lease_table *s, uint64_t now_ms)
{
    /* After every generation that was changed: see lease_table.h. */
    atomic_store_explicit(&s->table->fresh_until_ms, now_ms + FP_HEARTBEAT_MS,
                          memory_order_release);
}

/* ---- an asker's side ---- */

struct fp_lease_view {
    atomic_uint references;
    const struct generations *table;
    _Atomic uint8_t *marks;
    uint32_t n;
    dev_t dev;                /* of the generations' memfd */
    ino_t ino;
};

/* The size of a memfd that cannot become smaller; 0 where it could. */
static size_t sealed_size(int fd)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals == -1 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &st) == -1 || st.st_size < 0)
        return 0;
    return (size_t)st.st_size;
}

static bool fits(size_t table, size_t marks)
{
    return marks > 1 && marks <= FP_MAX_SLOTS + 1u && table == table_size((uint32_t)marks);
}

struct fp_lease_view *fp_lease_view_create(int generations, int marks)
{
    size_t size = sealed_size(generations), n = sealed_size(marks);
    struct fp_lease_view *v;
    struct stat st;

    if (!fits(size, n) || fstat(generations, &st) == -1) {
        errno = EPROTO;
        return NULL;
    }
    v = malloc(sizeof(*v));
    if (v == NULL)
        return NULL;
    atomic_init(&v->references, 1);
    v->n = (uint32_t)n;
    v->dev = st.st_dev;
    v->ino = st.st_ino;
    v->table = mmap(NULL, size, PROT_READ, MAP_SHARED, generations, 0);
    v->marks = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, marks, 0);
    if (v->table != MAP_FAILED && (void *)v->marks != MAP_FAILED
        && v->table->magic == MAGIC && v->table->n == v->n)
        return v;
    if (v->table != MAP_FAILED)
        munmap((void *)v->table, size);
    if ((void *)v->marks != MAP_FAILED)
        munmap((void *)v->marks, n);
    free(v);
    errno = EPROTO;
    return NULL;
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
    /* All use by other threads is over before the last one unmaps. */
    if (v == NULL
        || atomic_fetch_sub_explicit(&v->references, 1, memory_order_acq_rel) != 1)
        return;
    munmap((void *)v->table, table_size(v->n));
    munmap((void *)v->marks, v->n);
    free(v);
}

bool fp_lease_view_is_current(const struct fp_lease_view *v, uint64_t now_ms)
{
    /* Acquire: generations are read after it. */
    return now_ms < atomic_load_explicit(&v->table->fresh_until_ms, memory_order_acquire);
}

bool fp_lease_view_is_alive(const struct fp_lease_view *v, uint64_t now_ms, uint32_t silence_ms)
{
    const uint64_t until = atomic_load_explicit(&v->table->fresh_until_ms, memory_order_relaxed);

    return until != 0 && (now_ms < until || now_ms - until < silence_ms);
}

bool fp_lease_view_is_valid(const struct fp_lease_view *v, uint32_t slot, uint32_t generation,
                         uint64_t now_ms)
{
    uint64_t word;

    if (slot == FP_NO_SLOT || slot >= v->n || generation == WORN)
        return false;
    word = atomic_load_explicit(&v->table->words[slot], memory_order_acquire);
    return generation_of(word) == generation && (int32_t)((uint32_t)word - ticks(now_ms)) > 0;
}

static void set_mark(const struct fp_lease_view *v, uint32_t slot)
{
    /* Looked at first: a line that all write would travel between processors. */
    if (slot < v->n && atomic_load_explicit(&v->marks[slot], memory_order_relaxed) == 0)
        atomic_store_explicit(&v->marks[slot], 1, memory_order_relaxed);
}

void fp_lease_view_reference(const struct fp_lease_view *v, uint32_t slot)
{
    set_mark(v, slot);
    set_mark(v, FP_NO_SLOT);
}
