/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared.h"

#include "common/answer.h"
#include "common/answer_table.h"
#include "common/client.h"
#include "common/clock.h"
#include "common/lease_table.h"

static bool in_use;

void fp_shared_init(bool use)
{
    in_use = use;
}

/* To be called after the answer was copied: what was true then is true now. */
static bool holds(const struct fp_lease_view *view, const struct fp_answer *a)
{
    const uint64_t now = fp_now_ms();

    if (!fp_lease_view_is_current(view, now))
        return false;
    for (unsigned i = a->n_steps; i-- > 0;) {
        if (!fp_lease_view_is_valid(view, a->steps[i].slot, a->steps[i].generation, now))
            return false;
    }
    return true;
}

/* The last step and the one above: their records get a second chance. */
static void mark(const struct fp_lease_view *view, const struct fp_answer *a)
{
    const unsigned n = a->n_steps;

    fp_lease_view_reference(view, a->steps[n - 1].slot);
    if (n > 1)
        fp_lease_view_reference(view, a->steps[n - 2].slot);
}

fp_status fp_shared_find(struct fp_client *client, const struct fp_names *names, const char *path, size_t len,
                         bool fresh, struct fp_answer *a, struct fp_lease_view **view_r)
{
    fp_status st;

    *view_r = NULL;
    fp_answer_init(a, FP_FAILED);
    if (!in_use)
        return FP_ABSENT;
    st = fp_client_view(client, view_r);
    if (st != FP_OK)
        return st;
    if (*view_r == NULL)
        return FP_ABSENT;
    if (fp_answer_view_find(fp_lease_view_answers(*view_r), names, path, len, a) && (!fresh || a->watched)
        && (!a->readable || a->content) && holds(*view_r, a)) {
        mark(*view_r, a);
        return FP_OK;
    }
    fp_lease_view_release(view_r);
    return FP_ABSENT;
}
