/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease table, from the daemon's side and from a client's.  check_lease_order has the promise about the
 * order in which they see each other's writes.
 */
#include "config.h"
#include "shared/lease_table.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "lease_kit.h"
#include "shared/area.h"
#include "unit.h"

#define N     8
#define NOW   100000u /* when views are asked, where that does not matter */
#define UNTIL (NOW + 10000)
#define TICK  FP_SLOT_TICK_MS
#define WORN  UINT32_MAX

static struct fp_lease_table *table;
static struct fp_lease_view *view;
static int fds_at_rest;

static unsigned yields;
static bool daemon_runs; /* while a client yields the processor */

int sched_yield(void)
{
    yields++;
    if (daemon_runs)
        fp_lease_table_clear_busy(table);
    return (int)syscall(SYS_sched_yield);
}

static void setup(void)
{
    fds_at_rest = unit_open_fds();
    table = fp_lease_table_create(N);
    ck_assert_ptr_nonnull(table);
    view = unit_view(table);
}

static void teardown(void)
{
    fp_lease_view_release(&view);
    ck_assert_ptr_null(view);
    fp_lease_table_destroy(&table);
    ck_assert_ptr_null(table);
    ck_assert_int_eq(unit_open_fds(), fds_at_rest);
}

static size_t size_of(int fd)
{
    struct stat st;

    ck_assert_int_eq(fstat(fd, &st), 0);
    return (size_t)st.st_size;
}

/* ---- the passed areas ---- */

START_TEST(the_peer_cannot_change_generations)
{
    const int fd = fp_lease_table_generations_fd(table);
    const size_t size = size_of(fd);
    void *p;

    ck_assert_ptr_eq(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    ck_assert_int_eq(write(fd, "x", 1), -1);
    ck_assert_int_eq(pwrite(fd, "x", 1, 0), -1);
    p = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    ck_assert_int_eq(mprotect(p, size, PROT_READ | PROT_WRITE), -1);
    munmap(p, size);
}
END_TEST

/* Opened anew, it is not another thing either. */
START_TEST(nor_by_opening_them_again)
{
    char name[32];
    int fd;

    snprintf(name, sizeof(name), "/proc/self/fd/%d", fp_lease_table_generations_fd(table));
    fd = open(name, O_RDWR | O_CLOEXEC);
    if (fd == -1)
        return;
    ck_assert_ptr_eq(mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    ck_assert_int_eq(write(fd, "x", 1), -1);
    close(fd);
}
END_TEST

START_TEST(marks_can_be_written)
{
    const int fd = fp_lease_table_referenced_fd(table);
    void *p = mmap(NULL, size_of(fd), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    ck_assert_ptr_ne(p, MAP_FAILED);
    munmap(p, size_of(fd));
}
END_TEST

START_TEST(sizes_are_fixed)
{
    const int fds[] = { fp_lease_table_generations_fd(table), fp_lease_table_referenced_fd(table) };

    for (size_t i = 0; i < 2; i++) {
        const size_t size = size_of(fds[i]);

        ck_assert_int_eq(ftruncate(fds[i], 0), -1);
        ck_assert_int_eq(ftruncate(fds[i], (off_t)size - 1), -1);
        ck_assert_int_eq(ftruncate(fds[i], (off_t)size + 1), -1);
        ck_assert_uint_eq(size_of(fds[i]), size);
        ck_assert_int_eq(fcntl(fds[i], F_ADD_SEALS, F_SEAL_WRITE), -1);
        ck_assert_int_eq(fcntl(fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
    ck_assert_uint_eq(size_of(fds[1]), N + 1);
}
END_TEST

#define CANNOT 255 /* mount */
#define KIB    64u

/* The KiB that an area of 64 KiB has from the start, on a system with this vm.overcommit_memory. */
static int kib_from_the_start(const char *mode)
{
    const char *file = unit_join(unit_dir, "overcommit_memory");
    const pid_t pid = fork();
    struct stat st;
    int fd, status;

    if (pid == 0) {
        unit_write_file(file, mode);
        if (unshare(CLONE_NEWNS) == -1 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1
            || mount(file, "/proc/sys/vm/overcommit_memory", NULL, MS_BIND, NULL) == -1)
            _exit(CANNOT);
        if (fp_area_create("unit", (size_t)KIB * 1024, 0, &fd) == NULL || fstat(fd, &st) == -1)
            _exit(CANNOT - 1);
        _exit((int)(st.st_blocks * 512 / 1024));
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Elsewhere a page that is touched later may end the process that touches it. */
START_TEST(memory_is_promised_where_it_is_counted)
{
    if (kib_from_the_start("0\n") == CANNOT)
        return;
    ck_assert_int_eq(kib_from_the_start("0\n"), 0);
    ck_assert_int_eq(kib_from_the_start("1\n"), 0);
    ck_assert_int_eq(kib_from_the_start("2\n"), KIB);
}
END_TEST

/* ---- taking and giving back ---- */

START_TEST(every_slot_is_given_once)
{
    bool seen[N + 1] = { false };

    for (int i = 0; i < N; i++) {
        const uint32_t slot = fp_lease_table_take(table);

        ck_assert_uint_ne(slot, FP_NO_SLOT);
        ck_assert_uint_le(slot, N);
        ck_assert(!seen[slot]);
        seen[slot] = true;
    }
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(fp_lease_table_take(table), FP_NO_SLOT);
    fp_lease_table_release(table, 5);
    ck_assert_uint_eq(fp_lease_table_take(table), 5);
    ck_assert_uint_eq(fp_lease_table_take(table), FP_NO_SLOT);
}
END_TEST

START_TEST(generations_only_grow)
{
    const uint32_t slot = fp_lease_table_take(table);
    uint32_t before = fp_lease_table_generation(table, slot);

    fp_lease_table_invalidate(table, slot);
    ck_assert_uint_eq(fp_lease_table_generation(table, slot), before + 1);
    /* Also from owner to owner. */
    for (int i = 0; i < 20; i++) {
        before = fp_lease_table_generation(table, slot);
        fp_lease_table_release(table, slot);
        ck_assert_uint_gt(fp_lease_table_generation(table, slot), before);
        before = fp_lease_table_generation(table, slot);
        ck_assert_uint_eq(fp_lease_table_take(table), slot);
        ck_assert_uint_ge(fp_lease_table_generation(table, slot), before);
    }
}
END_TEST

START_TEST(slots_do_not_touch_each_other)
{
    uint32_t taken[N], generations[N];

    for (int i = 0; i < N; i++) {
        taken[i] = fp_lease_table_take(table);
        generations[i] = fp_lease_table_generation(table, taken[i]);
    }
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < i; k++)
            fp_lease_table_invalidate(table, taken[i]);
    }
    for (int i = 0; i < N; i++)
        ck_assert_uint_eq(fp_lease_table_generation(table, taken[i]), generations[i] + (unsigned)i);
}
END_TEST

/* The cache, answers and contents ask, and none takes the other's marks. */
START_TEST(each_who_asks_hears_of_a_use_once)
{
    const uint32_t slot = fp_lease_table_take(table);

    for (int i = 0; i < 3; i++) {
        ck_assert(!fp_lease_table_take_recent(table, slot, FP_READER_ANSWERS)
                  && !fp_lease_table_take_referenced(table, slot));
        fp_lease_view_reference(view, slot);
        ck_assert(i == 1 || fp_lease_table_take_recent(table, slot, FP_READER_ANSWERS));
        ck_assert(fp_lease_table_take_referenced(table, slot));
        ck_assert(fp_lease_table_take_recent(table, slot, FP_READER_CONTENTS));
        ck_assert(!fp_lease_table_take_recent(table, slot, FP_READER_CONTENTS));
        ck_assert(i != 1 || fp_lease_table_take_recent(table, slot, FP_READER_ANSWERS));
    }
    ck_assert(!fp_lease_table_take_recent(table, FP_NO_SLOT, FP_READER_CONTENTS));
}
END_TEST

START_TEST(no_slot_is_allowed)
{
    const uint32_t before = fp_lease_table_generation(table, FP_NO_SLOT);

    fp_lease_table_invalidate(table, FP_NO_SLOT);
    fp_lease_table_set_expiry(table, FP_NO_SLOT, UNTIL);
    ck_assert(!fp_lease_table_is_exhausted(table, FP_NO_SLOT));
    fp_lease_table_release(table, FP_NO_SLOT);
    ck_assert_uint_eq(fp_lease_table_generation(table, FP_NO_SLOT), before);
    for (int i = 0; i < N; i++)
        ck_assert_uint_ne(fp_lease_table_take(table), FP_NO_SLOT);
    ck_assert_uint_eq(fp_lease_table_take(table), FP_NO_SLOT);
    fp_lease_view_reference(view, 1);
    ck_assert(!fp_lease_table_take_referenced(table, FP_NO_SLOT));
    ck_assert(fp_lease_table_take_use(table));
    ck_assert(!fp_lease_view_is_valid(view, FP_NO_SLOT, before, NOW));
}
END_TEST

START_TEST(table_of_one)
{
    struct fp_lease_table *one = fp_lease_table_create(1);

    ck_assert_ptr_nonnull(one);
    ck_assert_uint_eq(fp_lease_table_take(one), 1);
    ck_assert_uint_eq(fp_lease_table_take(one), FP_NO_SLOT);
    fp_lease_table_destroy(&one);
    fp_lease_table_destroy(&one);
}
END_TEST

/* ---- views ---- */

START_TEST(view_sees_generations)
{
    const uint32_t slot = fp_lease_table_take(table);
    const uint32_t generation = fp_lease_table_generation(table, slot);

    ck_assert(!fp_lease_view_is_valid(view, slot, generation, NOW));
    ck_assert(fp_lease_view_is_known(view, slot, generation));
    ck_assert(!fp_lease_view_is_known(view, slot, generation + 1));
    fp_lease_table_set_expiry(table, slot, UNTIL);
    ck_assert(fp_lease_view_is_valid(view, slot, generation, NOW));
    ck_assert(!fp_lease_view_is_valid(view, slot, generation + 1, NOW));
    fp_lease_table_invalidate(table, slot);
    ck_assert(!fp_lease_view_is_valid(view, slot, generation, NOW));
    ck_assert(fp_lease_view_is_valid(view, slot, generation + 1, NOW));
    fp_lease_table_release(table, slot);
    ck_assert(!fp_lease_view_is_valid(view, slot, generation + 1, NOW));
}
END_TEST

START_TEST(how_long_what_is_not_reported_may_go_unseen)
{
    ck_assert_uint_eq(fp_lease_view_unreported_ms(view), 0);
    fp_lease_table_set_unreported(table, UINT64_C(86400000) * 2);
    ck_assert_uint_eq(fp_lease_view_unreported_ms(view), UINT64_C(86400000) * 2);
}
END_TEST

/* Another client of the process, as the status page's, has a view of its own. */
START_TEST(only_its_client_supersedes_a_view)
{
    struct fp_lease_view *other = unit_view(table);

    ck_assert(!fp_lease_view_is_superseded(view));
    fp_lease_view_supersede(view);
    ck_assert(fp_lease_view_is_superseded(view));
    ck_assert(!fp_lease_view_is_superseded(other));
    fp_lease_view_release(&other);
    ck_assert(fp_lease_view_is_superseded(view));
}
END_TEST

/* A daemon's number must not make a client read beyond its table. */
START_TEST(slots_out_of_range)
{
    ck_assert(!fp_lease_view_is_valid(view, N + 1, 0, NOW));
    ck_assert(!fp_lease_view_is_valid(view, UINT32_MAX, 0, NOW));
    ck_assert(!fp_lease_view_is_known(view, N + 1, 0));
    ck_assert(!fp_lease_view_is_known(view, FP_NO_SLOT, 0));
    fp_lease_view_reference(view, N + 1);
    fp_lease_view_reference(view, UINT32_MAX);
    for (uint32_t i = 1; i <= N; i++)
        ck_assert(!fp_lease_table_take_referenced(table, i));
}
END_TEST

START_TEST(up_to_date_for_a_while)
{
    ck_assert(!fp_lease_view_is_current(view, 0));
    ck_assert(!fp_lease_view_is_current(view, 1000));
    fp_lease_table_heartbeat(table, 1000);
    ck_assert(fp_lease_view_is_current(view, 1000));
    ck_assert(fp_lease_view_is_current(view, 1000 + FP_HEARTBEAT_MS - 1));
    ck_assert(!fp_lease_view_is_current(view, 1000 + FP_HEARTBEAT_MS));
    fp_lease_table_heartbeat(table, 1010);
    ck_assert(fp_lease_view_is_current(view, 1000 + FP_HEARTBEAT_MS));
    ck_assert(!fp_lease_view_is_current(view, 1010 + FP_HEARTBEAT_MS));
}
END_TEST

START_TEST(daemon_lives_until_it_was_silent)
{
    ck_assert(!fp_lease_view_is_alive(view, 0, 700));
    ck_assert(!fp_lease_view_is_alive(view, 100, 700));
    fp_lease_table_heartbeat(table, 1000);
    ck_assert(fp_lease_view_is_alive(view, 1000, 700));
    ck_assert(fp_lease_view_is_alive(view, 1000 + FP_HEARTBEAT_MS + 699, 700));
    ck_assert(!fp_lease_view_is_alive(view, 1000 + FP_HEARTBEAT_MS + 700, 700));
    ck_assert(!fp_lease_view_is_alive(view, UINT64_MAX, 700));
    fp_lease_table_retire(table);
    ck_assert(!fp_lease_view_is_alive(view, 1000, 700));
}
END_TEST

START_TEST(marks_are_told_once)
{
    ck_assert(!fp_lease_table_take_use(table));
    fp_lease_view_reference(view, 3);
    fp_lease_view_reference(view, 3);
    ck_assert(!fp_lease_table_take_referenced(table, 2));
    ck_assert(fp_lease_table_take_referenced(table, 3));
    ck_assert(!fp_lease_table_take_referenced(table, 3));
    ck_assert(fp_lease_table_take_use(table));
    ck_assert(!fp_lease_table_take_use(table));
    fp_lease_view_reference(view, 3);
    ck_assert(fp_lease_table_take_use(table));
    ck_assert(fp_lease_table_take_referenced(table, 3));
}
END_TEST

START_TEST(view_knows_its_table)
{
    struct fp_lease_table *other = fp_lease_table_create(N);
    int copy = dup(fp_lease_table_generations_fd(table));

    ck_assert_ptr_nonnull(other);
    ck_assert(fp_lease_view_is_of(view, fp_lease_table_generations_fd(table)));
    ck_assert(fp_lease_view_is_of(view, copy));
    ck_assert(!fp_lease_view_is_of(view, fp_lease_table_generations_fd(other)));
    ck_assert(!fp_lease_view_is_of(view, fp_lease_table_referenced_fd(table)));
    ck_assert(!fp_lease_view_is_of(view, -1));
    close(copy);
    fp_lease_table_destroy(&other);
}
END_TEST

START_TEST(last_reference_unmaps)
{
    struct fp_lease_view *second = view;
    const uint32_t slot = fp_lease_table_take(table);

    fp_lease_view_retain(view);
    fp_lease_table_set_expiry(table, slot, UNTIL);
    fp_lease_view_release(&second);
    ck_assert_ptr_null(second);
    ck_assert(fp_lease_view_is_valid(view, slot, fp_lease_table_generation(table, slot), NOW));
    fp_lease_view_release(&second);
}
END_TEST

/* Mappings outlive the daemon; no heartbeat comes any more. */
START_TEST(view_outlives_the_table)
{
    fp_lease_table_set_expiry(table, 1, UNTIL);
    fp_lease_table_heartbeat(table, 1000);
    fp_lease_table_destroy(&table);
    ck_assert(fp_lease_view_is_current(view, 1000));
    ck_assert(fp_lease_view_is_valid(view, 1, 0, NOW));
    ck_assert(!fp_lease_view_is_current(view, 1000 + FP_HEARTBEAT_MS));
    fp_lease_view_reference(view, 1);
}
END_TEST

/* Once; then the client asks. */
START_TEST(client_lets_the_daemon_run_first)
{
    yields = 0;
    fp_lease_table_heartbeat(table, 1000);
    for (int i = 0; i < 2; i++) {
        daemon_runs = i == 0;
        fp_lease_table_set_busy(table);
        ck_assert_int_eq(fp_lease_view_is_current(view, 1000), daemon_runs);
        ck_assert_uint_eq(yields, (unsigned)i + 1);
    }
    fp_lease_table_clear_busy(table);
    ck_assert(fp_lease_view_is_current(view, 1000));
    ck_assert_uint_eq(yields, 2);
}
END_TEST

/* ---- expiry ---- */

/* To the beginning of the tick: less than that, but not more. */
START_TEST(a_slot_holds_no_longer_than_was_said)
{
    const uint32_t slot = fp_lease_table_take(table);
    const uint32_t generation = fp_lease_table_generation(table, slot);

    for (uint64_t until = UNTIL; until < UNTIL + 3 * TICK; until++) {
        fp_lease_table_set_expiry(table, slot, until);
        for (uint64_t now = until - 3 * TICK; now < until + 3 * TICK; now++)
            ck_assert_int_eq(fp_lease_view_is_valid(view, slot, generation, now), now < until - until % TICK);
    }
}
END_TEST

START_TEST(time_moves_on)
{
    const uint32_t slot = fp_lease_table_take(table), other = fp_lease_table_take(table);
    const uint32_t generation = fp_lease_table_generation(table, slot);

    fp_lease_table_set_expiry(table, other, NOW + 100 * TICK);
    for (uint64_t now = NOW; now < NOW + 1000 * TICK; now += 3 * TICK) {
        fp_lease_table_set_expiry(table, slot, now + 4 * TICK);
        ck_assert_uint_eq(fp_lease_table_generation(table, slot), generation);
        ck_assert(fp_lease_view_is_valid(view, slot, generation, now));
        ck_assert(fp_lease_view_is_valid(view, slot, generation, now + 3 * TICK));
        ck_assert(!fp_lease_view_is_valid(view, slot, generation, now + 5 * TICK));
    }
    /* Back as well: it expires earlier than it did before. */
    fp_lease_table_set_expiry(table, slot, NOW + TICK);
    ck_assert(!fp_lease_view_is_valid(view, slot, generation, NOW + 2 * TICK));
    ck_assert(fp_lease_view_is_valid(view, other, fp_lease_table_generation(table, other), NOW + 98 * TICK));
}
END_TEST

/* Until the slot's owner sets another one. */
START_TEST(a_bump_keeps_the_time)
{
    const uint32_t slot = fp_lease_table_take(table);

    fp_lease_table_set_expiry(table, slot, UNTIL);
    for (int i = 0; i < 5; i++) {
        const uint32_t generation = fp_lease_table_generation(table, slot);

        fp_lease_table_invalidate(table, slot);
        ck_assert(!fp_lease_view_is_valid(view, slot, generation, NOW));
        ck_assert(fp_lease_view_is_valid(view, slot, generation + 1, NOW));
        ck_assert(!fp_lease_view_is_valid(view, slot, generation + 1, UNTIL));
    }
}
END_TEST

/* A machine that has been up for years: the lower 32 bits of the tick begin again. */
START_TEST(ticks_that_begin_again)
{
    const uint64_t half = ((uint64_t)1 << 31) * TICK, around = half * (uint64_t)(_i + 1);
    const uint64_t most = (uint64_t)FP_SLOT_TICKS_AHEAD * TICK;
    const uint32_t slot = fp_lease_table_take(table);
    const uint32_t generation = fp_lease_table_generation(table, slot);

    for (uint64_t until = around - 3 * TICK; until <= around + 3 * TICK; until += 5) {
        fp_lease_table_set_expiry(table, slot, until);
        for (uint64_t now = around - 5 * TICK; now < around + 5 * TICK; now += 3)
            ck_assert_int_eq(fp_lease_view_is_valid(view, slot, generation, now), now / TICK < until / TICK);
        ck_assert(fp_lease_view_is_valid(view, slot, generation, until - most));
        ck_assert(!fp_lease_view_is_valid(view, slot, generation, until - most - TICK));
        /* An expiry of a year ago, whose difference to the tick has changed its sign. */
        for (uint64_t past = half - TICK; past < 2 * half - 2 * most; past += half / 8)
            ck_assert(!fp_lease_view_is_valid(view, slot, generation, until + past));
    }
}
END_TEST

START_TEST(given_up)
{
    for (int i = 0; i < N; i++)
        fp_lease_table_set_expiry(table, fp_lease_table_take(table), UNTIL);
    fp_lease_table_heartbeat(table, NOW);
    ck_assert(fp_lease_view_is_current(view, NOW));
    fp_lease_table_retire(table);
    for (uint64_t now = 0; now < NOW + FP_HEARTBEAT_MS; now += 50)
        ck_assert(!fp_lease_view_is_current(view, now));
}
END_TEST

/* ---- the greatest generation ---- */

/* The words that the table's owner writes. */
static uint64_t *words_of(const struct fp_lease_table *s)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    uintptr_t from = 0;
    unsigned long inode;
    char line[512], rights[8];
    struct stat st;

    ck_assert_ptr_nonnull(maps);
    ck_assert_int_eq(fstat(fp_lease_table_generations_fd(s), &st), 0);
    while (fgets(line, sizeof(line), maps) != NULL) {
        if (sscanf(line, "%lx-%*x %7s %*s %*s %lu", &from, rights, &inode) == 3 && inode == st.st_ino
            && rights[1] == 'w')
            break;
        from = 0;
    }
    fclose(maps);
    ck_assert_uint_ne(from, 0);
    return (uint64_t *)(from + 32);
}

/* No owner invalidates a slot so often. */
static void set_generation(uint32_t slot, uint32_t generation)
{
    words_of(table)[slot] = (uint64_t)generation << 32 | UNTIL / TICK;
}

START_TEST(a_worn_slot_holds_for_nobody)
{
    const uint32_t slot = fp_lease_table_take(table);

    set_generation(slot, WORN - 2);
    ck_assert(fp_lease_view_is_valid(view, slot, WORN - 2, NOW));
    fp_lease_table_invalidate(table, slot);
    ck_assert(!fp_lease_table_is_exhausted(table, slot));
    ck_assert(fp_lease_view_is_valid(view, slot, WORN - 1, NOW));
    fp_lease_table_invalidate(table, slot);
    ck_assert(fp_lease_table_is_exhausted(table, slot));
    ck_assert(!fp_lease_view_is_valid(view, slot, WORN - 1, NOW));
    ck_assert(!fp_lease_view_is_valid(view, slot, WORN, NOW));
    /* It stays at that: no generation comes back. */
    for (int i = 0; i < 3; i++) {
        fp_lease_table_invalidate(table, slot);
        ck_assert_uint_eq(fp_lease_table_generation(table, slot), WORN);
    }
    fp_lease_table_set_expiry(table, slot, UNTIL + 1000);
    ck_assert_uint_eq(fp_lease_table_generation(table, slot), WORN);
    ck_assert(!fp_lease_view_is_valid(view, slot, WORN, NOW));
    ck_assert(!fp_lease_view_is_valid(view, slot, 0, NOW));
}
END_TEST

START_TEST(a_worn_slot_is_not_given_again)
{
    const uint32_t exhausted = fp_lease_table_take(table);

    set_generation(exhausted, WORN - 3);
    /* One more owner, whose end exhausts it. */
    fp_lease_table_release(table, exhausted);
    ck_assert_uint_eq(fp_lease_table_take(table), exhausted);
    fp_lease_table_invalidate(table, exhausted);
    fp_lease_table_release(table, exhausted);
    ck_assert(fp_lease_table_is_exhausted(table, exhausted));
    for (int i = 0; i < N - 1; i++) {
        const uint32_t slot = fp_lease_table_take(table);

        ck_assert_uint_ne(slot, FP_NO_SLOT);
        ck_assert_uint_ne(slot, exhausted);
    }
    ck_assert_uint_eq(fp_lease_table_take(table), FP_NO_SLOT);
}
END_TEST

/* ---- no lease tables ---- */

static int area(size_t size, unsigned seals)
{
    int fd = memfd_create("area", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    ck_assert_int_ne(fd, -1);
    ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
    if (seals != 0)
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void assert_refused(int generations, int marks)
{
    errno = 0;
    ck_assert_ptr_null(unit_view_of(generations, marks));
    ck_assert_int_eq(errno, EPROTO);
}

/* And closes the area of generations. */
static void assert_not_generations(int area)
{
    assert_refused(area, fp_lease_table_referenced_fd(table));
    close(area);
}

/* The same bytes in areas with other seals, and perhaps one word changed. */
static int imitate(int like, unsigned seals, size_t at, uint32_t word)
{
    const size_t size = size_of(like);
    int fd = area(size, 0);
    char *from = mmap(NULL, size, PROT_READ, MAP_SHARED, like, 0);

    ck_assert_ptr_ne(from, MAP_FAILED);
    ck_assert_int_eq(pwrite(fd, from, size, 0), (ssize_t)size);
    munmap(from, size);
    if (at < size)
        ck_assert_int_eq(pwrite(fd, &word, sizeof(word), (off_t)at), sizeof(word));
    if (seals != 0)
        ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

START_TEST(areas_that_could_shrink)
{
    const int g = fp_lease_table_generations_fd(table);
    int sealed = imitate(g, F_SEAL_SHRINK, SIZE_MAX, 0), marks = area(N + 1, 0);
    struct fp_lease_view *v = unit_view_of(sealed, fp_lease_table_referenced_fd(table));

    ck_assert_ptr_nonnull(v);
    fp_lease_view_release(&v);
    assert_not_generations(imitate(g, 0, SIZE_MAX, 0));
    assert_not_generations(imitate(g, F_SEAL_GROW, SIZE_MAX, 0));
    assert_refused(g, marks);
    close(sealed);
    close(marks);
}
END_TEST

START_TEST(areas_of_another_layout)
{
    const int g = fp_lease_table_generations_fd(table);

    assert_not_generations(imitate(g, F_SEAL_SHRINK, 0, 0x46505332u));
    assert_not_generations(imitate(g, F_SEAL_SHRINK, 4, N + 2));
    assert_not_generations(imitate(g, F_SEAL_SHRINK, 4, N));
}
END_TEST

START_TEST(areas_of_another_size)
{
    const int g = fp_lease_table_generations_fd(table), m = fp_lease_table_referenced_fd(table);
    const size_t sizes[] = { 0, 1, N, N + 2, 1 << 20, ((size_t)FP_MAX_SLOTS) + 2 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int marks = area(sizes[i], F_SEAL_SHRINK | F_SEAL_GROW);

        assert_refused(g, marks);
        assert_refused(marks, m);
        assert_refused(marks, marks);
        close(marks);
    }
    assert_refused(m, g);
    assert_refused(g, g);
}
END_TEST

START_TEST(descriptors_that_are_no_areas)
{
    int fds[4] = { -1, open("/dev/null", O_RDWR | O_CLOEXEC) };

    ck_assert_int_eq(pipe2(fds + 2, O_CLOEXEC), 0);
    assert_refused(-1, -1);
    for (int i = 0; i < 4; i++) {
        assert_refused(fp_lease_table_generations_fd(table), fds[i]);
        assert_not_generations(fds[i]);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("table");
    TCase *t = unit_add_case(s, "areas", setup, teardown, 0);

    tcase_add_test(t, the_peer_cannot_change_generations);
    tcase_add_test(t, nor_by_opening_them_again);
    tcase_add_test(t, marks_can_be_written);
    tcase_add_test(t, sizes_are_fixed);
    t = unit_add_case(s, "table", setup, teardown, 0);
    tcase_add_test(t, every_slot_is_given_once);
    tcase_add_test(t, generations_only_grow);
    tcase_add_test(t, slots_do_not_touch_each_other);
    tcase_add_test(t, each_who_asks_hears_of_a_use_once);
    tcase_add_test(t, no_slot_is_allowed);
    tcase_add_test(t, table_of_one);
    /* In a process that has made no area yet. */
    t = unit_add_case(s, "counted memory", NULL, NULL, 0);
    tcase_add_test(t, memory_is_promised_where_it_is_counted);
    t = unit_add_case(s, "views", setup, teardown, 0);
    tcase_add_test(t, view_sees_generations);
    tcase_add_test(t, how_long_what_is_not_reported_may_go_unseen);
    tcase_add_test(t, only_its_client_supersedes_a_view);
    tcase_add_test(t, slots_out_of_range);
    tcase_add_test(t, up_to_date_for_a_while);
    tcase_add_test(t, daemon_lives_until_it_was_silent);
    tcase_add_test(t, marks_are_told_once);
    tcase_add_test(t, view_knows_its_table);
    tcase_add_test(t, last_reference_unmaps);
    tcase_add_test(t, view_outlives_the_table);
    tcase_add_test(t, client_lets_the_daemon_run_first);
    t = unit_add_case(s, "time", setup, teardown, 20);
    tcase_add_test(t, a_slot_holds_no_longer_than_was_said);
    tcase_add_test(t, time_moves_on);
    tcase_add_test(t, a_bump_keeps_the_time);
    tcase_add_loop_test(t, ticks_that_begin_again, 0, 4);
    tcase_add_test(t, given_up);
    t = unit_add_case(s, "exhausted", setup, teardown, 0);
    tcase_add_test(t, a_worn_slot_holds_for_nobody);
    tcase_add_test(t, a_worn_slot_is_not_given_again);
    t = unit_add_case(s, "refusals", setup, teardown, 0);
    tcase_add_test(t, areas_that_could_shrink);
    tcase_add_test(t, areas_of_another_layout);
    tcase_add_test(t, areas_of_another_size);
    tcase_add_test(t, descriptors_that_are_no_areas);
    return unit_run(s);
}
