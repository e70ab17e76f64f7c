/* From the text of a pattern to its instructions, in one pass: a piece is written behind what is there, and what
 * comes after it (| or *) is put around it. */
#include <stdlib.h>

#include "common/schema/pattern_in.h"

enum { FOREVER = -1, TIMES_MAX = 1000, NO_JUMP = -1 };

static bool room_for(struct pattern_text *t, size_t n)
{
    return n <= PATTERN_SIZE_MAX - t->n || pattern_refuse(t, "it is too large when what it repeats is written out");
}

static bool add(struct pattern_text *t, struct instruction i)
{
    if (!room_for(t, 1))
        return false;
    t->code[t->n++] = i;
    return true;
}

/* Before what stands at a place and behind it; jumps over the place there are none yet. */
static bool insert(struct pattern_text *t, size_t place, struct instruction i)
{
    if (!room_for(t, 1))
        return false;
    memmove(t->code + place + 1, t->code + place, (t->n - place) * sizeof *t->code);
    t->code[place] = i;
    t->n++;
    return true;
}

/* A piece once more, behind all. */
static bool again(struct pattern_text *t, size_t piece, size_t n)
{
    if (!room_for(t, n))
        return false;
    memcpy(t->code + t->n, t->code + piece, n * sizeof *t->code);
    t->n += n;
    return true;
}

static struct instruction fork_to(int64_t x, int64_t y)
{
    return (struct instruction){.op = OP_FORK, .x = (int32_t)x, .y = (int32_t)y};
}

/* The piece from a place to the end, min to max times. */
static bool repeat(struct pattern_text *t, size_t piece, int min, int max)
{
    size_t n = t->n - piece;
    int64_t len = (int64_t)n;
    if (max == 0) {
        t->n = piece;
        return true;
    }
    if (min == 0 && max == FOREVER)
        return insert(t, piece, fork_to(1, len + 2)) &&
               add(t, (struct instruction){.op = OP_JUMP, .x = (int32_t)(-len - 1)});
    if (min == 0) {
        if (!insert(t, piece, fork_to(1, len + 1)))
            return false;
        piece++;
    }
    for (int i = 1; i < min; i++)
        if (!again(t, piece, n))
            return false;
    if (max == FOREVER)
        return add(t, fork_to(-len, 1));
    for (int i = min ? min : 1; i < max; i++)
        if (!add(t, fork_to(1, len + 1)) || !again(t, piece, n))
            return false;
    return true;
}

/* Digits, at most TIMES_MAX; -1: there are none, or it is more. */
static int times(struct pattern_text *t)
{
    int n = -1;
    while (pattern_peek(t) >= '0' && pattern_peek(t) <= '9') {
        n = (n < 0 ? 0 : n * 10) + (int)(pattern_next(t) - '0');
        if (n > TIMES_MAX)
            return -1;
    }
    return n;
}

static bool braces(struct pattern_text *t, int *min, int *max)
{
    *min = *max = times(t);
    if (*min >= 0 && pattern_take(t, ',')) {
        bool open = pattern_peek(t) == '}';
        *max = open ? FOREVER : times(t);
        if (*max < 0 && !open)
            *min = -1;
    }
    if (*min < 0 || !pattern_take(t, '}'))
        return pattern_refuse(t, "what stands in { } is no number of times, or more than 1,000");
    return *max == FOREVER || *min <= *max || pattern_refuse(t, "the numbers in { } are the wrong way round");
}

/* What may follow a piece. */
static bool quantifier(struct pattern_text *t, size_t piece, bool repeatable)
{
    int min = 0, max = FOREVER;
    if (pattern_take(t, '+'))
        min = 1;
    else if (pattern_take(t, '?'))
        max = 1;
    else if (pattern_take(t, '{')) {
        if (!braces(t, &min, &max))
            return false;
    } else if (!pattern_take(t, '*'))
        return true;
    (void)pattern_take(t, '?'); /* lazy or not: what is found is the same */
    if (!repeatable)
        return pattern_refuse(t, "there is nothing to repeat");
    return repeat(t, piece, min, max);
}

static bool either(struct pattern_text *t);

/* Behind "(": a group, which is only that, since nothing refers to it. */
static bool group(struct pattern_text *t)
{
    if (pattern_take(t, '?') && !pattern_take(t, ':')) {
        bool name = pattern_take(t, '<') && pattern_peek(t) != '=' && pattern_peek(t) != '!';
        if (!name)
            return pattern_refuse(
                t, "what follows (? is not known here; looking ahead or behind takes more than linear time");
        size_t had = t->at;
        while (pattern_is_name(pattern_peek(t)))
            (void)pattern_next(t);
        if (t->at == had || !pattern_take(t, '>'))
            return pattern_refuse(t, "a group's name is letters, digits and _");
    }
    if (++t->depth > PATTERN_DEPTH_MAX)
        return pattern_refuse(t, "its groups are nested too deep");
    if (!either(t))
        return false;
    t->depth--;
    return pattern_take(t, ')') || pattern_refuse(t, "a group is not closed");
}

static bool piece(struct pattern_text *t)
{
    size_t start = t->n;
    uint32_t c = pattern_next(t);
    struct instruction i = {.op = OP_CHAR, .x = (int32_t)c};
    bool good = true, repeatable = true;
    switch (c) {
    case '(': good = group(t); break;
    case '[': good = pattern_class(t, &i) && add(t, i); break;
    case '\\': good = pattern_escape(t, &i) && add(t, i); break;
    case '.': i.op = OP_ANY; break;
    case '^': i.op = OP_BEGIN; break;
    case '$': i.op = OP_END; break;
    case '*':
    case '+':
    case '?': return pattern_refuse(t, "there is nothing to repeat");
    case '{':
    case '}':
    case ']': return pattern_refuse(t, "a bracket or brace that means itself has a \\ before it");
    default: break;
    }
    if (c != '(' && c != '[' && c != '\\')
        good = add(t, i);
    repeatable = i.op != OP_BEGIN && i.op != OP_END && i.op != OP_WORD;
    return good && quantifier(t, start, repeatable);
}

static bool row(struct pattern_text *t)
{
    while (pattern_peek(t) != PATTERN_ENDS && pattern_peek(t) != '|' && pattern_peek(t) != ')')
        if (!piece(t))
            return false;
    return true;
}

/* Rows with | between them: a fork before each but the last, and behind it a jump to the end. Until the end is known,
 * each jump has the place of the one before it. */
static bool either(struct pattern_text *t)
{
    size_t start = t->n;
    int32_t last = NO_JUMP;
    bool good = row(t);
    while (good && pattern_take(t, '|')) {
        good = insert(t, start, fork_to(1, (int64_t)(t->n - start) + 2)) &&
               add(t, (struct instruction){.op = OP_JUMP, .x = last});
        last = (int32_t)t->n - 1;
        start = t->n;
        good = good && row(t);
    }
    while (good && last != NO_JUMP) {
        int32_t before = t->code[last].x;
        t->code[last].x = (int32_t)t->n - last;
        last = before;
    }
    return good;
}

static const struct pattern *keep(const struct pattern_text *t, struct arena *a)
{
    struct pattern *p = arena_alloc(a, sizeof *p);
    struct instruction *code = arena_alloc(a, t->n * sizeof *code);
    struct range *range = arena_alloc(a, (t->nranges ? t->nranges : 1) * sizeof *range);
    if (p == NULL || code == NULL || range == NULL)
        return NULL;
    memcpy(code, t->code, t->n * sizeof *code);
    if (t->nranges)
        memcpy(range, t->range, t->nranges * sizeof *range);
    *p = (struct pattern){.code = code, .range = range, .n = t->n, .nranges = t->nranges};
    return p;
}

const struct pattern *pattern_compile(struct span text, struct arena *a, const char **why)
{
    const struct pattern *p = NULL;
    struct pattern_text *t = calloc(1, sizeof *t);
    *why = "there is no memory for it";
    if (t == NULL)
        return NULL;
    t->in = text;
    bool good = text.n <= PATTERN_TEXT_MAX ? either(t) : pattern_refuse(t, "it is longer than 1,024 bytes");
    if (good && pattern_peek(t) == ')')
        good = pattern_refuse(t, "a ) has no (");
    if (good && add(t, (struct instruction){.op = OP_FOUND}))
        p = keep(t, a);
    if (t->why)
        *why = t->why;
    free(t);
    return p;
}
