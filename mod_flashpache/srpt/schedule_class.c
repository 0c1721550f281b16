/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"
#include "srpt/schedule_class.h"

#include <stdlib.h>

#define MOST_BYTES INT64_C(1000000000000)

const struct fp_classes fp_usual_classes = { 5, { 1 * 1024, 2 * 1024, 5 * 1024, 20 * 1024, 50 * 1024 } };

static int64_t unit_of(char letter)
{
    switch (letter) {
    case '\0': return 1;
    case 'k':
    case 'K': return 1024;
    case 'm':
    case 'M': return 1024 * 1024;
    default: return 0;
    }
}

bool fp_bytes_parse(const char *text, int64_t *bytes_r)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    int64_t unit = unit_of(*end);

    if (text[0] < '0' || text[0] > '9' || unit == 0 || (*end != '\0' && end[1] != '\0') || number < 1
        || number > MOST_BYTES / unit)
        return false;
    *bytes_r = number * unit;
    return true;
}

int fp_classes_priority(const struct fp_classes *classes, int64_t remaining)
{
    const int first = classes->n_bounds < FP_MAX_PRIORITY ? FP_FIRST_PRIORITY + 1 : FP_FIRST_PRIORITY;
    unsigned i = 0;

    while (i < classes->n_bounds && remaining > classes->bounds[i])
        i++;
    return first + (int)i;
}

int64_t fp_classes_next_bound(const struct fp_classes *classes, int64_t remaining)
{
    unsigned i = classes->n_bounds;

    while (i > 0 && classes->bounds[i - 1] >= remaining)
        i--;
    return i > 0 ? classes->bounds[i - 1] : -1;
}
