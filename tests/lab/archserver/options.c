/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define BIT(n)       (1u << (n))
#define ALL_SENDS    (BIT(SEND_WAYS) - 1)
#define NOT_BLOCKING (ALL_SENDS & ~BIT(SEND_BLOCKING_SENDFILE))
#define ALL_CACHES   (BIT(CACHE_KINDS) - 1)
/* Of a process beside connections and cache: listener, root, epoll, helpers' socket, standard streams. */
#define SPARE_DESCRIPTORS 32
#define MAX_WORKERS       16384

/* One architecture: what it is, what goes with it, and what the papers' server of its name had. */
struct row {
    const char *name, *about;
    unsigned sends, caches;
    const char *why_not_sends, *why_not_caches; /* where not all go */
    enum send_by send_by;
    enum cache_kind cache;
    unsigned workers; /* 0: as many as connections */
};

static const char one_loop[] = "its one loop would wait for one client at a time";
static const struct row rows[] = {
    [ARCH_MP] = { "mp", "a process for each connection (Apache 1.3)", ALL_SENDS, ALL_CACHES, NULL, NULL,
                  SEND_MMAP, CACHE_NONE, 0 },
    [ARCH_MT] = { "mt", "a thread for each connection (Knot)", ALL_SENDS, ALL_CACHES, NULL, NULL,
                  SEND_BLOCKING_SENDFILE, CACHE_FD, 0 },
    [ARCH_SPED] = { "sped", "one event loop, whose file calls block (userver, one process)", NOT_BLOCKING,
                    ALL_CACHES, one_loop, NULL, SEND_NONBLOCKING_SENDFILE, CACHE_FD, 1 },
    [ARCH_SYMPED] = { "symped", "event loops that share nothing (userver SYMPED)", ALL_SENDS, ALL_CACHES,
                      NULL, NULL, SEND_NONBLOCKING_SENDFILE, CACHE_FD, 8 },
    [ARCH_SHARED_SYMPED] = { "shared-symped",
                             "event loops with one cache of descriptors (userver shared-SYMPED)",
                             ALL_SENDS & ~BIT(SEND_MMAP), BIT(CACHE_FD), "a mapping belongs to one process",
                             "what its processes share is the cache of descriptors",
                             SEND_NONBLOCKING_SENDFILE, CACHE_FD, 8 },
    [ARCH_AMPED] = { "amped", "one event loop, helpers for what blocks (Flash)", NOT_BLOCKING, ALL_CACHES,
                     one_loop, NULL, SEND_MMAP, CACHE_FD, 8 },
    [ARCH_NEW_FLASH] = { "new-flash", "as amped; helpers open, and pass descriptors (New-Flash)",
                         BIT(SEND_NONBLOCKING_SENDFILE), BIT(CACHE_NONE) | BIT(CACHE_FD),
                         "sendfile without waiting is what New-Flash is",
                         "it keeps descriptors, not contents", SEND_NONBLOCKING_SENDFILE, CACHE_FD, 8 },
    [ARCH_PIPELINE] = { "pipeline", "stages with queues, one for all that blocks (WatPipe, Haboob)",
                        NOT_BLOCKING, ALL_CACHES, "its sending stage would wait for clients", NULL,
                        SEND_NONBLOCKING_SENDFILE, CACHE_FD, 8 },
};
static const char *const sends[SEND_WAYS] = { "blocking-sendfile", "nonblocking-sendfile", "writev", "mmap" };
static const char *const caches[CACHE_KINDS] = { "none", "fd", "content" };
#define ARCHS (sizeof(rows) / sizeof(rows[0]))

enum {
    OPT_ARCH = 256,
    OPT_SEND,
    OPT_CACHE,
    OPT_ROOT,
    OPT_HOST,
    OPT_PORT,
    OPT_CONNECTIONS,
    OPT_WORKERS,
    OPT_ENTRIES,
    OPT_BYTES,
    OPT_IDLE,
    OPT_TURNS,
    OPT_LIST,
};

static const struct option longs[] = {
    { "arch", required_argument, NULL, OPT_ARCH },
    { "send", required_argument, NULL, OPT_SEND },
    { "cache", required_argument, NULL, OPT_CACHE },
    { "root", required_argument, NULL, OPT_ROOT },
    { "host", required_argument, NULL, OPT_HOST },
    { "port", required_argument, NULL, OPT_PORT },
    { "connections", required_argument, NULL, OPT_CONNECTIONS },
    { "workers", required_argument, NULL, OPT_WORKERS },
    { "cache-entries", required_argument, NULL, OPT_ENTRIES },
    { "cache-bytes", required_argument, NULL, OPT_BYTES },
    { "idle", required_argument, NULL, OPT_IDLE },
    { "turns", required_argument, NULL, OPT_TURNS },
    { "list", no_argument, NULL, OPT_LIST },
    { "test", no_argument, NULL, 't' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

/* The command line's choice; -1 where it said nothing. */
struct given {
    int arch, send_by, cache;
    long workers;
    bool test;
};

static void usage(void)
{
    fputs(
        "usage: archserver --arch NAME --root DIR --port NUMBER [option]...\n"
        "\n"
        "One static HTTP/1.1 server: the architecture is an option, the code of a request is the same in all.\n"
        "\n",
        stdout);
    for (size_t i = 0; i < ARCHS; i++)
        printf("  --arch %-14s %s; %s, %s\n", rows[i].name, rows[i].about, sends[rows[i].send_by],
               caches[rows[i].cache]);
    fputs(
        "\n"
        "  --send WAY            blocking-sendfile, nonblocking-sendfile, writev, mmap (default: see above)\n"
        "  --cache KIND          none, fd, content (default: see above)\n"
        "  --host ADDRESS        of the listener (127.0.0.1)\n"
        "  --connections NUMBER  at once (1024); others wait in the backlog\n"
        "  --workers NUMBER      mp, mt: processes, threads (as many as connections); symped: loops;\n"
        "                        amped, new-flash: helpers; pipeline: threads of the stage that blocks (8);\n"
        "                        never more than --connections\n"
        "  --cache-entries NUMBER  files in a cache (1000)\n"
        "  --cache-bytes NUMBER  contents in a cache (67108864)\n"
        "  --idle SECONDS        after which a silent client is left (60)\n"
        "  --turns FILE          where event loops count the events that they find ready: 64-bit numbers of turns,\n"
        "                        by the number of events, from 0 to 1024\n"
        "  --list                print each combination of --arch, --send and --cache that is taken\n"
        "  -t, --test            check the options and end\n"
        "\n"
        "A cache does not look at a file again: what is served must not change.\n"
        "SIGTERM and SIGINT end the server.\n",
        stdout);
}

const char *options_arch_name(enum arch arch)
{
    return rows[arch].name;
}

static int complain(const char *option, const char *value, const char *why)
{
    (void)fprintf(stderr, "archserver: %s %s: %s\n", option, value, why);
    return 1;
}

static int find_name(const char *option, const char *const *names, size_t count, int *index_r)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], optarg) == 0) {
            *index_r = (int)i;
            return -1;
        }
    }
    return complain(option, optarg, "unknown; see archserver --help");
}

static int find_arch(int *index_r)
{
    const char *names[ARCHS];

    for (size_t i = 0; i < ARCHS; i++)
        names[i] = rows[i].name;
    return find_name("--arch", names, ARCHS, index_r);
}

static int parse_number(const char *option, unsigned long long max, unsigned long long *number_r)
{
    char *end;
    char why[64];

    errno = 0;
    *number_r = strtoull(optarg, &end, 10);
    if (errno == 0 && end != optarg && *end == '\0' && optarg[0] != '-' && *number_r >= 1 && *number_r <= max)
        return -1;
    (void)snprintf(why, sizeof(why), "must be a whole number from 1 to %llu", max);
    return complain(option, optarg, why);
}

static int parse_bound(int opt, struct options *o, struct given *given)
{
    unsigned long long n = 0;
    int status;

    switch (opt) {
    case OPT_PORT:
        status = parse_number("--port", UINT16_MAX, &n);
        o->port = (uint16_t)n;
        return status;
    case OPT_CONNECTIONS:
        status = parse_number("--connections", MAX_WORKERS, &n);
        o->connections = (unsigned)n;
        return status;
    case OPT_WORKERS:
        status = parse_number("--workers", MAX_WORKERS, &n);
        given->workers = (long)n;
        return status;
    case OPT_ENTRIES:
        status = parse_number("--cache-entries", 1000000, &n);
        o->cache_entries = (unsigned)n;
        return status;
    case OPT_BYTES:
        status = parse_number("--cache-bytes", 1ull << 40, &n);
        o->cache_bytes = n;
        return status;
    default:
        status = parse_number("--idle", 3600, &n);
        o->idle_s = (unsigned)n;
        return status;
    }
}

static bool fits(const struct row *row, unsigned send_by, unsigned cache)
{
    return (row->sends & BIT(send_by)) != 0 && (row->caches & BIT(cache)) != 0
           && (cache != CACHE_CONTENT || send_by == SEND_WRITEV);
}

static void list(void)
{
    for (size_t arch = 0; arch < ARCHS; arch++)
        for (unsigned send_by = 0; send_by < SEND_WAYS; send_by++)
            for (unsigned cache = 0; cache < CACHE_KINDS; cache++)
                if (fits(&rows[arch], send_by, cache))
                    printf("%s %s %s\n", rows[arch].name, sends[send_by], caches[cache]);
}

static int parse_option(int opt, struct options *o, struct given *given)
{
    switch (opt) {
    case OPT_ARCH: return find_arch(&given->arch);
    case OPT_SEND: return find_name("--send", sends, SEND_WAYS, &given->send_by);
    case OPT_CACHE: return find_name("--cache", caches, CACHE_KINDS, &given->cache);
    case OPT_ROOT: o->root = optarg; return -1;
    case OPT_HOST: o->host = optarg; return -1;
    case OPT_TURNS: o->turns_file = optarg; return -1;
    case OPT_LIST: list(); return 0;
    case 't': given->test = true; return -1;
    case 'h': usage(); return 0;
    case '?': (void)fputs("archserver: see archserver --help\n", stderr); return 1;
    default: return parse_bound(opt, o, given);
    }
}

/* The architecture's own where the command line says nothing. Contents are sent from memory alone. */
static void set_defaults(const struct row *row, const struct given *given, struct options *o)
{
    o->cache = given->cache >= 0 ? (enum cache_kind)given->cache : row->cache;
    o->send_by = given->send_by >= 0         ? (enum send_by)given->send_by
                 : o->cache == CACHE_CONTENT ? SEND_WRITEV
                                             : row->send_by;
    o->workers = given->workers > 0 ? (unsigned)given->workers
                 : row->workers > 0 ? row->workers
                                    : o->connections;
    if (row->workers == 1)
        o->workers = 1;
    if (o->workers > o->connections) /* more would have nothing to do */
        o->workers = o->connections;
}

static int refuse(const struct row *row, const char *option, const char *value, const char *why)
{
    (void)fprintf(stderr, "archserver: --arch %s does not go with %s %s: %s; --list has what goes\n",
                  row->name, option, value, why);
    return 1;
}

static int check_combination(const struct row *row, const struct options *o)
{
    if ((row->sends & BIT(o->send_by)) == 0)
        return refuse(row, "--send", sends[o->send_by], row->why_not_sends);
    if ((row->caches & BIT(o->cache)) == 0)
        return refuse(row, "--cache", caches[o->cache], row->why_not_caches);
    if (!fits(row, o->send_by, o->cache))
        return complain("--cache", "content", "is sent from memory; add --send writev");
    return -1;
}

/* Running out of descriptors in a measurement would look like a slow server. */
static int check_descriptors(const struct options *o)
{
    unsigned long long needed = SPARE_DESCRIPTORS + o->connections;
    struct rlimit limit;
    char why[128];

    if (o->cache == CACHE_FD)
        needed += o->cache_entries;
    if (o->arch == ARCH_SHARED_SYMPED)
        needed += o->workers;
    needed += o->connections; /* a file that is in no cache is open while it is sent */
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return complain("limit", "RLIMIT_NOFILE", strerror(errno));
    limit.rlim_cur = limit.rlim_max;
    if (needed <= limit.rlim_max && setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return -1;
    (void)snprintf(why, sizeof(why), "%llu descriptors may be needed and %llu are allowed; raise ulimit -Hn",
                   needed, (unsigned long long)limit.rlim_max);
    return complain("--connections and", "--cache-entries", why);
}

static int check(const struct given *given, struct options *o)
{
    int status;

    if (given->arch < 0 || o->root == NULL || o->port == 0) {
        (void)fputs("archserver: needs --arch, --root and --port; see archserver --help\n", stderr);
        return 1;
    }
    o->arch = (enum arch)given->arch;
    set_defaults(&rows[o->arch], given, o);
    status = check_combination(&rows[o->arch], o);
    if (status < 0)
        status = check_descriptors(o);
    return status < 0 && given->test ? 0 : status;
}

int options_parse(int argc, char **argv, struct options *options_r)
{
    struct given given = { -1, -1, -1, -1, false };
    int status = -1;
    int opt;

    *options_r = (struct options){ .host = "127.0.0.1",
                                   .connections = 1024,
                                   .cache_entries = 1000,
                                   .cache_bytes = 64u << 20,
                                   .idle_s = 60 };
    while (status < 0 && (opt = getopt_long(argc, argv, "th", longs, NULL)) != -1)
        status = parse_option(opt, options_r, &given);
    if (status < 0 && optind < argc)
        status = complain("argument", argv[optind], "unknown; see archserver --help");
    return status < 0 ? check(&given, options_r) : status;
}
