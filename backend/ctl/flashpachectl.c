/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl: the operator's tool.  docs/flashpachectl.md explains every command.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/conf.h"
#include "ctl/ctl_json_report.h"
#include "ctl/ctl_report.h"
#include "shared/client.h"
#include "wire/socket_path.h"

#define DEFAULT_TIMEOUT_MS 5000
#define MAX_TIMEOUT_MS     600000

struct arguments {
    struct ctl ctl;
    bool help;
    char **words; /* the command and its arguments, n of them */
    int n;
};

/* Reports a mistake on the command line, and names --help; CTL_USAGE. */
static enum ctl_exit misused(const char *what)
{
    if (what != NULL)
        ctl_complain("%s", what);
    fputs("Try flashpachectl --help.\n", stderr);
    return CTL_USAGE;
}

/* ---- purge ---- */

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

/* what: NULL with FP_SCOPE_ALL.  Reports failures. */
static enum ctl_exit purge_one(const struct ctl *ctl, const char *what, uint64_t *count)
{
    static uint8_t buf[FP_MAX_FRAME];
    char path[FP_MAX_PATH + 1] = "";
    struct fp_control question = { .op = FP_CONTROL_PURGE, .scope = ctl->scope, .path = path };
    struct fp_reply reply;
    fp_status st;

    if (what != NULL && !ctl_absolute(what, path))
        return CTL_FAILED;
    question.path_len = strlen(path);
    st = fp_client_control(ctl->client, &question, &reply, buf);
    if (st != FP_OK)
        return ctl_no_daemon(ctl, st);
    *count += reply.count;
    if (reply.status != FP_OK)
        ctl_complain("%s was not forgotten: %s", path, fp_status_text(reply.status));
    else if (what != NULL && reply.count == 0)
        say_unknown(path);
    return reply.status == FP_OK ? CTL_DONE : CTL_FAILED;
}

static enum ctl_exit purge(const struct ctl *ctl, char **paths)
{
    const bool all = ctl->scope == FP_SCOPE_ALL;
    enum ctl_exit rc = CTL_DONE, one;
    uint64_t count = 0;

    if ((*paths == NULL) != all)
        return misused("purge takes paths, or --all");
    if (all)
        rc = purge_one(ctl, NULL, &count);
    for (; *paths != NULL && rc != CTL_NO_DAEMON; paths++) {
        one = purge_one(ctl, *paths, &count);
        if (one != CTL_DONE)
            rc = one;
    }
    if (rc != CTL_NO_DAEMON)
        printf("%" PRIu64 " entries forgotten\n", count);
    return rc;
}

/* ---- reports as they are ---- */

static enum ctl_exit print_report(const struct ctl *ctl, enum fp_report what)
{
    struct ctl_reports r;
    enum ctl_exit rc = ctl_read_reports(ctl, (enum fp_report[]){ what, 0 }, &r);

    if (rc == CTL_DONE && ctl->json)
        ctl_json_reports(&r);
    else if (rc == CTL_DONE)
        fputs(r.text[what], stdout);
    ctl_free_reports(&r);
    return rc;
}

static enum ctl_exit mounts(const struct ctl *ctl, char **args)
{
    (void)args;
    return print_report(ctl, FP_REPORT_MOUNTS);
}

static enum ctl_exit stats(const struct ctl *ctl, char **args)
{
    (void)args;
    return print_report(ctl, FP_REPORT_STATS);
}

/* ---- the command line ---- */

#define INDENT      "                           "
#define ACCESS_FILE ".htaccess" /* httpd's own default for AccessFileName */
#define NUMBERS \
    "mounts and stats take nothing more; Prometheus reads the module's status page, " \
    "http://SERVER/flashpache-status?prometheus"

static const struct option options[] = {
    { "socket", required_argument, NULL, 's' },
    { "config", required_argument, NULL, 'c' },
    { "timeout", required_argument, NULL, 'T' },
    { "version", no_argument, NULL, 'V' },
    { "help", no_argument, NULL, 'h' },
    { "json", no_argument, NULL, 'j' },
    { "access-file", required_argument, NULL, 'a' },
    { "tree", no_argument, NULL, 't' },
    { "all", no_argument, NULL, 'A' },
    { NULL, 0, NULL, 0 },
};

static const struct command {
    const char *name, *help; /* lines of --help */
    enum ctl_exit (*run)(const struct ctl *ctl, char **args);
    const char *options; /* letters of those that not all commands take */
    int args;            /* how many; -1: any number */
    const char *wants;   /* said where there are others */
} commands[] = {
    { "status", "  status                   the daemon's state, on one screen\n", ctl_status, "j", 0,
      "status takes nothing more" },
    { "check", "  check                    check socket, daemon, limits, mounts and httpd\n", ctl_check, "j", 0,
      "check takes nothing more" },
    { "php", "  php                      calls on files of processes with libflashpache_files.so\n", ctl_php, "j", 0,
      "php takes nothing more" },
    { "stats", "  stats                    counters\n", stats, "j", 0, NUMBERS },
    { "mounts", "  mounts                   file systems, and how their changes are detected\n", mounts, "j", 0,
      NUMBERS },
    { "explain",
      "  explain [--access-file NAME]... PATH\n" INDENT
      "look a path up, and print the answer step by step, and\n" INDENT "what the daemon knew before\n",
      ctl_explain, "ja", 1, "explain takes one path" },
    { "purge",
      "  purge PATH...            invalidate the entries of these paths\n"
      "  purge --tree DIR...      of these directories and everything below them\n"
      "  purge --all              of everything\n",
      purge, "tA", -1, NULL },
    { "warm",
      "  warm [--access-file NAME]... FILE\n" INDENT
      "look up the paths in FILE, one a line (-: standard\n" INDENT
      "input), and the files of that name (.htaccess) in\n" INDENT "the directories above them\n",
      ctl_warm, "a", 1, "warm takes one list of paths, or - for standard input" },
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
          "  -j, --json               reports as JSON\n"
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
           command->options[0] == 'j' ? "[-j] " : "", command->name, command->help);
    return CTL_DONE;
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

static bool add_name(struct fp_names *names, const char *name)
{
    size_t len = strlen(name);

    if (!fp_name_is_single(name, len)) {
        ctl_complain("\"%s\" is not a file name: give it as in AccessFileName", name);
        return false;
    }
    if (names->n == FP_MAX_NAMES) {
        ctl_complain("more than %d --access-file: the daemon keeps track of %d", FP_MAX_NAMES, FP_MAX_NAMES);
        return false;
    }
    names->list[names->n].name = name;
    names->list[names->n++].len = len;
    return true;
}

static bool set_scope(struct ctl *ctl, enum fp_scope scope)
{
    if (ctl->scope != FP_SCOPE_PATH)
        ctl_complain("purge takes one of --tree and --all");
    else
        ctl->scope = scope;
    return ctl->scope == scope;
}

static bool take_option(struct arguments *a, int c, const char *text)
{
    switch (c) {
    case 1: a->words[a->n++] = optarg; return true; /* no option */
    case 's': a->ctl.socket = optarg; return true;
    case 'c': a->ctl.conf = optarg; return true;
    case 'T': return parse_timeout(optarg, &a->ctl.timeout_ms);
    case 'j': return a->ctl.json = true;
    case 'h': return a->help = true;
    case 'a': return add_name(&a->ctl.names, optarg);
    case 't': return set_scope(&a->ctl, FP_SCOPE_TREE);
    case 'A': return set_scope(&a->ctl, FP_SCOPE_ALL);
    default: break;
    }
    if (strncmp(text, "--", 2) == 0)
        ctl_complain("%s: no such option, or not with a value, or without one", text);
    else
        ctl_complain("-%c: no such option, or without its value", optopt);
    return false;
}

/* False: the command takes no such option. */
static bool has_options(const struct arguments *a, const struct command *command)
{
    const struct {
        char letter;
        bool given;
        const char *name;
    } some[] = { { 'j', a->ctl.json, "json" },
                 { 'a', a->ctl.names.n > 0, "access-file" },
                 { 't', a->ctl.scope == FP_SCOPE_TREE, "tree" },
                 { 'A', a->ctl.scope == FP_SCOPE_ALL, "all" } };

    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        if (some[i].given && strchr(command->options, some[i].letter) == NULL) {
            ctl_complain("%s does not take --%s", command->name, some[i].name);
            return false;
        }
    }
    return true;
}

/* Options may stand anywhere.  The words are left at the beginning of argv, and end with NULL. */
static bool parse_arguments(struct arguments *a, int argc, char **argv)
{
    int c;

    opterr = 0;
    /* "-": words come one by one, in the place of an option. */
    while ((c = getopt_long(argc, argv, "-s:c:T:jVh", options, NULL)) != -1) {
        if (c == 'V') {
            puts("flashpachectl " PACKAGE_VERSION);
            exit(CTL_DONE);
        }
        if (!take_option(a, c, argv[optind - 1]))
            return false;
    }
    while (optind < argc)
        a->words[a->n++] = argv[optind++];
    a->words[a->n] = NULL;
    return true;
}

/* The first socket at which somebody listens, so that one left behind hides no other.  Else the first that is
 * there, or would be. */
static const char *usual_socket(void)
{
    for (const char *const *path = ctl_usual_sockets; *path != NULL; path++) {
        if (fp_socket_path_is_held(*path, NULL))
            return *path;
    }
    for (const char *const *path = ctl_usual_sockets; *path != NULL; path++) {
        if (access(*path, F_OK) == 0)
            return *path;
    }
    return ctl_usual_sockets[0];
}

/* Root trusts a daemon of the user who owns the socket's directory, if nobody else can write there. */
static struct fp_client *create_client(struct ctl *ctl)
{
    const bool told = ctl->names.n > 0;
    struct fp_client_settings settings = {
        .path = ctl->socket, .timeout_ms = ctl->timeout_ms, .max_idle = 1, .tells_names = told
    };
    char copy[FP_MAX_PATH + 1];
    struct stat st;

    if (!told)
        add_name(&ctl->names, ACCESS_FILE);
    settings.names = ctl->names;
    snprintf(copy, sizeof(copy), "%s", ctl->socket);
    if (geteuid() == 0 && stat(dirname(copy), &st) == 0 && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        settings.trusted = st.st_uid;
    return fp_client_create(&settings);
}

static enum ctl_exit run(struct ctl *ctl, const struct command *command, char **args)
{
    enum ctl_exit rc;

    ctl->client = create_client(ctl);
    if (ctl->client == NULL) {
        ctl_complain("%s: no memory, or too long for a socket's path", ctl->socket);
        return CTL_USAGE;
    }
    rc = command->run(ctl, args);
    fp_client_destroy(&ctl->client);
    if (fflush(stdout) == EOF || ferror(stdout)) {
        ctl_complain("cannot write to standard output: %s", strerror(errno));
        return rc != CTL_DONE ? rc : CTL_FAILED;
    }
    return rc;
}

static enum ctl_exit run_with_conf(struct ctl *ctl, const struct command *command, char **args)
{
    struct fp_conf *conf = NULL;
    bool given = false;
    enum ctl_exit rc;

    if (ctl->conf != NULL && (conf = fp_conf_read(ctl->conf, &given)) == NULL)
        return CTL_USAGE;
    /* For the daemon that httpd starts the file has no socket, or one that httpd overrides. */
    if (ctl->socket == NULL)
        ctl->socket = given ? conf->socket : usual_socket();
    rc = run(ctl, command, args);
    fp_conf_destroy(&conf);
    return rc;
}

int main(int argc, char **argv)
{
    struct arguments a = { .ctl = { .timeout_ms = DEFAULT_TIMEOUT_MS, .scope = FP_SCOPE_PATH }, .words = argv };
    const struct command *command;

    if (!parse_arguments(&a, argc, argv))
        return misused(NULL);
    if (a.n == 0 && a.help) {
        usage(stdout);
        return CTL_DONE;
    }
    if (a.n == 0)
        return misused("no command");
    command = find_command(argv[0]);
    if (command == NULL)
        return misused(NULL);
    if (a.help)
        return help_on(command);
    if (!has_options(&a, command))
        return misused(NULL);
    if (command->args != -1 && a.n != 1 + command->args)
        return misused(command->wants);
    return run_with_conf(&a.ctl, command, argv + 1);
}
