/* What the tables cannot say: patterns, references, combinations. */
#include <stdio.h>

#include "common/lease/lease.h"
#include "common/text/nearest.h"
#include "policy/image/glob.h"
#include "policy/load/check/captures.h"
#include "policy/load/check/check.h"
#include "policy/load/check/check_gate.h"
#include "policy/load/check/check_source.h"
#include "policy/load/check/derive.h"
#include "policy/load/read/names.h"
#include "policy/load/read/scalar.h"
#include "policy/load/read/set.h"

enum { PINS_MAX = 16, PLACES_MAX = 1000 };

void check_value(struct loader *l, const struct item *v, const char *code, const char *why)
{
    if (why)
        load_problem(l, v->at, code, "\"%.*s\" %s", SPAN_FMT(span_first(v->text, 100)), why);
}

void check_texts(struct loader *l, const struct items *v, const char *(*why)(struct span))
{
    for (size_t i = 0; i < v->n; i++)
        check_value(l, &v->v[i], "P013", why(v->v[i].text));
}

static const char *why_host(struct span s)
{
    return scalar_host(s, true);
}

static const char *why_method(struct span s)
{
    return scalar_is_method(s) ? NULL : "is no method: upper-case, such as GET";
}

static const char *why_op(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') && !memchr("._-*", s.p[i], 4))
            return "is no operation: lower-case words and dots, * and **";
    return scalar_glob(s, '.');
}

static const char *why_resource(struct span s)
{
    size_t colon = span_index(s, ':');
    if (colon == 0 || colon == s.n)
        return "is no resource: it begins with a kind and a colon, such as github:acme/*";
    return scalar_glob(s, '/');
}

static const char *why_ref(struct span s)
{
    if (!span_starts(s, SPAN("refs/")))
        return "is no full ref name: it begins with refs/, such as refs/heads/main";
    return scalar_glob(s, '/');
}

const char *check_why_free(struct span s)
{
    return scalar_glob(s, 0);
}

static void check_pairs(struct loader *l, const struct list *pairs, bool header)
{
    const struct pair *v = pairs->v;
    for (size_t i = 0; i < pairs->n; i++) {
        if (header && v[i].name.at && !scalar_is_word(v[i].name.text))
            check_value(l, &v[i].name, "P013", "is no name of a header");
        check_texts(l, &v[i].values, check_why_free);
    }
}

static void check_op_known(struct loader *l, const struct model *m, const struct item *op)
{
    static const char *const own[] = {"http.get",    "http.head",    "http.post",  "http.put",      "http.patch",
                                      "http.delete", "http.options", "http.other", "http.override", "git.push.probe",
                                      NULL};
    const char *names[200] = {0};
    size_t n = 0;
    struct glob g = glob_of(op->text, '.');
    for (size_t i = 0; own[i]; i++)
        if (glob_match(&g, span_str(own[i]), '.', false))
            return;
    for (size_t i = 0; i < m->npacks; i++) {
        const struct m_op *ops = m->packs[i]->ops.v;
        for (size_t k = 0; k < m->packs[i]->ops.n; k++) {
            if (glob_match(&g, ops[k].op.text, '.', false))
                return;
            char *copy = n < 199 ? arena_alloc(&l->a, ops[k].op.text.n + 1) : NULL;
            if (copy && ops[k].op.text.n) {
                memcpy(copy, ops[k].op.text.p, ops[k].op.text.n);
                names[n++] = copy;
            }
        }
    }
    const char *near = load_problem_kept(l, true) ? nearest_name(op->text, names) : NULL;
    load_problem(l, op->at, "P011", "no pack in packs: names an operation \"%.*s\"%s%s%s", SPAN_FMT(op->text),
                 near ? "; did you mean \"" : ", so the rule could never match", near ? near : "", near ? "\"?" : "");
}

/* A value that is asked of a name which may not be there never fits. */
static void check_query_names(struct loader *l, const struct m_match *t)
{
    const struct pair *v = t->query.v;
    struct set names = {0};
    if (t->query.n)
        set_add_all(l, &names, &t->query_names);
    for (size_t i = 0; i < t->query.n && t->query_names.at; i++)
        if (v[i].name.at && !set_has(&names, v[i].name.text))
            load_problem(l, v[i].at, "P015",
                         "query_names: does not have \"%.*s\", so the rule could never fit: add it there",
                         SPAN_FMT(span_first(v[i].name.text, 60)));
    set_free(&names);
}

/* What packs make known. */
static void check_known(struct loader *l, const struct model *m, const struct m_match *t)
{
    for (size_t i = 0; i < t->ops.n; i++)
        if (why_op(t->ops.v[i].text) == NULL)
            check_op_known(l, m, &t->ops.v[i]);
    bool git_pack = false;
    for (size_t i = 0; i < m->npacks; i++)
        git_pack |= span_starts(m->packs[i]->pack.text, SPAN("git@"));
    if (t->git.at && !git_pack)
        load_problem(l, t->git.at, "P011", "git: needs the pack git@1 in packs:");
    if (t->resources.at && m->npacks == 0)
        load_problem(l, t->resources.at, "P011", "a resource is found by a pack, and packs: names none");
}

static void check_match(struct loader *l, const struct model *m, const struct m_match *t)
{
    check_texts(l, &t->hosts, why_host);
    check_texts(l, &t->methods, why_method);
    check_texts(l, &t->paths, scalar_path);
    check_texts(l, &t->ops, why_op);
    check_texts(l, &t->resources, why_resource);
    check_texts(l, &t->git.refs, why_ref);
    check_pairs(l, &t->query, false);
    check_query_names(l, t);
    check_pairs(l, &t->header, true);
    check_texts(l, &t->ws.subprotocols, check_why_free);
    check_body(l, t);
    if (!m->packs_lost)
        check_known(l, m, t);
}

static bool says_something(const struct m_match *t)
{
    return t->hosts.at || t->ports.at || t->methods.at || t->paths.at || t->ops.at || t->resources.at ||
           t->schemes.at || t->effects.at || t->query.at || t->query_names.at || t->header.at || t->git.at ||
           t->ws.at || t->json.at || t->form.at || t->multipart.at || t->graphql.at || t->jsonrpc.at || t->mcp.at;
}

/* It may widen who is asked, and nothing else of what a yes needs. */
static void check_escalation(struct loader *l, const struct model *m, const struct m_rule *r,
                             const struct m_escalate *e)
{
    static const struct m_approver none = {.at = NULL};
    int by = r->approve.by.at ? model_approver(m, r->approve.by.text) : -1, to = model_approver(m, e->to.text);
    const struct m_people *own = &r->approve.people, *of = &(by < 0 ? &none : m->approvers[by])->people;
    const struct m_people *then = &(to < 0 ? &none : m->approvers[to])->people;
    const struct number *self = own->self.at ? &own->self : &of->self;
    if (to < 0) {
        model_no_such(l, &e->to, "approvers entry", m->approvers, m->napprovers);
        return;
    }
    if (r->approve.within.at && e->after.v >= r->approve.within.v)
        load_problem(l, e->after.at, "P015", "after: is not before within:, when the request has expired");
    if (to == by)
        load_problem(l, e->to.at, "P015",
                     "\"%.*s\" may approve from the beginning: it stands in by:", SPAN_FMT(e->to.text));
    bool more = then->quorum.v > 1 && then->quorum.v > own->quorum.v && then->quorum.v > of->quorum.v;
    if (more || (then->step_up.v && !own->step_up.v && !of->step_up.v) ||
        (then->self.at && !then->self.v && self->at && self->v))
        load_problem(l, e->to.at, "P015",
                     "what a yes needs does not change when it escalates, and \"%.*s\" asks for more of it than the "
                     "rule does: write its quorum:, step_up: or self_approval: at the rule, too",
                     SPAN_FMT(e->to.text));
}

static void check_escalations(struct loader *l, const struct model *m, const struct m_rule *r)
{
    const struct m_escalate *v = r->approve.escalate.v;
    size_t n = r->approve.escalate.n;
    if (n == 0)
        return;
    if (r->approve.by.at == NULL)
        load_problem(
            l, r->approve.escalate.at, "P015",
            "escalate: needs by: in this approve:, without which any operator may approve from the beginning");
    if (r->approve.within.at == NULL) /* what the gateway has for it is not known here */
        load_problem(l, r->approve.escalate.at, "P015",
                     "escalate: needs within: in this approve:, so that no request expires before others are asked");
    if (n > ESCALATE_OF_RULE)
        load_problem(l, r->approve.escalate.at, "P017", "more than %d steps", ESCALATE_OF_RULE);
    for (size_t i = 0; i < n; i++) {
        if (v[i].after.at == NULL || v[i].to.at == NULL)
            continue;
        check_escalation(l, m, r, &v[i]);
        for (size_t k = 0; k < i; k++)
            if (v[k].to.at && span_eq(v[k].to.text, v[i].to.text))
                load_problem(l, v[i].to.at, "P012", "\"%.*s\" is asked in another step already",
                             SPAN_FMT(v[i].to.text));
    }
}

/* Different ones, of all rules. */
static void check_steps(struct loader *l, const struct model *m)
{
    const struct m_escalate *seen[ESCALATE_MAX];
    size_t n = 0;
    for (size_t i = 0; i < m->nrules; i++) {
        const struct m_escalate *v = m->rules[i]->approve.escalate.v;
        for (size_t j = 0; j < m->rules[i]->approve.escalate.n; j++) {
            size_t k = 0;
            while (k < n && (seen[k]->after.v != v[j].after.v || !span_eq(seen[k]->to.text, v[j].to.text)))
                k++;
            if (k < n)
                continue;
            if (n == ESCALATE_MAX) {
                load_problem(l, v[j].at, "P017",
                             "the rules have more than %d different steps of escalate:", ESCALATE_MAX);
                return;
            }
            seen[n++] = &v[j];
        }
    }
}

static void check_rule_parts(struct loader *l, const struct model *m, const struct m_rule *r)
{
    bool deny = r->decide.v == VERDICT_DENY, hold = r->decide.v == VERDICT_HOLD;
    if (r->floor && !deny)
        load_problem(l, r->decide.at, "P014", "a floor can only deny");
    if (r->use.at && deny)
        load_problem(l, r->use.at, "P015", "a rule that denies uses no credential");
    if (r->approve.at && !hold)
        load_problem(l, r->approve.at, "P015", "approve: belongs to a rule with decide: hold");
    if (r->messages.at && (deny || r->match.ws.at == NULL))
        load_problem(l, r->messages.at, "P015",
                     "messages: belongs to a rule that allows or holds, with ws: in its match:");
    if (r->use.at && model_credential(m, r->use.text) < 0)
        model_no_such(l, &r->use, "credential", m->credentials, m->ncredentials);
    if (r->approve.by.at && model_approver(m, r->approve.by.text) < 0)
        model_no_such(l, &r->approve.by, "approvers entry", m->approvers, m->napprovers);
    check_escalations(l, m, r);
    for (size_t i = 0; i < r->approve.gates.n; i++)
        if (model_gate(m, r->approve.gates.v[i].text) < 0)
            model_no_such(l, &r->approve.gates.v[i], "gate", m->gates, m->ngates);
    if (r->approve.gates.n > 0 && r->approve.grants.at &&
        !(r->approve.grants.uses.at && r->approve.grants.uses.v == 0))
        load_problem(l, r->approve.grants.at, "P015",
                     "gates: are asked about each request: what they guard cannot have grants: too");
    for (size_t i = 0; i < r->scope.n; i++)
        if (model_scope(m, r->scope.v[i].text) < 0)
            model_no_such(l, &r->scope.v[i], "scope", m->scopes, m->nscopes);
    if (r->say.text.n > 500 || r->instead.text.n > 500)
        load_problem(l, r->say.text.n > 500 ? r->say.at : r->instead.at, "P008",
                     "is longer than 500 bytes: clients cut it");
}

/* "*.com" or "*.github.io" in a rule that lets something through is a slip (D30); in one that denies it is fine. */
static void check_wide(struct loader *l, const struct items *hosts)
{
    for (size_t i = 0; i < hosts->n; i++)
        check_value(l, &hosts->v[i], "P013", names_too_wide(hosts->v[i].text));
}

/* A test says "rule: none" where no rule decides, and "credential: none". */
static void check_not_none(struct loader *l, const struct item *name)
{
    if (name->at && span_eq(name->text, SPAN("none")))
        load_problem(l, name->at, "P008", "\"none\" is what a test says where there is none: take another name");
}

/* A rule that lets something through and names no host: what it is about implies which. */
static void check_derived(struct loader *l, const struct model *m, struct m_rule *r)
{
    if (r->decide.v == VERDICT_DENY || r->match.hosts.at || m->packs_lost)
        return;
    derive_hosts(l, m, &r->match);
    check_wide(l, &r->match.derived);
    if (r->match.derived.n == 0)
        load_problem(l, r->match.at, "P015",
                     "the rule would %s this on every host: add host: (or a resource: that implies it)",
                     r->decide.v == VERDICT_ALLOW ? "allow" : "hold");
}

static void check_rule(struct loader *l, struct model *m, struct m_rule *r)
{
    size_t before = l->refused;
    if (r->id.at && !scalar_is_name(r->id.text))
        load_problem(l, r->id.at, "P008", "an id is letters, digits, '.', '_' and '-', at most 64");
    check_not_none(l, &r->id);
    check_rule_parts(l, m, r);
    check_captures(l, r);
    check_when(l, m, r);
    check_limits(l, m, r);
    if (r->decide.v != VERDICT_DENY)
        check_wide(l, &r->match.hosts);
    check_match(l, m, &r->match);
    struct m_match *except = r->except.v;
    for (size_t i = 0; i < r->except.n; i++) {
        check_match(l, m, &except[i]);
        except[i].except = true;
        if (!says_something(&except[i]))
            load_problem(l, except[i].at, "P015", "an empty exception takes everything away: say what it is about");
    }
    if (l->refused == before) /* else it may be about something else than it says */
        check_derived(l, m, r);
}

static void check_lease(struct loader *l, const struct m_credential *c)
{
    const struct number *without = c->require_lease.at ? &c->require_lease : &c->on_leak;
    if (without->at && !c->lease.at)
        load_problem(l, without->at, "P015",
                     "there are no leases of a credential without lease: (such as lease: github)");
    if (c->lease.at && c->inject.certificate.v)
        load_problem(l, c->lease.at, "P015", "a client certificate stands in no request, so there is no lease of it");
    if (c->lease.at && c->inject.hmac.at && lease_is_pair((enum lease_format)c->lease.v))
        load_problem(l, c->lease.at, "P015",
                     "a lease of a credential with hmac: is one text in place of the signature: lease: generic");
    if (c->lease.at && (c->inject.sigv4.at || c->inject.tc3.at) && !lease_is_pair((enum lease_format)c->lease.v))
        load_problem(l, c->lease.at, "P015",
                     "a credential that signs has leases in two halves, to sign with: lease: aws or lease: tencent");
}

/* Whom SDKs ask, and what they do with the answer, has to fit the lease. */
static void check_stub(struct loader *l, const struct m_credential *c)
{
    bool pair = c->lease.at != NULL && lease_is_pair((enum lease_format)c->lease.v);
    struct token_url at;
    if (c->token_url.at && check_https(l, &c->token_url))
        check_value(l, &c->token_url, "P013", derive_token_url(c->token_url.text, &at));
    if (c->token_url.at && c->stub.v != STUB_OAUTH)
        load_problem(l, c->token_url.at, "P015", "token_url: is the address of stub: oauth");
    if (c->stub.at == NULL)
        return;
    if (!c->lease.at)
        load_problem(l, c->stub.at, "P015", "a stub answers with leases: of which form they are is lease:");
    else if (c->stub.v == STUB_AWS && (c->lease.v != LEASE_AWS || !c->inject.sigv4.at))
        load_problem(l, c->stub.at, "P015", "stub: aws gives pairs to sign with: inject: { sigv4: ... }, lease: aws");
    else if (c->stub.v != STUB_AWS && pair)
        load_problem(l, c->stub.at, "P015", "a token is one text, and leases of this form are pairs");
    if (c->stub.v == STUB_OAUTH && c->token_url.at == NULL)
        load_problem(l, c->stub.at, "P015", "token_url: is missing, which SDKs ask for a token");
}

/* A certificate goes into the handshake, so it can go with any credential that goes into the request. */
static void check_beside(struct loader *l, const struct model *m, const struct m_credential *c)
{
    int at = c->beside.at ? model_credential(m, c->beside.text) : -1;
    if (c->beside.at == NULL)
        return;
    if (at < 0)
        check_value(l, &c->beside, "P011", "is no credential");
    else if (m->credentials[at]->inject.certificate.v == 0 || c->inject.certificate.at)
        load_problem(l, c->beside.at, "P015",
                     "beside: names a credential with client_certificate: true, of one that goes into the request");
}

static bool has_key(const struct m_asked *a)
{
    bool has = false;
    for (size_t i = 0; i < a->n; i++)
        has |= span_eq(a->v[i].key, SPAN("key"));
    return has;
}

/* So many credentials have tokens in answers to requests with the one of this name. */
static size_t answers_to(const struct model *m, struct span name)
{
    size_t n = 0;
    for (size_t k = 0; k < m->ncredentials; k++) {
        const struct m_asked *a = &m->credentials[k]->source.asked[SOURCE_ANSWER];
        bool is = false;
        for (size_t i = 0; a->at != NULL && i < a->n; i++)
            is |= span_eq(a->v[i].key, SPAN("to")) && span_eq(a->v[i].value.text, name);
        n += is;
    }
    return n;
}

/* Its values are known by the leases that took their place, so it has those, and nothing else is one. */
static void check_answer(struct loader *l, const struct model *m, const struct m_credential *c)
{
    const struct m_asked *a = &c->source.asked[SOURCE_ANSWER];
    if (a->at == NULL)
        return;
    for (size_t i = 0; i < a->n; i++) {
        if (!span_eq(a->v[i].key, SPAN("to")))
            continue;
        if (model_credential(m, a->v[i].value.text) < 0)
            check_value(l, &a->v[i].value, "P011", "is no credential");
        else if (answers_to(m, a->v[i].value.text) > ANSWER_TOKENS_MAX)
            load_problem(l, a->v[i].at, "P017", "more than %d credentials have tokens of one answer",
                         ANSWER_TOKENS_MAX);
    }
    bool signs = c->inject.sigv4.at || c->inject.tc3.at;
    if (c->stub.at)
        load_problem(l, c->stub.at, "P015", "leases of a token of an answer come with that answer, and from no stub");
    if (c->lease.at == NULL || lease_is_pair((enum lease_format)c->lease.v) != signs || has_key(a) != signs)
        load_problem(
            l, a->at, "P015",
            "a token of an answer goes on as a lease: say lease: (such as lease: generic); of keys to sign with "
            "it is a pair, key: says where the key is, and inject: is { sigv4: ... } or { tc3: ... }");
}

static void check_credential(struct loader *l, const struct model *m, struct m_credential *c)
{
    struct m_place *p = c->only.v;
    check_lease(l, c);
    check_stub(l, c);
    check_not_none(l, &c->name);
    check_source(l, &c->source);
    check_inject(l, &c->inject);
    if (c->source.asked[SOURCE_AWS].at && c->inject.sigv4.at == NULL)
        load_problem(l, c->source.stored.at, "P015", "aws: gives keys to sign with: inject: is { sigv4: ... }");
    if (c->source.asked[SOURCE_TENCENT].at && c->inject.tc3.at == NULL)
        load_problem(l, c->source.stored.at, "P015", "tencent: gives keys to sign with: inject: is { tc3: ... }");
    if (c->scrub.at && c->inject.certificate.v)
        load_problem(l, c->scrub.at, "P015", "scrub: a certificate's key is never sent, so no answer can have it");
    check_beside(l, m, c);
    check_answer(l, m, c);
    if (c->only.at && c->only.n == 0)
        load_problem(l, c->only.at, "P015", "only: names no place, so the credential could never be used");
    if (c->only.n > PLACES_MAX)
        load_problem(l, c->only.at, "P017", "only: names %zu places, more than %d: write several credentials",
                     c->only.n, PLACES_MAX);
    for (size_t i = 0; i < c->only.n; i++) {
        if (p[i].host.at)
            check_value(l, &p[i].host, "P013", scalar_host(p[i].host.text, false));
        if (p[i].path.at)
            check_value(l, &p[i].path, "P013", scalar_path(p[i].path.text));
        if (p[i].scheme.at == NULL)
            p[i].scheme.v = SCHEME_HTTPS;
        if (c->inject.certificate.v && p[i].scheme.v != SCHEME_HTTPS)
            load_problem(l, p[i].at, "P015", "a client certificate goes over https only");
        if (p[i].port.at == NULL)
            p[i].port.v = p[i].scheme.v == SCHEME_HTTP ? 80 : 443;
    }
}

static const char *why_pin(struct span s)
{
    uint8_t raw[SCALAR_PIN_BYTES];
    return scalar_pin(s, raw);
}

static const char *why_region(struct span s)
{
    return scalar_is_name(s) ? NULL : "is no name of a region: letters, digits, '.', '_' and '-', at most 64";
}

/* A region that no upstream has lets nothing through, which is likely a slip. */
static void check_regions(struct loader *l, const struct set *had, const struct m_scope *s)
{
    check_texts(l, &s->regions, why_region);
    for (size_t i = 0; i < s->regions.n; i++)
        if (!set_has(had, s->regions.v[i].text) && why_region(s->regions.v[i].text) == NULL)
            load_problem(l, s->regions.v[i].at, "P112",
                         "no upstream has region: %.*s: this scope reaches nothing by it",
                         SPAN_FMT(s->regions.v[i].text));
}

static void check_upstream(struct loader *l, const struct m_upstream *u)
{
    if (u->host.at)
        check_value(l, &u->host, "P013", scalar_host(u->host.text, false));
    if (u->address.at)
        check_value(l, &u->address, "P013", scalar_ip(u->address.text));
    if (u->region.at)
        check_value(l, &u->region, "P008", why_region(u->region.text));
    check_texts(l, &u->allow_private, scalar_cidr);
    check_texts(l, &u->tls.pins, why_pin);
    if (u->ca.at && u->tls.ca.at)
        load_problem(l, u->tls.ca.at, "P015", "ca: stands here and beside tls:, one of them is enough");
    if (u->tls.pins.n > PINS_MAX)
        load_problem(l, u->tls.pins.at, "P017", "more than %d pins", PINS_MAX);
}

/* Somebody must be named, and so many that they can be enough. */
static void check_approver(struct loader *l, const struct m_approver *v)
{
    if (v->operators.n == 0 && v->groups.n == 0)
        load_problem(l, v->at, "P010", "an approvers entry needs \"operators\" or \"groups\"");
    else if (v->groups.n == 0 && v->people.quorum.v > v->operators.n)
        load_problem(l, v->people.quorum.at, "P015", "quorum: %llu of %zu people can never be",
                     (unsigned long long)v->people.quorum.v, v->operators.n);
}

static void check_scope(struct loader *l, const struct m_scope *s)
{
    if (s->sandboxes.at == NULL && s->labels.at == NULL)
        load_problem(l, s->at, "P015", "a scope names sandboxes:, labels: or both");
    check_texts(l, &s->sandboxes, check_why_free);
    check_pairs(l, &s->labels, false);
}

/* An entry that was not read whole is passed over: what is wrong with it was said. */
void check_model(struct loader *l, struct model *m)
{
    for (size_t i = 0; i < m->npacks; i++)
        derive_check_pack(l, m->packs[i]);
    for (size_t i = 0; i < m->nscopes; i++)
        if (!m->scopes[i]->at->broken)
            check_scope(l, m->scopes[i]);
    struct set regions = {0};
    bool whole = true;
    for (size_t i = 0; i < m->napprovers; i++)
        check_approver(l, m->approvers[i]);
    check_steps(l, m);
    for (size_t i = 0; i < m->nupstreams; i++) {
        (void)set_add(l, &regions, m->upstreams[i]->region.text);
        whole &= !m->upstreams[i]->at->broken;
    }
    for (size_t i = 0; whole && i < m->nscopes; i++)
        check_regions(l, &regions, m->scopes[i]);
    set_free(&regions);
    for (size_t i = 0; i < m->ncredentials; i++)
        if (!m->credentials[i]->at->broken)
            check_credential(l, m, m->credentials[i]);
    check_gates(l, m); /* once what credentials leave to the usual is filled in */
    for (size_t i = 0; i < m->nupstreams; i++)
        if (!m->upstreams[i]->at->broken)
            check_upstream(l, m->upstreams[i]);
    for (size_t i = 0; i < m->nrules; i++)
        if (!m->rules[i]->at->broken)
            check_rule(l, m, m->rules[i]);
}
