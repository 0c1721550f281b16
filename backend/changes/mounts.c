/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "changes/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/packet.h"
#include "common/wire.h"

#define MOUNTINFO "/proc/self/mountinfo"
#define READ_AT_FIRST 65536     /* bytes; doubled as needed */
#define VIEW_MOUNTS 4096
#define OUTSIDE UINT64_MAX      /* no mount of this table; ids have 32 bits */

/* Has fanotify a mark on the file system?  LOST: it had, under this id. */
enum mark { MARK_NEVER, MARK_SET, MARK_LOST };

struct one {
    struct fp_mount mount;      /* first, so that one pointer serves for both */
    uint64_t parent;            /* id of the mount that it is mounted on, or OUTSIDE */
    size_t line;                /* in the file: later ones were mounted later */
    enum mark mark;
};

struct table {
    char *text;                 /* the file's; owns the strings */
    struct one *by_id;          /* ascending, each id once */
    size_t n;
    const struct one **visible; /* by mount point, each once */
    size_t n_visible;
};

struct fp_mounts {
    /* Opened twice: each open file is told of a change once, and the loop's
     * waiting for the second takes that notice away. */
    int info, hint_info;
    int hint;                   /* epoll, of hint_info */
    bool failed;                /* the table is empty because reading failed */
    struct table table, before; /* as read last, and the time before */
    struct fp_mounts_settings settings;   /* rules in one piece of memory, ours */
    struct fp_mounts_view *view;
};

/* A slot has it all in one word, so that no half of one can be seen. */
struct fp_mounts_view {
    _Atomic uint32_t n;
    _Atomic uint64_t slots[VIEW_MOUNTS];   /* ascending: id << 32 | by << 1 | local */
};
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
               "a lock would not work between processes");

/* ---- types ---- */

/*
 * File systems on this machine that tell inotify of every change.  All others,
 * unknown ones too, are not: on network file systems and FUSE changes are made
 * elsewhere, overlay does not tell of those below it, and those of the kernel
 * itself (proc, sysfs, cgroup) change without telling.
 */
static const char *const local_names[] = {
    "bcachefs", "btrfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "iso9660", "jfs",
    "ntfs3", "ramfs", "reiserfs", "squashfs", "tmpfs", "udf", "vfat", "xfs", "zfs",
};

static bool is_local_name(const char *type)
{
    for (size_t i = 0; i < sizeof(local_names) / sizeof(local_names[0]); i++) {
        if (strcmp(local_names[i], type) == 0)
            return true;
    }
    return false;
}

/* ---- one line of the file (proc_pid_mountinfo(5)) ---- */

/* A decimal number that ends at the character end; moves behind that. */
static bool take_u32(const char **pos, char end, uint32_t *v_r)
{
    const char *p = *pos;
    uint64_t v = 0;

    for (; *p >= '0' && *p <= '9' && v <= UINT32_MAX; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (p == *pos || *p != end || v > UINT32_MAX)
        return false;
    *v_r = (uint32_t)v;
    *pos = p + 1;
    return true;
}

static bool take_dev(const char *text, dev_t *dev_r)
{
    uint32_t major_number, minor_number;

    if (!take_u32(&text, ':', &major_number) || !take_u32(&text, '\0', &minor_number))
        return false;
    *dev_r = makedev(major_number, minor_number);
    return true;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* Space, tab, newline, backslash (and '#') are written as "\040"; in place. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && is_octal(from[2])
            && is_octal(from[3])) {
            *to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/*
 * "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue":
 * before the "-" any number of fields that we do not need.
 */
static bool parse_line(char *line, struct one *o)
{
    enum { ID, PARENT, DEV, ROOT, POINT, OPTIONS, FIELDS };
    char *fields[FIELDS], *next = line, *field, *type;
    const char *id, *parent;
    uint32_t parent_id;

    for (int i = 0; i < FIELDS; i++)
        fields[i] = strsep(&next, " ");
    do {
        field = strsep(&next, " ");
    } while (field != NULL && strcmp(field, "-") != 0);
    type = strsep(&next, " ");
    if (type == NULL || type[0] == '\0' || fields[POINT][0] != '/')
        return false;
    unescape(fields[POINT]);
    unescape(type);
    id = fields[ID];
    parent = fields[PARENT];
    o->mount.point = fields[POINT];
    o->mount.type = type;
    o->mount.local = is_local_name(type);
    if (!take_u32(&id, '\0', &o->mount.id) || !take_u32(&parent, '\0', &parent_id))
        return false;
    o->parent = parent_id;
    return take_dev(fields[DEV], &o->mount.dev);
}

/* ---- the table ---- */

/* The whole file, terminated; NULL with errno. */
static char *read_text(int fd)
{
    size_t room = READ_AT_FIRST, len = 0;
    char *text = malloc(room), *more;
    ssize_t n = -1;

    if (text != NULL && lseek(fd, 0, SEEK_SET) == 0) {
        while ((n = read(fd, text + len, room - len - 1)) > 0) {
            len += (size_t)n;
            if (len + 1 < room)
                continue;
            more = realloc(text, room * 2);
            if (more == NULL) {
                n = -1;
                break;
            }
            text = more;
            room *= 2;
        }
    }
    if (n == -1) {
        free(text);
        return NULL;
    }
    text[len] = '\0';
    return text;
}

static size_t count_lines(const char *text)
{
    size_t n = 1;

    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static void parse_lines(struct table *t)
{
    char *next = t->text, *line;

    for (size_t number = 0; (line = strsep(&next, "\n")) != NULL; number++) {
        struct one *o = &t->by_id[t->n];

        o->line = number;
        if (parse_line(line, o))
            t->n++;
    }
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_ids(const void *a, const void *b)
{
    const struct one *x = a, *y = b;
    int c = compare_numbers(x->mount.id, y->mount.id);

    return c != 0 ? c : compare_numbers(x->line, y->line);
}

/* Twice the same id: between two reads one was unmounted and its id given to
 * another.  The later one is. */
static void drop_repeated(struct table *t)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->n; i++) {
        if (i + 1 == t->n || t->by_id[i].mount.id != t->by_id[i + 1].mount.id)
            t->by_id[kept++] = t->by_id[i];
    }
    t->n = kept;
}

static struct one *find_one(const struct table *t, uint64_t id)
{
    size_t low = 0, high = t->n;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (t->by_id[mid].mount.id == id)
            return &t->by_id[mid];
        if (t->by_id[mid].mount.id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* The mount that our root directory lies on is not listed where the process
 * sees a part of the tree only, and is its own parent where it is the first. */
static void mend_parents(struct table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        struct one *o = &t->by_id[i];

        if (o->parent == o->mount.id || find_one(t, o->parent) == NULL)
            o->parent = OUTSIDE;
    }
}

/* ---- what can be seen ---- */

/* "/a" comes before "/a/b". */
static int compare_points(const void *a, const void *b)
{
    const struct one *x = *(const struct one *const *)a, *y = *(const struct one *const *)b;
    int c = strcmp(x->mount.point, y->mount.point);

    if (c == 0)
        c = compare_numbers(x->parent, y->parent);
    return c != 0 ? c : compare_numbers(x->line, y->line);
}

/* Like strcmp() with a string of len bytes that is not terminated. */
static int compare_with(const char *point, const char *path, size_t len)
{
    int c = strncmp(point, path, len);

    return c != 0 ? c : point[len] != '\0';
}

static const struct one *seen_at(const struct table *t, const char *path, size_t len)
{
    size_t low = 0, high = t->n_visible;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int c = compare_with(t->visible[mid]->mount.point, path, len);

        if (c == 0)
            return t->visible[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

static const struct one *seen_from(const struct table *t, const char *path, size_t len)
{
    const struct one *o = seen_at(t, path, len);

    while (o == NULL && len > 1) {
        len = fp_path_parent_len(path, len);
        o = seen_at(t, path, len);
    }
    return o;
}

/* Among mounts on one point, those from list on: the one on top of the mount
 * with this id.  Of several, which only a torn reading has, the last. */
static const struct one *on_top_of(const struct one *const *list, size_t n, uint64_t id)
{
    size_t low = 0, high = n;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;

        if (list[mid]->parent <= id)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 && list[low - 1]->parent == id ? list[low - 1] : NULL;
}

/*
 * Climbs the stack of mounts on one point.  It begins on the mount that is seen
 * above the point: what is mounted on another one is covered by it.  No mount
 * is met twice, as each has one parent and the first one's is not in the stack.
 */
static const struct one *top_of(const struct table *t, const struct one *const *list, size_t n)
{
    const char *point = list[0]->mount.point;
    const size_t len = strlen(point);
    const struct one *under = len > 1 ? seen_from(t, point, fp_path_parent_len(point, len))
                                      : NULL;
    const struct one *top = NULL, *next;
    uint64_t id = under != NULL ? under->mount.id : OUTSIDE;

    while ((next = on_top_of(list, n, id)) != NULL) {
        top = next;
        id = next->mount.id;
    }
    return top;
}

/* In an order in which what lies above a point is known when its turn comes. */
static void find_visible(struct table *t)
{
    size_t end;

    for (size_t i = 0; i < t->n; i++)
        t->visible[i] = &t->by_id[i];
    qsort(t->visible, t->n, sizeof(*t->visible), compare_points);
    for (size_t i = 0; i < t->n; i = end) {
        const struct one *top;

        for (end = i + 1; end < t->n; end++) {
            if (strcmp(t->visible[end]->mount.point, t->visible[i]->mount.point) != 0)
                break;
        }
        top = top_of(t, t->visible + i, end - i);
        if (top != NULL)
            t->visible[t->n_visible++] = top;   /* never beyond i */
    }
}

static void free_table(struct table *t)
{
    free(t->text);
    free(t->by_id);
    free(t->visible);
    *t = (struct table){ 0 };
}

/* Fills an empty table; -1 with errno. */
static int read_table(struct table *t, int fd)
{
    size_t room;

    t->text = read_text(fd);
    if (t->text == NULL)
        return -1;
    room = count_lines(t->text);
    t->by_id = calloc(room, sizeof(*t->by_id));
    t->visible = calloc(room, sizeof(*t->visible));
    if (t->by_id == NULL || t->visible == NULL) {
        free_table(t);
        return -1;
    }
    parse_lines(t);
    qsort(t->by_id, t->n, sizeof(*t->by_id), compare_ids);
    drop_repeated(t);
    mend_parents(t);
    find_visible(t);
    return 0;
}

/* ---- settings ---- */

/* The subvolumes of btrfs have device numbers that are not in mountinfo, so
 * the events of a mark cannot be told from those of no mark. */
static enum fp_watch_by by_mark(const struct one *o)
{
    if (o->mark == MARK_NEVER || strcmp(o->mount.type, "btrfs") == 0)
        return FP_BY_INOTIFY;
    return o->mark == MARK_SET ? FP_BY_FANOTIFY : FP_BY_TTL;
}

static enum fp_watch_by choose(const struct one *o, int wanted, int general)
{
    if (wanted == FP_BY_AUTO) {
        wanted = general;
        if (!o->mount.local)
            return FP_BY_TTL;
    }
    if (wanted == FP_BY_TTL || wanted == FP_BY_INOTIFY)
        return (enum fp_watch_by)wanted;
    return by_mark(o);
}

static const struct fp_mount_rule *find_rule(const struct fp_mounts_settings *s,
                                             const char *point)
{
    static const struct fp_mount_rule none = { "", FP_BY_AUTO, -1, -1 };

    for (size_t i = 0; i < s->n_rules; i++) {
        if (strcmp(s->rules[i].point, point) == 0)
            return &s->rules[i];
    }
    return &none;
}

/* Longer than 2^32 ms is for ever, too. */
static uint32_t choose_ms(long ms, uint32_t general)
{
    if (ms < 0)
        return general;
    return (unsigned long)ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

static void publish(const struct table *t, struct fp_mounts_view *v)
{
    const size_t n = t->n < VIEW_MOUNTS ? t->n : VIEW_MOUNTS;

    for (size_t i = 0; i < n; i++) {
        const struct fp_mount *o = &t->by_id[i].mount;

        atomic_store(&v->slots[i], (uint64_t)o->id << 32 | (uint64_t)o->by << 1 | o->local);
    }
    atomic_store(&v->n, (uint32_t)n);
}

/* After any change: of the table, of the settings, of marks. */
static void apply(struct fp_mounts *m)
{
    const struct fp_mounts_settings *s = &m->settings;

    for (size_t i = 0; i < m->table.n; i++) {
        struct one *o = &m->table.by_id[i];
        const struct fp_mount_rule *rule = find_rule(s, o->mount.point);

        o->mount.by = choose(o, rule->by, s->by);
        o->mount.ttl_ms = choose_ms(rule->ttl_ms, s->ttl_ms);
        o->mount.stale_if_error_ms = choose_ms(rule->stale_if_error_ms, s->stale_if_error_ms);
    }
    if (m->view != NULL)
        publish(&m->table, m->view);
}

/* The rules and their mount points, in one piece of memory; NULL with errno. */
static struct fp_mount_rule *copy_rules(const struct fp_mount_rule *rules, size_t n)
{
    size_t room = n * sizeof(*rules) + 1;
    struct fp_mount_rule *copy;
    char *text;

    for (size_t i = 0; i < n; i++)
        room += strlen(rules[i].point) + 1;
    copy = malloc(room);
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

/* A file of no kernel's making, which never changes, cannot be waited for. */
static int open_hint(struct fp_mounts *m)
{
    struct epoll_event ev = { .events = EPOLLPRI };

    m->hint = epoll_create1(EPOLL_CLOEXEC);
    if (m->hint == -1)
        return -1;
    if (epoll_ctl(m->hint, EPOLL_CTL_ADD, m->hint_info, &ev) == -1 && errno != EPERM)
        return -1;
    return 0;
}

static int open_files(struct fp_mounts *m, const char *mountinfo)
{
    m->info = open(mountinfo, O_RDONLY | O_CLOEXEC);
    m->hint_info = open(mountinfo, O_RDONLY | O_CLOEXEC);
    return m->info == -1 || m->hint_info == -1 ? -1 : open_hint(m);
}

struct fp_mounts *fp_mounts_create(const char *mountinfo, const struct fp_mounts_settings *s,
                                   struct fp_mounts_view *view)
{
    struct fp_mounts *m = calloc(1, sizeof(*m));

    if (m == NULL)
        return NULL;
    m->info = m->hint_info = m->hint = -1;
    m->view = view;
    if (open_files(m, mountinfo != NULL ? mountinfo : MOUNTINFO) == -1
        || take_settings(m, s) == -1 || read_table(&m->table, m->info) == -1) {
        fp_mounts_destroy(&m);      /* keeps errno */
        return NULL;
    }
    apply(m);
    return m;
}

void fp_mounts_destroy(struct fp_mounts **m)
{
    if (*m == NULL)
        return;
    fp_close(&(*m)->hint);
    fp_close(&(*m)->hint_info);
    fp_close(&(*m)->info);
    free_table(&(*m)->table);
    free_table(&(*m)->before);
    free_rules(&(*m)->settings);
    free(*m);
    *m = NULL;
}

int fp_mounts_fd(const struct fp_mounts *m)
{
    return m->hint;
}

/* The kernel tells each open file once.  An error of poll() is as good as a
 * change: nothing may be missed. */
static bool was_told(struct fp_mounts *m)
{
    struct pollfd p = { .fd = m->info, .events = POLLPRI };
    struct epoll_event ignored;

    /* The hint first: what comes after it is told by the other. */
    epoll_wait(m->hint, &ignored, 1, 0);
    return poll(&p, 1, 0) != 0;
}

/* The same id and device may be another file system by now: so a mark's loss
 * is kept rather too long, and its presence is the caller's to say again. */
static void carry_marks(struct table *t, const struct table *before)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct one *o = find_one(before, t->by_id[i].mount.id);

        if (o != NULL && o->mount.dev == t->by_id[i].mount.dev)
            t->by_id[i].mark = o->mark;
    }
}

static bool reread(struct fp_mounts *m)
{
    struct table now = { 0 };

    m->failed = read_table(&now, m->info) == -1;
    carry_marks(&now, &m->table);
    free_table(&m->before);
    m->before = m->table;
    m->table = now;
    apply(m);
    return !m->failed;
}

bool fp_mounts_changed(struct fp_mounts *m)
{
    const bool told = was_told(m);

    if (!told && !m->failed)
        return false;
    return reread(m) || told;
}

/* Calls each for the mounts of one table that the other does not have. */
static size_t each_missing(const struct table *t, const struct table *other,
                           void (*each)(void *ctx, const char *point), void *ctx)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct one *a = &t->by_id[i], *b = find_one(other, a->mount.id);

        if (b != NULL && a->mount.dev == b->mount.dev && a->parent == b->parent
            && strcmp(a->mount.point, b->mount.point) == 0)
            continue;
        if (each != NULL)
            each(ctx, a->mount.point);
        n++;
    }
    return n;
}

size_t fp_mounts_changes(const struct fp_mounts *m, void (*each)(void *ctx, const char *point),
                         void *ctx)
{
    if (m->failed || m->before.n == 0)
        return 0;
    return each_missing(&m->table, &m->before, each, ctx)
        + each_missing(&m->before, &m->table, each, ctx);
}

static bool is_among(dev_t dev, const dev_t *devs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (devs[i] == dev)
            return true;
    }
    return false;
}

void fp_mounts_set_marked(struct fp_mounts *m, const dev_t *devs, size_t n)
{
    for (size_t i = 0; i < m->table.n; i++) {
        struct one *o = &m->table.by_id[i];

        if (is_among(o->mount.dev, devs, n))
            o->mark = MARK_SET;
        else if (o->mark == MARK_SET)
            o->mark = MARK_LOST;
    }
    apply(m);
}

bool fp_mounts_may_mark(const struct fp_mounts *m, size_t i, bool *asked_r)
{
    const struct one *o = &m->table.by_id[i];
    int wanted = find_rule(&m->settings, o->mount.point)->by;

    *asked_r = wanted == FP_BY_FANOTIFY;
    if (wanted == FP_BY_AUTO && o->mount.local)
        wanted = m->settings.by;
    return strcmp(o->mount.type, "btrfs") != 0
        && (wanted == FP_BY_FANOTIFY || (wanted == FP_BY_AUTO && o->mount.local));
}

/* ---- asking ---- */

const struct fp_mount *fp_mounts_find(const struct fp_mounts *m, uint32_t id)
{
    const struct one *o = find_one(&m->table, id);

    return o != NULL ? &o->mount : NULL;
}

const struct fp_mount *fp_mounts_of_path(const struct fp_mounts *m, const char *path, size_t len)
{
    const struct one *o = seen_from(&m->table, path, len);

    return o != NULL ? &o->mount : NULL;
}

size_t fp_mounts_count(const struct fp_mounts *m)
{
    return m->table.n;
}

const struct fp_mount *fp_mounts_at(const struct fp_mounts *m, size_t i)
{
    return &m->table.by_id[i].mount;
}

/* ---- the view ---- */

struct fp_mounts_view *fp_mounts_view_create(void)
{
    void *p = mmap(NULL, sizeof(struct fp_mounts_view), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return p != MAP_FAILED ? p : NULL;
}

int fp_mounts_view_protect(struct fp_mounts_view *v)
{
    return mprotect(v, sizeof(*v), PROT_READ);
}

enum fp_watch_by fp_mounts_view_find(const struct fp_mounts_view *v, uint32_t mnt_id,
                                     bool *local_r)
{
    size_t low = 0, high = atomic_load(&v->n);

    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const uint64_t slot = atomic_load(&v->slots[mid]);

        if (slot >> 32 == mnt_id) {
            *local_r = (slot & 1) != 0;
            return (enum fp_watch_by)((slot & UINT32_MAX) >> 1);
        }
        if (slot >> 32 < mnt_id)
            low = mid + 1;
        else
            high = mid;
    }
    *local_r = false;
    return FP_BY_TTL;
}
