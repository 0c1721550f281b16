/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_out.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "wire/packet.h"
#include "wire/wire.h"

#define NAMES 3
#define PIECE 4096

struct output {
    int fd;
    bool begun; /* a byte that may begin a control of two waits for the next one */
};

/* U+0080 to U+009F are controls, too: 0xc2, and such a byte. */
static ssize_t write_guarded(void *cookie, const char *data, size_t size)
{
    struct output *o = cookie;
    char piece[2 * PIECE];
    size_t n = 0;

    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)data[i];
        const bool c1 = o->begun && c >= 0x80 && c <= 0x9f;

        if (o->begun)
            piece[n++] = c1 ? '?' : (char)0xc2;
        o->begun = c == 0xc2;
        if (!o->begun)
            piece[n++] = c1 || (c < ' ' && c != '\n') || c == 0x7f ? '?' : (char)c;
        if (n < PIECE && i + 1 < size)
            continue;
        if (!fp_write_all(o->fd, piece, n))
            return 0;
        n = 0;
    }
    return (ssize_t)size;
}

bool ctl_guard_output(void)
{
    static struct output outputs[] = { { .fd = STDOUT_FILENO }, { .fd = STDERR_FILENO } };
    static const cookie_io_functions_t functions = { .write = write_guarded };
    FILE *out = fopencookie(&outputs[0], "w", functions), *err = fopencookie(&outputs[1], "w", functions);

    if (out == NULL || err == NULL)
        return false;
    setvbuf(out, NULL, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, BUFSIZ);
    setvbuf(err, NULL, _IONBF, 0);
    stdout = out;
    stderr = err;
    return true;
}

const char *ctl_name(const char *name, size_t len)
{
    static char names[NAMES][2 * FP_MAX_PATH + 2];
    static unsigned number;
    char *to = names[number++ % NAMES];

    snprintf(to, sizeof(names[0]), "%.*s", (int)len, name);
    fp_text_disarm(to);
    return to;
}
