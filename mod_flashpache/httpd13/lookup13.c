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

fp_status fp_lookup13(const char *path, size_t len, bool fresh, struct fp_held *h_r)
{
    fp_status st;

    sweep();
    *h_r = (struct fp_held){ .answer = &answer, .path = path, .path_len = len };
    st = fp_shared_find(fp_child_client, fresh, h_r);
    if (st == FP_OK && fp_held_is_unopened(h_r)) {
        fp_held_end(h_r);
        st = FP_ASK;
    }
    return st == FP_UNKNOWN || st == FP_ASK ? fp_held_ask(fp_child_client, fresh, false, h_r) : st;
}
