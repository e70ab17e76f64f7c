/* A request of GraphQL for the answers to the questions of conditions: one operation, with the fields that are named
 * and those whose arguments are. */
#include "cli/policy/diff/diff_body.h"

#include <stdio.h>

enum { DOCUMENT_MAX = 1 << 16, ROOTS_MAX = DIFF_FIELDS_MAX + 2 };

struct operation {
    struct span type, other_type, name;
    struct span field[ROOTS_MAX];
    size_t nfields;
    struct stands argument[DIFF_FIELDS_MAX]; /* key: /FIELD/ARGUMENT and on */
    size_t narguments;
};

bool diff_graphql_can_be(struct span key, struct span text)
{
    bool word = text.n > 0 && !(text.p[0] >= '0' && text.p[0] <= '9');
    for (size_t i = 0; i < text.n && word; i++) {
        uint8_t c = text.p[i], low = c | 0x20;
        word = c == '_' || (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9');
    }
    if (span_eq(key, SPAN("type")))
        return span_eq(text, SPAN("query")) || span_eq(text, SPAN("mutation")) || span_eq(text, SPAN("subscription"));
    return span_eq(key, SPAN("persisted")) ? text.n > 0 : word || (key.n && key.p[0] == '/');
}

/* "/FIELD" or "/FIELD/ARGUMENT" of a pointer. */
static struct span begin(struct span pointer, unsigned names)
{
    size_t n = 0;
    for (; names > 0 && n < pointer.n; names--)
        n += 1 + span_index(span_from(pointer, n + 1), '/');
    return span_first(pointer, n);
}

static void add_field(struct operation *o, struct span name)
{
    for (size_t i = 0; i < o->nfields; i++)
        if (span_eq(o->field[i], name))
            return;
    if (name.n && o->nfields < ROOTS_MAX)
        o->field[o->nfields++] = name;
}

static bool named_before(const struct operation *o, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (span_eq(begin(o->argument[k].key, 2), begin(o->argument[i].key, 2)))
            return true;
    return false;
}

static void write_document(struct dynbuf *b, const struct operation *o, struct span type)
{
    (void)dynbuf_addf(b, "%.*s %.*s", SPAN_FMT(type), SPAN_FMT(o->name));
    for (size_t i = 0; i < o->narguments; i++)
        if (!named_before(o, i))
            (void)dynbuf_addf(b, "%s$v%zu: V", i ? ", " : "(", i);
    (void)dynbuf_addf(b, "%s{", o->narguments ? ") " : "");
    for (size_t f = 0; f < o->nfields; f++) {
        bool some = false;
        (void)dynbuf_addf(b, "%s%.*s", f ? " " : "", SPAN_FMT(o->field[f]));
        for (size_t i = 0; i < o->narguments; i++) {
            struct span field = begin(o->argument[i].key, 1), name = begin(o->argument[i].key, 2);
            if (!span_eq(span_from(field, 1), o->field[f]) || named_before(o, i))
                continue;
            (void)dynbuf_addf(b, "%s%.*s: $v%zu", some ? ", " : "(", SPAN_FMT(span_from(name, field.n + 1)), i);
            some = true;
        }
        (void)dynbuf_addf(b, "%s", some ? ")" : "");
    }
    (void)dynbuf_add_byte(b, '}');
}

static int write_variables(struct jsonw *w, const struct operation *o)
{
    struct stands of[DIFF_FIELDS_MAX];
    int rc = 0;
    jsonw_kv_object(w, "variables");
    for (size_t i = 0; i < o->narguments && rc == 0; i++) {
        struct span whole = begin(o->argument[i].key, 2);
        char name[24];
        size_t n = 0;
        if (named_before(o, i))
            continue;
        for (size_t k = i; k < o->narguments; k++)
            if (span_eq(begin(o->argument[k].key, 2), whole))
                of[n++] = (struct stands){span_from(o->argument[k].key, whole.n), o->argument[k].text, SPAN_NONE};
        snprintf(name, sizeof(name), "v%zu", i);
        jsonw_key(w, name);
        rc = diff_write_json(w, of, n, 2);
    }
    jsonw_end_object(w);
    return rc;
}

static int write_request(struct jsonw *w, const struct operation *o, struct span type)
{
    struct dynbuf document;
    dynbuf_init(&document, DOCUMENT_MAX);
    write_document(&document, o, type);
    int rc = dynbuf_ok(&document) ? 0 : -1;
    jsonw_object(w);
    jsonw_kv(w, "query", dynbuf_span(&document));
    if (o->narguments && rc == 0)
        rc = write_variables(w, o);
    jsonw_end_object(w);
    dynbuf_free(&document);
    return rc;
}

static void write_stored(struct jsonw *w, struct span hash)
{
    jsonw_object(w);
    jsonw_kv_object(w, "extensions");
    jsonw_kv_object(w, "persistedQuery");
    jsonw_kv_u64(w, "version", 1);
    jsonw_kv(w, "sha256Hash", hash);
    jsonw_end_object(w);
    jsonw_end_object(w);
    jsonw_end_object(w);
}

int diff_write_graphql(struct dynbuf *b, const struct stands *v, size_t n)
{
    struct operation o = {.type = SPAN("query")};
    struct jsonw w;
    int rc = 0;
    jsonw_begin(&w, b);
    for (size_t i = 0; i < n; i++) {
        if (span_eq(v[i].key, SPAN("persisted"))) {
            write_stored(&w, v[i].text);
            return n == 1 ? 0 : -1; /* it stands alone */
        }
        if (span_eq(v[i].key, SPAN("type"))) {
            o.type = v[i].text;
            o.other_type = v[i].second;
        } else if (span_eq(v[i].key, SPAN("operation"))) {
            o.name = v[i].text;
        } else if (span_eq(v[i].key, SPAN("fields"))) {
            add_field(&o, v[i].text);
            add_field(&o, v[i].second);
        } else {
            o.argument[o.narguments++] = v[i];
        }
    }
    for (size_t i = 0; i < o.narguments; i++)
        add_field(&o, span_from(begin(o.argument[i].key, 1), 1));
    if (o.nfields == 0)
        add_field(&o, SPAN("__typename"));
    if (o.other_type.n)
        jsonw_array(&w);
    rc = write_request(&w, &o, o.type);
    if (o.other_type.n && rc == 0) {
        rc = write_request(&w, &o, o.other_type);
        jsonw_end_array(&w);
    }
    return rc;
}
