/* One validation: what the checks stand on, and the way in. */
#include "common/schema/checks.h"

#include <stdio.h>

/* The tree of the largest instance: its values, and its texts, each rounded up. */
enum { RUN_ARENA = 32 * 1024 * 1024, LOOKED_MAX = 4 * 1024 * 1024 };

bool run_spend(struct run *r, uint64_t n)
{
    if (r->over || n > r->steps) {
        r->over = true;
        return false;
    }
    r->steps -= n;
    return true;
}

/* As far as the schema's own names lead. */
static void note(struct run *r, const char *keyword, size_t nway)
{
    char number[24];
    size_t n = 0;
    r->miss->keyword = keyword;
    for (size_t i = 0; i < nway && !r->miss->below; i++) {
        const struct step *s = &r->way[i];
        int digits = snprintf(number, sizeof number, "%zu", s->index);
        struct span token = s->how == STEP_INDEX ? span_of(number, (size_t)digits) : s->name;
        r->miss->below =
            s->how == STEP_FOREIGN || !schema_pointer_add(r->miss->path, sizeof r->miss->path, &n, token);
    }
}

bool run_miss(struct run *r, const struct rule *rule)
{
    if (!r->over && r->trying == 0 && r->miss->keyword == NULL)
        note(r, rule->word->name, r->nway);
    return false;
}

/* Nothing may stand here: where that is by a name of the instance's own, the value with that name is at fault. */
static bool never(struct run *r, const struct rule *rule)
{
    bool foreign = r->nway > 0 && r->way[r->nway - 1].how == STEP_FOREIGN;
    if (!r->over && r->trying == 0 && r->miss->keyword == NULL)
        note(r, rule ? rule->word->name : "false", r->nway - foreign);
    return false;
}

bool run_fits(struct run *r, const struct node *n, const struct json *j, const struct rule *rule)
{
    bool good = true;
    if (r->nest == RUN_NEST_MAX)
        r->over = true;
    if (!run_spend(r, 1))
        return false;
    if (n->kind != NODE_RULES)
        return n->kind == NODE_ALWAYS || never(r, rule);
    size_t base = r->base;
    r->base = r->looked.n;
    r->nest++;
    for (const struct rule *one = n->rules; one && good; one = one->next)
        good = run_spend(r, 1) && (one->word->check == NULL || one->word->check(r, n, one, j));
    if (!good)
        r->looked.n = r->base; /* of a schema that does not fit nothing was looked at */
    r->nest--;
    r->base = base;
    return good && !r->over;
}

bool run_tries(struct run *r, const struct node *n, const struct json *j, const struct rule *rule)
{
    r->trying++;
    bool good = run_fits(r, n, j, rule);
    r->trying--;
    return good;
}

void run_looked(struct run *r, size_t place)
{
    uint32_t at = (uint32_t)place;
    if (r->s->tracks && dynbuf_add(&r->looked, span_of(&at, sizeof at)) != 0)
        r->over = true;
}

/* What of a part's place is told. */
static int how_told(const struct rule *rule)
{
    switch ((enum keyword_id)(rule->word - schema_keywords)) {
    case KW_PROPERTIES: return STEP_NAME;
    case KW_PREFIX_ITEMS:
    case KW_ITEMS:
    case KW_UNEVALUATED_ITEMS: return STEP_INDEX;
    default: return STEP_FOREIGN;
    }
}

bool run_part(struct run *r, const struct branch *b, const struct json *part, size_t place, const struct rule *rule)
{
    size_t looked = r->looked.n;
    r->way[r->nway++] = (struct step){.name = part->key, .index = place, .how = how_told(rule)};
    bool good = run_fits(r, b->node, part, rule);
    r->nway--;
    r->looked.n = looked; /* those were inside the part */
    if (good)
        run_looked(r, place);
    return good && !r->over;
}

bool run_finds(struct run *r, const struct pattern *p, struct span text)
{
    int found = r->over ? -1 : pattern_find(p, text, r->room, &r->steps);
    r->over |= found < 0;
    return found > 0;
}

bool run_is_name(struct run *r, struct span a, struct span b)
{
    return !run_spend(r, 1 + (a.n == b.n ? a.n / 64 : 0)) || span_eq(a, b);
}

const struct json *run_member(struct run *r, const struct json *object, struct span name, size_t *place)
{
    *place = 0;
    for (const struct json *c = object->child; c; c = c->next, (*place)++)
        if (run_is_name(r, c->key, name))
            return r->over ? NULL : c;
    return NULL;
}

const char *schema_verdict_name(enum schema_verdict v)
{
    static const char *const names[] = {[SCHEMA_MISFIT] = "schema-violation",
                                        [SCHEMA_FITS] = "fits",
                                        [SCHEMA_NOT_JSON] = "not-json",
                                        [SCHEMA_TOO_LARGE] = "too-large",
                                        [SCHEMA_TOO_COSTLY] = "schema-too-costly"};
    return names[v];
}

/* The instance as a tree, or why there is none. */
static enum schema_verdict read_instance(struct run *r, struct span text, const struct json **out)
{
    enum json_fault fault;
    *out = NULL;
    if (text.n > SCHEMA_INSTANCE_MAX)
        return SCHEMA_TOO_LARGE;
    *out = json_parse_or(text, &r->arena, &fault);
    if (*out == NULL)
        return fault == JSON_OVER_LIMIT ? SCHEMA_TOO_LARGE : SCHEMA_NOT_JSON;
    return schema_number_past(*out) ? SCHEMA_TOO_LARGE : SCHEMA_FITS;
}

enum schema_verdict schema_validate(const struct schema *s, struct span instance, struct schema_miss *m)
{
    struct run r = {.s = s, .miss = m, .steps = SCHEMA_STEPS_MAX};
    const struct json *j;
    *m = (struct schema_miss){.path = ""};
    arena_init(&r.arena, RUN_ARENA);
    dynbuf_init(&r.looked, LOOKED_MAX);
    enum schema_verdict v = read_instance(&r, instance, &j);
    if (v != SCHEMA_FITS)
        goto out;
    r.room = pattern_room_new(&r.arena, s->largest);
    r.over = r.room == NULL;
    bool fits = run_fits(&r, s->top, j, NULL);
    v = r.over ? SCHEMA_TOO_COSTLY : fits ? SCHEMA_FITS : SCHEMA_MISFIT;
    if (v != SCHEMA_MISFIT)
        *m = (struct schema_miss){.path = ""};
out:
    dynbuf_free(&r.looked);
    arena_free(&r.arena);
    return v;
}
