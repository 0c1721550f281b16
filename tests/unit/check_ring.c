/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring: places of items, overwritten items, second chances, and items that a reader takes for
 * whole.
 */
#include "config.h"
#include "shared/ring.h"

#include <fcntl.h>

#include "area_kit.h"
#include "unit.h"
#include "wire/packet.h"

#define SIZE ((size_t)4096)

static union {
    struct fp_ring_head head;
    uint8_t bytes[sizeof(struct fp_ring_head) + SIZE];
} area;
static struct fp_ring ring;
static struct fp_area_view all;
static struct fp_ring_view view;
static uint64_t place_of[3000]; /* of the item with that number; 0: it is gone */
static bool wanted[3000];       /* by its owner, always */
static uint64_t asked, n_dropped;

struct numbered {
    struct fp_ring_item ring;
    uint64_t number;
};

static uint64_t number_of(const struct fp_ring_item *item)
{
    return ((const struct numbered *)item)->number;
}

static bool keep(void *ctx, uint64_t at, const struct fp_ring_item *item)
{
    const uint64_t n = number_of(item);

    (void)ctx;
    asked++;
    ck_assert_uint_eq(place_of[n], at);
    return wanted[n];
}

static void moved(void *ctx, uint64_t from, uint64_t to, const struct fp_ring_item *item)
{
    const uint64_t n = number_of(item);

    (void)ctx;
    ck_assert_uint_eq(place_of[n], from);
    ck_assert_uint_gt(to, from);
    place_of[n] = to;
}

static void dropped(void *ctx, uint64_t at, const struct fp_ring_item *item)
{
    (void)ctx;
    ck_assert_uint_eq(place_of[number_of(item)], at);
    n_dropped++;
}

static const struct fp_ring_ops ops = { keep, moved, dropped };

static void setup(void)
{
    memset(&area, 0, sizeof(area));
    memset(place_of, 0, sizeof(place_of));
    memset(wanted, 0, sizeof(wanted));
    asked = 0;
    area.head.magic = 7;
    area.head.data = sizeof(area.head);
    area.head.size = SIZE;
    fp_ring_init(&ring, &area.head, &ops, NULL);
    all = (struct fp_area_view){ area.bytes, sizeof(area), sizeof(area), -1 };
    ck_assert(fp_ring_view_init(&view, &all, 7));
}

static void teardown(void)
{
    free(ring.buf);
}

/* Each byte behind the number is the number's. */
static void append(uint64_t n, size_t size)
{
    const uint64_t at = fp_ring_append(&ring, size);
    struct numbered *item = (struct numbered *)fp_ring_at(&ring, at);

    ck_assert_uint_ne(at, FP_RING_NOWHERE);
    ck_assert_uint_eq(at % FP_RING_UNIT, 0);
    ck_assert_uint_le(at % SIZE + size, SIZE);
    item->ring.len = 1;
    item->number = n;
    memset(item + 1, (int)(n & 0xff), size - sizeof(*item));
    place_of[n] = at;
}

/* As a reader. */
static bool is_there(uint64_t n, size_t size)
{
    const uint64_t at = place_of[n];
    uint8_t copy[SIZE];
    struct numbered head;

    ck_assert_int_eq(fp_ring_has(&ring, at), fp_ring_view_is_whole(&view, at));
    if (!fp_ring_view_is_whole(&view, at))
        return false;
    ck_assert_uint_eq(fp_ring_view_item(&view, at, copy, SIZE), size);
    memcpy(&head, copy, sizeof(head));
    ck_assert_uint_eq(head.number, n);
    /* All alike: the first is right, and each is as the one before. */
    ck_assert(size == sizeof(head)
              || (copy[sizeof(head)] == (n & 0xff)
                  && memcmp(copy + sizeof(head), copy + sizeof(head) + 1, size - sizeof(head) - 1) == 0));
    return true;
}

START_TEST(what_was_appended_last_is_there)
{
    uint64_t seed = 99;
    size_t sizes[1000];

    for (uint64_t n = 1; n < 1000; n++) {
        sizes[n] = fp_ring_round(sizeof(struct numbered) + unit_random(&seed) % (SIZE / 4 - 32));
        append(n, sizes[n]);
        /* An item and fillers take three quarters at most. */
        ck_assert(is_there(n, sizes[n]));
        if (n > 1)
            ck_assert(is_there(n - 1, sizes[n - 1]));
        ck_assert_uint_le(ring.head - ring.tail, SIZE);
    }
    ck_assert(!is_there(1, sizes[1]));
    ck_assert_uint_gt(ring.dropped, 900);
    ck_assert_uint_eq(ring.dropped, n_dropped);
    ck_assert_uint_eq(ring.kept, 0);
}
END_TEST

START_TEST(all_of_it_is_used)
{
    for (uint64_t n = 1; n <= SIZE / 64; n++)
        append(n, 64);
    for (uint64_t n = 1; n <= SIZE / 64; n++)
        ck_assert(is_there(n, 64));
    ck_assert_uint_eq(asked, 0);
    append(SIZE / 64 + 1, 64);
    ck_assert(!is_there(1, 64));
    ck_assert(is_there(2, 64));
    ck_assert_uint_eq(asked, 1);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
    const size_t sizes[] = { 0, 8, 15, 17, SIZE / 4 + 16, SIZE, SIZE_MAX - 15 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        ck_assert_uint_eq(fp_ring_append(&ring, sizes[i]), FP_RING_NOWHERE);
    append(1, SIZE / 4);
    ck_assert(is_there(1, SIZE / 4));
}
END_TEST

START_TEST(who_is_wanted_stays)
{
    wanted[5] = wanted[9] = true;
    for (uint64_t n = 1; n < 2000; n++) {
        append(n, 48);
        ck_assert(n < 5 || is_there(5, 48));
        ck_assert(n < 9 || is_there(9, 48));
        ck_assert(is_there(n, 48));
    }
    wanted[5] = false;
    for (uint64_t n = 2000; n < 2200; n++)
        append(n, 48);
    ck_assert(!is_there(5, 48));
    ck_assert(is_there(9, 48));
}
END_TEST

/* However many items are wanted: an append comes to an end, and a new item finds its place. */
START_TEST(everything_may_be_wanted)
{
    uint64_t seed = 4711;

    memset(wanted, true, sizeof(wanted));
    for (uint64_t n = 1; n < 2000; n++) {
        const uint64_t before = asked, kept = ring.kept;
        const size_t size = fp_ring_round(sizeof(struct numbered) + unit_random(&seed) % 200);

        append(n, size);
        ck_assert(is_there(n, size));
        ck_assert_uint_le(asked - before, FP_RING_KEEP);
        ck_assert_uint_le(ring.kept - kept, FP_RING_KEEP);
    }
    ck_assert_uint_gt(ring.kept, 1000);
    ck_assert_uint_gt(ring.dropped, 1000);
}
END_TEST

/* ---- a reader ---- */

static void assert_no_ring(size_t area_size)
{
    const struct fp_area_view some = { area.bytes, area_size, area_size, -1 };
    struct fp_ring_view other;

    ck_assert(!fp_ring_view_init(&other, &some, 7));
}

START_TEST(a_ring_lies_inside_its_area)
{
    const uint64_t bad[] = {
        0, 8, 15, 17, SIZE + 16, SIZE * 2, UINT64_MAX, UINT64_MAX - 15, (uint64_t)1 << 63
    };

    assert_no_ring(sizeof(area) - 1);
    assert_no_ring(sizeof(area.head));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        area.head.size = bad[i];
        assert_no_ring(sizeof(area));
    }
    area.head.size = SIZE;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        area.head.data = bad[i];
        assert_no_ring(sizeof(area));
    }
    area.head.data = sizeof(area.head);
    area.head.magic = 8;
    assert_no_ring(sizeof(area));
}
END_TEST

/* The area as a reader has it that does not map the ring: a memfd of the same bytes. */
static void open_copy(struct fp_area_view *v)
{
    int fd = area_kit_copy(area.bytes, sizeof(area), F_SEAL_SHRINK);

    ck_assert(fp_area_view_open(v, fd, sizeof(area.head), false));
    fp_close(&fd);
}

/* _i: mapped, or by pread(2). */
START_TEST(an_item_lies_inside_the_ring)
{
    struct fp_area_view read = { 0 };
    uint8_t copy[SIZE + 8];
    uint64_t at;

    append(1, 64);
    at = place_of[1];
    if (_i == 1) {
        open_copy(&read);
        ck_assert(fp_ring_view_init(&view, &read, 7));
    }
    ck_assert_uint_eq(fp_ring_view_item(&view, at, copy, 64), 64);
    ck_assert_mem_eq(copy, fp_ring_at(&ring, at), 64);
    memset(copy, 0xa5, sizeof(copy));
    ck_assert_uint_eq(fp_ring_view_item(&view, at, copy, 63), 64);
    ck_assert_uint_eq(copy[63], 0xa5);
    ck_assert_uint_eq(fp_ring_view_item(&view, at + 8, copy, SIZE), 0);
    ck_assert_uint_eq(fp_ring_view_item(&view, at + 1, copy, SIZE), 0);
    /* Where nothing was written. */
    ck_assert_uint_eq(fp_ring_view_item(&view, at + 64, copy, SIZE), 0);
    ck_assert(fp_ring_view_copy(&view, at, copy, SIZE));
    ck_assert(!fp_ring_view_copy(&view, at + 1, copy, SIZE));
    ck_assert(!fp_ring_view_copy(&view, at, copy, SIZE + 1));
    ck_assert(fp_ring_view_copy(&view, UINT64_MAX, copy, 1));
    ck_assert(!fp_ring_view_copy(&view, UINT64_MAX, copy, 2));
    ck_assert(!fp_ring_view_copy(&view, at + 16, copy, SIZE_MAX));
    fp_area_view_close(&read);
}
END_TEST

/* Each size of one item, and of one that lies at the ring's end. */
START_TEST(sizes_are_checked)
{
    static const uint32_t bad[] = { 0, 1, 2, 3, 4, 5, 6, 7, SIZE + 1, UINT32_MAX };
    static const uint32_t bad_at_end[] = { 7, 17, 32, UINT32_MAX };
    const uint64_t end = 2 * SIZE - 16;
    uint8_t copy[SIZE];

    append(1, 64);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct fp_area_view read;

        fp_ring_at(&ring, place_of[1])->size = bad[i];
        fp_ring_at(&ring, end)->len = 1;
        fp_ring_at(&ring, end)->size = bad_at_end[i % 4];
        ck_assert_uint_eq(fp_ring_view_item(&view, place_of[1], copy, SIZE), 0);
        ck_assert_uint_eq(fp_ring_view_item(&view, end, copy, SIZE), 0);
        open_copy(&read);
        ck_assert(fp_ring_view_init(&view, &read, 7));
        ck_assert_uint_eq(fp_ring_view_item(&view, place_of[1], copy, SIZE), 0);
        ck_assert_uint_eq(fp_ring_view_item(&view, end, copy, SIZE), 0);
        ck_assert(fp_ring_view_init(&view, &all, 7));
        fp_area_view_close(&read);
    }
    fp_ring_at(&ring, end)->size = 16;
    ck_assert_uint_eq(fp_ring_view_item(&view, end, copy, SIZE), 16);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ring");
    TCase *t = unit_add_case(s, "writer", setup, teardown, 0);

    tcase_add_test(t, what_was_appended_last_is_there);
    tcase_add_test(t, all_of_it_is_used);
    tcase_add_test(t, what_does_not_fit_is_refused);
    tcase_add_test(t, who_is_wanted_stays);
    tcase_add_test(t, everything_may_be_wanted);
    t = unit_add_case(s, "reader", setup, teardown, 0);
    tcase_add_test(t, a_ring_lies_inside_its_area);
    tcase_add_loop_test(t, an_item_lies_inside_the_ring, 0, 2);
    tcase_add_test(t, sizes_are_checked);
    return unit_run(s);
}
