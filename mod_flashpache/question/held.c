/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/held.h"

#include "question/file.h"
#include "question/open_files.h"
#include "shared/known.h"
#include "shared/lease_table.h"

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

const struct fp_step *fp_held_last(const struct fp_held *h)
{
    return &h->answer->steps[h->answer->n_steps - 1];
}
