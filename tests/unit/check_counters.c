/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "status/counters.h"

#include <pthread.h>
#include <stdarg.h>

#include "unit.h"

#define THREADS  4
#define EACH     20000 /* counted by each of them */
#define CHILDREN 3

static apr_pool_t *pool;
static struct fp_counters kept;

/* Names end with NULL. */
static void begin(int most_children, ...)
{
    apr_array_header_t *hosts = apr_array_make(pool, 4, sizeof(const char *));
    const char *name;
    va_list ap;

    va_start(ap, most_children);
    while ((name = va_arg(ap, const char *)) != NULL)
        APR_ARRAY_PUSH(hosts, const char *) = name;
    va_end(ap);
    ck_assert_int_eq(fp_counters_init(&kept, pool, hosts, most_children), APR_SUCCESS);
}

static void setup(void)
{
    ck_assert_int_eq(apr_initialize(), APR_SUCCESS);
    ck_assert_int_eq(apr_pool_create(&pool, NULL), APR_SUCCESS);
    memset(&kept, 0, sizeof(kept));
}

static void teardown(void)
{
    apr_pool_destroy(pool);
}

static void count(unsigned host, enum fp_count what, unsigned times)
{
    while (times-- > 0)
        fp_count(host, what);
}

/* Runs in a child of our own. */
static pid_t child(void (*run)(void))
{
    pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid == 0) {
        run();
        _exit(0);
    }
    return pid;
}

static void join(pid_t pid)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
}

/* ---- counting ---- */

START_TEST(nothing_is_counted_without_memory)
{
    struct fp_usage usage;

    fp_count(0, FP_COUNT_HIT);
    fp_counters_begin_child();
    fp_counters_set_usage(&(struct fp_usage){ 1, 2, 3 });
    ck_assert_uint_eq(fp_counters_sum(0, FP_COUNT_HIT), 0);
    ck_assert_uint_eq(fp_counters_usage(&usage), 0);
    fp_counters_end_child();
}
END_TEST

START_TEST(hosts_and_outcomes_are_apart)
{
    begin(1, "a", "b", "c", NULL);
    for (unsigned host = 0; host < 3; host++) {
        for (unsigned what = 0; what < FP_COUNTS; what++)
            count(host, (enum fp_count)what, host * FP_COUNTS + what);
    }
    fp_count(3, FP_COUNT_HIT); /* there is no such host */
    for (unsigned host = 0; host < 3; host++) {
        for (unsigned what = 0; what < FP_COUNTS; what++)
            ck_assert_uint_eq(fp_counters_sum(host, (enum fp_count)what), host * FP_COUNTS + what);
    }
    ck_assert_uint_eq(fp_counters_sum(3, FP_COUNT_HIT), 0);
}
END_TEST

static void *count_many(void *unused)
{
    (void)unused;
    count(1, FP_COUNT_LEASE, EACH);
    return NULL;
}

static void count_in_threads(void)
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count_many, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

START_TEST(no_count_is_lost)
{
    pid_t pids[CHILDREN];

    begin(CHILDREN, "a", "b", NULL);
    for (int i = 0; i < CHILDREN; i++)
        pids[i] = child(count_in_threads);
    for (int i = 0; i < CHILDREN; i++)
        join(pids[i]);
    ck_assert_uint_eq(fp_counters_sum(1, FP_COUNT_LEASE), (uint64_t)CHILDREN * THREADS * EACH);
    ck_assert_uint_eq(fp_counters_sum(0, FP_COUNT_LEASE), 0);
}
END_TEST

START_TEST(every_outcome_has_a_name)
{
    for (unsigned i = 0; i < FP_OUTCOMES; i++) {
        ck_assert_ptr_nonnull(fp_outcomes[i].word);
        ck_assert_int_eq(fp_outcomes[i].reason == NULL, i < FP_COUNT_NOFILE);
    }
}
END_TEST

/* ---- restarts ---- */

START_TEST(same_hosts_go_on)
{
    pid_t pid;

    begin(2, "a", "b", NULL);
    count(1, FP_COUNT_HIT, 5);
    /* A child from before the restart counts on. */
    pid = child(count_in_threads);
    begin(2, "a", "b", NULL);
    join(pid);
    ck_assert_uint_eq(fp_counters_sum(1, FP_COUNT_HIT), 5);
    ck_assert_uint_eq(fp_counters_sum(1, FP_COUNT_LEASE), THREADS * EACH);
}
END_TEST

START_TEST(counts_follow_their_host)
{
    begin(1, "a", "b", "c", NULL);
    count(0, FP_COUNT_HIT, 5);
    count(1, FP_COUNT_HIT, 6);
    count(2, FP_COUNT_MISS, 7);
    begin(1, "c", "new", "a", NULL);
    ck_assert_uint_eq(fp_counters_sum(0, FP_COUNT_MISS), 7);
    ck_assert_uint_eq(fp_counters_sum(0, FP_COUNT_HIT), 0);
    ck_assert_uint_eq(fp_counters_sum(1, FP_COUNT_HIT), 0);
    ck_assert_uint_eq(fp_counters_sum(2, FP_COUNT_HIT), 5);
    begin(1, NULL);
    ck_assert_uint_eq(fp_counters_sum(0, FP_COUNT_MISS), 0);
    begin(1, "a", NULL);
    ck_assert_uint_eq(fp_counters_sum(0, FP_COUNT_HIT), 0);
}
END_TEST

START_TEST(more_children_than_before)
{
    begin(1, "a", NULL);
    count(0, FP_COUNT_HIT, 5);
    begin(100, "a", NULL);
    ck_assert_uint_eq(fp_counters_sum(0, FP_COUNT_HIT), 5);
}
END_TEST

/* ---- the usage of children ---- */

static void hold_and_wait(void)
{
    fp_counters_begin_child();
    fp_counters_set_usage(&(struct fp_usage){ 9, 9, 9 });
    fp_counters_set_usage(&(struct fp_usage){ 10, 2, 5000000000 });
    pause();
}

static void hold_and_end(void)
{
    fp_counters_begin_child();
    fp_counters_set_usage(&(struct fp_usage){ 10, 2, 5000000000 });
    fp_counters_end_child();
}

static void await(unsigned children, uint64_t mapped)
{
    struct fp_usage usage = { 0, 0, 0 };

    for (int i = 0; i < 2000; i++) {
        if (fp_counters_usage(&usage) == children && usage.mapped == mapped)
            break;
        unit_sleep_ms(5);
    }
    ck_assert_uint_eq(usage.open_files, children * 10);
    ck_assert_uint_eq(usage.descriptors, children * 2);
    ck_assert_uint_eq(usage.mapped, mapped);
}

START_TEST(living_children_are_in_the_usage)
{
    pid_t pids[CHILDREN];

    begin(CHILDREN, "a", NULL);
    for (int i = 0; i < CHILDREN; i++)
        pids[i] = child(hold_and_wait);
    await(CHILDREN, CHILDREN * 5000000000u);
    for (int i = 0; i < CHILDREN; i++) {
        kill(pids[i], SIGKILL);
        join(pids[i]);
        await((unsigned)(CHILDREN - 1 - i), (uint64_t)(CHILDREN - 1 - i) * 5000000000u);
    }
}
END_TEST

START_TEST(row_of_an_ended_child_is_taken)
{
    pid_t pid;

    begin(1, "a", NULL);
    join(child(hold_and_end));
    await(0, 0);
    pid = child(hold_and_wait);
    await(1, 5000000000u);
    /* There is no row for this one: its usage is not in the sum. */
    join(child(hold_and_end));
    await(1, 5000000000u);
    kill(pid, SIGKILL);
    join(pid);
    pid = child(hold_and_wait);
    await(1, 5000000000u);
    kill(pid, SIGKILL);
    join(pid);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("counters");
    TCase *t = unit_add_case(s, "counting", setup, teardown, 30);

    tcase_add_test(t, nothing_is_counted_without_memory);
    tcase_add_test(t, hosts_and_outcomes_are_apart);
    tcase_add_test(t, no_count_is_lost);
    tcase_add_test(t, every_outcome_has_a_name);
    t = unit_add_case(s, "restarts", setup, teardown, 30);
    tcase_add_test(t, same_hosts_go_on);
    tcase_add_test(t, counts_follow_their_host);
    tcase_add_test(t, more_children_than_before);
    t = unit_add_case(s, "usage", setup, teardown, 30);
    tcase_add_test(t, living_children_are_in_the_usage);
    tcase_add_test(t, row_of_an_ended_child_is_taken);
    return unit_run(s);
}
