/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "setup/daemon.h"

#include <ap_mpm.h>
#include <apr_strings.h>
#include <apr_thread_proc.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <http_config.h>
#include <http_log.h>
#include <mpm_common.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unixd.h>

#include "base/priv.h"
#include "setup/trial.h"
#include "shared/client.h"
#include "wire/packet.h"
#include "wire/socket_path.h"

APLOG_USE_MODULE(flashpache);

#define USERDATA    "flashpache: the daemon, 2"
#define FORMER      "flashpache: the daemon" /* of release 0.1.0: the same members, without the last two */
#define STEADY      apr_time_from_sec(30)    /* a daemon that lived this long starts again without a pause */
#define FIRST_PAUSE 1u                       /* seconds; doubled at each early death */
#define MOST_PAUSE  64u
#define FEW_GROUPS 256

#define DIRECTORY   "flashpache"
#define SOCKET_NAME "flashpached.sock"
#define LOCK_NAME   SOCKET_NAME ".lock"

/*
 * The parent keeps this over restarts, while httpd unloads and loads the module. So no function of
 * ours may be registered with a pool that outlives the configuration. A later release must find the
 * same members here.
 */
struct daemon {
    apr_pool_t *life; /* its destruction ends the daemon; NULL: none was started */
    apr_proc_t proc;
    pid_t parent;       /* of the process that started it */
    int channel;        /* the daemon's standard input is its other end */
    const char *origin; /* program, files and user of its start; allocated from life */
    apr_time_t begins;  /* when it starts, after the pause */
    unsigned pause;     /* seconds before it starts */

    /* The members below belong to the present configuration. */
    apr_pool_t *pconf;
    server_rec *server;
    const char *const *command;
    const char *wanted; /* the origin of a daemon that would start now */
    const char *socket;

    char place[FP_MAX_SOCKET_PATH + 1]; /* the socket of the running daemon */
};

static void maintain(int reason, void *data, apr_wait_t status);

static int as_root;                /* root started this httpd */
static bool compares_files = true; /* children compare their sight with the daemon's */

/* ---- the socket's directory ---- */

const char *fp_daemon_socket(apr_pool_t *p)
{
    return ap_runtime_dir_relative(p, DIRECTORY "/" SOCKET_NAME);
}

/* Removes what another user's daemon left in the directory. */
static void clear(int dir)
{
    unlinkat(dir, LOCK_NAME, 0);
    unlinkat(dir, SOCKET_NAME, 0);
}

/* True if no daemon serves there. */
static int is_idle(int dir)
{
    int lock = openat(dir, LOCK_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int idle = lock == -1 ? errno == ENOENT : flock(lock, LOCK_EX | LOCK_NB) == 0;

    fp_close(&lock);
    return idle;
}

/* Those who may write to the directory above can replace ours. */
static const char *check_above(apr_pool_t *p, const char *path, int dir)
{
    struct stat st;

    if (fstatat(dir, "..", &st, 0) == 0 && st.st_uid == 0
        && (!(st.st_mode & (S_IWGRP | S_IWOTH)) || (st.st_mode & S_ISVTX)))
        return NULL;
    return apr_psprintf(p,
                        "the directory above %s must belong to root, and nobody else may write to it; choose "
                        "another DefaultRuntimeDir, or chown it to root",
                        path);
}

/* Root owns the directory: only those who may write there decide who answers. The group may pass. */
static const char *keep_directory(apr_pool_t *p, const char *path, int dir, gid_t gid)
{
    const char *wrong = check_above(p, path, dir);
    struct stat st;

    if (wrong != NULL)
        return wrong;
    if (fstat(dir, &st) == -1)
        return apr_psprintf(p, "cannot look at the directory %s: %pm", path, &errno);
    if (st.st_uid != 0 && !is_idle(dir))
        return apr_psprintf(p,
                            "the directory %s belongs to uid %u, whose flashpached may be "
                            "running; give each httpd a DefaultRuntimeDir of its own",
                            path, (unsigned)st.st_uid);
    if (st.st_gid != gid && !is_idle(dir))
        return apr_psprintf(
            p,
            "the directory %s belongs to gid %u, and a flashpached of that group serves there; give "
            "each httpd a DefaultRuntimeDir of its own",
            path, (unsigned)st.st_gid);
    if (fchown(dir, 0, gid) == -1 || fchmod(dir, 0710) == -1)
        return apr_psprintf(p, "cannot give the directory %s to root and gid %u: %pm", path, (unsigned)gid,
                            &errno);
    /* From here on nobody else can make anything in the directory. */
    if (st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
        clear(dir);
    return NULL;
}

/* For an httpd that root did not start. */
static const char *check_directory(apr_pool_t *p, const char *path, int dir)
{
    struct stat st;

    if (fstat(dir, &st) == -1)
        return apr_psprintf(p, "cannot look at the directory %s: %pm", path, &errno);
    if (st.st_uid != geteuid())
        return apr_psprintf(
            p, "the directory %s belongs to uid %u; give each httpd a DefaultRuntimeDir of its own", path,
            (unsigned)st.st_uid);
    if ((st.st_mode & 07777) != 0700 && fchmod(dir, 0700) == -1)
        return apr_psprintf(p, "cannot close the directory %s to others: %pm", path, &errno);
    return NULL;
}

static const char *make_directory(apr_pool_t *p, gid_t gid)
{
    const char *path = ap_runtime_dir_relative(p, DIRECTORY);
    const char *socket = fp_daemon_socket(p), *wrong;
    int dir;

    if (path == NULL || strlen(socket) > FP_MAX_SOCKET_PATH)
        return apr_psprintf(p,
                            "the socket's path would have more than %" APR_SIZE_T_FMT
                            " bytes; choose a shorter DefaultRuntimeDir",
                            FP_MAX_SOCKET_PATH);
    if (mkdir(path, 0700) == -1 && errno != EEXIST)
        return apr_psprintf(p, "cannot make the directory %s: %pm; check DefaultRuntimeDir", path, &errno);
    /* O_NOFOLLOW: through a link, the link's target would be given away. */
    dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir == -1)
        return apr_psprintf(p, "cannot open the directory %s: %pm; remove what is there", path, &errno);
    wrong = as_root ? keep_directory(p, path, dir, gid) : check_directory(p, path, dir);
    fp_close(&dir);
    return wrong;
}

static struct daemon *daemon_of(server_rec *s)
{
    void *found = NULL;

    apr_pool_userdata_get(&found, USERDATA, s->process->pool);
    return found;
}

/* ---- program, files and user ---- */

static uid_t user(void)
{
    return geteuid() == 0 ? ap_unixd_config.user_id : geteuid();
}

static gid_t group(void)
{
    return geteuid() == 0 ? ap_unixd_config.group_id : getegid();
}

static const char *const *command_of(apr_pool_t *p, server_rec *s, const char *program,
                                     const char *configuration, const char *socket)
{
    /* Where ErrorLog is no file, standard error leads nowhere. */
    const char *const log = s->error_log != NULL ? "log=stderr" : "log=syslog";
    const char *const command[] = { program,
                                    "--supervised",
                                    "-c",
                                    configuration != NULL ? configuration : "/dev/null",
                                    "-o",
                                    apr_pstrcat(p, "socket=", socket, NULL),
                                    "-o",
                                    log,
                                    as_root ? "--passed" : NULL,
                                    NULL };

    return apr_pmemdup(p, command, sizeof(command));
}

/* A text that differs for each version of a file. */
static const char *version_of(apr_pool_t *p, const char *path)
{
    apr_finfo_t f;

    if (path == NULL
        || apr_stat(&f, path, APR_FINFO_IDENT | APR_FINFO_MTIME | APR_FINFO_SIZE, p) != APR_SUCCESS)
        return "none";
    return apr_psprintf(p, "%lx:%lx:%" APR_TIME_T_FMT ":%" APR_OFF_T_FMT, (unsigned long)f.device,
                        (unsigned long)f.inode, f.mtime, f.size);
}

/* Groups are part of the origin: a user that left a group must not read by that group through the
 * daemon. */
static const char *groups_of(apr_pool_t *p)
{
    gid_t few[FEW_GROUPS], *groups = few;
    const char *name = ap_unixd_config.user_name, *text = "";
    char *of_number;
    int n = FEW_GROUPS;

    /* "User #1000": children have the groups of that number's name. */
    if (name != NULL && name[0] == '#' && apr_uid_name_get(&of_number, user(), p) == APR_SUCCESS)
        name = of_number;
    if (name == NULL)
        return text;
    if (getgrouplist(name, group(), groups, &n) == -1) {
        groups = apr_palloc(p, (apr_size_t)n * sizeof(*groups));
        if (getgrouplist(name, group(), groups, &n) == -1)
            return text;
    }
    for (int i = 0; i < n; i++)
        text = apr_psprintf(p, "%s,%u", text, (unsigned)groups[i]);
    return text;
}

static const char *origin_of(apr_pool_t *p, const char *configuration, const char *const *command)
{
    const char *text = apr_psprintf(p, "%u:%u%s %s %s", (unsigned)user(), (unsigned)group(), groups_of(p),
                                    version_of(p, command[0]), version_of(p, configuration));

    for (int i = 0; command[i] != NULL; i++)
        text = apr_pstrcat(p, text, " ", command[i], NULL);
    return text;
}

/* httpd's handlers would take a signal meant for us as one for httpd. */
static void reset_signals(void)
{
    static const int handled[] = { SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGWINCH, SIGCHLD };
    sigset_t none;

    for (size_t i = 0; i < sizeof(handled) / sizeof(handled[0]); i++)
        signal(handled[i], SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

enum { CHANNEL = STDIN_FILENO, SOCK = STDERR_FILENO + 1, LOCK, FREE }; /* descriptors of the daemon */

/* The kernel forgets this signal when the process's user changes, so this runs after that. */
static void end_with_parent(const struct daemon *d)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != d->parent)
        _exit(1);
}

/* Runs before the process gives up root's rights, as children trust only a listener that root made.
 * No child ever waits at a socket that no daemon will serve. */
static void take_socket(const struct daemon *d)
{
    int sock, lock;

    if (!fp_socket_path_take(d->socket, group(), &sock, &lock))
        _exit(1);
    sock = fcntl(sock, F_DUPFD, FREE);
    lock = fcntl(lock, F_DUPFD, FREE);
    if (dup2(sock, SOCK) == -1 || dup2(lock, LOCK) == -1)
        _exit(1);
    close_range(FREE, ~0u, 0);
}

/* Runs in the new process, which keeps httpd's error log and nothing else of httpd. */
static void become_daemon(const struct daemon *d, int channel)
{
    reset_signals();
    /* The daemon must not get signals for httpd's process group. */
    setsid();
    /* Only httpd reports to its service manager. */
    unsetenv("NOTIFY_SOCKET");
    /* If the right is missing, flashpached says so. */
    fp_priv_run_promptly();
    dup2(channel, CHANNEL);
    fp_lead_to_null(STDOUT_FILENO);
    fp_close_all(STDERR_FILENO + 1, ~0u);
    end_with_parent(d);
    if (chdir("/") == -1)
        _exit(1);
    sleep(d->pause);
    if (as_root)
        take_socket(d);
    fp_priv_empty_bounding_set();
    if (ap_run_drop_privileges(d->pconf, d->server) != OK)
        _exit(1);
    /* CoreDumpDirectory makes the process's memory readable to others. */
    fp_priv_close_memory();
    end_with_parent(d);
    execv(d->command[0], (char *const *)d->command);
    dprintf(STDERR_FILENO,
            "FP0112: cannot run %s as uid %u: %m; check its permissions and those of the directories above "
            "it\n",
            d->command[0], (unsigned)geteuid());
    _exit(1);
}

static void start(struct daemon *d)
{
    int ends[2] = { -1, -1 };
    pid_t pid = -1;

    d->parent = getpid();
    apr_cpystrn(d->place, d->socket, sizeof(d->place));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0)
        pid = fork();
    if (pid == 0)
        become_daemon(d, ends[1]);
    fp_close(&ends[1]);
    if (pid == -1) {
        ap_log_error(APLOG_MARK, APLOG_ERR, errno, d->server,
                     "FP0112: flashpached cannot be "
                     "started; httpd serves as without Flashpache until it is restarted");
        fp_close(&ends[0]);
        return;
    }
    d->channel = ends[0];
    d->begins = apr_time_now() + apr_time_from_sec(d->pause);
    apr_pool_create(&d->life, d->server->process->pool);
    d->origin = apr_pstrdup(d->life, d->wanted);
    d->proc.pid = pid;
    apr_pool_note_subprocess(d->life, &d->proc, APR_KILL_AFTER_TIMEOUT);
    apr_proc_other_child_register(&d->proc, maintain, d, NULL, d->pconf);
}

/* ---- life and end ---- */

/* Removes the socket: the daemon cannot, where root owns the directory. A daemon that has the lock
 * still serves there. */
static void remove_socket(const struct daemon *d)
{
    int lock = as_root && d->place[0] != '\0' ? fp_socket_path_open_lock(d->place) : -1;

    if (lock != -1)
        unlink(d->place);
    fp_close(&lock);
}

/* At httpd's end the daemon has ended, and the socket goes. At a restart the daemon has the lock,
 * and the socket stays. */
static apr_status_t leave_no_socket(void *data)
{
    remove_socket(data);
    return APR_SUCCESS;
}

/* Waits until the daemon has ended, and kills it after a time limit. False: there was none. */
static bool end_process(struct daemon *d)
{
    if (d->life == NULL)
        return false;
    apr_pool_destroy(d->life);
    d->life = NULL;
    fp_close(&d->channel);
    return true;
}

static void end(struct daemon *d)
{
    if (end_process(d))
        remove_socket(d);
}

/* Over a graceful restart, ends the daemon that a former release of this module started. */
static void end_former(server_rec *s)
{
    void *found = NULL;

    apr_pool_userdata_get(&found, FORMER, s->process->pool);
    if (found != NULL)
        end_process(found);
}

/* True if the daemon holds the other end, and root made it. */
static bool leads_to(int sock, const struct daemon *d)
{
    struct ucred peer = { .pid = 0 };
    socklen_t len = sizeof(peer);

    return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == 0
           && peer.pid == d->proc.pid;
}

/* False where the daemon's socket was removed or replaced. A full queue shows that the socket is
 * the daemon's own. */
static bool has_socket(const struct daemon *d)
{
    int sock = -1;
    struct sockaddr_un addr;
    bool found = !as_root;

    if (!found && fp_unix_address(&addr, d->place))
        sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (sock != -1)
        found =
            connect(sock, (struct sockaddr *)&addr, sizeof(addr)) == 0 ? leads_to(sock, d) : errno == EAGAIN;
    fp_close(&sock);
    return found;
}

/* Somebody may have emptied the runtime directory. */
static void make_directory_again(const struct daemon *d)
{
    const char *wrong;
    apr_pool_t *p;

    if (apr_pool_create(&p, d->pconf) != APR_SUCCESS)
        return;
    wrong = make_directory(p, group());
    if (wrong != NULL)
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, d->server, "FP0112: flashpached cannot be started: %s", wrong);
    apr_pool_destroy(p);
}

/* The MPM calls it in the parent, also for other reasons than a death. status is an exit status or
 * a signal. */
static void maintain(int reason, void *data, apr_wait_t status)
{
    struct daemon *d = data;
    int state;

    if (reason != APR_OC_REASON_DEATH && reason != APR_OC_REASON_LOST)
        return;
    apr_proc_other_child_unregister(d);
    end(d);
    if (ap_mpm_query(AP_MPMQ_MPM_STATE, &state) != APR_SUCCESS || state == AP_MPMQ_STOPPING)
        return;
    if (apr_time_now() - d->begins >= STEADY)
        d->pause = 0;
    else if (d->pause < MOST_PAUSE)
        d->pause = d->pause == 0 ? FIRST_PAUSE : 2 * d->pause;
    ap_log_error(APLOG_MARK, APLOG_WARNING, 0, d->server,
                 "FP0111: flashpached (process %d) "
                 "ended (status or signal %d) and is started again in %u s; requests are served "
                 "without it until then. Its own messages are above",
                 (int)d->proc.pid, status, d->pause);
    make_directory_again(d);
    start(d);
}

static const char *obstacle(apr_pool_t *p, const char *program)
{
    const char *wrong = fp_trial_program(p, program);

    return wrong != NULL ? wrong : make_directory(p, group());
}

/* The first word of an origin names the user. Under another user the daemon may read other files. */
static bool is_of_same_user(const struct daemon *d)
{
    const size_t len = strcspn(d->wanted, " ");

    return strcspn(d->origin, " ") == len && memcmp(d->origin, d->wanted, len) == 0;
}

/*
 * True if the running daemon is the wanted one, or is better than none because its replacement
 * would not start.
 */
static bool may_go_on(const struct daemon *d, const char *program, const char *configuration)
{
    const char *wrong;

    if (d->life == NULL || !has_socket(d))
        return false;
    if (strcmp(d->origin, d->wanted) == 0)
        return true;
    if (!is_of_same_user(d) || strcmp(d->place, d->socket) != 0)
        return false;
    wrong = fp_trial_run(d->pconf, d->server, program, configuration, d->socket);
    if (wrong != NULL)
        ap_log_error(
            APLOG_MARK, APLOG_ERR, 0, d->server,
            "FP0116: flashpached (process %d) continues with its former program and configuration, because "
            "the new one would not start: %s",
            (int)d->proc.pid, wrong);
    return wrong != NULL;
}

void fp_daemon_keep(apr_pool_t *pconf, server_rec *s, const char *program, const char *configuration,
                    const char *socket)
{
    struct daemon *d = daemon_of(s);
    const char *wrong;

    if (d == NULL) {
        d = apr_pcalloc(s->process->pool, sizeof(*d));
        d->channel = -1;
        apr_pool_userdata_set(d, USERDATA, apr_pool_cleanup_null, s->process->pool);
    }
    d->pconf = pconf;
    d->server = s;
    d->socket = socket;
    d->command = command_of(pconf, s, program, configuration, socket);
    d->wanted = origin_of(pconf, configuration, d->command);
    apr_pool_cleanup_register(pconf, d, leave_no_socket, apr_pool_cleanup_null);
    /* The daemon goes on and gets the error log, which may have been rotated. */
    if (may_go_on(d, program, configuration) && fp_send_packet(d->channel, "", 1, STDERR_FILENO) == FP_OK) {
        apr_proc_other_child_register(&d->proc, maintain, d, NULL, pconf);
        return;
    }
    end(d);
    end_former(s);
    d->pause = 0;
    wrong = obstacle(pconf, d->command[0]);
    if (wrong == NULL)
        start(d);
    else
        ap_log_error(APLOG_MARK, APLOG_WARNING, 0, s,
                     "FP0112: flashpached is not started: %s. "
                     "httpd serves as without Flashpache",
                     wrong);
}

void fp_daemon_end(server_rec *s)
{
    struct daemon *d = daemon_of(s);

    if (d != NULL)
        end(d);
}

void fp_daemon_begin(bool same_files)
{
    as_root = geteuid() == 0;
    compares_files = !same_files;
}

struct fp_client *fp_daemon_client(const struct fp_client_settings *settings)
{
    struct fp_client_settings s = *settings;

    s.root_only = as_root;
    s.compares = true;
    s.compares_files = compares_files;
    return fp_client_create(&s);
}

void fp_daemon_leave(server_rec *s)
{
    struct daemon *d = daemon_of(s);

    /* With httpd -X there is one process for all. */
    if (d != NULL && d->parent != getpid())
        fp_close(&d->channel);
}
