/* Requests of one shape beside each other. */
#include "web-approval/reading/parts.h"

enum { FACTS_COMPARED = 200, FIELDS_COMPARED = 200 };

/* The value of this name that stands at place nth among those of its name; p NULL: there is none. */
static struct span fact(const struct reading *r, struct span label, size_t nth)
{
    const struct json *list = r->asked->facts;
    size_t i = 0;

    for (const struct json *f = list ? list->child : NULL; f && i < FACTS_COMPARED; f = f->next, i++)
        if (span_eq(json_text(f, SPAN("label")), label) && nth-- == 0) {
            struct span v = json_text(f, SPAN("value"));
            return v.p ? v : SPAN("");
        }
    return SPAN_NONE;
}

static bool same_name(const struct said *a, const struct said *b)
{
    return a->hash == b->hash && span_eq(a->name, b->name);
}

/* The same of a value of the body; and how many of its name come before that one. */
static struct span value_of(const struct reading *r, const struct said *want, size_t nth)
{
    for (size_t i = 0; i < r->nsaid; i++)
        if (same_name(&r->said[i], want) && nth-- == 0)
            return r->said[i].value.p ? r->said[i].value : SPAN("");
    return SPAN_NONE;
}

static size_t before(const struct reading *r, size_t at)
{
    size_t n = 0;

    for (size_t i = 0; i < at; i++)
        n += same_name(&r->said[i], &r->said[at]);
    return n;
}

/* --- fields --- */

/* Those that honest clients vary from one request to the next, and that change nothing of what it does; and those of
 * its body, which is compared itself. */
static bool varies(struct span name)
{
    static const char *const names[] = {"accept",
                                        "authorization",
                                        "b3",
                                        "baggage",
                                        "cache-control",
                                        "content-digest",
                                        "content-length",
                                        "content-md5",
                                        "cookie",
                                        "date",
                                        "digest",
                                        "idempotency-key",
                                        "pragma",
                                        "priority",
                                        "sentry-trace",
                                        "traceparent",
                                        "tracestate",
                                        "user-agent",
                                        "x-amz-content-sha256",
                                        "x-amz-date",
                                        "x-amzn-trace-id",
                                        "x-cloud-trace-context",
                                        "x-correlation-id",
                                        "x-goog-api-client",
                                        "x-idempotency-key",
                                        "x-ms-client-request-id",
                                        "x-ms-date",
                                        "x-request-id",
                                        "x-tc-timestamp"};
    static const char *const begin[] = {"accept-", "amz-sdk-", "sec-", "x-b3-", "x-datadog-", "x-stainless-"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (span_ieq(name, span_str(names[i])))
            return true;
    for (size_t i = 0; i < sizeof begin / sizeof begin[0]; i++)
        if (span_ieq(span_first(name, strlen(begin[i])), span_str(begin[i])))
            return true;
    return false;
}

static struct span field_name(const struct json *f)
{
    return f->child ? f->child->text : SPAN_NONE;
}

/* A boundary is another one each time. */
static struct span field_value(const struct json *f)
{
    struct span v = f->child && f->child->next && f->child->next->text.p ? f->child->next->text : SPAN("");
    bool form = span_ieq(field_name(f), SPAN("content-type")) && span_ieq(span_first(v, 10), SPAN("multipart/"));

    return form ? span_first(v, span_index(v, ';')) : v;
}

/* The nth of this name; NULL: there is none. */
static const struct json *field(const struct reading *r, struct span name, size_t nth)
{
    const struct json *list = r->asked->fields;

    for (const struct json *f = list ? list->child : NULL; f; f = f->next)
        if (span_ieq(field_name(f), name) && nth-- == 0)
            return f;
    return NULL;
}

struct sink {
    struct differs *out;
    size_t n, max;
};

static void put(struct sink *s, struct span name, struct span was, struct span is)
{
    bool same = was.p && is.p ? span_eq(was, is) : !was.p && !is.p;

    if (!same && s->n < s->max)
        s->out[s->n] = (struct differs){name, was, is};
    s->n += !same;
}

static void each_field(struct sink *s, const struct reading *of, const struct reading *other, bool back)
{
    const struct json *list = of->asked->fields;
    size_t i = 0;

    for (const struct json *f = list ? list->child : NULL; f && i < FIELDS_COMPARED; f = f->next, i++) {
        size_t nth = 0;
        if (varies(field_name(f)))
            continue;
        for (const struct json *g = list->child; g != f; g = g->next)
            nth += span_ieq(field_name(g), field_name(f));
        const struct json *o = field(other, field_name(f), nth);
        if (!back)
            put(s, field_name(f), o ? field_value(o) : SPAN_NONE, field_value(f));
        else if (!o)
            put(s, field_name(f), field_value(f), SPAN_NONE);
    }
}

/* Each thing that one of them says, in turn, with the same of the other. back: only what the other lacks. */
static void each(struct sink *s, const struct reading *of, const struct reading *other, bool back)
{
    const struct json *list = of->asked->facts;
    size_t i = 0;

    each_field(s, of, other, back);
    for (const struct json *f = list ? list->child : NULL; f && i < FACTS_COMPARED; f = f->next, i++) {
        struct span label = json_text(f, SPAN("label")), v = json_text(f, SPAN("value"));
        size_t nth = 0;
        for (const struct json *g = list->child; g != f; g = g->next)
            nth += span_eq(json_text(g, SPAN("label")), label);
        struct span w = fact(other, label, nth);
        v = v.p ? v : SPAN("");
        if (!back)
            put(s, label, w, v);
        else if (!w.p)
            put(s, label, v, w);
    }
    for (i = 0; i < of->nsaid; i++) {
        struct span v = of->said[i].value.p ? of->said[i].value : SPAN("");
        struct span w = value_of(other, &of->said[i], before(of, i));
        if (!back)
            put(s, of->said[i].name, w, v);
        else if (!w.p)
            put(s, of->said[i].name, v, w);
    }
}

static struct span there(struct span s)
{
    return s.p ? s : SPAN("");
}

size_t reading_differs(const struct reading *was, const struct reading *is, struct differs *out, size_t max)
{
    struct sink s = {out, 0, max};

    put(&s, SPAN("Path"), there(was->asked->path), there(is->asked->path));
    put(&s, SPAN("Query"), there(was->asked->query), there(is->asked->query));
    each(&s, is, was, false);
    each(&s, was, is, true);
    return s.n;
}

static bool has(const struct differs *all, size_t n, const struct differs *want)
{
    for (size_t i = 0; i < n; i++)
        if (span_eq(all[i].name, want->name) && span_eq(all[i].was, want->was) && !all[i].was.p == !want->was.p)
            return true;
    return false;
}

/* What differs from one of them, and in the same way from each of the others. */
size_t reading_odd(const struct reading *others, size_t n, const struct reading *is, struct differs *out, size_t max)
{
    struct differs *first = n >= 2 ? arena_alloc(is->arena, max * sizeof *first) : NULL;
    struct differs *next = first ? arena_alloc(is->arena, max * sizeof *next) : NULL;
    size_t found = next ? reading_differs(&others[0], is, first, max) : 0, kept;

    found = found < max ? found : max;
    for (size_t k = 1; k < n && found; k++) {
        size_t m = reading_differs(&others[k], is, next, max);
        m = m < max ? m : max;
        kept = 0;
        for (size_t i = 0; i < found; i++)
            if (has(next, m, &first[i]))
                first[kept++] = first[i];
        found = kept;
    }
    for (size_t i = 0; i < found; i++)
        out[i] = first[i];
    return found;
}
