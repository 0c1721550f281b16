/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared/known.h"

#include "base/clock.h"
#include "shared/answer_table.h"
#include "shared/lease_table.h"
#include "wire/answer.h"

bool fp_known_holds(const struct fp_lease_view *view, const struct fp_answer *a, unsigned n)
{
    const uint64_t now = fp_now_ms();

    if (!fp_lease_view_is_current(view, now))
        return false;
    for (unsigned i = n; i-- > 0;) {
        if (!fp_lease_view_is_valid(view, a->steps[i].slot, a->steps[i].generation, now))
            return false;
    }
    return true;
}

bool fp_known_is_unchanged(const struct fp_lease_view *view, const struct fp_answer *a)
{
    const struct fp_step *last = &a->steps[a->n_steps - 1];

    /* An answer for one request alone needs no call. */
    if (last->slot == FP_NO_SLOT || !fp_lease_view_is_current(view, fp_now_ms()))
        return false;
    for (unsigned i = a->n_steps; i-- > 0;) {
        if (!fp_lease_view_is_known(view, a->steps[i].slot, a->steps[i].generation))
            return false;
    }
    return true;
}

void fp_known_use(const struct fp_lease_view *view, const struct fp_answer *a)
{
    const unsigned n = a->n_steps;

    fp_lease_view_reference(view, a->steps[n - 1].slot);
    if (n > 1)
        fp_lease_view_reference(view, a->steps[n - 2].slot);
}

fp_status fp_known_find(const struct fp_lease_view *view, const char *path, size_t len, bool watched,
                        struct fp_answer *a)
{
    const struct fp_step *last;

    if (!fp_answer_view_find(fp_lease_view_answers(view), path, len, a))
        return FP_UNKNOWN;
    if ((!watched || a->watched) && fp_known_holds(view, a, a->n_steps))
        return FP_OK;
    last = &a->steps[a->n_steps - 1];
    return fp_lease_view_is_known(view, last->slot, last->generation) ? FP_ASK : FP_UNKNOWN;
}
