/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a worker's ANSWER, with its result, as the daemon decodes it.  In front of it stands what the
 * daemon knows of the task. These are the length of the path (u16) and of the base (u16), how many names
 * (u8), and whether a descriptor came (u8).
 */
#include "config.h"
#include "fuzz.h"

#include "wire/task.h"
#include "wire/walk_result.h"

#define SOME_FD STDIN_FILENO /* it is only looked at whether there is one */

static void read_task(struct fp_reader *r, struct fp_task *t, int *fd_r)
{
    memset(t, 0, sizeof(*t));
    t->lookup.path_len = 1 + fp_get_u16(r) % FP_MAX_PATH;
    t->base_len = fp_get_u16(r) % t->lookup.path_len;
    t->names.n = fp_get_u8(r) % (FP_MAX_NAMES + 1);
    *fd_r = fp_get_u8(r) % 2 == 0 ? -1 : SOME_FD;
}

static void check_result(const struct fp_walk_result *t)
{
    FUZZ_MUST(t->n_traversed <= FP_MAX_TRAVERSED && t->names_len <= sizeof(t->names));
    FUZZ_MUST(t->effort.call < FP_CALLS && fp_call_text(t->effort.call) != NULL);
    for (unsigned i = 0; i < t->n_steps; i++)
        FUZZ_MUST(t->step_watches[i].watch.len <= FP_MAX_WATCH_KEY);
    for (unsigned i = 0; i < t->n_traversed; i++) {
        const struct fp_traversed_name *v = &t->traversed[i];

        FUZZ_MUST(v->step < t->n_steps && v->watch.len <= FP_MAX_WATCH_KEY);
        FUZZ_MUST((size_t)v->at + v->len <= t->names_len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t first[FP_MAX_FRAME], second[FP_MAX_FRAME];
    static struct fp_answer a;
    static struct fp_walk_result result;
    struct fp_writer w, again;
    struct fp_reader r;
    struct fp_task t;
    int fd;

    fp_reader_init(&r, data, size);
    read_task(&r, &t, &fd);
    if (size > FP_MAX_FRAME || fp_result_decode(&r, &t, fd, &a, &result) != FP_OK)
        return 0;
    FUZZ_MUST(a.fd == fd && a.n_steps <= FP_MAX_STEPS && !a.leasable);
    FUZZ_MUST(a.status != FP_OK || a.n_names == t.names.n);
    check_result(&result);
    /* Decoded again it is the same; bits that mean nothing may be gone. */
    fp_writer_init(&w, first, sizeof(first));
    FUZZ_MUST(fp_result_encode(&w, 1, &a, &result) == FP_OK);
    fp_reader_init(&r, first + FP_FRAME_HEADER, w.len - FP_FRAME_HEADER);
    FUZZ_MUST(fp_result_decode(&r, &t, fd, &a, &result) == FP_OK);
    fp_writer_init(&again, second, sizeof(second));
    FUZZ_MUST(fp_result_encode(&again, 1, &a, &result) == FP_OK);
    fuzz_must_be_body(&again, first + FP_FRAME_HEADER, w.len - FP_FRAME_HEADER);
    return 0;
}
