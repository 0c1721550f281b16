/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents in shared memory: put by the daemon, read by clients, with a mapping and without.
 */
#include "config.h"
#include "shared/contents.h"

#include "shared/ring.h"
#include "unit.h"

#include "area_kit.h"

#define SIZE ((size_t)FP_CONTENTS_LEAST)

static struct fp_contents *contents;
static struct fp_contents_view *views[2]; /* one reads, one maps */
static int fds_at_rest;

static void setup(void)
{
    fds_at_rest = unit_open_fds();
    contents = fp_contents_create(SIZE);
    ck_assert_ptr_nonnull(contents);
    for (int i = 0; i < 2; i++) {
        views[i] = fp_contents_view_create(fp_contents_fd(contents), i == 1);
        ck_assert_ptr_nonnull(views[i]);
    }
}

static void teardown(void)
{
    for (int i = 0; i < 2; i++)
        fp_contents_view_destroy(&views[i]);
    fp_contents_destroy(&contents);
    ck_assert_ptr_null(contents);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

static int file_of(unsigned seed, size_t size)
{
    uint8_t bytes[SIZE];
    uint64_t state = seed + 1;
    int fd = memfd_create("file", MFD_CLOEXEC);

    unit_random_bytes(&state, bytes, size);
    ck_assert_int_eq(pwrite(fd, bytes, size, 0), (ssize_t)size);
    return fd;
}

static uint64_t put(const char *path, unsigned seed, size_t size)
{
    int fd = file_of(seed, size);
    const uint64_t at = fp_contents_put(contents, path, strlen(path), fd, size);

    close(fd);
    return at;
}

/* Both clients agree. */
static bool is_there(uint64_t at, unsigned seed, size_t size)
{
    uint8_t wanted[SIZE], found[SIZE];
    uint64_t state = seed + 1;
    bool there = fp_contents_view_read(views[0], at, found, size);

    unit_random_bytes(&state, wanted, size);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(fp_contents_view_read(views[i], at, found, size), there);
        if (there)
            ck_assert_mem_eq(found, wanted, size);
    }
    return there;
}

START_TEST(clients_read_what_was_put)
{
    const size_t sizes[] = { 1, 15, 16, 4096, 5000, SIZE / 4 - 64 };
    uint64_t at[6];

    for (unsigned i = 0; i < 6; i++)
        at[i] = put("/srv/file", i, sizes[i]);
    for (unsigned i = 0; i < 6; i++)
        ck_assert(is_there(at[i], i, sizes[i]));
}
END_TEST

START_TEST(the_oldest_is_overwritten)
{
    uint64_t at[200];

    for (unsigned i = 0; i < 200; i++) {
        at[i] = put("/srv/file", i, 100 + 40 * i);
        ck_assert_uint_ne(at[i], FP_NO_CONTENT);
        ck_assert(is_there(at[i], i, 100 + 40 * i));
    }
    ck_assert(!is_there(at[0], 0, 100));
    ck_assert(!is_there(at[100], 100, 4100));
    ck_assert(is_there(at[195], 195, 7900));
    ck_assert_uint_gt(fp_contents_counts(contents).overwritten, 150);
    ck_assert_uint_eq(fp_contents_counts(contents).bytes, SIZE);
}
END_TEST

START_TEST(what_is_too_large_or_too_short_is_refused)
{
    int fd = file_of(1, 100);

    ck_assert_uint_eq(put("/f", 1, SIZE / 4), FP_NO_CONTENT);
    ck_assert_uint_eq(fp_contents_put(contents, "/f", 2, fd, 0), FP_NO_CONTENT);
    ck_assert_uint_eq(fp_contents_put(contents, "/f", 2, fd, 101), FP_NO_CONTENT);
    ck_assert_uint_eq(fp_contents_put(contents, "/f", 2, fd, UINT64_MAX), FP_NO_CONTENT);
    ck_assert_uint_eq(fp_contents_put(contents, "/f", 2, -1, 100), FP_NO_CONTENT);
    /* They leave a ring that goes on. */
    for (unsigned i = 0; i < 100; i++)
        ck_assert(is_there(put("/f", i, 3000), i, 3000));
    close(fd);
}
END_TEST

static uint64_t place; /* of the kept content */
static int times_moved;

static bool keep(void *ctx, const char *path, size_t len, uint64_t at)
{
    ck_assert_ptr_eq(ctx, &place);
    ck_assert(len == 5 || len == 6);
    ck_assert_mem_eq(path, len == 5 ? "/kept" : "/other", len);
    return len == 5 && at == place;
}

static void moved(void *ctx, const char *path, size_t len, uint64_t from, uint64_t to)
{
    ck_assert_ptr_eq(ctx, &place);
    ck_assert_mem_eq(path, "/kept", len);
    ck_assert_uint_eq(from, place);
    place = to;
    times_moved++;
}

static int times_dropped;

static void dropped(void *ctx, const char *path, size_t len, uint64_t at)
{
    uint8_t byte;

    ck_assert_ptr_eq(ctx, &place);
    ck_assert_mem_eq(path, "/other", len);
    ck_assert_uint_ne(at, place);
    ck_assert(fp_contents_view_read(views[0], at, &byte, 1));
    times_dropped++;
}

START_TEST(what_is_in_use_is_kept)
{
    static const struct fp_contents_ops ops = { keep, moved, dropped };

    fp_contents_set_ops(contents, &ops, &place);
    place = put("/kept", 7, 5000);
    for (unsigned i = 0; i < 300; i++) {
        put("/other", i, 3000);
        ck_assert(is_there(place, 7, 5000));
    }
    ck_assert_int_gt(times_moved, 5);
    ck_assert_uint_eq(fp_contents_counts(contents).kept, (uint64_t)times_moved);
    ck_assert_uint_eq(fp_contents_counts(contents).overwritten, (uint64_t)times_dropped);
}
END_TEST

START_TEST(clients_cannot_change_it)
{
    const int fd = fp_contents_fd(contents);

    ck_assert_ptr_eq(mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    ck_assert_int_eq(pwrite(fd, "x", 1, 0), -1);
    ck_assert_int_eq(ftruncate(fd, 0), -1);
    ck_assert_int_eq(ftruncate(fd, (off_t)SIZE * 2), -1);
    ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}
END_TEST

/* ---- bytes of a false daemon ---- */

START_TEST(a_file_of_another_length_is_not_read)
{
    char bytes[102];
    int fd = file_of(1, 100);

    ck_assert(fp_contents_read_file(fd, bytes, 100));
    ck_assert(!fp_contents_read_file(fd, bytes, 99));
    ck_assert(!fp_contents_read_file(fd, bytes, 101));
    close(fd);
}
END_TEST

START_TEST(any_place_may_be_asked_for)
{
    uint8_t buf[SIZE];
    const uint64_t places[] = { 0, 1, SIZE - 1, SIZE, 2 * SIZE - 1, UINT64_MAX, (uint64_t)1 << 63 };
    const size_t sizes[] = { 0, 1, 17, SIZE };

    put("/f", 1, 5000);
    for (int i = 0; i < 2; i++) {
        for (size_t p = 0; p < 7; p++) {
            for (size_t s = 0; s < 4; s++)
                fp_contents_view_read(views[i], places[p], buf, sizes[s]);
            ck_assert(!fp_contents_view_read(views[i], places[p], buf, SIZE + 1));
            ck_assert(!fp_contents_view_read(views[i], places[p], buf, SIZE_MAX));
        }
    }
}
END_TEST

static void assert_refused(const struct fp_ring_head *head, size_t size, int seals)
{
    uint8_t bytes[sizeof(*head) + SIZE + 16] = { 0 };
    int fd;

    memcpy(bytes, head, sizeof(*head));
    fd = area_kit_copy(bytes, size, seals);
    for (int map = 0; map < 2; map++) {
        struct fp_contents_view *v = fp_contents_view_create(fd, map);

        ck_assert_ptr_null(v);
        ck_assert_int_eq(errno, EPROTO);
    }
    close(fd);
}

START_TEST(another_area_is_refused)
{
    const size_t whole = sizeof(struct fp_ring_head) + SIZE;
    struct fp_ring_head head;

    ck_assert_int_eq(pread(fp_contents_fd(contents), &head, sizeof(head), 0), sizeof(head));
    assert_refused(&head, whole, 0);
    assert_refused(&head, whole, F_SEAL_GROW);
    assert_refused(&head, whole - 1, F_SEAL_SHRINK);
    assert_refused(&head, sizeof(head), F_SEAL_SHRINK);
    assert_refused(&head, 0, F_SEAL_SHRINK);
    head.magic++;
    assert_refused(&head, whole, F_SEAL_SHRINK);
    ck_assert_ptr_null(fp_contents_view_create(-1, true));
    ck_assert_ptr_null(fp_contents_view_create(STDIN_FILENO, false));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("contents");
    TCase *t = unit_add_case(s, "contents", setup, teardown, 0);

    tcase_add_test(t, clients_read_what_was_put);
    tcase_add_test(t, the_oldest_is_overwritten);
    tcase_add_test(t, what_is_too_large_or_too_short_is_refused);
    tcase_add_test(t, what_is_in_use_is_kept);
    tcase_add_test(t, clients_cannot_change_it);
    tcase_add_test(t, a_file_of_another_length_is_not_read);
    tcase_add_test(t, any_place_may_be_asked_for);
    tcase_add_test(t, another_area_is_refused);
    return unit_run(s);
}
