/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clocks of file servers, which may differ from this machine's. A file's times show a second change only
 * if the server's clock has advanced since the first one by the granularity of its times. No call asks a
 * server for its time. But its clock is at least at the latest change time that it has ever told, and goes on
 * from there.
 */
#ifndef FP_SERVER_CLOCK_H
#define FP_SERVER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/answer.h"

/*
 * True if FP_SETTLED_MS have passed since that change time, by this machine's clock and by that of the
 * device's server. Later changes then show in the file's times. The first file that a process asks about is
 * not settled unless it has been known for so long. Threads may call it.
 */
bool fp_server_clock_has_settled(uint64_t dev, const struct fp_time *ctime);

/* fp_server_clock_has_settled() on a file system of that type (statfs.f_type): file systems of this machine
 * have its clock, which the caller has read. */
bool fp_server_clock_has_settled_on(uint32_t type, uint64_t dev, const struct fp_time *ctime);

/* Only notes a change time that the server told. */
void fp_server_clock_note(uint64_t dev, const struct fp_time *ctime);

/* How far the clock of a device's server is ahead of fp_now_ms() at least, in milliseconds; for another
 * process of this machine. */
int64_t fp_server_clock_get(uint64_t dev);
void fp_server_clock_learn(uint64_t dev, int64_t ahead_ms);

#endif
