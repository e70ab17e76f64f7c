#include "proxy/tell/wire_tell.h"

void wire_put_tell_target(struct dynbuf *b, const struct wire_tell_target *t)
{
    msg_put_span(b, t->name);
    msg_put_u8(b, (uint8_t)t->kind);
    msg_put_digest(b, &t->of);
    msg_put_u32(b, t->events);
    msg_put_u64(b, t->give_up_ms);
    msg_put_u8(b, t->buttons);
    msg_put_u32(b, t->budget);
    msg_put_u8(b, (uint8_t)t->ntenants);
    for (size_t i = 0; i < t->ntenants; i++)
        msg_put_span(b, t->tenant[i]);
}

int wire_get_tell_target(struct msg_in *m, struct wire_tell_target *t)
{
    t->name = msg_get_span(m, TELL_NAME_MAX);
    uint8_t kind = msg_get_u8(m);
    msg_get_digest(m, &t->of);
    t->events = msg_get_u32(m);
    t->give_up_ms = msg_get_u64(m);
    t->buttons = msg_get_bool(m);
    t->budget = msg_get_u32(m);
    size_t n = msg_get_u8(m);
    if (m->bad || n > TELL_TENANTS_MAX || kind == TELL_NO_KIND || kind >= TELL_KINDS || t->name.n == 0 ||
        t->events >= TELL_EVENTS)
        return -1;
    t->kind = (enum tell_kind)kind;
    for (t->ntenants = 0; t->ntenants < n; t->ntenants++)
        t->tenant[t->ntenants] = msg_get_span(m, TELL_NAME_MAX);
    return m->bad ? -1 : 0;
}

void wire_put_tell_place(struct dynbuf *b, const struct wire_tell_place *p)
{
    msg_put_span(b, p->name);
    msg_put_u8(b, (uint8_t)p->kind);
    msg_put_digest(b, &p->of);
    msg_put_span(b, p->url);
    msg_put_span(b, p->secret);
    msg_put_span(b, p->ca_pem);
    msg_put_u8(b, (uint8_t)p->ncidrs);
    for (size_t i = 0; i < p->ncidrs; i++)
        msg_put_span(b, p->cidr[i]);
    msg_put_span(b, p->from);
    msg_put_span(b, p->user);
    msg_put_u8(b, p->tls_required);
    msg_put_u8(b, (uint8_t)p->nto);
    for (size_t i = 0; i < p->nto; i++)
        msg_put_span(b, p->to[i]);
    msg_put_span(b, p->signing);
    msg_put_u8(b, (uint8_t)p->npeople);
    for (size_t i = 0; i < p->npeople; i++) {
        msg_put_span(b, p->people[i].who);
        msg_put_span(b, p->people[i].name);
    }
}

static int get_people(struct msg_in *m, struct wire_tell_place *p)
{
    p->signing = msg_get_span(m, TELL_SECRET_MAX);
    size_t n = msg_get_u8(m);
    if (m->bad || n > TELL_PEOPLE_MAX)
        return -1;
    for (p->npeople = 0; p->npeople < n; p->npeople++) {
        p->people[p->npeople].who = msg_get_span(m, TELL_WHO_MAX);
        p->people[p->npeople].name = msg_get_span(m, TELL_WHO_MAX);
    }
    return m->bad ? -1 : 0;
}

int wire_get_tell_place(struct msg_in *m, struct wire_tell_place *p)
{
    p->name = msg_get_span(m, TELL_NAME_MAX);
    uint8_t kind = msg_get_u8(m);
    msg_get_digest(m, &p->of);
    p->url = msg_get_span(m, TELL_URL_MAX);
    p->secret = msg_get_span(m, TELL_SECRET_MAX);
    p->ca_pem = msg_get_span(m, TELL_CA_MAX);
    size_t n = msg_get_u8(m);
    if (m->bad || n > sizeof(p->cidr) / sizeof(p->cidr[0]) || kind == TELL_NO_KIND || kind >= TELL_KINDS)
        return -1;
    p->kind = (enum tell_kind)kind;
    for (p->ncidrs = 0; p->ncidrs < n; p->ncidrs++)
        p->cidr[p->ncidrs] = msg_get_span(m, 64);
    p->from = msg_get_span(m, TELL_ADDRESS_MAX);
    p->user = msg_get_span(m, TELL_ADDRESS_MAX);
    p->tls_required = msg_get_bool(m);
    n = msg_get_u8(m);
    if (m->bad || n > TELL_TO_MAX)
        return -1;
    for (p->nto = 0; p->nto < n; p->nto++)
        p->to[p->nto] = msg_get_span(m, TELL_ADDRESS_MAX);
    return get_people(m, p);
}

static uint16_t port_of(struct span scheme)
{
    return span_eq(scheme, SPAN("https"))   ? 443
           : span_eq(scheme, SPAN("http"))  ? 80
           : span_eq(scheme, SPAN("smtp"))  ? 25
           : span_eq(scheme, SPAN("smtps")) ? 465
                                            : 0;
}

static bool host_ok(struct span host)
{
    for (size_t i = 0; i < host.n; i++) {
        uint8_t c = host.p[i];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && c != '-' && c != '.')
            return false;
    }
    return host.n > 0 && host.n <= 253;
}

/* HOST or HOST:PORT. An address of IPv6 has no name that the resolver and libcurl both take. */
static int authority(struct span a, struct tell_url *out)
{
    uint64_t port = out->port;
    size_t end = span_index(a, ':');
    out->host = span_first(a, end);
    struct span rest = span_from(a, end);
    if (rest.n > 0 && (span_u64(span_from(rest, 1), 65535, &port) != 0 || port == 0))
        return -1;
    out->port = (uint16_t)port;
    return host_ok(out->host) ? 0 : -1;
}

int tell_url_parse(struct span url, struct tell_url *out)
{
    size_t colon = span_index(url, ':');
    *out = (struct tell_url){.scheme = span_first(url, colon)};
    out->port = port_of(out->scheme);
    if (out->port == 0 || url.n > TELL_URL_MAX || !span_starts(span_from(url, colon), SPAN("://")))
        return -1;
    struct span rest = span_from(url, colon + 3);
    for (size_t i = 0; i < rest.n; i++)
        if (rest.p[i] <= 0x20 || rest.p[i] >= 0x7f || memchr("\"\\<>^`{|}#", rest.p[i], 10) != NULL)
            return -1;
    size_t slash = span_index(rest, '/');
    struct span a = span_first(rest, slash);
    bool mail = out->scheme.p[0] == 's';
    return (mail && slash < rest.n) ? -1 : authority(a, out);
}

bool tell_url_is_loopback(const struct tell_url *u)
{
    struct span rest = u->host, part;
    uint64_t v;
    if (span_eq(u->host, SPAN("localhost")))
        return true;
    if (!span_starts(u->host, SPAN("127."))) /* 127.example.com is a name */
        return false;
    for (int i = 0; i < 4; i++) {
        bool dot = span_cut(rest, '.', &part, &rest);
        if (dot != (i < 3) || span_u64(part, 255, &v) != 0)
            return false;
    }
    return true;
}

static bool slack_id_ok(struct span id, const char *kinds)
{
    for (size_t i = 0; i < id.n; i++)
        if (!(id.p[i] >= '0' && id.p[i] <= '9') && !(id.p[i] >= 'A' && id.p[i] <= 'Z'))
            return false;
    return id.n >= 2 && id.n <= 20 && (id.p[0] == kinds[0] || id.p[0] == kinds[1]);
}

bool tell_slack_who_ok(struct span who)
{
    struct span team, user;
    return span_cut(who, '/', &team, &user) && slack_id_ok(team, "TE") && slack_id_ok(user, "UW");
}

bool tell_address_ok(struct span a)
{
    struct span local, domain;
    if (a.n > TELL_ADDRESS_MAX || !span_cut(a, '@', &local, &domain) || local.n == 0 || local.n > 64)
        return false;
    for (size_t i = 0; i < local.n; i++) {
        uint8_t c = local.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!word && memchr("._+-=", c, 5) == NULL)
            return false;
    }
    return host_ok(domain) && domain.p[0] != '.' && domain.p[0] != '-';
}
