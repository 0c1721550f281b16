/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "daemon_place.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <httpd.h>
#include <http_config.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/packet.h"

#define DIRECTORY   "flashpache"
#define SOCKET_NAME "flashpached.sock"
#define LOCK_NAME   SOCKET_NAME ".lock"

const char *fp_daemon_socket(apr_pool_t *p)
{
    return ap_runtime_dir_relative(p, DIRECTORY "/" SOCKET_NAME);
}

/* What another User's daemon left behind.  False: one still serves there. */
static int clear(int dir)
{
    int lock = openat(dir, LOCK_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int idle = lock == -1 ? errno == ENOENT : flock(lock, LOCK_EX | LOCK_NB) == 0;

    if (idle) {
        unlinkat(dir, LOCK_NAME, 0);
        unlinkat(dir, SOCKET_NAME, 0);
    }
    fp_close(&lock);
    return idle;
}

/* Root gives it to the user. */
static const char *hand_over(apr_pool_t *p, const char *path, int dir, uid_t uid, gid_t gid)
{
    struct stat st;

    if (fstat(dir, &st) == -1)
        return apr_psprintf(p, "cannot look at the directory %s: %pm", path, &errno);
    if (st.st_uid != uid && (geteuid() != 0 || (st.st_uid != 0 && !clear(dir))))
        return apr_psprintf(p, "the directory %s belongs to uid %u, whose flashpached may be "
                            "running; give each httpd a DefaultRuntimeDir of its own", path,
                            (unsigned)st.st_uid);
    if ((st.st_uid != uid || st.st_gid != gid) && fchown(dir, uid, gid) == -1)
        return apr_psprintf(p, "cannot give the directory %s to uid %u gid %u: %pm", path,
                            (unsigned)uid, (unsigned)gid, &errno);
    if ((st.st_mode & 07777) != 0700 && fchmod(dir, 0700) == -1)
        return apr_psprintf(p, "cannot close the directory %s to others: %pm", path, &errno);
    return NULL;
}

const char *fp_daemon_place_make(apr_pool_t *p, uid_t uid, gid_t gid)
{
    const apr_size_t room = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;
    const char *path = ap_runtime_dir_relative(p, DIRECTORY);
    const char *socket = fp_daemon_socket(p), *wrong;
    int dir;

    if (path == NULL || strlen(socket) > room)
        return apr_psprintf(p, "the socket's path would have more than %" APR_SIZE_T_FMT
                            " bytes; choose a shorter DefaultRuntimeDir", room);
    if (mkdir(path, 0700) == -1 && errno != EEXIST)
        return apr_psprintf(p, "cannot make the directory %s: %pm; see to DefaultRuntimeDir",
                            path, &errno);
    /* Not through a link: what it led to would be given away. */
    dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir == -1)
        return apr_psprintf(p, "cannot open the directory %s: %pm; remove what is there", path,
                            &errno);
    wrong = hand_over(p, path, dir, uid, gid);
    fp_close(&dir);
    return wrong;
}
