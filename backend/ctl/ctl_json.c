/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_json.h"

#include <inttypes.h>

#include "base/text.h"
#include "wire/wire.h"

static void write_string(FILE *to, const char *text)
{
    putc('"', to);
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            fprintf(to, "\\u%04x", c);
        else if (c > 0x7f)
            fprintf(to, "\\\\%03o", c);
        else
            putc(c, to);
    }
    putc('"', to);
}

/* Writes the comma and the key that stand before a value. */
static void lead(struct ctl_json *j, const char *key)
{
    if (j->comma)
        fputs(", ", j->to);
    j->comma = true;
    if (key == NULL)
        return;
    write_string(j->to, key);
    fputs(": ", j->to);
}

void ctl_json_begin(struct ctl_json *j, const char *key, char bracket)
{
    lead(j, key);
    putc(bracket, j->to);
    j->comma = false;
}

void ctl_json_end(struct ctl_json *j, char bracket)
{
    putc(bracket, j->to);
    j->comma = true;
}

void ctl_json_finish(struct ctl_json *j, char bracket)
{
    ctl_json_end(j, bracket);
    putc('\n', j->to);
}

void ctl_json_number(struct ctl_json *j, const char *key, uint64_t v)
{
    lead(j, key);
    fprintf(j->to, "%" PRIu64, v);
}

void ctl_json_bool(struct ctl_json *j, const char *key, bool v)
{
    lead(j, key);
    fputs(v ? "true" : "false", j->to);
}

void ctl_json_null(struct ctl_json *j, const char *key)
{
    lead(j, key);
    fputs("null", j->to);
}

void ctl_json_text(struct ctl_json *j, const char *key, const char *text)
{
    lead(j, key);
    write_string(j->to, text);
}

void ctl_json_path(struct ctl_json *j, const char *key, const char *path, size_t len)
{
    char text[4 * (FP_MAX_PATH + 1) + 1];

    fp_text_escape(text, sizeof(text), path, len);
    ctl_json_text(j, key, text);
}
