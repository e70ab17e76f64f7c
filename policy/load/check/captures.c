/* {name} in a rule's paths: read as "*" by everything that walks paths, kept as written for what people and agents
 * are told; and {name} in say: and instead:, which must be one that stands in every path of the rule. */
#include "policy/load/check/captures.h"

#include "common/text/nearest.h"
#include "policy/match/capture.h"

static size_t count_names(struct span path)
{
    struct span name;
    size_t n = 0;
    for (size_t i = 0; i <= path.n && path.n;) {
        struct span rest = span_of(path.p + i, path.n - i), segment = span_first(rest, span_index(rest, '/'));
        n += capture_segment(segment, &name);
        i += segment.n + 1;
    }
    return n;
}

/* The path with "*" for each name; one that stands in it twice could mean two things. */
static void read_path(struct loader *l, struct item *path, size_t names)
{
    uint8_t *out = arena_alloc(&l->a, path->text.n);
    struct span text = path->text, *seen = arena_alloc(&l->a, names * sizeof(*seen));
    size_t n = 0, found = 0;
    if (out == NULL || seen == NULL) {
        load_problem(l, path->at, "P003", "no memory for the path");
        return;
    }
    for (size_t i = 0; i <= text.n;) {
        struct span rest = span_of(text.p + i, text.n - i), segment = span_first(rest, span_index(rest, '/')), name;
        bool named = capture_segment(segment, &name);
        for (size_t k = 0; named && k < found; k++)
            if (span_eq(seen[k], name))
                load_problem(l, path->at, "P013", "\"%.*s\" has {%.*s} twice: give one of them another name",
                             SPAN_FMT(span_first(text, 100)), SPAN_FMT(name));
        if (named)
            seen[found++] = name;
        if (i)
            out[n++] = '/';
        if (segment.n)
            memcpy(out + n, named ? (const uint8_t *)"*" : segment.p, named ? 1 : segment.n);
        n += named ? 1 : segment.n;
        i += segment.n + 1;
    }
    path->text = span_of(out, n);
}

static void read_paths(struct loader *l, struct m_match *t)
{
    enum { NAMES_MAX = 32 };
    size_t all = 0;
    for (size_t i = 0; i < t->paths.n; i++)
        all += count_names(t->paths.v[i].text);
    if (all == 0)
        return;
    t->written = (struct items){t->paths.at, arena_alloc(&l->a, t->paths.n * sizeof(*t->written.v)), t->paths.n};
    if (t->written.v == NULL) {
        load_problem(l, t->paths.at, "P003", "no memory for the paths");
        t->written.n = 0;
        return;
    }
    for (size_t i = 0; i < t->paths.n; i++) {
        size_t names = count_names(t->paths.v[i].text);
        t->written.v[i] = t->paths.v[i];
        if (names > NAMES_MAX)
            load_problem(l, t->paths.v[i].at, "P017", "has %zu names in braces, more than %d: write * for some",
                         names, NAMES_MAX);
        else if (names)
            read_path(l, &t->paths.v[i], names);
    }
}

/* The one that was likely meant, of all paths. */
static struct span likely(struct loader *l, const struct m_match *t, struct span word)
{
    enum { TRIED_MAX = 32 };
    const char *names[TRIED_MAX + 1] = {0};
    size_t n = 0, at;
    struct span name;
    for (size_t i = 0; i < t->written.n; i++)
        for (size_t from = 0; n < TRIED_MAX && capture_next(t->written.v[i].text, from, &at, &name);
             from = at + name.n + 2) {
            char *copy = arena_alloc(&l->a, name.n + 1);
            if (copy == NULL)
                return SPAN_NONE;
            memcpy(copy, name.p, name.n);
            names[n++] = copy;
        }
    const char *near = nearest_name(word, names);
    return near ? span_str(near) : span_str(n == 1 ? names[0] : "");
}

static void check_name(struct loader *l, const struct m_rule *r, const struct item *words, const char *key,
                       struct span name)
{
    const struct m_match *t = &r->match;
    struct span lacks = SPAN_NONE, unsure = SPAN_NONE;
    struct capture_place place;
    size_t have = 0;
    for (size_t i = 0; i < t->written.n; i++) {
        struct span path = t->written.v[i].text;
        enum capture_found found = capture_find(path, name, &place);
        have += found != CAPTURE_ABSENT;
        lacks = found == CAPTURE_ABSENT ? path : lacks;
        unsure = found == CAPTURE_UNSURE ? path : unsure;
    }
    name = span_first(name, CAPTURE_NAME_MAX);
    struct span meant = have ? SPAN_NONE : likely(l, t, name);
    if (have == 0 && meant.n)
        load_problem(l, words->at, "P020", "%s has {%.*s}, which no path of the rule has; did you mean {%.*s}?", key,
                     SPAN_FMT(name), SPAN_FMT(meant));
    else if (have == 0)
        load_problem(l, words->at, "P020", "%s has {%.*s}, which no path of the rule has: name a segment of path: so",
                     key, SPAN_FMT(name));
    else if (lacks.n)
        load_problem(l, words->at, "P020", "%s has {%.*s}, and the path %.*s does not: every path of the rule must",
                     key, SPAN_FMT(name), SPAN_FMT(span_first(lacks, 100)));
    else if (unsure.n)
        load_problem(l, words->at, "P020",
                     "%s has {%.*s}, which stands between two ** in %.*s, where it could be any segment", key,
                     SPAN_FMT(name), SPAN_FMT(span_first(unsure, 100)));
}

static void check_words(struct loader *l, const struct m_rule *r, const struct item *words, const char *key)
{
    size_t at, n = 0;
    struct span name;
    for (size_t from = 0; capture_next(words->text, from, &at, &name); from = at + name.n + 2) {
        check_name(l, r, words, key, name);
        if (++n > CAPTURES_SAID_MAX) {
            load_problem(l, words->at, "P017", "%s has more than %d names in braces", key, CAPTURES_SAID_MAX);
            return;
        }
    }
}

void check_captures(struct loader *l, struct m_rule *r)
{
    struct m_match *except = r->except.v;
    read_paths(l, &r->match);
    for (size_t i = 0; i < r->except.n; i++)
        read_paths(l, &except[i]);
    check_words(l, r, &r->say, "say:");
    check_words(l, r, &r->instead, "instead:");
}
