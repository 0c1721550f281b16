/* SPDX-License-Identifier: Apache-2.0 */
/* A packet of the daemon that brings no steps: WELCOME, ERROR and DONE. */
#include "config.h"
#include "fuzz.h"

static uint8_t room[FP_MAX_FRAME];

static void welcome(struct fp_reader body, struct fp_writer *w)
{
    const uint8_t *begin = body.pos;
    struct fp_welcome h;

    if (fp_welcome_decode(&body, &h) != FP_OK)
        return;
    FUZZ_MUST(fp_welcome_encode(w, &h) == FP_OK);
    fuzz_must_be_body(w, begin, (size_t)(body.end - begin));
}

static void done(struct fp_reader body, struct fp_writer *w)
{
    const uint8_t *begin = body.pos;
    struct fp_reply d;

    if (fp_reply_decode(&body, &d) != FP_OK)
        return;
    FUZZ_MUST(d.text_len == 0 || d.text[d.text_len - 1] == '\n');
    FUZZ_MUST(memchr(d.text, '\0', d.text_len) == NULL);
    FUZZ_MUST(d.status == FP_OK || (fp_status_is_reason(d.status) && d.text_len == 0));
    FUZZ_MUST(fp_reply_encode(w, 1, &d) == FP_OK);
    fuzz_must_be_body(w, begin, (size_t)(body.end - begin));
}

static void error(struct fp_reader body)
{
    fp_status said;

    if (fp_error_decode(&body, &said) == FP_OK)
        FUZZ_MUST(fp_status_text(said) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fp_writer w;
    struct fp_frame f;

    if (fp_frame_parse(&f, data, size) != FP_OK)
        return 0;
    fp_writer_init(&w, room, sizeof(room));
    switch (f.type) {
    case FP_FRAME_WELCOME: welcome(f.body, &w); break;
    case FP_FRAME_REPLY: done(f.body, &w); break;
    case FP_FRAME_ERROR: error(f.body); break;
    default: break;
    }
    return 0;
}
