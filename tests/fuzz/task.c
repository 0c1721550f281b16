/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a TASK, as a worker decodes it. */
#include "config.h"
#include "fuzz.h"

#include "wire/task.h"

static fp_status decode(struct fp_reader r, struct fp_task *t)
{
    return fp_task_decode(&r, t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t first[FP_MAX_FRAME], second[FP_MAX_FRAME];
    struct fp_reader r;
    struct fp_writer w, again;
    struct fp_task t;

    fp_reader_init(&r, data, size);
    if (size > FP_MAX_FRAME || decode(r, &t) != FP_OK)
        return 0;
    FUZZ_MUST(fp_path_is_normal(t.lookup.path, t.lookup.path_len));
    FUZZ_MUST(t.base_len == 0 || t.base_len < t.lookup.path_len);
    FUZZ_MUST(t.base_len == 0 || fp_path_is_normal(t.lookup.path, t.base_len));
    fp_writer_init(&w, first, sizeof(first));
    FUZZ_MUST(fp_task_encode(&w, 1, &t) == FP_OK);
    FUZZ_MUST(w.len == FP_FRAME_HEADER + size);
    fp_reader_init(&r, first + FP_FRAME_HEADER, w.len - FP_FRAME_HEADER);
    FUZZ_MUST(decode(r, &t) == FP_OK);
    fp_writer_init(&again, second, sizeof(second));
    FUZZ_MUST(fp_task_encode(&again, 1, &t) == FP_OK);
    fuzz_must_be_body(&again, first + FP_FRAME_HEADER, w.len - FP_FRAME_HEADER);
    return 0;
}
