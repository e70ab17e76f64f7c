/* Keywords about a value by itself: its type, numbers, texts. */
#include "common/schema/checks.h"
#include "common/schema/format.h"

/* A number that was seen to be one that can be read (schema_number_past). */
static struct decimal number(const struct json *j)
{
    struct decimal d;
    (void)!decimal_of(j->text, &d);
    return d;
}

bool check_type(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    bool good = rule->count >> j->type & 1;
    if (!good && j->type == JSON_NUMBER && rule->count >> TYPE_INTEGER & 1) {
        struct decimal d = number(j);
        good = run_spend(r, j->text.n / 16) && decimal_is_integer(&d);
    }
    return run_says(r, rule, good);
}

bool check_const(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, run_equal(r, rule->value, j));
}

bool check_enum(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    const struct json *one = rule->value->child;
    while (one && !run_equal(r, one, j))
        one = one->next;
    return run_says(r, rule, one != NULL);
}

/* < 0, 0, > 0: below the rule's number, equal, above. */
static int compared(struct run *r, const struct rule *rule, const struct json *j)
{
    struct decimal d = number(j);
    return run_spend(r, (j->text.n + rule->value->text.n) / 16) ? decimal_cmp(&d, &rule->number) : 0;
}

bool check_minimum(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_NUMBER || compared(r, rule, j) >= 0);
}

bool check_maximum(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_NUMBER || compared(r, rule, j) <= 0);
}

bool check_above(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_NUMBER || compared(r, rule, j) > 0);
}

bool check_under(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_NUMBER || compared(r, rule, j) < 0);
}

bool check_multiple(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    if (j->type != JSON_NUMBER)
        return true;
    struct decimal d = number(j);
    return run_says(r, rule, run_spend(r, 16 + j->text.n / 8) && decimal_is_multiple(&d, rule->divisor));
}

/* In code points. */
static uint64_t length(struct run *r, const struct json *j)
{
    uint64_t n = 0;
    if (!run_spend(r, j->text.n / 16))
        return 0;
    for (size_t i = 0; i < j->text.n; i++)
        n += (j->text.p[i] & 0xc0) != 0x80;
    return n;
}

bool check_min_length(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_STRING || length(r, j) >= rule->count);
}

bool check_max_length(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_STRING || length(r, j) <= rule->count);
}

bool check_format(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    if (j->type != JSON_STRING || rule->count == FORMAT_NONE) /* a note */
        return true;
    return run_says(r, rule, run_spend(r, j->text.n) && format_fits((enum format)rule->count, j->text));
}

bool check_pattern(struct run *r, const struct node *n, const struct rule *rule, const struct json *j)
{
    return run_says(r, rule, j->type != JSON_STRING || run_finds(r, rule->pattern, j->text));
}
