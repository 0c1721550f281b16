/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl explain: the daemon's answer to a question, step by step, and the entries from which it came.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "ctl/ctl_json.h"
#include "ctl/ctl_json_report.h"
#include "ctl/ctl_report.h"
#include "shared/client.h"
#include "wire/answer.h"
#include "wire/packet.h"

/* ---- entries ---- */

/* Reads the entries of a path, before the lookup, as lines. */
static enum ctl_exit read_known(const struct ctl *ctl, const char *path, char text[FP_MAX_REPORT + 1])
{
    static uint8_t buf[FP_MAX_FRAME];
    const struct fp_control question = { .op = FP_CONTROL_EXPLAIN, .path = path, .path_len = strlen(path) };
    struct fp_reply reply;
    fp_status st = fp_client_control(ctl->client, &question, &reply, buf);

    if (st != FP_OK)
        return ctl_no_daemon(ctl, st);
    memcpy(text, reply.text, reply.text_len);
    text[reply.text_len] = '\0';
    return CTL_DONE;
}

static void print_known(const char *path, char *known)
{
    struct fp_report_known s;
    char left[32], *line;

    puts("what flashpached knew of it before:");
    while ((line = ctl_next_line(&known)) != NULL) {
        /* No length is one of another path. */
        if (!fp_report_read(fp_known_form, line, &s) || s.len > strlen(path))
            continue;
        printf("  %s: %s", ctl_name(path, s.len), s.state);
        if (strcmp(s.state, "unknown") != 0)
            printf(", %s%s, %s, on %s", strcmp(s.watch, "ttl") == 0 ? "by " : "watched by ", s.watch, s.reason,
                   s.point);
        if (s.left_ms > 0)
            printf(", for %s more", ctl_time_text(s.left_ms * 1000, left, sizeof(left)));
        if (strcmp(s.lease, "lease") == 0)
            fputs(", may be leased", stdout);
        if (s.kept[0] != '-')
            printf(", kept %s", strcmp(s.kept, "open") == 0 ? "open" : "by its content");
        puts("");
    }
}

/* ---- the answer ---- */

static const char *kind_text(const struct fp_meta *m)
{
    return S_ISDIR(m->mode) ? "directory" : S_ISREG(m->mode) ? "file" : S_ISLNK(m->mode) ? "link" : "special";
}

static void print_meta(const struct fp_meta *m)
{
    printf("%s %04o %" PRIu32 ":%" PRIu32, kind_text(m), m->mode & 07777, m->uid, m->gid);
    if (S_ISREG(m->mode))
        printf(" %" PRIu64 " bytes", m->size);
}

static void print_access(const struct fp_step *s, const struct fp_names *names, unsigned n)
{
    for (unsigned i = 0; i < n && fp_step_is_dir(s); i++) {
        const struct fp_access *x = &s->access[i];

        printf("; %s: ", ctl_name(names->list[i].name, names->list[i].len));
        if (x->status == FP_OK)
            printf("%" PRIu64 " bytes", x->size);
        else
            fputs(fp_status_text(x->status), stdout);
    }
}

static void print_step(const char *path, const struct fp_step *s, const struct fp_names *names,
                       unsigned n_names)
{
    printf("  %s: ", ctl_name(path, s->end));
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
    case FP_SOURCE_STALE: return "stale: the file system does not answer; this is what it said before";
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

/* Why there is no answer, as the notes for the log have it. */
static const char *trouble_text(const struct fp_answer *a)
{
    static char text[128];

    if (a->status == FP_REFUSED)
        return "no answer (bypass): the path, or where it leads, is outside roots of flashpached.conf, "
               "or a link or automount that the kernel treats by the whole path";
    if (a->status == FP_TOODEEP)
        snprintf(text, sizeof(text), "no answer (bypass): it has more than %d components", FP_MAX_STEPS);
    else
        snprintf(text, sizeof(text), "no answer (fallback): %s; httpd asks the file system itself",
                 fp_status_text(a->status));
    return text;
}

static void print_answer(const char *path, const struct fp_answer *a, const struct fp_names *names)
{
    if (a->status != FP_OK) {
        printf("%s: %s\n", ctl_name(path, strlen(path)), trouble_text(a));
        return;
    }
    printf("%s: %s; %s; %s\n", ctl_name(path, strlen(path)), source_text(a->source), file_text(a),
           a->leasable ? "it may be leased" : "it may not be leased");
    for (unsigned i = 0; i < a->n_steps; i++)
        print_step(path, &a->steps[i], names, a->n_names);
}

/* ---- JSON ---- */

static void put_meta(struct ctl_json *j, const struct fp_meta *m)
{
    char mode[16];

    snprintf(mode, sizeof(mode), "%04o", m->mode & 07777);
    ctl_json_text(j, "type", kind_text(m));
    ctl_json_text(j, "mode", mode);
    ctl_json_number(j, "uid", m->uid);
    ctl_json_number(j, "gid", m->gid);
    if (S_ISREG(m->mode))
        ctl_json_number(j, "size", m->size);
}

static void put_target(struct ctl_json *j, const struct fp_step *s)
{
    ctl_json_begin(j, "target", '{');
    ctl_json_text(j, "status", fp_status_text(s->target_status));
    if (s->target_status == FP_OK)
        put_meta(j, &s->target);
    ctl_json_end(j, '}');
}

static void put_access(struct ctl_json *j, const struct fp_step *s, const struct fp_names *names, unsigned n)
{
    ctl_json_begin(j, "access_files", '[');
    for (unsigned i = 0; i < n; i++) {
        const struct fp_access *x = &s->access[i];

        ctl_json_begin(j, NULL, '{');
        ctl_json_path(j, "name", names->list[i].name, names->list[i].len);
        ctl_json_text(j, "status", fp_status_text(x->status));
        if (x->status == FP_OK)
            ctl_json_number(j, "size", x->size);
        ctl_json_end(j, '}');
    }
    ctl_json_end(j, ']');
}

static void put_step(struct ctl_json *j, const char *path, const struct fp_step *s,
                     const struct fp_names *names, unsigned n_names)
{
    ctl_json_begin(j, NULL, '{');
    ctl_json_path(j, "path", path, s->end);
    ctl_json_text(j, "status", fp_status_text(s->status));
    if (s->status == FP_OK) {
        put_meta(j, &s->self);
        if (S_ISLNK(s->self.mode))
            put_target(j, s);
        if (fp_step_is_dir(s))
            put_access(j, s, names, n_names);
        ctl_json_bool(j, "leased", s->slot != 0);
    }
    ctl_json_end(j, '}');
}

static void put_answer(const char *path, const struct fp_answer *a, const struct fp_names *names,
                       char *known)
{
    struct ctl_json j = { .to = stdout };

    ctl_json_begin(&j, NULL, '{');
    ctl_json_path(&j, "path", path, strlen(path));
    ctl_json_text(&j, "status", fp_status_text(a->status));
    if (a->status == FP_OK) {
        ctl_json_text(&j, "source", source_text(a->source));
        ctl_json_bool(&j, "content", a->content);
        ctl_json_bool(&j, "descriptor", a->fd != -1);
        ctl_json_bool(&j, "leasable", a->leasable);
        ctl_json_begin(&j, "steps", '[');
        for (unsigned i = 0; i < a->n_steps; i++)
            put_step(&j, path, &a->steps[i], names, a->n_names);
        ctl_json_end(&j, ']');
    }
    ctl_json_rows(&j, "components", fp_known_form, known);
    ctl_json_finish(&j, '}');
}

enum ctl_exit ctl_explain(const struct ctl *ctl, char **args)
{
    static char known[FP_MAX_REPORT + 1];
    static struct fp_answer a;
    char path[FP_MAX_PATH + 1];
    enum ctl_exit rc;
    fp_status st;

    if (!ctl_absolute(args[0], path))
        return CTL_FAILED;
    rc = read_known(ctl, path, known);
    if (rc != CTL_DONE)
        return rc;
    st = fp_client_lookup(ctl->client, path, strlen(path), &a, NULL);
    if (st != FP_OK)
        return ctl_no_daemon(ctl, st);
    if (ctl->json) {
        put_answer(path, &a, &ctl->names, known);
    } else {
        print_answer(path, &a, &ctl->names);
        putchar('\n');
        print_known(path, known);
    }
    fp_close(&a.fd);
    return a.status == FP_OK ? CTL_DONE : CTL_FAILED;
}
