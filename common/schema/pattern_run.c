/* A search: the set of all places in the pattern where a match may stand, moved on by one code point at a time. */
#include "common/schema/pattern_in.h"
#include "common/text/utf8.h"

enum { NOTHING = CODE_POINT_MAX + 1 }; /* before the text, and behind it */

struct pattern_room {
    uint64_t *seen; /* in which turn a place was last reached: none is reached twice in one */
    uint64_t turn;
    uint32_t *at, *wait, *todo; /* places before a code point; of them, those that take one; not yet followed */
    size_t nat, nwait, ntodo;
    size_t size;
};

struct pattern_room *pattern_room_new(struct arena *a, size_t size)
{
    struct pattern_room *r = arena_alloc(a, sizeof *r);
    if (r == NULL)
        return NULL;
    r->size = size + 1;
    r->seen = arena_alloc(a, r->size * sizeof *r->seen);
    r->at = arena_alloc(a, r->size * sizeof *r->at);
    r->wait = arena_alloc(a, r->size * sizeof *r->wait);
    r->todo = arena_alloc(a, r->size * sizeof *r->todo);
    return r->seen && r->at && r->wait && r->todo ? r : NULL;
}

size_t pattern_size(const struct pattern *p)
{
    return p->n;
}

static bool is_word(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
}

static bool is_line_end(uint32_t c)
{
    return c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029;
}

static bool takes(const struct pattern *p, const struct instruction *i, uint32_t c)
{
    if (i->op == OP_CHAR)
        return c == (uint32_t)i->x;
    if (i->op == OP_ANY)
        return !is_line_end(c);
    for (int32_t k = 0; k < i->y; k++)
        if (c >= p->range[i->x + k].lo && c <= p->range[i->x + k].hi)
            return !i->negated;
    return i->negated;
}

static void reach(struct pattern_room *r, int64_t place)
{
    if (r->seen[place] == r->turn)
        return;
    r->seen[place] = r->turn;
    r->todo[r->ntodo++] = (uint32_t)place;
}

/* From what is to do, everything that is reached without a code point. True: the end of the pattern is. */
static bool follow(const struct pattern *p, struct pattern_room *r, uint32_t before, uint32_t after, uint64_t *cost)
{
    while (r->ntodo > 0) {
        uint32_t place = r->todo[--r->ntodo];
        const struct instruction *i = &p->code[place];
        bool on = false;
        *cost += 1 + (i->op == OP_CLASS ? (uint64_t)i->y / 4 : 0);
        switch (i->op) {
        case OP_FOUND: return true;
        case OP_FORK:
            reach(r, (int64_t)place + i->x);
            reach(r, (int64_t)place + i->y);
            break;
        case OP_JUMP: reach(r, (int64_t)place + i->x); break;
        case OP_BEGIN: on = before == NOTHING; break;
        case OP_END: on = after == NOTHING; break;
        case OP_WORD: on = (is_word(before) != is_word(after)) != i->negated; break;
        default: r->wait[r->nwait++] = place;
        }
        if (on)
            reach(r, (int64_t)place + 1);
    }
    return false;
}

int pattern_find(const struct pattern *p, struct span text, struct pattern_room *r, uint64_t *steps)
{
    uint32_t before = NOTHING;
    if (p->n > r->size)
        return -1;
    r->nat = 0;
    for (size_t i = 0;;) {
        struct span rest = span_from(text, i);
        size_t n = rest.n ? utf8_char(rest) : 0;
        uint32_t c = n ? utf8_code(rest, n) : NOTHING;
        uint64_t cost = 1;
        r->turn++;
        r->nwait = r->ntodo = 0;
        for (size_t k = 0; k < r->nat; k++)
            reach(r, r->at[k]);
        reach(r, 0);
        bool found = follow(p, r, before, c, &cost);
        if (cost > *steps)
            return -1;
        *steps -= cost;
        if (found || n == 0)
            return found;
        r->nat = 0;
        for (size_t k = 0; k < r->nwait; k++)
            if (takes(p, &p->code[r->wait[k]], c))
                r->at[r->nat++] = r->wait[k] + 1;
        i += n;
        before = c;
    }
}
