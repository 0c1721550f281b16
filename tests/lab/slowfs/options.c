/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    OPT_LOOKUP = 256,
    OPT_GETATTR,
    OPT_OPEN,
    OPT_ALL,
    OPT_ATTR,
    OPT_ENTRY,
    OPT_ABSENT,
    OPT_STATS,
    OPT_CONTROL,
    OPT_FLUSH,
    OPT_LAG,
};

static const struct option long_options[] = {
    { "lookup-us", required_argument, NULL, OPT_LOOKUP },
    { "getattr-us", required_argument, NULL, OPT_GETATTR },
    { "open-us", required_argument, NULL, OPT_OPEN },
    { "delay-us", required_argument, NULL, OPT_ALL },
    { "attr-timeout", required_argument, NULL, OPT_ATTR },
    { "entry-timeout", required_argument, NULL, OPT_ENTRY },
    { "absent-timeout", required_argument, NULL, OPT_ABSENT },
    { "stats", required_argument, NULL, OPT_STATS },
    { "control", required_argument, NULL, OPT_CONTROL },
    { "keep-cache", no_argument, NULL, 'k' },
    { "flush", no_argument, NULL, OPT_FLUSH },
    { "clock-lag", required_argument, NULL, OPT_LAG },
    { "foreground", no_argument, NULL, 'f' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 },
};

static void usage(FILE *out)
{
    (void)fputs("Usage: slowfs [options] SOURCE MOUNTPOINT\n"
                "\n"
                "Shows the directory SOURCE at MOUNTPOINT, with delays as of a network file system.\n"
                "\n"
                "  --lookup-us N       delay each lookup by N microseconds (default 0)\n"
                "  --getattr-us N      the same for each getattr (stat, fstat)\n"
                "  --open-us N         the same for each open\n"
                "  --delay-us N        all three\n"
                "  --attr-timeout S    seconds the kernel may keep attributes (default 0: asks each time)\n"
                "  --entry-timeout S   seconds the kernel may keep names (default 0)\n"
                "  --absent-timeout S  seconds the kernel may keep that a name is absent (default 0)\n"
                "  --keep-cache        let file data stay in the page cache from one open to the next\n"
                "  --stats FILE        on SIGUSR1 append a line of counters to FILE\n"
                "  --control FILE      read at the start, if there, and again on SIGHUP; words in it:\n"
                "                      lookup-us=N getattr-us=N open-us=N delay-us=N\n"
                "                      normal hang hang-flush error=EIO\n"
                "                      (hang: lookup, getattr and open wait until that changes or the\n"
                "                      caller is killed; reads of open files go on; hang-flush:\n"
                "                      only closes of files wait, with --flush)\n"
                "  --flush             be asked at each close of a file\n"
                "  --clock-lag S       show times in whole seconds of a clock that is S seconds behind\n"
                "  -f, --foreground    stay in the foreground\n"
                "  -h, --help          this text\n"
                "\n"
                "SIGTERM and SIGINT unmount. Needs root: every user may enter the mount, under the\n"
                "permissions that the files of SOURCE have.\n",
                out);
}

static int complain(const char *what, const char *object, const char *why)
{
    (void)fprintf(stderr, "slowfs: %s %s: %s\n", what, object, why);
    return 1;
}

static int parse_seconds(const char *name, const char *text, double *seconds_r)
{
    char *end;
    double value;

    errno = 0;
    value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !isfinite(value) || value < 0 || value > 1e6)
        return complain(name, text, "must be a number of seconds from 0 to 1000000");
    *seconds_r = value;
    return -1;
}

static int parse_delay(int opt, const char *name, const char *text, struct slowfs_behaviour *b)
{
    uint64_t us;

    if (slowfs_parse_us(text, &us) != 0)
        return complain(name, text, "must be a whole number of microseconds from 0 to 3600000000");
    if (opt == OPT_LOOKUP || opt == OPT_ALL)
        b->delay_us[SLOWFS_LOOKUP] = us;
    if (opt == OPT_GETATTR || opt == OPT_ALL)
        b->delay_us[SLOWFS_GETATTR] = us;
    if (opt == OPT_OPEN || opt == OPT_ALL)
        b->delay_us[SLOWFS_OPEN] = us;
    return -1;
}

/* A path that stays right after the change to / when slowfs goes to the background. */
static int absolute_file(const char *path, char **path_r)
{
    char cwd[PATH_MAX];
    size_t size;

    if (path[0] == '/') {
        cwd[0] = '\0';
    } else if (getcwd(cwd, sizeof(cwd)) == NULL) {
        return complain("cannot find the working directory for", path, strerror(errno));
    }
    size = strlen(cwd) + strlen(path) + 2;
    free(*path_r);
    *path_r = malloc(size);
    if (*path_r == NULL)
        return complain("cannot keep", path, "out of memory");
    (void)snprintf(*path_r, size, "%s%s%s", cwd, cwd[0] != '\0' ? "/" : "", path);
    return -1;
}

static int parse_option(int opt, const char *name, struct slowfs_options *o)
{
    switch (opt) {
    case OPT_LOOKUP:
    case OPT_GETATTR:
    case OPT_OPEN:
    case OPT_ALL: return parse_delay(opt, name, optarg, &o->behaviour);
    case OPT_ATTR: return parse_seconds(name, optarg, &o->attr_timeout);
    case OPT_ENTRY: return parse_seconds(name, optarg, &o->entry_timeout);
    case OPT_ABSENT: return parse_seconds(name, optarg, &o->absent_timeout);
    case OPT_STATS: return absolute_file(optarg, &o->stats);
    case OPT_CONTROL: return absolute_file(optarg, &o->control);
    case 'k': o->keep_cache = true; return -1;
    case OPT_FLUSH: o->flush = true; return -1;
    case OPT_LAG: o->whole_seconds = true; return parse_seconds(name, optarg, &o->clock_lag);
    case 'f': o->foreground = true; return -1;
    case 'h': usage(stdout); return 0;
    default: (void)fputs("slowfs: see slowfs --help\n", stderr); return 1;
    }
}

static int directory(const char *what, const char *path, char **path_r)
{
    struct stat st;

    *path_r = realpath(path, NULL);
    if (*path_r == NULL) {
        if (errno == ENOTCONN)
            return complain(what, path, "is left over from a file system that died; run umount -l on it");
        if (errno == ENOENT)
            return complain(what, path, "does not exist; make the directory first");
        return complain(what, path, strerror(errno));
    }
    if (stat(*path_r, &st) != 0)
        return complain(what, path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return complain(what, path, "is not a directory");
    return -1;
}

static int check_directories(int argc, char **argv, struct slowfs_options *o)
{
    int status;

    if (argc - optind != 2) {
        (void)fputs("slowfs: needs SOURCE and MOUNTPOINT; see slowfs --help\n", stderr);
        return 1;
    }
    status = directory("source", argv[optind], &o->source);
    if (status < 0)
        status = directory("mount point", argv[optind + 1], &o->mountpoint);
    return status;
}

static int check_environment(void)
{
    if (geteuid() != 0)
        return complain("cannot mount", "for all users", "slowfs must be run by root");
    if (access("/dev/fuse", R_OK | W_OK) != 0)
        return complain("cannot use", "/dev/fuse",
                        errno == ENOENT ? "not there; load it with \"modprobe fuse\", or give the "
                                          "container --device /dev/fuse --cap-add SYS_ADMIN"
                                        : strerror(errno));
    return -1;
}

int slowfs_options_parse(int argc, char **argv, struct slowfs_options *options_r)
{
    int status = -1;
    int opt;
    int index = 0;

    *options_r = (struct slowfs_options){ 0 };
    while (status < 0 && (opt = getopt_long(argc, argv, "fh", long_options, &index)) != -1)
        status = parse_option(opt, long_options[index].name, options_r);
    if (status < 0)
        status = check_environment();
    if (status < 0)
        status = check_directories(argc, argv, options_r);
    return status;
}

void slowfs_options_free(struct slowfs_options *options)
{
    free(options->source);
    free(options->mountpoint);
    free(options->stats);
    free(options->control);
    *options = (struct slowfs_options){ 0 };
}
