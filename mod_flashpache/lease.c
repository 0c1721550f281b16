/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lease.h"

#include <apr_atomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "clock.h"
#include "fdio.h"
#include "file.h"
#include "slots.h"
#include "wire.h"

#define SWEEP_MS          1000u
#define DESCRIPTORS_SHARE 4    /* one in so many descriptors may be a lease's */

static struct fp_table *leases;

void fp_lease_init(apr_pool_t *p, int limit)
{
    struct rlimit rl;

    if (getrlimit(RLIMIT_NOFILE, &rl) == 0
        && rl.rlim_cur / DESCRIPTORS_SHARE < (rlim_t)limit)
        limit = (int)(rl.rlim_cur / DESCRIPTORS_SHARE);
    leases = fp_table_create(p, limit);
}

static void destroy(struct fp_item *item)
{
    struct fp_lease *lease = (struct fp_lease *)item;

    fp_file_release(&lease->file);
    fp_slots_view_release(&lease->view);
    free(lease);
}

/* The last step first: most changes are of files. */
static bool holds(const struct fp_lease *lease)
{
    unsigned i = lease->n_steps;

    while (i-- > 0) {
        if (!fp_slots_view_holds(lease->view, lease->steps[i].slot, lease->steps[i].generation))
            return false;
    }
    return true;
}

/* May it be used?  Without a daemon that says it is up to date, no. */
static bool is_in_force(const struct fp_lease *lease, apr_uint64_t now)
{
    return now < lease->until_ms && fp_slots_view_fresh(lease->view, now) && holds(lease);
}

static bool is_over(const struct fp_item *item)
{
    const struct fp_lease *lease = (const struct fp_lease *)item;

    return fp_now_ms() >= lease->until_ms || !holds(lease);
}

static void sweep(apr_uint32_t now)
{
    static apr_uint32_t last;
    apr_uint32_t before = apr_atomic_read32(&last);

    if (now - before >= SWEEP_MS && apr_atomic_cas32(&last, now, before) == before)
        fp_table_drop_if(leases, is_over);
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
        fp_slots_view_mark(lease->view, lease->steps[lease->n_steps - 1].slot);
        return lease;
    }
    /* A daemon that was behind for a moment makes it good again. */
    if (is_over(&lease->item))
        fp_table_drop(leases, &lease->item);
    fp_item_release(&lease->item);
    return NULL;
}

struct fp_lease *fp_lease_create(const void *owner, const char *path, apr_size_t len,
                                 struct fp_answer *a, struct fp_slots_view *view)
{
    apr_size_t steps = a->n_steps * sizeof(a->steps[0]);
    struct fp_lease *lease = malloc(sizeof(*lease) + steps + sizeof(owner) + len);
    char *key;

    if (lease == NULL) {
        fp_close(&a->fd);
        fp_slots_view_release(&view);
        return NULL;
    }
    key = (char *)lease->steps + steps;
    fp_item_init(&lease->item, key, make_key(key, owner, path, len), destroy);
    lease->until_ms = fp_now_ms() + a->good_for_ms;
    lease->view = view;
    lease->path = key + sizeof(owner);
    lease->path_len = len;
    lease->n_steps = a->n_steps;
    lease->n_names = a->n_names;
    memcpy(lease->steps, a->steps, steps);
    lease->file = a->fd != -1 ? fp_file_create(a->fd, a->local) : NULL;
    a->fd = -1;
    if (a->good_for_ms > 0 && view != NULL)
        fp_table_put(leases, &lease->item);
    return lease;
}
