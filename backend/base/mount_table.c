/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/mount_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text.h"

#define OUTSIDE UINT64_MAX /* no mount of this table has it: ids have 32 bits */

/* ---- one line of the file (proc_pid_mountinfo(5)) ---- */

/* Reads a decimal number that ends at the character end, and moves behind that. */
static bool take_u32(char **pos, char end, uint32_t *v_r)
{
    char *p = *pos;
    uint64_t v = 0;

    for (; *p >= '0' && *p <= '9' && v <= UINT32_MAX; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (p == *pos || *p != end || v > UINT32_MAX)
        return false;
    *v_r = (uint32_t)v;
    *pos = p + 1;
    return true;
}

/* True if the file system may take names that differ in case for each other.  Some types do unless an option
 * says otherwise, others do by an option. */
static bool folds_names(const char *type, const char *options)
{
    static const char *const types[] = { "affs", "cifs",  "exfat", "fuseblk", "hfs",  "hfsplus", "msdos",
                                         "ntfs", "ntfs3", "smb2",  "smb3",    "vfat", "vboxsf" };
    static const char *const by_option[] = { "casefold", "caseinsensitive", "casemixed", "nocase",
                                             "ignore_case" };
    bool found = strstr(options, "casefold=") != NULL;

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        found = found || strcmp(type, types[i]) == 0;
    for (size_t i = 0; i < sizeof(by_option) / sizeof(by_option[0]); i++)
        found = found || fp_text_has_option(options, by_option[i]);
    return found;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* Replaces "\040" and its like in place: space, tab, newline, backslash (and '#') are written so. */
static void unescape(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && is_octal(from[2]) && is_octal(from[3])) {
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
static bool parse_line(char *line, struct fp_mount_row *row)
{
    enum { ID, PARENT, DEV, ROOT, POINT, OPTIONS, FIELDS };
    char *fields[FIELDS], *next = line, *field, *type, *options;
    uint32_t parent_id, major_number, minor_number;

    for (int i = 0; i < FIELDS; i++)
        fields[i] = strsep(&next, " ");
    do {
        field = strsep(&next, " ");
    } while (field != NULL && strcmp(field, "-") != 0);
    type = strsep(&next, " ");
    strsep(&next, " "); /* the source */
    options = strsep(&next, " ");
    if (options == NULL)
        options = "";
    if (type == NULL || type[0] == '\0' || fields[POINT][0] != '/')
        return false;
    if (!take_u32(&fields[ID], '\0', &row->mount.id) || !take_u32(&fields[PARENT], '\0', &parent_id)
        || !take_u32(&fields[DEV], ':', &major_number) || !take_u32(&fields[DEV], '\0', &minor_number))
        return false;
    unescape(fields[POINT]);
    unescape(fields[ROOT]);
    unescape(type);
    row->mount.point = fields[POINT];
    row->mount.root = fields[ROOT];
    row->mount.type = type;
    row->mount.traits.known = true;
    row->mount.traits.folds = folds_names(type, options);
    row->mount.traits.processes = strcmp(type, "proc") == 0;
    row->mount.traits.automount = strcmp(type, "autofs") == 0;
    row->mount.traits.names_are_mounted = row->mount.traits.automount && fp_text_has_option(options, "indirect");
    row->mount.traits.nosymfollow = fp_text_has_option(fields[OPTIONS], "nosymfollow");
    row->options = fields[OPTIONS];
    row->mount.dev = makedev(major_number, minor_number);
    row->parent = parent_id;
    return true;
}

/* ---- the table ---- */

static size_t count_lines(const char *text)
{
    size_t n = 1;

    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

static void parse_lines(struct fp_mount_table *t)
{
    char *next = t->text, *line;

    for (size_t number = 0; (line = strsep(&next, "\n")) != NULL; number++) {
        struct fp_mount_row *row = &t->by_id[t->n];

        row->line = number;
        if (parse_line(line, row))
            t->n++;
    }
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare_ids(const void *a, const void *b)
{
    const struct fp_mount_row *x = a, *y = b;
    int c = compare_numbers(x->mount.id, y->mount.id);

    return c != 0 ? c : compare_numbers(x->line, y->line);
}

/* An id may appear twice: between two reads, one mount was unmounted and its id given to another. The later
 * one exists. */
static void drop_repeated(struct fp_mount_table *t)
{
    size_t kept = 0;

    for (size_t i = 0; i < t->n; i++) {
        if (i + 1 == t->n || t->by_id[i].mount.id != t->by_id[i + 1].mount.id)
            t->by_id[kept++] = t->by_id[i];
    }
    t->n = kept;
}

static int compare_id(const void *id, const void *row)
{
    return compare_numbers(*(const uint64_t *)id, ((const struct fp_mount_row *)row)->mount.id);
}

struct fp_mount_row *fp_mount_table_find(const struct fp_mount_table *t, uint64_t id)
{
    return t->n > 0 ? bsearch(&id, t->by_id, t->n, sizeof(*t->by_id), compare_id) : NULL;
}

/* The mount that our root directory lies on is not listed where the process sees a part of the tree only.
 * Where it is the first mount it is its own parent. */
static void mend_parents(struct fp_mount_table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        struct fp_mount_row *row = &t->by_id[i];

        if (row->parent == row->mount.id || fp_mount_table_find(t, row->parent) == NULL)
            row->parent = OUTSIDE;
    }
}

/* ---- what can be seen ---- */

/* Puts "/a" before "/a/b". */
static int compare_points(const void *a, const void *b)
{
    const struct fp_mount_row *x = *(const struct fp_mount_row *const *)a;
    const struct fp_mount_row *y = *(const struct fp_mount_row *const *)b;
    int c = strcmp(x->mount.point, y->mount.point);

    if (c == 0)
        c = compare_numbers(x->parent, y->parent);
    return c != 0 ? c : compare_numbers(x->line, y->line);
}

static const struct fp_mount_row *visible_at(const struct fp_mount_table *t, const char *path, size_t len)
{
    size_t low = 0, high = t->n_visible;

    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const char *point = t->visible[mid]->mount.point;
        const int c = strncmp(point, path, len);

        if (c == 0 && point[len] == '\0')
            return t->visible[mid];
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

const struct fp_mount_row *fp_mount_table_of_path(const struct fp_mount_table *t, const char *path,
                                                  size_t len)
{
    const struct fp_mount_row *row = visible_at(t, path, len);

    while (row == NULL && len > 1) {
        len = fp_path_parent_len(path, len);
        row = visible_at(t, path, len);
    }
    return row;
}

/* Among mounts on one point, those from list on: the one on top of the mount
 * with this id.  Returns the last if there are several, which only a torn reading has. */
static const struct fp_mount_row *on_top_of(const struct fp_mount_row *const *list, size_t n, uint64_t id)
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
 * Climbs the stack of mounts on one point.  It begins on the mount that is visible
 * above the point, which covers mounts on another one.  No mount
 * is met twice, as each has one parent and the first one's is not in the stack.
 */
static const struct fp_mount_row *top_of(const struct fp_mount_table *t,
                                         const struct fp_mount_row *const *list, size_t n)
{
    const char *point = list[0]->mount.point;
    const size_t len = strlen(point);
    const struct fp_mount_row *under =
        len > 1 ? fp_mount_table_of_path(t, point, fp_path_parent_len(point, len)) : NULL;
    const struct fp_mount_row *top = NULL, *next;
    uint64_t id = under != NULL ? under->mount.id : OUTSIDE;

    while ((next = on_top_of(list, n, id)) != NULL) {
        top = next;
        id = next->mount.id;
    }
    return top;
}

/* Finds the mounts that can be seen, in an order in which
 * those above a point are known when its turn comes. */
static void find_visible(struct fp_mount_table *t)
{
    size_t end;

    for (size_t i = 0; i < t->n; i++)
        t->visible[i] = &t->by_id[i];
    qsort(t->visible, t->n, sizeof(*t->visible), compare_points);
    for (size_t i = 0; i < t->n; i = end) {
        const struct fp_mount_row *top;

        for (end = i + 1; end < t->n; end++) {
            if (strcmp(t->visible[end]->mount.point, t->visible[i]->mount.point) != 0)
                break;
        }
        top = top_of(t, t->visible + i, end - i);
        if (top != NULL)
            t->visible[t->n_visible++] = top; /* never beyond i */
    }
}

void fp_mount_table_free(struct fp_mount_table *t)
{
    free(t->text);
    free(t->by_id);
    free(t->visible);
    *t = (struct fp_mount_table){ 0 };
}

int fp_mount_table_read(struct fp_mount_table *t, int fd)
{
    size_t lines, len;

    t->text = lseek(fd, 0, SEEK_SET) == 0 ? fp_text_read(fd, SIZE_MAX, &len) : NULL;
    if (t->text == NULL)
        return -1;
    lines = count_lines(t->text);
    t->by_id = calloc(lines, sizeof(*t->by_id));
    t->visible = calloc(lines, sizeof(*t->visible));
    if (t->by_id == NULL || t->visible == NULL) {
        fp_mount_table_free(t);
        return -1;
    }
    parse_lines(t);
    qsort(t->by_id, t->n, sizeof(*t->by_id), compare_ids);
    drop_repeated(t);
    mend_parents(t);
    find_visible(t);
    return 0;
}

bool fp_mount_row_is_same(const struct fp_mount_row *a, const struct fp_mount_row *b)
{
    return a->mount.id == b->mount.id && a->mount.dev == b->mount.dev && a->parent == b->parent
           && strcmp(a->mount.point, b->mount.point) == 0 && strcmp(a->mount.root, b->mount.root) == 0
           && strcmp(a->mount.type, b->mount.type) == 0 && strcmp(a->options, b->options) == 0
           && a->mount.traits.folds == b->mount.traits.folds;
}

size_t fp_mount_table_missing(const struct fp_mount_table *t, const struct fp_mount_table *other,
                              void (*each)(void *ctx, const struct fp_mount *m), void *ctx)
{
    size_t n = 0;

    for (size_t i = 0; i < t->n; i++) {
        const struct fp_mount_row *a = &t->by_id[i];
        const struct fp_mount_row *b = fp_mount_table_find(other, a->mount.id);

        if (b != NULL && fp_mount_row_is_same(a, b))
            continue;
        if (each != NULL)
            each(ctx, &a->mount);
        n++;
    }
    return n;
}
