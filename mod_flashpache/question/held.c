/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/held.h"

#include "question/file.h"
#include "question/open_files.h"
#include "shared/client.h"
#include "shared/contents.h"
#include "shared/known.h"
#include "shared/lease_table.h"
#include "wire/wire.h"

bool fp_held_take_file(struct fp_held *h)
{
    struct fp_answer *a = h->answer;
    const int fd = a->fd;

    a->fd = -1;
    if (fd == -1)
        return true;
    h->file = fp_file_create(fd, a->local);
    if (h->file != NULL && a->leasable && a->local && h->view != NULL)
        fp_open_files_keep(h->view, fp_held_last(h), h->file);
    return h->file != NULL;
}

fp_status fp_held_ask(struct fp_client *client, bool fresh, bool no_stale_fd, struct fp_held *h)
{
    const struct fp_lookup wish = {
        .path = h->path, .path_len = h->path_len, .fresh = fresh, .no_stale_fd = no_stale_fd
    };
    fp_status st = fp_client_lookup_with(client, &wish, h->answer, &h->view);

    if (st == FP_OK)
        st = h->answer->status;
    if (st == FP_OK && !fp_held_take_file(h))
        st = FP_NOMEM;
    if (st == FP_OK)
        h->found = fp_outcome_of_source(h->answer->source);
    else
        fp_held_end(h);
    return st;
}

void fp_held_end(struct fp_held *h)
{
    fp_file_release(&h->file);
    fp_lease_view_release(&h->view);
}

bool fp_held_has_file(const struct fp_held *h)
{
    return h->file != NULL || (h->answer->content && h->view != NULL);
}

bool fp_held_is_unopened(const struct fp_held *h)
{
    return h->file == NULL && fp_answer_is_unopened(h->answer);
}

bool fp_held_is_stale(const struct fp_held *h)
{
    return h->answer->source == FP_SOURCE_STALE;
}

bool fp_held_holds(const struct fp_held *h)
{
    return fp_known_holds(h->view, h->answer, h->answer->n_steps);
}

bool fp_held_is_unchanged(const struct fp_held *h)
{
    return fp_held_is_stale(h) || (h->view != NULL && fp_known_is_unchanged(h->view, h->answer));
}

const struct fp_step *fp_held_last(const struct fp_held *h)
{
    return &h->answer->steps[h->answer->n_steps - 1];
}

const struct fp_meta *fp_held_target(const struct fp_held *h)
{
    const struct fp_step *last = fp_held_last(h);

    return last->end == h->path_len ? fp_step_target(last) : NULL;
}

bool fp_held_read_access_file(const struct fp_held *h, const struct fp_access *x, char *buf)
{
    const struct fp_meta *m = fp_held_target(h);
    struct fp_access found;

    if (m == NULL)
        return false;
    found = fp_access_of(m);
    if (!fp_access_equal(x, &found))
        return false;
    if (h->file != NULL)
        return fp_contents_read_file(fp_file_descriptor(h->file), buf, (size_t)x->size);
    return fp_held_has_file(h)
           && fp_contents_view_read(fp_lease_view_contents(h->view), h->answer->content_at, buf, (size_t)x->size);
}
