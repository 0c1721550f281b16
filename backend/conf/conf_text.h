/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of a configuration file, as words, quoted texts and signs.
 *
 * A mistake is one line on stderr, with the file and the line.  A comment or a text without an end,
 * and a character that means nothing, is one.
 */
#ifndef FP_CONF_TEXT_H
#define FP_CONF_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define FP_MAX_CONF_TEXT (1u << 20) /* bytes of a file */

enum fp_conf_token { FP_CONF_END, FP_CONF_WORD, FP_CONF_QUOTED, FP_CONF_SIGN, FP_CONF_MISTAKE };

struct fp_conf_text {
    const char *file; /* NULL: a setting of the command line */
    bool looks_up;    /* names of users and groups are to exist */
    unsigned line;
    char *pos, *end;
    char *token; /* the last one, without quotes */
    size_t token_len;
};

/* Begins with a string of that length, which is changed while it is read.  False: it has bytes that are no text. */
bool fp_conf_text_begin(struct fp_conf_text *t, char *text, size_t len);

/* The next word, text or sign ("=", "+=", "{", "}" and the like). */
enum fp_conf_token fp_conf_text_next(struct fp_conf_text *t);

/* The last word or quoted text, terminated; it lies in the string.  A word in front of which there is
 * nothing has no place for that: it is none of a value. */
const char *fp_conf_text_value(struct fp_conf_text *t, enum fp_conf_token token);

/* Says the mistake.  Returns false. */
bool fp_conf_mistake(const struct fp_conf_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
