#include "proxy/dock/record.h"

#include "proxy/dock/parse/network.h"

static bool is_none(const struct json *j)
{
    return !j || j->type == JSON_NULL || (j->type == JSON_BOOL && !j->truth) ||
           ((j->type == JSON_ARRAY || j->type == JSON_OBJECT) && j->count == 0);
}

/* Members of a create that change nothing here, and those that would have to. */
static const struct {
    struct span name;
    const char *why; /* NULL: it may be anything */
} members[] = {
    {{(const uint8_t *)"templateID", 10}, NULL},
    {{(const uint8_t *)"metadata", 8}, NULL},
    {{(const uint8_t *)"envVars", 7}, NULL},
    {{(const uint8_t *)"timeout", 7}, NULL},
    {{(const uint8_t *)"secure", 6}, NULL},                 /* it always is */
    {{(const uint8_t *)"allow_internet_access", 21}, NULL}, /* parse/network.h */
    {{(const uint8_t *)"autoPauseMemory", 15}, NULL},
    {{(const uint8_t *)"network", 7}, NULL}, /* the same */
    {{(const uint8_t *)"autoPause", 9}, "a sandbox whose time is over ends here: `onTimeout: pause` is not had yet"},
    {{(const uint8_t *)"autoResume", 10}, "sandboxes go on when they are connected to: `autoResume` is not had yet"},
    {{(const uint8_t *)"iam", 3}, "`iam` is not had here"},
    {{(const uint8_t *)"mcp", 3}, "`mcp` is not had here"},
    {{(const uint8_t *)"volumeMounts", 12}, "volumes are not had here"},
};

/* What a sandbox may reach, its tenant's lane and the policy say; here that is narrowed, to nothing at all where all
 * is denied and nothing named. */
static int network_take(struct call *x, const struct json *body, struct record *r)
{
    const char *words = NULL;
    struct network n;
    unsigned status = network_read(body, &n, &words);

    if (status != 0) {
        reply_no(x, status, "%s", words);
        return -1;
    }
    r->allow = n.allow;
    r->deny = n.deny;
    r->alone = n.alone;
    return 0;
}

static int texts_take(struct call *x, const struct json *o, const char *what, bool names)
{
    size_t n = 0, bytes = 0;
    bool ok = !o || o->type == JSON_OBJECT;

    for (const struct json *m = ok && o ? o->child : NULL; m; m = m->next) {
        ok &= m->type == JSON_STRING && span_index(m->text, '\0') == m->text.n;
        ok &= !names || (m->key.n > 0 && span_index(m->key, '=') == m->key.n);
        bytes += m->key.n + m->text.n;
        n++;
    }
    if (ok && n <= RECORD_TEXTS_MAX && bytes <= RECORD_BYTES_MAX)
        return 0;
    reply_no(x, 400, "`%s` is an object of at most %d texts, together at most %d bytes", what, RECORD_TEXTS_MAX,
             RECORD_BYTES_MAX);
    return -1;
}

static const struct json *there(const struct json *body, struct span name)
{
    const struct json *j = json_get(body, name);

    return j && j->type != JSON_NULL ? j : NULL;
}

static int member_ok(struct call *x, const struct json *m)
{
    size_t i = 0;

    while (i < sizeof(members) / sizeof(members[0]) && !span_eq(m->key, members[i].name))
        i++;
    if (i == sizeof(members) / sizeof(members[0])) {
        reply_no(x, 400, "the body has a member that is not known here");
        return -1;
    }
    bool off = span_eq(m->key, SPAN("autoResume")) && is_none(json_get(m, SPAN("enabled")));
    if (!members[i].why || is_none(m) || off)
        return 0;
    reply_no(x, 501, "%s", members[i].why);
    return -1;
}

int record_take(struct call *x, const struct json *body, struct record *r)
{
    *r = (struct record){.template = json_text(body, SPAN("templateID")),
                         .metadata = there(body, SPAN("metadata")),
                         .envs = there(body, SPAN("envVars"))};
    for (const struct json *m = body->child; m; m = m->next)
        if (member_ok(x, m) != 0)
            return -1;
    if (r->template.n > 0 && !span_eq(r->template, SPAN("base")))
        r->from = r->template;
    if (r->from.n > 0 && !dock_name_ok(r->from)) {
        reply_no(
            x, 404,
            "there is no such template: `base` is what this machine's own programs are, and else it is a snapshot");
        return -1;
    }
    if (network_take(x, body, r) != 0 || texts_take(x, r->metadata, "metadata", false) != 0)
        return -1;
    return texts_take(x, r->envs, "envVars", true);
}

static const struct json *texts(const struct json *n, const char *name)
{
    const struct json *l = json_get(n, span_str(name));

    return is_none(l) ? NULL : l;
}

void record_of(const struct json *note, struct record *r)
{
    *r = (struct record){.template = json_text(note, SPAN("template")),
                         .metadata = there(note, SPAN("metadata")),
                         .envs = there(note, SPAN("envs")),
                         .allow = texts(json_get(note, SPAN("network")), "allowOut"),
                         .deny = texts(json_get(note, SPAN("network")), "denyOut"),
                         .alone = json_get(note, SPAN("alone")) != NULL};
}

void record_put_texts(struct jsonw *w, const struct json *object)
{
    jsonw_object(w);
    for (const struct json *m = object ? object->child : NULL; m; m = m->next) {
        jsonw_name(w, m->key);
        jsonw_string(w, m->text);
    }
    jsonw_end_object(w);
}

void record_put_reach(struct jsonw *w, const char *name, const struct record *r)
{
    if (!r->allow && !r->deny)
        return;
    jsonw_kv_object(w, name);
    if (r->allow) {
        jsonw_key(w, "allowOut");
        jsonw_tree(w, r->allow);
    }
    if (r->deny) {
        jsonw_key(w, "denyOut");
        jsonw_tree(w, r->deny);
    }
    jsonw_end_object(w);
}

struct span record_text(struct call *x, const struct record *r)
{
    struct dynbuf b;
    struct jsonw w;

    dynbuf_init(&b, DOCK_BODY_MAX);
    jsonw_begin(&w, &b);
    jsonw_object(&w);
    jsonw_kv(&w, "template", r->template.n ? r->template : SPAN("base"));
    jsonw_kv_u64(&w, "started_ms", x->wall_ms);
    if (r->alone)
        jsonw_kv_bool(&w, "alone", true);
    record_put_reach(&w, "network", r);
    jsonw_key(&w, "metadata");
    record_put_texts(&w, r->metadata);
    jsonw_key(&w, "envs");
    record_put_texts(&w, r->envs);
    jsonw_end_object(&w);
    return arena_keep(&x->arena, &b);
}

bool record_has(struct call *x, const struct json *object, struct span pairs)
{
    struct span one, key, value, want;

    while (pairs.n > 0) {
        (void)span_cut(pairs, '&', &one, &pairs);
        (void)span_cut(one, '=', &key, &value);
        if (call_decode(x, key, &key) != 0 || call_decode(x, value, &want) != 0)
            return false;
        /* The SDK writes each of them twice so. */
        if (call_decode(x, key, &key) != 0 || call_decode(x, want, &want) != 0)
            return false;
        const struct json *m = json_get(object, key);
        if (!m || !span_eq(m->text, want))
            return false;
    }
    return true;
}
