/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths from which walks never came back.  A link led them to a mount that
 * did not answer, which neither names nor entries show.  Each path counts
 * for a while, and only if the mount is out of service: the link may change.
 */
#ifndef FP_LOOKUP_DETOURS_H
#define FP_LOOKUP_DETOURS_H

#include <stddef.h>
#include <stdint.h>

#define FP_MAX_DETOURS 64
#define FP_DETOUR_MS   5000 /* a path's time; then a walk looks again */

struct fp_mount_health;

/* Begins as zeroes. */
struct fp_detours {
    struct fp_detour {
        uint32_t mount; /* 0: free */
        uint64_t expires_ms;
        char *path;
    } list[FP_MAX_DETOURS];
    unsigned next; /* the one to be replaced */
};

/* Notes that a walk of the path hangs at that mount.  Without memory it is not noted. */
void fp_detours_note(struct fp_detours *d, uint32_t mount, const char *path, size_t len, uint64_t now_ms);

/* The mount that the path, or a directory above it, led to; 0: none that is out of service.  *from_r: the
 * length of the part that is known to lead there, set where there is one. */
uint32_t fp_detours_find(const struct fp_detours *d, struct fp_mount_health *health, const char *path,
                         size_t len, uint64_t now_ms, size_t *from_r);

/* Forgets the path and all below it. */
void fp_detours_forget(struct fp_detours *d, const char *path, size_t len);

/* Forgets all of them. */
void fp_detours_clear(struct fp_detours *d);

#endif
