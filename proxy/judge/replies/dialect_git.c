/* git shows a text/plain body of info/refs as "remote: ..." lines. Of a push that is
 * refused by status it shows nothing at all, so a push gets the answer of a server whose
 * hook said no: 200, the words on side band 2, "ng REF reason" for every ref
 * (gitprotocol-pack: report-status; gitprotocol-common: pkt-line). */
#include "proxy/judge/replies/dialect_rows.h"

enum {
    PKT_DATA_MAX = 990, /* fits the 1000 bytes of the oldest side band */
    PUSH_BODY_MAX = 200 * 1024,
    REF_MAX = 512,
    NG_REASON_MAX = 160
};

static void pkt(struct dynbuf *b, int band, struct span data)
{
    dynbuf_addf(b, "%04zx", data.n + 4 + (band ? 1 : 0));
    if (band)
        dynbuf_add_byte(b, (uint8_t)band);
    dynbuf_add(b, data);
}

/* Any number of bytes on a side band, cut into packets. */
static void band(struct dynbuf *b, int number, struct span data)
{
    while (data.n) {
        struct span piece = span_first(data, PKT_DATA_MAX);
        pkt(b, number, piece);
        data = span_from(data, piece.n);
    }
}

static bool ref_is_plain(struct span name)
{
    if (name.n == 0 || name.n > REF_MAX)
        return false;
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] <= 0x20 || name.p[i] == 0x7f)
            return false;
    return true;
}

/* unpack ok, then no to every ref; refs past the cap are left out and git says so of each. */
static void report(const struct git_push *push, const struct refusal *r, struct arena *a, struct dynbuf *out)
{
    struct span why = dialect_one_line(r->title, NG_REASON_MAX, a);
    struct dynbuf line;
    dynbuf_init(&line, 2 * REF_MAX);
    pkt(out, 0, SPAN("unpack ok\n"));
    for (size_t i = 0; i < push->nrefs && out->n < PUSH_BODY_MAX / 2; i++) {
        if (!ref_is_plain(push->refs[i].name))
            continue;
        dynbuf_reset(&line);
        dynbuf_add(&line, SPAN("ng "));
        dynbuf_add(&line, push->refs[i].name);
        dynbuf_add_byte(&line, ' ');
        dynbuf_add(&line, why.n ? why : SPAN("refused"));
        dynbuf_add_byte(&line, '\n');
        pkt(out, 0, dynbuf_span(&line));
    }
    dynbuf_add(out, SPAN("0000"));
    dynbuf_free(&line);
}

static void push_body(const struct git_push *push, const struct refusal *r, struct arena *a, struct dynbuf *out)
{
    struct dynbuf text;
    dynbuf_init(&text, PUSH_BODY_MAX);
    if (push->side_band) {
        dialect_lines(r, &text);
        struct span rest = dynbuf_span(&text), one;
        while (rest.n) { /* a packet a line: git prefixes each with "remote: " */
            one = span_first(rest, span_index(rest, '\n') + 1);
            band(out, 2, one);
            rest = span_from(rest, one.n);
        }
        dynbuf_reset(&text);
    }
    report(push, r, a, &text);
    if (push->side_band) {
        band(out, 1, dynbuf_span(&text));
        dynbuf_add(out, SPAN("0000"));
    } else {
        dynbuf_add(out, dynbuf_span(&text));
    }
    if (!dynbuf_ok(&text))
        out->failed = true;
    dynbuf_free(&text);
}

int dialect_git_push(const struct dialect_client *c, const struct refusal *r, struct arena *a, struct wire_reply *out)
{
    const struct git_push *push = c->push;
    struct dynbuf b;
    /* A client that can be told nothing in a 200 must not take one for a success; of a 401 it acts on the status. */
    if (push == NULL || push->nrefs == 0 || !(push->report_status || push->report_status_v2) || r->challenge.n)
        return dialect_text(c, r, a, out);
    dynbuf_init(&b, PUSH_BODY_MAX + 64 * 1024);
    push_body(push, r, a, &b);
    out->head.status = 200;
    dialect_field(&out->head, SPAN("Content-Type"), SPAN("application/x-git-receive-pack-result"));
    return dialect_keep(&b, a, &out->body);
}
