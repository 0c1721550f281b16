/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "status/health.h"

#include <apr_general.h>

#include "status/snapshot.h"
#include "unit.h"

static apr_pool_t *pool;
static struct fp_snapshot f;
static struct fp_health health;

static void set_counter(const char *name, apr_uint64_t value)
{
    unsigned i = 0;

    while (strcmp(fp_stat_rows[i].name, name) != 0)
        i++;
    APR_ARRAY_PUSH(f.from_daemon, struct fp_snapshot_counter) =
        (struct fp_snapshot_counter){ &fp_stat_rows[i], value };
}

static void set_fact(const char *key, const char *value)
{
    APR_ARRAY_PUSH(f.about, struct fp_snapshot_fact) = (struct fp_snapshot_fact){ key, value };
}

static void add_mount(const char *point, apr_uint64_t stale_ms, bool in_service)
{
    APR_ARRAY_PUSH(f.mounts, struct fp_report_mount) =
        (struct fp_report_mount){ point, "nfs4", "inotify+ttl", 3000, 1000, stale_ms, 0, !in_service };
}

/* A daemon with which all is well, and one host. */
static void setup(void)
{
    apr_array_header_t *hosts;

    ck_assert_int_eq(apr_initialize(), APR_SUCCESS);
    ck_assert_int_eq(apr_pool_create(&pool, NULL), APR_SUCCESS);
    hosts = apr_array_make(pool, 1, sizeof(struct fp_snapshot_host));
    apr_array_push(hosts);
    f = (struct fp_snapshot){ .hosts = hosts,
                              .socket = "/run/flashpached.sock",
                              .daemon = FP_OK,
                              .from_daemon = apr_array_make(pool, 8, sizeof(struct fp_snapshot_counter)),
                              .mounts = apr_array_make(pool, 8, sizeof(struct fp_report_mount)),
                              .latencies = apr_array_make(pool, 8, sizeof(struct fp_report_latency)),
                              .about = apr_array_make(pool, 8, sizeof(struct fp_snapshot_fact)) };
    set_fact("version", FP_RELEASE);
    set_fact("workers_wanted", "4");
    set_fact("uptime_s", "5");
    set_counter("workers", 4);
    add_mount("/srv", 0, true);
}

static void teardown(void)
{
    apr_pool_destroy(pool);
}

static const struct fp_finding *finding(int i)
{
    return &APR_ARRAY_IDX(health.findings, i, struct fp_finding);
}

/* There is one finding, with these words. */
static void check_only(enum fp_health_level level, const char *why, const char *advice)
{
    health = fp_health_of(pool, &f);
    ck_assert_int_eq(health.findings->nelts, 1);
    ck_assert_int_eq(health.level, level);
    ck_assert_int_eq(finding(0)->level, level);
    ck_assert_msg(strstr(finding(0)->why, why) != NULL, "%s", finding(0)->why);
    ck_assert_msg(strstr(finding(0)->advice, advice) != NULL, "%s", finding(0)->advice);
}

START_TEST(nothing_is_found_where_all_is_well)
{
    health = fp_health_of(pool, &f);
    ck_assert_int_eq(health.level, FP_HEALTHY);
    ck_assert_int_eq(health.findings->nelts, 0);
}
END_TEST

START_TEST(without_an_answer_it_is_down)
{
    static const struct {
        fp_status daemon;
        const char *why, *advice;
    } cases[] = { { FP_CLOSED, "nobody listens at its socket", "systemctl start flashpached" },
                  { FP_TIMEOUT, "it hangs or is stopped", "systemctl restart flashpached" },
                  { FP_TIMEOUT, "it hangs or is stopped", "`kill -KILL $(cat /run/flashpached.sock.lock)`" },
                  { FP_FOREIGN, "was not made by root", "FP0114" },
                  { FP_ELSEWHERE, "does not see the files", "FlashpacheDaemon elsewhere" },
                  { FP_VERSION, "version", "from one release" },
                  { FP_PROTOCOL, "/run/flashpached.sock", "flashpachectl check" } };

    /* It has said nothing. */
    f.from_daemon->nelts = f.about->nelts = f.mounts->nelts = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        f.daemon = cases[i].daemon;
        check_only(FP_DOWN, cases[i].why, cases[i].advice);
    }
}
END_TEST

START_TEST(a_mount_is_named)
{
    add_mount("/srv/uploads", 0, false);
    check_only(FP_DEGRADED, "The nfs4 file system at /srv/uploads does not answer.",
               "stale_if_error_ms in its");
    f.mounts->nelts = 0;
    add_mount("/srv/uploads", 60000, false);
    check_only(FP_DEGRADED, "/srv/uploads", "Meanwhile stale answers are served");
}
END_TEST

START_TEST(another_release_is_told)
{
    f.about->nelts = 0;
    set_fact("version", "0.0.9");
    check_only(FP_DEGRADED, "The daemon is of release 0.0.9, and this is " FP_RELEASE, "Install both from one release");
}
END_TEST

START_TEST(workers_that_are_missing_or_busy)
{
    f.from_daemon->nelts = 0;
    set_counter("workers", 3);
    check_only(FP_DEGRADED, "Only 3 of 4 workers live.", "FP0022");
    f.from_daemon->nelts = 0;
    set_counter("workers", 4);
    set_counter("queued", 3);
    health = fp_health_of(pool, &f);
    ck_assert_int_eq(health.findings->nelts, 0);
    f.from_daemon->nelts = 1;
    set_counter("queued", 4);
    check_only(FP_DEGRADED, "4 lookups wait for a free worker.", "Raise workers");
}
END_TEST

START_TEST(workers_of_a_daemon_that_just_began_are_no_fault)
{
    f.about->nelts--;
    set_fact("uptime_s", "4");
    f.from_daemon->nelts = 0;
    set_counter("workers", 3);
    set_counter("queued", 4);
    health = fp_health_of(pool, &f);
    ck_assert_int_eq(health.findings->nelts, 0);
}
END_TEST

START_TEST(limits_that_were_met)
{
    set_counter("watches_refused", 7);
    check_only(FP_DEGRADED, "7 watches were refused", "Raise `sysctl fs.inotify.max_user_watches`");
    check_only(FP_DEGRADED, "7 watches were refused", "`systemctl restart flashpached`");
    set_fact("supervised", "on");
    check_only(FP_DEGRADED, "7 watches were refused", "`kill $(cat /run/flashpached.sock.lock)`");
    f.from_daemon->nelts = 1;
    set_counter("refused", 2);
    check_only(FP_DEGRADED, "2 connections were refused", "max_connections");
}
END_TEST

START_TEST(a_fleet_without_its_redis)
{
    set_counter("fleet_connected", 0);
    health = fp_health_of(pool, &f);
    ck_assert_int_eq(health.findings->nelts, 0);
    set_counter("fleet_member", 1);
    set_counter("fleet_sending", 1);
    check_only(FP_DEGRADED, "The fleet's stream is not being read", "FP0061");
    f.from_daemon->nelts = 1;
    set_counter("fleet_member", 1);
    set_counter("fleet_connected", 1);
    check_only(FP_DEGRADED, "Redis accepts no message to the fleet.", "FP0061");
}
END_TEST

START_TEST(what_is_over_is_no_fault)
{
    f.total.counts[FP_COUNT_LEASE] = 990;
    f.total.counts[FP_COUNT_NOBODY] = 9;
    health = fp_health_of(pool, &f);
    ck_assert_int_eq(health.findings->nelts, 0);
    f.total.counts[FP_COUNT_TIMEOUT] = 1;
    check_only(FP_HEALTHY, "10 of 1000 requests", "reasons below");
    f.total = (struct fp_snapshot_host){ 0 };
    f.total.counts[FP_COUNT_COMPARED] = 5;
    f.total.counts[FP_COUNT_DIFFERENT] = 2;
    check_only(FP_HEALTHY, "2 of 5 compared requests differed", "FP0120");
}
END_TEST

START_TEST(an_engine_that_is_off)
{
    f.hosts = apr_array_make(pool, 1, sizeof(struct fp_snapshot_host));
    check_only(FP_HEALTHY, "FlashpacheEngine is off everywhere.", "FlashpacheEngine On");
}
END_TEST

START_TEST(the_worst_comes_first)
{
    f.total.counts[FP_COUNT_NOBODY] = 1;
    set_counter("refused", 2);
    add_mount("/a", 0, false);
    add_mount("/b", 0, false);
    f.daemon = FP_CLOSED;
    health = fp_health_of(pool, &f);
    ck_assert_int_eq(health.findings->nelts, 5);
    ck_assert_int_eq(health.level, FP_DOWN);
    ck_assert_int_eq(finding(0)->level, FP_DOWN);
    ck_assert_ptr_nonnull(strstr(finding(1)->why, "/a"));
    ck_assert_ptr_nonnull(strstr(finding(2)->why, "/b"));
    ck_assert_int_eq(finding(4)->level, FP_HEALTHY);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("health");
    TCase *t = unit_add_case(s, "findings", setup, teardown, 30);

    tcase_add_test(t, nothing_is_found_where_all_is_well);
    tcase_add_test(t, without_an_answer_it_is_down);
    tcase_add_test(t, a_mount_is_named);
    tcase_add_test(t, another_release_is_told);
    tcase_add_test(t, workers_that_are_missing_or_busy);
    tcase_add_test(t, workers_of_a_daemon_that_just_began_are_no_fault);
    tcase_add_test(t, limits_that_were_met);
    tcase_add_test(t, a_fleet_without_its_redis);
    tcase_add_test(t, what_is_over_is_no_fault);
    tcase_add_test(t, an_engine_that_is_off);
    tcase_add_test(t, the_worst_comes_first);
    return unit_run(s);
}
