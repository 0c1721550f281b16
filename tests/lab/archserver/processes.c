/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "processes.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helpers.h"
#include "loop.h"
#include "pipeline.h"
#include "workers.h"

typedef int run_process(struct server *server, void *user);

struct family {
    struct server *s;
    pid_t *pids;
    unsigned count;
    sigset_t signals, before;
};

static int complain(const char *what, int error)
{
    (void)fprintf(stderr, "archserver: %s: %s\n", what, strerror(error));
    return 1;
}

/* As fork; with shared descriptors, what one opens or closes the others open or close. */
static pid_t divide(bool shares_descriptors)
{
    if (!shares_descriptors)
        return fork();
    return (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, NULL);
}

static void be_child(const struct family *f, pid_t parent, run_process *run, void *user)
{
    int error;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    (void)sigprocmask(SIG_SETMASK, &f->before, NULL);
    error = run(f->s, user);
    _exit(complain(options_arch_name(f->s->options.arch), error));
}

/* Starts so many processes. Returns 0 or an errno. */
static int start(struct family *f, unsigned count, run_process *run, void *user)
{
    pid_t parent = getpid();

    for (unsigned i = 0; i < count; i++) {
        pid_t pid = divide(f->s->options.arch == ARCH_SHARED_SYMPED);

        if (pid < 0)
            return errno;
        if (pid == 0)
            be_child(f, parent, run, user);
        f->pids[f->count++] = pid;
    }
    return 0;
}

/* Helpers first: where the loop runs, it can ask. */
static int start_with_helpers(struct family *f)
{
    static int fds[2];
    int error = helpers_socket(fds);

    if (error == 0)
        error = start(f, f->s->options.workers, helpers_process, &fds[1]);
    return error != 0 ? error : start(f, 1, loop_process, &fds[0]);
}

static int start_shared(struct family *f)
{
    const struct options *o = &f->s->options;

    f->s->cache = cache_create(o->cache_entries, o->cache_bytes, CACHE_PROCESSES);
    return f->s->cache == NULL ? errno : start(f, o->workers, loop_process, NULL);
}

static int start_all(struct family *f)
{
    switch (f->s->options.arch) {
    case ARCH_MP: return start(f, f->s->options.workers, workers_process, NULL);
    case ARCH_MT: return start(f, 1, workers_threads, NULL);
    case ARCH_SPED:
    case ARCH_SYMPED: return start(f, f->s->options.workers, loop_process, NULL);
    case ARCH_SHARED_SYMPED: return start_shared(f);
    case ARCH_AMPED:
    case ARCH_NEW_FLASH: return start_with_helpers(f);
    case ARCH_PIPELINE: return start(f, 1, pipeline_process, NULL);
    default: return EINVAL;
    }
}

static void end_all(const struct family *f)
{
    for (unsigned i = 0; i < f->count; i++)
        (void)kill(f->pids[i], SIGTERM);
    for (unsigned i = 0; i < f->count; i++)
        (void)waitpid(f->pids[i], NULL, 0);
}

static int wait_for_end(const struct family *f)
{
    siginfo_t info;
    int signo;

    do {
        signo = sigwaitinfo(&f->signals, &info);
    } while (signo < 0 && errno == EINTR);
    if (signo == SIGTERM || signo == SIGINT)
        return 0;
    (void)fprintf(stderr,
                  "archserver: process %d of %s ended by itself (status or signal %d): the server ends\n",
                  (int)info.si_pid, options_arch_name(f->s->options.arch), info.si_status);
    return 1;
}

int processes_run(struct server *s)
{
    struct family f = { .s = s };
    int error, status;

    f.pids = calloc(s->options.workers + 1, sizeof(*f.pids));
    if (f.pids == NULL)
        return complain("out of memory", ENOMEM);
    (void)sigemptyset(&f.signals);
    (void)sigaddset(&f.signals, SIGTERM);
    (void)sigaddset(&f.signals, SIGINT);
    (void)sigaddset(&f.signals, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &f.signals, &f.before);
    error = start_all(&f);
    status = error != 0 ? complain("cannot start processes", error) : wait_for_end(&f);
    end_all(&f);
    free(f.pids);
    return status;
}
