#include "proxy/fetcher/wire_fetch.h"

enum { KEY_MAX = 512 /* a name of the policy's, which has at most 256 bytes, behind a word of ours */ };

void wire_put_fetch(struct dynbuf *b, const struct wire_fetch *f)
{
    msg_put_u8(b, f->kind);
    msg_put_u64(b, f->timeout_ms);
    wire_put_upstream(b, &f->to);
    msg_put_u8(b, (uint8_t)f->nhosts);
    for (size_t i = 0; i < f->nhosts; i++)
        wire_put_upstream(b, &f->host[i]);
    msg_put_u16(b, (uint16_t)f->nsettings);
    for (size_t i = 0; i < f->nsettings; i++) {
        msg_put_span(b, f->setting[i].key);
        msg_put_span(b, f->setting[i].value);
    }
    msg_put_span(b, f->input);
}

int wire_get_fetch(struct msg_in *m, struct wire_fetch *f)
{
    f->kind = msg_get_u8(m);
    f->timeout_ms = msg_get_u64(m);
    int bad = wire_get_upstream(m, &f->to);
    size_t nhosts = msg_get_u8(m);
    for (f->nhosts = 0; !bad && nhosts <= FETCH_HOSTS_MAX && f->nhosts < nhosts; f->nhosts++)
        bad = wire_get_upstream(m, &f->host[f->nhosts]);
    size_t n = msg_get_u16(m);
    f->nsettings = 0;
    if (bad || m->bad || nhosts > FETCH_HOSTS_MAX || n > FETCH_SETTINGS_MAX || f->timeout_ms == 0 ||
        f->timeout_ms > FETCH_TIMEOUT_MAX_MS)
        return -1;
    for (; f->nsettings < n; f->nsettings++) {
        f->setting[f->nsettings].key = msg_get_span(m, KEY_MAX);
        f->setting[f->nsettings].value = msg_get_span(m, FETCH_SETTING_MAX);
    }
    f->input = msg_get_span(m, FETCH_INPUT_MAX);
    return m->bad || (f->input.n > 0) != fetch_is_gate(f->kind) ? -1 : 0;
}

const struct wire_upstream *wire_place(const struct wire_fetch *f, size_t i)
{
    if (f->to.host.n > 0)
        return i == 0 ? &f->to : NULL;
    return i < f->nhosts ? &f->host[i] : NULL;
}

struct span wire_setting(const struct wire_fetch *f, struct span key, size_t i)
{
    for (size_t k = 0; k < f->nsettings; k++)
        if (span_eq(f->setting[k].key, key) && i-- == 0)
            return f->setting[k].value;
    return SPAN_NONE;
}

uint64_t wire_setting_u64(const struct wire_fetch *f, struct span key, uint64_t otherwise)
{
    uint64_t v;
    struct span text = wire_setting(f, key, 0);
    return text.n && span_u64(text, UINT64_MAX, &v) == 0 ? v : otherwise;
}

void wire_put_fetched(struct dynbuf *b, const struct wire_fetched *f)
{
    msg_put_u8(b, f->ok);
    msg_put_span(b, f->value);
    msg_put_u64(b, f->lifetime_ms);
    msg_put_span(b, f->keep);
    msg_put_u8(b, f->busy);
    msg_put_span(b, f->why);
}

int wire_get_fetched(struct msg_in *m, struct wire_fetched *f)
{
    f->ok = msg_get_bool(m);
    f->value = msg_get_span(m, FETCH_VALUE_MAX);
    f->lifetime_ms = msg_get_u64(m);
    f->keep = msg_get_span(m, FETCH_VALUE_MAX);
    f->busy = msg_get_bool(m);
    f->why = msg_get_span(m, FETCH_WHY_MAX);
    return m->bad || (f->ok && f->busy) || f->ok != (f->value.n > 0) || f->ok == (f->why.n > 0) ? -1 : 0;
}
