/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives each file of a target's corpus to the target once, so that what was found
 * stays found without libFuzzer.  With arguments: these files.
 */
#include "config.h"
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>

static bool run_file(const char *name)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    struct stat st;
    uint8_t *data;
    size_t size;

    if (fd == -1 || fstat(fd, &st) == -1) {
        perror(name);
        return false;
    }
    size = (size_t)st.st_size;
    /* Of the very size: what is read behind it is seen by valgrind and the sanitizers. */
    data = malloc(size > 0 ? size : 1);
    if (data == NULL || read(fd, data, size) != (ssize_t)size) {
        perror(name);
        return false;
    }
    fp_close(&fd);
    printf("%s\n", name);
    fflush(stdout);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return true;
}

static bool run_directory(const char *name)
{
    DIR *dir = opendir(name);
    char path[PATH_MAX + NAME_MAX + 2];
    unsigned done = 0;

    if (dir == NULL) {
        perror(name);
        return false;
    }
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        if (e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof(path), "%s/%s", name, e->d_name);
        if (!run_file(path))
            return false;
        done++;
    }
    closedir(dir);
    return done > 0;
}

int main(int argc, char **argv)
{
    const char *source = getenv("srcdir");
    char corpus[PATH_MAX];

    for (int i = 1; i < argc; i++) {
        if (!run_file(argv[i]))
            return EXIT_FAILURE;
    }
    if (argc > 1)
        return EXIT_SUCCESS;
    snprintf(corpus, sizeof(corpus), "%s/tests/fuzz/corpus/%s", source != NULL ? source : ".",
             basename(argv[0]));
    return run_directory(corpus) ? EXIT_SUCCESS : EXIT_FAILURE;
}
