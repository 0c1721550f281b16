/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a preloaded library's answer true right after a change?  Makes changes one after another, in this process or in
 * another one, and after each compares what stat(), lstat(), access() and others say with what the kernel says.
 *
 *   files_truth DIRECTORY own|other CHANGES SEED
 *
 *   files_truth DIRECTORY rested FILES SEED
 *   files_truth DIRECTORY directories|directories-other DIRECTORIES SEED
 *
 * With "rested" the files have been left alone for some seconds, so that their content is in the daemon's memory.
 * Each is changed once. With "directories" these have been left alone, so that their names are kept; of each one entry
 * is changed, and the names are compared in their order, with inode and kind.
 *
 * Prints "changes N answered N of them fresh N wrong N": fresh are answers to a question about what had been answered just
 * before the change, so that an old answer was there to be wrong with.  Ends with 1 if one was wrong.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PATHS 16
#define CALLS (6 * PATHS)

static unsigned long (*answered)(void);
static char base[3000];
static int wrong;
static const char *what = "nothing";

/* d may become e. link leads to one of them, or to d/s, which may be a link to e. */
static const char *const names[PATHS] = { "d",      "d/f0",   "d/f1",      "d/s",  "d/s/g", "e",
                                          "e/f0",   "link",   "link/f0",   "link/s/g", "to", "d/f0/below",
                                          "d/s/../f0", "link/../d/f0", "d/../e/f0", "link/../f0" };

static const char *at(const char *name)
{
    static char room[4][4096];
    static int next;
    char *path = room[next++ % 4];

    snprintf(path, sizeof(room[0]), "%s/%s", base, name);
    return path;
}

/* ---- changes ---- */

static void put(const char *name, int flags, unsigned bytes)
{
    int fd = open(at(name), O_WRONLY | O_CREAT | flags, 0644);

    if (fd == -1)
        return;
    while (bytes-- > 0 && write(fd, &"abcdefg"[rand() % 7], 1) == 1)
        ;
    close(fd);
}

static void make_link(const char *target, const char *name)
{
    unlink(at("new"));
    if (symlink(target, at("new")) == 0)
        rename(at("new"), at(name));
}

static int append(void) { put("d/f0", O_APPEND, 3); return 0; }
static int overwrite(void) { put("d/f1", O_TRUNC, 7); return 0; }
static int create(void) { put("d/s/g", O_EXCL, 1); return 0; }
static int remove_file(void) { return unlink(at("d/s/g")); }
static int remove_first(void) { return unlink(at("d/f0")); }
static int replace(void) { put("d/new", O_TRUNC, 5); return rename(at("d/new"), at("d/f0")); }
static int rename_file(void) { return rename(at("d/f1"), at("d/f0")); }
static int closed(void) { return chmod(at("d/f0"), 0200); }
static int opened(void) { return chmod(at("d/f0"), 0644); }
static int shut(void) { return chmod(at("d/s"), 0600); }
static int unshut(void) { return chmod(at("d/s"), 0755); }
static int shorten(void) { return truncate(at("d/f1"), 2); }
static int touch(void) { return utimensat(AT_FDCWD, at("d/f1"), NULL, 0); }
static int make_dir(void) { return mkdir(at("d/s"), 0755); }
static int remove_dir(void) { unlink(at("d/s/g")); unlink(at("d/s")); return rmdir(at("d/s")); }
static int rename_above(void) { return rename(at("d"), at("e")); }
static int rename_back(void) { return rename(at("e"), at("d")); }
static int lead_to_d(void) { make_link("d", "link"); return 0; }
static int lead_to_e(void) { make_link("e", "link"); return 0; }
static int lead_deeper(void) { make_link("d/s", "link"); return 0; }
static int lead_inside(void) { make_link("../e", "d/s"); return 0; }
static int lead_file(void) { make_link("d/f1", "to"); return 0; }
static int lead_nowhere(void) { make_link("none", "to"); return 0; }
static int second_name(void) { return link(at("d/f1"), at("d/f0")); }
static int make_both(void) { mkdir(at("e"), 0755); put("e/f0", 0, 2); return 0; }

static const struct {
    const char *name;
    int (*make)(void);
} changes[] = {
#define CHANGE(f) { #f, f }
    CHANGE(append), CHANGE(overwrite), CHANGE(create), CHANGE(remove_file), CHANGE(remove_first), CHANGE(replace),
    CHANGE(rename_file), CHANGE(closed), CHANGE(opened), CHANGE(shut), CHANGE(unshut), CHANGE(shorten), CHANGE(touch),
    CHANGE(make_dir), CHANGE(remove_dir), CHANGE(rename_above), CHANGE(rename_back), CHANGE(lead_to_d), CHANGE(lead_to_e),
    CHANGE(lead_deeper), CHANGE(lead_inside),
    CHANGE(lead_file), CHANGE(lead_nowhere), CHANGE(second_name), CHANGE(make_both),
};

/* ---- looks ---- */

static bool same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_mode == b->st_mode && a->st_nlink == b->st_nlink
           && a->st_uid == b->st_uid && a->st_gid == b->st_gid && a->st_rdev == b->st_rdev && a->st_size == b->st_size
           && a->st_blksize == b->st_blksize && a->st_blocks == b->st_blocks
           && memcmp(&a->st_mtim, &b->st_mtim, sizeof(a->st_mtim)) == 0
           && memcmp(&a->st_ctim, &b->st_ctim, sizeof(a->st_ctim)) == 0;
}

static void tell(const char *call, const char *path, int ours, int true_errno, const struct stat *a, const struct stat *b)
{
    if (wrong++ < 5)
        printf("%s(%s) after %s: errno %d, really %d; inode %lu mode %o links %lu size %ld blocks %ld block %ld time %ld.%09ld, "
               "really %lu %o %lu %ld %ld %ld %ld.%09ld\n",
               call, path, what, ours, true_errno, a->st_ino, a->st_mode, a->st_nlink, a->st_size, a->st_blocks, a->st_blksize,
               a->st_ctim.tv_sec, a->st_ctim.tv_nsec, b->st_ino, b->st_mode, b->st_nlink, b->st_size, b->st_blocks, b->st_blksize,
               b->st_ctim.tv_sec, b->st_ctim.tv_nsec);
}

/* The bytes read to the end, and the metadata that fstat() gives. */
static long contents(int fd, bool raw, struct stat *st)
{
    unsigned char buf[256];
    long sum = 0;
    ssize_t n;

    if (raw ? syscall(SYS_fstat, fd, st) == -1 : fstat(fd, st) == -1)
        return -1;
    while ((n = raw ? syscall(SYS_read, fd, buf, sizeof(buf)) : read(fd, buf, sizeof(buf))) > 0) {
        for (ssize_t i = 0; i < n; i++)
            sum = sum * 31 + buf[i] + 1;
    }
    return n == 0 ? sum : -2;
}

static void look_into(const char *path)
{
    struct stat a = { 0 }, b = { 0 };
    int fd = open(path, O_RDONLY | O_CLOEXEC), ours = fd != -1 ? 0 : errno;
    int real_fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC), real = real_fd != -1 ? 0 : errno;

    if (ours != real || (real == 0 && (contents(fd, false, &a) != contents(real_fd, true, &b) || !same(&a, &b))))
        tell("open", path, ours, real, &a, &b);
    if (fd != -1)
        close(fd);
    if (real_fd != -1)
        close(real_fd);
}

struct listing {
    int error;
    unsigned n;
    struct {
        ino_t ino;
        unsigned char type;
        char name[60];
    } of[40];
};

static void add(struct listing *l, ino_t ino, unsigned char type, const char *name)
{
    if (l->n == 40)
        return;
    l->of[l->n].ino = ino;
    l->of[l->n].type = type;
    snprintf(l->of[l->n++].name, sizeof(l->of[0].name), "%s", name);
}

static void read_ours(DIR *d, struct listing *l)
{
    const struct dirent *e;

    memset(l, 0, sizeof(*l));
    while ((e = readdir(d)) != NULL)
        add(l, e->d_ino, e->d_type, e->d_name);
}

static void list_ours(const char *path, struct listing *l)
{
    DIR *d = opendir(path);

    memset(l, 0, sizeof(*l));
    l->error = d == NULL ? errno : 0;
    if (d == NULL)
        return;
    read_ours(d, l);
    closedir(d);
}

static void list_really(const char *path, struct listing *l)
{
    static _Alignas(8) char buf[65536];
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long n;

    memset(l, 0, sizeof(*l));
    l->error = fd == -1 ? errno : 0;
    while (fd != -1 && (n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
        for (long i = 0; i < n; i += ((struct dirent64 *)(buf + i))->d_reclen) {
            const struct dirent64 *e = (struct dirent64 *)(buf + i);

            add(l, e->d_ino, e->d_type, e->d_name);
        }
    }
    if (fd != -1)
        close(fd);
}

static void compare_names(const char *call, const char *path, const struct listing *a, const struct listing *b)
{
    if (memcmp(a, b, sizeof(*a)) == 0 || wrong++ >= 5)
        return;
    printf("%s(%s) after %s: errno %d, really %d;", call, path, what, a->error, b->error);
    for (unsigned i = 0; i < a->n; i++)
        printf(" %s %lu %u", a->of[i].name, a->of[i].ino, a->of[i].type);
    printf(", really");
    for (unsigned i = 0; i < b->n; i++)
        printf(" %s %lu %u", b->of[i].name, b->of[i].ino, b->of[i].type);
    printf("\n");
}

static void look_at_names(const char *path)
{
    struct listing a, b;

    list_ours(path, &a);
    list_really(path, &b);
    compare_names("opendir", path, &a, &b);
}

static void look_at_right(const char *path, int mode)
{
    const struct stat none = { .st_mode = (mode_t)mode };
    const int ours = access(path, mode) == 0 ? 0 : errno;
    const int real = syscall(SYS_faccessat, AT_FDCWD, path, mode) == 0 ? 0 : errno;

    if (ours != real)
        tell("access", path, ours, real, &none, &none);
}

static void look_at(const char *path)
{
    struct stat a = { 0 }, b = { 0 };
    int ours, real;

    errno = 0;
    ours = stat(path, &a) == 0 ? 0 : errno;
    real = syscall(SYS_newfstatat, AT_FDCWD, path, &b, 0) == 0 ? 0 : errno;
    if (ours != real || (real == 0 && !same(&a, &b)))
        tell("stat", path, ours, real, &a, &b);
    ours = lstat(path, &a) == 0 ? 0 : errno;
    real = syscall(SYS_newfstatat, AT_FDCWD, path, &b, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : errno;
    if (ours != real || (real == 0 && !same(&a, &b)))
        tell("lstat", path, ours, real, &a, &b);
    look_at_right(path, F_OK);
    look_into(path);
    look_at_names(path);
    look_at_right(path, R_OK);
    look_at_right(path, W_OK);
    look_at_right(path, R_OK | W_OK | X_OK);
}

/* How many of the calls were answered. */
static unsigned look(void)
{
    const unsigned long before = answered != NULL ? answered() : 0;

    for (int i = 0; i < PATHS; i++)
        look_at(at(names[i]));
    return (unsigned)((answered != NULL ? answered() : 0) - before);
}

static void rest(long us)
{
    nanosleep(&(struct timespec){ 0, us * 1000 }, NULL);
}

/* ---- directories that rested ---- */

#define KINDS 12
static const char *const directory_kinds[KINDS] = { "create", "unlink", "rename inside", "rename away", "mkdir", "rmdir",
                                                    "another kind", "close to all", "replace it", "remove it",
                                                    "rename into", "second name" };

static void change_directory(int i)
{
    char name[60], *path;
    struct stat st;

#define IN(entry) (snprintf(name, sizeof(name), "n%d/" entry, i), at(name))
    path = strdup(IN(""));
    path[strlen(path) - 1] = '\0';
    switch (i % KINDS) {
    case 0: close(open(IN("new"), O_CREAT | O_WRONLY, 0644)); break;
    case 1: unlink(IN("file")); break;
    case 2: rename(IN("file"), IN("other")); break;
    case 3: rename(IN("file"), at("away")); break;
    case 4: mkdir(IN("more"), 0755); break;
    case 5: rmdir(IN("sub")); break;
    case 6: unlink(IN("file")); mkdir(IN("file"), 0755); break;
    case 7: chmod(path, 0300); break;
    case 8: rename(path, at("former")); mkdir(path, 0755); rename(at("former/file"), at("away")); rmdir(at("former/sub"));
            unlink(at("former/link")); rmdir(at("former")); break;
    case 9: unlink(IN("file")); unlink(IN("link")); rmdir(IN("sub")); rmdir(path); break;
    case 10: put("away", O_TRUNC, 1); rename(at("away"), IN("came")); break;
    default: if (link(IN("file"), IN("linked")) == -1) exit(2); break;
    }
    if (stat(path, &st) == -1 && i % KINDS != 9)
        exit(2);
    free(path);
}

/* ---- the other process ---- */

static int to[2], from[2];

static void (*make)(int) = NULL;

static void make_change(int k)
{
    changes[k].make();
}

static void begin_other(void)
{
    int k;

    if (pipe(to) == -1 || pipe(from) == -1)
        exit(2);
    if (fork() != 0)
        return;
    close(to[1]);
    while (read(to[0], &k, sizeof(k)) == sizeof(k)) {
        make(k);
        if (write(from[1], &k, sizeof(k)) != sizeof(k))
            break;
    }
    _exit(0);
}

static int end_other(bool other, int result)
{
    if (other)
        close(to[1]);
    return result;
}

static void change(int k, bool other)
{
    what = make == make_change ? changes[k].name : directory_kinds[k % KINDS];
    if (!other)
        make(k);
    else if (write(to[1], &k, sizeof(k)) != sizeof(k) || read(from[0], &k, sizeof(k)) != sizeof(k))
        exit(2);
}

/* ---- their names ---- */

static bool is_kept(int i, DIR **d_r)
{
    char name[20];
    void *first = NULL;

    snprintf(name, sizeof(name), "n%d", i);
    *d_r = opendir(at(name));
    if (*d_r != NULL)
        memcpy(&first, *d_r, sizeof(first));
    return first == (void *)*d_r;
}

/* A stream that was opened before shows the change once it is rewound, unless the directory has another place. */
static void look_again(int i, DIR *d)
{
    char name[20];
    struct listing a, b;

    snprintf(name, sizeof(name), "n%d", i);
    rewinddir(d);
    read_ours(d, &a);
    list_really(at(name), &b);
    if (i % KINDS < 7 || i % KINDS > 9)
        compare_names("rewinddir", at(name), &a, &b);
    closedir(d);
}

static int try_directories(int n, bool other)
{
    unsigned kept = 0;
    char name[60];
    DIR *d;

    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "n%d", i), mkdir(at(name), 0755);
        snprintf(name, sizeof(name), "n%d/file", i), put(name, O_TRUNC, 3);
        snprintf(name, sizeof(name), "n%d/sub", i), mkdir(at(name), 0755);
        snprintf(name, sizeof(name), "n%d/link", i);
        if (symlink("file", at(name)) == -1)
            return 2;
    }
    for (int i = 0; i < n; i++) {
        for (int tries = 0; tries < 2000; tries++) {
            const bool is = is_kept(i, &d);

            if (is || tries == 1999) {
                kept += is;
                break;
            }
            closedir(d);
            rest(3000);
        }
        if (d == NULL)
            return 2;
        readdir(d);
        change(i, other);
        snprintf(name, sizeof(name), "n%d", i);
        look_at(at(name));
        look_again(i, d);
    }
    printf("directories %d kept %u wrong %d\n", n, kept, wrong);
    return wrong > 0;
}

/* ---- files that rested ---- */

static const char *rested(int i)
{
    static char name[40];

    snprintf(name, sizeof(name), "r%d", i);
    return name;
}

static bool is_copy(int i)
{
    char link[40], text[300];
    int fd = open(at(rested(i)), O_RDONLY);
    ssize_t n;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    n = fd != -1 ? readlink(link, text, sizeof(text)) : -1;
    if (fd != -1)
        close(fd);
    return n > 7 && memcmp(text, "/memfd:", 7) == 0;
}

static void change_rested(int i)
{
    static const char *const kinds[] = { "append", "replace", "truncate", "unlink", "close to all", "write in place", "link" };
    const char *path = at(rested(i));
    int fd;

    what = kinds[i % 7];
    switch (i % 7) {
    case 0: put(rested(i), O_APPEND, 2); break;
    case 1: put("rnew", O_TRUNC, 9); rename(at("rnew"), path); break;
    case 2: if (truncate(path, 1) == -1) exit(2); break;
    case 3: unlink(path); break;
    case 4: chmod(path, 0); break;
    case 5: fd = open(path, O_WRONLY); if (pwrite(fd, "Z", 1, 1) != 1) exit(2); close(fd); break;
    default: if (link(path, at("rlink")) == -1) exit(2); unlink(at("rlink")); break;
    }
}

static int try_rested(int n)
{
    unsigned copies = 0;

    for (int i = 0; i < n; i++)
        put(rested(i), O_TRUNC, (unsigned)(20 + i % 300));
    for (int tries = 0; tries < 60; tries++) {
        copies = 0;
        for (int i = 0; i < n; i++)
            copies += is_copy(i);
        if (copies == (unsigned)n)
            break;
        rest(100000);
    }
    for (int i = 0; i < n; i++) {
        change_rested(i);
        look_at(at(rested(i)));
    }
    printf("files %d copies %u wrong %d\n", n, copies, wrong);
    return wrong > 0;
}

int main(int argc, char **argv)
{
    const int n_changes = sizeof(changes) / sizeof(changes[0]);
    unsigned long total = 0, fresh = 0;
    unsigned seed;
    bool other;
    int n;

    if (argc != 5)
        return 2;
    snprintf(base, sizeof(base), "%s", argv[1]);
    other = strstr(argv[2], "other") != NULL;
    n = atoi(argv[3]);
    seed = (unsigned)atoi(argv[4]);
    *(void **)&answered = dlsym(RTLD_DEFAULT, "flashpache_files_answered");
    if (strcmp(argv[2], "rested") == 0)
        return try_rested(n);
    make = strncmp(argv[2], "directories", 11) == 0 ? change_directory : make_change;
    if (other)
        begin_other();
    if (make == change_directory)
        return end_other(other, try_directories(n, other));
    make_dir();
    for (int i = 0; i < n; i++) {
        unsigned best = 0, now;

        /* Until answers are there that the change could make wrong: the daemon looks meanwhile. */
        for (int tries = 0; tries < 6 && best < CALLS / 2; tries++) {
            now = look();
            best = now > best ? now : best;
            rest(500);
        }
        change((int)(rand_r(&seed) % (unsigned)n_changes), other);
        now = look();
        total += now;
        fresh += best > 0 ? now : 0;
    }
    printf("changes %d answered %lu of them fresh %lu wrong %d\n", n, total, fresh, wrong);
    return end_other(other, wrong > 0);
}
