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

/* Bytes of what ends a line there, for whoever shows it: of ASCII, or U+0085, U+2028, U+2029; 0: nothing does. */
static size_t line_end(struct span text)
{
    unsigned char c = (unsigned char)text.p[0];
    if (c >= '\n' && c <= '\r')
        return 1;
    if (span_starts(text, SPAN("\xc2\x85")))
        return 2;
    return span_starts(text, SPAN("\xe2\x80\xa8")) || span_starts(text, SPAN("\xe2\x80\xa9")) ? 3 : 0;
}

void shorten_quote(struct dynbuf *b, struct span text)
{
    while (text.n > 0) {
        size_t n = 0, end = 0;
        while (n < text.n && (end = line_end(span_from(text, n))) == 0)
            n++;
        (void)dynbuf_add(b, SPAN("> "));
        (void)dynbuf_add(b, span_first(text, n));
        (void)dynbuf_add_byte(b, '\n');
        text = span_from(text, n + end);
    }
}

/* Does a character go on there? */
static bool is_inside(struct span text, size_t at)
{
    return at > 0 && at < text.n && (text.p[at] & 0xc0) == 0x80;
}

/* So many bytes are left out, behind *head and before *tail. */
static size_t cut_ends(struct span text, size_t most, struct span *head, struct span *tail)
{
    size_t first = most / 2, last = text.n - most / 2;
    while (is_inside(text, first))
        first--;
    while (is_inside(text, last))
        last++;
    *head = span_first(text, first);
    *tail = span_from(text, last);
    return last - first;
}

void shorten_quote_ends(struct dynbuf *b, struct span text, size_t most)
{
    struct span head = text, tail = SPAN_NONE;
    size_t out = text.n > most ? cut_ends(text, most, &head, &tail) : 0;
    shorten_quote(b, head);
    if (out > 0)
        (void)dynbuf_addf(b, "[%zu of %zu bytes are left out here]\n", out, text.n);
    shorten_quote(b, tail);
}

struct span shorten_ends(struct arena *a, struct span text, size_t most)
{
    struct span head, tail;
    if (text.n <= most)
        return text;
    size_t out = cut_ends(text, most, &head, &tail);
    struct dynbuf b;
    dynbuf_init(&b, text.n + 128);
    (void)dynbuf_add(&b, head);
    (void)dynbuf_addf(&b, "\n[%zu of %zu bytes are left out here]\n", out, text.n);
    (void)dynbuf_add(&b, tail);
    return arena_keep(a, &b);
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
