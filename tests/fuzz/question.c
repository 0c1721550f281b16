/* SPDX-License-Identifier: Apache-2.0 */
/* A packet of an asker: HELLO, LOOKUP and CONTROL, as the daemon decodes them. */
#include "config.h"
#include "fuzz.h"

static uint8_t room[FP_MAX_FRAME];

static void check_path(const char *path, size_t len)
{
    size_t components = 1, steps = 1;

    FUZZ_MUST(fp_path_is_normal(path, len));
    for (size_t i = 1; i < len; i++)
        components += path[i] == '/';
    for (size_t at = 1; at < len; at = fp_path_child_len(path, len, at))
        steps++;
    FUZZ_MUST(steps == components + (len > 1));
    for (; len > 1; len = fp_path_parent_len(path, len))
        steps--;
    FUZZ_MUST(steps == 1);
}

static void check_names(const struct fp_names *n)
{
    FUZZ_MUST(n->n <= FP_MAX_NAMES);
    for (unsigned i = 0; i < n->n; i++) {
        FUZZ_MUST(fp_name_is_single(n->list[i].name, n->list[i].len));
        FUZZ_MUST(fp_names_find(n, n->list[i].name, n->list[i].len) != -1);
    }
}

/* A later version may append to its HELLO: only the beginning is ours. */
static void hello(struct fp_reader body, struct fp_writer *w)
{
    const uint8_t *begin = body.pos;
    struct fp_hello h;

    if (fp_hello_decode(&body, &h) != FP_OK)
        return;
    FUZZ_MUST(h.version_min <= h.version_max);
    check_names(&h.names);
    /* Of versions that are not ours, names are not read. */
    if (h.version_min > FP_WIRE_VERSION || h.version_max < FP_WIRE_VERSION)
        return;
    FUZZ_MUST(fp_hello_encode(w, &h) == FP_OK);
    fuzz_must_be_body(w, begin, (size_t)(body.pos - begin));
}

static void lookup(struct fp_reader body, struct fp_writer *w)
{
    const uint8_t *begin = body.pos;
    struct fp_lookup l;

    if (fp_lookup_decode(&body, &l) != FP_OK)
        return;
    check_path(l.path, l.path_len);
    FUZZ_MUST(fp_lookup_encode(w, 1, &l) == FP_OK);
    fuzz_must_be_body(w, begin, (size_t)(body.end - begin));
}

static void control(struct fp_reader body, struct fp_writer *w)
{
    const uint8_t *begin = body.pos;
    struct fp_control c;

    if (fp_control_decode(&body, &c) != FP_OK)
        return;
    if (c.path != NULL)
        check_path(c.path, c.path_len);
    FUZZ_MUST(fp_control_encode(w, 1, &c) == FP_OK);
    fuzz_must_be_body(w, begin, (size_t)(body.end - begin));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fp_writer w;
    struct fp_frame f;

    if (fp_frame_parse(&f, data, size) != FP_OK)
        return 0;
    fp_writer_init(&w, room, sizeof(room));
    switch (f.type) {
    case FP_FRAME_HELLO: hello(f.body, &w); break;
    case FP_FRAME_LOOKUP: lookup(f.body, &w); break;
    case FP_FRAME_CONTROL: control(f.body, &w); break;
    default: break;
    }
    return 0;
}
