/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl_paint.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl_out.h"

static bool is_colourful(void)
{
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");

    return isatty(STDOUT_FILENO) && (no_colour == NULL || no_colour[0] == '\0')
           && (terminal == NULL || strcmp(terminal, "dumb") != 0);
}

void ctl_paint(enum ctl_state state)
{
    static const char *const begins[] = { "\033[32m", "\033[33m", "\033[1;31m" };

    if (is_colourful())
        ctl_put_control(begins[state]);
}

void ctl_plain(void)
{
    if (is_colourful())
        ctl_put_control("\033[m");
}

void ctl_put_line(const char *line, const char *alarm)
{
    const size_t len = strlen(line), end = strlen(alarm);

    const bool is_alarm = len >= end && strcmp(line + len - end, alarm) == 0;

    if (is_alarm)
        ctl_paint(CTL_ERROR);
    fputs(line, stdout);
    if (is_alarm)
        ctl_plain();
    putchar('\n');
}
