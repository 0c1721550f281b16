/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of leases by their number: time for each find, and memory.
 *
 *   lease_cost [--paths N,...] [--threads N,...] [--finds N] [--names N]
 *              [--changes N] [--zipf S] [--seed N] [--json FILE]
 *
 * For each number of paths and of threads a process makes a lease on each path, seven components deep and a
 * hundred to a directory. It does so with the module's own code on a lease table like the daemon's.  Then its
 * threads find leases by path, each finds of them, with all paths equally likely (uniform) and by a Zipf
 * distribution.  A lease that has ended is made anew, as after a question.
 *
 * The leases hold no files, so a descriptor and what the kernel keeps for it
 * come on top.  Elapsed time means little where other programs run or threads
 * outnumber processors: the time of the processor is beside it.
 */
#include "config.h"

#include <apr_general.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/rng.h"
#include "common/clock.h"
#include "common/lease_table.h"
#include "lease.h"

#define PATH_FORMAT  "/srv/www/example.org/htdocs/d%05u/part%02u/page%08u.html"
#define PATH_BYTES   64
#define STEPS        8    /* "/" and seven components */
#define STEP_FANNING 5    /* the first directory of which there are several */
#define DIRECTORY    100u /* names in each from there on */
#define MOST_PATHS   10000000u
#define MOST_THREADS 1024u
#define LIST_MOST    16
#define HOUR_MS      3600000u

struct list {
    unsigned n, value[LIST_MOST];
};

static struct {
    struct list paths, threads;
    unsigned finds, names, changes, seed;
    double zipf;
    const char *json;
} args = { .paths = { 3, { 1000, 10000, 100000 } },
           .threads = { 2, { 1, 2 } },
           .finds = 300000,
           .names = 1,
           .seed = 1,
           .zipf = 1.0 };

static void fail(const char *what)
{
    fprintf(stderr, "lease_cost: %s: %s\n", what, strerror(errno));
    exit(EXIT_FAILURE);
}

/* ---- paths ---- */

static unsigned n_paths;

static size_t make_path(char *buf, unsigned i)
{
    return (size_t)snprintf(buf, PATH_BYTES, PATH_FORMAT, i / DIRECTORY / DIRECTORY,
                            i / DIRECTORY % DIRECTORY, i);
}

/* The number of different paths up to that step, and the index of this path's. */
static unsigned step_count(unsigned step)
{
    unsigned n = n_paths;

    for (unsigned i = step; i + 1 < STEPS && i >= STEP_FANNING; i++)
        n = n / DIRECTORY + 1;
    return step < STEP_FANNING ? 1 : n;
}

static unsigned step_number(unsigned step, unsigned path)
{
    for (unsigned i = step; i + 1 < STEPS && i >= STEP_FANNING; i++)
        path /= DIRECTORY;
    return step < STEP_FANNING ? 0 : path;
}

/* ---- the daemon's side ---- */

static struct fp_lease_table *lease_table;
static struct fp_lease_view *view;
static uint32_t first_slot[STEPS]; /* of each step's; they follow each other */

static void make_lease_table(void)
{
    uint32_t n = 0;

    for (unsigned i = 0; i < STEPS; i++)
        n += step_count(i);
    lease_table = fp_lease_table_create(n);
    view = lease_table != NULL ? fp_lease_view_create(fp_lease_table_generations_fd(lease_table),
                                                      fp_lease_table_referenced_fd(lease_table),
                                                      epoll_create1(EPOLL_CLOEXEC), STDIN_FILENO)
                               : NULL;
    if (view == NULL)
        fail("lease table");
    for (unsigned i = 0; i < STEPS; i++) {
        for (unsigned k = 0; k < step_count(i); k++) {
            uint32_t slot = fp_lease_table_take(lease_table);

            fp_lease_table_set_expiry(lease_table, slot, fp_now_ms() + HOUR_MS);
            if (k == 0)
                first_slot[i] = slot;
        }
    }
    /* The heartbeat never expires, so only leases are measured. */
    fp_lease_table_heartbeat(lease_table, fp_now_ms() + HOUR_MS);
}

static void make_step(struct fp_step *s, unsigned number, unsigned path)
{
    const bool is_last = number == STEPS - 1;

    memset(s, 0, sizeof(*s));
    s->status = FP_OK;
    s->self.mode = is_last ? S_IFREG | 0644 : S_IFDIR | 0755;
    s->slot = first_slot[number] + step_number(number, path);
    s->generation = fp_lease_table_generation(lease_table, s->slot);
    for (unsigned i = 0; i < args.names && !is_last; i++)
        s->access[i].status = FP_ABSENT;
}

static void make_answer(struct fp_answer *a, unsigned number, const char *path)
{
    const char *end = path;

    fp_answer_init(a, FP_OK);
    a->source = FP_SOURCE_CACHE;
    a->leasable = true;
    a->n_names = args.names;
    a->n_steps = STEPS;
    for (unsigned i = 0; i < STEPS; i++) {
        make_step(&a->steps[i], i, number);
        if (i > 0)
            end = strchrnul(end + 1, '/');
        a->steps[i].end = (uint16_t)(i == 0 ? 1 : end - path);
    }
}

/* ---- leases ---- */

static const int owner; /* a server's settings, elsewhere */

static void make_lease(unsigned number, const char *path, size_t len)
{
    struct fp_answer a;
    struct fp_lease *lease;

    make_answer(&a, number, path);
    fp_lease_view_retain(view);
    lease = fp_lease_create(NULL, &owner, path, len, &a, view);
    if (lease == NULL)
        fail("lease");
    fp_item_release(&lease->item);
}

static void make_leases(void)
{
    char path[PATH_BYTES];

    for (unsigned i = 0; i < n_paths; i++) {
        size_t len = make_path(path, i);

        make_lease(i, path, len);
    }
}

/* ---- the requested paths ---- */

static double *ranks; /* the share of all finds with at most this rank */

static void make_ranks(void)
{
    double sum = 0;

    ranks = malloc(n_paths * sizeof(*ranks));
    if (ranks == NULL)
        fail("Zipf distribution");
    for (unsigned i = 0; i < n_paths; i++)
        ranks[i] = sum += pow(i + 1, -args.zipf);
    for (unsigned i = 0; i < n_paths; i++)
        ranks[i] /= sum;
}

static unsigned choose_zipf(struct bench_rng *rng)
{
    double at = (double)(bench_rng_next(rng) >> 11) / 9007199254740992.0;
    unsigned low = 0, high = n_paths - 1;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (ranks[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    /* Frequent paths do not lie in the same directories. */
    return (unsigned)(low * UINT64_C(2654435761) % n_paths);
}

static unsigned choose_uniform(struct bench_rng *rng)
{
    return (unsigned)bench_rng_below(rng, n_paths);
}

static const struct {
    const char *name;
    unsigned (*choose)(struct bench_rng *rng);
} accesses[] = { { "uniform", choose_uniform }, { "zipf", choose_zipf } };

/* ---- threads ---- */

struct question {
    unsigned number;
    uint16_t len;
    char path[PATH_BYTES];
};

struct finder {
    pthread_t thread;
    struct question *questions; /* made before the measurement: a find does not include it */
    uint64_t found, elapsed_ns, processor_ns;
};

static pthread_barrier_t start;
static _Atomic bool done;

static uint64_t now_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void ask(struct finder *f, const struct question *q)
{
    struct fp_lease *lease = fp_lease_find(&owner, q->path, q->len, false);

    if (lease == NULL) {
        make_lease(q->number, q->path, q->len);
        return;
    }
    f->found++;
    fp_item_release(&lease->item);
}

static void *find_leases(void *arg)
{
    struct finder *f = arg;

    pthread_barrier_wait(&start);
    f->elapsed_ns = now_ns(CLOCK_MONOTONIC);
    f->processor_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < args.finds; i++)
        ask(f, &f->questions[i]);
    f->elapsed_ns = now_ns(CLOCK_MONOTONIC) - f->elapsed_ns;
    f->processor_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - f->processor_ns;
    return NULL;
}

/* Changes of files, spread over a second, in place of the daemon. */
static void *change_files(void *arg)
{
    const struct timespec pause = { 0, 1000000000 / (long)args.changes };
    struct bench_rng rng;

    bench_rng_seed(&rng, args.seed);
    while (!atomic_load(&done)) {
        fp_lease_table_invalidate(lease_table, first_slot[STEPS - 1] + choose_uniform(&rng));
        nanosleep(&pause, NULL);
    }
    return arg;
}

static void prepare(struct finder *f, unsigned number, size_t access)
{
    struct bench_rng rng;

    bench_rng_seed(&rng, args.seed + number);
    f->found = 0;
    for (unsigned i = 0; i < args.finds; i++) {
        struct question *q = &f->questions[i];

        q->number = accesses[access].choose(&rng);
        q->len = (uint16_t)make_path(q->path, q->number);
    }
}

static void run(struct finder *finders, unsigned n, size_t access)
{
    pthread_t changer;

    for (unsigned i = 0; i < n; i++)
        prepare(&finders[i], i, access);
    pthread_barrier_init(&start, NULL, n);
    atomic_store(&done, false);
    if (args.changes > 0 && pthread_create(&changer, NULL, change_files, NULL) != 0)
        fail("thread");
    for (unsigned i = 0; i < n; i++) {
        if (pthread_create(&finders[i].thread, NULL, find_leases, &finders[i]) != 0)
            fail("thread");
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(finders[i].thread, NULL);
    atomic_store(&done, true);
    if (args.changes > 0)
        pthread_join(changer, NULL);
    pthread_barrier_destroy(&start);
}

/* ---- memory ---- */

struct memory {
    double allocated, resident; /* bytes */
};

static struct memory look_at_memory(void)
{
    struct mallinfo2 m = mallinfo2();
    struct memory now = { (double)m.uordblks + (double)m.hblkhd, 0 };
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    double kib;

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "RssAnon: %lf", &kib) == 1)
            now.resident = kib * 1024;
    }
    if (file != NULL)
        fclose(file);
    return now;
}

/* ---- results ---- */

static void report(FILE *json, const struct finder *finders, unsigned n, const char *access,
                   const struct memory *lease)
{
    const double all = (double)args.finds * n;
    double found = 0, elapsed = 0, processor = 0;

    for (unsigned i = 0; i < n; i++) {
        found += (double)finders[i].found;
        elapsed += (double)finders[i].elapsed_ns;
        processor += (double)finders[i].processor_ns;
    }
    printf("%9u %8u  %-8s %7.2f %9.0f %13.0f %16.0f %15.0f\n", n_paths, n, access, 100 * found / all,
           elapsed / all, processor / all, lease->allocated, lease->resident);
    fflush(stdout);
    if (json == NULL)
        return;
    fprintf(json,
            "%s\n{\"paths\": %u, \"threads\": %u, \"access\": \"%s\", \"names\": %u, "
            "\"changes_per_s\": %u, \"finds\": %.0f, \"found\": %.0f, \"ns_per_find\": %.1f, "
            "\"processor_ns_per_find\": %.1f, \"allocated_per_lease\": %.1f, "
            "\"resident_per_lease\": %.1f}",
            ftell(json) > 1 ? "," : "", n_paths, n, access, args.names, args.changes, all, found,
            elapsed / all, processor / all, lease->allocated, lease->resident);
    fflush(json);
}

/* ---- one number of paths and of threads, in a process of its own ---- */

static struct memory make_world(unsigned threads)
{
    struct memory before, after;
    apr_pool_t *pool;

    apr_initialize();
    if (apr_pool_create(&pool, NULL) != APR_SUCCESS || fp_table_init((int)threads) == -1)
        fail("table of leases");
    make_lease_table();
    before = look_at_memory();
    /* Twice as many: no shard is full, so none evicts. */
    fp_lease_init(pool, (int)(2 * n_paths), SIZE_MAX, false);
    make_leases();
    after = look_at_memory();
    return (struct memory){ (after.allocated - before.allocated) / n_paths,
                            (after.resident - before.resident) / n_paths };
}

static void measure(unsigned threads, FILE *json)
{
    struct finder *finders = calloc(threads, sizeof(*finders));
    struct memory lease = make_world(threads);

    make_ranks();
    for (unsigned i = 0; i < threads; i++) {
        finders[i].questions = malloc(args.finds * sizeof(struct question));
        if (finders[i].questions == NULL)
            fail("questions");
    }
    for (size_t i = 0; i < sizeof(accesses) / sizeof(accesses[0]); i++) {
        run(finders, threads, i);
        report(json, finders, threads, accesses[i].name, &lease);
    }
}

static bool measure_apart(unsigned paths, unsigned threads, FILE *json)
{
    int status;
    pid_t pid = fork();

    if (pid == -1)
        fail("fork");
    if (pid == 0) {
        n_paths = paths;
        measure(threads, json);
        exit(EXIT_SUCCESS);
    }
    return waitpid(pid, &status, 0) == pid && status == 0;
}

/* ---- the command line ---- */

static void usage(void)
{
    fputs("usage: lease_cost [--paths N,...] [--threads N,...] [--finds N] [--names N]\n"
          "                  [--changes N] [--zipf S] [--seed N] [--json FILE]\n",
          stderr);
    exit(2);
}

static unsigned number(const char *text, unsigned least, unsigned most)
{
    char *end;
    const long n = strtol(text, &end, 10);

    if (end == text || *end != '\0' || n < (long)least || n > (long)most)
        usage();
    return (unsigned)n;
}

static struct list numbers(char *text, unsigned most)
{
    struct list l = { 0, { 0 } };

    for (char *part = strtok(text, ","); part != NULL; part = strtok(NULL, ",")) {
        if (l.n == LIST_MOST)
            usage();
        l.value[l.n++] = number(part, 1, most);
    }
    return l;
}

static double fraction(const char *text)
{
    char *end;
    double x = strtod(text, &end);

    if (end == text || *end != '\0' || !(x >= 0 && x <= 10))
        usage();
    return x;
}

static void take(const char *name, char *value)
{
    if (strcmp(name, "--paths") == 0)
        args.paths = numbers(value, MOST_PATHS);
    else if (strcmp(name, "--threads") == 0)
        args.threads = numbers(value, MOST_THREADS);
    else if (strcmp(name, "--finds") == 0)
        args.finds = number(value, 1, UINT32_MAX);
    else if (strcmp(name, "--names") == 0)
        args.names = number(value, 0, FP_MAX_NAMES);
    else if (strcmp(name, "--changes") == 0)
        args.changes = number(value, 0, 100000);
    else if (strcmp(name, "--zipf") == 0)
        args.zipf = fraction(value);
    else if (strcmp(name, "--seed") == 0)
        args.seed = number(value, 0, UINT32_MAX);
    else if (strcmp(name, "--json") == 0)
        args.json = value;
    else
        usage();
}

int main(int argc, char **argv)
{
    FILE *json = NULL;
    bool ok = true;

    for (int i = 1; i < argc; i += 2) {
        if (i + 1 == argc)
            usage();
        take(argv[i], argv[i + 1]);
    }
    if (args.json != NULL) {
        json = fopen(args.json, "we");
        if (json == NULL)
            fail(args.json);
        fputc('[', json);
        fflush(json);
    }
    printf("%9s %8s  %-8s %7s %9s %13s %16s %15s\n", "paths", "threads", "access", "found %", "ns/find",
           "processor ns", "allocated/lease", "resident/lease");
    fflush(stdout);
    for (unsigned p = 0; p < args.paths.n; p++) {
        for (unsigned t = 0; t < args.threads.n; t++)
            ok &= measure_apart(args.paths.value[p], args.threads.value[t], json);
    }
    if (json != NULL) {
        fputs("\n]\n", json);
        ok &= fclose(json) == 0;
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
