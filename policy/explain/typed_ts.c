/* The operations of one subject as a module of TypeScript: a type for each, and a function that makes a request of
 * one. All that comes from a policy stands in string literals of plain ASCII and in comments, nowhere else. */
#include "policy/explain/typed.h"

#include "common/id.h"
#include "common/text/utf8.h"
#include "common/text/visible.h"

enum { ONE_MAX = 64 * 1024, DEPTH_MAX = 40 };

/* ---- what may stand in a module ---- */

static void put_unit(struct dynbuf *b, uint32_t unit)
{
    (void)dynbuf_addf(b, "\\u%04x", (unsigned)unit);
}

/* A string literal: what is not printable ASCII is escaped, also the line ends of Unicode. */
static void put_string(struct dynbuf *b, struct span s)
{
    (void)dynbuf_add_byte(b, '"');
    while (s.n) {
        size_t n = utf8_char(s);
        uint32_t c = n ? utf8_code(s, n) : 0xfffd;
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\') {
            (void)dynbuf_add_byte(b, (uint8_t)c);
        } else if (c < 0x10000) {
            put_unit(b, c);
        } else {
            put_unit(b, 0xd800 + ((c - 0x10000) >> 10));
            put_unit(b, 0xdc00 + ((c - 0x10000) & 0x3ff));
        }
        s = span_from(s, n ? n : 1);
    }
    (void)dynbuf_add_byte(b, '"');
}

/* Within a comment, on one line: what hides or reorders is escaped, and nothing ends the comment. */
static void put_comment(struct dynbuf *b, struct span s)
{
    struct dynbuf shown;
    dynbuf_init(&shown, ONE_MAX);
    visible_text(&shown, s, false);
    if (!dynbuf_ok(&shown))
        b->failed = true;
    for (size_t i = 0; i < shown.n; i++) {
        if (shown.p[i] == '/' && i > 0 && shown.p[i - 1] == '*')
            (void)dynbuf_add_byte(b, '\\');
        (void)dynbuf_add_byte(b, shown.p[i]);
    }
    dynbuf_free(&shown);
}

/* ---- types ---- */

static void put_texts(struct dynbuf *b, const struct type *t)
{
    uint64_t number;
    if (t->n == 0)
        (void)dynbuf_add(b, SPAN("string"));
    for (size_t i = 0; i < t->n; i++) {
        struct span s = t->text[i];
        bool literal = t->plain && (span_eq(s, SPAN("true")) || span_eq(s, SPAN("false")) ||
                                    span_u64(s, UINT64_C(1) << 53, &number) == 0);
        (void)dynbuf_add(b, i ? SPAN(" | ") : SPAN_NONE);
        put_string(b, s);
        if (literal)
            (void)dynbuf_addf(b, " | %.*s", SPAN_FMT(s));
    }
}

static void put_type(struct dynbuf *b, const struct type *t, unsigned depth);

static void put_object(struct dynbuf *b, const struct type *t, unsigned depth)
{
    if (t->n == 0 && t->open && t->texts) {
        (void)dynbuf_add(b, SPAN("Texts"));
        return;
    }
    (void)dynbuf_add(b, SPAN("{ "));
    for (size_t i = 0; i < t->n; i++) {
        put_string(b, t->field[i].name);
        (void)dynbuf_add(b, t->field[i].required ? SPAN(": ") : SPAN("?: "));
        put_type(b, t->field[i].type, depth - 1);
        (void)dynbuf_add(b, SPAN("; "));
    }
    if (t->open)
        (void)dynbuf_addf(b, "[name: string]: %s; ", t->texts ? "string | undefined" : "unknown");
    (void)dynbuf_add_byte(b, '}');
}

static void put_type(struct dynbuf *b, const struct type *t, unsigned depth)
{
    if (t == NULL || depth == 0) {
        b->failed = true;
        return;
    }
    switch (t->kind) {
    case TYPE_TEXT: put_texts(b, t); return;
    case TYPE_NUMBER:
        (void)dynbuf_addf(b, "number /* at %s %llu */", t->bounded_above ? "most" : "least",
                          (unsigned long long)(t->bounded_above ? t->most : t->least));
        return;
    case TYPE_NEVER: (void)dynbuf_add(b, SPAN("never")); return;
    case TYPE_OBJECT: put_object(b, t, depth); return;
    case TYPE_ALL:
        for (size_t i = 0; i < t->n; i++) {
            (void)dynbuf_add(b, i ? SPAN(" & ") : SPAN_NONE);
            put_type(b, t->all[i], depth - 1);
        }
        return;
    case TYPE_ANY: break;
    }
    (void)dynbuf_add(b, SPAN("unknown"));
}

static bool needed(const struct type *t)
{
    for (size_t i = 0; t && i < t->n; i++)
        if (t->field[i].required)
            return true;
    return false;
}

static void put_part(struct dynbuf *b, const char *name, const struct type *t)
{
    if (t && t->n == 0 && !t->open)
        return; /* there is nothing to give */
    (void)dynbuf_addf(b, " %s%s: ", name, needed(t) ? "" : "?");
    put_type(b, t, DEPTH_MAX);
    (void)dynbuf_add_byte(b, ';');
}

/* ---- operations ---- */

/* What request() knows by itself need not be said. */
static void put_media(struct dynbuf *b, const struct typed_facts *f)
{
    bool usual = f->as == BODY_AS_FORM || (f->as == BODY_AS_JSON && span_eq(f->media, SPAN("application/json")));
    if (f->as == BODY_AS_NONE || usual)
        return;
    (void)dynbuf_add(b, f->media.n ? SPAN(" type: ") : SPAN(" type?: string;"));
    if (f->media.n == 0)
        return;
    put_string(b, f->media);
    (void)dynbuf_add_byte(b, ';');
}

static void put_facts(struct dynbuf *b, const struct typed_op *e, const struct typed_facts *f)
{
    static const char *const names[] = {[BODY_AS_BYTES] = "body", [BODY_AS_JSON] = "json", [BODY_AS_FORM] = "form"};
    (void)dynbuf_add(b, SPAN("\n    /** "));
    put_comment(b, f->words);
    (void)dynbuf_addf(b, " */\n    | { decision: \"%s\";", verdict_name(e->verdict));
    put_part(b, "path", f->path);
    put_part(b, "query", f->query);
    put_part(b, "headers", f->header);
    if (f->as != BODY_AS_NONE) {
        (void)dynbuf_addf(b, " %s%s: ", names[f->as], f->body_required ? "" : "?");
        if (f->as == BODY_AS_BYTES)
            (void)dynbuf_add(b, SPAN("string"));
        else
            put_type(b, f->body, DEPTH_MAX);
        (void)dynbuf_add_byte(b, ';');
    }
    put_media(b, f);
    (void)dynbuf_add(b, SPAN(" }"));
}

static bool is_same(const struct typed_op *a, const struct typed_op *b)
{
    return span_eq(a->shape, b->shape) && span_eq(a->method, b->method) && span_eq(a->origin, b->origin);
}

static void put_name(struct dynbuf *b, const struct typed_op *e)
{
    struct dynbuf name;
    dynbuf_init(&name, ONE_MAX);
    (void)dynbuf_addf(&name, "%.*s %.*s%.*s", SPAN_FMT(e->method), SPAN_FMT(e->origin), SPAN_FMT(e->path));
    if (!dynbuf_ok(&name))
        b->failed = true;
    put_string(b, dynbuf_span(&name));
    dynbuf_free(&name);
}

/* The n operations that are one method at one place: a type, and in decisions what is known of all of them. */
static void put_group(const struct policy *p, const struct manifest_want *want, const struct typed_op *e, size_t n,
                      struct dynbuf *type, struct dynbuf *decision)
{
    bool same = true;
    (void)dynbuf_add(type, SPAN("  "));
    put_name(type, e);
    (void)dynbuf_add_byte(type, ':');
    for (size_t i = 0; i < n; i++) {
        struct typed_facts f;
        struct arena a;
        arena_init(&a, TYPED_ARENA_MAX);
        if (typed_facts(p, want, &e[i], &a, &f))
            put_facts(type, &e[i], &f);
        else
            type->failed = true;
        arena_free(&a);
        same &= e[i].verdict == e[0].verdict;
    }
    (void)dynbuf_add(type, SPAN(";\n"));
    (void)dynbuf_add(decision, SPAN("  "));
    put_name(decision, e);
    (void)dynbuf_addf(decision, ": \"%s\",\n", same ? verdict_name(e->verdict) : "depends");
}

static void put_head(const struct policy *p, const struct manifest_want *want, struct dynbuf *out)
{
    char hex[2 * DIGEST_BYTES + 1];
    hex_text(span_first(policy_digest(p), DIGEST_BYTES), hex);
    (void)dynbuf_add(out, SPAN("// What sandbox "));
    put_comment(out, want->subject->sandbox);
    (void)dynbuf_add(out, SPAN(" may ask for through Countersign, by policy "));
    put_comment(out, policy_name(p));
    (void)dynbuf_addf(
        out,
        "\n// (%s).\n// Made by http://countersign.internal/v1/manifest?as=typescript\n"
        "// \"hold\": a person approves each request first; repeat it unchanged to get the answer. What is "
        "not here is denied.\n// A rule may deny or hold a part of what is here: the answer says so.\n\n"
        "export interface Texts {\n  [name: string]: string | undefined;\n}\n\n"
        "export interface Operations {\n",
        hex);
}

/* Its own: nothing of a policy. */
static const char tail[] =
    "export type Operation = keyof Operations;\n"
    "type Given<T> = T extends unknown ? Omit<T, \"decision\"> : never;\n"
    "export type Arguments<K extends Operation> = Given<Operations[K]>;\n\n"
    "export interface HttpRequest {\n"
    "  url: string;\n"
    "  method: string;\n"
    "  headers: { [name: string]: string };\n"
    "  body?: string;\n"
    "}\n\n"
    "function pairs(of: Texts | undefined): string {\n"
    "  const from: Texts = of || {};\n"
    "  return Object.keys(from)\n"
    "    .filter((name) => from[name] !== undefined)\n"
    "    .map((name) => encodeURIComponent(name) + \"=\" + encodeURIComponent(String(from[name])))\n"
    "    .join(\"&\");\n"
    "}\n\n"
    "function place(template: string, path: Texts | undefined): string {\n"
    "  return template.replace(/\\{(\\+?)(\\w+)\\}/g, (_all: string, deep: string, name: string) => {\n"
    "    const value = String((path || {})[name]);\n"
    "    return name === \"hostName\" ? value : deep ? value.split(\"/\").map((one) => encodeURIComponent(one))"
    ".join(\"/\") : encodeURIComponent(value);\n"
    "  });\n"
    "}\n\n"
    "/** The request as fetch takes it: const { url, ...init } = request(...); await fetch(url, init) */\n"
    "export function request<K extends Operation>(operation: K, given: Arguments<K>): HttpRequest {\n"
    "  const text: string = operation;\n"
    "  const all = given as unknown as { path?: Texts; query?: Texts; headers?: Texts; json?: unknown; form?: Texts; "
    "body?: string; type?: string };\n"
    "  const space = text.indexOf(\" \");\n"
    "  const query = pairs(all.query);\n"
    "  const made: HttpRequest = {\n"
    "    url: place(text.slice(space + 1), all.path) + (query ? \"?\" + query : \"\"),\n"
    "    method: text.slice(0, space),\n"
    "    headers: {},\n"
    "  };\n"
    "  const fields: Texts = all.headers || {};\n"
    "  Object.keys(fields).forEach((name) => {\n"
    "    if (fields[name] !== undefined) made.headers[name] = String(fields[name]);\n"
    "  });\n"
    "  const type = all.type || (all.json !== undefined ? \"application/json\" : all.form !== undefined ? "
    "\"application/x-www-form-urlencoded\" : undefined);\n"
    "  if (type !== undefined) made.headers[\"Content-Type\"] = type;\n"
    "  if (all.json !== undefined) made.body = JSON.stringify(all.json);\n"
    "  else if (all.form !== undefined) made.body = pairs(all.form);\n"
    "  else if (all.body !== undefined) made.body = all.body;\n"
    "  return made;\n"
    "}\n";

/* One name, if it has room; in decisions what is said of it there. Returns how many operations it has. */
static size_t add_group(const struct policy *p, const struct manifest_want *want, const struct typed_op *e,
                        size_t most, struct dynbuf *out, struct dynbuf *decisions, size_t *room, size_t *left)
{
    struct dynbuf type, decision;
    size_t n = 1;
    while (n < most && is_same(e, &e[n]))
        n++;
    dynbuf_init(&type, ONE_MAX);
    dynbuf_init(&decision, ONE_MAX);
    put_group(p, want, e, n, &type, &decision);
    bool whole = dynbuf_ok(&type) && dynbuf_ok(&decision);
    if (whole && type.n + decision.n <= *room) {
        (void)dynbuf_add(out, dynbuf_span(&type));
        (void)dynbuf_add(decisions, dynbuf_span(&decision));
        *room -= type.n + decision.n;
    } else {
        *left += n;
        if (whole)
            *room = 0; /* it is full: the others are counted, not written */
    }
    dynbuf_free(&type);
    dynbuf_free(&decision);
    return n;
}

size_t policy_typescript(const struct policy *p, const struct manifest_want *want, struct dynbuf *out)
{
    struct arena a;
    struct typed list;
    struct dynbuf decisions;
    size_t room = want->room;
    arena_init(&a, TYPED_ARENA_MAX);
    dynbuf_init(&decisions, want->room + 1);
    typed_collect(p, want, &a, &list);
    put_head(p, want, out);
    for (size_t i = 0; i < list.n;) {
        if (room == 0) {
            list.left += list.n - i;
            break;
        }
        i += add_group(p, want, &list.v[i], list.n - i, out, &decisions, &room, &list.left);
    }
    (void)dynbuf_add(out, SPAN("}\n\nexport const decisions: { readonly [K in keyof Operations]: "
                               "\"allow\" | \"hold\" | \"depends\" } = {\n"));
    (void)dynbuf_add(out, dynbuf_span(&decisions));
    (void)dynbuf_add(out, SPAN("};\n\n"));
    if (list.left)
        (void)dynbuf_addf(
            out, "// At least %zu more found no room: ask for one host with ?as=typescript&host=NAME\n\n", list.left);
    (void)dynbuf_add(out, span_str(tail));
    dynbuf_free(&decisions);
    arena_free(&a);
    return list.left;
}
