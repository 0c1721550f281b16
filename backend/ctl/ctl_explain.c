/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl explain: the system calls of stock httpd for a request, and the cache entry
 * of each component.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl_json.h"
#include "ctl/ctl_out.h"
#include "ctl/ctl_report.h"
#include "ctl/ctl_stock.h"
#include "shared/client.h"
#include "wire/packet.h"

#define MAX_INDEXES   8
#define DEFAULT_INDEX "index.html"

static const char *const links_words[] = { "follow", "owner", "none" }; /* by enum ctl_links */

struct request {
    const struct ctl *ctl;
    struct fp_names names;
    struct ctl_stock stock;
    const char *indexes[MAX_INDEXES];
    unsigned n_indexes;
    char root[FP_MAX_PATH + 1]; /* "": not given */
    char path[FP_MAX_PATH + 2]; /* in normal form */
    bool slash;
    unsigned calls;
    struct ctl_json json; /* where the command's --json is on */
};

/* The entries of a path, before the lookup. */
struct knowledge {
    char text[FP_MAX_REPORT + 1];
    struct fp_report_known steps[FP_MAX_STEPS];
    unsigned n;
};

/* ---- entries ---- */

static enum ctl_exit read_knowledge(const struct request *r, struct knowledge *k)
{
    static uint8_t buf[FP_MAX_FRAME];
    const struct fp_control question = {
        .op = FP_CONTROL_EXPLAIN, .path = r->path, .path_len = strlen(r->path)
    };
    struct fp_reply reply;
    fp_status st = fp_client_control(r->ctl->client, &question, &reply, buf);
    char *next = k->text, *line;

    if (st != FP_OK)
        return ctl_no_daemon(r->ctl, st);
    memcpy(k->text, reply.text, reply.text_len);
    k->text[reply.text_len] = '\0';
    k->n = 0;
    while (k->n < FP_MAX_STEPS && (line = ctl_next_line(&next)) != NULL) {
        /* No length is one of another path. */
        if (fp_report_read(fp_known_form, line, &k->steps[k->n]) && k->steps[k->n].len <= strlen(r->path))
            k->n++;
    }
    return CTL_DONE;
}

static void print_known(const struct request *r, const struct knowledge *k)
{
    char left[32];

    puts("\nwhat flashpached knew of it:");
    for (unsigned i = 0; i < k->n; i++) {
        const struct fp_report_known *s = &k->steps[i];

        printf("  %s: %s", ctl_name(r->path, s->len), s->state);
        if (strcmp(s->state, "unknown") != 0)
            printf(", %s%s, %s, on %s", strcmp(s->watch, "ttl") == 0 ? "by " : "watched by ", s->watch,
                   s->reason, s->point);
        if (s->left_ms > 0)
            printf(", for %s more", ctl_time_text(s->left_ms * 1000, left, sizeof(left)));
        if (strcmp(s->lease, "lease") == 0)
            fputs(", may be leased", stdout);
        if (s->kept[0] != '-')
            printf(", kept %s", strcmp(s->kept, "open") == 0 ? "open" : "by its content");
        puts("");
    }
}

static void put_known(struct request *r, const struct knowledge *k)
{
    struct ctl_json *j = &r->json;

    ctl_json_begin(j, "components", '[');
    for (unsigned i = 0; i < k->n; i++) {
        const struct fp_report_known *s = &k->steps[i];

        ctl_json_begin(j, NULL, '{');
        ctl_json_path(j, "path", r->path, s->len);
        ctl_json_text(j, "state", s->state);
        ctl_json_text(j, "watch", s->watch);
        ctl_json_text(j, "reason", s->reason);
        ctl_json_text(j, "point", s->point);
        ctl_json_number(j, "left_ms", s->left_ms);
        ctl_json_bool(j, "leasable", strcmp(s->lease, "lease") == 0);
        ctl_json_bool(j, "open", strcmp(s->kept, "open") == 0);
        ctl_json_bool(j, "content", strcmp(s->kept, "content") == 0);
        ctl_json_end(j, '}');
    }
    ctl_json_end(j, ']');
}

/* ---- the calls ---- */

/* The context of on_call(). */
struct printer {
    struct request *request;
    const struct knowledge *knowledge;
    const struct fp_answer *answer;
};

/* True if the daemon answers a call from the cache: it has entries for all components down to the
 * one where every walk ends. */
static bool is_known(const struct printer *p, const struct ctl_call *c)
{
    const struct knowledge *k = p->knowledge;
    const size_t end = p->answer->steps[p->answer->n_steps - 1].end;

    for (unsigned i = 0; i < k->n && k->steps[i].len <= c->len && k->steps[i].len <= end; i++) {
        if (strcmp(k->steps[i].state, "known") != 0)
            return false;
        if (k->steps[i].len == c->len && c->name_len > 0 && c->outcome != FP_NOTDIR
            && k->steps[i].names[0] == '-')
            return false;
    }
    return true;
}

static const char *result_text(const struct ctl_call *c)
{
    return c->outcome == FP_OK ? "there" : fp_status_text(c->outcome);
}

static void put_call(struct ctl_json *j, const struct ctl_call *c, const char *path, bool known)
{
    ctl_json_begin(j, NULL, '{');
    ctl_json_text(j, "call", c->call);
    ctl_json_path(j, "path", path, strlen(path));
    ctl_json_text(j, "result", result_text(c));
    ctl_json_bool(j, "known", known);
    ctl_json_end(j, '}');
}

static void on_call(void *ctx, const struct ctl_call *c)
{
    const struct printer *p = ctx;
    struct request *r = p->request;
    const bool known = is_known(p, c);
    char path[2 * FP_MAX_PATH + 2];

    r->calls++;
    snprintf(path, sizeof(path), "%.*s%s%.*s", (int)(c->name_len > 0 && c->len == 1 ? 0 : c->len), r->path,
             c->name_len > 0 ? "/" : "", (int)c->name_len, c->name_len > 0 ? c->name : "");
    if (r->ctl->json)
        put_call(&r->json, c, path, known);
    else
        printf("  %-5s %s -> %s; %s\n", c->call, ctl_name(path, strlen(path)), result_text(c),
               known ? "known" : "a worker looks");
}

/* ---- why not ---- */

/* Reasons that lie in the path. */
static const char *bypass_text(const struct fp_answer *a)
{
    static char text[128];

    if (a->status == FP_REFUSED)
        return "bypass: the path, or where it leads, is outside roots of flashpached.conf, "
               "or a link or automount that the kernel treats by the whole path";
    if (a->status == FP_TOODEEP)
        snprintf(text, sizeof(text), "bypass: it has more than %d components", FP_MAX_STEPS);
    else
        snprintf(text, sizeof(text), "fallback: no answer: %s; httpd asks the file system itself",
                 fp_status_text(a->status));
    return text;
}

static const char *end_text(enum ctl_end end, const struct fp_answer *a)
{
    switch (end) {
    case CTL_END_FILE:
        return a->content    ? "served by mod_flashpache from its content in memory"
               : a->fd == -1 ? "403: it may not be read; core tries, and says so"
                             : "served by mod_flashpache from the open file";
    case CTL_END_INFO:
        return "a file with more behind its name: a handler that takes path-info, "
               "else 404";
    case CTL_END_DIRECTORY: return "a directory";
    case CTL_END_SPECIAL: return "403: neither a file nor a directory";
    case CTL_END_ABSENT: return "404";
    default: return "403";
    }
}

/* ---- one walk ---- */

/* Prints the calls of a walk with an answer; returns how it ends. */
static enum ctl_end explain_calls(struct request *r, const struct ctl_walk *walk, const struct knowledge *k)
{
    const struct fp_answer *a = walk->answer;
    struct printer p = { r, k, a };
    const enum ctl_end end = ctl_stock_walk(&r->stock, walk, on_call, &p);

    if (end == CTL_END_FILE)
        on_call(&p, &(struct ctl_call){ "open", walk->len, NULL, 0,
                                        a->content || a->fd != -1 ? FP_OK : FP_DENIED });
    return end;
}

/* Prints one walk as text; *end_r: how it ends.  CTL_FAILED: there is no answer. */
static enum ctl_exit print_walk(struct request *r, const struct ctl_walk *walk, const struct knowledge *k,
                                enum ctl_end *end_r)
{
    if (walk->answer->status != FP_OK) {
        puts(bypass_text(walk->answer));
        return CTL_FAILED;
    }
    *end_r = explain_calls(r, walk, k);
    if (!walk->sub || *end_r == CTL_END_FILE)
        printf("  = %s\n", end_text(*end_r, walk->answer));
    if (!walk->sub)
        print_known(r, k);
    return CTL_DONE;
}

/* As print_walk(), for JSON. */
static enum ctl_exit put_walk(struct request *r, const struct ctl_walk *walk, const struct knowledge *k,
                              enum ctl_end *end_r)
{
    const struct fp_answer *a = walk->answer;
    struct ctl_json *j = &r->json;

    ctl_json_begin(j, NULL, '{');
    ctl_json_path(j, "path", r->path, walk->len);
    ctl_json_bool(j, "index", walk->sub);
    ctl_json_begin(j, "calls", '[');
    if (a->status == FP_OK)
        *end_r = explain_calls(r, walk, k);
    ctl_json_end(j, ']');
    ctl_json_text(j, "result", a->status == FP_OK ? end_text(*end_r, a) : bypass_text(a));
    put_known(r, k);
    ctl_json_end(j, '}');
    return a->status == FP_OK ? CTL_DONE : CTL_FAILED;
}

static enum ctl_exit explain_one(struct request *r, bool sub, enum ctl_end *end_r)
{
    static struct knowledge k;
    static struct fp_answer a;
    const struct ctl_walk walk = { r->path, strlen(r->path), r->slash, sub, &a };
    enum ctl_exit rc = read_knowledge(r, &k);
    fp_status st;

    if (rc != CTL_DONE)
        return rc;
    st = fp_client_lookup(r->ctl->client, r->path, walk.len, &a, NULL);
    if (st != FP_OK)
        return ctl_no_daemon(r->ctl, st);
    rc = r->ctl->json ? put_walk(r, &walk, &k, end_r) : print_walk(r, &walk, &k, end_r);
    fp_close(&a.fd);
    return rc;
}

/* Explains the indexes one after the other, as mod_dir tries them. */
static enum ctl_exit explain_indexes(struct request *r)
{
    const size_t len = strlen(r->path);
    enum ctl_end end = CTL_END_ABSENT;
    enum ctl_exit rc = CTL_DONE;

    r->slash = false;
    for (unsigned i = 0; i < r->n_indexes && rc == CTL_DONE && end != CTL_END_FILE; i++) {
        const size_t size = sizeof(r->path) - len;

        if ((size_t)snprintf(r->path + len, size, "%s%s", len > 1 ? "/" : "", r->indexes[i]) >= size)
            break;
        if (!r->ctl->json)
            printf("\nDirectoryIndex %s:\n", ctl_name(r->indexes[i], strlen(r->indexes[i])));
        rc = explain_one(r, true, &end);
    }
    if (rc == CTL_DONE && end != CTL_END_FILE && !r->ctl->json)
        puts("\nno index: mod_autoindex reads the directory, or 403");
    return rc;
}

static void print_assumptions(const struct request *r)
{
    static const char *const links[] = { "FollowSymLinks", "SymLinksIfOwnerMatch",
                                         "neither FollowSymLinks nor SymLinksIfOwnerMatch" };

    printf("assumed: in %s and below %s, AllowOverride %s", ctl_name(r->stock.root, strlen(r->stock.root)),
           links[r->stock.links], r->stock.htaccess ? "All, AccessFileName" : "None");
    for (unsigned i = 0; r->stock.htaccess && i < r->names.n; i++)
        printf(" %s", ctl_name(r->names.list[i].name, r->names.list[i].len));
    puts("; above it FollowSymLinks and AllowOverride None; no Alias and no rewriting; GET");
}

static void put_assumptions(struct request *r)
{
    struct ctl_json *j = &r->json;

    ctl_json_begin(j, "assumed", '{');
    ctl_json_path(j, "root", r->stock.root, strlen(r->stock.root));
    ctl_json_text(j, "links", links_words[r->stock.links]);
    ctl_json_bool(j, "htaccess", r->stock.htaccess);
    ctl_json_begin(j, "access_files", '[');
    for (unsigned i = 0; r->stock.htaccess && i < r->names.n; i++)
        ctl_json_path(j, NULL, r->names.list[i].name, r->names.list[i].len);
    ctl_json_end(j, ']');
    ctl_json_end(j, '}');
}

static enum ctl_exit explain_walks(struct request *r)
{
    const bool slash = r->slash;
    enum ctl_end end;
    enum ctl_exit rc = explain_one(r, false, &end);

    return rc == CTL_DONE && end == CTL_END_DIRECTORY && slash ? explain_indexes(r) : rc;
}

static enum ctl_exit explain(struct request *r)
{
    enum ctl_exit rc;

    print_assumptions(r);
    printf("\nstock httpd asks for %s%s:\n", ctl_name(r->path, strlen(r->path)),
           r->slash && r->path[1] != '\0' ? "/" : "");
    rc = explain_walks(r);
    if (rc == CTL_DONE)
        printf("\n%u calls; those that are known, or leased, cost none with Flashpache\n", r->calls);
    return rc;
}

/* The document is put together in memory: a daemon that goes away in between leaves no half of it. */
static enum ctl_exit explain_as_json(struct request *r)
{
    struct ctl_json *j = &r->json;
    char *text = NULL;
    size_t size;
    enum ctl_exit rc;

    j->to = open_memstream(&text, &size);
    if (j->to == NULL) {
        ctl_complain("no memory for the report: %s", strerror(errno));
        return CTL_FAILED;
    }
    ctl_json_begin(j, NULL, '{');
    ctl_json_path(j, "path", r->path, strlen(r->path));
    put_assumptions(r);
    ctl_json_begin(j, "walks", '[');
    rc = explain_walks(r);
    ctl_json_end(j, ']');
    ctl_json_number(j, "calls", r->calls);
    ctl_json_finish(j, '}');
    if (fclose(j->to) == 0 && rc != CTL_NO_DAEMON)
        fputs(text, stdout);
    free(text);
    return rc;
}

/* ---- arguments ---- */

static bool take_links(struct request *r, const char *text)
{
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(text, links_words[i]) == 0) {
            r->stock.links = (enum ctl_links)i;
            return true;
        }
    }
    ctl_complain("--links %s: use follow, owner or none", text);
    return false;
}

static bool take_option(struct request *r, int c)
{
    switch (c) {
    case 'r': return ctl_absolute(optarg, r->root);
    case 'n': r->stock.htaccess = false; return true;
    case 'a': return ctl_add_name(&r->names, optarg);
    case 'l': return take_links(r, optarg);
    case 'i':
        if (r->n_indexes == MAX_INDEXES)
            return false;
        r->indexes[r->n_indexes++] = optarg;
        return true;
    default: return false;
    }
}

enum ctl_exit ctl_explain(const struct ctl *ctl, int argc, char **argv)
{
    static const struct option options[] = {
        { "root", required_argument, NULL, 'r' },        { "no-htaccess", no_argument, NULL, 'n' },
        { "access-file", required_argument, NULL, 'a' }, { "index", required_argument, NULL, 'i' },
        { "links", required_argument, NULL, 'l' },       { NULL, 0, NULL, 0 },
    };
    static struct request r;
    int c;

    r.ctl = ctl;
    r.stock.htaccess = true;
    while ((c = ctl_option(argc, argv, "", options)) != -1) {
        if (!take_option(&r, c))
            return ctl_misused(NULL);
    }
    if (optind + 1 != argc)
        return ctl_misused("explain takes one path or URL");
    ctl_use_names(ctl, &r.names);
    if (r.n_indexes == 0)
        r.indexes[r.n_indexes++] = DEFAULT_INDEX;
    if (!ctl_take_path(ctl, argv[optind], r.root, r.path, &r.slash))
        return CTL_FAILED;
    r.stock.names = &r.names;
    r.stock.root = r.root[0] != '\0' ? r.root : "/";
    return ctl->json ? explain_as_json(&r) : explain(&r);
}
