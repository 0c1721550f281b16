/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "plan.h"

#include "args.h"
#include "rng.h"
#include "tally.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct entry {
    struct bench_request request;
    char *text;
    char *host;
    char *path;
    char *line; /* the key */
    size_t number;
    UT_hash_handle hh;
};

struct bench_plan {
    const struct bench_args *args;
    struct entry *by_line;
    struct entry **lines;
    size_t count; /* of lines */
    size_t capacity;
    size_t entry_count;
    struct entry **entries; /* by number */
    size_t next;
    struct bench_rng choice;
    struct bench_rng gaps;
    double arrival_ns;
};

/* The server's address as a header of Host; NULL when there is no memory. */
static char *address(const struct bench_args *args)
{
    bool ipv6 = strchr(args->host, ':') != NULL;
    char *text = NULL;

    if (asprintf(&text, "%s%s%s:%s", ipv6 ? "[" : "", args->host, ipv6 ? "]" : "", args->port) < 0)
        return NULL;
    return text;
}

static char *make_text(const struct entry *entry)
{
    char *text = NULL;

    if (entry->host == NULL
        || asprintf(&text,
                    "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: flashpache-bench\r\nAccept: */*\r\n\r\n",
                    entry->request.head ? "HEAD" : "GET", entry->path, entry->host)
               < 0)
        return NULL;
    return text;
}

static int no_memory(void)
{
    (void)fputs("flashpache-bench: out of memory for the paths\n", stderr);
    return -1;
}

static void free_entry(struct entry *entry)
{
    free(entry->text);
    free(entry->host);
    free(entry->path);
    free(entry->line);
    free(entry);
}

/* The word without those before it; false if the line begins with another. */
static bool skip_word(const char **line, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(*line, word, length) != 0)
        return false;
    *line += length;
    return true;
}

/* The status behind the path, or 0 where there is none; -1: something else is there. */
static int parse_status(const char *text)
{
    char *end;
    long status;

    if (*text == '\0')
        return 0;
    status = strtol(text, &end, 10);
    return *end == '\0' && status >= 100 && status < BENCH_MAX_STATUS ? (int)status : -1;
}

/* Takes a line "[GET|HEAD] [http://HOST]PATH [STATUS]" apart. Its mistake, or NULL. */
static const char *parse(struct entry *entry, const char *line)
{
    size_t length;

    entry->request.head = skip_word(&line, "HEAD ");
    if (!entry->request.head)
        (void)skip_word(&line, "GET ");
    if (skip_word(&line, "http://")) {
        length = strcspn(line, "/ ");
        entry->host = strndup(line, length);
        line += length;
    }
    length = strcspn(line, " ");
    entry->request.status = parse_status(line[length] == ' ' ? line + length + 1 : "");
    if (line[0] != '/' || strpbrk(line, "\t\r\n") != NULL || entry->request.status < 0)
        return "is no URL path: it must begin with / and have no white space (write %20)";
    entry->path = strndup(line, length);
    return entry->path == NULL ? "is more than there is memory for" : NULL;
}

/* The text of its request; 0, or -1 when there is no memory. */
static int complete(struct bench_plan *plan, struct entry *entry, const char *line)
{
    entry->request.path = entry->path;
    if (entry->host == NULL)
        entry->host = address(plan->args);
    entry->text = make_text(entry);
    entry->line = strdup(line);
    if (entry->text == NULL || entry->line == NULL)
        return -1;
    entry->request.text = entry->text;
    entry->request.size = strlen(entry->text);
    entry->number = plan->entry_count++;
    HASH_ADD_KEYPTR(hh, plan->by_line, entry->line, strlen(entry->line), entry);
    return 0;
}

/* The entry of a line, made if need be; NULL after an error, which was printed. */
static struct entry *entry_of(struct bench_plan *plan, const char *line, const char *where)
{
    struct entry *entry;
    const char *mistake;

    HASH_FIND_STR(plan->by_line, line, entry);
    if (entry != NULL)
        return entry;
    entry = calloc(1, sizeof(*entry));
    mistake = entry == NULL ? "is more than there is memory for" : parse(entry, line);
    if (mistake == NULL && complete(plan, entry, line) == 0)
        return entry;
    if (mistake != NULL)
        (void)fprintf(stderr, "flashpache-bench: %s: \"%s\" %s\n", where, line, mistake);
    else
        (void)no_memory();
    if (entry != NULL)
        free_entry(entry);
    return NULL;
}

static int add(struct bench_plan *plan, const char *line, const char *where)
{
    struct entry *entry;

    if (plan->count == plan->capacity) {
        size_t capacity = plan->capacity == 0 ? 64 : plan->capacity * 2;
        struct entry **lines = realloc(plan->lines, capacity * sizeof(struct entry *));

        if (lines == NULL)
            return no_memory();
        plan->lines = lines;
        plan->capacity = capacity;
    }
    entry = entry_of(plan, line, where);
    if (entry == NULL)
        return -1;
    plan->lines[plan->count++] = entry;
    return 0;
}

static int read_file(struct bench_plan *plan, const char *name)
{
    FILE *file = fopen(name, "re");
    char *line = NULL;
    size_t capacity = 0;
    int status = 0;

    if (file == NULL) {
        (void)fprintf(stderr, "flashpache-bench: cannot open %s: %s\n", name, strerror(errno));
        return -1;
    }
    while (status == 0 && getline(&line, &capacity, file) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (line[0] != '\0')
            status = add(plan, line, name);
    }
    if (status == 0 && ferror(file)) {
        (void)fprintf(stderr, "flashpache-bench: cannot read %s\n", name);
        status = -1;
    }
    free(line);
    (void)fclose(file);
    return status;
}

static int collect(struct bench_plan *plan)
{
    const struct bench_args *args = plan->args;

    for (int i = 0; i < args->path_count; i++)
        if (add(plan, args->paths[i], "command line") != 0)
            return -1;
    if (args->urls != NULL && read_file(plan, args->urls) != 0)
        return -1;
    if (plan->count == 0 && args->urls != NULL) {
        (void)fprintf(stderr, "flashpache-bench: %s has no paths\n", args->urls);
        return -1;
    }
    return plan->count == 0 ? add(plan, "/", "default") : 0;
}

static int number_entries(struct bench_plan *plan)
{
    plan->entries = calloc(plan->entry_count, sizeof(struct entry *));
    if (plan->entries == NULL)
        return no_memory();
    for (struct entry *entry = plan->by_line; entry != NULL; entry = entry->hh.next)
        plan->entries[entry->number] = entry;
    return 0;
}

struct bench_plan *bench_plan_create(const struct bench_args *args)
{
    struct bench_plan *plan = calloc(1, sizeof(*plan));

    if (plan == NULL) {
        (void)no_memory();
        return NULL;
    }
    plan->args = args;
    bench_rng_seed(&plan->choice, args->seed);
    /* A sequence of its own: the order of paths does not depend on the arrivals. */
    bench_rng_seed(&plan->gaps, ~args->seed);
    if (collect(plan) != 0 || number_entries(plan) != 0)
        bench_plan_destroy(&plan);
    return plan;
}

void bench_plan_destroy(struct bench_plan **plan)
{
    struct entry *entry;
    struct entry *following;

    if (*plan == NULL)
        return;
    HASH_ITER(hh, (*plan)->by_line, entry, following) {
        HASH_DEL((*plan)->by_line, entry);
        free_entry(entry);
    }
    free((*plan)->lines);
    free((*plan)->entries);
    free(*plan);
    *plan = NULL;
}

size_t bench_plan_size(const struct bench_plan *plan)
{
    return plan->count;
}

size_t bench_plan_count(const struct bench_plan *plan)
{
    return plan->entry_count;
}

const struct bench_request *bench_plan_request(const struct bench_plan *plan, size_t index)
{
    return &plan->entries[index]->request;
}

size_t bench_plan_next(struct bench_plan *plan, size_t *line_r)
{
    if (plan->args->random) {
        *line_r = (size_t)bench_rng_below(&plan->choice, plan->count);
    } else {
        *line_r = plan->next;
        plan->next = (plan->next + 1) % plan->count;
    }
    return plan->lines[*line_r]->number;
}

uint64_t bench_plan_next_arrival(struct bench_plan *plan)
{
    uint64_t arrival = (uint64_t)plan->arrival_ns;
    double gap = plan->args->constant_arrivals ? 1.0 : bench_rng_exponential(&plan->gaps);

    plan->arrival_ns += gap * 1e9 / bench_args_arrivals(plan->args);
    return arrival;
}
