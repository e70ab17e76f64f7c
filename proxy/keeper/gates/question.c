#include "proxy/keeper/gates/question.h"

#include <stdio.h>

#include "common/arena.h"
#include "common/msg.h"
#include "proxy/keeper/sources/asked.h"
#include "proxy/keeper/tell/tell.h"
#include "proxy/keeper/value.h"

enum { ARENA_MAX = 1024 * 1024, ID_MAX = 64, HASH_SHOWN = 8 };

/* What belongs to one question, until it is written. */
struct asking {
    struct wire_fetch ask;
    struct arena a;
    struct dynbuf input, signature;
    struct secret *rendered; /* as it stands in its field */
    char id[ID_MAX], stamp[24], field[256];
};

static void put(struct wire_fetch *w, const char *key, struct span value)
{
    if (w->nsettings < FETCH_SETTINGS_MAX)
        w->setting[w->nsettings++] = (struct wire_setting){span_str(key), value};
}

/* The end of its input, with the body or without: what is not to be shown is not there, and is said not to be. */
static int put_input(const struct gate *g, const struct gate_shown *s, struct dynbuf *out)
{
    bool with = g->body && s->body.n > 0;
    (void)dynbuf_add(out, s->input);
    if (with) {
        (void)dynbuf_add(out, SPAN(",\"base64\":\""));
        (void)dynbuf_add(out, s->body);
        (void)dynbuf_add(out, SPAN("\""));
    }
    bool complete = s->complete && (with || s->body.n == 0);
    (void)dynbuf_add(out, complete ? SPAN(",\"complete\":true}}") : SPAN(",\"complete\":false}}"));
    return dynbuf_ok(out) ? 0 : -1;
}

static void as_program(struct keeper *k, const struct gate *g, struct asking *x)
{
    x->ask.kind = FETCH_GATE;
    for (size_t i = 0; i < g->words; i++)
        put(&x->ask, "argv", policy_gate_word(k->policy, g, i));
}

/* The id is the same however often it could not be sent: the receiver sees a second one for what it is. */
static int as_webhook(struct keeper *k, const struct gate *g, const struct gate_shown *s, struct asking *x,
                      struct secret **secret, struct err *e)
{
    char ticket[ID_TEXT + 1], hash[2 * HASH_SHOWN + 1];
    uint64_t seconds = loop_wall(k->loop) / 1000;
    if ((*secret = vault_get(k->keep.vault, g->secret)) == NULL)
        return err_set(e, "there is no stored secret %.*s; `countersign secret set` puts it there",
                       SPAN_FMT(g->secret));
    id_text(s->ticket, ticket);
    hex_text(span_of(s->of->b, HASH_SHOWN), hash);
    (void)snprintf(x->id, sizeof(x->id), "gate_%s_%s", ticket, hash);
    (void)snprintf(x->stamp, sizeof(x->stamp), "%llu", (unsigned long long)seconds);
    if (tell_sign(secret_bytes(*secret), span_str(x->id), seconds, dynbuf_span(&x->input), &x->signature, e) != 0)
        return -1;
    x->ask.kind = FETCH_GATE_HOOK;
    put(&x->ask, "url", g->url);
    put(&x->ask, "field.Content-Type", SPAN("application/json"));
    put(&x->ask, "field.webhook-id", span_str(x->id));
    put(&x->ask, "field.webhook-timestamp", span_str(x->stamp));
    put(&x->ask, "field.webhook-signature", dynbuf_span(&x->signature));
    if (asked_url(k->policy, g->url, &x->a, &x->ask.to, e) != 0)
        return -1;
    vault_use(k->keep.vault, g->secret, loop_wall(k->loop));
    return 0;
}

static struct secret *credential_value(struct keeper *k, const struct credential *c, struct err *e)
{
    uint64_t wait = 0;
    if (policy_source_is_asked(c->source)) {
        enum fetch_found found = fetch_need(k->fetches, c, 0, &wait, e);
        if (found == FETCH_LATER)
            err_set(e, "its credential is being fetched");
        if (found != FETCH_HERE)
            return NULL;
    }
    return sources_value(k->sources, c, e);
}

static bool may_go(const struct keeper *k, const struct gate *g)
{
    struct span rest = span_from(g->url, sizeof("https://") - 1);
    struct span path = span_from(rest, span_index(rest, '/'));
    return policy_credential_may_go(k->policy, (size_t)g->credential, SPAN("https"), g->host, g->port,
                                    path.n > 0 ? path : SPAN("/"));
}

/* Where the data ends, which whoever wrote it cannot know. */
static int put_fence(struct asking *x, struct err *e)
{
    struct id fence;
    if (id_new(&fence) != 0)
        return err_set(e, "there is no randomness");
    id_text(&fence, x->id);
    put(&x->ask, "fence", span_str(x->id));
    return 0;
}

static int as_model(struct keeper *k, const struct gate *g, struct asking *x, struct secret **secret, struct err *e)
{
    struct credential c;
    if (g->credential < 0 || !policy_credential(k->policy, (size_t)g->credential, &c) || !may_go(k, g) ||
        c.sign != SIGN_NONE || c.slot != SLOT_HEADER || c.certificate)
        return err_set(e, "its credential may not go there, or not into a field");
    if ((*secret = credential_value(k, &c, e)) == NULL)
        return -1;
    struct span name = value_header(&c);
    if ((x->rendered = value_render(&c, secret_bytes(*secret), e)) == NULL || put_fence(x, e) != 0)
        return -1;
    int n = snprintf(x->field, sizeof(x->field), "field.%.*s", SPAN_FMT(name));
    if (n < 0 || (size_t)n >= sizeof(x->field))
        return err_set(e, "the name of its field is too long");
    x->ask.kind = FETCH_GATE_MODEL;
    put(&x->ask, "url", g->url);
    put(&x->ask, "api", g->api == GATE_ANTHROPIC ? SPAN("anthropic") : SPAN("chat"));
    put(&x->ask, "model", g->model);
    if (g->instructions.n > 0)
        put(&x->ask, "instructions", g->instructions);
    put(&x->ask, "field.Content-Type", SPAN("application/json"));
    if (g->api == GATE_ANTHROPIC)
        put(&x->ask, "field.anthropic-version", SPAN("2023-06-01"));
    put(&x->ask, x->field, secret_bytes(x->rendered));
    put(&x->ask, "secret", secret_bytes(*secret)); /* which it must not say, however long it talks */
    if (asked_url(k->policy, g->url, &x->a, &x->ask.to, e) != 0)
        return -1;
    if (c.source == SOURCE_STORE)
        vault_use(k->keep.vault, c.source_arg, loop_wall(k->loop));
    return 0;
}

static int make(struct keeper *k, const struct gate *g, const struct gate_shown *s, struct asking *x,
                struct secret **secret, struct err *e)
{
    if (g->kind == GATE_WEBHOOK)
        return as_webhook(k, g, s, x, secret, e);
    if (g->kind == GATE_MODEL)
        return as_model(k, g, x, secret, e);
    as_program(k, g, x);
    return 0;
}

int gate_question(struct keeper *k, const struct gate *g, const struct gate_shown *s, struct dynbuf *out,
                  struct secret **secret, bool *never, struct err *e)
{
    static struct asking x;
    int bad = -1;
    *never = false;
    x.ask = (struct wire_fetch){.timeout_ms = g->timeout_ms};
    arena_init(&x.a, ARENA_MAX);
    dynbuf_init(&x.input, FETCH_INPUT_MAX);
    dynbuf_init(&x.signature, 128);
    if (put_input(g, s, &x.input) != 0) {
        *never = true;
        err_set(e, "the request is too large to be shown to it");
        goto out;
    }
    x.ask.input = dynbuf_span(&x.input);
    if (make(k, g, s, &x, secret, e) != 0)
        goto out;
    wire_put_fetch(out, &x.ask);
    bad = dynbuf_ok(out) ? 0 : err_set(e, "the request, and whom to trust there, are too much to be told at once");
    *never = bad != 0;
out:
    secret_free(&x.rendered);
    dynbuf_wipe(&x.input);
    dynbuf_wipe(&x.signature);
    arena_free(&x.a);
    return bad;
}

/* ---- what comes back ---- */

enum { SECRET_LEAST = 8, SECRET_MOST = 8 * 1024 };

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

static bool has_hex(struct span words, struct span s)
{
    static const char digit[] = "0123456789abcdef";
    for (size_t at = 0; at + 2 * s.n <= words.n; at++) {
        size_t i = 0;
        while (i < 2 * s.n && lower(words.p[at + i]) == (uint8_t)digit[i % 2 ? s.p[i / 2] & 15 : s.p[i / 2] >> 4])
            i++;
        if (i == 2 * s.n)
            return true;
    }
    return false;
}

/* Of text that begins `skip` bytes before it: the letters that are of nothing else, in either alphabet. */
static bool has_base64(struct span words, struct span s, size_t skip)
{
    static char text[4 * ((SECRET_MOST + 2 + 2) / 3) + 1];
    static uint8_t bytes[SECRET_MOST + 2];
    memset(bytes, 0, skip);
    memcpy(bytes + skip, s.p, s.n);
    size_t from = skip == 0 ? 0 : skip + 1, n = (s.n + skip) / 3 * 4;
    (void)base64_encode(span_of(bytes, skip + s.n), text);
    bool found = n > from && span_find(words, span_of(text + from, n - from)) < words.n;
    for (size_t i = 0; i < n; i++)
        text[i] = text[i] == '+' ? '-' : text[i] == '/' ? '_' : text[i];
    found |= n > from && span_find(words, span_of(text + from, n - from)) < words.n;
    explicit_bzero(bytes, sizeof(bytes));
    explicit_bzero(text, sizeof(text));
    return found;
}

static bool has(struct span words, struct span s)
{
    if (s.n < SECRET_LEAST || s.n > SECRET_MOST)
        return false;
    bool found = span_find(words, s) < words.n || has_hex(words, s);
    for (size_t skip = 0; skip < 3; skip++)
        found |= has_base64(words, s, skip);
    return found;
}

bool gate_says_secret(struct span words, const struct secret *s)
{
    static const struct span mark = SPAN("whsec_");
    struct span all = s != NULL ? secret_bytes(s) : SPAN_NONE;
    return has(words, span_starts(all, mark) ? span_from(all, mark.n) : all);
}
