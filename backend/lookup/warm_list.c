/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "lookup/warm_list.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/keyed_hash.h"
#include "base/path.h"
#include "shared/area.h"
#include "wire/answer.h"
#include "wire/packet.h"

#define HEAD      "flashpached paths 2\n"
#define NAMES     "names"
#define END       "end %zu\n"
#define END_BYTES 32 /* room for the last line */

/* ---- writing ---- */

static bool append(struct fp_warm_text *t, const char *text, size_t len)
{
    t->len += len;
    t->hash = 31 * t->hash + fp_keyed_hash(text, len);
    return fwrite(text, 1, len, t->file) == len;
}

static bool has_line_end(const char *text, size_t len)
{
    return memchr(text, '\n', len) != NULL;
}

static bool append_head(struct fp_warm_text *t)
{
    bool ok = append(t, HEAD, strlen(HEAD)) && append(t, NAMES, strlen(NAMES));

    for (unsigned i = 0; ok && i < t->names->n; i++) {
        if (!has_line_end(t->names->list[i].name, t->names->list[i].len))
            ok = append(t, "/", 1) && append(t, t->names->list[i].name, t->names->list[i].len);
    }
    return ok && append(t, "\n", 1);
}

static bool begin(struct fp_warm_text *t)
{
    int fd = fp_memfd_create("flashpache-paths");

    t->file = fd != -1 ? fdopen(fd, "w") : NULL;
    if (t->file == NULL)
        fp_close(&fd);
    return t->file != NULL && append_head(t);
}

bool fp_warm_add(void *text, const char *path, size_t len)
{
    struct fp_warm_text *t = text;

    if (has_line_end(path, len))
        return true;
    if (t->paths == FP_WARM_PATHS || t->len + len + 1 > FP_WARM_BYTES - END_BYTES
        || (t->file == NULL && !begin(t)) || !append(t, path, len) || !append(t, "\n", 1))
        return false;
    t->paths++;
    return true;
}

bool fp_warm_end(struct fp_warm_text *t)
{
    char line[END_BYTES];

    return append(t, line, (size_t)snprintf(line, sizeof(line), END, t->paths)) && fflush(t->file) == 0
           && !ferror(t->file);
}

void fp_warm_drop(struct fp_warm_text *t)
{
    if (t->file != NULL)
        fclose(t->file);
    *t = (struct fp_warm_text){ .names = t->names };
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

static bool parse_names(const char *text, size_t len, struct fp_names *names)
{
    const size_t word = strlen(NAMES);
    const char *end = text + len;

    names->n = 0;
    if (len < word || memcmp(text, NAMES, word) != 0 || (len > word && text[word] != '/'))
        return false;
    for (text += word; text < end;) {
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

static const char *check_path(const char *line, size_t len, size_t *paths)
{
    if (!fp_path_is_normal(line, len) || fp_path_depth(line, len) > FP_MAX_STEPS)
        return "that is not a path in normal form";
    return ++*paths <= FP_WARM_PATHS ? NULL : "there are too many paths";
}

const char *fp_warm_check(struct fp_warm_reader *r)
{
    struct fp_warm_reader c = { .text = r->text, .len = r->len };
    const char *line, *wrong = NULL;
    char last[END_BYTES];
    size_t len, paths = 0;

    line = next_line(&c, &len);
    if (line == NULL || len + 1 != strlen(HEAD) || memcmp(line, HEAD, len) != 0)
        wrong = "it does not begin with \"flashpached paths 2\"";
    else if ((line = next_line(&c, &len)) == NULL || !parse_names(line, len, &c.names))
        wrong = "its second line has not the names of access files";
    while (wrong == NULL) {
        line = next_line(&c, &len);
        if (line == NULL) {
            wrong = "its last line is missing";
        } else if (len >= 4 && memcmp(line, "end ", 4) == 0) {
            const int n = snprintf(last, sizeof(last), END, paths);

            if (len + 1 != (size_t)n || memcmp(line, last, len) != 0 || c.at != c.len)
                wrong = "its number of paths is not the one that it gives";
            break;
        } else {
            wrong = check_path(line, len, &paths);
        }
    }
    r->line = c.line;
    return wrong;
}

void fp_warm_begin(struct fp_warm_reader *r)
{
    const char *line;
    size_t len;

    if (next_line(r, &len) != NULL && (line = next_line(r, &len)) != NULL)
        parse_names(line, len, &r->names);
}

bool fp_warm_next(struct fp_warm_reader *r, struct fp_lookup *l_r)
{
    size_t len;
    const char *line = next_line(r, &len);

    if (line == NULL || line[0] != '/')
        return false;
    *l_r = (struct fp_lookup){ .path = line, .path_len = len };
    return true;
}
