/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "workers/mount_queues.h"

#include "unit.h"

#define WORKERS 2
#define MAX     20

static struct fp_mount_queues queues;
static struct fp_waiting all[100];

static bool is_local(void *ctx, uint32_t mount)
{
    (void)ctx;
    return mount < 10;
}

static void setup(void)
{
    fp_mount_queues_init(&queues, &(struct fp_mount_limits){ WORKERS, 3, MAX, is_local, NULL });
}

static void teardown(void)
{
    ck_assert_uint_eq(queues.waiting, 0);
    ck_assert(TAILQ_EMPTY(&queues.all));
}

static void put(uint32_t mount, unsigned i)
{
    ck_assert_int_eq((int)fp_mount_queues_put(&queues, mount, &all[i], false), FP_OK);
}

/* Which one began; -1: none may. */
static int take(void)
{
    const struct fp_waiting *w = fp_mount_queues_take(&queues);

    return w != NULL ? (int)(w - all) : -1;
}

static void left(unsigned i)
{
    fp_mount_queues_left(&queues, &all[i]);
}

START_TEST(first_come_first_served)
{
    put(1, 0);
    put(1, 1);
    ck_assert_int_eq(take(), 0);
    ck_assert_int_eq(take(), 1);
    ck_assert_int_eq(take(), -1);
    left(0);
    left(1);
}
END_TEST

START_TEST(mounts_in_turn)
{
    for (unsigned i = 0; i < 4; i++)
        put(1, i);
    put(2, 4);
    put(3, 5);
    ck_assert_int_eq(take(), 0);
    ck_assert_int_eq(take(), 4);
    ck_assert_int_eq(take(), 5);
    ck_assert_int_eq(take(), 1);
    left(0);
    left(1);
    left(4);
    left(5);
    ck_assert_int_eq(take(), 2);
    ck_assert_int_eq(take(), 3);
    left(2);
    left(3);
}
END_TEST

START_TEST(no_more_workers_than_allowed)
{
    for (unsigned i = 0; i < 3; i++)
        put(1, i);
    put(2, 3);
    ck_assert_int_eq(take(), 0);
    ck_assert_int_eq(take(), 3);
    ck_assert_int_eq(take(), 1);
    ck_assert_int_eq(take(), -1);
    left(1);
    ck_assert_int_eq(take(), 2);
    left(0);
    left(2);
    left(3);
}
END_TEST

/* Two mounts that hold all the workers that are shared leave one of its own to each of the others. */
START_TEST(each_mount_has_a_worker)
{
    for (unsigned i = 0; i < 3; i++)
        put(1, i);
    for (unsigned i = 3; i < 6; i++)
        put(2, i);
    ck_assert_int_eq(take(), 0);
    ck_assert_int_eq(take(), 3);
    ck_assert_int_eq(take(), 1);
    ck_assert_int_eq(take(), -1);
    put(3, 6);
    put(3, 7);
    ck_assert_int_eq(take(), 6);
    ck_assert_int_eq(take(), -1);
    left(1);
    ck_assert_int_eq(take(), 4);
    left(6);
    ck_assert_int_eq(take(), 7);
    ck_assert_int_eq(take(), -1);
    left(0);
    left(3);
    left(4);
    left(7);
    ck_assert_int_eq(take(), 2);
    ck_assert_int_eq(take(), 5);
    left(2);
    left(5);
}
END_TEST

/* However many other mounts there are, and whichever way walks came there. */
START_TEST(local_mounts_have_workers)
{
    for (unsigned i = 0; i < 5; i++)
        put(10 + i, i);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(take(), i);
    ck_assert_int_eq(take(), -1);
    put(1, 5);
    ck_assert_int_eq(take(), 5);
    ck_assert(!fp_mount_queues_crowded(&queues, 10));
    ck_assert_int_eq((int)fp_mount_queues_move(&queues, &all[5], 15), FP_OK);
    ck_assert(fp_mount_queues_crowded(&queues, 15));
    left(5);
    left(0);
    ck_assert_int_eq(take(), 3);
    left(1);
    ck_assert_int_eq(take(), 4);
    for (unsigned i = 2; i < 5; i++)
        left(i);
}
END_TEST

/* A worker is where its walk has come to: it frees a place here, and takes one there. */
START_TEST(a_walk_goes_to_another_mount)
{
    for (unsigned i = 0; i < 3; i++)
        put(1, i);
    put(2, 3);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_ne(take(), -1);
    ck_assert_int_eq(take(), -1);
    ck_assert_int_eq((int)fp_mount_queues_move(&queues, &all[0], 7), FP_OK);
    ck_assert_int_eq(take(), 2);
    ck_assert_int_eq(take(), -1);
    ck_assert_int_eq((int)fp_mount_queues_move(&queues, &all[1], 2), FP_OK);
    ck_assert(!fp_mount_queues_crowded(&queues, 2));
    ck_assert_int_eq((int)fp_mount_queues_move(&queues, &all[0], 2), FP_OK);
    ck_assert(fp_mount_queues_crowded(&queues, 2));
    ck_assert(!fp_mount_queues_crowded(&queues, 1));
    left(0);
    ck_assert(!fp_mount_queues_crowded(&queues, 2));
    for (unsigned i = 1; i < 4; i++)
        left(i);
}
END_TEST

START_TEST(half_of_the_places)
{
    unsigned n = 0;

    while (n < MAX && fp_mount_queues_put(&queues, 1, &all[n], false) == FP_OK)
        n++;
    ck_assert_uint_eq(n, MAX / 2);
    while (n < MAX && fp_mount_queues_put(&queues, 2, &all[n], false) == FP_OK)
        n++;
    ck_assert_uint_eq(n, MAX);
    ck_assert_int_eq((int)fp_mount_queues_put(&queues, 3, &all[n], false), FP_BUSY);
    ck_assert_uint_eq(fp_mount_queues_waiting(&queues, 1), MAX / 2);
    for (uint32_t mount = 1; mount <= 2; mount++) {
        while (fp_mount_queues_cancel(&queues, mount) != NULL)
            n--;
    }
    ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(end_of_all_that_wait)
{
    put(1, 0);
    ck_assert_int_eq((int)fp_mount_queues_put(&queues, 1, &all[1], true), FP_OK);
    put(2, 2);
    put(2, 3);
    ck_assert_int_eq(take(), 1);
    ck_assert_int_eq((int)fp_mount_queues_put(&queues, 2, &all[4], true), FP_OK);
    ck_assert_ptr_eq(fp_mount_queues_cancel_hopeless(&queues, true), &all[2]);
    ck_assert_ptr_eq(fp_mount_queues_cancel_hopeless(&queues, true), &all[3]);
    ck_assert_ptr_eq(fp_mount_queues_cancel_hopeless(&queues, true), &all[0]);
    ck_assert_ptr_null(fp_mount_queues_cancel_hopeless(&queues, true));
    ck_assert_int_eq(take(), 4);
    left(1);
    left(4);
}
END_TEST

START_TEST(put_back)
{
    put(1, 0);
    put(1, 1);
    ck_assert_int_eq(take(), 0);
    fp_mount_queues_put_back(&queues, &all[0]);
    ck_assert_int_eq(take(), 0);
    ck_assert_int_eq(take(), 1);
    left(0);
    left(1);
}
END_TEST

/* A worker that hangs in the kernel counts, except for one probe. */
START_TEST(dying)
{
    struct fp_mount_queue *one, *two;

    put(1, 0);
    put(1, 1);
    put(1, 2);
    ck_assert_int_eq(take(), 0);
    ck_assert_int_eq(take(), 1);
    one = fp_mount_queues_dying(&queues, &all[0]);
    ck_assert_int_eq(take(), -1);
    ck_assert_int_eq((int)fp_mount_queues_put(&queues, 1, &all[3], true), FP_OK);
    ck_assert_int_eq(take(), 3);
    ck_assert_int_eq(take(), -1);
    two = fp_mount_queues_dying(&queues, &all[3]);
    ck_assert_ptr_eq(one, two);
    ck_assert_uint_eq(fp_mount_queue_mount(one), 1);
    ck_assert_int_eq((int)fp_mount_queues_put(&queues, 1, &all[4], true), FP_OK);
    ck_assert_int_eq(take(), -1);
    /* They have all places: a newcomer would wait for an unknown time. */
    ck_assert_int_eq((int)fp_mount_queues_put(&queues, 1, &all[5], false), FP_UNAVAILABLE);
    ck_assert_int_eq((int)fp_mount_queues_put(&queues, 2, &all[5], false), FP_OK);
    /* So does who waits already; the probe stays. */
    ck_assert_ptr_eq(fp_mount_queues_cancel_hopeless(&queues, false), &all[2]);
    ck_assert_ptr_null(fp_mount_queues_cancel_hopeless(&queues, false));
    ck_assert_int_eq(take(), 5);
    left(5);
    fp_mount_queues_dead(&queues, one);
    ck_assert_int_eq(take(), 4);
    left(4);
    left(1);
    ck_assert_int_eq(take(), -1);
    fp_mount_queues_dead(&queues, two);
}
END_TEST

START_TEST(new_limits)
{
    put(1, 0);
    put(1, 1);
    put(1, 2);
    queues.limits.workers = 1;
    queues.limits.waiting = 2;
    ck_assert_int_eq((int)fp_mount_queues_put(&queues, 2, &all[3], false), FP_BUSY);
    ck_assert_int_eq(take(), 0);
    ck_assert_int_eq(take(), -1);
    queues.limits.workers = 3;
    ck_assert_int_eq(take(), 1);
    ck_assert_int_eq(take(), 2);
    for (unsigned i = 0; i < 3; i++)
        left(i);
}
END_TEST

static Suite *make_suite(void)
{
    Suite *s = suite_create("queues");
    TCase *t = unit_add_case(s, "queues", setup, teardown, 0);

    tcase_add_test(t, first_come_first_served);
    tcase_add_test(t, mounts_in_turn);
    tcase_add_test(t, no_more_workers_than_allowed);
    tcase_add_test(t, each_mount_has_a_worker);
    tcase_add_test(t, local_mounts_have_workers);
    tcase_add_test(t, half_of_the_places);
    tcase_add_test(t, a_walk_goes_to_another_mount);
    tcase_add_test(t, end_of_all_that_wait);
    tcase_add_test(t, put_back);
    tcase_add_test(t, dying);
    tcase_add_test(t, new_limits);
    return s;
}

int main(void)
{
    return unit_run(make_suite());
}
