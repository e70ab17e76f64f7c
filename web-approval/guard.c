#include "web-approval/guard.h"

#include <stdio.h>

static bool is_loopback(struct span host)
{
    return span_ieq(host, SPAN("localhost")) || span_eq(host, SPAN("127.0.0.1")) || span_eq(host, SPAN("[::1]"));
}

static struct span scheme_of(const struct guard *g)
{
    return g->secure ? SPAN("https://") : SPAN("http://");
}

static uint16_t usual_port(const struct guard *g)
{
    return g->secure ? 443 : 80;
}

int guard_init(struct guard *g, struct span url)
{
    *g = (struct guard){.secure = span_starts(url, SPAN("https://"))};
    struct span scheme = scheme_of(g);

    if (!span_starts(url, scheme) || http_split_authority(span_from(url, scheme.n), &g->host, &g->port) != 0)
        return -1;
    if (g->port == 0)
        g->port = usual_port(g);
    struct id a, b;
    if (id_new(&a) != 0 || id_new(&b) != 0)
        return -1;
    struct digest_ctx *d = digest_begin();
    digest_add_field(d, span_of(a.b, ID_BYTES));
    digest_add_field(d, span_of(b.b, ID_BYTES));
    digest_end(d, &g->nobody.key);
    return g->secure || is_loopback(g->host) ? 0 : -1;
}

/* Without TLS this machine's own names are one; with it there is one name, which the certificate is for. */
static bool is_ours(const struct guard *g, struct span host)
{
    return g->secure ? span_ieq(host, g->host) : is_loopback(host);
}

bool guard_host_ok(const struct guard *g, const struct http_head *h)
{
    return h->form == HTTP_ORIGIN && is_ours(g, h->host) && (h->port ? h->port : usual_port(g)) == g->port;
}

bool guard_origin_ok(const struct guard *g, const struct http_head *h)
{
    const struct http_field *origin = http_find(h, SPAN("origin")), *site = http_find(h, SPAN("sec-fetch-site"));
    const struct span scheme = scheme_of(g);
    struct span host;
    uint16_t port;

    if (!origin || !span_starts(origin->value, scheme) ||
        http_split_authority(span_from(origin->value, scheme.n), &host, &port) != 0)
        return false;
    /* The very name the page is shown under: http://127.0.0.1 is another origin than http://localhost. */
    if (!span_ieq(host, h->host) || (port ? port : usual_port(g)) != g->port)
        return false;
    return !site || span_eq(site->value, SPAN("same-origin"));
}

static void keep_operator(char dst[GUARD_OPERATOR], const char *operator)
{
    size_t n = strlen(operator);
    memmove(dst, operator, n<GUARD_OPERATOR ? n + 1 : GUARD_OPERATOR);
    dst[GUARD_OPERATOR - 1] = '\0';
}

const char *guard_how_name(enum guard_how how)
{
    static const char *const names[] = {"", "link", "password", "passkey", "oidc"};
    return names[how];
}

int guard_link_new(struct guard *g, const char *operator, uint64_t now, char text[ID_TEXT + 1])
{
    return guard_link_for(g, operator, now, GUARD_LINK_MS, text);
}

/* Who has as many as one may makes room with their own oldest, not with a neighbour's. */
static size_t link_of_many(const struct guard *g, const char *operator, uint64_t now, size_t at)
{
    size_t n = 0, own = GUARD_LINKS;

    for (size_t i = 0; i < GUARD_LINKS; i++)
        if (g->link[i].until_ms > now && strcmp(g->link[i].operator, operator) == 0) {
            n++;
            if (own == GUARD_LINKS || g->link[i].until_ms < g->link[own].until_ms)
                own = i;
        }
    return n >= GUARD_LINKS / 2 ? own : at;
}

int guard_link_for(struct guard *g, const char *operator, uint64_t now, uint64_t ms, char text[ID_TEXT + 1])
{
    struct id id;
    size_t at = 0;

    if (id_new(&id) != 0)
        return -1;
    for (size_t i = 1; i < GUARD_LINKS; i++)
        if (g->link[i].until_ms < g->link[at].until_ms)
            at = i;
    at = link_of_many(g, operator, now, at);
    id_text(&id, text);
    digest_of(span_of(text, ID_TEXT), &g->link[at].token);
    g->link[at].until_ms = now + ms;
    keep_operator(g->link[at].operator, operator);
    return 0;
}

static bool digest_same(const struct digest *a, const struct digest *b)
{
    return span_eq_consttime(span_of(a->b, DIGEST_BYTES), span_of(b->b, DIGEST_BYTES));
}

/* A free one, or the one that ends first: of who has as many as one may, among their own. */
static struct session *session_slot(struct guard *g, const char *operator, uint64_t now)
{
    size_t at = 0, n = 0, own = GUARD_SESSIONS;

    for (size_t i = 0; i < GUARD_SESSIONS; i++) {
        if (g->session[i].until_ms < g->session[at].until_ms)
            at = i;
        if (g->session[i].until_ms <= now || strcmp(g->session[i].operator, operator) != 0)
            continue;
        n++;
        if (own == GUARD_SESSIONS || g->session[i].until_ms < g->session[own].until_ms)
            own = i;
    }
    return &g->session[n >= GUARD_SESSIONS / 4 ? own : at];
}

/* A fresh session; the cookie is never the link's token, so that a link seen later is worth nothing. */
const struct session *guard_session_new(struct guard *g, const char *operator, enum guard_how how, uint64_t now,
                                        char cookie[GUARD_COOKIE_TEXT + 1])
{
    struct session *s = session_slot(g, operator, now);
    struct id a, b, k;

    if (id_new(&a) != 0 || id_new(&b) != 0 || id_new(&k) != 0)
        return NULL;
    id_text(&a, cookie);
    id_text(&b, cookie + ID_TEXT);
    digest_of(span_of(cookie, GUARD_COOKIE_TEXT), &s->cookie);
    struct digest_ctx *d = digest_begin();
    digest_add_field(d, span_of(k.b, ID_BYTES));
    digest_add_field(d, span_of(cookie, GUARD_COOKIE_TEXT));
    digest_end(d, &s->key);
    s->until_ms = now + GUARD_SESSION_MS;
    s->how = how;
    s->since_ms = s->seen_ms = now;
    s->generation = 0;
    memset(s->code, 0, sizeof(s->code));
    keep_operator(s->operator, operator);
    return s;
}

static struct session *session_of(struct guard *g, const struct session *s)
{
    for (size_t i = 0; i < GUARD_SESSIONS; i++)
        if (&g->session[i] == s)
            return &g->session[i];
    return NULL;
}

void guard_session_person(struct guard *g, const struct session *s, uint64_t generation)
{
    struct session *own = session_of(g, s);
    if (own)
        own->generation = generation;
}

void guard_session_code(struct guard *g, const struct session *s, struct span code)
{
    struct session *own = session_of(g, s);
    if (own && (code.n == 0 || code.n == ID_TEXT)) {
        memset(own->code, 0, sizeof(own->code));
        if (code.n)
            memcpy(own->code, code.p, code.n);
    }
}

void guard_session_used(struct guard *g, const struct session *s, uint64_t now)
{
    struct session *own = session_of(g, s);
    if (own)
        own->seen_ms = now;
}

void guard_forget(struct guard *g, const char *operator)
{
    for (size_t i = 0; i < GUARD_SESSIONS; i++)
        if (strcmp(g->session[i].operator, operator) == 0)
            explicit_bzero(&g->session[i], sizeof(g->session[i]));
    for (size_t i = 0; i < GUARD_LINKS; i++)
        if (strcmp(g->link[i].operator, operator) == 0)
            g->link[i].until_ms = 0;
}

static size_t link_at(const struct guard *g, struct span token, uint64_t now)
{
    struct digest d;
    size_t found = GUARD_LINKS;

    digest_of(token, &d);
    for (size_t i = 0; i < GUARD_LINKS; i++)
        if (digest_same(&g->link[i].token, &d) && g->link[i].until_ms > now)
            found = i;
    return token.n == ID_TEXT ? found : GUARD_LINKS;
}

bool guard_link_use(struct guard *g, struct span token, uint64_t now, char operator[GUARD_OPERATOR])
{
    size_t i = link_at(g, token, now);

    if (i == GUARD_LINKS)
        return false;
    g->link[i].until_ms = 0;
    keep_operator(operator, g->link[i].operator);
    return true;
}

const char *guard_link_of(const struct guard *g, struct span token, uint64_t now)
{
    size_t i = link_at(g, token, now);
    return i < GUARD_LINKS ? g->link[i].operator: NULL;
}

const struct session *guard_sign_in(struct guard *g, struct span token, uint64_t now,
                                    char cookie[GUARD_COOKIE_TEXT + 1])
{
    size_t found = link_at(g, token, now);

    if (found == GUARD_LINKS)
        return NULL;
    g->link[found].until_ms = 0;
    return guard_session_new(g, g->link[found].operator, HOW_LINK, now, cookie);
}

const char *guard_cookie_name(const struct guard *g)
{
    return g->secure ? "__Host-countersign" : "countersign";
}

const char *guard_browser_name(const struct guard *g)
{
    return g->secure ? "__Host-countersign-browser" : "countersign-browser";
}

/* The cookie's value, whatever else stands in the field. */
static struct span cookie_value(const struct http_head *h, const char *name)
{
    const struct http_field *f = http_find(h, SPAN("cookie"));
    struct span one, value, field = f ? f->value : SPAN_NONE;

    while (field.n > 0) {
        (void)span_cut(field, ';', &one, &field);
        if (span_cut(span_trim(one), '=', &one, &value) && span_eq(one, span_str(name)))
            return value;
    }
    return SPAN_NONE;
}

const struct session *guard_session(const struct guard *g, const struct http_head *h, uint64_t now)
{
    struct span v = cookie_value(h, guard_cookie_name(g));
    const struct session *found = NULL;
    struct digest d;

    digest_of(v, &d);
    for (size_t i = 0; i < GUARD_SESSIONS; i++)
        if (g->session[i].until_ms > now && digest_same(&g->session[i].cookie, &d))
            found = &g->session[i];
    if (found && found->generation && now - found->seen_ms >= GUARD_IDLE_MS)
        found = NULL;
    return v.n == GUARD_COOKIE_TEXT ? found : NULL;
}

void guard_sign_out(struct guard *g, const struct session *s)
{
    for (size_t i = 0; i < GUARD_SESSIONS; i++)
        if (&g->session[i] == s)
            explicit_bzero(&g->session[i], sizeof(g->session[i]));
}

/* Twice hashed, so that a mark says nothing about the state behind it. */
static void mark_digest(const struct session *s, const char *purpose, struct span subject, struct span shown,
                        struct span time, struct digest *out)
{
    struct digest inner;
    struct digest_ctx *d = digest_begin();

    digest_add_field(d, span_of(s->key.b, DIGEST_BYTES));
    digest_add_field(d, span_str(purpose));
    digest_add_field(d, subject);
    digest_add_field(d, shown);
    digest_add_field(d, time);
    digest_end(d, &inner);
    d = digest_begin();
    digest_add_field(d, span_of(s->key.b, DIGEST_BYTES));
    digest_add_field(d, span_of(inner.b, DIGEST_BYTES));
    digest_end(d, out);
}

void guard_mark(const struct session *s, const char *purpose, struct span subject, struct span shown, uint64_t now,
                char out[GUARD_MARK_TEXT + 1])
{
    char time[24];
    struct digest d;
    int n = snprintf(time, sizeof(time), "%llx", (unsigned long long)now);

    mark_digest(s, purpose, subject, shown, span_of(time, (size_t)n), &d);
    (void)snprintf(out, GUARD_MARK_TEXT + 1, "%s.", time);
    hex_text(span_of(d.b, DIGEST_BYTES - 4), out + n + 1);
}

static bool time_parse(struct span s, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        unsigned v = c >= '0' && c <= '9' ? c - '0' + 0u : c >= 'a' && c <= 'f' ? c - 'a' + 10u : 16;
        if (v == 16)
            return false;
        *out = *out << 4 | v;
    }
    return s.n > 0 && s.n <= 16;
}

enum guard_mark guard_mark_check(const struct session *s, const char *purpose, struct span subject, struct span shown,
                                 uint64_t now, struct span mark)
{
    struct span time, hex;
    struct digest d;
    char want[2 * DIGEST_BYTES + 1];
    uint64_t at;

    if (!span_cut(mark, '.', &time, &hex) || !time_parse(time, &at))
        return GUARD_FORGED;
    mark_digest(s, purpose, subject, shown, time, &d);
    hex_text(span_of(d.b, DIGEST_BYTES - 4), want);
    if (!span_eq_consttime(hex, span_of(want, (size_t)2 * (DIGEST_BYTES - 4))) || at > now)
        return GUARD_FORGED;
    if (now - at < GUARD_ARM_MS)
        return GUARD_TOO_FAST;
    return now - at > GUARD_SESSION_MS ? GUARD_STALE : GUARD_FINE;
}

/* --- what is kept of nobody ------------------------------------------------------ */

/* text begins with its id. */
static void marked_again(const struct guard *g, const char *purpose, struct span subject, uint64_t now,
                         char text[GUARD_SEED_TEXT + 1])
{
    text[ID_TEXT] = '.';
    guard_mark(&g->nobody, purpose, span_of(text, ID_TEXT), subject, now, text + ID_TEXT + 1);
}

static int marked_new(const struct guard *g, const char *purpose, struct span subject, uint64_t now,
                      char text[GUARD_SEED_TEXT + 1])
{
    struct id id;

    if (id_new(&id) != 0)
        return -1;
    id_text(&id, text);
    marked_again(g, purpose, subject, now, text);
    return 0;
}

/* *at: when it was made; false: not by us, or not for this. */
static bool marked(const struct guard *g, const char *purpose, struct span subject, struct span text, uint64_t now,
                   uint64_t *at)
{
    struct span id, mark, time, hex;

    return span_cut(text, '.', &id, &mark) && id.n == ID_TEXT && span_cut(mark, '.', &time, &hex) &&
           time_parse(time, at) && guard_mark_check(&g->nobody, purpose, id, subject, now, mark) != GUARD_FORGED;
}

int guard_seed(const struct guard *g, uint64_t now, char text[GUARD_SEED_TEXT + 1])
{
    return marked_new(g, "seed", SPAN_NONE, now, text);
}

static bool is_used(const struct guard *g, struct span text)
{
    struct digest d;
    bool used = false;

    digest_of(text, &d);
    for (size_t i = 0; i < GUARD_SEEDS_USED; i++)
        used = used || digest_same(&g->used[i], &d);
    return used;
}

bool guard_seed_good(const struct guard *g, struct span seed, uint64_t now)
{
    uint64_t at;

    return marked(g, "seed", SPAN_NONE, seed, now, &at) && now - at < GUARD_SEED_MS && !is_used(g, seed);
}

bool guard_seed_use(struct guard *g, struct span seed, uint64_t now)
{
    bool good = guard_seed_good(g, seed, now);

    if (good)
        digest_of(seed, &g->used[g->nused++ % GUARD_SEEDS_USED]);
    return good;
}

int guard_browser_new(const struct guard *g, struct span person, char text[GUARD_SEED_TEXT + 1])
{
    return marked_new(g, "browser", person, 0, text);
}

struct span guard_browser(const struct guard *g, const struct http_head *h, struct span person)
{
    struct span v = cookie_value(h, guard_browser_name(g));
    uint64_t at;

    return marked(g, "browser", person, v, 0, &at) ? span_first(v, ID_TEXT) : SPAN_NONE;
}

/* --- by way of a provider ---------------------------------------------------------- */

/* What a cookie of a flow is marked for: in a browser that is known, and in any other. */
static const char *flow_purpose(bool known)
{
    return known ? "flow known" : "flow";
}

const char *guard_flow_name(const struct guard *g)
{
    return g->secure ? "__Host-countersign-flow" : "countersign-flow";
}

static void flow_proof(const struct guard *g, const char *purpose, const struct guard_flow *f,
                       char out[GUARD_FLOW_PROOF + 1])
{
    struct digest d;

    mark_digest(&g->nobody, purpose, span_str(f->text), SPAN_NONE, SPAN_NONE, &d);
    hex_text(span_of(d.b, DIGEST_BYTES), out);
}

static void flow_proofs(const struct guard *g, struct guard_flow *f)
{
    flow_proof(g, "flow state", f, f->state);
    flow_proof(g, "flow nonce", f, f->nonce);
    flow_proof(g, "flow verifier", f, f->verifier);
}

/* The cookie's, whatever its age; false: it has none of ours. */
static bool flow_cookie(const struct guard *g, const struct http_head *h, uint64_t now, struct guard_flow *f,
                        uint64_t *at)
{
    struct span v = cookie_value(h, guard_flow_name(g));

    *f = (struct guard_flow){.known = false};
    if (v.n > GUARD_SEED_TEXT || memchr(v.n ? v.p : (const uint8_t *)"", '\0', v.n))
        return false;
    if (v.n)
        memcpy(f->text, v.p, v.n);
    f->known = marked(g, flow_purpose(true), SPAN_NONE, v, now, at);
    return f->known || marked(g, flow_purpose(false), SPAN_NONE, v, now, at);
}

/* A known browser keeps its id, by which its tries are counted. */
int guard_flow_new(const struct guard *g, const struct http_head *h, uint64_t now, struct guard_flow *out)
{
    const uint64_t known_ms = (uint64_t)GUARD_BROWSER_DAYS * 24 * 3600 * 1000;
    uint64_t at;
    bool known = flow_cookie(g, h, now, out, &at) && out->known && now - at < known_ms;

    if (!known && marked_new(g, flow_purpose(false), SPAN_NONE, now, out->text) != 0)
        return -1;
    if (known)
        marked_again(g, flow_purpose(true), SPAN_NONE, now, out->text);
    out->known = known;
    flow_proofs(g, out);
    return 0;
}

bool guard_flow_of(const struct guard *g, const struct http_head *h, uint64_t now, struct guard_flow *out)
{
    uint64_t at;

    if (!flow_cookie(g, h, now, out, &at) || now - at >= GUARD_FLOW_MS || is_used(g, span_str(out->text)))
        return false;
    flow_proofs(g, out);
    return true;
}

bool guard_flow_use(struct guard *g, const struct guard_flow *f, uint64_t now, char known[GUARD_SEED_TEXT + 1])
{
    uint64_t at;
    struct span text = span_str(f->text);

    if (!marked(g, flow_purpose(f->known), SPAN_NONE, text, now, &at) || now - at >= GUARD_FLOW_MS ||
        is_used(g, text))
        return false;
    digest_of(text, &g->used[g->nused++ % GUARD_SEEDS_USED]);
    memcpy(known, f->text, ID_TEXT);
    /* Nobody can come back by this one: what follows from it was told to nobody. */
    marked_again(g, flow_purpose(true), SPAN_NONE, now, known);
    return true;
}
