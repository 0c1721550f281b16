/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "behaviour.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const delay_keys[SLOWFS_DELAYED_COUNT] = {
    [SLOWFS_LOOKUP] = "lookup-us",
    [SLOWFS_GETATTR] = "getattr-us",
    [SLOWFS_OPEN] = "open-us",
};

static const struct {
    const char *name;
    int value;
} error_names[] = {
    { "EIO", EIO },         { "ESTALE", ESTALE },       { "EACCES", EACCES }, { "EPERM", EPERM },
    { "ENOENT", ENOENT },   { "ENOTCONN", ENOTCONN },   { "EINTR", EINTR },   { "ENOMEM", ENOMEM },
    { "ENOTDIR", ENOTDIR }, { "ETIMEDOUT", ETIMEDOUT }, { "EMFILE", EMFILE }, { "ELOOP", ELOOP },
};

int slowfs_parse_us(const char *text, uint64_t *us_r)
{
    char *end;
    unsigned long long value;

    if (text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || value > SLOWFS_MAX_DELAY_US)
        return -1;
    *us_r = value;
    return 0;
}

const char *slowfs_mode_name(enum slowfs_mode mode)
{
    switch (mode) {
    case SLOWFS_NORMAL: return "normal";
    case SLOWFS_HANG: return "hang";
    case SLOWFS_HANG_FLUSH: return "hang-flush";
    case SLOWFS_ERROR: return "error";
    }
    return "unknown";
}

static int set_error(struct slowfs_behaviour *b, const char *name)
{
    for (size_t i = 0; i < sizeof(error_names) / sizeof(error_names[0]); i++) {
        if (strcmp(error_names[i].name, name) == 0) {
            b->mode = SLOWFS_ERROR;
            b->error = error_names[i].value;
            return 0;
        }
    }
    return -1;
}

static int set_delay(struct slowfs_behaviour *b, const char *key, const char *value)
{
    uint64_t us;
    int known = 0;

    if (slowfs_parse_us(value, &us) != 0)
        return -1;
    for (int i = 0; i < SLOWFS_DELAYED_COUNT; i++) {
        if (delay_keys[i] == NULL) /* a flush has no delay */
            continue;
        if (strcmp(key, delay_keys[i]) == 0 || strcmp(key, "delay-us") == 0) {
            b->delay_us[i] = us;
            known = 1;
        }
    }
    return known ? 0 : -1;
}

static int apply_word(struct slowfs_behaviour *b, char *word)
{
    char *equals = strchr(word, '=');

    if (equals == NULL) {
        if (strcmp(word, "normal") == 0)
            b->mode = SLOWFS_NORMAL;
        else if (strcmp(word, "hang") == 0)
            b->mode = SLOWFS_HANG;
        else if (strcmp(word, "hang-flush") == 0)
            b->mode = SLOWFS_HANG_FLUSH;
        else
            return -1;
        return 0;
    }
    *equals = '\0';
    if (strcmp(word, "error") == 0)
        return set_error(b, equals + 1);
    return set_delay(b, word, equals + 1);
}

static int apply_line(struct slowfs_behaviour *b, char *line, char *why, size_t why_size)
{
    char *save = NULL;
    char *comment = strchr(line, '#');

    if (comment != NULL)
        *comment = '\0';
    for (char *word = strtok_r(line, " \t\r\n", &save); word != NULL;
         word = strtok_r(NULL, " \t\r\n", &save)) {
        if (apply_word(b, word) != 0) {
            (void)snprintf(why, why_size,
                           "\"%s\" is not understood; use lookup-us=N, getattr-us=N, open-us=N, "
                           "delay-us=N, normal, hang, hang-flush or error=EIO",
                           word);
            return -1;
        }
    }
    return 0;
}

int slowfs_control_read(const char *path, const struct slowfs_behaviour *initial,
                        struct slowfs_behaviour *behaviour_r, char *why, size_t why_size)
{
    struct slowfs_behaviour b = *initial;
    char line[512];
    int status = 0;
    FILE *file = fopen(path, "re");

    if (file == NULL) {
        (void)snprintf(why, why_size, "cannot open: %s", strerror(errno));
        return -1;
    }
    while (status == 0 && fgets(line, sizeof(line), file) != NULL)
        status = apply_line(&b, line, why, why_size);
    if (status == 0 && ferror(file)) {
        (void)snprintf(why, why_size, "cannot read it");
        status = -1;
    }
    (void)fclose(file);
    if (status == 0)
        *behaviour_r = b;
    return status;
}
