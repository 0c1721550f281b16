/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease table while the daemon writes and clients read: the
 * promise about the order in which they see each other's writes.
 */
#include "config.h"
#include "shared/lease_table.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

#include "lease_kit.h"
#include "unit.h"

#define N     8
#define NOW   100000u /* when views are asked, where that does not matter */
#define UNTIL (NOW + 10000)
#define TICK  FP_SLOT_TICK_MS

static struct fp_lease_table *table;
static struct fp_lease_view *view;

static void setup(void)
{
    table = fp_lease_table_create(N);
    ck_assert_ptr_nonnull(table);
    view = unit_view(table);
}

static void teardown(void)
{
    fp_lease_view_release(&view);
    fp_lease_table_destroy(&table);
}

/*
 * The promise: a client may see the table as current until t, and then a generation unchanged. Its
 * data was then true at t - FP_HEARTBEAT_MS or later. The writer's time is a count of rounds. In
 * each it changes one slot's data, bumps the slot, and publishes. A reader takes a lease under a
 * slot's generation. The lease must not pass once a later round was published and the reader saw
 * that.
 */
#define ROUNDS  200000u
#define READERS 3
#define SHARED  4u

static struct {
    _Atomic uint64_t data[SHARED + 1]; /* of each slot: the round that changed it */
    _Atomic bool done;
    _Atomic unsigned broken, accepted, ended;
} world;

/* A busy machine may let no reader run for all the rounds, so the writer rests until one has read. */
static void give_way(void)
{
    if (world.accepted == 0 || world.ended == 0)
        nanosleep(&(struct timespec){ .tv_nsec = 1000 * 1000 }, NULL);
    else
        sched_yield();
}

static void *write_rounds(void *arg)
{
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        const uint32_t slot = 1 + (uint32_t)(round % SHARED);

        atomic_store_explicit(&world.data[slot], round, memory_order_relaxed);
        fp_lease_table_invalidate(table, slot);
        fp_lease_table_heartbeat(table, round * FP_HEARTBEAT_MS);
        if (round % 64 == 0)
            give_way();
    }
    atomic_store(&world.done, true);
    return arg;
}

/* The last round whose end the table shows, from a guess that is not after it. */
static uint64_t published(uint64_t at_least)
{
    uint64_t round = at_least;

    /* Up to date at t: a round r with t < (r + 1) * FP_HEARTBEAT_MS was published. */
    while (fp_lease_view_is_current(view, (round + 1) * FP_HEARTBEAT_MS))
        round++;
    return round;
}

static void *read_leases(void *arg)
{
    uint64_t known = 0;
    uint32_t slot = 1 + (uint32_t)(uintptr_t)arg % SHARED;

    while (!atomic_load(&world.done)) {
        const uint32_t generation = fp_lease_table_generation(table, slot);
        uint64_t data, round;

        /* As the daemon would answer: the generation, then its data. A change between the two gives
         * a lease that holds too short, not too long. */
        if (!fp_lease_view_is_valid(view, slot, generation, NOW))
            continue;
        data = atomic_load_explicit(&world.data[slot], memory_order_relaxed);
        for (int i = 0; i < 50; i++) {
            round = published(known);
            known = round;
            if (!fp_lease_view_is_valid(view, slot, generation, NOW)) {
                atomic_fetch_add(&world.ended, 1);
                break;
            }
            /* The last round up to it that changed this slot must be in the data. */
            if (round > SHARED && data + SHARED <= round)
                atomic_fetch_add(&world.broken, 1);
            atomic_fetch_add(&world.accepted, 1);
            fp_lease_view_reference(view, slot);
        }
        slot = slot % SHARED + 1;
    }
    return NULL;
}

/* Several readers, who know their number, beside one writer. */
static void race(void *(*write)(void *), void *(*read)(void *))
{
    pthread_t writer, readers[READERS];

    memset(&world, 0, sizeof(world));
    for (uintptr_t i = 0; i < READERS; i++)
        ck_assert_int_eq(pthread_create(&readers[i], NULL, read, (void *)i), 0);
    ck_assert_int_eq(pthread_create(&writer, NULL, write, NULL), 0);
    ck_assert_int_eq(pthread_join(writer, NULL), 0);
    for (int i = 0; i < READERS; i++)
        ck_assert_int_eq(pthread_join(readers[i], NULL), 0);
    ck_assert_uint_eq(world.broken, 0);
    ck_assert_uint_gt(world.accepted, 0);
}

START_TEST(change_is_seen_before_the_word_that_all_is_told)
{
    for (uint32_t slot = 1; slot <= SHARED; slot++)
        fp_lease_table_set_expiry(table, slot, UNTIL);
    race(write_rounds, read_leases);
    ck_assert_uint_gt(world.ended, 0);
    ck_assert(fp_lease_table_take_use(table));
}
END_TEST

/*
 * No lease holds with the expiry of the generation after it. Generation g is given until tick g,
 * and has the former one's expiry until then. A reader that sees it hold at tick g has mixed two
 * moments.
 */
static void *write_generations(void *arg)
{
    for (uint64_t g = fp_lease_table_generation(table, 1); g < 8 * ROUNDS; g++) {
        fp_lease_table_invalidate(table, 1);
        fp_lease_table_set_expiry(table, 1, (g + 1) * TICK);
    }
    atomic_store(&world.done, true);
    return arg;
}

static void *read_generations(void *arg)
{
    unsigned broken = 0, accepted = 0;

    while (!atomic_load(&world.done)) {
        const uint32_t g = fp_lease_table_generation(table, 1);

        for (int i = 0; i < 20; i++) {
            accepted += fp_lease_view_is_valid(view, 1, g, (uint64_t)(g - 2) * TICK);
            broken += fp_lease_view_is_valid(view, 1, g, (uint64_t)g * TICK);
        }
    }
    atomic_fetch_add(&world.broken, broken);
    atomic_fetch_add(&world.accepted, accepted);
    return arg;
}

START_TEST(time_of_the_next_generation_is_never_seen)
{
    for (int i = 0; i < 3; i++)
        fp_lease_table_invalidate(table, 1);
    fp_lease_table_set_expiry(table, 1, 3 * TICK);
    race(write_generations, read_generations);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("lease_order");
    TCase *t = unit_add_case(s, "order", setup, teardown, 60);

    tcase_add_test(t, change_is_seen_before_the_word_that_all_is_told);
    tcase_add_test(t, time_of_the_next_generation_is_never_seen);
    return unit_run(s);
}
