/* Shapes as YAML. Every text is in double quotes, and what is not printable ASCII is escaped: nothing that a sandbox
 * sent can be read as anything but a text. */
#include <stdio.h>

#include "cli/policy/learn/learn.h"
#include "cli/policy/replay/replay.h"

/* In double quotes, whatever it is. */
static void quoted(struct dynbuf *out, struct span s)
{
    (void)dynbuf_add_byte(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        if (c == '"' || c == '\\')
            (void)dynbuf_addf(out, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            (void)dynbuf_addf(out, "\\x%02X", c);
        else
            (void)dynbuf_add_byte(out, c);
    }
    (void)dynbuf_add_byte(out, '"');
}

static void line(struct dynbuf *out, const char *key, struct span s)
{
    (void)dynbuf_addf(out, "      %s: ", key);
    quoted(out, s);
    (void)dynbuf_add_byte(out, '\n');
}

static void list(struct dynbuf *out, const struct span *v, size_t n)
{
    (void)dynbuf_add_byte(out, '[');
    for (size_t i = 0; i < n; i++) {
        (void)dynbuf_add(out, i ? SPAN(", ") : SPAN_NONE);
        quoted(out, v[i]);
    }
    (void)dynbuf_add_byte(out, ']');
}

/* Foreign text in a comment: printable, short, on its line. */
static void shown(struct dynbuf *out, struct span s)
{
    char text[160];
    replay_plain(s, text, sizeof(text));
    (void)dynbuf_add(out, span_str(text));
}

static void evidence(struct dynbuf *out, const struct shape *s)
{
    char first[32], last[32];
    replay_moment(s->first_ms, first);
    replay_moment(s->last_ms, last);
    (void)dynbuf_addf(out, "  # seen %llu times from %s to %s by sandbox ", (unsigned long long)s->count, first,
                      last);
    shown(out, s->sandbox[0]);
    (void)dynbuf_add(out, s->nsandboxes > 1 ? SPAN(" and others\n") : SPAN("\n"));
}

static void put_query(struct dynbuf *out, const struct shape *s)
{
    struct span names[NAMES_MOST];
    for (size_t i = 0; i < s->nnames; i++)
        names[i] = s->names[i].name;
    (void)dynbuf_add(out, SPAN("      query_names: "));
    list(out, names, s->nnames);
    (void)dynbuf_add(out, s->nnames ? SPAN("\n      query:\n") : SPAN("\n"));
    for (size_t i = 0; i < s->nnames;
         i++) { /* also where any value will do: without the name it is another request */
        const struct span any = SPAN("*");
        bool listed = s->names[i].n <= VALUES_MOST;
        (void)dynbuf_add(out, SPAN("        "));
        quoted(out, s->names[i].name);
        (void)dynbuf_add(out, SPAN(": "));
        list(out, listed ? s->names[i].value : &any, listed ? s->names[i].n : 1);
        (void)dynbuf_add_byte(out, '\n');
    }
}

void learn_used(struct dynbuf *out, const struct shape *s)
{
    (void)dynbuf_add(out,
                     s->nused > 1 ? SPAN("it went with the credentials ") : SPAN("it went with the credential "));
    for (size_t i = 0; i < s->nused; i++) {
        (void)dynbuf_add(out, i ? SPAN(", ") : SPAN_NONE);
        shown(out, s->used[i]);
    }
    (void)dynbuf_addf(out, ", %s; this rule sends it without", learn_use_words(s->use)->words);
}

static void credential(struct dynbuf *out, const struct shape *s)
{
    if (s->use == USE_NONE || s->use == USE_GIVEN)
        return;
    (void)dynbuf_add(out, s->use == USE_NO_POLICY ? SPAN("  # ") : SPAN("  # WARNING: "));
    learn_used(out, s);
    (void)dynbuf_add_byte(out, '\n');
}

static void put_rule(struct dynbuf *out, const struct learnt *t, const struct shape *s)
{
    evidence(out, s);
    if (!s->read)
        (void)dynbuf_addf(out, "  # WARNING: a %.*s; it waits for approval\n", SPAN_FMT(s->effect));
    for (enum doubt d = 0; d < DOUBTS; d++)
        if (s->doubt[d])
            (void)dynbuf_addf(out, "  # WARNING: %s\n", learn_doubt(d)->words);
    credential(out, s);
    (void)dynbuf_addf(out, "  - id: %s\n", s->id);
    if (t->scope.n) {
        (void)dynbuf_add(out, SPAN("    scope: "));
        quoted(out, t->scope);
        (void)dynbuf_add_byte(out, '\n');
    }
    (void)dynbuf_add(out, SPAN("    match:\n"));
    line(out, "scheme", s->scheme);
    line(out, "host", s->host);
    (void)dynbuf_addf(out, "      port: %llu\n", (unsigned long long)s->port);
    if (learn_is_git(s)) {
        bool push = span_eq(s->op, SPAN("git.push"));
        (void)dynbuf_add(out, push ? SPAN("      op: git.push\n") : SPAN("      op: [git.fetch, git.fetch.refs]\n"));
        line(out, "resource", s->resource);
        if (push) {
            (void)dynbuf_add(out, SPAN("      git: { refs: "));
            list(out, s->refs, s->nrefs);
            (void)dynbuf_add(out, s->deletes ? SPAN(" }\n") : SPAN(", delete: false }\n"));
        }
    } else {
        line(out, "method", s->method);
        line(out, "path", s->path);
        put_query(out, s);
    }
    (void)dynbuf_addf(out, "      effect: %.*s\n    decide: %s\n", SPAN_FMT(s->effect), s->read ? "allow" : "hold");
    if (s->use == USE_GIVEN) {
        (void)dynbuf_add(out, SPAN("    use: "));
        quoted(out, s->used[0]);
        (void)dynbuf_add_byte(out, '\n');
    }
}

size_t learn_packs(const struct learnt *t, const char *out[LEARNT_PACKS])
{
    static const struct {
        struct span op;
        const char *pack;
    } packs[LEARNT_PACKS] = {{SPAN("git."), "git@1"},
                             {SPAN("graphql."), "graphql@1"},
                             {SPAN("mcp."), "mcp@1"},
                             {SPAN("npm."), "npm@1"},
                             {SPAN("pypi."), "pypi@1"}};
    size_t n = 0;
    for (size_t k = 0; k < LEARNT_PACKS; k++) {
        bool used = false;
        for (size_t i = 0; i < t->n; i++)
            used |= span_starts(t->shape[i]->op, packs[k].op);
        if (used)
            out[n++] = packs[k].pack;
    }
    return n;
}

static void put_packs(struct dynbuf *out, const struct learnt *t)
{
    const char *packs[LEARNT_PACKS];
    size_t n = learn_packs(t, packs);
    for (size_t i = 0; i < n; i++)
        (void)dynbuf_addf(out, "%s%s", i ? ", " : "packs: [", packs[i]);
    (void)dynbuf_add(out, n ? SPAN("]\n") : SPAN_NONE);
}

static void put_left(struct dynbuf *out, const struct shape *s)
{
    (void)dynbuf_add(out, SPAN("# left out: "));
    shown(out, s->method);
    (void)dynbuf_add(out, SPAN(" "));
    shown(out, s->host);
    (void)dynbuf_addf(out, ", %llu times: %s\n", (unsigned long long)s->count, learn_left(s->left)->words);
}

void learn_write(const struct learnt *t, bool whole, struct dynbuf *out)
{
    bool rules = false;
    if (whole) {
        (void)dynbuf_add(out,
                         SPAN("# Proposed from recorded requests by `countersign policy learn`. Review every rule.\n"
                              "version: 1\nname: learned\n"));
        put_packs(out, t);
    }
    for (size_t i = 0; i < t->n; i++)
        if (t->shape[i]->left)
            put_left(out, t->shape[i]);
    if (t->unlabelled)
        (void)dynbuf_addf(out, "# left out: %llu requests: %s\n", (unsigned long long)t->unlabelled,
                          learn_left(LEFT_LABELS)->words);
    if (t->beyond)
        (void)dynbuf_addf(out, "# left out: %llu requests beyond the first %d kinds\n", (unsigned long long)t->beyond,
                          SHAPES_MAX);
    for (size_t i = 0; i < t->n; i++) {
        if (t->shape[i]->left)
            continue;
        if (!rules && whole)
            (void)dynbuf_add(out, SPAN("rules:\n"));
        rules = true;
        put_rule(out, t, t->shape[i]);
    }
}
