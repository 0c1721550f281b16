/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "fleet/fleet_trim.h"

#include <string.h>

#include "fleet/fleet_message.h"

#define MAX_FIELDS   2                    /* of an array inside another one: a message's, and fewer */
#define MAX_TEXT     FP_MAX_FLEET_MESSAGE /* bytes of a text */
#define MAX_LEFT_OUT (1u << 24)           /* elements; Redis' XADD takes a tenth of it */
#define LINE_END     2                    /* bytes of "\r\n" */

static const char no_answer[] = "this is not an answer of Redis";
static const char too_long[] = "an answer is too long";

/* Reads the number of "$12" or "*12"; -1 for an absent value. */
static bool read_number(const char *line, size_t len, int64_t *number_r)
{
    int64_t n = 0;

    if (len == 3 && memcmp(line + 1, "-1", 2) == 0) {
        *number_r = -1;
        return true;
    }
    /* So few digits cannot overflow. */
    if (len < 2 || len > 18)
        return false;
    for (size_t i = 1; i < len; i++) {
        if (line[i] < '0' || line[i] > '9')
            return false;
        n = n * 10 + (line[i] - '0');
    }
    *number_r = n;
    return true;
}

/* Counts one element that has been read whole; it may be the last one of arrays around it. */
static void end_element(struct fp_fleet_trim *t)
{
    if (t->out > 0 && --t->out > 0)
        return;
    while (t->depth > 0 && --t->left[t->depth - 1] == 0)
        t->depth--;
}

/* Begins a text of n bytes. */
static const char *begin_text(struct fp_fleet_trim *t, int64_t n, fp_fleet_kept *kept, void *ctx)
{
    t->text = (uint64_t)n + LINE_END;
    t->keep = t->out == 0 && n <= MAX_TEXT;
    if (t->keep || t->out > 0)
        return t->keep && !kept(ctx, t->line, t->line_len) ? too_long : NULL;
    return kept(ctx, "$0\r\n\r\n", 6) ? NULL : too_long;
}

/* Begins an array of n elements, more than none. */
static const char *begin_array(struct fp_fleet_trim *t, int64_t n, fp_fleet_kept *kept, void *ctx)
{
    if (t->out > 0) {
        t->out += (uint64_t)n - 1;
        return t->out <= MAX_LEFT_OUT ? NULL : too_long;
    }
    if (t->depth == 0 ? n > FP_MAX_FLEET_ENTRIES : n > MAX_LEFT_OUT)
        return too_long;
    if (t->depth > 0 && n > MAX_FIELDS) {
        t->out = (uint64_t)n;
        return kept(ctx, "*0\r\n", 4) ? NULL : too_long;
    }
    if (t->depth == FP_FLEET_TRIM_DEPTH)
        return too_long;
    t->left[t->depth++] = (uint64_t)n;
    return kept(ctx, t->line, t->line_len) ? NULL : too_long;
}

/* Takes a whole line, with its end. */
static const char *take_line(struct fp_fleet_trim *t, fp_fleet_kept *kept, void *ctx)
{
    const size_t len = t->line_len - LINE_END;
    int64_t n = 0;

    if (len == 0 || t->line[len] != '\r' || strchr("+-:$*", t->line[0]) == NULL || t->line[0] == '\0')
        return no_answer;
    if ((t->line[0] == '$' || t->line[0] == '*') && !read_number(t->line, len, &n))
        return no_answer;
    if (t->line[0] == '$' && n >= 0)
        return begin_text(t, n, kept, ctx);
    if (t->line[0] == '*' && n > 0)
        return begin_array(t, n, kept, ctx);
    if (t->out == 0 && !kept(ctx, t->line, t->line_len))
        return too_long;
    end_element(t);
    return NULL;
}

static const char *add_to_line(struct fp_fleet_trim *t, const char *bytes, size_t len, size_t *taken_r)
{
    const char *end = memchr(bytes, '\n', len);
    const size_t n = end != NULL ? (size_t)(end + 1 - bytes) : len;

    *taken_r = n;
    if (n > sizeof(t->line) - t->line_len)
        return too_long;
    memcpy(t->line + t->line_len, bytes, n);
    t->line_len += n;
    return end != NULL && t->line_len < LINE_END ? no_answer : NULL;
}

const char *fp_fleet_trim(struct fp_fleet_trim *t, const char *bytes, size_t len, fp_fleet_kept *kept,
                          void *ctx)
{
    const char *why = NULL;
    size_t n;

    for (; why == NULL && len > 0; bytes += n, len -= n) {
        if (t->text > 0) {
            n = t->text < len ? (size_t)t->text : len;
            if (t->keep && !kept(ctx, bytes, n))
                return too_long;
            t->text -= n;
            if (t->text == 0)
                end_element(t);
            continue;
        }
        why = add_to_line(t, bytes, len, &n);
        if (why == NULL && t->line[t->line_len - 1] == '\n') {
            why = take_line(t, kept, ctx);
            t->line_len = 0;
        }
    }
    return why;
}
