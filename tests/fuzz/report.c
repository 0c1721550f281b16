/* SPDX-License-Identifier: Apache-2.0 */
/* A report's text, as flashpachectl reads it: whole lines without a NUL, of any content. */
#include "config.h"
#include "ctl/ctl_report.h"

#include "fuzz.h"
#include "shared/client.h"

static struct fp_reply said;

fp_status fp_client_control(struct fp_client *client, const struct fp_control *question,
                            struct fp_reply *done, uint8_t *room)
{
    (void)client;
    (void)room;
    *done = said;
    /* In two parts. */
    done->next = question->from == 0;
    return FP_OK;
}

void ctl_complain(const char *format, ...)
{
    (void)format;
}

enum ctl_exit ctl_no_daemon(const struct ctl *ctl, fp_status why)
{
    (void)ctl;
    (void)why;
    return CTL_NO_DAEMON;
}

static void read_line(const char *line)
{
    struct fp_report_mount m;
    struct fp_report_latency l;
    struct fp_report_known k;
    char *first = strdup(line), *second = strdup(line), *third = strdup(line), room[32];

    FUZZ_MUST(first != NULL && second != NULL && third != NULL);
    if (fp_report_read(fp_mount_form, first, &m))
        FUZZ_MUST(strlen(m.point) + strlen(m.type) + strlen(m.watch) <= strlen(line));
    if (fp_report_read(fp_latency_form, second, &l)) {
        FUZZ_MUST(strlen(l.point) <= strlen(line));
        for (unsigned percent = 0; percent <= 100; percent += 50)
            ctl_time_text(fp_latency_percentile_us(&l, percent), room, sizeof(room));
    }
    if (fp_report_read(fp_known_form, third, &k))
        FUZZ_MUST(strlen(k.state) + strlen(k.kept) + strlen(k.point) < strlen(line));
    free(first);
    free(second);
    free(third);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum fp_report wanted[] = { FP_REPORT_STATS, 0 };
    const struct ctl ctl = { .socket = "/fuzz" };
    struct ctl_reports r;
    char *text, *next, *line, word[16];

    if (size > FP_MAX_REPORT || (size > 0 && (data[size - 1] != '\n' || memchr(data, '\0', size) != NULL)))
        return 0;
    said = (struct fp_reply){ .status = FP_OK, .text = (const char *)data, .text_len = size };
    FUZZ_MUST(ctl_read_reports(&ctl, wanted, &r) == CTL_DONE);
    text = r.text[FP_REPORT_STATS];
    FUZZ_MUST(text != NULL && strlen(text) == 2 * size);
    ctl_value(text, "hits");
    if (ctl_word(text, "version", word, sizeof(word)))
        FUZZ_MUST(strchr(word, '\n') == NULL);
    next = text;
    while ((line = ctl_next_line(&next)) != NULL)
        read_line(line);
    ctl_free_reports(&r);
    return 0;
}
