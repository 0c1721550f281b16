/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "arguments.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void usage(FILE *out)
{
    fputs("Usage: flashpached [-c FILE] [-o KEY=VALUE]... [-t] [-f]\n"
          "Answers Apache httpd's questions about paths from a cache.\n\n"
          "  -c, --config FILE     configuration (" FP_DEFAULT_CONF ")\n"
          "  -o, --set KEY=VALUE   override one setting; repeatable\n"
          "  -t, --check           check the configuration and exit\n"
          "  -f, --foreground      accepted, has no effect; the next release removes it\n"
          "      --supervised      as httpd starts it: standard input is a socket of the\n"
          "                        process that it ends with\n"
          "      --passed          as httpd starts it as root: descriptor 3 is the listening\n"
          "                        socket, 4 the lock beside it\n"
          "  -V, --version         print the version and exit\n"
          "  -h, --help            print this and exit\n\n"
          "It stays in the foreground, and logs to standard error unless log is set.\n"
          "Signals: TERM ends, HUP rereads the configuration and reopens the log,\n"
          "USR1 logs counters.\n",
          out);
}

/* The absolute path, for the file is opened again at each reload, wherever the process is then. */
static const char *absolute(const char *file)
{
    char *dir, *path = NULL;

    if (file[0] == '/' || file[0] == '\0')
        return file;
    dir = getcwd(NULL, 0);
    if (dir == NULL || asprintf(&path, "%s/%s", strcmp(dir, "/") == 0 ? "" : dir, file) == -1) {
        fprintf(stderr, "flashpached: cannot find the working directory (%s): give -c an absolute path\n",
                strerror(errno));
        exit(1);
    }
    free(dir);
    return path;
}

void fp_arguments_parse(struct fp_arguments *a, int argc, char **argv)
{
    static const struct option options[] = {
        { "config", required_argument, NULL, 'c' },
        { "set", required_argument, NULL, 'o' },
        { "check", no_argument, NULL, 't' },
        { "foreground", no_argument, NULL, 'f' },
        { "supervised", no_argument, NULL, 'S' },
        { "passed", no_argument, NULL, 'P' },
        { "version", no_argument, NULL, 'V' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    int c;

    a->file = FP_DEFAULT_CONF;
    while ((c = getopt_long(argc, argv, "c:o:tfVh", options, NULL)) != -1) {
        switch (c) {
        case 'c': a->file = optarg; break;
        case 'o':
            if (a->n_overrides == FP_MAX_OVERRIDES) {
                fprintf(stderr, "flashpached: more than %d settings with -o: use a file\n", FP_MAX_OVERRIDES);
                exit(1);
            }
            a->overrides[a->n_overrides++] = optarg;
            break;
        case 't': a->check = true; break;
        case 'f': break;
        case 'S': a->supervised = true; break;
        case 'P': a->passed = true; break;
        case 'V': puts("flashpached " PACKAGE_VERSION); exit(0);
        case 'h': usage(stdout); exit(0);
        default: usage(stderr); exit(1);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "flashpached: unexpected argument: %s\n", argv[optind]);
        exit(1);
    }
    a->file = absolute(a->file);
}
