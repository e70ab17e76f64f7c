#include "broker/models/shorten.h"

enum { MESSAGE_PART = 4, TEXT_PART = 16 }; /* of what may be told: a message begins no text behind so much; a text */

/* It has nothing but results of the one before it, or that among other things. */
static bool has_results(const struct message *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->block[i].kind == BLOCK_RESULT)
            return true;
    return false;
}

size_t shorten_cut(const struct message *m, const size_t *bytes, size_t n, size_t keep)
{
    size_t cut = n, sum = 0, all = 0;
    for (size_t i = 0; i < n; i++)
        all += bytes[i];
    if (all <= keep)
        return 0;
    for (size_t i = n; i > 1; i--) {
        sum += bytes[i - 1];
        if (has_results(&m[i - 1]))
            continue;
        if (cut < n && sum > keep)
            break;
        cut = i - 1;
    }
    return cut < n ? cut : 0;
}

void shorten_quote(struct dynbuf *b, struct span text)
{
    while (text.n > 0) {
        size_t n = 0;
        while (n < text.n && text.p[n] != '\n' && text.p[n] != '\r')
            n++;
        (void)dynbuf_add(b, SPAN("> "));
        (void)dynbuf_add(b, span_first(text, n));
        (void)dynbuf_add_byte(b, '\n');
        text = span_from(text, n < text.n ? n + 1 : n);
    }
}

/* The first bytes of it, to where a character ends. */
static void tell_text(struct dynbuf *b, struct span text, size_t most)
{
    struct span part = span_first(text, most);
    while (part.n < text.n && part.n > 0 && (text.p[part.n] & 0xc0) == 0x80)
        part.n--;
    shorten_quote(b, part);
    if (part.n < text.n)
        (void)dynbuf_addf(b, "[%zu of %zu bytes are shown]\n", part.n, text.n);
}

static void tell_block(struct dynbuf *b, const char *who, const struct block *k, size_t most)
{
    switch (k->kind) {
    case BLOCK_TEXT:
        (void)dynbuf_addf(b, "%s:\n", who);
        tell_text(b, k->text, most);
        break;
    case BLOCK_CALL:
        (void)dynbuf_addf(b, "The model calls %.*s:\n", SPAN_FMT(span_first(k->name, TOOL_NAME_MAX)));
        tell_text(b, k->json, most);
        break;
    case BLOCK_RESULT:
        (void)dynbuf_addf(b, "%s\n", k->failed ? "The call failed, and its result:" : "The call's result:");
        tell_text(b, k->text, most);
        break;
    case BLOCK_IMAGE: (void)dynbuf_add(b, SPAN("The person shows an image.\n")); break;
    case BLOCK_OPAQUE: /* nobody but its provider reads it */
    case BLOCK_NONE:
    default: break;
    }
}

static void tell(struct dynbuf *b, const struct message *m, bool person, size_t most)
{
    const char *who = m->of == MESSAGE_MODEL ? "The model" : person ? "The person" : "The model is told";
    size_t from = b->n, i = 0;
    for (; i < m->n && b->n - from < most / MESSAGE_PART; i++)
        tell_block(b, who, &m->block[i], most / TEXT_PART);
    if (i < m->n)
        (void)dynbuf_addf(b, "[%zu more parts of this message are left out]\n", m->n - i);
}

size_t shorten_tell(struct dynbuf *b, const struct message *m, const bool *person, size_t n, size_t most)
{
    size_t from = b->n, told = 0, end = b->n;
    for (size_t i = 0; i < n && dynbuf_ok(b); i++) {
        tell(b, &m[i], person[i], most);
        if (i + 1 < n && has_results(&m[i + 1]))
            continue;
        if (told > 0 && b->n - from > most)
            break;
        told = i + 1;
        end = b->n;
    }
    if (dynbuf_ok(b))
        b->n = end;
    return told;
}
