/* Questions about the policy other than "may it?". */
#include "policy/match/match.h"

#include "policy/image/glob.h"

static bool any_names(const struct policy *p, const struct subject *s, uint32_t hash, struct span scheme,
                      struct span host, uint16_t port)
{
    struct img_range r = img_find(p, img_hash_end(hash));
    for (uint32_t i = 0; i < r.n; i++) {
        const struct img_rule *rule = img_at(p, IMG_RULE, *(const uint32_t *)img_at(p, IMG_RULE_REF, r.first + i));
        const struct img_match *m = img_at(p, IMG_MATCH, rule->match.first);
        if (m->hosts.n && match_names_place(p, m, scheme, host, port, AS_WRITTEN) && match_scope(p, s, rule))
            return true;
    }
    return false;
}

bool policy_names_host(const struct policy *p, const struct subject *s, struct span scheme, struct span host,
                       uint16_t port, uint64_t now_ms)
{
    if (now_ms < p->head->learning_until_ms ||
        any_names(p, s, img_hash_add(img_hash_begin('N'), host), scheme, host, port))
        return true;
    for (struct span rest = host; rest.n;) {
        rest = span_from(rest, span_index(rest, '.') + 1);
        if (rest.n && any_names(p, s, img_hash_add(img_hash_begin('M'), rest), scheme, host, port))
            return true;
    }
    return false;
}

bool policy_keeps_slash(const struct policy *p, struct span scheme, struct span host, uint16_t port)
{
    for (uint32_t i = 0; i < p->n[IMG_PACK]; i++) {
        const struct img_pack *k = img_at(p, IMG_PACK, i);
        if (k->keep_slash && k->hosts.n && classify_pack_fits(p, k, scheme, host, port))
            return true;
    }
    return false;
}

static const struct span *texts(const struct policy *p, struct img_range r, struct arena *a)
{
    struct span *v = r.n ? arena_alloc(a, r.n * sizeof(*v)) : NULL;
    for (uint32_t i = 0; v && i < r.n; i++)
        v[i] = img_text(p, r, i);
    return v;
}

static void fill_upstream(const struct policy *p, const struct img_upstream *e, struct arena *a, struct upstream *u)
{
    const struct span *cidr = texts(p, e->allow_private, a);
    *u = (struct upstream){.address = img_span(p, e->address),
                           .ca_pem = img_span(p, e->ca),
                           .crl_pem = img_span(p, e->crl),
                           .pin = texts(p, e->pins, a),
                           .npins = e->pins.n, /* without memory for them there are some all the same: nothing fits */
                           .only_tls13 = e->only_tls13 != 0,
                           .cleartext_credentials = e->cleartext != 0,
                           .allow_private = cidr,
                           .nallow_private = cidr ? e->allow_private.n : 0};
}

bool policy_upstream(const struct policy *p, struct span host, uint16_t port, struct arena *a, struct upstream *u)
{
    const struct img_upstream *e = region_upstream(p, host, port);
    if (e)
        fill_upstream(p, e, a, u);
    return e != NULL;
}

size_t policy_credentials(const struct policy *p)
{
    return p->n[IMG_CRED];
}

bool policy_credential(const struct policy *p, size_t i, struct credential *c)
{
    *c = (struct credential){0};
    if (i >= p->n[IMG_CRED])
        return false;
    const struct img_cred *r = img_at(p, IMG_CRED, (uint32_t)i);
    *c = (struct credential){.name = img_span(p, r->name),
                             .source = (enum source_kind)r->source,
                             .source_arg = img_span(p, r->arg),
                             .settings = r->settings.first,
                             .nsettings = r->settings.n,
                             .slot = (enum slot_kind)r->slot,
                             .header = img_span(p, r->header),
                             .where = img_span(p, r->where),
                             .format = img_span(p, r->format),
                             .basic_user = img_span(p, r->user),
                             .basic = r->basic != 0,
                             .certificate = r->certificate != 0,
                             .refuse = r->refuse != 0,
                             .sign = (enum sign_scheme)r->sign,
                             .region = img_span(p, r->region),
                             .service = img_span(p, r->service),
                             .hmac = {.sign = img_span(p, r->template),
                                      .hash = (enum sign_hash)r->hash,
                                      .encoding = (enum sign_coding)r->encoding,
                                      .key = (enum sign_coding)r->key_coding,
                                      .secret = (enum sign_secret)r->secret_parts,
                                      .fields = r->fields.first,
                                      .nfields = r->fields.n},
                             .lease = (enum lease_format)r->lease,
                             .require_lease = r->require_lease != 0,
                             .freeze_on_leak = r->freeze_on_leak != 0,
                             .stub = (enum stub_kind)r->stub};
    if (r->beside != IMG_NONE)
        c->beside = img_span(p, ((const struct img_cred *)img_at(p, IMG_CRED, r->beside))->name);
    return true;
}

bool policy_credential_place(const struct policy *p, size_t i, size_t j, struct credential_place *out)
{
    if (i >= p->n[IMG_CRED])
        return false;
    const struct img_cred *c = img_at(p, IMG_CRED, (uint32_t)i);
    if (j >= c->only.n)
        return false;
    const struct img_place *l = img_at(p, IMG_PLACE, c->only.first + (uint32_t)j);
    *out = (struct credential_place){.scheme = l->scheme & SCHEME_HTTPS ? SPAN("https") : SPAN("http"),
                                     .host = img_span(p, l->host),
                                     .port = (uint16_t)l->port};
    if (l->path.n)
        out->path = img_span(p, ((const struct img_glob *)img_at(p, IMG_GLOB, l->path.first))->text);
    return true;
}

bool policy_signed_field(const struct policy *p, const struct credential *c, size_t i, struct span *name,
                         struct span *format)
{
    const struct signed_as *h = &c->hmac;
    if (i >= h->nfields || h->fields > p->n[IMG_SETTING] || i >= p->n[IMG_SETTING] - h->fields)
        return false;
    const struct img_setting *s = img_at(p, IMG_SETTING, h->fields + (uint32_t)i);
    *name = img_span(p, s->key);
    *format = img_span(p, s->value);
    return true;
}

bool policy_setting(const struct policy *p, const struct credential *c, size_t i, struct setting *out)
{
    *out = (struct setting){.from = SOURCE_NONE};
    if (i >= c->nsettings || c->settings > p->n[IMG_SETTING] || i >= p->n[IMG_SETTING] - c->settings)
        return false;
    const struct img_setting *s = img_at(p, IMG_SETTING, c->settings + (uint32_t)i);
    *out = (struct setting){img_span(p, s->key), (enum source_kind)s->from, img_span(p, s->value)};
    return true;
}

const char *policy_source_name(enum source_kind k)
{
    static const char *const names[SOURCE_KINDS] = {"none", "file",    "env",   "store",      "systemd",
                                                    "exec", "oauth2",  "vault", "github_app", "jwt",
                                                    "aws",  "tencent", "answer"};
    return (unsigned)k < SOURCE_KINDS ? names[k] : "none";
}

static bool place_fits(const struct policy *p, const struct img_place *l, struct span scheme, struct span host,
                       uint16_t port, const struct reading *path, struct arena *a)
{
    uint32_t bit = span_eq(scheme, SPAN("https")) ? SCHEME_HTTPS : span_eq(scheme, SPAN("http")) ? SCHEME_HTTP : 0;
    if ((l->scheme & bit) == 0 || l->port != port || !span_eq(img_span(p, l->host), host))
        return false;
    if (l->path.n == 0)
        return true;
    const struct img_glob *g = img_at(p, IMG_GLOB, l->path.first);
    struct glob glob = {img_span(p, g->text), g->head, g->tail, g->literal, g->deep, g->after};
    struct span is;
    if (glob_match(&glob, path->path, '/', false))
        return true;
    for (int slashes = 0; path->how != READ_WHOLE && slashes < 2; slashes++) {
        if (path_decoded(glob.text, slashes, a, &is) != 0)
            return false;
        struct glob decoded = glob_of(is, '/');
        if (glob_match(&decoded, path->path, '/', false))
            return true;
        if (slashes && path->how == READ_FOLDED && path_folded(is, a, &is) == 0) {
            struct glob folded = glob_of(is, '/');
            return glob_match(&folded, path->path, '/', false);
        }
    }
    return false;
}

static bool may_go(const struct policy *p, size_t i, struct span scheme, struct span host, uint16_t port,
                   struct span path)
{
    struct reading reading[READINGS_MAX];
    struct arena a;
    size_t n = 0;
    bool ok = false;
    arena_init(&a, 1024 * 1024); /* decoded readings, and decoded patterns */
    if (i >= p->n[IMG_CRED] || readings_of(path, &a, reading, &n) != 0)
        goto out;
    const struct img_cred *c = img_at(p, IMG_CRED, (uint32_t)i);
    ok = n > 0;
    for (size_t k = 0; k < n && ok; k++) {
        bool fits = reading[k].how == READ_BARE;
        for (uint32_t j = 0; j < c->only.n && !fits; j++)
            fits = place_fits(p, img_at(p, IMG_PLACE, c->only.first + j), scheme, host, port, &reading[k], &a);
        ok = fits;
    }
out:
    arena_free(&a);
    return ok;
}

bool policy_credential_may_go(const struct policy *p, size_t i, struct span scheme, struct span host, uint16_t port,
                              struct span path)
{
    if (!may_go(p, i, scheme, host, port, path))
        return false;
    uint32_t beside = ((const struct img_cred *)img_at(p, IMG_CRED, (uint32_t)i))->beside;
    return beside == IMG_NONE || may_go(p, beside, scheme, host, port, path);
}

bool policy_credential_bound(const struct policy *p, size_t i, struct span scheme, struct span host, uint16_t port)
{
    if (i >= p->n[IMG_CRED])
        return false;
    const struct img_cred *c = img_at(p, IMG_CRED, (uint32_t)i);
    for (uint32_t j = 0; j < c->only.n; j++) {
        struct img_place l = *(const struct img_place *)img_at(p, IMG_PLACE, c->only.first + j);
        l.path.n = 0;
        if (place_fits(p, &l, scheme, host, port, NULL, NULL))
            return true;
    }
    return false;
}

static bool stub_is_at(const struct policy *p, const struct img_stub *b, struct span scheme, struct span host,
                       uint16_t port)
{
    uint32_t bit = span_eq(scheme, SPAN("https")) ? SCHEME_HTTPS : span_eq(scheme, SPAN("http")) ? SCHEME_HTTP : 0;
    return (b->scheme & bit) != 0 && b->port == port && span_eq(img_span(p, b->host), host);
}

/* Whoever may use the credential may have a lease of it, and nobody else. */
static bool is_used_by(const struct policy *p, const struct subject *s, uint32_t credential)
{
    for (uint32_t i = 0; i < p->n[IMG_RULE]; i++) {
        const struct img_rule *r = img_at(p, IMG_RULE, i);
        if (r->credential == credential && r->verdict != VERDICT_DENY && match_scope(p, s, r))
            return true;
    }
    return false;
}

enum stub_kind policy_stub(const struct policy *p, const struct subject *s, const struct request *r,
                           const struct decision *d, size_t *credential)
{
    bool unnamed = d->verdict == VERDICT_DENY && d->code != NULL &&
                   (strcmp(d->code, "no-rule") == 0 || strcmp(d->code, "host-not-named") == 0);
    if (p->n[IMG_STUB] == 0 || d->need_body || (!unnamed && d->verdict != VERDICT_ALLOW))
        return STUB_NONE;
    for (uint32_t i = 0; i < p->n[IMG_STUB]; i++) {
        const struct img_stub *b = img_at(p, IMG_STUB, i);
        struct span at = img_span(p, b->path);
        bool fits = span_eq(r->path, at) || (at.n > 1 && span_ends(at, SPAN("/")) && span_starts(r->path, at));
        if (!fits || !stub_is_at(p, b, r->scheme, r->host, r->port) || !is_used_by(p, s, b->credential))
            continue;
        *credential = b->credential;
        return (enum stub_kind)b->kind;
    }
    return STUB_NONE;
}

bool policy_stub_host(const struct policy *p, struct span scheme, struct span host, uint16_t port)
{
    for (uint32_t i = 0; i < p->n[IMG_STUB]; i++)
        if (stub_is_at(p, img_at(p, IMG_STUB, i), scheme, host, port))
            return true;
    return false;
}

bool policy_host_bound(const struct policy *p, struct span scheme, struct span host, uint16_t port)
{
    for (size_t i = 0; i < p->n[IMG_CRED]; i++)
        if (policy_credential_bound(p, i, scheme, host, port))
            return true;
    return false;
}

/* Is one of these words, with a space between, in the list? */
static bool lists_one_of(const struct policy *p, struct img_range list, struct span words)
{
    struct span one;
    while (words.n > 0) {
        (void)span_cut(words, ' ', &one, &words);
        for (uint32_t j = 0; j < list.n && one.n; j++)
            if (span_eq(img_text(p, list, j), one))
                return true;
    }
    return false;
}

static bool lists(const struct policy *p, struct img_range list, struct span name)
{
    for (uint32_t j = 0; j < list.n && name.n; j++)
        if (span_eq(img_text(p, list, j), name))
            return true;
    return false;
}

bool policy_may_approve(const struct policy *p, struct span approvers, const struct approver *who)
{
    for (uint32_t i = 0; i < p->n[IMG_APPROVER] && approvers.n; i++) {
        const struct img_approver *v = img_at(p, IMG_APPROVER, i);
        if (!span_eq(img_span(p, v->name), approvers))
            continue;
        if (lists(p, v->operators, who->name) || lists(p, v->operators, who->uid) ||
            lists_one_of(p, v->groups, who->groups))
            return true;
    }
    return approvers.n == 0;
}

/* In the order of time, and there of names: the order in the image is another one with each rule that comes or goes.
 */
static bool before(const struct escalation *a, const struct escalation *b)
{
    return a->after_ms != b->after_ms ? a->after_ms < b->after_ms : span_cmp(a->to, b->to) < 0;
}

size_t policy_escalations(const struct policy *p, const struct decision *d, struct escalation out[ESCALATE_MAX])
{
    size_t n = 0;
    if (d->verdict != VERDICT_HOLD || d->approve_by.n == 0)
        return 0; /* any operator may approve from the beginning */
    for (uint32_t i = 0; i < p->n[IMG_ESCALATE] && i < ESCALATE_MAX; i++) {
        const struct img_escalate *s = img_at(p, IMG_ESCALATE, i);
        const struct img_approver *v = img_at(p, IMG_APPROVER, s->approver);
        struct escalation e = {s->after_ms, img_span(p, v->name)};
        size_t at = n;
        if ((d->approval.escalate >> i & 1) == 0)
            continue;
        for (; at > 0 && before(&e, &out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = e;
        n++;
    }
    return n;
}

bool policy_gate(const struct policy *p, size_t i, struct gate *out)
{
    if (i >= p->n[IMG_GATE])
        return false;
    const struct img_gate *g = img_at(p, IMG_GATE, (uint32_t)i);
    *out = (struct gate){.name = img_span(p, g->name),
                         .timeout_ms = g->timeout_ms,
                         .at = g->program.first,
                         .words = g->program.n,
                         .kind = (enum gate_kind)g->kind,
                         .body = g->body != 0,
                         .url = img_span(p, g->url),
                         .secret = img_span(p, g->secret),
                         .api = (enum gate_api)g->api,
                         .model = img_span(p, g->model),
                         .instructions = img_span(p, g->instructions),
                         .credential = g->credential == IMG_NONE ? -1 : (int)g->credential,
                         .host = img_span(p, g->host),
                         .port = (uint16_t)g->port};
    return true;
}

bool policy_gate_named(const struct policy *p, struct span name, struct gate *out)
{
    for (size_t i = 0; policy_gate(p, i, out); i++)
        if (span_eq(out->name, name))
            return true;
    return false;
}

struct span policy_gate_word(const struct policy *p, const struct gate *g, size_t i)
{
    return i < g->words ? img_text(p, (struct img_range){(uint32_t)g->at, (uint32_t)g->words}, (uint32_t)i)
                        : SPAN_NONE;
}

bool git_id_is_zero(struct span id)
{
    for (size_t i = 0; i < id.n; i++)
        if (id.p[i] != '0')
            return false;
    return true;
}

const char *verdict_name(enum verdict v)
{
    static const char *const names[] = {"deny", "hold", "allow"};
    return (size_t)v < sizeof(names) / sizeof(names[0]) ? names[v] : "deny";
}

const char *effect_name(enum effect e)
{
    static const char *const names[] = {"unknown", "read", "write", "delete", "admin", "spend", "exec"};
    return (size_t)e < sizeof(names) / sizeof(names[0]) ? names[e] : "unknown";
}
