#include "policy/load/check/check_gate.h"

#include "policy/image/glob.h"
#include "policy/load/check/check.h"
#include "policy/load/check/check_source.h"
#include "policy/load/check/warn.h"
#include "policy/load/read/scalar.h"

struct gate_place check_gate_place(const struct m_gate *g)
{
    const struct item *url = g->webhook.at ? &g->webhook : &g->url;
    struct span rest = span_from(url->text, sizeof("https://") - 1), host, port;
    struct gate_place to = {.port = 443};
    uint64_t n;
    to.path = span_from(rest, span_index(rest, '/'));
    if (to.path.n == 0)
        to.path = SPAN("/");
    rest = span_first(rest, span_index(rest, '/'));
    bool other = span_cut(rest, ':', &host, &port);
    to.host = other ? host : rest;
    if (other && span_u64(port, UINT16_MAX, &n) == 0)
        to.port = (uint16_t)n;
    return to;
}

static void check_program(struct loader *l, const struct items *v)
{
    if (v->n > GATE_WORDS_MAX)
        load_problem(l, v->at, "P017", "more than %d words", GATE_WORDS_MAX);
    for (size_t k = 0; k < v->n; k++)
        if (span_index(v->v[k].text, '\0') < v->v[k].text.n)
            load_problem(l, v->v[k].at, "P008", "has a NUL in it");
    if (v->at && (v->n == 0 || !span_starts(v->v[0].text, SPAN("/"))))
        load_problem(l, v->at, "P008", "begins with the full path of a program: /usr/local/bin/scan");
}

static void check_port(struct loader *l, const struct item *url)
{
    struct span rest = span_from(url->text, sizeof("https://") - 1), host, port;
    uint64_t n;
    rest = span_first(rest, span_index(rest, '/'));
    if (span_cut(rest, ':', &host, &port) && (span_u64(port, UINT16_MAX, &n) != 0 || n == 0))
        check_value(l, url, "P008", "has no port from 1 to 65535");
}

/* One reading of its path alone, so that what only: of a credential says of it now is what is meant when it is asked.
 */
static bool check_path(struct loader *l, const struct m_gate *g, const struct item *url)
{
    struct span path = check_gate_place(g).path;
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] == '%' || path.p[i] == '\\' || path.p[i] == ';' || path.p[i] == '*')
            path.n = 0;
    if (path.n > 0 && span_find(path, SPAN("//")) == path.n && span_find(path, SPAN("/.")) == path.n)
        return true;
    check_value(
        l, url, "P008",
        "has a path that servers may read otherwise: it is written without %, ;, *, // and dots before a name");
    return false;
}

static void check_webhook(struct loader *l, const struct m_gate *g)
{
    if (check_https(l, &g->webhook) && check_path(l, g, &g->webhook))
        check_port(l, &g->webhook);
    if (g->secret.at == NULL)
        load_problem(l, g->at, "P010",
                     "a gate with webhook: needs the key \"secret\", as in { store: NAME }, that signs what is sent");
    if (g->secret.store.at && !scalar_is_name(g->secret.store.text))
        check_value(l, &g->secret.store, "P008", "is no name of a stored secret");
}

static const struct m_credential *credential_of(const struct model *m, const struct m_gate *g)
{
    int at = g->credential.at ? model_credential(m, g->credential.text) : -1;
    return at >= 0 ? m->credentials[at] : NULL;
}

static bool may_go(const struct m_credential *c, struct gate_place to)
{
    const struct m_place *v = c->only.v;
    for (size_t i = 0; i < c->only.n; i++)
        if ((v[i].scheme.v & SCHEME_HTTPS) && v[i].port.v == to.port &&
            warn_pattern_covers(v[i].host.text, to.host) &&
            (v[i].path.at == NULL || glob_covers(v[i].path.text, to.path, '/')))
            return true;
    return false;
}

/* It goes into a field, as it is: there is nothing here that signs a question, or puts it anywhere else. */
static void check_credential(struct loader *l, const struct model *m, const struct m_gate *g)
{
    const struct m_credential *c = credential_of(m, g);
    if (c == NULL) {
        model_no_such(l, &g->credential, "credential", m->credentials, m->ncredentials);
        return;
    }
    const struct m_inject *j = &c->inject;
    bool slot = false;
    for (size_t i = 0; i < SLOT_KINDS; i++)
        slot |= j->slot[i].at != NULL;
    if (slot || j->certificate.v || j->sigv4.at || j->tc3.at || j->hmac.at || c->beside.at ||
        c->source.asked[SOURCE_ANSWER].at)
        check_value(l, &g->credential, "P015", "does not go into a header field by itself, as a model is asked with");
    else if (!may_go(c, check_gate_place(g)))
        check_value(l, &g->credential, "P015",
                    "may not go to the host, port and path of url: only: does not name them");
}

static void check_model_gate(struct loader *l, const struct model *m, const struct m_gate *g)
{
    static const char *const needed[] = {"api", "url", "credential"};
    const struct node *at[] = {g->api.at, g->url.at, g->credential.at};
    for (size_t i = 0; i < 3; i++)
        if (at[i] == NULL)
            load_problem(l, g->at, "P010", "a gate with model: needs the key \"%s\"", needed[i]);
    bool plain = g->url.at && check_https(l, &g->url) && check_path(l, g, &g->url);
    if (plain)
        check_port(l, &g->url);
    if (g->credential.at && plain)
        check_credential(l, m, g);
    if (g->model.text.n == 0 || g->model.text.n > GATE_MODEL_MAX)
        load_problem(l, g->model.at, "P017", "the name of a model has 1 to %d bytes", GATE_MODEL_MAX);
    for (size_t i = 0; i < g->model.text.n; i++)
        if (g->model.text.p[i] <= 0x20 || g->model.text.p[i] >= 0x7f) {
            check_value(l, &g->model, "P008", "must be plain ASCII, without spaces");
            break;
        }
    if (g->instructions.text.n > GATE_INSTRUCTIONS_MAX)
        load_problem(l, g->instructions.at, "P017", "longer than %d bytes", GATE_INSTRUCTIONS_MAX);
}

/* What one of the three has and the others have not. */
static void check_others(struct loader *l, const struct m_gate *g)
{
    const struct node *of_model[] = {g->api.at, g->url.at, g->credential.at, g->instructions.at};
    for (size_t i = 0; i < sizeof(of_model) / sizeof(of_model[0]) && g->model.at == NULL; i++)
        if (of_model[i] != NULL)
            load_problem(l, of_model[i], "P015", "goes with model: alone");
    if (g->secret.at && g->webhook.at == NULL)
        load_problem(l, g->secret.at, "P015", "goes with webhook: alone");
    if (g->body.at && g->program.at)
        load_problem(l, g->body.at, "P015", "a program is given all of it: body: goes with webhook: and model:");
}

bool check_gate_uses(const struct model *m, const struct m_gate *g, const struct m_credential *c)
{
    return credential_of(m, g) == c;
}

void check_gates(struct loader *l, const struct model *m)
{
    if (m->ngates > GATES_MAX)
        load_problem(l, m->gates[GATES_MAX]->at, "P017", "more than %d gates", GATES_MAX);
    for (size_t i = 0; i < m->ngates; i++) {
        const struct m_gate *g = m->gates[i];
        int ways = (g->program.at != NULL) + (g->webhook.at != NULL) + (g->model.at != NULL);
        if (g->at->broken)
            continue; /* it was not read whole: what is wrong with it was said */
        if (ways == 0)
            load_problem(l, g->at, "P010", "a gate needs \"program\", \"webhook\" or \"model\"");
        if (ways > 1)
            load_problem(l, g->at, "P015", "a gate is one of program:, webhook: and model:");
        check_program(l, &g->program);
        if (g->webhook.at)
            check_webhook(l, g);
        if (g->model.at)
            check_model_gate(l, m, g);
        if (ways == 1)
            check_others(l, g);
    }
}
