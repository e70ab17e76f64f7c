#include "proxy/wire.h"

#include "proxy/reach/reach.h"

#include <stdio.h>

#include "common/role/role.h"
#include "proxy/msgs.h"

/* common/role/role.c speaks these itself, and may not include what lies above it. */
_Static_assert((int)M_CONFIG == (int)ROLE_MSG_CONFIG && (int)M_READY == (int)ROLE_MSG_READY &&
                   (int)M_PEER == (int)ROLE_MSG_PEER && (int)M_STOP == (int)ROLE_MSG_STOP &&
                   (int)M_SYNC == (int)ROLE_MSG_SYNC && (int)M_LOG == (int)ROLE_MSG_LOG &&
                   (int)M_TRACE == (int)ROLE_MSG_TRACE,
               "a role and its parent agree on the first messages");

enum {
    NAME_MAX_BYTES = 256,
    CODE_MAX = 64,
    WHY_MAX = 1024,
    PEM_MAX = 64 * 1024,
    CRL_MAX = 128 * 1024,
    PIN_BYTES = 32,
    LISTENER_NAME_BYTES = 255
};

static void put_fields(struct dynbuf *b, const struct http_field *f, size_t n)
{
    msg_put_u16(b, (uint16_t)n);
    for (size_t i = 0; i < n; i++) {
        msg_put_span(b, f[i].name);
        msg_put_span(b, f[i].value);
    }
}

static void get_fields(struct msg_in *m, struct http_field *f, size_t *n, size_t most)
{
    size_t count = msg_get_u16(m);
    if (count > most)
        m->bad = true;
    for (*n = 0; !m->bad && *n < count; (*n)++) {
        f[*n].name = msg_get_span(m, HTTP_ANSWER_HEAD_MAX);
        f[*n].value = msg_get_span(m, HTTP_ANSWER_HEAD_MAX);
    }
}

static int ok(const struct msg_in *m)
{
    return m->bad ? -1 : 0;
}

void wire_copy_request(struct wire_request *to, const struct wire_request *from)
{
    memcpy(to, from, offsetof(struct wire_request, field) + from->nfields * sizeof(from->field[0]));
}

void wire_put_request(struct dynbuf *b, const struct wire_request *r)
{
    msg_put_span(b, r->scheme);
    msg_put_span(b, r->host);
    msg_put_u16(b, r->port);
    msg_put_span(b, r->method);
    msg_put_span(b, r->path);
    msg_put_span(b, r->query);
    msg_put_u8(b, r->has_query);
    put_fields(b, r->field, r->nfields);
}

int wire_get_request(struct msg_in *m, struct wire_request *r)
{
    r->scheme = msg_get_span(m, 5);
    r->host = msg_get_span(m, HTTP_HOST_MAX);
    r->port = msg_get_u16(m);
    r->method = msg_get_span(m, CODE_MAX);
    r->path = msg_get_span(m, 3 * HTTP_TARGET_MAX);
    r->query = msg_get_span(m, 3 * HTTP_TARGET_MAX);
    r->has_query = msg_get_bool(m);
    get_fields(m, r->field, &r->nfields, HTTP_FIELDS_MAX);
    if (r->port == 0 || r->host.n == 0 || r->method.n == 0 || r->path.n == 0 || r->path.p[0] != '/')
        m->bad = true;
    if (!span_eq(r->scheme, SPAN("https")) && !span_eq(r->scheme, SPAN("http")))
        m->bad = true;
    return ok(m);
}

void wire_put_answer(struct dynbuf *b, const struct wire_answer *a)
{
    msg_put_u16(b, a->status);
    msg_put_span(b, a->reason);
    msg_put_u8(b, (uint8_t)a->framing);
    msg_put_u64(b, a->length);
    put_fields(b, a->field, a->nfields);
}

int wire_get_answer(struct msg_in *m, struct wire_answer *a)
{
    a->status = msg_get_u16(m);
    a->reason = msg_get_span(m, HTTP_REASON_MAX);
    uint8_t framing = msg_get_u8(m);
    a->length = msg_get_u64(m);
    get_fields(m, a->field, &a->nfields, HTTP_ANSWER_FIELDS_MAX);
    if (a->status < 100 || a->status > HTTP_STATUS_MAX || framing > HTTP_CHUNKED)
        m->bad = true;
    a->framing = (enum http_framing)framing;
    return ok(m);
}

void wire_put_reply(struct dynbuf *b, const struct wire_reply *r)
{
    wire_put_answer(b, &r->head);
    msg_put_span(b, r->body);
    msg_put_u8(b, r->close);
}

int wire_get_reply(struct msg_in *m, struct wire_reply *r)
{
    if (wire_get_answer(m, &r->head) != 0)
        return -1;
    r->body = msg_get_span(m, BODY_INLINE_MAX);
    r->close = msg_get_bool(m);
    return ok(m);
}

void wire_put_upstream(struct dynbuf *b, const struct wire_upstream *u)
{
    msg_put_u32(b, u->number);
    msg_put_span(b, u->scheme);
    msg_put_span(b, u->host);
    msg_put_u16(b, u->port);
    msg_put_span(b, u->address);
    msg_put_span(b, u->ca_pem);
    msg_put_span(b, u->crl_pem);
    msg_put_u8(b, u->cleartext_credentials);
    msg_put_u8(b, u->has_secrets);
    msg_put_digest(b, &u->place);
    msg_put_u8(b, u->only_tls13);
    msg_put_u16(b, (uint16_t)u->npins);
    for (size_t i = 0; i < u->npins; i++)
        msg_put_span(b, u->pin[i]);
    msg_put_u16(b, (uint16_t)u->ncidrs);
    for (size_t i = 0; i < u->ncidrs; i++)
        msg_put_span(b, u->cidr[i]);
}

int wire_get_upstream(struct msg_in *m, struct wire_upstream *u)
{
    u->number = msg_get_u32(m);
    u->scheme = msg_get_span(m, 5);
    u->host = msg_get_span(m, HTTP_HOST_MAX);
    u->port = msg_get_u16(m);
    u->address = msg_get_span(m, CODE_MAX);
    u->ca_pem = msg_get_span(m, PEM_MAX);
    u->crl_pem = msg_get_span(m, CRL_MAX);
    u->cleartext_credentials = msg_get_bool(m);
    u->has_secrets = msg_get_bool(m);
    msg_get_digest(m, &u->place);
    u->only_tls13 = msg_get_bool(m);
    size_t n = msg_get_u16(m);
    if (n > sizeof(u->pin) / sizeof(u->pin[0]))
        m->bad = true;
    for (u->npins = 0; !m->bad && u->npins < n; u->npins++) {
        u->pin[u->npins] = msg_get_span(m, PIN_BYTES);
        m->bad |= u->pin[u->npins].n != PIN_BYTES;
    }
    n = msg_get_u16(m);
    if (n > sizeof(u->cidr) / sizeof(u->cidr[0]))
        m->bad = true;
    for (u->ncidrs = 0; !m->bad && u->ncidrs < n; u->ncidrs++)
        u->cidr[u->ncidrs] = msg_get_span(m, CODE_MAX);
    return ok(m);
}

void wire_put_forward(struct dynbuf *b, const struct wire_forward *f)
{
    msg_put_u32(b, f->upstream);
    msg_put_u8(b, f->repeatable);
    msg_put_u8(b, (uint8_t)f->release);
    msg_put_span(b, f->credential);
    msg_put_u8(b, (uint8_t)f->slot);
    msg_put_u32(b, f->slot_at);
    wire_put_request(b, &f->request);
    msg_put_u8(b, (uint8_t)f->body);
    msg_put_u8(b, f->metered);
    msg_put_span(b, f->reach);
    msg_put_span(b, f->swaps);
    msg_put_span(b, f->answer_id);
}

int wire_get_forward(struct msg_in *m, struct wire_forward *f)
{
    f->upstream = msg_get_u32(m);
    f->repeatable = msg_get_bool(m);
    uint8_t release = msg_get_u8(m);
    f->credential = msg_get_span(m, NAME_MAX_BYTES);
    uint8_t slot = msg_get_u8(m);
    f->slot_at = msg_get_u32(m);
    if (wire_get_request(m, &f->request) != 0)
        return -1;
    uint8_t body = msg_get_u8(m);
    f->metered = msg_get_bool(m);
    f->reach = msg_get_span(m, REACH_MAX);
    f->swaps = msg_get_span(m, WIRE_SWAPS_BYTES);
    f->answer_id = msg_get_span(m, RPC_ID_MAX);
    if (release > RELEASE_LIVE || slot >= SLOT_KINDS || body > BODY_FD)
        m->bad = true;
    f->release = (enum wire_release)release;
    f->slot = (enum slot_kind)slot;
    f->body = (enum wire_body)body;
    return ok(m);
}

void wire_put_listener(struct dynbuf *b, const struct wire_listener *l)
{
    msg_put_u8(b, (uint8_t)l->way);
    msg_put_u8(b, (uint8_t)l->identity);
    msg_put_span(b, l->sandbox);
    msg_put_u16(b, (uint16_t)l->nsources);
    for (size_t i = 0; i < l->nsources; i++) {
        msg_put_span(b, l->source[i].key);
        msg_put_span(b, l->source[i].sandbox);
    }
    msg_put_u16(b, (uint16_t)l->npeers);
    for (size_t i = 0; i < l->npeers; i++)
        msg_put_span(b, l->peer[i]);
    msg_put_u8(b, l->tls);
}

int wire_get_listener(struct msg_in *m, struct wire_listener *l)
{
    *l = (struct wire_listener){.way = WAY_NONE};
    l->way = (enum way)msg_get_u8(m); /* not in the initialiser: the order of its parts is the compiler's */
    l->identity = (enum listener_identity)msg_get_u8(m);
    l->sandbox = msg_get_span(m, LISTENER_NAME_BYTES);
    size_t n = msg_get_u16(m);
    if (n > LISTENER_SOURCES_MAX)
        m->bad = true;
    for (l->nsources = 0; !m->bad && l->nsources < n; l->nsources++) {
        l->source[l->nsources].key = msg_get_span(m, LISTENER_NAME_BYTES);
        l->source[l->nsources].sandbox = msg_get_span(m, LISTENER_NAME_BYTES);
    }
    n = msg_get_u16(m);
    if (n > LISTENER_PEERS_MAX)
        m->bad = true;
    for (l->npeers = 0; !m->bad && l->npeers < n; l->npeers++)
        l->peer[l->npeers] = msg_get_span(m, LISTENER_NAME_BYTES);
    l->tls = msg_get_bool(m);
    if (l->way < WAY_HTTP || l->way > WAY_CAPTURED || l->identity < IDENTITY_TOKEN ||
        l->identity > IDENTITY_CERTIFICATE)
        m->bad = true;
    return m->bad ? -1 : 0;
}

enum { CANONICAL_MAX = 3 * HTTP_TARGET_MAX };

void wire_put_sign(struct dynbuf *b, const struct wire_sign *s)
{
    msg_put_span(b, s->method);
    msg_put_span(b, s->path);
    msg_put_span(b, s->query);
    msg_put_span(b, s->payload);
    msg_put_u8(b, s->tell_payload);
    msg_put_u16(b, (uint16_t)s->nfields);
    for (size_t i = 0; i < s->nfields; i++) {
        msg_put_span(b, s->field[i].name);
        msg_put_span(b, s->field[i].value);
    }
    msg_put_span(b, s->chunks);
    msg_put_u8(b, s->trailer);
}

int wire_get_sign(struct msg_in *m, struct wire_sign *s)
{
    s->method = msg_get_span(m, HTTP_METHOD_MAX);
    s->path = msg_get_span(m, CANONICAL_MAX);
    s->query = msg_get_span(m, CANONICAL_MAX);
    s->payload = msg_get_span(m, BODY_INLINE_MAX);
    s->tell_payload = msg_get_bool(m);
    s->nfields = msg_get_u16(m);
    m->bad |= s->nfields > HTTP_FIELDS_MAX;
    for (size_t i = 0; !m->bad && i < s->nfields; i++) {
        s->field[i].name = msg_get_span(m, HTTP_HEAD_MAX);
        s->field[i].value = msg_get_span(m, HTTP_HEAD_MAX);
    }
    s->chunks = msg_get_span(m, (size_t)WIRE_CHUNKS_MAX * WIRE_CHUNK);
    s->trailer = msg_get_bool(m);
    m->bad |= s->method.n == 0 || s->path.n == 0 || s->chunks.n % WIRE_CHUNK != 0;
    m->bad |= s->trailer && s->chunks.n < (size_t)2 * WIRE_CHUNK;
    return m->bad ? -1 : 0;
}

enum { STAMP_MAX = 20, SCOPE_NAME_MAX = 128 };

void wire_put_signed(struct dynbuf *b, const struct wire_signed *s)
{
    msg_put_id(b, &s->lease);
    msg_put_u8(b, (uint8_t)s->format);
    msg_put_u8(b, (uint8_t)s->scheme);
    msg_put_span(b, s->stamp);
    msg_put_span(b, s->region);
    msg_put_span(b, s->service);
    msg_put_digest(b, &s->canonical);
    msg_put_span(b, s->signature);
    msg_put_span(b, s->chunks);
    msg_put_u8(b, s->trailer);
}

int wire_get_signed(struct msg_in *m, struct wire_signed *s)
{
    msg_get_id(m, &s->lease);
    uint8_t format = msg_get_u8(m), scheme = msg_get_u8(m);
    s->format = (enum lease_format)format;
    s->scheme = (enum sign_scheme)scheme;
    s->stamp = msg_get_span(m, STAMP_MAX);
    s->region = msg_get_span(m, SCOPE_NAME_MAX);
    s->service = msg_get_span(m, SCOPE_NAME_MAX);
    msg_get_digest(m, &s->canonical);
    s->signature = msg_get_span(m, WIRE_CHUNK_TEXT);
    s->chunks = msg_get_span(m, (size_t)WIRE_CHUNKS_MAX * WIRE_CHUNK_SAID);
    s->trailer = msg_get_bool(m);
    m->bad |= format >= LEASE_FORMAT_COUNT || scheme == SIGN_NONE || scheme >= SIGN_SCHEMES;
    m->bad |= s->signature.n != WIRE_CHUNK_TEXT || s->chunks.n % WIRE_CHUNK_SAID != 0;
    m->bad |= s->trailer && s->chunks.n < (size_t)2 * WIRE_CHUNK_SAID;
    return m->bad ? -1 : 0;
}

void wire_put_step(struct dynbuf *b, const struct wire_step *s)
{
    msg_put_u64(b, s->born);
    msg_put_u32(b, s->number);
}

int wire_get_step(struct msg_in *m, struct wire_step *s)
{
    s->born = msg_get_u64(m);
    s->number = msg_get_u32(m);
    return m->bad || (s->number == 0) != (s->born == 0) ? -1 : 0;
}

struct span wire_step_text(const struct wire_step *s, char to[WIRE_STEP_TEXT])
{
    int n = snprintf(to, WIRE_STEP_TEXT, "%llu.%u", (unsigned long long)s->born, (unsigned)s->number);
    return span_of(to, n > 0 ? (size_t)n : 0);
}

void wire_put_usage(struct dynbuf *b, const struct wire_usage *u)
{
    msg_put_u8(b, u->version);
    msg_put_u64(b, u->memory);
    msg_put_u64(b, u->peak);
    msg_put_u64(b, u->disk);
    msg_put_u64(b, u->pids);
    msg_put_u64(b, u->cpu_us);
}

int wire_get_usage(struct msg_in *m, struct wire_usage *u)
{
    u->version = msg_get_u8(m);
    u->memory = msg_get_u64(m);
    u->peak = msg_get_u64(m);
    u->disk = msg_get_u64(m);
    u->pids = msg_get_u64(m);
    u->cpu_us = msg_get_u64(m);
    return m->bad || u->version > 2 ? -1 : 0;
}
