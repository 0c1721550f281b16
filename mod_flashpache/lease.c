/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lease.h"

#include <apr_atomic.h>
#include <apr_strings.h>
#include <limits.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/answer_table.h"
#include "common/clock.h"
#include "common/lease_table.h"
#include "common/packet.h"
#include "common/wire.h"
#include "file.h"
#include "sweeper.h"

#define SWEEP_MS          8000u /* between two looks at all leases, */
#define SWEEP_OPEN_MS     1000u /* and where some have open files: these may be removed */
#define DESCRIPTORS_SHARE 4 /* leases may have one in so many descriptors of the process */
#define OWN_PART          2 /* and responses half as many beside these */

/* A step's slot in the lease table, and the generation that the answer gave for it. */
struct step_slot {
    apr_uint32_t slot, generation;
};

/* The steps of a directory and those above it. */
struct fp_dir_chain {
    struct fp_item item;
    struct fp_lease_view *view;
    struct fp_dir_chain *parent; /* has all steps but the last; NULL: there is only one */
    unsigned n, n_names;
    struct step_slot *slots; /* n of them; they lie apart from the steps because every use reads them */
    const struct fp_step *steps[];
};

/*
 * A child without threads keeps only open files, and what it is asked for all the time. All children
 * have the rest in shared memory. Copies of it in a thousand children would push the files themselves
 * out of memory. Nor would they lie in a processor's caches: to read the shared ones costs less.
 */
#define ALONE_MOST ((apr_size_t)64 * 1024) /* bytes of leases without an open file */

/* Of recent requests for open files: the lower bits of a hash choose the entry, which holds the upper
 * ones. It is made of the step's slot, another one for each entry of the daemon's cache. NULL: threads
 * share the leases, and each answer makes one. */
#define SEEN   4096u
#define SPREAD 0x9e3779b1u /* 2^32 by the golden ratio: each bit of the slot changes the upper bits */
static apr_uint16_t *seen;

/* The hashes of the last other answers, about as many as one page may be asked about. */
#define LAST 8u
static unsigned last_hashes[LAST], n_last;

static struct fp_table *leases, *chains;
static int most_leases;
static unsigned most_descriptors;

static unsigned sweep(void);

void fp_lease_init(apr_pool_t *p, int limit, apr_size_t bytes, bool alone)
{
    struct rlimit rl;

    most_leases = limit;
    most_descriptors = UINT_MAX;
    if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur / DESCRIPTORS_SHARE < UINT_MAX)
        most_descriptors = (unsigned)(rl.rlim_cur / DESCRIPTORS_SHARE);
    fp_file_set_own_most(most_descriptors / OWN_PART);
    seen = alone ? apr_pcalloc(p, SEEN * sizeof(*seen)) : NULL;
    leases = fp_table_create(p, limit, alone && bytes > ALONE_MOST ? ALONE_MOST : bytes);
    chains = fp_table_create(p, limit, SIZE_MAX);
    fp_sweeper_init(p, sweep);
}

/* A lease that is not kept stands in its request's memory. */
static void end(struct fp_item *item)
{
    struct fp_lease *lease = (struct fp_lease *)item;

    if (lease->chain != NULL)
        fp_item_release(&lease->chain->item);
    fp_file_release(&lease->file);
    fp_lease_view_release(&lease->view);
}

static void destroy(struct fp_item *item)
{
    struct fp_lease *lease = (struct fp_lease *)item;

    free(atomic_load_explicit(&lease->headers.etag, memory_order_relaxed));
    end(item);
    free(lease);
}

static void destroy_chain(struct fp_item *item)
{
    struct fp_dir_chain *chain = (struct fp_dir_chain *)item;

    if (chain->parent != NULL)
        fp_item_release(&chain->parent->item);
    fp_lease_view_release(&chain->view);
    free(chain);
}

/* Where step i stands, or will stand once it is filled in. */
static const struct fp_step *place_of(const struct fp_lease *lease, unsigned i)
{
    if (i + 1 == lease->n_steps)
        return lease->last;
    return lease->answer != NULL ? &lease->answer->steps[i] : lease->chain->steps[i];
}

struct fp_outline fp_lease_outline(const struct fp_lease *lease, unsigned i)
{
    return lease->answer != NULL ? fp_answer_outline(lease->answer, i) : fp_step_outline(place_of(lease, i));
}

static bool fill_in(const struct fp_lease_view *view, const char *path, struct fp_answer *a)
{
    return a->outline == NULL
           || (view != NULL && fp_answer_view_fill_in(fp_lease_view_answers(view), path, a));
}

bool fp_lease_fill_in(const struct fp_lease *lease)
{
    return lease->answer == NULL || fill_in(lease->view, lease->path, lease->answer);
}

const struct fp_step *fp_lease_step(const struct fp_lease *lease, unsigned i)
{
    return i + 1 == lease->n_steps || fp_lease_fill_in(lease) ? place_of(lease, i) : NULL;
}

static bool is_chain_valid(const struct fp_dir_chain *chain, apr_uint64_t now)
{
    unsigned i = chain->n;

    while (i-- > 0) {
        const struct step_slot *s = &chain->slots[i];

        if (!fp_lease_view_is_valid(chain->view, s->slot, s->generation, now))
            return false;
    }
    return true;
}

/* Looks at the last step first: most changes concern files. */
static bool is_valid(const struct fp_lease *lease, apr_uint64_t now)
{
    return fp_lease_view_is_valid(lease->view, lease->last->slot, lease->last->generation, now)
           && (lease->chain == NULL || is_chain_valid(lease->chain, now));
}

/* A lease on former tables would keep their memory and descriptors until its time is over. */
static bool is_expired(const struct fp_item *item)
{
    const struct fp_lease *lease = (const struct fp_lease *)item;

    return fp_lease_view_is_superseded(lease->view) || !is_valid(lease, fp_now_ms());
}

static bool is_chain_expired(const struct fp_item *item)
{
    const struct fp_dir_chain *chain = (const struct fp_dir_chain *)item;

    return fp_lease_view_is_superseded(chain->view) || !is_chain_valid(chain, fp_now_ms());
}

/* Drops what has expired, and closes its files. In memory that was not used lately each look at a lease costs a
 * thousand children more than their requests do, so it is not done often. */
static unsigned sweep(void)
{
    fp_table_drop_if(leases, is_expired, UINT_MAX);
    fp_table_drop_if(chains, is_chain_expired, UINT_MAX);
    if (fp_table_count(leases) == 0)
        return UINT_MAX;
    return fp_file_descriptors() > 0 ? SWEEP_OPEN_MS : SWEEP_MS;
}

/* Marks the step above as well: through its record other children find the answer (answer_table.h). */
static void mark(const struct fp_lease *lease)
{
    fp_lease_view_reference(lease->view, lease->last->slot);
    if (lease->chain != NULL)
        fp_lease_view_reference(lease->view, lease->chain->slots[lease->chain->n - 1].slot);
}

struct fp_lease *fp_lease_find(const void *owner, const char *path, apr_size_t len, bool fresh)
{
    char key[FP_ITEM_KEY_SIZE(FP_MAX_PATH)];
    apr_uint64_t now = fp_now_ms();
    struct fp_lease *lease;
    apr_size_t key_len;

    key_len = fp_item_key(key, owner, path, len);
    lease = (struct fp_lease *)fp_table_get(leases, key, key_len);
    if (lease == NULL)
        return NULL;
    /* No lease is used while the daemon's heartbeat is overdue. */
    if ((!fresh || lease->watched) && fp_lease_view_is_current(lease->view, now) && is_valid(lease, now)) {
        mark(lease);
        return lease;
    }
    /* An expired lease goes; a lease that is merely not current may be used again once the daemon
     * has caught up. */
    if (is_expired(&lease->item))
        fp_table_drop(leases, &lease->item);
    fp_item_release(&lease->item);
    return NULL;
}

bool fp_lease_is_unchanged(const struct fp_lease *lease)
{
    const apr_uint64_t now = fp_now_ms();
    unsigned i = lease->n_steps;

    if (!fp_lease_view_is_current(lease->view, now))
        return false;
    while (i-- > 0) {
        const struct fp_outline o = fp_lease_outline(lease, i);

        if (!fp_lease_view_is_valid(lease->view, o.slot, o.generation, now))
            return false;
    }
    return true;
}

/* ---- the chain of directories ---- */

static apr_size_t aligned(apr_size_t size)
{
    return (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

/* Copies the step to *to, and advances *to behind the copy. */
static const struct fp_step *pack(char **to, const struct fp_step *s, unsigned n_names)
{
    const struct fp_step *copy = memcpy(*to, s, fp_step_size(s, n_names));

    *to += aligned(fp_step_size(s, n_names));
    return copy;
}

/* Makes a chain of the answer's first n steps. Takes the reference to the parent, which has the
 * first n - 1. */
static struct fp_dir_chain *create_chain(const struct fp_answer *a, unsigned n, struct fp_dir_chain *parent,
                                         const char *key, apr_size_t key_len, struct fp_lease_view *view)
{
    const struct fp_step *own = &a->steps[n - 1];
    apr_size_t head =
        aligned(sizeof(struct fp_dir_chain) + n * sizeof(struct fp_step *) + n * sizeof(struct step_slot));
    struct fp_dir_chain *chain = malloc(head + aligned(fp_step_size(own, a->n_names)) + key_len);
    char *at;

    if (chain == NULL) {
        if (parent != NULL)
            fp_item_release(&parent->item);
        return NULL;
    }
    chain->view = view;
    if (view != NULL)
        fp_lease_view_retain(view);
    chain->parent = parent;
    chain->n = n;
    chain->n_names = a->n_names;
    chain->slots = (struct step_slot *)(chain->steps + n);
    for (unsigned i = 0; i < n; i++)
        chain->slots[i] = (struct step_slot){ a->steps[i].slot, a->steps[i].generation };
    if (parent != NULL)
        memcpy(chain->steps, parent->steps, (n - 1) * sizeof(chain->steps[0]));
    at = (char *)chain + head;
    chain->steps[n - 1] = pack(&at, own, a->n_names);
    fp_item_init(&chain->item, memcpy(at, key, key_len), key_len, destroy_chain);
    return chain;
}

/* True if the chain has the answer's first n steps. */
static bool is_same_chain(const struct fp_dir_chain *chain, const struct fp_answer *a, unsigned n,
                          const struct fp_lease_view *view)
{
    if (chain->view != view || chain->n != n || chain->n_names != a->n_names)
        return false;
    for (unsigned i = 0; i < n; i++) {
        if (chain->slots[i].slot != a->steps[i].slot || chain->slots[i].generation != a->steps[i].generation)
            return false;
    }
    return true;
}

/* A directory's key is a prefix of the keys of all directories below it. */
static apr_size_t chain_key_len(const struct fp_answer *a, unsigned n)
{
    return FP_ITEM_KEY_SIZE(a->steps[n - 1].end);
}

/* The chain to the answer's last directory, retained for the caller; NULL when out of memory.
 * Leases on other paths share it. */
static struct fp_dir_chain *chain_for(const void *owner, const char *path, const struct fp_answer *a,
                                      struct fp_lease_view *view)
{
    const unsigned n = a->n_steps - 1;
    char key[FP_ITEM_KEY_SIZE(FP_MAX_PATH)];
    struct fp_dir_chain *chain = NULL;
    unsigned known = n;

    fp_item_key(key, owner, path, a->steps[n - 1].end);
    for (; known > 0; known--) {
        chain = (struct fp_dir_chain *)fp_table_get(chains, key, chain_key_len(a, known));
        if (chain != NULL && is_same_chain(chain, a, known, view))
            break;
        if (chain != NULL)
            fp_item_release(&chain->item);
        chain = NULL;
    }
    for (unsigned i = known + 1; i <= n; i++) {
        chain = create_chain(a, i, chain, key, chain_key_len(a, i), view);
        if (chain == NULL)
            return NULL;
        fp_table_put(chains, &chain->item);
    }
    return chain;
}

/* ---- the lease ---- */

unsigned fp_lease_count(void)
{
    return fp_table_count(leases);
}

apr_time_t fp_lease_time(const struct fp_time *t)
{
    return fp_file_time(t->sec, t->nsec);
}

const char *fp_lease_etag(const struct fp_lease *lease, unsigned bits)
{
    /* Acquire pairs with the store that published the text. */
    const struct fp_etag *etag = atomic_load_explicit(&lease->headers.etag, memory_order_acquire);

    return etag != NULL && etag->bits == bits ? etag->text : NULL;
}

void fp_lease_set_etag(struct fp_lease *lease, unsigned bits, const char *text)
{
    struct fp_etag *none = NULL, *etag = malloc(sizeof(*etag) + strlen(text) + 1);

    if (etag == NULL)
        return;
    etag->bits = bits;
    strcpy(etag->text, text);
    if (!atomic_compare_exchange_strong_explicit(&lease->headers.etag, &none, etag, memory_order_release,
                                                 memory_order_relaxed))
        free(etag);
}

/*
 * A content is read at once where others will use it, too, or where the file system could not answer
 * instead of it. Otherwise its response reads it, as many do without: those to a client that has the
 * file.
 */
static struct fp_file *content_of(const struct fp_answer *a, const struct fp_lease_view *view, bool kept)
{
    const struct fp_step *last = &a->steps[a->n_steps - 1];

    if (view == NULL)
        return NULL;
    if (!kept && a->source != FP_SOURCE_STALE)
        return fp_file_unread();
    return fp_file_create_content(fp_lease_view_contents(view), a->content_at,
                                  (apr_size_t)fp_step_target(last)->size);
}

/* NULL: the answer has no file, memory is out, or the content is gone. Takes the descriptor. */
static struct fp_file *file_of(struct fp_answer *a, const struct fp_lease_view *view, bool kept)
{
    int fd = a->fd;

    a->fd = -1;
    if (a->content)
        return content_of(a, view, kept);
    return fd != -1 ? fp_file_create(fd, a->local) : NULL;
}

/* Makes a lease without file and chain. pool: it is not kept, and refers to the answer's own steps; NULL:
 * it is, and a chain will hold its steps but the last. */
static struct fp_lease *create(apr_pool_t *pool, const void *owner, const char *path, apr_size_t len,
                               struct fp_answer *a, struct fp_lease_view *view)
{
    const struct fp_step *last = &a->steps[a->n_steps - 1];
    const apr_size_t head =
        aligned(pool == NULL ? sizeof(struct fp_lease) : offsetof(struct fp_lease, headers));
    const apr_size_t step = pool == NULL ? aligned(fp_step_size(last, a->n_names)) : 0;
    const apr_size_t size = head + step + FP_ITEM_KEY_SIZE(len);
    struct fp_lease *lease = pool == NULL ? malloc(size) : apr_palloc(pool, size);
    char *at;

    if (lease == NULL)
        return NULL;
    at = (char *)lease + head;
    memset(lease, 0, head);
    lease->answer = pool == NULL ? NULL : a;
    lease->last = pool == NULL ? pack(&at, last, a->n_names) : last;
    fp_item_init(&lease->item, at, fp_item_key(at, owner, path, len), pool == NULL ? destroy : end);
    if (seen != NULL && a->fd == -1)
        lease->item.bytes = size;
    lease->view = view;
    lease->path = at + FP_ITEM_KEY_SIZE(0);
    lease->path_len = len;
    lease->n_steps = a->n_steps;
    lease->n_names = a->n_names;
    lease->no_access_files = fp_answer_lacks_access_files(a);
    lease->stale = a->source == FP_SOURCE_STALE;
    lease->watched = a->watched;
    lease->unopened = fp_answer_is_unopened(a);
    return lease;
}

/* True for the second recent request for an open file. */
static bool is_asked_again(unsigned hash)
{
    const apr_uint16_t mark = (apr_uint16_t)(hash >> 16 | 1);

    if (seen[hash % SEEN] == mark)
        return true;
    seen[hash % SEEN] = mark;
    return false;
}

/* The same at once, for any other path. */
static bool is_asked_at_once(unsigned hash)
{
    for (unsigned i = 0; i < LAST; i++) {
        if (last_hashes[i] == hash)
            return true;
    }
    last_hashes[n_last++ % LAST] = hash;
    return false;
}

static bool is_worth_keeping(const struct fp_answer *a)
{
    const struct fp_step *last = &a->steps[a->n_steps - 1];
    unsigned hash;

    if (seen == NULL)
        return true;
    hash = (last->slot ^ last->generation << 24) * SPREAD;
    return a->fd != -1 ? is_asked_again(hash) : is_asked_at_once(hash);
}

static bool may_keep(const struct fp_answer *a, const struct fp_lease_view *view)
{
    return a->leasable && view != NULL && most_leases > 0
           && (a->fd == -1 || fp_file_descriptors() < most_descriptors);
}

static void format_headers(struct fp_headers *headers, const struct fp_meta *m)
{
    apr_rfc822_date(headers->last_modified, fp_lease_time(&m->mtime));
    apr_snprintf(headers->length, sizeof(headers->length), "%" APR_UINT64_T_FMT, m->size);
}

struct fp_lease *fp_lease_create(apr_pool_t *pool, const void *owner, const char *path, apr_size_t len,
                                 struct fp_answer *a, struct fp_lease_view *view)
{
    const bool kept = may_keep(a, view) && is_worth_keeping(a) && fill_in(view, path, a);
    const bool has_file = a->content || a->fd != -1;
    struct fp_lease *lease = create(kept ? NULL : pool, owner, path, len, a, view);

    if (lease == NULL) {
        fp_close(&a->fd);
        fp_lease_view_release(&view);
        return NULL;
    }
    lease->file = file_of(a, view, kept);
    lease->content_at = a->content_at;
    if (lease->file == NULL && has_file) {
        fp_item_release(&lease->item);
        return NULL;
    }
    if (kept && lease->file != NULL) {
        const struct fp_meta *m = fp_step_target(lease->last);

        format_headers(&lease->headers, m);
        lease->has_headers = true;
        if (fp_file_is_content(lease->file))
            lease->item.bytes += (apr_size_t)m->size;
    }
    if (kept && a->n_steps > 1) {
        lease->chain = chain_for(owner, path, a, view);
        if (lease->chain == NULL) {
            fp_item_release(&lease->item);
            return NULL;
        }
    }
    if (kept) {
        fp_table_put(leases, &lease->item);
        fp_sweeper_wake(lease->file != NULL && fp_file_descriptor(lease->file) != -1 ? SWEEP_OPEN_MS : SWEEP_MS);
    }
    return lease;
}
