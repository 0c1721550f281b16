/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/local_types.h"
#include "changes/mount_list.h"
#include "wire/packet.h"
#include "wire/sight.h"

#define MOUNTINFO "/proc/self/mountinfo"

struct fp_mounts {
    /* Opened twice: the kernel notifies each open file of a change once, and the loop's
     * waiting for the second takes that notice away. */
    int info, hint_info;
    int hint;                            /* epoll, of hint_info */
    bool failed;                         /* the table is empty because reading failed */
    uint64_t read_ms;                    /* when the last reading was; 0: only the first one */
    struct fp_mount_table table, before; /* the last reading, and the one before */
    struct fp_mounts_settings settings;  /* rules in one piece of memory, ours */
    struct fp_mount unknown; /* stands for any mount that is not in the table */
    struct fp_mount_list *list;
    uint64_t *number; /* tells these mounts from any others; NULL: nobody wants it */
};

/*
 * ---- policy ----
 *
 * Some types do not report all changes (local_types.h), only those that this machine makes through the mount.
 * On network file systems and FUSE changes are made elsewhere too, and on overlay in the layers below it.
 */

/* File systems that change without a report: those of the kernel itself, and 9p, whose client by default has an inode
 * for each opening of a file, so that no watch is at the one that changes.  An autofs is only a directory which is
 * about to be mounted on, and mounts are noticed. */
static const char *const silent_types[] = {
    "9p",         "autofs",     "binder",    "binfmt_misc", "bpf",      "cgroup",    "cgroup2",
    "configfs",   "cpuset",     "debugfs",   "devpts",      "efivarfs", "functionfs", "fusectl",
    "hugetlbfs",  "mqueue",     "nfsd",      "proc",        "pstore",   "resctrl",   "rpc_pipefs",
    "securityfs", "selinuxfs",  "smackfs",   "sysfs",       "tracefs",
};

static bool is_silent(const char *type)
{
    for (size_t i = 0; i < sizeof(silent_types) / sizeof(silent_types[0]); i++) {
        if (strcmp(silent_types[i], type) == 0)
            return true;
    }
    return false;
}

/* wanted: the operator's word on this mount, perhaps that others make no changes there. */
static enum fp_verdict judge(const char *type, bool local, int wanted, int general)
{
    if (wanted == FP_BY_AUTO && is_silent(type))
        return strcmp(type, "autofs") == 0 ? FP_TTL_UNWATCHED : FP_EACH_REQUEST;
    if (wanted == FP_BY_TTL || (wanted == FP_BY_AUTO && general == FP_BY_TTL))
        return FP_TTL_UNWATCHED;
    return local || wanted == FP_BY_INOTIFY ? FP_REPORTED : FP_REPORTED_OTHERS;
}

static const struct fp_mount_rule *find_rule(const struct fp_mounts_settings *s, const char *point)
{
    static const struct fp_mount_rule none = { "", FP_BY_AUTO, -1, -1, -1 };

    for (size_t i = 0; i < s->n_rules; i++) {
        if (strcmp(s->rules[i].point, point) == 0)
            return &s->rules[i];
    }
    return &none;
}

/* Limits ms: more than 2^32 ms is as good as forever. */
static uint32_t choose_ms(long ms, uint32_t general)
{
    if (ms < 0)
        return general;
    return (unsigned long)ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

/* To be called after any change of the table or the settings. */
static void apply(struct fp_mounts *m)
{
    const struct fp_mounts_settings *s = &m->settings;

    for (size_t i = 0; i < m->table.n; i++) {
        struct fp_mount_row *row = &m->table.by_id[i];
        const struct fp_mount_rule *rule = find_rule(s, row->mount.point);

        row->mount.traits.local = fp_type_reports_all(row->mount.type);
        row->mount.traits.remote = fp_type_is_remote(row->mount.type);
        row->mount.traits.by_directory = strncmp(row->mount.type, "nfs", 3) == 0;
        row->mount.traits.verdict = judge(row->mount.type, row->mount.traits.local, rule->by, s->by);
        row->mount.ttl_ms = choose_ms(rule->ttl_ms, s->ttl_ms);
        row->mount.negative_ttl_ms = choose_ms(rule->negative_ttl_ms, s->negative_ttl_ms);
        row->mount.stale_if_error_ms = choose_ms(rule->stale_if_error_ms, s->stale_if_error_ms);
    }
    m->unknown = (struct fp_mount){ .traits = { .verdict = FP_TTL_UNWATCHED, .remote = true },
                                    .ttl_ms = s->ttl_ms,
                                    .negative_ttl_ms = s->negative_ttl_ms,
                                    .stale_if_error_ms = s->stale_if_error_ms };
    if (m->list != NULL)
        fp_mount_list_publish(m->list, &m->table);
}

/* Copies the rules and their mount points into one piece of memory; NULL with errno. */
static struct fp_mount_rule *copy_rules(const struct fp_mount_rule *rules, size_t n)
{
    size_t size = n * sizeof(*rules) + 1;
    struct fp_mount_rule *copy;
    char *text;

    for (size_t i = 0; i < n; i++)
        size += strlen(rules[i].point) + 1;
    copy = malloc(size);
    if (copy == NULL)
        return NULL;
    text = (char *)(copy + n);
    for (size_t i = 0; i < n; i++) {
        copy[i] = rules[i];
        copy[i].point = text;
        text = stpcpy(text, rules[i].point) + 1;
    }
    return copy;
}

static void free_rules(struct fp_mounts_settings *s)
{
    free((void *)(uintptr_t)s->rules);
}

static int take_settings(struct fp_mounts *m, const struct fp_mounts_settings *s)
{
    const struct fp_mount_rule *rules = copy_rules(s->rules, s->n_rules);

    if (rules == NULL)
        return -1;
    free_rules(&m->settings);
    m->settings = *s;
    m->settings.rules = rules;
    return 0;
}

int fp_mounts_set(struct fp_mounts *m, const struct fp_mounts_settings *s)
{
    if (take_settings(m, s) == -1)
        return -1;
    apply(m);
    return 0;
}

/* ---- life, and changes ---- */

static bool open_files(struct fp_mounts *m, const char *mountinfo)
{
    struct epoll_event ev = { .events = EPOLLPRI };

    m->info = open(mountinfo, O_RDONLY | O_CLOEXEC);
    m->hint_info = open(mountinfo, O_RDONLY | O_CLOEXEC);
    if (m->info == -1 || m->hint_info == -1)
        return false;
    m->hint = epoll_create1(EPOLL_CLOEXEC);
    /* A file of no kernel's making, which never changes, cannot be waited for. */
    return m->hint != -1 && (epoll_ctl(m->hint, EPOLL_CTL_ADD, m->hint_info, &ev) == 0 || errno == EPERM);
}

struct fp_mounts *fp_mounts_create(const char *mountinfo, const struct fp_mounts_settings *s,
                                   struct fp_mount_list *list)
{
    struct fp_mounts *m = calloc(1, sizeof(*m));

    if (m == NULL)
        return NULL;
    m->info = m->hint_info = m->hint = -1;
    m->list = list;
    if (!open_files(m, mountinfo != NULL ? mountinfo : MOUNTINFO) || take_settings(m, s) == -1
        || fp_mount_table_read(&m->table, m->info) == -1) {
        fp_mounts_destroy(&m); /* keeps errno */
        return NULL;
    }
    apply(m);
    return m;
}

void fp_mounts_follow(struct fp_mounts *m, uint64_t *number)
{
    m->number = number;
    *number = fp_sight_mounts(&m->table);
}

void fp_mounts_destroy(struct fp_mounts **m)
{
    if (*m == NULL)
        return;
    fp_close(&(*m)->hint);
    fp_close(&(*m)->hint_info);
    fp_close(&(*m)->info);
    fp_mount_table_free(&(*m)->table);
    fp_mount_table_free(&(*m)->before);
    free_rules(&(*m)->settings);
    free(*m);
    *m = NULL;
}

int fp_mounts_fd(const struct fp_mounts *m)
{
    return m->hint;
}

/* The kernel notifies each open file once.  An error of poll() counts as a change: none
 * may be missed. */
static bool was_notified(struct fp_mounts *m)
{
    struct pollfd p = { .fd = m->info, .events = POLLPRI };
    struct epoll_event ignored;

    /* The hint first: poll() notices a later change. */
    epoll_wait(m->hint, &ignored, 1, 0);
    return poll(&p, 1, 0) != 0;
}

/* An id and a device that have not changed may belong to another file system by now. */
static void carry(struct fp_mount_table *t, const struct fp_mount_table *before, uint64_t now_ms)
{
    for (size_t i = 0; i < t->n; i++) {
        struct fp_mount_row *now = &t->by_id[i];
        const struct fp_mount_row *row = fp_mount_table_find(before, now->mount.id);

        now->came_ms = row != NULL && fp_mount_row_is_same(row, now) ? row->came_ms : now_ms;
    }
}

static bool reread(struct fp_mounts *m)
{
    struct fp_mount_table now = { 0 };

    m->failed = fp_mount_table_read(&now, m->info) == -1;
    m->read_ms = fp_now_ms();
    carry(&now, &m->table, m->read_ms);
    fp_mount_table_free(&m->before);
    m->before = m->table;
    m->table = now;
    apply(m);
    if (m->number != NULL)
        *m->number = fp_sight_mounts(&m->table);
    return !m->failed;
}

bool fp_mounts_changed(struct fp_mounts *m)
{
    const bool notified = was_notified(m);

    if (!notified && !m->failed)
        return false;
    return reread(m) || notified;
}

size_t fp_mounts_changes(const struct fp_mounts *m, void (*each)(void *ctx, const struct fp_mount *mount),
                         void *ctx)
{
    if (m->failed || m->before.n == 0)
        return SIZE_MAX;
    return fp_mount_table_missing(&m->table, &m->before, each, ctx)
           + fp_mount_table_missing(&m->before, &m->table, each, ctx);
}

/* ---- asking ---- */

const struct fp_mount *fp_mounts_find(const struct fp_mounts *m, uint32_t id)
{
    const struct fp_mount_row *row = fp_mount_table_find(&m->table, id);

    return row != NULL ? &row->mount : NULL;
}

const struct fp_mount *fp_mounts_known(const struct fp_mounts *m, uint32_t id)
{
    const struct fp_mount *known = fp_mounts_find(m, id);

    return known != NULL ? known : &m->unknown;
}

const struct fp_mount *fp_mounts_of_path(const struct fp_mounts *m, const char *path, size_t len)
{
    const struct fp_mount_row *row = fp_mount_table_of_path(&m->table, path, len);

    return row != NULL ? &row->mount : NULL;
}

uint64_t fp_mounts_came_ms(const struct fp_mounts *m, uint32_t id)
{
    const struct fp_mount_row *row = fp_mount_table_find(&m->table, id);

    return row != NULL ? row->came_ms : m->read_ms;
}

size_t fp_mounts_count(const struct fp_mounts *m)
{
    return m->table.n;
}

const struct fp_mount *fp_mounts_at(const struct fp_mounts *m, size_t i)
{
    return &m->table.by_id[i].mount;
}
