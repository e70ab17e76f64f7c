/* Under which keys is a rule looked for? The most telling literal it has. Keys
 * only choose who is asked: every rule asked still checks everything, so a
 * key that is too wide costs time, one that is too narrow would lose a rule.
 *
 *      H host [/seg [/seg [/seg]]]   exact host, and how every path begins
 *      F resource  R resource/       the whole of it, or up to its first '/'
 *      W suffix                      a wildcard host
 *      O word                        first word of an operation
 *      V host  V kind               those under F and R once more: by host ("" for wildcards), by kind of resource
 *      A                             anything
 *      N host  M suffix              which rules name a host at all (policy_names_host) */
#include <stdlib.h>

#include "policy/load/emit/emit.h"

static void add_key(struct emit *w, uint32_t hash, uint32_t rule)
{
    struct key_of_rule k = {img_hash_end(hash), rule};
    (void)dynbuf_add(&w->keys, span_of(&k, sizeof(k)));
}

static bool has_star(struct span s)
{
    return span_index(s, '*') < s.n;
}

/* It fits other spellings, too: in escapes, or folded (path_folded). */
static bool has_others(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] >= 0x80 || s.p[i] == '%' || s.p[i] == '+' || s.p[i] == ' ' ||
            (s.p[i] == '.' && (i + 1 == s.n || s.p[i + 1] == '/')))
            return true;
    return false;
}

static struct span host_suffix(struct span host)
{
    return span_from(host, span_starts(host, SPAN("**.")) ? 3 : 2);
}

/* Literal segments that a path pattern begins with. */
static unsigned path_depth(struct span path)
{
    unsigned depth = 0;
    for (struct span rest = span_from(path, 1); rest.n && depth < 3; depth++) {
        struct span segment = span_first(rest, span_index(rest, '/'));
        if (segment.n == 0 || has_star(segment) || has_others(segment))
            break;
        rest = span_from(rest, segment.n + 1);
    }
    return depth;
}

static bool usable_paths(const struct items *hosts, const struct items *paths)
{
    bool ok = hosts->n > 0 && paths->n > 0 && hosts->n * paths->n <= 1000;
    for (size_t i = 0; i < hosts->n && ok; i++)
        ok = !has_star(hosts->v[i].text);
    for (size_t i = 0; i < paths->n && ok; i++)
        ok = path_depth(paths->v[i].text) > 0;
    return ok;
}

static void add_path_keys(struct emit *w, uint32_t rule, const struct items *hosts, const struct items *paths)
{
    for (size_t i = 0; i < hosts->n; i++)
        for (size_t k = 0; k < paths->n; k++) {
            uint32_t h = img_hash_add(img_hash_begin('H'), hosts->v[i].text);
            struct span rest = span_from(paths->v[k].text, 1);
            for (unsigned depth = path_depth(paths->v[k].text); depth > 0; depth--) {
                struct span segment = span_first(rest, span_index(rest, '/'));
                h = img_hash_add(img_hash_add(h, SPAN("/")), segment);
                rest = span_from(rest, segment.n + 1);
            }
            add_key(w, h, rule);
        }
}

static bool usable_resources(const struct items *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (has_others(v->v[i].text) || has_star(span_first(v->v[i].text, span_index(v->v[i].text, '/'))))
            return false;
    return v->n > 0;
}

static void add_resource_keys(struct emit *w, uint32_t rule, const struct items *v)
{
    for (size_t i = 0; i < v->n; i++) {
        struct span s = v->v[i].text;
        if (has_star(s))
            add_key(w, img_hash_add(img_hash_begin('R'), span_first(s, span_index(s, '/'))), rule);
        else
            add_key(w, img_hash_add(img_hash_begin('F'), s), rule);
        add_key(w, img_hash_add(img_hash_begin('V'), span_first(s, span_index(s, ':'))), rule);
    }
}

static bool usable_ops(const struct items *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (has_star(span_first(v->v[i].text, span_index(v->v[i].text, '.'))))
            return false;
    return v->n > 0;
}

void emit_index_rule(struct emit *w, uint32_t i, const struct m_rule *r)
{
    const struct m_match *t = &r->match;
    const struct items *hosts = t->hosts.at ? &t->hosts : &t->derived;
    bool by_path = usable_paths(hosts, &t->paths), by_resource = !by_path && usable_resources(&t->resources);
    for (size_t k = 0; k < hosts->n; k++) {
        struct span h = hosts->v[k].text;
        bool wild = has_star(h);
        struct span name = wild ? host_suffix(h) : h;
        add_key(w, img_hash_add(img_hash_begin(wild ? 'M' : 'N'), name), i);
        if (!by_path && !by_resource)
            add_key(w, img_hash_add(img_hash_begin(wild ? 'W' : 'H'), name), i);
        if (by_resource)
            add_key(w, img_hash_add(img_hash_begin('V'), wild ? SPAN_NONE : name), i);
    }
    if (by_path)
        add_path_keys(w, i, hosts, &t->paths);
    else if (by_resource)
        add_resource_keys(w, i, &t->resources);
    else if (hosts->n == 0 && usable_ops(&t->ops))
        for (size_t k = 0; k < t->ops.n; k++) {
            struct span op = t->ops.v[k].text;
            add_key(w, img_hash_add(img_hash_begin('O'), span_first(op, span_index(op, '.'))), i);
        }
    else if (hosts->n == 0)
        add_key(w, img_hash_begin('A'), i);
}

static int by_hash(const void *a, const void *b)
{
    const struct key_of_rule *x = a, *y = b;
    int c = (x->hash > y->hash) - (x->hash < y->hash);
    return c ? c : (x->rule > y->rule) - (x->rule < y->rule);
}

static void put_slot(struct img_slot *slots, uint32_t n, struct img_slot s)
{
    uint32_t i = s.hash & (n - 1);
    while (slots[i].rules.n)
        i = (i + 1) & (n - 1);
    slots[i] = s;
}

void emit_index(struct emit *w)
{
    struct key_of_rule *k = (void *)w->keys.p;
    size_t nkeys = w->keys.n / sizeof(*k);
    uint32_t distinct = 0, n = 8;
    if (nkeys)
        qsort(k, nkeys, sizeof(*k), by_hash);
    for (size_t i = 0; i < nkeys; i++)
        distinct += i == 0 || k[i].hash != k[i - 1].hash;
    while (n < 2 * distinct)
        n *= 2;
    uint8_t *room = dynbuf_ok(&w->keys) ? dynbuf_room(&w->table[IMG_SLOT], n * sizeof(struct img_slot)) : NULL;
    if (room == NULL) {
        w->strings.failed = true;
        return;
    }
    memset(room, 0, n * sizeof(struct img_slot));
    for (size_t i = 0; i < nkeys;) {
        struct img_slot s = {k[i].hash, {emit_count(w, IMG_RULE_REF), 0}};
        for (; i < nkeys && k[i].hash == s.hash; i++) {
            if (i && by_hash(&k[i], &k[i - 1]) == 0)
                continue;
            (void)emit_record(w, IMG_RULE_REF, &k[i].rule);
            s.rules.n++;
        }
        put_slot((void *)room, n, s);
    }
    dynbuf_grew(&w->table[IMG_SLOT], n * sizeof(struct img_slot));
}
