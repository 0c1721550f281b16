/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths from which walks never came back, because a mount did not answer that neither names nor entries show:
 * a link leads there.  Each counts for a while, and only if the mount is out of service: the link may change.
 */
#ifndef FP_LOOKUP_DETOURS_H
#define FP_LOOKUP_DETOURS_H

#include <stddef.h>
#include <stdint.h>

#define FP_MAX_DETOURS 64
#define FP_DETOUR_MS   5000 /* then a walk looks again */

struct fp_mount_health;

/* Begins as zeroes. */
struct fp_detours {
    struct fp_detour {
        uint32_t mount; /* 0: free */
        uint64_t until_ms;
        char *path;
    } list[FP_MAX_DETOURS];
    unsigned next; /* that is replaced */
};

/* A walk of the path hangs at that mount.  Without memory it is not noted. */
void fp_detours_note(struct fp_detours *d, uint32_t mount, const char *path, size_t len, uint64_t now_ms);

/* The mount that the path, or what it lies below, led to; 0: none that is out of service.  from_r: the length of
 * what is known to lead there, set where there is one. */
uint32_t fp_detours_find(const struct fp_detours *d, struct fp_mount_health *health, const char *path,
                         size_t len, uint64_t now_ms, size_t *from_r);

/* Those of the path and of all below it. */
void fp_detours_forget(struct fp_detours *d, const char *path, size_t len);

/* All of them. */
void fp_detours_clear(struct fp_detours *d);

#endif
