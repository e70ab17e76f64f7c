#include "broker/usage.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/time/instant.h"

enum { YEAR_FIRST = 1970, YEAR_LAST = 2069 };

static const struct {
    const char *word, *name;
} keys[USAGE_KEYS] = {[USAGE_TENANT] = {"tenant", "tenant"},
                      [USAGE_CONVERSATION] = {"conversation", "conversation_id"},
                      [USAGE_MODEL] = {"model", "model"},
                      [USAGE_TASK] = {"task", "task"},
                      [USAGE_DAY] = {"day", "day"}};
static const char *const sums[USAGE_SUMS] = {[USAGE_TIMES] = "asked",
                                             [USAGE_INPUT] = "input_tokens",
                                             [USAGE_OUTPUT] = "output_tokens",
                                             [USAGE_CACHE_READ] = "cache_read_tokens",
                                             [USAGE_CACHE_WRITE] = "cache_write_tokens",
                                             [USAGE_COST] = "cost_micro"};

const char *usage_key_name(enum usage_key k)
{
    return keys[k].name;
}

const char *usage_sum_name(enum usage_sum s)
{
    return sums[s];
}

int usage_by(struct span words, unsigned *by)
{
    struct span word;
    bool more = true;
    *by = 0;
    while (more) {
        unsigned k = 0;
        more = span_cut(words, ',', &word, &words);
        while (k < USAGE_KEYS && !span_eq(word, span_str(keys[k].word)))
            k++;
        if (k == USAGE_KEYS || *by & 1u << k)
            return -1;
        *by |= 1u << k;
    }
    return 0;
}

static bool same(const struct usage *u, const struct usage_row *a, const struct usage_row *b)
{
    for (unsigned k = 0; k < USAGE_KEYS; k++)
        if (u->by & 1u << k && !span_eq(a->key[k], b->key[k]))
            return false;
    return true;
}

int usage_add(struct usage *u, const struct usage_row *one)
{
    size_t i = u->n;
    while (i > 0 && !same(u, &u->row[i - 1], one)) /* what follows each other is alike more often than not */
        i--;
    if (i == 0 && u->n == u->room)
        return -1;
    if (i == 0) {
        struct usage_row *new = &u->row[u->n++];
        *new = (struct usage_row){.sum = {0}};
        for (unsigned k = 0; k < USAGE_KEYS; k++)
            if (u->by & 1u << k)
                new->key[k] = one->key[k];
        i = u->n;
    }
    for (unsigned s = 0; s < USAGE_SUMS; s++) {
        uint64_t *sum = &u->row[i - 1].sum[s], most = INT64_MAX - *sum;
        *sum += one->sum[s] < most ? one->sum[s] : most;
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    static const enum usage_key order[] = {USAGE_DAY, USAGE_TENANT, USAGE_CONVERSATION, USAGE_MODEL, USAGE_TASK};
    const struct usage_row *x = a, *y = b;
    int r = 0;
    for (size_t i = 0; r == 0 && i < USAGE_KEYS; i++)
        r = span_cmp(x->key[order[i]], y->key[order[i]]);
    return r;
}

void usage_sort(struct usage *u)
{
    if (u->n > 1)
        qsort(u->row, u->n, sizeof(*u->row), compare);
}

/* All of it, as digits, of which the first may be 0. */
static int number(struct span s, size_t n, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return -1;
        *out = 10 * *out + (uint64_t)(s.p[i] - '0');
    }
    return s.n == n ? 0 : -1;
}

int usage_day_of(struct span text, uint64_t *day)
{
    struct span part[3], rest = text;
    uint64_t n[3];
    static const size_t digits[3] = {4, 2, 2};
    bool more = true;
    for (size_t i = 0; i < 3; i++) {
        if (!more)
            return -1;
        more = span_cut(rest, '-', &part[i], &rest);
        if (number(span_first(part[i], 5), digits[i], &n[i]) != 0)
            return -1;
    }
    if (more || n[0] < YEAR_FIRST || n[0] > YEAR_LAST || n[1] < 1 || n[1] > 12 || n[2] < 1 ||
        n[2] > instant_days_of_month((int64_t)n[0], (unsigned)n[1]))
        return -1;
    *day = (uint64_t)instant_days_to((int64_t)n[0], (unsigned)n[1], (unsigned)n[2]);
    return 0;
}

void usage_day_text(uint64_t day, char out[USAGE_DAY_TEXT + 1])
{
    int64_t year = YEAR_FIRST;
    unsigned month = 12;
    while (year < YEAR_LAST && day >= (uint64_t)instant_days_to(year + 1, 1, 1))
        year++;
    while (month > 1 && day < (uint64_t)instant_days_to(year, month, 1))
        month--;
    uint64_t nth = 1 + day - (uint64_t)instant_days_to(year, month, 1);
    char text[64];
    (void)snprintf(text, sizeof(text), "%04u-%02u-%02u", (unsigned)year % 10000, month % 100, (unsigned)nth % 100);
    for (size_t i = 0; i <= USAGE_DAY_TEXT; i++)
        out[i] = text[i];
}
