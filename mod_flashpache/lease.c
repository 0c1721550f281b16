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

#include "common/clock.h"
#include "common/lease_table.h"
#include "common/packet.h"
#include "common/wire.h"
#include "file.h"

#define SWEEP_MS          1000u
#define SWEEP_MOST        10000u
#define DESCRIPTORS_SHARE 4    /* one in so many descriptors may be a lease's */

/* Where the shared table tells of a step, and what stood there. */
struct place {
    apr_uint32_t slot, generation;
};

/* A directory, and those on the way to it. */
struct fp_dir_chain {
    struct fp_item item;
    struct fp_lease_view *view;
    struct fp_dir_chain *parent;        /* has the steps but the last; NULL: there is only one */
    unsigned n, n_names;
    struct place *places;         /* n of them, apart from the steps: they are what
                                     every use looks at */
    const struct fp_step *steps[];
};

/* What was asked about lately: by the hash's lower bits its upper ones. */
#define SEEN 4096u
static apr_uint16_t *seen;        /* NULL: threads share what is kept, and all of it is */

static struct fp_table *leases, *ways;
static int most_leases;
static unsigned most_descriptors;

void fp_lease_init(apr_pool_t *p, int limit, bool alone)
{
    struct rlimit rl;

    most_leases = limit;
    most_descriptors = UINT_MAX;
    if (getrlimit(RLIMIT_NOFILE, &rl) == 0 && rl.rlim_cur / DESCRIPTORS_SHARE < UINT_MAX)
        most_descriptors = (unsigned)(rl.rlim_cur / DESCRIPTORS_SHARE);
    seen = alone ? apr_pcalloc(p, SEEN * sizeof(*seen)) : NULL;
    leases = fp_table_create(p, limit);
    ways = fp_table_create(p, limit);
}

static void destroy(struct fp_item *item)
{
    struct fp_lease *lease = (struct fp_lease *)item;

    if (lease->way != NULL)
        fp_item_release(&lease->way->item);
    fp_file_release(&lease->file);
    free(atomic_load_explicit(&lease->headers.etag, memory_order_relaxed));
    fp_lease_view_release(&lease->view);
    free(lease);
}

static void destroy_way(struct fp_item *item)
{
    struct fp_dir_chain *way = (struct fp_dir_chain *)item;

    if (way->parent != NULL)
        fp_item_release(&way->parent->item);
    fp_lease_view_release(&way->view);
    free(way);
}

const struct fp_step *fp_lease_step(const struct fp_lease *lease, unsigned i)
{
    return i + 1 < lease->n_steps ? lease->way->steps[i] : lease->last;
}

static bool way_holds(const struct fp_dir_chain *way, apr_uint64_t now)
{
    unsigned i = way->n;

    while (i-- > 0) {
        if (!fp_lease_view_is_valid(way->view, way->places[i].slot, way->places[i].generation, now))
            return false;
    }
    return true;
}

/* The last step first: most changes are of files. */
static bool holds(const struct fp_lease *lease, apr_uint64_t now)
{
    return fp_lease_view_is_valid(lease->view, lease->last->slot, lease->last->generation, now)
        && (lease->way == NULL || way_holds(lease->way, now));
}

/* May it be used?  Without a daemon that says it is up to date, no. */
static bool is_in_force(const struct fp_lease *lease, apr_uint64_t now)
{
    return fp_lease_view_is_current(lease->view, now) && holds(lease, now);
}

static bool is_over(const struct fp_item *item)
{
    const struct fp_lease *lease = (const struct fp_lease *)item;

    return !holds(lease, fp_now_ms());
}

static bool is_way_over(const struct fp_item *item)
{
    return !way_holds((const struct fp_dir_chain *)item, fp_now_ms());
}

static void sweep(apr_uint32_t now)
{
    static apr_uint32_t last;
    apr_uint32_t before = apr_atomic_read32(&last);

    if (now - before < SWEEP_MS || apr_atomic_cas32(&last, now, before) != before)
        return;
    fp_table_drop_if(leases, is_over, SWEEP_MOST);
    fp_table_drop_if(ways, is_way_over, SWEEP_MOST);
}

static apr_size_t make_key(char *key, const void *owner, const char *path, apr_size_t len)
{
    memcpy(key, &owner, sizeof(owner));
    memcpy(key + sizeof(owner), path, len);
    return sizeof(owner) + len;
}

struct fp_lease *fp_lease_find(const void *owner, const char *path, apr_size_t len)
{
    char key[sizeof(owner) + FP_MAX_PATH];
    apr_uint64_t now = fp_now_ms();
    struct fp_lease *lease;

    sweep((apr_uint32_t)now);
    lease = (struct fp_lease *)fp_table_get(leases, key, make_key(key, owner, path, len));
    if (lease == NULL)
        return NULL;
    if (is_in_force(lease, now)) {
        fp_lease_view_reference(lease->view, lease->last->slot);
        return lease;
    }
    /* A daemon that was behind for a moment makes it good again. */
    if (is_over(&lease->item))
        fp_table_drop(leases, &lease->item);
    fp_item_release(&lease->item);
    return NULL;
}

/* ---- the way ---- */

static apr_size_t aligned(apr_size_t size)
{
    return (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

/* Puts a copy of the step at *to, and what is behind it into *to. */
static const struct fp_step *pack(char **to, const struct fp_step *s, unsigned n_names)
{
    const struct fp_step *copy = memcpy(*to, s, fp_step_size(s, n_names));

    *to += aligned(fp_step_size(s, n_names));
    return copy;
}

/* Of the answer's first n steps.  Takes the reference to the parent, which has those before. */
static struct fp_dir_chain *create_way(const struct fp_answer *a, unsigned n, struct fp_dir_chain *parent,
                                 const char *key, apr_size_t key_len, struct fp_lease_view *view)
{
    const struct fp_step *own = &a->steps[n - 1];
    apr_size_t head = aligned(sizeof(struct fp_dir_chain) + n * sizeof(struct fp_step *)
                              + n * sizeof(struct place));
    struct fp_dir_chain *way = malloc(head + aligned(fp_step_size(own, a->n_names)) + key_len);
    char *at;

    if (way == NULL) {
        if (parent != NULL)
            fp_item_release(&parent->item);
        return NULL;
    }
    way->view = view;
    if (view != NULL)
        fp_lease_view_retain(view);
    way->parent = parent;
    way->n = n;
    way->n_names = a->n_names;
    way->places = (struct place *)(way->steps + n);
    for (unsigned i = 0; i < n; i++)
        way->places[i] = (struct place){ a->steps[i].slot, a->steps[i].generation };
    if (parent != NULL)
        memcpy(way->steps, parent->steps, (n - 1) * sizeof(way->steps[0]));
    at = (char *)way + head;
    way->steps[n - 1] = pack(&at, own, a->n_names);
    fp_item_init(&way->item, memcpy(at, key, key_len), key_len, destroy_way);
    return way;
}

/* Would the answer's first n steps be told in the same way? */
static bool is_same_way(const struct fp_dir_chain *way, const struct fp_answer *a, unsigned n,
                        const struct fp_lease_view *view)
{
    if (way->view != view || way->n != n || way->n_names != a->n_names)
        return false;
    for (unsigned i = 0; i < n; i++) {
        if (way->places[i].slot != a->steps[i].slot
            || way->places[i].generation != a->steps[i].generation)
            return false;
    }
    return true;
}

/* The key of a directory begins with those of all above it. */
static apr_size_t way_key_len(const struct fp_answer *a, unsigned n)
{
    return sizeof(const void *) + a->steps[n - 1].end;
}

static struct fp_dir_chain *find_way(const struct fp_answer *a, unsigned n, const char *key,
                               apr_size_t key_len, const struct fp_lease_view *view)
{
    struct fp_dir_chain *way = (struct fp_dir_chain *)fp_table_get(ways, key, key_len);

    if (way == NULL || is_same_way(way, a, n, view))
        return way;
    fp_item_release(&way->item);
    return NULL;
}

/* To the answer's last directory, retained for the caller; NULL when out of memory.
 * share: with others, from now on too. */
static struct fp_dir_chain *way_for(const void *owner, const char *path, const struct fp_answer *a,
                              struct fp_lease_view *view, bool share)
{
    const unsigned n = a->n_steps - 1;
    char key[sizeof(owner) + FP_MAX_PATH];
    struct fp_dir_chain *way = NULL;
    unsigned known = share ? n : 0;

    make_key(key, owner, path, a->steps[n - 1].end);
    while (known > 0 && (way = find_way(a, known, key, way_key_len(a, known), view)) == NULL)
        known--;
    for (unsigned i = known + 1; i <= n; i++) {
        way = create_way(a, i, way, key, way_key_len(a, i), view);
        if (way == NULL)
            return NULL;
        if (share)
            fp_table_put(ways, &way->item);
    }
    return way;
}

/* ---- the lease ---- */

unsigned fp_lease_count(void)
{
    return fp_table_count(leases);
}

apr_time_t fp_lease_time(const struct fp_time *t)
{
    return apr_time_from_sec(t->sec) + t->nsec / 1000;
}

static void format_headers(struct fp_headers *h, const struct fp_meta *m)
{
    apr_rfc822_date(h->last_modified, fp_lease_time(&m->mtime));
    apr_snprintf(h->length, sizeof(h->length), "%" APR_UINT64_T_FMT, m->size);
}

const char *fp_lease_etag(const struct fp_lease *lease, unsigned bits)
{
    /* Acquire: its text was written before. */
    const struct fp_etag *etag = atomic_load_explicit(&lease->headers.etag,
                                                      memory_order_acquire);

    return etag != NULL && etag->bits == bits ? etag->text : NULL;
}

void fp_lease_set_etag(struct fp_lease *lease, unsigned bits, const char *text)
{
    struct fp_etag *none = NULL, *etag = malloc(sizeof(*etag) + strlen(text) + 1);

    if (etag == NULL)
        return;
    etag->bits = bits;
    strcpy(etag->text, text);
    if (!atomic_compare_exchange_strong_explicit(&lease->headers.etag, &none, etag,
                                                 memory_order_release, memory_order_relaxed))
        free(etag);
}

/* NULL: there is none, or no memory.  Takes the descriptor. */
static struct fp_file *file_of(struct fp_answer *a, bool again)
{
    const struct fp_step *last = &a->steps[a->n_steps - 1];
    int fd = a->fd;

    a->fd = -1;
    if (fd == -1)
        return NULL;
    return a->content
        ? fp_file_create_content(fd, (apr_size_t)fp_step_target(last)->size, again)
        : fp_file_create(fd, a->local);
}

/* With everything but the file and the way. */
static struct fp_lease *create(const void *owner, const char *path, apr_size_t len,
                               const struct fp_answer *a, struct fp_lease_view *view)
{
    const struct fp_step *last = &a->steps[a->n_steps - 1];
    apr_size_t head = aligned(sizeof(struct fp_lease));
    struct fp_lease *lease = calloc(1, head + aligned(fp_step_size(last, a->n_names))
                                    + sizeof(owner) + len);
    char *at = (char *)lease + head;

    if (lease == NULL)
        return NULL;
    lease->last = pack(&at, last, a->n_names);
    fp_item_init(&lease->item, at, make_key(at, owner, path, len), destroy);
    lease->view = view;
    lease->path = at + sizeof(owner);
    lease->path_len = len;
    lease->n_steps = a->n_steps;
    lease->n_names = a->n_names;
    lease->stale = a->source == FP_SOURCE_STALE;
    return lease;
}

/*
 * Is it asked about for the second time, of late?  A child without threads meets most of a large
 * site's files once in a long time, and a thousand such children with leases for
 * them keep the files themselves out of memory.
 */
static bool is_worth_keeping(const char *path, apr_size_t len)
{
    const unsigned hash = fp_keyed_hash(path, len);
    const apr_uint16_t mark = (apr_uint16_t)(hash >> 16 | 1);

    if (seen == NULL || seen[hash % SEEN] == mark)
        return true;
    seen[hash % SEEN] = mark;
    return false;
}

struct fp_lease *fp_lease_create(const void *owner, const char *path, apr_size_t len,
                                 struct fp_answer *a, struct fp_lease_view *view)
{
    const bool again = a->leasable && view != NULL && most_leases > 0 && is_worth_keeping(path, len);
    struct fp_lease *lease = create(owner, path, len, a, view);

    if (lease == NULL) {
        fp_close(&a->fd);
        fp_lease_view_release(&view);
        return NULL;
    }
    lease->file = file_of(a, again);
    if (lease->file != NULL)
        format_headers(&lease->headers, fp_step_target(lease->last));
    if (a->n_steps > 1) {
        lease->way = way_for(owner, path, a, view, again);
        if (lease->way == NULL) {
            fp_item_release(&lease->item);
            return NULL;
        }
    }
    if (again && (lease->file == NULL || fp_file_descriptors() <= most_descriptors))
        fp_table_put(leases, &lease->item);
    return lease;
}
