/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "httpd13/lookup13.h"

#include "common/answer_table.h"
#include "common/client.h"
#include "common/lease_table.h"
#include "common/packet.h"
#include "httpd13/lease13.h"
#include "shared.h"

struct fp_client *fp_child_client;

/* The child's one thread decodes each answer here; a lease has a copy. */
static struct fp_answer answer;

fp_status fp_lookup13(const void *owner, const struct fp_names *names, const char *path, size_t len,
                      bool fresh, struct fp_lease13 **lease_r, enum fp_count *outcome_r)
{
    struct fp_lease_view *view;
    bool known;
    fp_status st;

    *outcome_r = FP_COUNT_LEASE;
    *lease_r = fp_lease13_find(owner, path, len, fresh);
    if (*lease_r != NULL)
        return FP_OK;
    st = fp_shared_find(fp_child_client, names, path, len, fresh, &answer, &view, &known);
    if (st == FP_OK
        && (fp_answer_is_unopened(&answer)
            || (answer.outline != NULL
                && !fp_answer_view_fill_in(fp_lease_view_answers(view), path, &answer)))) {
        fp_close(&answer.fd);
        fp_lease_view_release(&view);
        st = FP_ABSENT;
    }
    if (st == FP_ABSENT) {
        const struct fp_lookup wish = { .path = path, .path_len = len, .names = *names, .fresh = fresh };

        st = fp_client_lookup_with(fp_child_client, &wish, &answer, &view);
        if (st == FP_OK)
            st = answer.status;
        *outcome_r = fp_outcome_of_source(answer.source);
    }
    if (st != FP_OK) {
        fp_lease_view_release(&view);
        return st;
    }
    *lease_r = fp_lease13_create(owner, path, len, &answer, view);
    return *lease_r != NULL ? FP_OK : FP_NOMEM;
}
