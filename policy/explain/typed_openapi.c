/* The operations of one subject as OpenAPI 3.1. A path stands in it once, whatever hosts it is at, and a method once
 * in it: what several rules let through there is said together, each alone in x-countersign. */
#include "policy/explain/typed.h"

#include "common/id.h"

enum { ONE_MAX = 64 * 1024, ALTERNATIVES_MAX = 16, DEPTH_MAX = 40 };

/* What one method at one path may be, of several rules. */
struct group {
    const struct typed_op *e;
    struct typed_facts f[ALTERNATIVES_MAX];
    size_t n;
};

/* ---- types ---- */

static void put_schema(struct jsonw *w, const struct type *t, unsigned depth);

static void put_texts(struct jsonw *w, const struct type *t)
{
    uint64_t number;
    if (t->n == 0) {
        jsonw_kv(w, "type", SPAN("string"));
        return;
    }
    jsonw_kv_array(w, "enum");
    for (size_t i = 0; i < t->n; i++) {
        struct span s = t->text[i];
        jsonw_string(w, s);
        if (t->plain &&
            (span_eq(s, SPAN("true")) || span_eq(s, SPAN("false")) || span_u64(s, UINT64_C(1) << 53, &number) == 0))
            jsonw_raw(w, s);
    }
    jsonw_end_array(w);
}

static void put_object(struct jsonw *w, const struct type *t, unsigned depth)
{
    bool required = false;
    jsonw_kv(w, "type", SPAN("object"));
    jsonw_kv_object(w, "properties");
    for (size_t i = 0; i < t->n; i++) {
        jsonw_name(w, t->field[i].name);
        put_schema(w, t->field[i].type, depth - 1);
        required |= t->field[i].required;
    }
    jsonw_end_object(w);
    if (required) {
        jsonw_kv_array(w, "required");
        for (size_t i = 0; i < t->n; i++)
            if (t->field[i].required)
                jsonw_string(w, t->field[i].name);
        jsonw_end_array(w);
    }
    if (!t->open)
        jsonw_kv_bool(w, "additionalProperties", false);
}

static void put_schema(struct jsonw *w, const struct type *t, unsigned depth)
{
    if (t == NULL || depth == 0) {
        w->out->failed = true;
        return;
    }
    jsonw_object(w);
    switch (t->kind) {
    case TYPE_TEXT: put_texts(w, t); break;
    case TYPE_NUMBER:
        jsonw_kv(w, "type", SPAN("integer"));
        if (t->bounded_above)
            jsonw_kv_u64(w, "maximum", t->most);
        if (t->bounded_below)
            jsonw_kv_u64(w, "minimum", t->least);
        break;
    case TYPE_NEVER:
        jsonw_kv_object(w, "not");
        jsonw_end_object(w);
        break;
    case TYPE_OBJECT: put_object(w, t, depth); break;
    case TYPE_ALL:
        jsonw_kv_array(w, "allOf");
        for (size_t i = 0; i < t->n; i++)
            put_schema(w, t->all[i], depth - 1);
        jsonw_end_array(w);
        break;
    case TYPE_ANY: break;
    }
    jsonw_end_object(w);
}

/* ---- parameters and bodies ---- */

static const struct type *part(const struct typed_facts *f, size_t in)
{
    return in == 0 ? f->path : in == 1 ? f->query : f->header;
}

static const struct field *find_field(const struct type *t, struct span name)
{
    for (size_t i = 0; i < t->n; i++)
        if (span_eq(t->field[i].name, name))
            return &t->field[i];
    return NULL;
}

static void put_param(struct jsonw *w, const struct group *g, size_t in, const struct field *f)
{
    static const char *const places[] = {"path", "query", "header"};
    bool required = true;
    for (size_t i = 0; i < g->n; i++) {
        const struct field *there = find_field(part(&g->f[i], in), f->name);
        required &= there && there->required;
    }
    jsonw_object(w);
    jsonw_kv(w, "name", f->name);
    jsonw_kv(w, "in", span_str(places[in]));
    jsonw_kv_bool(w, "required", required);
    jsonw_key(w, "schema");
    if (g->n == 1) {
        put_schema(w, f->type, DEPTH_MAX);
    } else { /* by which of them it is decided is not known */
        static const struct type text = {.kind = TYPE_TEXT};
        put_schema(w, &text, DEPTH_MAX);
    }
    jsonw_end_object(w);
}

static void put_params(struct jsonw *w, const struct group *g)
{
    jsonw_kv_array(w, "parameters");
    for (size_t in = 0; in < 3; in++)
        for (size_t i = 0; i < g->n; i++) {
            const struct type *t = part(&g->f[i], in);
            for (size_t k = 0; k < t->n; k++) {
                bool told = in == 0 && span_eq(t->field[k].name, SPAN("hostName")); /* of the server */
                for (size_t before = 0; before < i && !told; before++)
                    told = find_field(part(&g->f[before], in), t->field[k].name) != NULL;
                if (!told)
                    put_param(w, g, in, &t->field[k]);
            }
        }
    jsonw_end_array(w);
}

static struct span media_of(const struct typed_facts *f)
{
    return f->media.n ? f->media : SPAN("*/*");
}

static void put_media(struct jsonw *w, const struct group *g, struct span media)
{
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += g->f[i].as != BODY_AS_NONE && span_eq(media_of(&g->f[i]), media);
    jsonw_name(w, media);
    jsonw_object(w);
    jsonw_key(w, "schema");
    if (n > 1) {
        jsonw_object(w);
        jsonw_kv_array(w, "anyOf");
    }
    for (size_t i = 0; i < g->n; i++)
        if (g->f[i].as != BODY_AS_NONE && span_eq(media_of(&g->f[i]), media))
            put_schema(w, g->f[i].body, DEPTH_MAX);
    if (n > 1) {
        jsonw_end_array(w);
        jsonw_end_object(w);
    }
    jsonw_end_object(w);
}

static void put_body(struct jsonw *w, const struct group *g)
{
    bool some = false, required = true;
    for (size_t i = 0; i < g->n; i++) {
        some |= g->f[i].as != BODY_AS_NONE;
        required &= g->f[i].as != BODY_AS_NONE && g->f[i].body_required;
    }
    if (!some)
        return;
    jsonw_kv_object(w, "requestBody");
    jsonw_kv_bool(w, "required", required);
    jsonw_kv_object(w, "content");
    for (size_t i = 0; i < g->n; i++) {
        bool told = g->f[i].as == BODY_AS_NONE;
        for (size_t before = 0; before < i && !told; before++)
            told = g->f[before].as != BODY_AS_NONE && span_eq(media_of(&g->f[before]), media_of(&g->f[i]));
        if (!told)
            put_media(w, g, media_of(&g->f[i]));
    }
    jsonw_end_object(w);
    jsonw_end_object(w);
}

/* ---- operations ---- */

static void put_server(struct jsonw *w, const struct typed_op *e)
{
    size_t star = span_index(e->host, '*');
    jsonw_object(w);
    jsonw_kv(w, "url", e->origin);
    if (star < e->host.n) {
        char name[HTTP_HOST_MAX + 8] = "name";
        struct span rest = span_first(span_from(e->host, span_index(e->host, '.')), HTTP_HOST_MAX);
        if (rest.n)
            memcpy(name + 4, rest.p, rest.n);
        jsonw_kv_object(w, "variables");
        jsonw_kv_object(w, "hostName");
        jsonw_kv(w, "default", span_of(name, 4 + rest.n));
        jsonw_kv(w, "description", e->host);
        jsonw_end_object(w);
        jsonw_end_object(w);
    }
    jsonw_end_object(w);
}

static void put_servers(struct jsonw *w, const struct group *g)
{
    jsonw_kv_array(w, "servers");
    for (size_t i = 0; i < g->n; i++) {
        bool told = false;
        for (size_t before = 0; before < i && !told; before++)
            told = span_eq(g->e[before].origin, g->e[i].origin) && span_eq(g->e[before].host, g->e[i].host);
        if (!told)
            put_server(w, &g->e[i]);
    }
    jsonw_end_array(w);
}

static void put_alternatives(struct jsonw *w, const struct policy *p, const struct group *g)
{
    jsonw_kv_array(w, "x-countersign");
    for (size_t i = 0; i < g->n; i++) {
        const struct typed_op *e = &g->e[i];
        jsonw_object(w);
        jsonw_kv(w, "decision", span_str(verdict_name(e->verdict)));
        jsonw_kv(w, "server", e->origin);
        jsonw_kv(w, "path", e->glob);
        if (e->op) {
            jsonw_kv(w, "op", img_span(p, e->op->op));
            jsonw_kv(w, "effect", span_str(effect_name((enum effect)e->op->effect)));
        }
        jsonw_kv(w, "words", g->f[i].words);
        jsonw_end_object(w);
    }
    jsonw_end_array(w);
}

/* As OpenAPI names methods; one that it has not is an extension of its path. */
static void put_method_name(struct jsonw *w, struct span method)
{
    static const char *const known[] = {"GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE"};
    char name[40] = "x-";
    size_t n = 2;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (span_eq(method, span_str(known[i])))
            n = 0;
    for (size_t i = 0; i < method.n && n < sizeof(name); i++)
        name[n++] = (char)(method.p[i] >= 'A' && method.p[i] <= 'Z' ? method.p[i] | 0x20 : method.p[i]);
    jsonw_name(w, span_of(name, n));
}

static void put_operation(struct jsonw *w, const struct policy *p, const struct group *g)
{
    bool same = true;
    for (size_t i = 0; i < g->n; i++)
        same &= g->e[i].verdict == g->e[0].verdict;
    put_method_name(w, g->e[0].method);
    jsonw_object(w);
    jsonw_kv(w, "description", g->f[0].words);
    jsonw_kv(w, "x-countersign-decision", same ? span_str(verdict_name(g->e[0].verdict)) : SPAN("depends"));
    put_servers(w, g);
    put_params(w, g);
    put_body(w, g);
    jsonw_kv_object(w, "responses");
    jsonw_kv_object(w, "default");
    jsonw_kv(w, "description",
             SPAN("The server's answer; with a field Countersign-Decision it is the gateway's, which sent nothing."));
    jsonw_end_object(w);
    jsonw_end_object(w);
    put_alternatives(w, p, g);
    jsonw_end_object(w);
}

/* The operations from e on, of n, that have its path. Returns how many; of those that found no room: *left. */
static size_t put_path(const struct policy *p, const struct manifest_want *want, const struct typed_op *e, size_t n,
                       struct jsonw *w, size_t *left)
{
    size_t i = 0;
    jsonw_object(w);
    while (i < n && span_eq(e[i].shape, e[0].shape)) {
        struct group g = {.e = e + i};
        struct arena a;
        arena_init(&a, TYPED_ARENA_MAX);
        for (; i < n && span_eq(e[i].shape, g.e->shape) && span_eq(e[i].method, g.e->method); i++) {
            if (g.n == ALTERNATIVES_MAX)
                (*left)++;
            else if (!typed_facts(p, want, &e[i], &a, &g.f[g.n++]))
                w->out->failed = true;
        }
        put_operation(w, p, &g);
        arena_free(&a);
    }
    jsonw_end_object(w);
    return i;
}

/* The template without the sign that says that a part may be several segments: OpenAPI has none. */
static void put_path_name(struct jsonw *w, struct span path)
{
    struct dynbuf b;
    dynbuf_init(&b, ONE_MAX);
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] != '+' || i == 0 || path.p[i - 1] != '{')
            (void)dynbuf_add_byte(&b, path.p[i]);
    jsonw_name(w, dynbuf_span(&b));
    dynbuf_free(&b);
}

static void put_info(struct jsonw *w, const struct policy *p, const struct manifest_want *want)
{
    char hex[2 * DIGEST_BYTES + 1];
    hex_text(span_first(policy_digest(p), DIGEST_BYTES), hex);
    jsonw_kv(w, "openapi", SPAN("3.1.0"));
    jsonw_kv_object(w, "info");
    jsonw_kv(w, "title", SPAN("What this sandbox may ask for through Countersign"));
    jsonw_kv(w, "version", span_str(hex));
    jsonw_kv(
        w, "description",
        SPAN("x-countersign-decision says of each operation whether it is allowed; or held: a person approves each "
             "request first, repeat it unchanged to get the answer; or depends on what x-countersign lists. What is "
             "not here is denied. A rule may deny or hold a part of what is here: the answer says so. A parameter "
             "whose name begins with pathRest may have slashes."));
    jsonw_kv(w, "x-countersign-sandbox", want->subject->sandbox);
    jsonw_kv(w, "x-countersign-policy", policy_name(p));
    jsonw_end_object(w);
}

/* One path, if it has room. Returns how many operations it has; of those that are not told: *left. */
static size_t add_path(const struct policy *p, const struct manifest_want *want, const struct typed_op *e, size_t n,
                       struct jsonw *w, size_t *room, size_t *left)
{
    struct dynbuf one;
    struct jsonw own;
    size_t cut = 0;
    dynbuf_init(&one, ONE_MAX);
    jsonw_begin(&own, &one);
    n = put_path(p, want, e, n, &own, &cut);
    size_t need = one.n + e->path.n + 4;
    if (dynbuf_ok(&one) && need <= *room) {
        put_path_name(w, e->path);
        jsonw_raw(w, dynbuf_span(&one));
        *room -= need;
    } else {
        if (dynbuf_ok(&one))
            *room = 0; /* it is full: the others are counted, not written */
        cut = n;
    }
    *left += cut;
    dynbuf_free(&one);
    return n;
}

size_t policy_openapi(const struct policy *p, const struct manifest_want *want, struct jsonw *w)
{
    struct arena a;
    struct typed list;
    size_t room = want->room;
    arena_init(&a, TYPED_ARENA_MAX);
    typed_collect(p, want, &a, &list);
    jsonw_object(w);
    put_info(w, p, want);
    jsonw_kv_object(w, "paths");
    for (size_t i = 0; i < list.n;) {
        if (room == 0) {
            list.left += list.n - i;
            break;
        }
        i += add_path(p, want, &list.v[i], list.n - i, w, &room, &list.left);
    }
    jsonw_end_object(w);
    if (list.left) {
        jsonw_kv_u64(w, "x-countersign-left-out", list.left);
        jsonw_kv(w, "x-countersign-hint", SPAN("There are more: ask for one host with ?as=openapi&host=NAME."));
    }
    jsonw_end_object(w);
    arena_free(&a);
    return list.left;
}
