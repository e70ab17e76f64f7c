#include "common/runs/wire_run.h"

enum { NAME_MOST = 128, DIR_MOST = 4096, WHY_MOST = 256 };

void wire_words_of(struct wire_words *w, const struct span *word, size_t n, uint8_t until)
{
    struct digest_ctx *d = digest_begin();
    size_t room = RUN_BYTES_KEPT;

    *w = (struct wire_words){.all = n};
    for (size_t i = 0; i < n; i++) {
        struct span s = until ? span_first(word[i], span_index(word[i], until)) : word[i];
        struct span kept = span_first(s, w->n < RUN_WORDS_KEPT ? room : 0);
        digest_add_field(d, s);
        w->cut += s.n - kept.n;
        room -= kept.n;
        if (w->n < RUN_WORDS_KEPT && (kept.n > 0 || s.n == 0))
            w->word[w->n++] = kept;
    }
    digest_end(d, &w->digest);
}

static void put_words(struct dynbuf *b, const struct wire_words *w)
{
    msg_put_u16(b, (uint16_t)w->n);
    for (size_t i = 0; i < w->n; i++)
        msg_put_span(b, w->word[i]);
    msg_put_u64(b, w->all);
    msg_put_u64(b, w->cut);
    msg_put_digest(b, &w->digest);
}

static void get_words(struct msg_in *m, struct wire_words *w)
{
    w->n = msg_get_u16(m);
    m->bad |= w->n > RUN_WORDS_KEPT;
    for (size_t i = 0; i < w->n && !m->bad; i++)
        w->word[i] = msg_get_span(m, RUN_BYTES_KEPT);
    w->all = msg_get_u64(m);
    w->cut = msg_get_u64(m);
    msg_get_digest(m, &w->digest);
}

void wire_put_run(struct dynbuf *b, const struct wire_run *r)
{
    msg_put_span(b, r->sandbox);
    msg_put_span(b, r->image);
    msg_put_span(b, r->packages);
    msg_put_span(b, r->lane);
    msg_put_u64(b, r->generation);
    msg_put_u64(b, r->born);
    msg_put_u32(b, r->number);
    msg_put_span(b, r->dir);
    msg_put_span(b, r->user);
    msg_put_u8(b, r->input);
    msg_put_u8(b, r->detached);
    msg_put_u64(b, r->timeout_ms);
    put_words(b, &r->argv);
    put_words(b, &r->env);
}

int wire_get_run(struct msg_in *m, struct wire_run *r)
{
    r->sandbox = msg_get_span(m, NAME_MOST);
    r->image = msg_get_span(m, NAME_MOST);
    r->packages = msg_get_span(m, NAME_MOST);
    r->lane = msg_get_span(m, NAME_MOST);
    r->generation = msg_get_u64(m);
    r->born = msg_get_u64(m);
    r->number = msg_get_u32(m);
    r->dir = msg_get_span(m, DIR_MOST);
    r->user = msg_get_span(m, NAME_MOST);
    r->input = msg_get_u8(m);
    r->detached = msg_get_bool(m);
    r->timeout_ms = msg_get_u64(m);
    get_words(m, &r->argv);
    get_words(m, &r->env);
    return m->bad || r->sandbox.n == 0 || r->number == 0 ? -1 : 0;
}

void wire_put_run_end(struct dynbuf *b, const struct wire_run_end *e)
{
    msg_put_u8(b, e->how);
    msg_put_u8(b, e->code);
    msg_put_u64(b, e->user_us);
    msg_put_u64(b, e->system_us);
    msg_put_u64(b, e->memory_kib);
    for (int i = 0; i < 2; i++) {
        msg_put_u64(b, e->out[i].bytes);
        msg_put_digest(b, &e->out[i].digest);
    }
    msg_put_u64(b, e->cut);
    msg_put_span(b, span_first(e->why, WHY_MOST));
}

int wire_get_run_end(struct msg_in *m, struct wire_run_end *e)
{
    e->how = msg_get_u8(m);
    e->code = msg_get_u8(m);
    e->user_us = msg_get_u64(m);
    e->system_us = msg_get_u64(m);
    e->memory_kib = msg_get_u64(m);
    for (int i = 0; i < 2; i++) {
        e->out[i].bytes = msg_get_u64(m);
        msg_get_digest(m, &e->out[i].digest);
    }
    e->cut = msg_get_u64(m);
    e->why = msg_get_span(m, WHY_MOST);
    return m->bad ? -1 : 0;
}
