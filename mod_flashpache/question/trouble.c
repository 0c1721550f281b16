/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "question/trouble.h"

#include "shared/client.h"

const char *fp_trouble_text(struct fp_client *client, fp_status st)
{
    static const char *const no_connection[] = {
        [FP_NO_CONNECTION_ENDED] = "it ended while it was asked; its log says why",
        [FP_NO_CONNECTION_MISSING] =
            "there is no such socket; flashpached does not run (FP0111 and FP0112 above say why httpd's own does "
            "not), or FlashpacheSocket names another one than its configuration",
        [FP_NO_CONNECTION_DENIED] =
            "permission denied; let user and group of flashpached.conf be httpd's User and Group, who must be able to "
            "pass the directories above the socket",
        [FP_NO_CONNECTION_DESERTED] = "nobody listens there; flashpached has ended, start it again",
        [FP_NO_CONNECTION_REFUSED] =
            "it refused this child; its log names another user or group (FP0010): let its user and group be httpd's, "
            "or says that all of max_connections are taken (FP0012)"
    };

    return st == FP_CLOSED ? no_connection[fp_client_last(client).no_connection] : fp_status_text(st);
}
