#include "policy/load/emit/emit.h"

#include "common/id.h"
#include "policy/image/glob.h"
#include "policy/load/check/derive.h"

struct img_str emit_str(struct emit *w, struct span s)
{
    if (s.n == 0)
        return (struct img_str){sizeof(struct img_head), 0};
    if (s.p == w->last_text.p && s.n == w->last_text.n)
        return w->last_str;
    struct img_str out = {(uint32_t)(sizeof(struct img_head) + w->strings.n), (uint32_t)s.n};
    (void)dynbuf_add(&w->strings, s);
    w->last_text = s;
    w->last_str = out;
    return out;
}

uint32_t emit_count(const struct emit *w, enum img_table t)
{
    return (uint32_t)(w->table[t].n / img_record_size(t));
}

uint32_t emit_record(struct emit *w, enum img_table t, const void *record)
{
    uint32_t at = emit_count(w, t);
    (void)dynbuf_add(&w->table[t], span_of(record, img_record_size(t)));
    return at;
}

struct img_range emit_range(const struct emit *w, enum img_table t, uint32_t first)
{
    return (struct img_range){first, emit_count(w, t) - first};
}

struct img_range emit_texts(struct emit *w, const struct items *v)
{
    uint32_t first = emit_count(w, IMG_STR);
    for (size_t i = 0; i < v->n; i++) {
        struct img_str s = emit_str(w, v->v[i].text);
        (void)emit_record(w, IMG_STR, &s);
    }
    return emit_range(w, IMG_STR, first);
}

static void put_glob(struct emit *w, struct span text, uint8_t sep)
{
    struct glob g = glob_of(text, sep);
    struct img_glob out = {emit_str(w, text), g.head, g.tail, g.literal, g.deep, g.after};
    (void)emit_record(w, IMG_GLOB, &out);
}

static struct img_range put_globs(struct emit *w, const struct items *v, uint8_t sep)
{
    uint32_t first = emit_count(w, IMG_GLOB);
    for (size_t i = 0; i < v->n; i++)
        put_glob(w, v->v[i].text, sep);
    return emit_range(w, IMG_GLOB, first);
}

static struct img_range put_pairs(struct emit *w, const struct list *list)
{
    const struct pair *v = list->v;
    uint32_t first = emit_count(w, IMG_PAIR);
    for (size_t i = 0; i < list->n; i++) {
        struct img_pair out = {emit_str(w, v[i].name.text), put_globs(w, &v[i].values, 0)};
        (void)emit_record(w, IMG_PAIR, &out);
    }
    return emit_range(w, IMG_PAIR, first);
}

static void put_host(struct emit *w, struct span host, uint64_t port)
{
    struct img_host out = {.kind = HOST_EXACT, .port = (uint32_t)port};
    if (span_starts(host, SPAN("**."))) {
        out.kind = HOST_ANY_LABELS;
        host = span_from(host, 3);
    } else if (span_starts(host, SPAN("*."))) {
        out.kind = HOST_ONE_LABEL;
        host = span_from(host, 2);
    }
    out.text = emit_str(w, host);
    (void)emit_record(w, IMG_HOST, &out);
}

/* As its parser knows it (parsers.h). below: what pointers begin with beside what is written. */
static struct span key_of(struct emit *w, const struct m_cond *c, uint32_t kind, struct span below)
{
    const struct item *named = c->pointer.at        ? &c->pointer
                               : c->file.at         ? &c->file
                               : c->content_type.at ? &c->content_type
                                                    : &c->field;
    if (kind == COND_MULTIPART)
        below = c->file.at ? SPAN("file ") : c->content_type.at ? SPAN("content_type ") : SPAN("field ");
    struct span key = below.n ? arena_join(&w->l->a, below, named->text) : named->text;
    if (below.n && key.p == NULL)
        load_problem(w->l, c->at, "P099", "no memory for the pointer");
    return key;
}

static void put_conds(struct emit *w, const struct list *conds, uint32_t kind, struct span below)
{
    const struct m_cond *v = conds->v;
    for (size_t i = 0; i < conds->n; i++) {
        const struct m_cond *c = &v[i];
        struct img_cond out = {.kind = kind,
                               .op = c->at_most.at    ? COND_AT_MOST
                                     : c->at_least.at ? COND_AT_LEAST
                                     : c->exists.at   ? COND_EXISTS
                                     : c->absent.at   ? COND_ABSENT
                                                      : COND_TEXT,
                               .key = emit_str(w, key_of(w, c, kind, below)),
                               .texts = emit_texts(w, c->in.at ? &c->in : &c->equals),
                               .globs = put_globs(w, &c->glob, 0),
                               .number = c->at_most.at ? c->at_most.v : c->at_least.v};
        (void)emit_record(w, IMG_COND, &out);
    }
}

/* key: as the parser knows it. */
static void put_texts(struct emit *w, uint32_t kind, const struct items *v, struct span key, bool patterns)
{
    struct img_cond out = {.kind = kind, .op = COND_TEXT};
    if (v->n == 0)
        return;
    out.key = emit_str(w, key);
    if (patterns)
        out.globs = put_globs(w, v, 0);
    else
        out.texts = emit_texts(w, v);
    (void)emit_record(w, IMG_COND, &out);
}

/* Who asks about arguments and names no fields means these fields: what lets through fits no other one. */
static void put_fields_of(struct emit *w, const struct list *arguments)
{
    const struct m_cond *v = arguments->v;
    struct img_cond out = {.kind = COND_GRAPHQL, .op = COND_TEXT, .key = emit_str(w, SPAN("fields"))};
    struct span last = SPAN_NONE;
    uint32_t first = emit_count(w, IMG_STR);
    for (size_t i = 0; i < arguments->n; i++) {
        struct span name = span_from(v[i].pointer.text, 1);
        name = span_first(name, span_index(name, '/'));
        struct img_str s = emit_str(w, name);
        if (!span_eq(name, last))
            (void)emit_record(w, IMG_STR, &s);
        last = name;
    }
    out.texts = emit_range(w, IMG_STR, first);
    (void)emit_record(w, IMG_COND, &out);
}

static void put_graphql(struct emit *w, const struct m_graphql *g)
{
    put_texts(w, COND_GRAPHQL, &g->types, SPAN("type"), false);
    put_texts(w, COND_GRAPHQL, &g->operations, SPAN("operation"), true);
    put_texts(w, COND_GRAPHQL, &g->fields, SPAN("fields"), true);
    if (g->fields.n == 0 && g->arguments.n)
        put_fields_of(w, &g->arguments);
    put_texts(w, COND_GRAPHQL, &g->persisted, SPAN("persisted"), false);
    put_conds(w, &g->arguments, COND_GRAPHQL, SPAN_NONE);
}

/* Who asks about the arguments of tools and names no method means calls of tools. */
static void put_calls(struct emit *w)
{
    struct img_cond out = {.kind = COND_JSONRPC, .op = COND_TEXT, .key = emit_str(w, SPAN("method"))};
    struct img_str call = emit_str(w, SPAN("tools/call"));
    uint32_t first = emit_count(w, IMG_STR);
    (void)emit_record(w, IMG_STR, &call);
    out.texts = emit_range(w, IMG_STR, first);
    (void)emit_record(w, IMG_COND, &out);
}

static void put_jsonrpc(struct emit *w, const struct m_jsonrpc *m)
{
    if (m->arguments.n && m->methods.n == 0 && m->tools.n == 0)
        put_calls(w);
    put_texts(w, COND_JSONRPC, &m->methods, SPAN("method"), true);
    put_texts(w, COND_JSONRPC, &m->tools, SPAN("tool"), true);
    put_conds(w, &m->params, COND_JSONRPC, SPAN_NONE);
    put_conds(w, &m->arguments, COND_JSONRPC, SPAN("/arguments"));
}

static uint32_t put_match(struct emit *w, const struct m_match *t)
{
    const struct items *hosts = t->hosts.at ? &t->hosts : &t->derived;
    struct img_match out = {.schemes = (uint32_t)t->schemes.v,
                            .effects = (uint32_t)t->effects.v,
                            .git_force = (uint32_t)t->git.force.v,
                            .git_delete = (uint32_t)t->git.delete.v,
                            .git_service = (uint32_t)t->git.service.v,
                            .any_place = t->except,
                            .ws = t->ws.at != NULL};
    out.hosts.first = emit_count(w, IMG_HOST);
    for (size_t i = 0; i < hosts->n; i++)
        put_host(w, hosts->v[i].text, 0);
    out.hosts = emit_range(w, IMG_HOST, out.hosts.first);
    out.ports.first = emit_count(w, IMG_PORT);
    for (size_t i = 0; i < t->ports.n; i++) {
        uint64_t v = 0;
        (void)!span_u64(t->ports.v[i].text, 65535, &v); /* checked when it was read */
        uint32_t port = (uint32_t)v;
        (void)emit_record(w, IMG_PORT, &port);
    }
    out.ports = emit_range(w, IMG_PORT, out.ports.first);
    out.methods = emit_texts(w, &t->methods);
    out.paths = put_globs(w, &t->paths, '/');
    out.written = emit_texts(w, &t->written);
    out.ops = put_globs(w, &t->ops, '.');
    out.resources = put_globs(w, &t->resources, '/');
    out.git_refs = put_globs(w, &t->git.refs, '/');
    out.ws_protocols = put_globs(w, &t->ws.subprotocols, 0);
    out.body.first = emit_count(w, IMG_COND);
    put_conds(w, &t->json, COND_JSON, SPAN_NONE);
    put_conds(w, &t->form, COND_FORM, SPAN_NONE);
    put_conds(w, &t->multipart, COND_MULTIPART, SPAN_NONE);
    put_graphql(w, &t->graphql);
    put_jsonrpc(w, &t->jsonrpc);
    put_jsonrpc(w, &t->mcp);
    out.body = emit_range(w, IMG_COND, out.body.first);
    out.query = put_pairs(w, &t->query);
    out.query_only = t->query_names.at != NULL;
    out.query_names = emit_texts(w, &t->query_names);
    out.header = put_pairs(w, &t->header);
    return emit_record(w, IMG_MATCH, &out);
}

static uint32_t index_or_none(int i)
{
    return i < 0 ? IMG_NONE : (uint32_t)i;
}

static void put_rule(struct emit *w, const struct m_rule *r)
{
    struct img_rule out = {.line = r->at->line,
                           .verdict = (uint32_t)r->decide.v,
                           .floor = r->floor,
                           .scoped = r->scope.at != NULL,
                           .credential = r->use.at ? index_or_none(model_credential(w->m, r->use.text)) : IMG_NONE,
                           .approver =
                               r->approve.by.at ? index_or_none(model_approver(w->m, r->approve.by.text)) : IMG_NONE,
                           .reason_required = r->approve.reason.v != 0,
                           .within_ms = r->approve.within.v,
                           .inline_wait_ms = r->approve.inline_wait.at ? r->approve.inline_wait.v : UINT64_MAX,
                           .ws_send = (uint32_t)r->messages.send.v,
                           .ws_max = r->messages.max.at ? r->messages.max.v : WS_MAX_USUAL,
                           .ws_total = r->messages.total.at ? r->messages.total.v : WS_TOTAL_USUAL,
                           .ws_within_ms = r->messages.within.at ? r->messages.within.v : WS_WITHIN_USUAL,
                           .over = r->over.at ? index_or_none(model_rule(w->m, r->over.text)) : IMG_NONE};
    const struct m_match *except = r->except.v;
    emit_grants(r, &out);
    emit_people(w->m, r, &out);
    emit_escalate(w, r, &out);
    out.scopes.first = emit_count(w, IMG_SCOPE_REF);
    for (size_t i = 0; i < r->scope.n; i++) {
        uint32_t s = index_or_none(model_scope(w->m, r->scope.v[i].text));
        (void)emit_record(w, IMG_SCOPE_REF, &s);
    }
    out.scopes = emit_range(w, IMG_SCOPE_REF, out.scopes.first);
    out.match = (struct img_range){put_match(w, &r->match), 1};
    out.except.first = emit_count(w, IMG_MATCH);
    for (size_t i = 0; i < r->except.n; i++)
        (void)put_match(w, &except[i]);
    out.except = emit_range(w, IMG_MATCH, out.except.first);
    out.windows = emit_windows(w, r);
    out.limits = emit_limits(w, r);
    out.id = emit_str(w, r->id.text);
    out.say = emit_str(w, r->say.text);
    out.instead = emit_str(w, r->instead.text);
    uint32_t at = emit_record(w, IMG_RULE, &out);
    emit_index_rule(w, at, r);
}

/* The path of a file as whoever opens it needs it: a relative one begins at the folder of the file that names it. */
struct span emit_beside(struct emit *w, const struct item *f)
{
    struct span name = span_str(f->at->file);
    while (name.n && name.p[name.n - 1] != '/')
        name.n--;
    if (name.n == 0 || span_starts(f->text, SPAN("/")))
        return f->text;
    uint8_t *path = arena_alloc(&w->l->a, name.n + f->text.n);
    if (path == NULL) {
        load_problem(w->l, f->at, "P099", "no memory for the path");
        return SPAN_NONE;
    }
    memcpy(path, name.p, name.n);
    memcpy(path + name.n, f->text.p, f->text.n);
    return span_of(path, name.n + f->text.n);
}

static struct img_range put_settings(struct emit *w, const struct m_asked *a)
{
    uint32_t first = emit_count(w, IMG_SETTING);
    for (size_t i = 0; i < a->n; i++) {
        const struct m_setting *s = &a->v[i];
        struct img_setting out = {.key = emit_str(w, s->key),
                                  .value =
                                      emit_str(w, s->from == SOURCE_FILE ? emit_beside(w, &s->value) : s->value.text),
                                  .from = s->from};
        (void)emit_record(w, IMG_SETTING, &out);
    }
    return emit_range(w, IMG_SETTING, first);
}

static void put_source(struct emit *w, const struct m_source *s, struct img_cred *out)
{
    const struct m_stored *is = &s->stored;
    const struct item *at[] = {[SOURCE_FILE] = &is->file,
                               [SOURCE_ENV] = &is->env,
                               [SOURCE_STORE] = &is->store,
                               [SOURCE_SYSTEMD] = &is->systemd};
    for (unsigned k = SOURCE_FILE; k < SOURCE_KINDS; k++) {
        if (k < SOURCE_EXEC ? at[k]->at == NULL : s->asked[k].at == NULL)
            continue;
        out->source = k;
        if (k < SOURCE_EXEC)
            out->arg = emit_str(w, k == SOURCE_FILE ? emit_beside(w, at[k]) : at[k]->text);
        else
            out->settings = put_settings(w, &s->asked[k]);
    }
}

/* The field with the signature, in which a client has what it brings itself. */
static struct span put_hmac(struct emit *w, const struct m_hmac *h, struct img_cred *out)
{
    const struct pair *v = h->headers.v;
    struct span header = SPAN_NONE;
    bool id = sign_template_has(h->sign.text, PART_ID), token = false;
    out->fields.first = emit_count(w, IMG_SETTING);
    for (size_t i = 0; i < h->headers.n; i++) {
        struct span format = v[i].values.n ? v[i].values.v[0].text : SPAN_NONE;
        struct img_setting field = {.key = emit_str(w, v[i].name.text), .value = emit_str(w, format)};
        (void)emit_record(w, IMG_SETTING, &field);
        id |= sign_template_has(format, PART_ID);
        token |= sign_template_has(format, PART_TOKEN);
        if (sign_template_has(format, PART_SIGNATURE))
            header = v[i].name.text;
    }
    out->fields = emit_range(w, IMG_SETTING, out->fields.first);
    out->template = emit_str(w, h->sign.text);
    out->hash = (uint32_t)h->algorithm.v;
    out->encoding = h->encoding.at ? (uint32_t)h->encoding.v : SIGN_HEX;
    out->key_coding = (uint32_t)h->key.v;
    out->secret_parts = token ? SIGN_ID_KEY_TOKEN : id ? SIGN_ID_KEY : SIGN_KEY_ALONE;
    return header;
}

/* A cookie is a field with the cookie's name in its format. */
static void put_inject(struct emit *w, const struct m_inject *j, struct img_cred *out)
{
    const struct m_sign *s = j->sigv4.at ? &j->sigv4 : &j->tc3;
    bool own = j->basic || s->at != NULL;
    struct span header = own ? SPAN("Authorization") : j->hmac.at ? put_hmac(w, &j->hmac, out) : j->header.text;
    struct span format = j->format.text;
    struct span cookie = j->slot[SLOT_COOKIE].text, where = SPAN_NONE;
    for (uint32_t k = 0; k < SLOT_KINDS; k++)
        if (j->slot[k].at) {
            out->slot = k;
            where = j->slot[k].text;
        }
    if (out->slot == SLOT_PATH)
        where = span_first(where, span_find(where, SPAN("{}")));
    if (out->slot == SLOT_COOKIE) {
        uint8_t *text = arena_alloc(&w->l->a, cookie.n + 3);
        if (text == NULL) {
            load_problem(w->l, j->at, "P099", "no memory for the cookie");
            return;
        }
        memcpy(text, cookie.p, cookie.n);
        memcpy(text + cookie.n, "={}", 3);
        header = SPAN("Cookie");
        format = span_of(text, cookie.n + 3);
    }
    out->header = emit_str(w, header);
    out->where = emit_str(w, where);
    out->format = emit_str(w, format);
    out->user = emit_str(w, j->user.text);
    out->region = emit_str(w, s->region.text);
    out->service = emit_str(w, s->service.text);
    out->sign = j->sigv4.at ? SIGN_AWS4 : j->tc3.at ? SIGN_TC3 : j->hmac.at ? SIGN_HMAC : SIGN_NONE;
}

static void put_credential(struct emit *w, const struct m_credential *c)
{
    struct img_cred out = {.name = emit_str(w, c->name.text),
                           .basic = c->inject.basic,
                           .certificate = c->inject.certificate.v != 0,
                           .refuse = c->scrub.v != 0,
                           .lease = (uint32_t)c->lease.v,
                           .require_lease = c->require_lease.v != 0,
                           .freeze_on_leak = c->on_leak.v != 0,
                           .stub = (uint32_t)c->stub.v,
                           .beside = c->beside.at ? index_or_none(model_credential(w->m, c->beside.text)) : IMG_NONE};
    put_source(w, &c->source, &out);
    put_inject(w, &c->inject, &out);
    const struct m_place *p = c->only.v;
    out.only.first = emit_count(w, IMG_PLACE);
    for (size_t i = 0; i < c->only.n; i++) {
        struct img_place place = {
            emit_str(w, p[i].host.text), (uint32_t)p[i].port.v, (uint32_t)p[i].scheme.v, {0, 0}};
        place.path.first = emit_count(w, IMG_GLOB);
        if (p[i].path.at)
            put_glob(w, p[i].path.text, '/');
        place.path = emit_range(w, IMG_GLOB, place.path.first);
        (void)emit_record(w, IMG_PLACE, &place);
    }
    out.only = emit_range(w, IMG_PLACE, out.only.first);
    emit_stub(w, c, emit_record(w, IMG_CRED, &out));
}

static void put_op(struct emit *w, const struct m_op *o)
{
    struct img_op out = {.op = emit_str(w, o->op.text),
                         .query = emit_str(w, o->query.text),
                         .content_type = emit_str(w, o->content_type.text),
                         .resource = emit_str(w, o->resource.text),
                         .strip = emit_str(w, o->strip.text),
                         .summary = emit_str(w, o->summary.text),
                         .could_op = emit_str(w, o->could.op.text),
                         .could_method = emit_str(w, o->could.method.text),
                         .could_path = emit_str(w, o->could.path.text),
                         .effect = (uint32_t)o->effect.v,
                         .dialect = (uint32_t)o->dialect.v,
                         .body = (uint32_t)o->body.v,
                         .query_rule = o->query.at ? QUERY_EXACT : QUERY_ANY,
                         .body_max = o->body_max.v};
    out.methods = emit_texts(w, &o->methods);
    out.path.first = emit_count(w, IMG_GLOB);
    put_glob(w, o->path.text, '/');
    out.path = emit_range(w, IMG_GLOB, out.path.first);
    (void)emit_record(w, IMG_OP, &out);
}

static void put_pack(struct emit *w, const struct m_pack *k)
{
    const struct items *hosts = derive_pack_hosts(k);
    const struct m_resource *r = k->resources.v;
    const struct m_op *ops = k->ops.v;
    struct img_pack out = {.name = emit_str(w, k->pack.text), .keep_slash = k->encoded_slash.v != 0};
    out.hosts.first = emit_count(w, IMG_HOST);
    for (size_t i = 0; i < hosts->n; i++) {
        struct span host;
        uint64_t port;
        if (derive_host_and_port(hosts->v[i].text, &host, &port) == NULL)
            put_host(w, host, port);
    }
    out.hosts = emit_range(w, IMG_HOST, out.hosts.first);
    out.ops.first = emit_count(w, IMG_OP);
    for (size_t i = 0; i < k->ops.n; i++)
        put_op(w, &ops[i]);
    out.ops = emit_range(w, IMG_OP, out.ops.first);
    out.resources.first = emit_count(w, IMG_RESOURCE);
    for (size_t i = 0; i < k->resources.n; i++) {
        struct img_resource one = {emit_str(w, r[i].host.text), emit_str(w, r[i].resource.text)};
        (void)emit_record(w, IMG_RESOURCE, &one);
    }
    out.resources = emit_range(w, IMG_RESOURCE, out.resources.first);
    (void)emit_record(w, IMG_PACK, &out);
}

/* The scopes that say where their sandboxes may reach, so that a policy without any asks nobody. */
static struct img_range put_residents(struct emit *w)
{
    uint32_t first = emit_count(w, IMG_SCOPE_REF);
    for (uint32_t i = 0; i < w->m->nscopes; i++)
        if (w->m->scopes[i]->regions.at)
            (void)emit_record(w, IMG_SCOPE_REF, &i);
    return emit_range(w, IMG_SCOPE_REF, first);
}

static void put_names(struct emit *w)
{
    const struct model *m = w->m;
    for (size_t i = 0; i < m->nscopes; i++) {
        struct img_scope out = {.name = emit_str(w, m->scopes[i]->name.text),
                                .sandboxes = put_globs(w, &m->scopes[i]->sandboxes, 0),
                                .labels = put_pairs(w, &m->scopes[i]->labels),
                                .resident = m->scopes[i]->regions.at != NULL,
                                .regions = emit_texts(w, &m->scopes[i]->regions)};
        (void)emit_record(w, IMG_SCOPE, &out);
    }
    for (size_t i = 0; i < m->napprovers; i++) {
        struct img_approver out = {emit_str(w, m->approvers[i]->name.text),
                                   emit_texts(w, &m->approvers[i]->operators),
                                   emit_texts(w, &m->approvers[i]->groups)};
        (void)emit_record(w, IMG_APPROVER, &out);
    }
    emit_gates(w);
    for (size_t i = 0; i < m->ncredentials; i++)
        put_credential(w, m->credentials[i]);
}

static int pad(struct dynbuf *out)
{
    while (out->n % 8)
        if (dynbuf_add_byte(out, 0) != 0)
            return -1;
    return 0;
}

/* Over all that the policy says; where its files lie, and how their paths are written, is not part of that. */
static int stamp(const struct emit *w, struct img_head *head)
{
    struct digest_ctx *d = digest_begin();
    struct digest is;
    if (d == NULL)
        return -1;
    head->size = (uint32_t)w->strings.n;
    for (size_t t = 0; t < IMG_TABLES; t++)
        head->table[t] = (struct img_range){0, emit_count(w, (enum img_table)t)};
    digest_add(d, span_of(head, sizeof(*head)));
    digest_add(d, dynbuf_span(&w->strings));
    for (size_t t = 0; t < IMG_TABLES; t++)
        digest_add(d, dynbuf_span(&w->table[t]));
    digest_end(d, &is);
    memcpy(head->digest, is.b, sizeof(is.b));
    return 0;
}

/* Which file each rule is of, behind all that the digest is over: a name once. */
static void put_files(struct emit *w)
{
    struct {
        const char *name;
        struct img_str is;
    } seen[POLICY_FILES_MAX + 1] = {{NULL, {0, 0}}}; /* floors are a file too */
    struct img_rule *r = (struct img_rule *)(void *)w->table[IMG_RULE].p;
    for (size_t i = 0; i < emit_count(w, IMG_RULE); i++) {
        const char *name = w->m->rules[i]->at->file;
        size_t k = 0;
        while (k < POLICY_FILES_MAX && seen[k].name && strcmp(seen[k].name, name) != 0)
            k++;
        if (seen[k].name == NULL || strcmp(seen[k].name, name) != 0) {
            seen[k].name = name;
            seen[k].is = emit_str(w, span_str(name));
        }
        r[i].file = seen[k].is;
    }
}

/* Join the parts: head, strings, tables. */
static int join(struct emit *w, struct dynbuf *out)
{
    struct img_head head = {
        .version = IMG_VERSION, .learning_until_ms = w->m->learning.v, .residents = put_residents(w)};
    memcpy(head.magic, IMG_MAGIC, sizeof(head.magic));
    head.name = emit_str(w, w->m->name.at ? w->m->name.text : SPAN("policy"));
    if (!dynbuf_ok(&w->table[IMG_RULE]) || stamp(w, &head) != 0)
        return -1;
    put_files(w);
    if (!dynbuf_ok(&w->strings) || dynbuf_add(out, span_of(&head, sizeof(head))) != 0 ||
        dynbuf_add(out, dynbuf_span(&w->strings)) != 0)
        return -1;
    for (size_t t = 0; t < IMG_TABLES; t++) {
        if (pad(out) != 0 || !dynbuf_ok(&w->table[t]))
            return -1;
        head.table[t] = (struct img_range){(uint32_t)out->n, emit_count(w, (enum img_table)t)};
        if (dynbuf_add(out, dynbuf_span(&w->table[t])) != 0)
            return -1;
    }
    if (pad(out) != 0)
        return -1;
    head.size = (uint32_t)out->n;
    memcpy(out->p, &head, sizeof(head));
    return 0;
}

int emit_image(struct loader *l, const struct model *m, struct dynbuf *out)
{
    struct emit w = {.l = l, .m = m};
    int rc = 0;
    for (size_t t = 0; t < IMG_TABLES; t++)
        dynbuf_init(&w.table[t], POLICY_IMAGE_MAX);
    dynbuf_init(&w.strings, POLICY_IMAGE_MAX);
    dynbuf_init(&w.keys, 4 * (size_t)POLICY_IMAGE_MAX);
    put_names(&w);
    for (size_t i = 0; i < m->npacks; i++)
        put_pack(&w, m->packs[i]);
    for (size_t i = 0; i < m->nupstreams; i++)
        rc |= emit_upstream(&w, m->upstreams[i]);
    for (size_t i = 0; i < m->nrules; i++)
        put_rule(&w, m->rules[i]);
    emit_index(&w);
    if (rc == 0 && join(&w, out) != 0) {
        load_problem(l, NULL, "P017", "the policy is too large: its compiled form would pass %d bytes",
                     POLICY_IMAGE_MAX);
        rc = -1;
    }
    for (size_t t = 0; t < IMG_TABLES; t++)
        dynbuf_free(&w.table[t]);
    dynbuf_free(&w.strings);
    dynbuf_free(&w.keys);
    return rc;
}
