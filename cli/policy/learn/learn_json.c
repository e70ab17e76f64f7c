/* Shapes as one JSON document. What a sandbox sent is shown as in YAML's comments: printable ASCII alone. */
#include <stdio.h>

#include "common/json/json.h"
#include "cli/policy/learn/learn.h"
#include "cli/policy/replay/replay.h"
#include "cli/policy/show.h"

static void shown(struct jsonw *w, const char *key, struct span s)
{
    char text[160];
    replay_plain(s, text, sizeof(text));
    if (key)
        jsonw_kv(w, key, span_str(text));
    else
        jsonw_string(w, span_str(text));
}

static void texts(struct jsonw *w, const char *key, const struct span *v, size_t n)
{
    jsonw_kv_array(w, key);
    for (size_t i = 0; i < n; i++)
        jsonw_string(w, v[i]);
    jsonw_end_array(w);
}

/* As the rule has it: the same keys and values. */
static void json_query(struct jsonw *w, const struct shape *s)
{
    const struct span any = SPAN("*");
    char name[208];
    jsonw_kv_array(w, "query_names");
    for (size_t i = 0; i < s->nnames; i++)
        jsonw_string(w, s->names[i].name);
    jsonw_end_array(w);
    if (s->nnames == 0)
        return;
    jsonw_kv_object(w, "query");
    for (size_t i = 0; i < s->nnames; i++) {
        bool listed = s->names[i].n <= VALUES_MOST;
        (void)snprintf(name, sizeof(name), "%.*s", SPAN_FMT(s->names[i].name));
        texts(w, name, listed ? s->names[i].value : &any, listed ? s->names[i].n : 1);
    }
    jsonw_end_object(w);
}

static void json_git(struct jsonw *w, const struct shape *s)
{
    static const struct span fetch[] = {SPAN("git.fetch"), SPAN("git.fetch.refs")};
    bool push = span_eq(s->op, SPAN("git.push"));
    if (push)
        jsonw_kv(w, "op", s->op);
    else
        texts(w, "op", fetch, 2);
    jsonw_kv(w, "resource", s->resource);
    if (!push)
        return;
    jsonw_kv_object(w, "git");
    texts(w, "refs", s->refs, s->nrefs);
    if (!s->deletes)
        jsonw_kv_bool(w, "delete", false);
    jsonw_end_object(w);
}

static void json_match(struct jsonw *w, const struct shape *s)
{
    jsonw_kv_object(w, "match");
    jsonw_kv(w, "scheme", s->scheme);
    jsonw_kv(w, "host", s->host);
    jsonw_kv_u64(w, "port", s->port);
    if (learn_is_git(s)) {
        json_git(w, s);
    } else {
        jsonw_kv(w, "method", s->method);
        jsonw_kv(w, "path", s->path);
        json_query(w, s);
    }
    jsonw_kv(w, "effect", s->effect);
    jsonw_end_object(w);
}

static void json_rule(struct jsonw *w, const struct learnt *t, const struct shape *s)
{
    char first[32], last[32];
    replay_moment(s->first_ms, first);
    replay_moment(s->last_ms, last);
    jsonw_object(w);
    jsonw_kv(w, "id", span_str(s->id));
    if (t->scope.n)
        jsonw_kv(w, "scope", t->scope);
    json_match(w, s);
    jsonw_kv(w, "decide", s->read ? SPAN("allow") : SPAN("hold"));
    if (s->use == USE_GIVEN)
        jsonw_kv(w, "use", s->used[0]);
    jsonw_kv_u64(w, "count", s->count);
    jsonw_kv(w, "first_seen", span_str(first));
    jsonw_kv(w, "last_seen", span_str(last));
    jsonw_kv_array(w, "sandboxes");
    for (size_t i = 0; i < s->nsandboxes; i++)
        shown(w, NULL, s->sandbox[i]);
    jsonw_end_array(w);
    jsonw_kv_bool(w, "more_sandboxes", s->more_sandboxes);
    jsonw_kv_array(w, "credentials");
    for (size_t i = 0; i < s->nused; i++)
        shown(w, NULL, s->used[i]);
    jsonw_end_array(w);
    jsonw_end_object(w);
}

static void json_warning(struct jsonw *w, const struct shape *s, const char *code, struct span text)
{
    jsonw_object(w);
    jsonw_kv(w, "code", span_str(code));
    jsonw_kv(w, "severity", SPAN("warning"));
    jsonw_kv(w, "rule", span_str(s->id));
    jsonw_kv(w, "text", text);
    jsonw_end_object(w);
}

static void json_warnings(struct jsonw *w, const struct learnt *t)
{
    char text[80];
    struct dynbuf used;
    dynbuf_init(&used, 8192);
    jsonw_kv_array(w, "warnings");
    for (size_t i = 0; i < t->n; i++) {
        const struct shape *s = t->shape[i];
        if (s->left)
            continue;
        dynbuf_reset(&used);
        learn_used(&used, s);
        if (s->use != USE_NONE && s->use != USE_GIVEN)
            json_warning(w, s, learn_use_words(s->use)->code, dynbuf_span(&used));
        for (enum doubt d = 0; d < DOUBTS; d++)
            if (s->doubt[d])
                json_warning(w, s, learn_doubt(d)->code, span_str(learn_doubt(d)->words));
        if (s->read)
            continue;
        (void)snprintf(text, sizeof(text), "a %.*s; it waits for approval", SPAN_FMT(s->effect));
        json_warning(w, s, "held-write", span_str(text));
    }
    dynbuf_free(&used);
    jsonw_end_array(w);
}

static void json_many(struct jsonw *w, enum left why, uint64_t count)
{
    if (count == 0)
        return;
    jsonw_object(w);
    jsonw_kv(w, "code", span_str(learn_left(why)->code));
    jsonw_kv(w, "reason", span_str(learn_left(why)->words));
    jsonw_kv_u64(w, "count", count);
    jsonw_end_object(w);
}

static void json_left(struct jsonw *w, const struct learnt *t)
{
    jsonw_kv_array(w, "left_out");
    for (size_t i = 0; i < t->n; i++) {
        const struct shape *s = t->shape[i];
        if (s->left == LEFT_NOT)
            continue;
        jsonw_object(w);
        jsonw_kv(w, "code", span_str(learn_left(s->left)->code));
        jsonw_kv(w, "reason", span_str(learn_left(s->left)->words));
        shown(w, "method", s->method);
        shown(w, "host", s->host);
        jsonw_kv_u64(w, "count", s->count);
        jsonw_end_object(w);
    }
    json_many(w, LEFT_LABELS, t->unlabelled);
    json_many(w, LEFT_KINDS, t->beyond);
    jsonw_end_array(w);
}

static void json_counts(struct jsonw *w, const struct learnt *t, const struct source_seen *seen)
{
    const char *packs[LEARNT_PACKS];
    size_t n = learn_packs(t, packs);
    jsonw_kv_u64(w, "records", seen->records);
    jsonw_kv_u64(w, "requests", seen->requests);
    jsonw_kv_u64(w, "damaged", seen->damaged);
    jsonw_kv_u64(w, "not_judged", seen->unjudged);
    jsonw_kv_u64(w, "other_sandboxes", t->others);
    jsonw_kv_u64(w, "let_through", t->allowed);
    jsonw_kv_u64(w, "denied", t->denied);
    jsonw_kv_u64(w, "kinds", t->n);
    jsonw_kv_array(w, "packs");
    for (size_t i = 0; i < n; i++)
        jsonw_string(w, span_str(packs[i]));
    jsonw_end_array(w);
}

int learn_json(const struct learnt *t, const struct source_seen *seen, const struct dynbuf *patch,
               const char *no_patch)
{
    struct dynbuf out;
    struct jsonw w;
    dynbuf_init(&out, 64 << 20);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    json_counts(&w, t, seen);
    jsonw_kv_array(&w, "rules");
    for (size_t i = 0; i < t->n; i++)
        if (t->shape[i]->left == LEFT_NOT)
            json_rule(&w, t, t->shape[i]);
    jsonw_end_array(&w);
    json_warnings(&w, t);
    json_left(&w, t);
    if (no_patch)
        jsonw_kv(&w, "no_patch", span_str(no_patch));
    else if (patch)
        jsonw_kv(&w, "patch", dynbuf_span(patch));
    jsonw_end_object(&w);
    return show_json(&out);
}
