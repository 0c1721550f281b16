/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "fleet/fleet_queue.h"

#include "hash_kit.h"
#include "unit.h"

#define MAX 4

static struct fp_fleet_queue *queue;

static void setup(void)
{
    unit_init_hash();
    queue = fp_fleet_queue_create(MAX);
    ck_assert_ptr_nonnull(queue);
}

static void teardown(void)
{
    fp_fleet_queue_destroy(&queue);
    ck_assert_ptr_null(queue);
}

static void add(enum fp_fleet_op op, const char *path)
{
    fp_fleet_queue_add(queue, op, path, strlen(path));
}

/* The next one is this; path "": it has none. */
static void sends(enum fp_fleet_op op, const char *path)
{
    struct fp_fleet_message m;

    ck_assert(fp_fleet_queue_send(queue, &m));
    ck_assert_int_eq((int)m.op, (int)op);
    ck_assert_uint_eq(m.path_len, strlen(path));
    ck_assert_mem_eq(m.path_len > 0 ? m.path : "", path, m.path_len);
}

static void sends_nothing(void)
{
    struct fp_fleet_message m;

    ck_assert(!fp_fleet_queue_send(queue, &m));
    ck_assert_uint_eq(fp_fleet_queue_waiting(queue), 0);
}

START_TEST(in_order_and_once)
{
    add(FP_FLEET_PATH, "/a");
    add(FP_FLEET_TREE, "/a");
    add(FP_FLEET_PATH, "/b");
    add(FP_FLEET_PATH, "/a");
    sends(FP_FLEET_PATH, "/a");
    sends(FP_FLEET_TREE, "/a");
    sends(FP_FLEET_PATH, "/b");
    sends_nothing();
}
END_TEST

/* The sent message may have taken effect before this change. */
START_TEST(again_after_it_was_sent)
{
    add(FP_FLEET_PATH, "/a");
    sends(FP_FLEET_PATH, "/a");
    add(FP_FLEET_PATH, "/a");
    sends(FP_FLEET_PATH, "/a");
    ck_assert_uint_eq(fp_fleet_queue_sent(queue), 2);
    fp_fleet_queue_stored(queue);
    fp_fleet_queue_stored(queue);
    ck_assert_uint_eq(fp_fleet_queue_sent(queue), 0);
    fp_fleet_queue_resend(queue);
    sends_nothing();
}
END_TEST

START_TEST(sent_again)
{
    add(FP_FLEET_PATH, "/a");
    add(FP_FLEET_PATH, "/b");
    add(FP_FLEET_PATH, "/c");
    sends(FP_FLEET_PATH, "/a");
    sends(FP_FLEET_PATH, "/b");
    fp_fleet_queue_stored(queue);
    add(FP_FLEET_PATH, "/d");
    fp_fleet_queue_resend(queue);
    ck_assert_uint_eq(fp_fleet_queue_sent(queue), 0);
    sends(FP_FLEET_PATH, "/b");
    sends(FP_FLEET_PATH, "/c");
    sends(FP_FLEET_PATH, "/d");
    sends_nothing();
}
END_TEST

START_TEST(too_many_become_everything)
{
    char path[16];

    for (int i = 0; i < MAX; i++) {
        snprintf(path, sizeof(path), "/%d", i);
        add(FP_FLEET_PATH, path);
    }
    sends(FP_FLEET_PATH, "/0");
    add(FP_FLEET_PATH, "/x");
    ck_assert_uint_eq(fp_fleet_queue_waiting(queue), MAX);
    add(FP_FLEET_PATH, "/y");
    add(FP_FLEET_PATH, "/z");
    ck_assert_uint_eq(fp_fleet_queue_waiting(queue), 1);
    /* It includes the sent message. */
    fp_fleet_queue_resend(queue);
    sends(FP_FLEET_ALL, "");
    add(FP_FLEET_PATH, "/later");
    sends(FP_FLEET_PATH, "/later");
    fp_fleet_queue_resend(queue);
    sends(FP_FLEET_ALL, "");
}
END_TEST

START_TEST(ends_with_some_left)
{
    add(FP_FLEET_PATH, "/a");
    add(FP_FLEET_PATH, "/b");
    sends(FP_FLEET_PATH, "/a");
    add(FP_FLEET_PATH, "/a");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("fleet_queue");
    TCase *t = unit_add_case(s, "queue", setup, teardown, 0);

    tcase_add_test(t, in_order_and_once);
    tcase_add_test(t, again_after_it_was_sent);
    tcase_add_test(t, sent_again);
    tcase_add_test(t, too_many_become_everything);
    tcase_add_test(t, ends_with_some_left);
    return unit_run(s);
}
