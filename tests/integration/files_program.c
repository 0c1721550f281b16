/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that asks for files as it is told, a word on a line of its standard input at a time, and says how it went.
 *
 *   stat PATH      "0", or the error's number
 *   access PATH MODE    the same, of access()
 *   open PATH      reads it to its end: "0", or the error's number
 *   until PATH     asks until an answer comes from memory: "yes", or "no" after two seconds
 *   count PATH     asks 1,000 times: how many answers came from memory
 *   fork           the next words are a forked process's
 *   limit N        may have so many descriptors from now on: "0", or the error's number
 *   close          closes all descriptors but the first three
 *   load LIBRARY   loads it as PHP loads an extension, and the next words are about its own calls
 *   directory PATH reads it in all ways of the C library: "0", or which one differs, and "kept" if its names were in memory
 *   flood PATH     asks for 50,000 names below it that are not there: "0", or how many there were
 *   preload        LD_PRELOAD, as a program would get it that this one starts
 *   namespace      another mount namespace: "0", or the error's number
 *   threads PATH   eight threads ask at once, 20,000 times each: how many answers were wrong
 *   each PATH      four threads ask about PATH/0 to PATH/119, each about a quarter: how many were not there
 *   loads LIBRARY  four threads load and close it 5,000 times each: "0"
 *   within PATH    changes to that directory: "0", or the error's number
 *   forge PATH     makes a memfd of one byte with the name of a copy: its size by fstat()
 *   lock PATH      holds a record lock on a copy's file, by another descriptor, and locks the copy: "held", or "lost"
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 8
#define EACH    4
#define NAMES   120

static int own_stat(const char *path, struct stat *st)
{
    return stat(path, st);
}

static int (*look)(const char *, struct stat *) = own_stat;
static unsigned long (*answered)(void);

static unsigned long count(const char *path, int times)
{
    const unsigned long before = answered != NULL ? answered() : 0;
    struct stat st;

    for (int i = 0; i < times; i++)
        look(path, &st);
    return answered != NULL ? answered() - before : 0;
}

static const char *until(const char *path)
{
    for (int i = 0; i < 2000; i++) {
        if (count(path, 1) > 0)
            return "yes";
        nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
    }
    return "no";
}

static void *ask_all_the_time(void *path)
{
    struct stat st;
    long wrong = 0;

    for (int i = 0; i < 20000; i++) {
        errno = 4711;
        wrong += stat(path, &st) != 0 || errno != 4711;
    }
    return (void *)wrong;
}

static long threads(char *path)
{
    pthread_t all[THREADS];
    long wrong = 0;
    void *each;

    for (int i = 0; i < THREADS; i++)
        pthread_create(&all[i], NULL, ask_all_the_time, path);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(all[i], &each);
        wrong += (long)each;
    }
    return wrong;
}

static const char *at_work; /* by four threads */

static void *ask_a_part(void *part)
{
    char name[5000];
    struct stat st;
    long absent = 0;

    for (long i = (long)part; i < NAMES; i += EACH) {
        snprintf(name, sizeof(name), "%s/%ld", at_work, i);
        absent += stat(name, &st) != 0;
    }
    return (void *)absent;
}

static void *load_and_close(void *part)
{
    long failed = 0;

    (void)part;
    for (int i = 0; i < 5000; i++) {
        void *handle = dlopen(at_work, RTLD_NOW);

        failed += handle == NULL || dlclose(handle) != 0;
    }
    return (void *)failed;
}

static long by_four(void *(*work)(void *), const char *path)
{
    pthread_t all[EACH];
    long sum = 0;
    void *each;

    at_work = path;
    for (long i = 0; i < EACH; i++)
        pthread_create(&all[i], NULL, work, (void *)i);
    for (int i = 0; i < EACH; i++) {
        pthread_join(all[i], &each);
        sum += (long)each;
    }
    return sum;
}

static bool is_locked(const char *path)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
    const pid_t pid = fork();
    int status, fd;

    if (pid == 0) {
        fd = open(path, O_RDWR);
        _exit(fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 1 : 0);
    }
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status) == 1;
}

static int open_copy(const char *path)
{
    char name[40], link[300];

    for (int i = 0; i < 600; i++) {
        const int fd = open(path, O_RDONLY);

        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        if (readlink(name, link, sizeof(link)) > 7 && memcmp(link, "/memfd:", 7) == 0)
            return fd;
        close(fd);
        nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
    }
    return -1;
}

static int forge(const char *path)
{
    char name[40], link[300];
    struct stat st;
    ssize_t n;
    int fd;

    snprintf(name, sizeof(name), "/proc/self/fd/%d", open_copy(path));
    n = readlink(name, link, sizeof(link) - 1);
    if (n == -1)
        return -1;
    link[n] = '\0';
    if (strstr(link, " (deleted)") != NULL)
        *strstr(link, " (deleted)") = '\0';
    fd = memfd_create(link + strlen("/memfd:"), MFD_CLOEXEC);
    return write(fd, "x", 1) == 1 && fstat(fd, &st) == 0 ? (int)st.st_size : -1;
}

static const char *lock_beside_a_copy(const char *path)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
    const int copy = open_copy(path), file = open(path, O_RDWR);
    const char *found;

    if (copy == -1)
        return "no copy";
    if (file == -1 || fcntl(file, F_SETLK, &lock) == -1 || !is_locked(path))
        return "no lock";
    if (flock(copy, LOCK_SH | LOCK_NB) == -1)
        return "no second lock";
    found = is_locked(path) ? "held" : "lost";
    close(copy);
    close(file);
    return found;
}

static void load(const char *library)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_GLOBAL | RTLD_DEEPBIND);

    if (handle == NULL)
        exit(3);
    *(void **)&look = dlsym(handle, "extension_stat");
}

static int read_all(const char *path)
{
    char buf[4096];
    int fd = open(path, O_RDONLY), result = fd != -1 ? 0 : errno;

    while (fd != -1 && read(fd, buf, sizeof(buf)) > 0)
        ;
    if (fd != -1)
        close(fd);
    return result;
}

static bool is_ours(DIR *d)
{
    void *first;

    memcpy(&first, d, sizeof(first));
    return first == (void *)d;
}

/* Which way shows other names than readdir(); 0: none. */
static int read_directory(const char *path, bool *kept_r)
{
    struct dirent entry, *found, **list;
    struct stat st, raw;
    char name[300], pattern[5000];
    glob_t g;
    DIR *d = opendir(path), *again = opendir(path);
    long at, n = 0;

    *kept_r = is_ours(d);
    snprintf(name, sizeof(name), "%s", readdir(d)->d_name);
    if (readdir_r(again, &entry, &found) != 0 || found == NULL || strcmp(entry.d_name, name) != 0)
        return 1;
    at = telldir(d);
    snprintf(name, sizeof(name), "%s", readdir(d)->d_name);
    while (readdir(d) != NULL)
        ;
    seekdir(d, at);
    if (strcmp(readdir(d)->d_name, name) != 0)
        return 2;
    for (rewinddir(d); readdir(d) != NULL;)
        n++;
    if (scandir(path, &list, NULL, NULL) != n)
        return 3;
    while (n-- > 0)
        free(list[n]);
    free(list);
    if (fstat(dirfd(again), &st) == -1 || stat(path, &raw) == -1 || st.st_ino != raw.st_ino || is_ours(again) != *kept_r)
        return 4;
    if (strcmp(readdir(again)->d_name, name) != 0)
        return 5;
    snprintf(pattern, sizeof(pattern), "%s/*", path);
    if (glob(pattern, GLOB_MARK, NULL, &g) != 0 || g.gl_pathc == 0 || (g.gl_flags & GLOB_ALTDIRFUNC) != 0)
        return 6;
    globfree(&g);
    return closedir(d) != 0 || closedir(again) != 0 ? 7 : 0;
}

static int flood(const char *path)
{
    struct stat st;
    char name[5000];
    int found = 0;

    for (int i = 0; i < 50000; i++) {
        snprintf(name, sizeof(name), "%s/%d-%d", path, (int)getpid(), i);
        found += stat(name, &st) == 0;
    }
    return found;
}

static int limit(rlim_t descriptors)
{
    struct rlimit now;

    getrlimit(RLIMIT_NOFILE, &now);
    now.rlim_cur = descriptors;
    return setrlimit(RLIMIT_NOFILE, &now) == 0 ? 0 : errno;
}

static void go_on_in_a_child(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        return;
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 4);
}

/* "PATH TEXT": the file has that text then. */
static int put(char *path)
{
    char *text = strrchr(path, ' ');
    int fd;

    *text++ = '\0';
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd == -1 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return errno;
    close(fd);
    return 0;
}

/* "PATH MODE" */
static int ask_access(char *path)
{
    char *mode = strrchr(path, ' ');

    *mode++ = '\0';
    return access(path, atoi(mode)) == 0 ? 0 : errno;
}

static void obey(const char *word, char *path)
{
    struct stat st;
    bool kept = false;

    if (strcmp(word, "stat") == 0)
        printf("%d\n", look(path, &st) == 0 ? 0 : errno);
    else if (strcmp(word, "access") == 0)
        printf("%d\n", ask_access(path));
    else if (strcmp(word, "size") == 0)
        printf("%d\n", look(path, &st) == 0 ? (int)st.st_size : -errno);
    else if (strcmp(word, "put") == 0)
        printf("%d\n", put(path));
    else if (strcmp(word, "remove") == 0)
        printf("%d\n", unlink(path) == 0 ? 0 : errno);
    else if (strcmp(word, "answered") == 0)
        printf("%lu\n", answered());
    else if (strcmp(word, "until") == 0)
        printf("%s\n", until(path));
    else if (strcmp(word, "count") == 0)
        printf("%lu\n", count(path, 1000));
    else if (strcmp(word, "fork") == 0)
        go_on_in_a_child(), printf("forked\n");
    else if (strcmp(word, "open") == 0)
        printf("%d\n", read_all(path));
    else if (strcmp(word, "flood") == 0)
        printf("%d\n", flood(path));
    else if (strcmp(word, "directory") == 0)
        printf("%d ", read_directory(path, &kept)), printf("%s\n", kept ? "kept" : "read");
    else if (strcmp(word, "limit") == 0)
        printf("%d\n", limit((rlim_t)atoi(path)));
    else if (strcmp(word, "close") == 0)
        printf("%d\n", close_range(3, ~0u, 0));
    else if (strcmp(word, "load") == 0)
        load(path), printf("loaded\n");
    else if (strcmp(word, "preload") == 0)
        printf("%s\n", getenv("LD_PRELOAD") != NULL ? getenv("LD_PRELOAD") : "");
    else if (strcmp(word, "namespace") == 0)
        printf("%d\n", unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 ? 0 : errno);
    else if (strcmp(word, "threads") == 0)
        printf("%ld\n", threads(path));
    else if (strcmp(word, "each") == 0)
        printf("%ld\n", by_four(ask_a_part, path));
    else if (strcmp(word, "loads") == 0)
        printf("%ld\n", by_four(load_and_close, path));
    else if (strcmp(word, "within") == 0)
        printf("%d\n", chdir(path) == 0 ? 0 : errno);
    else if (strcmp(word, "forge") == 0)
        printf("%d\n", forge(path));
    else if (strcmp(word, "lock") == 0)
        printf("%s\n", lock_beside_a_copy(path));
    fflush(stdout);
}

int main(void)
{
    char line[5000], *path;

    setvbuf(stdin, NULL, _IONBF, 0);
    *(void **)&answered = dlsym(RTLD_DEFAULT, "flashpache_files_answered");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        path = strchr(line, ' ');
        if (path != NULL)
            *path++ = '\0';
        obey(line, path);
    }
    return 0;
}
