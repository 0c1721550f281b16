/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "fleet/fleet_message.h"

#include <string.h>

#define DIGITS_MAX 20 /* of a number of 64 bits */

static const struct {
    const char *word;
    size_t len;
    bool path;
} ops[] = {
    [FP_FLEET_PATH] = { " path ", 6, true },
    [FP_FLEET_TREE] = { " tree ", 6, true },
    [FP_FLEET_ALL] = { " all", 4, false },
    [FP_FLEET_JOIN] = { " join", 5, false },
};
#define OPS (sizeof(ops) / sizeof(ops[0]))

size_t fp_fleet_message_write(char *buf, const struct fp_fleet_message *m)
{
    size_t len = FP_FLEET_SENDER;

    memcpy(buf, m->sender, FP_FLEET_SENDER);
    memcpy(buf + len, ops[m->op].word, ops[m->op].len);
    len += ops[m->op].len;
    if (!ops[m->op].path)
        return len;
    memcpy(buf + len, m->path, m->path_len);
    return len + m->path_len;
}

static bool is_sender(const char *text)
{
    for (size_t i = 0; i < FP_FLEET_SENDER; i++) {
        if ((text[i] < '0' || text[i] > '9') && (text[i] < 'a' || text[i] > 'f'))
            return false;
    }
    return true;
}

bool fp_fleet_message_read(const char *text, size_t len, struct fp_fleet_message *m)
{
    memset(m, 0, sizeof(*m));
    if (len < FP_FLEET_SENDER || len > FP_MAX_FLEET_MESSAGE || !is_sender(text))
        return false;
    m->sender = text;
    text += FP_FLEET_SENDER;
    len -= FP_FLEET_SENDER;
    for (size_t i = 0; i < OPS; i++) {
        if (len < ops[i].len || memcmp(text, ops[i].word, ops[i].len) != 0)
            continue;
        m->op = (enum fp_fleet_op)i;
        if (!ops[i].path)
            return len == ops[i].len;
        m->path = text + ops[i].len;
        m->path_len = len - ops[i].len;
        return fp_path_is_normal(m->path, m->path_len);
    }
    return false;
}

/* How many digits the text begins with; 0: none, or too many. */
static size_t digits(const char *text, size_t len)
{
    size_t n = 0;

    while (n < len && text[n] >= '0' && text[n] <= '9')
        n++;
    return n <= DIGITS_MAX ? n : 0;
}

bool fp_fleet_is_id(const char *id, size_t len)
{
    size_t first = digits(id, len), second;

    if (first == 0 || first >= len || id[first] != '-')
        return false;
    second = digits(id + first + 1, len - first - 1);
    return second > 0 && first + 1 + second == len;
}
