/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_report.h"

#include "shared/client.h"
#include "unit.h"

/* ---- a daemon that sends its lines in two parts ---- */

static bool fails;

fp_status fp_client_control(struct fp_client *client, const struct fp_control *question,
                            struct fp_reply *done, uint8_t *room)
{
    (void)client;
    (void)room;
    memset(done, 0, sizeof(*done));
    if (fails)
        return FP_CLOSED;
    done->text = question->from == 0 ? "hits 12\n" : "hits_more 7\nversion 0.1\n";
    done->text_len = strlen(done->text);
    done->next = question->from == 0 ? 1 : 0;
    return FP_OK;
}

void ctl_complain(const char *format, ...)
{
    (void)format;
}

enum ctl_exit ctl_no_daemon(const struct ctl *ctl, fp_status why)
{
    (void)ctl;
    ck_assert_int_eq((int)why, FP_CLOSED);
    return CTL_NO_DAEMON;
}

START_TEST(a_report_is_put_together)
{
    static const enum fp_report wanted[] = { FP_REPORT_STATS, 0 };
    const struct ctl ctl = { .socket = "/s" };
    struct ctl_reports r;
    char room[8], *text;

    fails = false;
    ck_assert_int_eq((int)ctl_read_reports(&ctl, wanted, &r), CTL_DONE);
    text = r.text[FP_REPORT_STATS];
    ck_assert_str_eq(text, "hits 12\nhits_more 7\nversion 0.1\n");
    ck_assert_uint_eq(ctl_value(text, "hits"), 12);
    ck_assert_uint_eq(ctl_value(text, "hits_more"), 7);
    ck_assert_uint_eq(ctl_value(text, "more"), 0);
    ck_assert(ctl_word(text, "version", room, sizeof(room)));
    ck_assert_str_eq(room, "0.1");
    ck_assert(!ctl_word(text, "version", room, 3));
    ctl_free_reports(&r);
    fails = true;
    ck_assert_int_eq((int)ctl_read_reports(&ctl, wanted, &r), CTL_NO_DAEMON);
    ck_assert_ptr_null(r.text[FP_REPORT_STATS]);
}
END_TEST

START_TEST(lines)
{
    char text[] = "a b c\n\nd\n", *next = text;

    ck_assert_str_eq(ctl_next_line(&next), "a b c");
    ck_assert_str_eq(ctl_next_line(&next), "");
    ck_assert_str_eq(ctl_next_line(&next), "d");
    ck_assert_ptr_null(ctl_next_line(&next));
}
END_TEST

START_TEST(entries_of_a_path)
{
    struct fp_report_known k;

    ck_assert(fp_report_read(fp_known_form, (char[]){ "4 file inotify - 90 lease open /" }, &k));
    ck_assert_uint_eq(k.len, 4);
    ck_assert_uint_eq(k.left_ms, 90);
    ck_assert_str_eq(k.state, "file");
    ck_assert_str_eq(k.point, "/");
    ck_assert(!fp_report_read(fp_known_form, (char[]){ "4 file inotify - 90 lease open" }, &k));
    ck_assert(!fp_report_read(fp_known_form, (char[]){ "x file inotify - 90 lease open /" }, &k));
}
END_TEST

START_TEST(mounts)
{
    struct fp_report_mount m;

    ck_assert(fp_report_read(fp_mount_form,
        (char[]){ "/a\\040b ext4 inotify ttl_ms=3000 negative_ttl_ms=900 stale_if_error_ms=7 calls_per_minute=12" }, &m));
    ck_assert_str_eq(m.point, "/a\\040b");
    ck_assert_uint_eq(m.ttl_ms, 3000);
    ck_assert_uint_eq(m.negative_ttl_ms, 900);
    ck_assert_uint_eq(m.stale_ms, 7);
    ck_assert_uint_eq(m.calls, 12);
    ck_assert(!m.out);
    ck_assert(fp_report_read(fp_mount_form,
        (char[]){ "/ nfs4 ttl ttl_ms=1 negative_ttl_ms=1 stale_if_error_ms=0 calls_per_minute=0 out-of-service" }, &m));
    ck_assert(m.out);
    ck_assert(!fp_report_read(fp_mount_form, (char[]){ "/ nfs4 ttl" }, &m));
    ck_assert(!fp_report_read(fp_mount_form, (char[]){ "/ nfs4 ttl a=1 b=2 c=3" }, &m));
}
END_TEST

START_TEST(latencies)
{
    struct fp_report_latency l;

    ck_assert(fp_report_read(fp_latency_form, (char[]){ "/ 100 5000 900 300 "
                                          "50,40,5,4,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0" },
                                &l));
    ck_assert_uint_eq(l.count, 100);
    ck_assert_uint_eq(fp_latency_percentile_us(&l, 50), 64);
    ck_assert_uint_eq(fp_latency_percentile_us(&l, 51), 128);
    ck_assert_uint_eq(fp_latency_percentile_us(&l, 99), 512);
    /* Never more than the maximum. */
    ck_assert_uint_eq(fp_latency_percentile_us(&l, 100), 900);
    ck_assert(!fp_report_read(fp_latency_form, (char[]){ "/ 100 5000 900 300 50,40" }, &l));
    ck_assert(!fp_report_read(fp_latency_form, (char[]){ "/ 100 5000 900 300 "
                                           "50,40,5,4,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0" },
                                 &l));
}
END_TEST

START_TEST(times)
{
    char room[32];

    ck_assert_str_eq(ctl_time_text(999, room, sizeof(room)), "999 us");
    ck_assert_str_eq(ctl_time_text(1500, room, sizeof(room)), "1.5 ms");
    ck_assert_str_eq(ctl_time_text(2500000, room, sizeof(room)), "2.5 s");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ctl_report");
    TCase *t = unit_add_case(s, "reports", NULL, NULL, 0);

    tcase_add_test(t, a_report_is_put_together);
    tcase_add_test(t, lines);
    tcase_add_test(t, entries_of_a_path);
    tcase_add_test(t, mounts);
    tcase_add_test(t, latencies);
    tcase_add_test(t, times);
    return unit_run(s);
}
