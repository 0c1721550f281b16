/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "setup/trial.h"

#include <apr_strings.h>
#include <errno.h>
#include <fcntl.h>
#include <mpm_common.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/packet.h"

#define TRIAL_SECONDS 10u  /* a configuration on a hanging file system delays a restart no longer */
#define MOST_SAID     1024 /* bytes of the program's messages that are repeated */
#define VERDICT       " is good\n"

/* Runs in the new process. Its messages, and those of the program, go to the pipe. */
static void __attribute__((noreturn))
be_tried(apr_pool_t *p, server_rec *s, const char *const *command, int said)
{
    fp_lead_to_null(STDIN_FILENO);
    dup2(said, STDOUT_FILENO);
    dup2(said, STDERR_FILENO);
    fp_close_all(STDERR_FILENO + 1, ~0u);
    alarm(TRIAL_SECONDS);
    if (ap_run_drop_privileges(p, s) != OK)
        _exit(1);
    execv(command[0], (char *const *)command);
    dprintf(STDERR_FILENO,
            "cannot run it as uid %u: %s; check its permissions and those of the directories above it",
            (unsigned)geteuid(), strerror(errno));
    _exit(1);
}

/* Reads all messages from the pipe: the first ones as one line of text. The verdict is the last one. */
static const char *hear(apr_pool_t *p, int pipe, bool *good_r)
{
    char *text = apr_palloc(p, MOST_SAID + 1), end[sizeof(VERDICT) - 1] = "", byte;
    size_t len = 0;
    ssize_t n;

    do {
        n = read(pipe, &byte, 1);
        if (n != 1)
            continue;
        if (len < MOST_SAID)
            text[len++] = byte;
        memmove(end, end + 1, sizeof(end) - 1);
        end[sizeof(end) - 1] = byte;
    } while (n > 0 || (n == -1 && errno == EINTR));
    text[len] = '\0';
    *good_r = memcmp(end, VERDICT, sizeof(end)) == 0;
    while (len > 0 && text[len - 1] == '\n')
        text[--len] = '\0';
    for (char *c = text; *c != '\0'; c++) {
        if (*c == '\n')
            *c = ' ';
    }
    return text;
}

static const char *judge(apr_pool_t *p, const char *program, const char *said, bool good, int status)
{
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        return apr_psprintf(
            p, "%s -t did not end within %u s; is its configuration on a file system that answers?", program,
            TRIAL_SECONDS);
    if (WIFSIGNALED(status))
        return apr_psprintf(p, "%s -t ended by signal %d", program, WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return apr_psprintf(p, "%s -t failed: %s", program, said);
    return good ? NULL : apr_psprintf(p, "%s is not flashpached: correct FlashpacheDaemonProgram", program);
}

const char *fp_trial_program(apr_pool_t *p, const char *program)
{
    if (access(program, X_OK) == 0)
        return NULL;
    return apr_psprintf(p, "cannot run %s: %pm; install it, or name it with FlashpacheDaemonProgram", program,
                        &errno);
}

const char *fp_trial_run(apr_pool_t *p, server_rec *s, const char *program, const char *configuration,
                         const char *socket)
{
    const char *const command[] = { program, "-t",
                                    "-c",    configuration != NULL ? configuration : "/dev/null",
                                    "-o",    apr_pstrcat(p, "socket=", socket, NULL),
                                    NULL };
    const char *wrong = fp_trial_program(p, program), *said;
    int ends[2], status = 0;
    bool good;
    pid_t pid;

    if (wrong != NULL)
        return wrong;
    if (pipe2(ends, O_CLOEXEC) == -1)
        return apr_psprintf(p, "cannot try %s: %pm", program, &errno);
    pid = fork();
    if (pid == 0)
        be_tried(p, s, command, ends[1]);
    fp_close(&ends[1]);
    said = hear(p, ends[0], &good);
    fp_close(&ends[0]);
    if (pid == -1)
        return apr_psprintf(p, "cannot try %s: no process can be made; raise httpd's limits", program);
    while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
        ;
    return judge(p, program, said, good, status);
}
