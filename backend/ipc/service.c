/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ipc/service.h"

#include <unistd.h>

#include "wire/packet.h"

#ifdef HAVE_SYSTEMD

#include <inttypes.h>
#include <stdint.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <time.h>

#include "base/log.h"

bool fp_service_take_socket(int *sock_r)
{
    const int n = sd_listen_fds(1);

    *sock_r = n == 1 ? SD_LISTEN_FDS_START : -1;
    fp_close_all((unsigned)(n == 1 ? SD_LISTEN_FDS_START + 1 : SD_LISTEN_FDS_START), ~0u);
    if (n > 1)
        fp_log(FP_LOG_ERROR, 5,
               "the service manager passed %d sockets: one is needed, a "
               "ListenSequentialPacket= at our socket's path",
               n);
    return n <= 1;
}

void fp_service_say_ready(void)
{
    sd_notify(0, "READY=1\nSTATUS=Serving");
}

/* The message has the time, which distinguishes this reload from an earlier one. */
void fp_service_say_reloading(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
               (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000);
}

void fp_service_say_stopping(void)
{
    sd_notify(0, "STOPPING=1");
}

#else

bool fp_service_take_socket(int *sock_r)
{
    *sock_r = -1;
    fp_close_all(STDERR_FILENO + 1, ~0u);
    return true;
}

void fp_service_say_ready(void)
{
}

void fp_service_say_reloading(void)
{
}

void fp_service_say_stopping(void)
{
}

#endif
