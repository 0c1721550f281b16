/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flashpachectl explain: the system calls of stock httpd for a request, and the cache entry
 * of each component.
 */
#include "config.h"
#include "ctl/ctl.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/client.h"
#include "common/packet.h"
#include "ctl/ctl_report.h"
#include "ctl/ctl_stock.h"

#define MAX_INDEXES   8
#define DEFAULT_INDEX "index.html"

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
};

/* The cache entry of one component. */
struct known {
    size_t len;
    char *state, *watch, *lease, *kept, *names, *point;
    uint64_t left_ms;
};

/* The entries of a path, before the lookup. */
struct knowledge {
    char text[FP_MAX_REPORT + 1];
    struct known steps[FP_MAX_STEPS];
    unsigned n;
};

/* ---- entries ---- */

static enum ctl_exit read_knowledge(const struct request *r, struct knowledge *k)
{
    static uint8_t buf[FP_MAX_FRAME];
    const struct fp_control question = {
        .op = FP_CONTROL_EXPLAIN, .path = r->path, .path_len = strlen(r->path), .names = r->names
    };
    struct fp_reply reply;
    fp_status st = fp_client_control(r->ctl->client, &question, &reply, buf);
    char *next = k->text, *line, *words[8];

    if (st != FP_OK)
        return ctl_no_daemon(r->ctl, st);
    memcpy(k->text, reply.text, reply.text_len);
    k->text[reply.text_len] = '\0';
    k->n = 0;
    while (k->n < FP_MAX_STEPS && (line = ctl_next_line(&next)) != NULL) {
        if (ctl_words(line, words, 8) == 8)
            k->steps[k->n++] = (struct known){
                strtoull(words[0], NULL, 10), words[1], words[2], words[4], words[5], words[6], words[7],
                strtoull(words[3], NULL, 10)
            };
    }
    return CTL_DONE;
}

static void print_known(const struct request *r, const struct knowledge *k)
{
    char left[32];

    puts("\nwhat flashpached knew of it:");
    for (unsigned i = 0; i < k->n; i++) {
        const struct known *s = &k->steps[i];

        printf("  %.*s: %s", (int)s->len, r->path, s->state);
        if (strcmp(s->state, "unknown") != 0)
            printf(", %s%s, on %s", strcmp(s->watch, "ttl") == 0 ? "by " : "watched by ", s->watch, s->point);
        if (s->left_ms > 0)
            printf(", for %s more", ctl_time_text(s->left_ms * 1000, left, sizeof(left)));
        if (strcmp(s->lease, "lease") == 0)
            fputs(", may be leased", stdout);
        if (s->kept[0] != '-')
            printf(", kept %s", strcmp(s->kept, "open") == 0 ? "open" : "by its content");
        puts("");
    }
}

/* ---- the calls ---- */

/* The context of on_call(). */
struct printer {
    struct request *request;
    const struct knowledge *knowledge;
    const struct fp_answer *answer;
};

/* How the daemon answers a call: from the cache if it has entries for all components down to the
 * one where every walk ends. */
static const char *answered(const struct printer *p, const struct ctl_call *c)
{
    const struct knowledge *k = p->knowledge;
    const size_t end = p->answer->steps[p->answer->n_steps - 1].end;

    for (unsigned i = 0; i < k->n && k->steps[i].len <= c->len && k->steps[i].len <= end; i++) {
        if (strcmp(k->steps[i].state, "known") != 0)
            return "a worker looks";
        if (k->steps[i].len == c->len && c->name_len > 0 && c->outcome != FP_NOTDIR
            && k->steps[i].names[0] == '-')
            return "a worker looks";
    }
    return "known";
}

static void on_call(void *ctx, const struct ctl_call *c)
{
    const struct printer *p = ctx;
    const struct request *r = p->request;
    const size_t len = c->name_len > 0 && c->len == 1 ? 0 : c->len;

    p->request->calls++;
    printf("  %-5s %.*s%s%.*s -> %s; %s\n", c->call, (int)len, r->path, c->name_len > 0 ? "/" : "",
           (int)c->name_len, c->name_len > 0 ? c->name : "",
           c->outcome == FP_OK ? "there" : fp_status_text(c->outcome), answered(p, c));
}

/* ---- why not ---- */

/* Reasons that lie in the path. */
static void print_bypass(const struct fp_answer *a)
{
    switch (a->status) {
    case FP_REFUSED: puts("bypass: the path, or where it leads, is outside roots of flashpached.conf"); break;
    case FP_TOODEEP: printf("bypass: it has more than %d components\n", FP_MAX_STEPS); break;
    default:
        printf("fallback: no answer: %s; httpd asks the file system itself\n", fp_status_text(a->status));
    }
}

static void print_end(enum ctl_end end, const struct fp_answer *a)
{
    switch (end) {
    case CTL_END_FILE:
        puts(a->content    ? "served by mod_flashpache from its content in memory"
             : a->fd == -1 ? "403: it may not be read; core tries, and says so"
                           : "served by mod_flashpache from the open file");
        break;
    case CTL_END_INFO:
        puts("a file with more behind its name: a handler that takes path-info, "
             "else 404");
        break;
    case CTL_END_DIRECTORY: puts("a directory"); break;
    case CTL_END_SPECIAL: puts("403: neither a file nor a directory"); break;
    case CTL_END_ABSENT: puts("404"); break;
    default: puts("403");
    }
}

/* ---- one walk ---- */

/* Prints the calls of one walk; *end_r: how it ends.  CTL_FAILED: there was no answer. */
static enum ctl_exit explain_one(struct request *r, bool sub, enum ctl_end *end_r)
{
    static struct knowledge k;
    static struct fp_answer a;
    struct printer p = { r, &k, &a };
    const struct ctl_walk walk = { r->path, strlen(r->path), r->slash, sub, &a };
    enum ctl_exit rc = read_knowledge(r, &k);
    fp_status st;

    if (rc != CTL_DONE)
        return rc;
    st = fp_client_lookup(r->ctl->client, r->path, walk.len, &r->names, &a, NULL);
    if (st != FP_OK)
        return ctl_no_daemon(r->ctl, st);
    if (a.status != FP_OK) {
        print_bypass(&a);
        return CTL_FAILED;
    }
    *end_r = ctl_stock_walk(&r->stock, &walk, on_call, &p);
    if (*end_r == CTL_END_FILE)
        on_call(&p,
                &(struct ctl_call){ "open", walk.len, NULL, 0, a.content || a.fd != -1 ? FP_OK : FP_DENIED });
    if (!sub || *end_r == CTL_END_FILE) {
        fputs("  = ", stdout);
        print_end(*end_r, &a);
    }
    if (!sub)
        print_known(r, &k);
    fp_close(&a.fd);
    return CTL_DONE;
}

/* mod_dir tries one after the other. */
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
        printf("\nDirectoryIndex %s:\n", r->indexes[i]);
        rc = explain_one(r, true, &end);
    }
    if (rc == CTL_DONE && end != CTL_END_FILE)
        puts("\nno index: mod_autoindex reads the directory, or 403");
    return rc;
}

static void print_assumptions(const struct request *r)
{
    static const char *const links[] = { "FollowSymLinks", "SymLinksIfOwnerMatch",
                                         "neither FollowSymLinks nor SymLinksIfOwnerMatch" };

    printf("assumed: in %s and below %s, AllowOverride %s", r->stock.root, links[r->stock.links],
           r->stock.htaccess ? "All, AccessFileName" : "None");
    for (unsigned i = 0; r->stock.htaccess && i < r->names.n; i++)
        printf(" %.*s", (int)r->names.list[i].len, r->names.list[i].name);
    puts("; above it FollowSymLinks and AllowOverride None; no Alias and no rewriting; GET");
}

static enum ctl_exit explain(struct request *r)
{
    enum ctl_end end;
    enum ctl_exit rc;

    r->stock.names = &r->names;
    r->stock.root = r->root[0] != '\0' ? r->root : "/";
    print_assumptions(r);
    printf("\nstock httpd asks for %s%s:\n", r->path, r->slash && r->path[1] != '\0' ? "/" : "");
    rc = explain_one(r, false, &end);
    if (rc == CTL_DONE && end == CTL_END_DIRECTORY && r->slash)
        rc = explain_indexes(r);
    if (rc == CTL_DONE)
        printf("\n%u calls; those that are known, or leased, cost none with Flashpache\n", r->calls);
    return rc;
}

/* ---- arguments ---- */

static bool take_links(struct request *r, const char *text)
{
    static const char *const names[] = { "follow", "owner", "none" };

    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(text, names[i]) == 0) {
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
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (!take_option(&r, c))
            return ctl_misused(NULL);
    }
    if (optind + 1 != argc)
        return ctl_misused("explain takes one path or URL");
    if (r.names.n == 0)
        ctl_add_name(&r.names, CTL_ACCESS_FILE);
    if (r.n_indexes == 0)
        r.indexes[r.n_indexes++] = DEFAULT_INDEX;
    return ctl_take_path(argv[optind], r.root, r.path, &r.slash) ? explain(&r) : CTL_FAILED;
}
