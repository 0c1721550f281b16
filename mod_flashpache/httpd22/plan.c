/* SPDX-License-Identifier: Apache-2.0 */
#include "httpd22/plan.h"

#include <sys/stat.h>

#include "wire/answer.h"

static enum fp_plan of_present(const struct fp_step *last, size_t path_len, bool slash)
{
    const struct fp_meta *m = fp_step_target(last);

    if (m == NULL)
        return FP_PLAN_LEAVE; /* core logs why a link leads nowhere */
    if (last->end == path_len && (!slash || S_ISDIR(m->mode)))
        return FP_PLAN_WHOLE;
    return S_ISREG(m->mode) ? FP_PLAN_PART : FP_PLAN_LEAVE;
}

enum fp_plan fp_plan_of(const struct fp_step *last, size_t path_len, bool slash,
                        const struct fp_plan_links *links, bool as_directory)
{
    enum fp_plan plan = FP_PLAN_LEAVE;

    if (last->status == FP_OK)
        plan = of_present(last, path_len, slash);
    else if (last->status == FP_ABSENT)
        plan = FP_PLAN_ABSENT;
    if (plan != FP_PLAN_WHOLE && as_directory)
        return FP_PLAN_LEAVE;
    /* Core asks by name whether links are allowed, so another one may be there by then. And it takes an
     * absent name for a file that it may not look at. */
    if (links->restricted && (links->any || plan == FP_PLAN_ABSENT))
        return FP_PLAN_LEAVE;
    return plan;
}
