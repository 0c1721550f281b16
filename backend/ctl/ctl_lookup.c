/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl lookup: the daemon's answer to a question, step by step.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/answer.h"
#include "common/client.h"
#include "common/packet.h"

static void print_meta(const struct fp_meta *m)
{
    const char *kind = S_ISDIR(m->mode)   ? "directory"
                       : S_ISREG(m->mode) ? "file"
                       : S_ISLNK(m->mode) ? "link"
                                          : "special";

    printf("%s %04o %" PRIu32 ":%" PRIu32, kind, m->mode & 07777, m->uid, m->gid);
    if (S_ISREG(m->mode))
        printf(" %" PRIu64 " bytes", m->size);
}

static void print_access(const struct fp_step *s, const struct fp_names *names, unsigned n)
{
    for (unsigned i = 0; i < n && fp_step_is_dir(s); i++) {
        const struct fp_access *x = &s->access[i];

        printf("; %.*s: ", (int)names->list[i].len, names->list[i].name);
        if (x->status == FP_OK)
            printf("%" PRIu64 " bytes", x->size);
        else
            fputs(fp_status_text(x->status), stdout);
    }
}

static void print_step(const char *path, const struct fp_step *s, const struct fp_names *names,
                       unsigned n_names)
{
    printf("  %.*s: ", (int)s->end, path);
    if (s->status != FP_OK) {
        puts(fp_status_text(s->status));
        return;
    }
    print_meta(&s->self);
    if (S_ISLNK(s->self.mode)) {
        fputs(" to ", stdout);
        if (s->target_status == FP_OK)
            print_meta(&s->target);
        else
            fputs(fp_status_text(s->target_status), stdout);
    }
    print_access(s, names, n_names);
    puts(s->slot != 0 ? "; leased" : "");
}

static const char *source_text(enum fp_source source)
{
    switch (source) {
    case FP_SOURCE_CACHE: return "known to the daemon";
    case FP_SOURCE_STALE: return "stale: the file system does not answer, so it was before";
    default: return "a worker had to look";
    }
}

static const char *file_text(const struct fp_answer *a)
{
    if (a->content)
        return "its content is in memory for all";
    if (a->fd == -1)
        return "no file comes with it";
    return a->local ? "the open file comes with it"
                    : "the open file, of another machine, "
                      "comes with it";
}

static void print_answer(const char *path, const struct fp_answer *a, const struct fp_names *names)
{
    if (a->status != FP_OK) {
        printf("%s: no answer: %s\n", path, fp_status_text(a->status));
        return;
    }
    printf("%s: %s; %s; %s\n", path, source_text(a->source), file_text(a),
           a->leasable ? "it may be leased" : "it may not be leased");
    for (unsigned i = 0; i < a->n_steps; i++)
        print_step(path, &a->steps[i], names, a->n_names);
}

enum ctl_exit ctl_lookup(const struct ctl *ctl, int argc, char **argv)
{
    static struct fp_answer a;
    struct fp_names names;
    char path[FP_MAX_PATH + 1];
    fp_status st;

    if (!ctl_take_names(argc, argv, "lookup takes one path", &names))
        return CTL_USAGE;
    if (!ctl_absolute(argv[optind], path))
        return CTL_FAILED;
    st = fp_client_lookup(ctl->client, path, strlen(path), &names, &a, NULL);
    if (st != FP_OK)
        return ctl_no_daemon(ctl, st);
    print_answer(path, &a, &names);
    fp_close(&a.fd);
    return a.status == FP_OK ? CTL_DONE : CTL_FAILED;
}
