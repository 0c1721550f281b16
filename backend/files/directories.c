/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "files/directories.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "files/answers.h"
#include "files/names.h"

struct fp_files_stream {
    struct fp_files_stream *self;    /* no stream of the C library begins with its own address */
    struct fp_files_names *names;    /* NULL: there is a real one */
    size_t at;                       /* in names */
    DIR *real;
    struct dirent entry;
    char path[];
};

bool fp_files_opendir(const char *path, DIR **d_r)
{
    struct fp_files_names *names;
    struct fp_files_stream *s;
    const int found = fp_files_names(path, &names);

    *d_r = NULL;
    if (found != 0) {
        if (found != FP_FILES_UNKNOWN)
            errno = found;
        return found != FP_FILES_UNKNOWN;
    }
    s = malloc(sizeof(*s) + strlen(path) + 1);
    if (s == NULL) {
        fp_files_names_release(&names);
        return false;
    }
    *s = (struct fp_files_stream){ .self = s, .names = names };
    strcpy(s->path, path);
    *d_r = (DIR *)s;
    return true;
}

struct fp_files_stream *fp_files_stream(DIR *d)
{
    struct fp_files_stream *s;

    if (d == NULL)
        return NULL;
    memcpy(&s, d, sizeof(s));
    return (void *)s == (void *)d ? s : NULL;
}

DIR *fp_files_stream_real(const struct fp_files_stream *s)
{
    return s->real;
}

const char *fp_files_stream_path(const struct fp_files_stream *s)
{
    return s->path;
}

struct dirent *fp_files_stream_next(struct fp_files_stream *s)
{
    const struct dirent64 *record = fp_files_names_next(s->names, &s->at);

    if (record == NULL)
        return NULL;
    memcpy(&s->entry, record,
           record->d_reclen < sizeof(s->entry) ? record->d_reclen : sizeof(s->entry));
    return &s->entry;
}

long fp_files_stream_count(const struct fp_files_stream *s)
{
    size_t at = 0;
    long n = 0;

    while (at < s->at && fp_files_names_next(s->names, &at) != NULL)
        n++;
    return n;
}

long fp_files_stream_tell(const struct fp_files_stream *s)
{
    return (long)s->at;
}

void fp_files_stream_seek(struct fp_files_stream *s, long to)
{
    s->at = 0;
    while (s->at < (size_t)to && fp_files_names_next(s->names, &s->at) != NULL)
        ;
}

bool fp_files_stream_rewind(struct fp_files_stream *s)
{
    struct fp_files_names *now;

    if (fp_files_names(s->path, &now) != 0)
        return false;
    if (!fp_files_names_are_same(s->names, now)) {
        fp_files_names_release(&now);
        return false;
    }
    fp_files_names_release(&s->names);
    s->names = now;
    s->at = 0;
    return true;
}

bool fp_files_stream_take(struct fp_files_stream *s, DIR *real, int fd)
{
    struct stat st;

    if (fstatat(fd, "", &st, AT_EMPTY_PATH) == -1 || !fp_files_names_are_of(s->names, st.st_dev, st.st_ino))
        return false;
    s->real = real;
    fp_files_names_release(&s->names);
    return true;
}

void fp_files_stream_close(struct fp_files_stream *s)
{
    fp_files_names_release(&s->names);
    s->self = NULL;
    free(s);
}
