/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "httpd13/lease13.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/lease_table.h"
#include "common/packet.h"

/* Kept leases of a child, and so its open files, at most. A path's hash chooses its place. */
#define KEPT 128u

static struct fp_lease13 *kept[KEPT];

/* FNV-1a. A stranger who lets paths collide only makes this child open files again. */
static struct fp_lease13 **place_of(const char *path, size_t len)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)path[i]) * 16777619u;
    return &kept[hash % KEPT];
}

void fp_lease13_release(struct fp_lease13 **lease)
{
    struct fp_lease13 *l = *lease;

    *lease = NULL;
    if (l == NULL || --l->references > 0)
        return;
    fp_close(&l->fd);
    fp_lease_view_release(&l->view);
    free(l);
}

void fp_lease13_forget(void)
{
    for (unsigned i = 0; i < KEPT; i++)
        fp_lease13_release(&kept[i]);
}

static size_t aligned(size_t size)
{
    return (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
}

/* One block of memory: the struct, the list of steps, the steps, the path. */
static struct fp_lease13 *allocate(const struct fp_answer *a, const char *path, size_t len)
{
    const size_t head = aligned(sizeof(struct fp_lease13)),
                 list = aligned(a->n_steps * sizeof(struct fp_step *));
    size_t size = head + list + len + 1;
    struct fp_lease13 *l;
    char *at;

    for (unsigned i = 0; i < a->n_steps; i++)
        size += aligned(fp_step_size(&a->steps[i], a->n_names));
    l = malloc(size);
    if (l == NULL)
        return NULL;
    memset(l, 0, sizeof(*l));
    l->steps = (const struct fp_step **)((char *)l + head);
    at = (char *)l + head + list;
    for (unsigned i = 0; i < a->n_steps; i++) {
        const size_t n = fp_step_size(&a->steps[i], a->n_names);

        l->steps[i] = memcpy(at, &a->steps[i], n);
        at += aligned(n);
    }
    l->path = memcpy(at, path, len);
    l->path[len] = '\0';
    return l;
}

static void keep(struct fp_lease13 *l)
{
    static uint64_t view; /* of the leases that are kept */
    struct fp_lease13 **place = place_of(l->path, l->path_len);

    /* Leases on former tables would keep their memory and descriptors. */
    if (fp_lease_view_number(l->view) != view)
        fp_lease13_forget();
    view = fp_lease_view_number(l->view);
    fp_lease13_release(place);
    l->references++;
    *place = l;
}

struct fp_lease13 *fp_lease13_create(const void *owner, const char *path, size_t len, struct fp_answer *a,
                                     struct fp_lease_view *view)
{
    struct fp_lease13 *l = allocate(a, path, len);

    if (l == NULL) {
        fp_close(&a->fd);
        fp_lease_view_release(&view);
        return NULL;
    }
    l->references = 1;
    l->owner = owner;
    l->view = view;
    l->path_len = len;
    l->n_steps = a->n_steps;
    l->n_names = a->n_names;
    l->source = a->source;
    l->watched = a->watched;
    l->local = a->local;
    l->content = a->content && view != NULL;
    l->content_at = a->content_at;
    l->fd = a->fd;
    a->fd = -1;
    if (l->fd != -1 && a->leasable && view != NULL)
        keep(l);
    return l;
}

/* Looks at the last step first: most changes concern files. */
static bool is_valid(const struct fp_lease13 *l, uint64_t now)
{
    for (unsigned i = l->n_steps; i-- > 0;) {
        if (!fp_lease_view_is_valid(l->view, l->steps[i]->slot, l->steps[i]->generation, now))
            return false;
    }
    return true;
}

/* Marks the step above as well: through its record other children find the answer (answer_table.h). */
static void mark(const struct fp_lease13 *l)
{
    fp_lease_view_reference(l->view, l->steps[l->n_steps - 1]->slot);
    if (l->n_steps > 1)
        fp_lease_view_reference(l->view, l->steps[l->n_steps - 2]->slot);
}

/* Looks at one place of all: a removed file, for which nobody asks again, must not stay open. */
static void release_if_ended(uint64_t now)
{
    static unsigned next;
    struct fp_lease13 **place = &kept[next++ % KEPT];

    if (*place != NULL && !is_valid(*place, now))
        fp_lease13_release(place);
}

struct fp_lease13 *fp_lease13_find(const void *owner, const char *path, size_t len, bool fresh)
{
    const uint64_t now = fp_now_ms();
    struct fp_lease13 **place = place_of(path, len), *l;

    release_if_ended(now);
    l = *place;
    if (l == NULL || l->owner != owner || l->path_len != len || memcmp(l->path, path, len) != 0)
        return NULL;
    /* No lease is used while the daemon's heartbeat is overdue, but it may be used again later. */
    if (!fp_lease_view_is_current(l->view, now))
        return NULL;
    if (!is_valid(l, now)) {
        fp_lease13_release(place);
        return NULL;
    }
    if (fresh && !l->watched)
        return NULL;
    mark(l);
    l->references++;
    return l;
}

const struct fp_meta *fp_lease13_file(const struct fp_lease13 *l)
{
    const struct fp_step *last = l->steps[l->n_steps - 1];

    return last->end == l->path_len ? fp_step_target(last) : NULL;
}
