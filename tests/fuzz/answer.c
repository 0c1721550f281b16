/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of an ANSWER, as a client decodes it.  In front of it: the length of
 * the path that was asked for (u16), and whether a descriptor came (u8).
 */
#include "config.h"
#include "fuzz.h"

#include "wire/answer.h"

#define SOME_FD STDIN_FILENO /* it is only looked at whether there is one */

static void check_steps(const struct fp_answer *a, size_t path_len)
{
    FUZZ_MUST(a->n_steps >= 1 && a->n_steps <= FP_MAX_STEPS && a->n_names <= FP_MAX_NAMES);
    FUZZ_MUST(a->steps[0].end == 1 && a->steps[a->n_steps - 1].end <= path_len);
    for (unsigned i = 0; i < a->n_steps; i++) {
        if (i + 1 < a->n_steps)
            FUZZ_MUST(fp_step_is_dir(&a->steps[i]) && a->steps[i].end < a->steps[i + 1].end);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t room[FP_MAX_FRAME];
    static struct fp_answer a;
    struct fp_reader r;
    struct fp_writer w;
    const uint8_t *body;
    size_t path_len;
    int fd;

    fp_reader_init(&r, data, size);
    path_len = 1 + fp_get_u16(&r) % FP_MAX_PATH;
    fd = fp_get_u8(&r) % 2 == 0 ? -1 : SOME_FD;
    body = r.pos;
    /* The rest of the former answer says nothing. */
    memset(&a, 0xaa, sizeof(a));
    if (size > FP_MAX_FRAME || fp_answer_decode(&r, path_len, fd, &a) != FP_OK)
        return 0;
    FUZZ_MUST(a.fd == fd && !a.unchanged);
    FUZZ_MUST(a.status == FP_OK || (fp_status_is_reason(a.status) && a.n_steps == 0 && fd == -1));
    if (a.status == FP_OK)
        check_steps(&a, path_len);
    fp_writer_init(&w, room, sizeof(room));
    FUZZ_MUST(fp_answer_encode(&w, 1, &a) == FP_OK);
    fuzz_must_be_body(&w, body, (size_t)(data + size - body));
    return 0;
}
