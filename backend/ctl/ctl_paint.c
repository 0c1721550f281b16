/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_paint.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_colourful(void)
{
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");

    return isatty(STDOUT_FILENO) && (no_colour == NULL || no_colour[0] == '\0')
           && (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

const char *ctl_paint(enum ctl_state state)
{
    static const char *const begins[] = { "\033[32m", "\033[33m", "\033[1;31m" };

    return is_colourful() ? begins[state] : "";
}

const char *ctl_plain(void)
{
    return is_colourful() ? "\033[m" : "";
}

void ctl_put_line(const char *line, const char *alarm)
{
    const size_t len = strlen(line), end = strlen(alarm);

    if (len >= end && strcmp(line + len - end, alarm) == 0)
        printf("%s%s%s\n", ctl_paint(CTL_ERROR), line, ctl_plain());
    else
        puts(line);
}
