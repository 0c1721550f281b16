/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "shared/known.h"

#include "base/clock.h"
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

/* The last step and the one above: a LEAF's slot, and a DIR's. */
void fp_known_mark(const struct fp_lease_view *view, const struct fp_answer *a)
{
    const unsigned n = a->n_steps;

    fp_lease_view_reference(view, a->steps[n - 1].slot);
    if (n > 1)
        fp_lease_view_reference(view, a->steps[n - 2].slot);
}
