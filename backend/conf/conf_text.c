/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conf/conf_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/path.h"
#include "base/text.h"

/* Characters that end a word; a slash that begins a comment does so only before a word. */
#define NO_WORD " #\"'\t\n\r={}()+,*"

bool fp_conf_mistake(const struct fp_conf_text *t, const char *format, ...)
{
    char text[4 * FP_MAX_PATH];
    size_t len = 0;
    va_list ap;

    if (t->file != NULL)
        len = (size_t)snprintf(text, sizeof(text), "%.*s:%u: ", FP_MAX_PATH, t->file, t->line);
    va_start(ap, format);
    vsnprintf(text + len, sizeof(text) - len, format, ap);
    va_end(ap);
    fp_text_disarm(text);
    fprintf(stderr, "flashpached: %s\n", text);
    return false;
}

static bool begins(const struct fp_conf_text *t, const char *with)
{
    return strncmp(t->pos, with, strlen(with)) == 0;
}

static bool skip_block(struct fp_conf_text *t)
{
    const char *end = strstr(t->pos + 2, "*/");

    if (end == NULL)
        return fp_conf_mistake(t, "a comment begins with /* and never ends");
    for (; t->pos < end; t->pos++)
        t->line += *t->pos == '\n';
    t->pos += 2;
    return true;
}

/* Skips blanks, line ends and comments.  False: a mistake. */
static bool skip(struct fp_conf_text *t)
{
    while (t->pos < t->end) {
        if (*t->pos == '#' || begins(t, "//"))
            t->pos += strcspn(t->pos, "\n");
        else if (strchr(" \t\r\n", *t->pos) != NULL)
            t->line += *t->pos++ == '\n';
        else if (!begins(t, "/*"))
            return true;
        else if (!skip_block(t))
            return false;
    }
    return true;
}

/* Takes a text without its quotes, and without the backslashes in front of quotes and backslashes. */
static enum fp_conf_token take_quoted(struct fp_conf_text *t)
{
    const unsigned line = t->line;
    const char quote = *t->pos;
    char *from = t->pos + 1, *to = from;

    t->token = to;
    for (; from < t->end && *from != quote; *to++ = *from++) {
        t->line += *from == '\n';
        if (*from != '\\' || ++from == t->end || strchr("\\\"'", *from) != NULL)
            continue;
        fp_conf_mistake(t, "\\%c in a text: a backslash stands before quotes and backslashes alone", *from);
        return FP_CONF_MISTAKE;
    }
    if (from >= t->end) {
        t->line = line;
        fp_conf_mistake(t, "a text begins with %c and never ends", quote);
        return FP_CONF_MISTAKE;
    }
    t->token_len = (size_t)(to - t->token);
    *to = '\0';
    t->pos = from + 1;
    return FP_CONF_QUOTED;
}

enum fp_conf_token fp_conf_text_next(struct fp_conf_text *t)
{
    if (!skip(t))
        return FP_CONF_MISTAKE;
    if (t->pos == t->end)
        return FP_CONF_END;
    if (*t->pos == '"' || *t->pos == '\'')
        return take_quoted(t);
    t->token = t->pos;
    t->token_len = strcspn(t->pos, NO_WORD);
    t->pos += t->token_len;
    if (t->token_len > 0)
        return FP_CONF_WORD;
    t->token_len = begins(t, "+=") ? 2 : 1;
    if (t->token_len == 1 && (*t->pos == '+' || *t->pos == '*')) {
        fp_conf_mistake(t, "unexpected \"%c\": put a text that contains it in quotes", *t->pos);
        return FP_CONF_MISTAKE;
    }
    t->pos += t->token_len;
    return FP_CONF_SIGN;
}

/* What ends a word is still to be read, and what is in front of it has been. */
const char *fp_conf_text_value(struct fp_conf_text *t, enum fp_conf_token token)
{
    if (token == FP_CONF_QUOTED)
        return t->token;
    memmove(t->token - 1, t->token, t->token_len);
    t->token[t->token_len - 1] = '\0';
    return t->token - 1;
}

bool fp_conf_text_begin(struct fp_conf_text *t, char *text, size_t len)
{
    unsigned char c;

    t->line = 1;
    t->end = text + len;
    for (t->pos = text; t->pos < t->end; t->pos++) {
        c = (unsigned char)*t->pos;
        t->line += c == '\n';
        if ((c < ' ' && strchr("\t\n\r", c) == NULL) || c == '\0' || c == 0x7f)
            return fp_conf_mistake(t, "a byte of value %u, which is not text", c);
    }
    t->line = 1;
    t->pos = text;
    return true;
}
