// SPDX-License-Identifier: Apache-2.0
/*
 * A CGI that changes a file and answers with its URL, so that httpd serves the file in the same
 * request. QUERY_STRING: ACTION&FILE&TEXT&URL. It is a program and not a script because tests run
 * it ten thousand times.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ACTION, FILE_NAME, TEXT, URL, PARTS };

static int write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (fd == -1 || dprintf(fd, "%s\n", text) < 0)
        return -1;
    return close(fd);
}

static int replace(const char *path, const char *text)
{
    char other[4096];

    (void)snprintf(other, sizeof(other), "%s.new", path);
    return write_text(other, text) == 0 ? rename(other, path) : -1;
}

static int change(char **parts)
{
    if (strcmp(parts[ACTION], "write") == 0)
        return write_text(parts[FILE_NAME], parts[TEXT]);
    if (strcmp(parts[ACTION], "replace") == 0)
        return replace(parts[FILE_NAME], parts[TEXT]);
    return unlink(parts[FILE_NAME]);
}

int main(void)
{
    char *rest = getenv("QUERY_STRING");
    char *parts[PARTS];

    for (int i = 0; i < PARTS; i++)
        if ((parts[i] = strsep(&rest, "&")) == NULL)
            return 1;
    if (change(parts) != 0) {
        perror(parts[FILE_NAME]);
        return 1;
    }
    printf("Location: %s\n\n", parts[URL]);
    return 0;
}
