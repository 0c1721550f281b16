/* SPDX-License-Identifier: Apache-2.0 */
/* CONTROL, an operator's command, and its REPLY. */
#include "config.h"
#include "wire/wire.h"

#include "wire_kit.h"

/* A PURGE without the encoder's own checks. */
static void raw_purge(unsigned op, unsigned scope, const char *path, size_t len, size_t said)
{
    fp_writer_init(&w, buf, FP_MAX_FRAME);
    fp_frame_begin(&w, FP_FRAME_CONTROL, 1);
    fp_put_u8(&w, (uint8_t)op);
    fp_put_u8(&w, (uint8_t)scope);
    fp_put_u16(&w, (uint16_t)said);
    fp_put_bytes(&w, path, len);
    ck_assert_int_eq((int)fp_frame_end(&w), FP_OK);
}

START_TEST(purge_round_trip)
{
    static char path[FP_MAX_PATH + 1];
    struct fp_control in = { .op = FP_CONTROL_PURGE, .path = path }, out;

    memset(path, 'a', sizeof(path));
    path[0] = '/';
    for (in.path_len = 1; in.path_len <= FP_MAX_PATH; in.path_len += 89) {
        struct fp_frame f;

        in.scope = in.path_len % 2 == 0 ? FP_SCOPE_PATH : FP_SCOPE_TREE;
        f = parsed(fp_control_encode(fresh(), 7, &in));
        ck_assert_uint_eq(f.type, FP_FRAME_CONTROL);
        ck_assert_int_eq((int)fp_control_decode(&f.body, &out), FP_OK);
        ck_assert_int_eq((int)out.op, FP_CONTROL_PURGE);
        ck_assert_int_eq((int)out.scope, (int)in.scope);
        ck_assert_uint_eq(out.path_len, in.path_len);
        ck_assert_mem_eq(out.path, path, in.path_len);
    }
    in.path_len = FP_MAX_PATH + 1;
    fp_writer_init(&w, buf, FP_MAX_FRAME);
    ck_assert_int_eq((int)fp_control_encode(&w, 7, &in), FP_PROTOCOL);
    raw_purge(1, 1, path, FP_MAX_PATH + 1, FP_MAX_PATH + 1);
    assert_taken(decode_control, false);
}
END_TEST

START_TEST(purge_path_table)
{
    for (unsigned scope = FP_SCOPE_PATH; scope <= FP_SCOPE_TREE; scope++) {
        raw_purge(1, scope, paths[_i].path, paths[_i].len, paths[_i].len);
        assert_taken(decode_control, paths[_i].good);
    }
}
END_TEST

START_TEST(operation_and_scope_are_checked)
{
    for (unsigned v = 0; v < 256; v++) {
        raw_purge(1, v, "/a", 2, 2);
        assert_taken(decode_control, v == FP_SCOPE_PATH || v == FP_SCOPE_TREE);
        raw_purge(1, v, "", 0, 0);
        assert_taken(decode_control, v == FP_SCOPE_ALL);
        raw_purge(v, 1, "/a", 2, 2);
        /* As a REPORT of number 1 these are six bytes: from is that many. */
        assert_taken(decode_control, v == FP_CONTROL_PURGE || v == FP_CONTROL_REPORT);
    }
}
END_TEST

START_TEST(purge_whose_path_is_longer_or_shorter_than_said)
{
    for (size_t said = 0; said < 12; said++) {
        raw_purge(1, 2, "/etc", 4, said);
        assert_taken(decode_control, said == 4);
    }
    raw_purge(1, 2, "/etc", 4, 65535);
    assert_taken(decode_control, false);
}
END_TEST

START_TEST(explain_round_trip)
{
    const struct fp_control in = { .op = FP_CONTROL_EXPLAIN,
                                   .path = "/a/b",
                                   .path_len = 4 };
    struct fp_control out;
    struct fp_frame f = parsed(fp_control_encode(fresh(), 7, &in));

    ck_assert_int_eq((int)fp_control_decode(&f.body, &out), FP_OK);
    ck_assert_int_eq((int)out.op, FP_CONTROL_EXPLAIN);
    ck_assert_uint_eq(out.path_len, 4);
    ck_assert_mem_eq(out.path, "/a/b", 4);
    for (size_t n = FP_FRAME_HEADER; n < w.len; n++) {
        set_length(n);
        ck_assert_int_eq((int)parse_and_decode(decode_control, buf, n), FP_PROTOCOL);
    }
}
END_TEST

START_TEST(report_round_trip)
{
    static const uint32_t from[] = { 0, 1, 0x01020304, UINT32_MAX };

    for (unsigned what = 0; what < 256; what++) {
        const struct fp_control in = { .op = FP_CONTROL_REPORT,
                                       .what = (enum fp_report)what,
                                       .from = from[what % 4] };
        struct fp_control out;
        struct fp_frame f = parsed(fp_control_encode(fresh(), 7, &in));

        if (what == 0 || what > FP_REPORTS) {
            ck_assert_int_eq((int)fp_control_decode(&f.body, &out), FP_PROTOCOL);
            continue;
        }
        ck_assert_int_eq((int)fp_control_decode(&f.body, &out), FP_OK);
        ck_assert_int_eq((int)out.op, FP_CONTROL_REPORT);
        ck_assert_int_eq((int)out.what, (int)what);
        ck_assert_uint_eq(out.from, in.from);
        ck_assert_ptr_null(out.path);
    }
}
END_TEST

static fp_status done_round_trip(const struct fp_reply *in, struct fp_reply *out)
{
    struct fp_frame f = parsed(fp_reply_encode(fresh(), 3, in));

    ck_assert_uint_eq(f.type, FP_FRAME_REPLY);
    ck_assert_uint_eq(f.id, 3);
    return fp_reply_decode(&f.body, out);
}

START_TEST(done_round_trips)
{
    static char text[FP_MAX_REPORT + 1];
    static const size_t lengths[] = { 0, 1, 2, FP_MAX_REPORT };
    struct fp_reply in = { FP_OK, UINT64_MAX, UINT32_MAX, text, 0 }, out;

    memset(text, 'x', sizeof(text));
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        in.text_len = lengths[i];
        if (in.text_len > 0)
            text[in.text_len - 1] = '\n';
        ck_assert_int_eq((int)done_round_trip(&in, &out), FP_OK);
        ck_assert_int_eq((int)out.status, FP_OK);
        ck_assert_uint_eq(out.count, UINT64_MAX);
        ck_assert_uint_eq(out.next, UINT32_MAX);
        ck_assert_uint_eq(out.text_len, in.text_len);
        ck_assert_mem_eq(out.text, text, in.text_len);
    }
    /* The longest text fills the frame. */
    ck_assert_uint_eq(w.len, FP_MAX_FRAME);
    in.text_len++;
    fp_writer_init(&w, buf, sizeof(buf));
    ck_assert_int_eq((int)fp_reply_encode(&w, 3, &in), FP_PROTOCOL);
}
END_TEST

/* Of printable ASCII: an operator's terminal obeys other bytes. */
START_TEST(done_has_whole_lines)
{
    static const struct {
        const char *text;
        size_t len;
        bool good;
    } texts[] = {
        { "", 0, true },       { "\n", 1, true },         { "a\n", 2, true },
        { "a\nb\n", 4, true }, { " ~\n", 3, true },       { "a", 1, false },
        { "a\nb", 3, false },  { "\0\n", 2, false },      { "a\0b\n", 4, false },
        { "\x1b\n", 2, false }, { "\x7f\n", 2, false },    { "\xc2\x9b\n", 3, false },
        { "\t\n", 2, false },
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const struct fp_reply in = { FP_OK, 0, 0, texts[i].text, texts[i].len };
        struct fp_reply out;

        ck_assert_int_eq((int)done_round_trip(&in, &out), texts[i].good ? FP_OK : FP_PROTOCOL);
    }
}
END_TEST

/* A reason comes alone. */
START_TEST(done_status)
{
    for (int st = 0; st < 256; st++) {
        const bool reason = (st >= 16 && st <= 20) || st == 23;
        struct fp_reply in = { (fp_status)st, 0, 0, NULL, 0 }, out;

        ck_assert_int_eq((int)done_round_trip(&in, &out), st == 0 || reason ? FP_OK : FP_PROTOCOL);
        in.count = 1;
        ck_assert_int_eq((int)done_round_trip(&in, &out), st == 0 ? FP_OK : FP_PROTOCOL);
        in.count = 0;
        in.next = 1;
        ck_assert_int_eq((int)done_round_trip(&in, &out), st == 0 ? FP_OK : FP_PROTOCOL);
        in.next = 0;
        in.text = "\n";
        in.text_len = 1;
        ck_assert_int_eq((int)done_round_trip(&in, &out), st == 0 ? FP_OK : FP_PROTOCOL);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("wire_control");
    TCase *t = unit_add_case(s, "control", setup, NULL, 0);

    tcase_add_test(t, purge_round_trip);
    tcase_add_loop_test(t, purge_path_table, 0, PATHS);
    tcase_add_test(t, operation_and_scope_are_checked);
    tcase_add_test(t, purge_whose_path_is_longer_or_shorter_than_said);
    tcase_add_test(t, explain_round_trip);
    tcase_add_test(t, report_round_trip);
    tcase_add_test(t, done_round_trips);
    tcase_add_test(t, done_has_whole_lines);
    tcase_add_test(t, done_status);
    return unit_run(s);
}
