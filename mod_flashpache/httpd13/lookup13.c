/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "httpd13/lookup13.h"

#include "base/clock.h"
#include "question/held.h"
#include "question/open_files.h"
#include "question/shared.h"
#include "shared/client.h"

#define SWEEP_MS 1000u /* between two looks at the open files */

struct fp_client *fp_child_client;

/* The child's one thread decodes each answer here; a request copies its own. */
static struct fp_answer answer;

/* A removed file, for which nobody asks again, must not stay open. */
static void sweep(void)
{
    static uint64_t swept_ms;
    const uint64_t now_ms = fp_now_ms();

    if (now_ms - swept_ms < SWEEP_MS)
        return;
    swept_ms = now_ms;
    fp_open_files_sweep();
}

static fp_status ask(bool fresh, struct fp_held *h)
{
    const struct fp_lookup wish = { .path = h->path, .path_len = h->path_len, .fresh = fresh };
    fp_status st = fp_client_lookup_with(fp_child_client, &wish, &answer, &h->view);

    if (st == FP_OK)
        st = answer.status;
    return st == FP_OK && !fp_held_take_file(h) ? FP_NOMEM : st;
}

fp_status fp_lookup13(const char *path, size_t len, bool fresh, struct fp_held *h_r, enum fp_count *outcome_r)
{
    fp_status st;

    sweep();
    *h_r = (struct fp_held){ .answer = &answer, .path = path, .path_len = len };
    *outcome_r = FP_COUNT_LEASE;
    st = fp_shared_find(fp_child_client, fresh, h_r);
    if (st == FP_OK && fp_held_is_unopened(h_r)) {
        fp_held_end(h_r);
        st = FP_ASK;
    }
    if (st == FP_UNKNOWN || st == FP_ASK) {
        st = ask(fresh, h_r);
        *outcome_r = fp_outcome_of_source(answer.source);
    }
    if (st != FP_OK)
        fp_held_end(h_r);
    return st;
}

const struct fp_meta *fp_lookup13_file(const struct fp_held *h)
{
    const struct fp_step *last = fp_held_last(h);

    return last->end == h->path_len ? fp_step_target(last) : NULL;
}
