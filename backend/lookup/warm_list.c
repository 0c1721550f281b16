/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/warm_list.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/path.h"
#include "wire/answer.h"

#define HEAD           "flashpached paths 1\n"
#define NAMES          "names"
#define END            "end %zu\n"
#define END_BYTES      32                 /* room for the last line */
#define LEAST_CAPACITY ((size_t)64 << 10) /* bytes that a text begins with */

/* ---- writing ---- */

/* Keeps room for the last line before that is written. */
static bool append_line(struct fp_warm_text *t, const char *text, size_t len, bool is_last)
{
    if (t->len + len > FP_WARM_BYTES - (is_last ? 0 : END_BYTES))
        return false;
    if (t->len + len > t->capacity) {
        const size_t twice = t->capacity < LEAST_CAPACITY ? LEAST_CAPACITY : 2 * t->capacity;
        const size_t more = twice < t->len + len ? t->len + len : twice;
        char *grown = fp_memory_resize(t->text, more);

        if (grown == NULL)
            return false;
        t->text = grown;
        t->capacity = more;
    }
    memcpy(t->text + t->len, text, len);
    t->len += len;
    return true;
}

static bool append(struct fp_warm_text *t, const char *text, size_t len)
{
    return append_line(t, text, len, false);
}

static bool has_line_end(const char *text, size_t len)
{
    return memchr(text, '\n', len) != NULL;
}

static bool can_be_written(const struct fp_names *names)
{
    for (unsigned i = 0; i < names->n; i++) {
        if (has_line_end(names->list[i].name, names->list[i].len))
            return false;
    }
    return true;
}

static bool append_names(struct fp_warm_text *t, const struct fp_names *names)
{
    bool ok = append(t, NAMES, strlen(NAMES));

    for (unsigned i = 0; ok && i < names->n; i++)
        ok = append(t, "/", 1) && append(t, names->list[i].name, names->list[i].len);
    fp_names_copy(&t->names, t->names_text, names);
    return ok && append(t, "\n", 1);
}

bool fp_warm_add(struct fp_warm_text *t, const struct fp_names *names, const char *path, size_t len)
{
    const size_t before = t->len;

    if (has_line_end(path, len) || !can_be_written(names))
        return true;
    if (t->paths < FP_WARM_PATHS && (t->len > 0 || append(t, HEAD, strlen(HEAD)))
        && (fp_names_equal(&t->names, names) || append_names(t, names)) && append(t, path, len)
        && append(t, "\n", 1)) {
        t->paths++;
        return true;
    }
    /* No half path stays in the text. */
    t->len = before;
    return false;
}

bool fp_warm_end(struct fp_warm_text *t)
{
    char line[END_BYTES];

    return append_line(t, line, (size_t)snprintf(line, sizeof(line), END, t->paths), true);
}

/* ---- reading ---- */

/* The next line without its end; NULL: there is no whole one. */
static const char *next_line(struct fp_warm_reader *r, size_t *len_r)
{
    const char *line = r->text + r->at, *end = memchr(line, '\n', r->len - r->at);

    if (end == NULL)
        return NULL;
    *len_r = (size_t)(end - line);
    r->at += *len_r + 1;
    r->line++;
    return line;
}

static bool is_names(const char *line, size_t len)
{
    const size_t word = strlen(NAMES);

    return len >= word && memcmp(line, NAMES, word) == 0 && (len == word || line[word] == '/');
}

/* Parses the rest of a line of names. */
static bool parse_names(const char *text, size_t len, struct fp_names *names)
{
    const char *end = text + len;

    names->n = 0;
    while (text < end) {
        const char *name = text + 1, *stop = memchr(name, '/', (size_t)(end - name));

        if (stop == NULL)
            stop = end;
        if (names->n == FP_MAX_NAMES || !fp_name_is_single(name, (size_t)(stop - name))
            || fp_names_find(names, name, (size_t)(stop - name)) != -1)
            return false;
        names->list[names->n].name = name;
        names->list[names->n++].len = (size_t)(stop - name);
        text = stop;
    }
    return true;
}

/* Returns NULL if the line is good.  *paths_r is counted up; *named: the line before was one of names. */
static const char *check_line(const char *line, size_t len, size_t *paths_r, bool *named)
{
    const bool was_named = *named;
    struct fp_names names;

    *named = is_names(line, len);
    if (*named && was_named)
        return "there is no path between two lines of names";
    if (*named)
        return parse_names(line + strlen(NAMES), len - strlen(NAMES), &names) ? NULL
                                                                              : "a name is none of a file";
    if (!fp_path_is_normal(line, len) || fp_path_depth(line, len) > FP_MAX_STEPS)
        return "that is no path in normal form";
    return ++*paths_r <= FP_WARM_PATHS ? NULL : "there are too many paths";
}

const char *fp_warm_check(struct fp_warm_reader *r)
{
    struct fp_warm_reader c = { .text = r->text, .len = r->len };
    const char *line, *wrong = NULL;
    char last[END_BYTES];
    size_t len, paths = 0;
    bool named = false;

    line = next_line(&c, &len);
    if (line == NULL || len + 1 != strlen(HEAD) || memcmp(line, HEAD, len) != 0)
        wrong = "it does not begin with \"flashpached paths 1\"";
    while (wrong == NULL) {
        line = next_line(&c, &len);
        if (line == NULL) {
            wrong = "its last line is missing";
        } else if (len >= 4 && memcmp(line, "end ", 4) == 0) {
            const int n = snprintf(last, sizeof(last), END, paths);

            if (len + 1 != (size_t)n || memcmp(line, last, len) != 0 || c.at != c.len)
                wrong = "it has not as many paths as it says";
            break;
        } else {
            wrong = check_line(line, len, &paths, &named);
        }
    }
    r->line = c.line;
    return wrong;
}

bool fp_warm_next(struct fp_warm_reader *r, struct fp_lookup *l_r)
{
    const char *line;
    size_t len;

    if (r->at == 0)
        next_line(r, &len);
    line = next_line(r, &len);
    if (line != NULL && is_names(line, len)) {
        parse_names(line + strlen(NAMES), len - strlen(NAMES), &r->names);
        line = next_line(r, &len);
    }
    if (line == NULL || line[0] != '/')
        return false;
    *l_r = (struct fp_lookup){ .path = line, .path_len = len };
    return true;
}
