/* Paths: what rules, packs and credentials ask of them. A pattern of resources is one of paths too, put into the path
 * of every operation whose resource could be so. */
#include "cli/policy/diff/diff_parts.h"

#include "policy/image/glob.h"

/* With a '/' behind it, too: what restricts takes that for the same. */
static int add_rule_paths(struct space *s, struct patterns *l, const struct policy *p, struct img_range globs)
{
    int rc = diff_patterns_add_globs(s, l, p, globs);
    for (uint32_t i = 0; i < globs.n; i++) {
        struct span text = img_glob(p, globs, i);
        if (span_ends(text, SPAN("/")))
            continue;
        struct span slash = arena_join(s->a, text, SPAN("/"));
        rc |= slash.p ? diff_patterns_add(s, l, slash, true) : -1;
    }
    return rc;
}

/* ---- resources ---- */

struct hole { /* what {1} to {4} of a template must look like */
    struct span glob;
    bool set;
};

/* Match the template's words against the pattern; false when they cannot meet, or meet in any way. */
static bool holes_of(const struct space *s, struct span text, struct span glob, struct hole hole[GLOB_CAPTURES])
{
    bool any = false;
    while (text.n) {
        if (span_starts(text, SPAN("{host}"))) {
            struct span first = span_first(glob, span_index(glob, '/'));
            if (!glob_segment(first, s->host, true))
                return false;
            text = span_from(text, 6);
            glob = span_from(glob, first.n);
        } else if (text.n >= 3 && text.p[0] == '{' && text.p[1] >= '1' && text.p[1] <= '4') {
            struct span rest = span_from(text, 3), take = glob;
            if (rest.n && span_index(rest, '{') == rest.n)
                take = span_ends(glob, rest) ? span_first(glob, glob.n - rest.n) : glob;
            else if (rest.n)
                take = span_first(glob, span_index(glob, rest.p[0]));
            if (rest.n && take.n == glob.n)
                return any; /* as "**" for all that is left */
            hole[text.p[1] - '1'] = (struct hole){take, true};
            any = true;
            text = rest;
            glob = span_from(glob, take.n);
        } else if (glob.n && span_ieq(span_first(glob, 1), span_first(text, 1))) {
            text = span_from(text, 1);
            glob = span_from(glob, 1);
        } else {
            return false;
        }
    }
    return any;
}

/* In one segment a '/' of the resource stands as %2F, where the pack takes that for one. */
static struct span in_segment(struct space *s, const struct img_pack *k, struct span glob)
{
    uint8_t *dst = arena_alloc(s->a, 3 * glob.n + 1);
    size_t n = 0;
    if (dst == NULL)
        return SPAN_NONE;
    for (size_t i = 0; i < glob.n; i++) {
        bool slash = glob.p[i] == '/';
        if (slash && !k->keep_slash)
            return SPAN_NONE;
        if (i && glob.p[i] == '*' && glob.p[i - 1] == '*')
            continue;
        memcpy(dst + n, slash ? "%2F" : (const char *)&glob.p[i], slash ? 3 : 1);
        n += slash ? 3 : 1;
    }
    return span_of(dst, n);
}

static int put_holes(struct space *s, struct patterns *l, const struct img_pack *k, struct span path,
                     const struct hole hole[GLOB_CAPTURES], struct span strip)
{
    struct span out = SPAN(""), rest = path;
    size_t at = 0;
    for (bool first = true; first || rest.n; first = false) {
        struct span one = span_first(rest, span_index(rest, '/'));
        bool more = one.n < rest.n;
        rest = span_from(rest, one.n + 1);
        if (span_index(one, '*') < one.n && at < GLOB_CAPTURES) {
            bool deep = span_eq(one, SPAN("**"));
            if (hole[at].set) {
                struct span put = deep ? hole[at].glob : in_segment(s, k, hole[at].glob);
                if (put.p == NULL || (strip.n && span_ends(put, SPAN("**"))))
                    return 0;
                one = arena_join(s->a, put, strip);
            }
            at++;
        }
        out = arena_join(s->a, arena_join(s->a, out, one), more ? SPAN("/") : SPAN_NONE);
    }
    return out.p ? diff_patterns_add_both(s, l, out) : -1;
}

static int add_resource(struct space *s, struct patterns *l, const struct policy *p, const struct img_pack *k,
                        const struct img_op *o, struct img_str text, struct span glob)
{
    struct hole hole[GLOB_CAPTURES] = {{SPAN_NONE, false}};
    struct span path = img_glob(p, o->path, 0);
    struct span strip = img_span(p, o->strip);
    if (!holes_of(s, img_span(p, text), glob, hole))
        return 0;
    int rc = put_holes(s, l, k, path, hole, SPAN_NONE);
    return strip.n ? rc | put_holes(s, l, k, path, hole, strip) : rc;
}

static int add_resources(struct space *s, struct patterns *l, const struct policy *p, const struct img_pack *k,
                         const struct img_op *o, struct span glob)
{
    int rc = 0;
    for (uint32_t i = 0; i < k->resources.n; i++) {
        const struct img_resource *r = img_at(p, IMG_RESOURCE, k->resources.first + i);
        rc |= add_resource(s, l, p, k, o, r->text, glob);
    }
    return rc;
}

/* A pattern of resources; or of the paths that a pack takes for the one that decides. */
static int add_resource_paths(struct space *s, struct patterns *l, struct span glob)
{
    int rc = 0;
    for (size_t i = 0; i < s->nops; i++) {
        const struct policy *p = s->op[i].p;
        const struct img_pack *k = s->op[i].pack;
        const struct img_op *o = s->op[i].op;
        if (span_starts(glob, SPAN("/")))
            rc |= o->could_path.n ? add_resource(s, l, p, k, o, o->could_path, glob) : 0;
        else if (o->resource.n)
            rc |= add_resource(s, l, p, k, o, o->resource, glob);
        else
            rc |= add_resources(s, l, p, k, o, glob);
    }
    return rc;
}

/* ---- all of them ---- */

static int add_pack_paths(struct space *s, struct patterns *l)
{
    int rc = 0;
    for (size_t i = 0; i < s->nops; i++) {
        rc |= diff_patterns_add_globs(s, l, s->op[i].p, s->op[i].op->path);
        s->could |= s->op[i].op->could_op.n > 0;
    }
    for (unsigned v = OLD; v <= NEW; v++)
        for (uint32_t i = 0; i < s->p[v]->n[IMG_PLACE]; i++) {
            const struct img_place *c = img_at(s->p[v], IMG_PLACE, i);
            if (c->path.n && span_eq(img_span(s->p[v], c->host), s->host))
                rc |= diff_patterns_add(s, l, img_glob(s->p[v], c->path, 0), false);
        }
    return rc;
}

static int add_derived(struct space *s, struct patterns *l, const struct policy *p, struct img_range globs)
{
    int rc = 0;
    for (uint32_t i = 0; i < globs.n; i++)
        rc |= add_resource_paths(s, l, img_glob(p, globs, i));
    return rc;
}

int diff_space_paths(struct space *s, struct dim *d)
{
    struct patterns l = {0};
    struct minterms found;
    int rc = add_pack_paths(s, &l);
    for (size_t i = 0; i < s->nparts; i++) {
        const struct policy *p = s->part[i].p;
        const struct img_match *m = s->part[i].match;
        rc |= add_rule_paths(s, &l, p, m->paths);
        rc |= add_derived(s, &l, p, m->resources) | add_derived(s, &l, p, m->paths);
    }
    if (rc != 0 || minterms_find(l.v, l.n, MINTERM_PATH, s->a, &found) != 0)
        return -1;
    for (size_t i = 0; i < found.n; i++)
        if (diff_dim_add(s, d, (struct option){.text = found.v[i].text}) == NULL)
            return -1;
    return diff_paths_merge(s, d);
}
