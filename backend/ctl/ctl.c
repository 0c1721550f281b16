/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "ctl/ctl.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "shared/client.h"
#include "wire/socket_path.h"

#define NAMES 3

void ctl_complain(const char *format, ...)
{
    char text[4 * FP_MAX_PATH];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    /* Other users choose the names of files and sockets. */
    fp_text_disarm(text);
    fprintf(stderr, "flashpachectl: %s\n", text);
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

static const char *no_connection_text(const struct ctl *ctl)
{
    static const char *const texts[] = {
        [FP_NO_CONNECTION_ENDED] = "flashpached ended while it was asked; its log says why",
        [FP_NO_CONNECTION_MISSING] =
            "there is no such socket; start flashpached (systemctl start flashpached, or httpd with FlashpacheDaemon "
            "auto), or name its socket with -s or its configuration with -c",
        [FP_NO_CONNECTION_DENIED] = "permission denied; run this as root or as the daemon's user",
        [FP_NO_CONNECTION_DESERTED] =
            "nobody listens there; flashpached has ended, start it again (systemctl start flashpached, or restart httpd "
            "with FlashpacheDaemon auto)",
        [FP_NO_CONNECTION_REFUSED] =
            "flashpached refuses this user; run this as root or as the daemon's user. For root all of max_connections "
            "are taken (FP0012 in its log)"
    };

    return texts[fp_client_last(ctl->client).no_connection];
}

enum ctl_exit ctl_no_daemon(const struct ctl *ctl, fp_status why)
{
    if (why == FP_FOREIGN)
        ctl_complain("the process that listens at %s belongs to another user and is not trusted: run this "
                     "as the daemon's user or as root",
                     ctl->socket);
    else if (why == FP_CLOSED)
        ctl_complain("cannot reach flashpached at %s: %s", ctl->socket, no_connection_text(ctl));
    else if (why == FP_TIMEOUT)
        ctl_complain("flashpached at %s did not answer in time: -T allows more", ctl->socket);
    else
        ctl_complain("no answer from flashpached at %s: %s; are both of one release?", ctl->socket,
                     fp_status_text(why));
    return CTL_NO_DAEMON;
}

/* The sockets of the service, and of a daemon that httpd started on Debian or Fedora. */
const char *const ctl_usual_sockets[] = { FP_DEFAULT_SOCKET, "/run/apache2/flashpache/flashpached.sock",
                                          "/run/httpd/flashpache/flashpached.sock", NULL };

void ctl_each_process(void (*each)(void *ctx, const char *pid), void *ctx)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;

    while (proc != NULL && (e = readdir(proc)) != NULL) {
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
            each(ctx, e->d_name);
    }
    if (proc != NULL)
        closedir(proc);
}

int ctl_process_has(const char *pid, const char *file, int delimiter, const char *text)
{
    char path[64], *piece = NULL;
    size_t size = 0;
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, file);
    f = fopen(path, "re");
    if (f == NULL)
        return -1;
    while (!found && getdelim(&piece, &size, delimiter, f) != -1)
        found = strstr(piece, text) != NULL;
    fclose(f);
    free(piece);
    return found;
}

bool ctl_absolute(const char *path, char *buf)
{
    char dir[PATH_MAX];

    if (getcwd(dir, sizeof(dir)) == NULL) {
        if (path[0] != '/') {
            ctl_complain("%s: cannot find the working directory: %s", path, strerror(errno));
            return false;
        }
        strcpy(dir, "/");
    }
    if (fp_path_normalise(dir, path, buf))
        return true;
    ctl_complain("\"%s\" is not a path: it is empty or longer than %d bytes", path, FP_MAX_PATH);
    return false;
}
