/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "walk/php_calls.h"

#include <pthread.h>
#include <stdbool.h>

#include "files/answers.h"
#include "files/calls.h"
#include "question/lookup.h"
#include "setup/settings.h"
#include "question/shared.h"
#include "shared/client.h"
#include "status/counters.h"
#include "wire/packet.h"

/* Of the server for which this thread runs a handler; NULL: it has run none, or Flashpache is off there. */
static __thread const struct fp_settings *asking;

static bool covers(const char *path, size_t len)
{
    (void)len;
    return asking != NULL && path[0] == '/';
}

static struct fp_lease_view *take_view(const char *path, size_t len)
{
    struct fp_lease_view *view = NULL;

    if (fp_child_client != NULL && !fp_settings_excludes(asking, path, len))
        fp_shared_view(fp_child_client, &view);
    return view;
}

static void hint(const struct fp_lease_view *view, const char *path, size_t len)
{
    (void)view;
    if (fp_child_client != NULL)
        fp_client_hint(fp_child_client, path, len);
}

static bool ask(const struct fp_lease_view *view, const char *path, size_t len, struct fp_answer *a)
{
    bool answered;

    (void)view;
    if (fp_child_client == NULL)
        return false;
    answered = fp_client_lookup(fp_child_client, path, len, a, NULL) == FP_OK;
    fp_close(&a->fd);
    return answered;
}

static void count(enum fp_files_result result)
{
    fp_count(asking->host, FP_COUNT_PHP + (enum fp_count)result);
}

int fp_php_calls_begin(const void *php, const char **why_r)
{
    static const struct fp_files_source source = { covers, take_view, hint, ask, count };
    const int led = fp_files_lead_php(php, why_r);

    /* A process that PHP forks looks itself: the connection is the child's. */
    if (led > 0 && pthread_atfork(NULL, NULL, fp_files_end) == 0)
        fp_files_begin(&source);
    return led;
}

int fp_php_calls_note(request_rec *r)
{
    const struct fp_settings *settings = fp_settings_of(r->server);

    asking = settings->engine == FP_ENGINE_ON ? settings : NULL;
    return DECLINED;
}
