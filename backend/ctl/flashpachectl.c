/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl: the operator's tool.  docs/flashpachectl.md explains every command.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/conf.h"
#include "ctl/ctl_json_report.h"
#include "ctl/ctl_out.h"
#include "ctl/ctl_report.h"
#include "shared/client.h"

#define DEFAULT_TIMEOUT_MS 5000
#define MAX_TIMEOUT_MS     600000

struct arguments {
    const char *socket, *conf; /* NULL: not given */
    uint32_t timeout_ms;
    bool json;
};

/* ---- purge ---- */

struct purge {
    const struct ctl *ctl;
    enum fp_scope scope;
    uint64_t count;
};

/* A path of which nothing is known is no failure: nobody
 * may have asked for it yet.  But it may be a mistake. */
static void say_unknown(const char *path)
{
    struct stat st;

    if (lstat(path, &st) == 0)
        printf("nothing was known of %s\n", ctl_name(path, strlen(path)));
    else
        printf("nothing was known of %s: %s\n", ctl_name(path, strlen(path)), strerror(errno));
}

static enum ctl_exit purge_one(struct purge *p, const char *what)
{
    char path[FP_MAX_PATH + 1];
    const uint64_t before = p->count;
    enum ctl_exit rc;

    if (!ctl_absolute(what, path))
        return CTL_FAILED;
    rc = ctl_purge(p->ctl, p->scope, path, &p->count);
    if (rc == CTL_DONE && p->count == before)
        say_unknown(path);
    return rc;
}

static enum ctl_exit purge_paths(struct purge *p, char **paths)
{
    enum ctl_exit rc = CTL_DONE, one;

    for (; *paths != NULL; paths++) {
        one = purge_one(p, *paths);
        if (one == CTL_NO_DAEMON)
            return one;
        if (one != CTL_DONE)
            rc = one;
    }
    printf("%" PRIu64 " entries forgotten\n", p->count);
    return rc;
}

static enum ctl_exit purge_all(struct purge *p)
{
    const enum ctl_exit rc = ctl_purge(p->ctl, FP_SCOPE_ALL, "", &p->count);

    if (rc == CTL_DONE)
        printf("%" PRIu64 " entries forgotten\n", p->count);
    return rc;
}

static bool take_purge_option(struct purge *p, int c)
{
    if (c != 't' && c != 'a')
        return false;
    if (p->scope != FP_SCOPE_PATH) {
        ctl_complain("purge takes one of --tree and --all");
        return false;
    }
    p->scope = c == 't' ? FP_SCOPE_TREE : FP_SCOPE_ALL;
    return true;
}

static enum ctl_exit purge(const struct ctl *ctl, int argc, char **argv)
{
    static const struct option options[] = { { "tree", no_argument, NULL, 't' },
                                             { "all", no_argument, NULL, 'a' },
                                             { NULL, 0, NULL, 0 } };
    struct purge p = { .ctl = ctl, .scope = FP_SCOPE_PATH };
    int c;

    while ((c = ctl_option(argc, argv, "", options)) != -1) {
        if (!take_purge_option(&p, c))
            return ctl_misused(NULL);
    }
    if (p.scope != FP_SCOPE_ALL)
        return optind < argc ? purge_paths(&p, argv + optind)
                             : ctl_misused("purge takes paths, or --all");
    return optind == argc ? purge_all(&p) : ctl_misused("purge --all takes no path");
}

/* ---- reports as they are ---- */

static enum ctl_exit print_report(const struct ctl *ctl, int argc, enum fp_report what)
{
    struct ctl_reports r;
    enum ctl_exit rc;

    if (argc > 1)
        return ctl_misused("mounts and stats take nothing more; Prometheus reads the module's status page, "
                           "http://SERVER/flashpache-status?prometheus");
    rc = ctl_read_reports(ctl, (enum fp_report[]){ what, 0 }, &r);
    if (rc == CTL_DONE && ctl->json)
        ctl_json_reports(&r);
    else if (rc == CTL_DONE)
        fputs(r.text[what], stdout);
    ctl_free_reports(&r);
    return rc;
}

static enum ctl_exit mounts(const struct ctl *ctl, int argc, char **argv)
{
    (void)argv;
    return print_report(ctl, argc, FP_REPORT_MOUNTS);
}

static enum ctl_exit stats(const struct ctl *ctl, int argc, char **argv)
{
    (void)argv;
    return print_report(ctl, argc, FP_REPORT_STATS);
}

/* ---- the command line ---- */

#define INDENT "                           "

static const struct command {
    const char *name, *help; /* lines of --help */
    enum ctl_exit (*run)(const struct ctl *ctl, int argc, char **argv);
    bool reports; /* takes --json */
} commands[] = {
    { "status", "  status                   the daemon's state, on one screen\n", ctl_status, true },
    { "check", "  check                    check socket, daemon, limits, mounts and httpd\n", ctl_check,
      true },
    { "php", "  php                      calls on files of processes with libflashpache_files.so\n", ctl_php,
      true },
    { "stats", "  stats                    counters\n", stats, true },
    { "mounts", "  mounts                   file systems, and how their changes are detected\n", mounts,
      true },
    { "explain",
      "  explain [--access-file NAME]... PATH\n" INDENT
      "look a path up, and print the answer step by step, and\n" INDENT "what the daemon knew before\n",
      ctl_explain, true },
    { "purge",
      "  purge PATH...            invalidate the entries of these paths\n"
      "  purge --tree DIR...      of these directories and everything below them\n"
      "  purge --all              of everything\n",
      purge, false },
    { "warm",
      "  warm [--access-file NAME]... FILE\n" INDENT
      "look up the paths in FILE, one a line (-: standard\n" INDENT
      "input), and the files of that name (.htaccess) in\n" INDENT "the directories above them\n",
      ctl_warm, false },
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void usage(FILE *out)
{
    fputs("Usage: flashpachectl [-s SOCKET] [-c FILE] [-T MS] [-j] COMMAND\n"
          "Controls and inspects flashpached.\n\n",
          out);
    for (size_t i = 0; i < COMMANDS; i++)
        fputs(commands[i].help, out);
    fputs("\n"
          "  -s, --socket SOCKET      the daemon's socket (" FP_DEFAULT_SOCKET ")\n"
          "  -c, --config FILE        the daemon's configuration, for its socket unless -s names one\n"
          "  -T, --timeout MS         how long one question may take (5000)\n"
          "  -j, --json               reports as JSON; also behind the command\n"
          "  -V, --version            print the version and exit\n"
          "  -h, --help               print this and exit; behind a command, what belongs to it\n\n"
          "Exit status: 0 done, 1 failed for some, 2 wrong usage, 3 no daemon.\n",
          out);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    ctl_complain("unknown command: %s", name);
    return NULL;
}

static enum ctl_exit help_on(const struct command *command)
{
    printf("Usage: flashpachectl [-s SOCKET] [-c FILE] [-T MS] %s%s ...\n\n%s",
           command->reports ? "[-j] " : "", command->name, command->help);
    return CTL_DONE;
}

/* Takes --json off a command's arguments; true if it was there. */
static bool take_json(int *argc, char **argv)
{
    int to = 1;

    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            while (i < *argc)
                argv[to++] = argv[i++];
        } else if (strcmp(argv[i], "--json") != 0) {
            argv[to++] = argv[i];
        }
    }
    argv[to] = NULL;
    if (to == *argc)
        return false;
    *argc = to;
    return true;
}

static enum ctl_exit run(struct ctl *ctl, int argc, char **argv)
{
    const struct command *command = find_command(argv[0]);

    if (command == NULL)
        return ctl_misused(NULL);
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return help_on(command);
    }
    if (take_json(&argc, argv))
        ctl->json = true;
    if (ctl->json && !command->reports) {
        ctl_complain("%s is not a report: leave out --json", command->name);
        return ctl_misused(NULL);
    }
    optind = 0; /* a new command line for getopt */
    return command->run(ctl, argc, argv);
}

static bool parse_timeout(const char *text, uint32_t *ms_r)
{
    char *end;
    unsigned long v;

    errno = 0;
    v = strtoul(text, &end, 10);
    *ms_r = (uint32_t)v;
    if (errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0' && v >= 1 && v <= MAX_TIMEOUT_MS)
        return true;
    ctl_complain("--timeout %s: use 1 to %d milliseconds", text, MAX_TIMEOUT_MS);
    return false;
}

static bool parse_arguments(struct arguments *a, int argc, char **argv)
{
    static const struct option options[] = {
        { "socket", required_argument, NULL, 's' },
        { "config", required_argument, NULL, 'c' },
        { "timeout", required_argument, NULL, 'T' },
        { "version", no_argument, NULL, 'V' },
        { "help", no_argument, NULL, 'h' },
        { "json", no_argument, NULL, 'j' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    /* "+": options behind the command are the command's. */
    while ((c = ctl_option(argc, argv, "+s:c:T:jVh", options)) != -1) {
        switch (c) {
        case 's': a->socket = optarg; break;
        case 'c': a->conf = optarg; break;
        case 'T':
            if (!parse_timeout(optarg, &a->timeout_ms))
                return false;
            break;
        case 'j': a->json = true; break;
        case 'V': puts("flashpachectl " PACKAGE_VERSION); exit(CTL_DONE);
        case 'h': usage(stdout); exit(CTL_DONE);
        default: return false;
        }
    }
    if (optind == argc)
        ctl_complain("no command");
    return optind < argc;
}

/* The first socket at which somebody listens, so that one left behind hides no other.  Else the first that is
 * there, or would be. */
static const char *usual_socket(void)
{
    for (const char *const *path = ctl_usual_sockets; *path != NULL; path++) {
        if (ctl_listens(*path))
            return *path;
    }
    for (const char *const *path = ctl_usual_sockets; *path != NULL; path++) {
        if (access(*path, F_OK) == 0)
            return *path;
    }
    return ctl_usual_sockets[0];
}

static enum ctl_exit run_with(struct ctl *ctl, int argc, char **argv)
{
    enum ctl_exit rc;

    ctl->client = ctl_client(ctl->socket, ctl->timeout_ms);
    if (ctl->client == NULL) {
        ctl_complain("%s: no memory, or too long for a socket's path", ctl->socket);
        return CTL_USAGE;
    }
    rc = run(ctl, argc, argv);
    fp_client_destroy(&ctl->client);
    if (fflush(stdout) == EOF || ferror(stdout)) {
        ctl_complain("cannot write to standard output: %s", strerror(errno));
        return rc != CTL_DONE ? rc : CTL_FAILED;
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct arguments a = { .timeout_ms = DEFAULT_TIMEOUT_MS };
    struct ctl ctl = { .json = false };
    struct fp_conf *conf = NULL;
    bool given = false;
    enum ctl_exit rc;

    if (!ctl_guard_output()) {
        ctl_complain("no memory");
        return CTL_FAILED;
    }
    if (!parse_arguments(&a, argc, argv))
        return ctl_misused(NULL);
    if (a.conf != NULL) {
        conf = fp_conf_read(a.conf, &given);
        if (conf == NULL)
            return CTL_USAGE;
        ctl.conf = a.conf;
    }
    /* For the daemon that httpd starts the file has no socket, or one that httpd overrides. */
    if (a.socket != NULL)
        ctl.socket = a.socket;
    else
        ctl.socket = given ? conf->socket : usual_socket();
    ctl.timeout_ms = a.timeout_ms;
    ctl.json = a.json;
    rc = run_with(&ctl, argc - optind, argv + optind);
    fp_conf_destroy(&conf);
    return (int)rc;
}
