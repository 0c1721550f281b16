/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdio.h>

void fp_text_escape(char *to, size_t size, const char *from, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len && n + 5 <= size; i++) {
        unsigned char c = (unsigned char)from[i];

        if (c > ' ' && c < 0x7f && c != '\\')
            to[n++] = (char)c;
        else
            n += (size_t)snprintf(to + n, size - n, "\\%03o", c);
    }
    to[n] = '\0';
}

void fp_text_disarm(char *text)
{
    for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++) {
        /* U+0080 to U+009F are controls, too. */
        const bool c1 = *c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f;

        if (*c < ' ' || *c == 0x7f || c1)
            *c = '?';
        if (c1)
            *++c = '?';
    }
}
