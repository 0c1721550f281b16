/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "conf/conf_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Characters that end a word without quotes; a slash that begins a comment does so only before a word. */
#define NO_WORD " #\"'\t\n\r={}()+,*"

enum token { END, WORD, QUOTED, SIGN, MISTAKE };

/* A setting that was given, with the number of its section: 0 is the file itself. */
struct given {
    const char *key;
    size_t len;
    unsigned section;
};

struct text {
    const char *file;
    char *pos, *end;
    unsigned line;
    char *token; /* the last one */
    size_t token_len;
    struct given *given;
    size_t n_given, room;
    unsigned sections; /* so far */
    unsigned depth;
};

static enum token mistake(const struct text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static enum token mistake(const struct text *t, const char *format, ...)
{
    va_list ap;

    fprintf(stderr, "flashpached: %s:%u: ", t->file, t->line);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    return MISTAKE;
}

/* ---- tokens, as libconfuse separates them ---- */

static void blank(char *from, const char *to)
{
    for (; from < to; from++) {
        if (*from != '\n')
            *from = ' ';
    }
}

static bool begins(const struct text *t, const char *with)
{
    return (size_t)(t->end - t->pos) >= strlen(with) && memcmp(t->pos, with, strlen(with)) == 0;
}

static bool blank_line(struct text *t)
{
    char *end = memchr(t->pos, '\n', (size_t)(t->end - t->pos));

    if (end == NULL)
        end = t->end;
    blank(t->pos, end);
    t->pos = end;
    return true;
}

static bool blank_block(struct text *t)
{
    char *end = memmem(t->pos + 2, (size_t)(t->end - t->pos) - 2, "*/", 2);

    if (end == NULL) {
        mistake(t, "a comment begins with /* and has no end");
        return false;
    }
    for (const char *c = t->pos; c < end; c++)
        t->line += *c == '\n';
    blank(t->pos, end + 2);
    t->pos = end + 2;
    return true;
}

/* Skips blanks, line ends and comments.  False: a mistake. */
static bool skip(struct text *t)
{
    bool good = true;

    while (good && t->pos < t->end) {
        if (*t->pos == '#' || begins(t, "//"))
            good = blank_line(t);
        else if (begins(t, "/*"))
            good = blank_block(t);
        else if (strchr(" \t\r\n", *t->pos) != NULL)
            t->line += *t->pos++ == '\n';
        else
            break;
    }
    return good;
}

/* The place behind the reference to a variable of the environment at from; without a reference, from. */
static char *skip_variable(const struct text *t, char *from)
{
    char *end = NULL;

    if (t->end - from >= 2 && from[0] == '$' && from[1] == '{')
        end = memchr(from, '}', (size_t)(t->end - from));
    return end != NULL ? end + 1 : from;
}

static enum token quoted(struct text *t)
{
    const char quote = *t->pos;
    const unsigned line = t->line;
    char *c = t->pos + 1;

    while (c < t->end && *c != quote) {
        char *behind = quote == '"' ? skip_variable(t, c) : c;

        if (behind == c)
            behind += *c == '\\' && c + 1 < t->end ? 2 : 1;
        for (; c < behind; c++)
            t->line += *c == '\n';
    }
    if (c >= t->end) {
        t->line = line;
        return mistake(t, "a text begins with %c and has no end", quote);
    }
    t->token_len = (size_t)(c + 1 - t->pos);
    t->pos = c + 1;
    return QUOTED;
}

static enum token next(struct text *t)
{
    char *behind;

    if (!skip(t))
        return MISTAKE;
    if (t->pos == t->end)
        return END;
    t->token = t->pos;
    t->token_len = 1;
    if (*t->pos == '"' || *t->pos == '\'')
        return quoted(t);
    behind = skip_variable(t, t->pos);
    if (behind == t->pos)
        behind += strcspn(t->pos, NO_WORD);
    if (behind > t->pos) {
        t->token_len = (size_t)(behind - t->pos);
        t->pos = behind;
        return WORD;
    }
    if (begins(t, "+="))
        t->token_len = 2;
    else if (*t->pos == '+' || *t->pos == '*')
        return mistake(t, "unexpected \"%c\": put a text that has one in quotes", *t->pos);
    t->pos += t->token_len;
    return SIGN;
}

/* ---- what is given twice ---- */

static bool make_room(struct text *t)
{
    struct given *more;

    if (t->n_given < t->room)
        return true;
    more = realloc(t->given, (t->room * 2 + 64) * sizeof(*more));
    if (more == NULL) {
        mistake(t, "out of memory");
        return false;
    }
    t->given = more;
    t->room = t->room * 2 + 64;
    return true;
}

/* A section does not go on when another one has begun, so the last settings are looked at first. */
static bool was_given(const struct text *t, const struct given *g)
{
    for (size_t i = t->n_given; i > 0; i--) {
        const struct given *other = &t->given[i - 1];

        if (other->section == g->section && other->len == g->len && memcmp(other->key, g->key, g->len) == 0)
            return true;
        if (g->section != 0 && other->section != g->section)
            return false;
    }
    return false;
}

static bool give(struct text *t, const char *key, size_t len)
{
    const struct given g = { key, len, t->depth > 0 ? t->sections : 0 };

    if (memchr(key, '|', len) != NULL)
        mistake(t, "\"%.*s\": a section's settings are given in the section", (int)len, key);
    else if (was_given(t, &g))
        mistake(t, "%.*s is given twice: leave one out", (int)len, key);
    else if (make_room(t)) {
        t->given[t->n_given++] = g;
        return true;
    }
    return false;
}

/* ---- statements: KEY = VALUE, KEY = { LIST }, KEY { SECTION }, KEY TITLE { SECTION } ---- */

/* Takes a value, behind an equal sign. */
static bool take_value(struct text *t)
{
    enum token token = next(t);

    if (token == SIGN && *t->token == '{') {
        do {
            token = next(t);
        } while (token != MISTAKE && token != END && (token != SIGN || *t->token != '}'));
    }
    /* libconfuse reports missing values. */
    return token != MISTAKE;
}

/* Takes the sign behind the words of a statement, which says what they are.  A section with a title may
 * be there more than once. */
static bool take_sign(struct text *t, const char *key, size_t len, unsigned words)
{
    bool good = true;

    switch (*t->token) {
    case '=':
    case '+':
        if (words == 1)
            good = give(t, key, len);
        return good && take_value(t);
    case '{':
        if (words == 1)
            good = give(t, key, len);
        t->sections++;
        t->depth++;
        return good;
    case '}': t->depth -= t->depth > 0; return true;
    default: return true;
    }
}

static bool take_statement(struct text *t, bool *end_r)
{
    const char *key = NULL;
    size_t len = 0;
    unsigned words = 0;
    enum token token;

    while ((token = next(t)) == WORD || token == QUOTED) {
        if (words++ > 0)
            continue;
        if (token == QUOTED || *t->token == '$') {
            mistake(t, "%.*s: the name of a setting has no quotes", (int)t->token_len, t->token);
            return false;
        }
        key = t->token;
        len = t->token_len;
    }
    *end_r = token == END;
    return token != MISTAKE && (*end_r || take_sign(t, key, len, words));
}

/* ---- */

static bool check_bytes(struct text *t)
{
    unsigned char c;

    for (const char *p = t->pos; p < t->end; p++) {
        c = (unsigned char)*p;
        t->line += c == '\n';
        if ((c < ' ' && strchr("\t\n\r", c) == NULL) || c == '\0' || c == 0x7f) {
            mistake(t, "a byte of value %u, which is no text", c);
            return false;
        }
    }
    t->line = 1;
    return true;
}

bool fp_conf_text_check(char *text, size_t len, const char *file)
{
    struct text t = { .file = file, .pos = text, .end = text + len, .line = 1 };
    bool end = false, good = check_bytes(&t);

    while (good && !end)
        good = take_statement(&t, &end);
    free(t.given);
    return good;
}

char *fp_conf_text_read(int fd, size_t *len_r)
{
    char *text = malloc(FP_MAX_CONF_TEXT + 2), *fitting;
    size_t len = 0;
    ssize_t n = 1;

    while (text != NULL && n > 0 && len <= FP_MAX_CONF_TEXT) {
        n = read(fd, text + len, FP_MAX_CONF_TEXT + 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    if (text == NULL || n == -1 || len > FP_MAX_CONF_TEXT) {
        if (n > 0 && text != NULL)
            errno = EFBIG;
        free(text);
        return NULL;
    }
    text[len] = '\0';
    fitting = realloc(text, len + 1);
    *len_r = len;
    return fitting != NULL ? fitting : text;
}
