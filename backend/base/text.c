/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/text.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define READ_AT_FIRST 65536 /* bytes; doubled as needed */

void fp_text_escape(char *to, size_t size, const char *from, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len && n + 5 <= size; i++) {
        unsigned char c = (unsigned char)from[i];

        if (c > ' ' && c < 0x7f && c != '\\')
            to[n++] = (char)c;
        else
            n += (size_t)snprintf(to + n, size - n, "\\%03o", c);
    }
    to[n] = '\0';
}

void fp_text_disarm(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++) {
        /* U+0080 to U+009F are controls, too. */
        const bool c1 = *c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f;

        if (*c < ' ' || *c == 0x7f || c1)
            *c = '?';
        if (c1)
            *++c = '?';
    }
}

bool fp_text_has_option(const char *options, const char *option)
{
    const size_t len = strlen(option);

    for (const char *p = options; *p != '\0'; p += strcspn(p, ","), p += *p == ',') {
        if (strcspn(p, ",") == len && strncmp(p, option, len) == 0)
            return true;
    }
    return false;
}

char *fp_text_read(int fd, size_t most, size_t *len_r)
{
    size_t size = READ_AT_FIRST, len = 0;
    char *text = malloc(size), *more = text;
    ssize_t n = 1;

    while (more != NULL && n > 0 && len <= most) {
        n = read(fd, text + len, size - len - 1);
        len += n > 0 ? (size_t)n : 0;
        more = len + 1 == size ? realloc(text, size *= 2) : n == 0 ? realloc(text, len + 1) : text;
        text = more != NULL ? more : text;
    }
    if (more == NULL || n != 0) {
        if (more != NULL && n > 0)
            errno = EFBIG;
        free(text);
        return NULL;
    }
    text[len] = '\0';
    *len_r = len;
    return text;
}

static int unit_ms(const char *unit)
{
    if (strcasecmp(unit, "ms") == 0)
        return 1;
    if (unit[0] == '\0' || strcasecmp(unit, "s") == 0)
        return 1000;
    return strcasecmp(unit, "min") == 0 || strcasecmp(unit, "mi") == 0 ? 60000 : 0;
}

int fp_text_ms(const char *text, int most)
{
    char *unit;
    const long n = strtol(text, &unit, 10);
    const int ms = text[0] >= '0' && text[0] <= '9' ? unit_ms(unit) : 0;

    return ms > 0 && n > 0 && n <= most / ms ? (int)n * ms : -1;
}

char *fp_text_line(char *buf, size_t size, const char **at, const char *end)
{
    size_t n = (size_t)(end - *at);
    const char *nl;

    if (n == 0)
        return NULL;
    if (n > size - 1)
        n = size - 1;
    nl = memchr(*at, '\n', n);
    if (nl != NULL)
        n = (size_t)(nl + 1 - *at);
    memcpy(buf, *at, n);
    buf[n] = '\0';
    *at += n;
    return buf;
}
