/* SPDX-License-Identifier: Apache-2.0 */
/* The library that php-fpm is started with, by LD_PRELOAD: its beginning. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "files/own.h"

/* ---- for tests ---- */

__attribute__((visibility("default"))) unsigned long flashpache_files_answered(void);

unsigned long flashpache_files_answered(void)
{
    return atomic_load(&fp_files_own_counts()->of[FP_FILES_ANSWERED]);
}

/* ---- begin ---- */

#define OWN_NAME "libflashpache_files"

/* A program that this one starts looks itself. php-fpm starts itself anew to reload, in its first
 * process; it starts others in those that it forked. */
static void not_for_others(void)
{
    char *list = getenv("LD_PRELOAD"), *from = list, *to = list;

    while (from != NULL && *from != '\0') {
        const size_t len = strcspn(from, ": "), with = len + (from[len] != '\0');

        if (memmem(from, len, OWN_NAME, strlen(OWN_NAME)) == NULL) {
            memmove(to, from, with);
            to += with;
        }
        from += with;
    }
    if (list != NULL)
        *to = '\0';
}

/* Before php-fpm clears the environment of its workers. */
__attribute__((constructor)) static void begin(void)
{
    const char *roots = getenv("FLASHPACHE_FILES"), *socket = getenv("FLASHPACHE_SOCKET");
    const char *elsewhere = getenv("FLASHPACHE_ELSEWHERE");

    if (socket == NULL)
        socket = FP_DEFAULT_SOCKET;
    if (roots != NULL && fp_files_begin_own(roots, socket, elsewhere != NULL && strcmp(elsewhere, "yes") == 0))
        pthread_atfork(NULL, NULL, not_for_others);
}
