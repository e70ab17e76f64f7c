/* The same value, whatever its form. */
#include <stdlib.h>

#include "common/schema/checks.h"

static bool equal_numbers(struct run *r, struct span a, struct span b)
{
    struct decimal x, y;
    return run_spend(r, (a.n + b.n) / 16) && decimal_of(a, &x) && decimal_of(b, &y) && decimal_cmp(&x, &y) == 0;
}

static bool equal_lists(struct run *r, const struct json *a, const struct json *b)
{
    const struct json *x = a->child, *y = b->child;
    for (; x && y; x = x->next, y = y->next)
        if (!run_equal(r, x, y))
            return false;
    return x == NULL && y == NULL;
}

static bool equal_objects(struct run *r, const struct json *a, const struct json *b)
{
    size_t place;
    for (const struct json *x = a->child; x; x = x->next) {
        const struct json *y = run_member(r, b, x->key, &place);
        if (y == NULL || !run_equal(r, x, y))
            return false;
    }
    return true;
}

bool run_equal(struct run *r, const struct json *a, const struct json *b)
{
    if (!run_spend(r, 1) || a->type != b->type || a->count != b->count)
        return false;
    switch (a->type) {
    case JSON_NULL: return true;
    case JSON_BOOL: return a->truth == b->truth;
    case JSON_NUMBER: return equal_numbers(r, a->text, b->text);
    case JSON_STRING: return run_spend(r, a->text.n / 64) && span_eq(a->text, b->text);
    case JSON_ARRAY: return equal_lists(r, a, b);
    case JSON_OBJECT: return equal_objects(r, a, b);
    case JSON_BAD: break;
    }
    return false;
}

/* FNV-1a, to bring equal elements together. Who makes many with the same sum gets them compared, and pays for it. */
static uint64_t sum_bytes(uint64_t sum, struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        sum = (sum ^ s.p[i]) * 0x100000001b3u;
    return sum;
}

static uint64_t sum_number(uint64_t sum, struct span text)
{
    struct decimal d;
    size_t at = 0;
    if (!decimal_of(text, &d))
        return sum;
    sum = sum_bytes(sum, span_of(&d.top, sizeof d.top));
    for (size_t n = d.count; n > 0; n--)
        sum = (sum ^ decimal_next(&d, &at)) * 0x100000001b3u;
    return sum ^ d.negative;
}

static uint64_t sum_of(struct run *r, const struct json *j)
{
    uint64_t sum = 0xcbf29ce484222325u + (uint64_t)j->type + j->truth;
    if (!run_spend(r, 1 + j->text.n / 16))
        return 0;
    if (j->type == JSON_NUMBER)
        return sum_number(sum, j->text);
    sum = sum_bytes(sum, j->text);
    for (const struct json *c = j->child; c; c = c->next) {
        uint64_t part = sum_of(r, c);
        if (j->type == JSON_OBJECT && run_spend(r, c->key.n / 16)) /* members in any order */
            sum += sum_bytes(part, c->key) * 0x9e3779b97f4a7c15u;
        else
            sum = (sum ^ part) * 0x100000001b3u;
    }
    return sum;
}

struct element {
    uint64_t sum;
    const struct json *j;
};

static int by_sum(const void *a, const void *b)
{
    const struct element *x = a, *y = b;
    return x->sum < y->sum ? -1 : x->sum > y->sum;
}

bool run_has_twins(struct run *r, const struct json *list)
{
    size_t n = 0;
    bool twins = false;
    struct element *e = calloc(list->count ? list->count : 1, sizeof *e);
    if (e == NULL) {
        r->over = true;
        return true;
    }
    for (const struct json *c = list->child; c; c = c->next)
        e[n++] = (struct element){.sum = sum_of(r, c), .j = c};
    if (run_spend(r, n * 8)) /* about what sorting takes */
        qsort(e, n, sizeof *e, by_sum);
    for (size_t i = 0; i < n && !twins && !r->over; i++)
        for (size_t k = i + 1; k < n && e[k].sum == e[i].sum && !twins && !r->over; k++)
            twins = run_equal(r, e[i].j, e[k].j);
    free(e);
    return twins || r->over;
}
