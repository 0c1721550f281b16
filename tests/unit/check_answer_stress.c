/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One writer publishes answers and contents as fast as it can. Readers, processes of their own,
 * check every byte of what they find. Both are functions of path and generation. Now and then a
 * reader is killed, at a random moment. The writer's memory stays as it is.
 * FLASHPACHE_STRESS_READS: the number of answers to find (100,000; with FLASHPACHE_FULL 100
 * million). FLASHPACHE_STRESS_READERS: the number of processes (4; 16).
 */
#include "config.h"
#include "shared/answer_table.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "shared/contents.h"
#include "shared/lease_table.h"
#include "unit.h"
#include "wire/answer.h"

#define FILES       600u
#define DIRECTORIES 20u
#define MOST_BYTES  3000u
#define PARTS       20    /* after each the counts are printed */
#define MOST_PAGES  256   /* a leak of some bytes a write would be thousands */
#define MOST_S      21600 /* 100 million reads beside others' work */

/* The processes' counters, in memory that they share. */
struct counts {
    atomic_ullong found, missed, contents, gone, wrong, killed;
};

static struct fp_lease_table *leases;
static struct fp_answer_table *table;
static struct fp_contents *contents;
static struct counts *counts;
static const struct fp_chosen none = { 0 };

static unsigned long number_from(const char *variable, unsigned long usually, unsigned long in_full)
{
    const char *text = getenv(variable);

    if (text != NULL)
        return strtoul(text, NULL, 10);
    return getenv("FLASHPACHE_FULL") != NULL ? in_full : usually;
}

/* Of a process. */
static long resident_pages(pid_t pid)
{
    char name[64];
    long size, resident = -1;
    FILE *f;

    snprintf(name, sizeof(name), "/proc/%d/statm", (int)pid);
    f = fopen(name, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%ld %ld", &size, &resident), 2);
    fclose(f);
    return resident;
}

static void say_counts(void)
{
    printf("%llu answers found, %llu times none; %llu contents read, %llu overwritten before; %llu wrong; "
           "%llu readers killed\n",
           atomic_load(&counts->found), atomic_load(&counts->missed), atomic_load(&counts->contents),
           atomic_load(&counts->gone), atomic_load(&counts->wrong), atomic_load(&counts->killed));
    fflush(stdout);
}

/* ---- functions of path and generation ---- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t state = a * 1000003 + b + 1;

    return unit_random(&state);
}

static int path_of(char buf[64], unsigned file)
{
    return snprintf(buf, 64, "/srv/%02u/%u", file % DIRECTORIES, file);
}

static struct fp_meta meta_of(uint32_t mode, uint64_t what, uint32_t generation)
{
    const uint64_t h = mix(what, generation);

    return (struct fp_meta){ .mode = mode,
                             .uid = (uint32_t)h,
                             .gid = (uint32_t)(h >> 32),
                             .dev = h + 1,
                             .ino = h + 2,
                             .nlink = h + 3,
                             .size = h % MOST_BYTES + 1,
                             .blocks = h + 4,
                             .atime = { (int64_t)h, 5 },
                             .mtime = { (int64_t)generation, 6 },
                             .ctime = { (int64_t)(h ^ generation), 7 },
                             .blksize = (uint32_t)(h + 5) };
}

static struct fp_step step_of(uint16_t end, uint32_t mode, uint64_t what, uint32_t generation)
{
    return (struct fp_step){ .end = end,
                             .status = FP_OK,
                             .self = meta_of(mode, what, generation),
                             .slot = (uint32_t)what + 1,
                             .generation = generation };
}

/* The same directories at one time as at another: of generation g of the file in it, g / 16. */
static void steps_of(unsigned file, size_t len, uint32_t generation, struct fp_step steps[4])
{
    const uint32_t above = generation / 16;

    steps[0] = step_of(1, S_IFDIR | 0755, FILES + DIRECTORIES, 1);
    steps[1] = step_of(4, S_IFDIR | 0755, FILES + DIRECTORIES + 1, 1);
    steps[2] = step_of(7, S_IFDIR | 0755, FILES + file % DIRECTORIES, above);
    steps[3] = step_of((uint16_t)len, S_IFREG | 0644, file, generation);
}

static void bytes_of(unsigned file, uint32_t generation, uint8_t *bytes, size_t size)
{
    uint64_t state = mix(file, generation) | 1;

    unit_random_bytes(&state, bytes, size);
}

/* ---- the writer ---- */

static uint64_t put_content(unsigned file, const char *path, size_t len, uint32_t generation, uint64_t size)
{
    static int fd = -1;
    uint8_t bytes[MOST_BYTES];

    if (fd == -1)
        fd = memfd_create("content", MFD_CLOEXEC);
    bytes_of(file, generation, bytes, size);
    if (pwrite(fd, bytes, size, 0) != (ssize_t)size)
        return FP_NO_CONTENT;
    return fp_contents_put(contents, path, len, fd, size);
}

static void write_forever(void)
{
    uint64_t seed = 17;

    for (uint32_t turn = 16;; turn++) {
        const unsigned file = (unsigned)(unit_random(&seed) % FILES);
        struct fp_answer a;
        char path[64];
        const size_t len = (size_t)path_of(path, file);

        fp_answer_init(&a, FP_OK);
        a.leasable = a.local = true;
        a.n_steps = 4;
        /* Generations that differ, and come back only after the ring was overwritten often. */
        steps_of(file, len, turn / 64, a.steps);
        a.content_at = put_content(file, path, len, turn / 64, a.steps[3].self.size);
        a.content = a.content_at != FP_NO_CONTENT;
        fp_answer_table_publish(table, path, len, &a);
    }
}

/* ---- a reader ---- */

static bool is_as_decided(unsigned file, size_t len, const struct fp_answer *a)
{
    struct fp_step steps[4];
    uint8_t wanted[FP_MAX_FRAME], found[FP_MAX_FRAME];
    struct fp_writer w[2];

    if (a->n_steps != 4 || !a->readable || !a->local)
        return false;
    steps_of(file, len, a->steps[3].generation, steps);
    fp_writer_init(&w[0], wanted, sizeof(wanted));
    fp_writer_init(&w[1], found, sizeof(found));
    for (int i = 0; i < 4; i++) {
        fp_put_step(&w[0], &steps[i], 0);
        fp_put_step(&w[1], &a->steps[i], 0);
    }
    return w[0].len == w[1].len && memcmp(wanted, found, w[0].len) == 0;
}

static void check_content(const struct fp_contents_view *v, unsigned file, const struct fp_answer *a)
{
    const struct fp_step *last = &a->steps[3];
    uint8_t wanted[MOST_BYTES], found[MOST_BYTES];
    const size_t size = (size_t)last->self.size;

    if (!fp_contents_view_read(v, a->content_at, found, size)) {
        atomic_fetch_add(&counts->gone, 1);
        return;
    }
    bytes_of(file, last->generation, wanted, size);
    atomic_fetch_add(&counts->contents, 1);
    atomic_fetch_add(&counts->wrong, memcmp(wanted, found, size) != 0);
}

static void read_forever(unsigned number)
{
    struct fp_answer_view *answers = fp_answer_view_create(fp_answer_table_fd(table), &none);
    struct fp_contents_view *bytes = fp_contents_view_create(fp_contents_fd(contents), number % 2 == 0);
    uint64_t seed = number + 1 + (uint64_t)getpid();
    static struct fp_answer a;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (answers != NULL && bytes != NULL) {
        const unsigned file = (unsigned)(unit_random(&seed) % FILES);
        char path[64];
        const size_t len = (size_t)path_of(path, file);

        if (!fp_answer_view_find(answers, path, len, &a)) {
            atomic_fetch_add(&counts->missed, 1);
            continue;
        }
        if (!is_as_decided(file, len, &a))
            atomic_fetch_add(&counts->wrong, 1);
        else if (a.content)
            check_content(bytes, file, &a);
        atomic_fetch_add(&counts->found, 1);
    }
    _exit(1);
}

static pid_t start_process(unsigned number)
{
    const pid_t pid = fork();

    ck_assert_int_ne(pid, -1);
    if (pid != 0)
        return pid;
    if (number == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        write_forever();
    }
    read_forever(number);
    return 0;
}

static void end_process(pid_t pid)
{
    int status;

    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    /* It went on until then. */
    ck_assert(WIFSIGNALED(status));
}

START_TEST(nothing_half_written_is_found)
{
    const unsigned long reads = number_from("FLASHPACHE_STRESS_READS", 100000, 100000000);
    const unsigned long n = number_from("FLASHPACHE_STRESS_READERS", 4, 16);
    unsigned long long next = reads / PARTS;
    long early = 0, late;
    pid_t *pids = calloc(n + 1, sizeof(*pids));
    uint64_t seed = 3;

    ck_assert_ptr_nonnull(pids);
    for (unsigned i = 0; i <= n; i++)
        pids[i] = start_process(i);
    while (atomic_load(&counts->found) < reads && atomic_load(&counts->wrong) == 0) {
        const unsigned victim = 1 + (unsigned)(unit_random(&seed) % n);

        unit_sleep_ms(20 + (long)(unit_random(&seed) % 50));
        end_process(pids[victim]);
        atomic_fetch_add(&counts->killed, 1);
        pids[victim] = start_process(victim);
        if (atomic_load(&counts->found) < next)
            continue;
        next += reads / PARTS;
        say_counts();
        /* Both rings have been gone round by then. */
        if (early == 0 && atomic_load(&counts->gone) > 0)
            early = resident_pages(pids[0]);
    }
    late = resident_pages(pids[0]);
    for (unsigned i = 0; i <= n; i++)
        end_process(pids[i]);
    free(pids);
    say_counts();
    printf("the writer's memory: %ld pages early, %ld at the end\n", early, late);
    ck_assert_uint_eq(atomic_load(&counts->wrong), 0);
    ck_assert_uint_gt(atomic_load(&counts->contents), 0);
    ck_assert_uint_gt(atomic_load(&counts->killed), 0);
    if (early != 0)
        ck_assert_int_le(late, early + MOST_PAGES);
}
END_TEST

static void setup(void)
{
    leases = fp_lease_table_create(FILES + DIRECTORIES + 8);
    table = fp_answer_table_create(FP_ANSWERS_LEAST, fp_lease_table_is_used, leases);
    contents = fp_contents_create(8 * (size_t)FP_CONTENTS_LEAST);
    counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(table != NULL && contents != NULL && (void *)counts != MAP_FAILED);
}

static void teardown(void)
{
    munmap(counts, sizeof(*counts));
    fp_contents_destroy(&contents);
    fp_answer_table_destroy(&table);
    fp_lease_table_destroy(&leases);
}

int main(void)
{
    Suite *s = suite_create("answer_stress");
    /* As long as the reads take. */
    TCase *t = unit_add_case(s, "stress", setup, teardown, MOST_S);

    tcase_add_test(t, nothing_half_written_is_found);
    return unit_run(s);
}
