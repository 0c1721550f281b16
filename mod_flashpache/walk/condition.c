/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk/condition.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* One argument of a directive: a part of its line. */
struct argument {
    const char *text;
    size_t len;
};

static bool is_space(char c)
{
    return isspace((unsigned char)c) != 0;
}

/* Takes the next argument as mod_rewrite does. False: no argument is left, or its quote has no end. */
static bool take(const char **at, struct argument *a)
{
    const char *s = *at;
    char quote = '\0';

    while (is_space(*s))
        s++;
    if (*s == '"' || *s == '\'')
        quote = *s++;
    a->text = s;
    while (*s != '\0' && (quote != '\0' ? *s != quote : !is_space(*s)))
        s += s[0] == '\\' && is_space(s[1]) ? 2 : 1;
    a->len = (size_t)(s - a->text);
    *at = *s != '\0' ? s + 1 : s;
    return quote != '\0' ? *s == quote : a->len > 0;
}

/* The letter of a test that asks for a file's metadata; '\0': the pattern is no such test. */
static char test_of(const struct argument *pattern, bool *negated_r)
{
    const char *s = pattern->text;

    *negated_r = pattern->len > 0 && *s == '!';
    if (pattern->len != *negated_r + 2u || s[*negated_r] != '-')
        return '\0';
    s += *negated_r + 1;
    return strchr("fdslLhx", *s) != NULL ? *s : '\0';
}

/*
 * True if the text means the same within a map's key. The key ends at the brace that closes the
 * first one, escaped or not. Its default begins at a bar outside of further braces.
 */
static bool may_be_key(const struct argument *a)
{
    unsigned depth = 0;

    for (size_t i = 0; i < a->len; i++) {
        const char c = a->text[i];

        if (c == '"' || (c == '|' && depth == 0) || (c == '}' && depth == 0))
            return false;
        depth += c == '{';
        depth -= c == '}';
        if (c != '\\')
            continue;
        /* An escaped brace or bar is text to mod_rewrite, but would count within a key. */
        if (++i == a->len || strchr("{}|\"'", a->text[i]) != NULL)
            return false;
    }
    return depth == 0;
}

bool fp_condition_translate(const char *args, char *buf)
{
    struct argument test, pattern;
    bool negated;
    char letter;

    if (!take(&args, &test) || !take(&args, &pattern))
        return false;
    letter = test_of(&pattern, &negated);
    if (letter == '\0' || !may_be_key(&test))
        return false;
    /* mod_rewrite would read the pattern as an expression. */
    if (test.len == 4 && strncasecmp(test.text, "expr", 4) == 0)
        return false;
    buf += sprintf(buf, "\"${" FP_CONDITION_MAP ":-%c:", letter);
    memcpy(buf, test.text, test.len);
    sprintf(buf + test.len, "}\" %s-eq-%c %s", negated ? "!" : "", letter, args);
    return true;
}
