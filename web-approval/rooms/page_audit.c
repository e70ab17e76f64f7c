/* The record of what happened, the newest first, and whether it holds: the hashes of what is shown are made again,
 * and the last signature over it is checked. */
#include <string.h>

#include "common/control/audit_words.h"
#include "common/crypto/audit_head.h"
#include "web-approval/rooms/rooms.h"
#include "web-approval/route.h"

enum { RECORDS = 60, WORDS_MAX = 64 * 1024 };

struct record {
    uint64_t seq, time_ms;
    struct span json, hash, key, signature;
};

struct stretch {
    struct record r[RECORDS + 1]; /* [0]: the one before, of which only the hash is wanted */
    size_t n;
    uint64_t after; /* the sequence number before r[0] */
    struct arena *a;
};

/* What is found of a stretch. */
struct found {
    uint64_t broken;    /* at this record; 0: it holds */
    uint64_t signed_to; /* by this gateway's key, within the stretch; 0: nothing of it */
    bool other_key;
};

static int take(void *ctx, const struct audit_row *r)
{
    struct stretch *s = ctx;

    if (s->n <= RECORDS)
        s->r[s->n++] = (struct record){r->seq, r->time_ms, r->json, r->hash, r->key, r->signature};
    return 0;
}

static bool follows(const struct digest *before, const struct record *r, struct digest *is)
{
    struct digest_ctx *d = digest_begin();

    digest_add(d, span_of(before->b, DIGEST_BYTES));
    digest_add(d, r->json);
    digest_end(d, is);
    return span_eq(r->hash, span_of(is->b, DIGEST_BYTES));
}

static void signature(const struct record *r, const struct digest *hash, const char *key, struct found *f)
{
    char hex[2 * AUDIT_KEY + 1];

    if (r->signature.n == 0)
        return;
    if (r->key.n != AUDIT_KEY || r->signature.n != AUDIT_SIGNATURE ||
        !audit_head_signed(r->seq, hash, r->key.p, r->signature.p)) {
        f->broken = r->seq;
        return;
    }
    hex_text(r->key, hex);
    if (strcmp(hex, key) == 0)
        f->signed_to = r->seq;
    else
        f->other_key = true;
}

/* from: the first that is looked at; before it the one whose hash it is built on, or, for the first of all, zeros. */
static struct found check(const struct stretch *s, size_t from, const char *key)
{
    struct found f = {0};
    struct digest hash = {{0}};

    if (from && s->r[0].hash.n == DIGEST_BYTES)
        memcpy(hash.b, s->r[0].hash.p, DIGEST_BYTES);
    for (size_t i = from; i < s->n && !f.broken; i++) {
        uint64_t before = i ? s->r[i - 1].seq : 0;
        if (s->r[i].seq != before + 1 || !follows(&hash, &s->r[i], &hash))
            f.broken = s->r[i].seq;
        else
            signature(&s->r[i], &hash, key, &f);
    }
    return f;
}

static void state(struct exchange *x, const struct stretch *s, size_t from, uint64_t head, uint64_t signed_head)
{
    struct found f = check(s, from, x->desk->audit_key);
    unsigned long long first = s->r[from].seq, last = s->r[s->n - 1].seq;

    room_section(x, "state", "Does it hold?");
    PUT(x, "<p class=\"verdict\">");
    if (f.broken) {
        room_state(x, false, "broken");
        (void)dynbuf_addf(&x->out, " at record %llu: it is not what was written down.</p>\n",
                          (unsigned long long)f.broken);
    } else {
        room_state(x, true, "unbroken");
        (void)dynbuf_addf(&x->out, " records %llu to %llu, looked at now.</p>\n", first, last);
    }
    PUT(x, "<dl class=\"pairs\">\n");
    (void)dynbuf_addf(&x->out, "<dt>Records</dt><dd>%llu</dd>\n<dt>Signed</dt><dd>", (unsigned long long)head);
    if (signed_head)
        (void)dynbuf_addf(&x->out, "up to %llu", (unsigned long long)signed_head);
    else
        PUT(x, "nothing yet");
    if (f.signed_to)
        (void)dynbuf_addf(&x->out, "; the signature over %llu was checked here", (unsigned long long)f.signed_to);
    if (f.other_key)
        PUT(x, "; of these, something is signed with another key than this gateway's");
    PUT(x, "</dd>\n<dt>Key</dt><dd class=\"mono\">");
    show_own(&x->out, x->desk->audit_key[0] ? x->desk->audit_key : "not known yet");
    PUT(x, "</dd>\n</dl>\n<p class=\"hint\">Of all of it, from the first record on, <code>countersign audit "
           "verify</code> "
           "says so; against a head that was kept elsewhere, it sees a tail that was cut.</p>\n");
    room_section_end(x);
}

static void record(struct exchange *x, const struct record *r)
{
    const struct json *json = json_parse(r->json, &x->arena);
    struct span ticket = json_text(json, SPAN("ticket"));
    struct dynbuf words, target;

    dynbuf_init(&words, WORDS_MAX);
    dynbuf_init(&target, WORDS_MAX);
    audit_words(json, &words);
    audit_target(json, &target);
    (void)dynbuf_addf(&x->out, "<tr><td>%llu</td>", (unsigned long long)r->seq);
    room_cell(x, NULL);
    show_time(&x->out, r->time_ms);
    PUT(x, "</td>");
    room_cell_text(x, NULL, json_text(json, SPAN("sandbox")));
    room_cell(x, NULL);
    show_cut(&x->out, dynbuf_span(&words), ROOM_TEXT);
    if (ticket.n) {
        PUT(x, " <a class=\"mono\" href=\"/tickets/");
        show_text(&x->out, ticket);
        PUT(x, "\">open</a>");
    }
    PUT(x, "</td><td class=\"mono\">");
    show_cut(&x->out, dynbuf_span(&target), ROOM_TEXT);
    PUT(x, "</td></tr>\n");
    dynbuf_free(&words);
    dynbuf_free(&target);
}

static void records(struct exchange *x, const struct stretch *s, size_t from, uint64_t head)
{
    static const char *const heads[] = {"Record", "When", "Sandbox", "What", "To"};

    room_section(x, "records", "Records");
    room_table(x, "Records of the audit", heads, sizeof heads / sizeof heads[0]);
    for (size_t i = s->n; i > from; i--)
        record(x, &s->r[i - 1]);
    room_table_end(x);
    PUT(x, "<p class=\"pages\">");
    if (s->r[s->n - 1].seq < head)
        PUT(x, "<a class=\"button\" href=\"/audit\">Newest</a> ");
    if (s->r[from].seq > 1)
        (void)dynbuf_addf(&x->out, "<a class=\"button\" href=\"/audit?before=%llu\">Older</a>",
                          (unsigned long long)s->r[from].seq);
    PUT(x, "</p>\n");
    room_section_end(x);
}

void page_audit(struct exchange *x)
{
    uint64_t head, signed_head, before = 0;
    struct stretch *s = arena_alloc(&x->arena, sizeof *s);
    struct err e;

    if (api_query_number(x, "before", INT64_MAX, &before) != 0)
        return;
    if (!s || desk_store_head(x->desk->store, &head, &e) != 0 ||
        desk_store_signed(x->desk->store, &signed_head, &e) != 0) {
        page_problem(x, 503, "Not possible now", s ? e.text : "There is no memory for this page.");
        return;
    }
    uint64_t last = before && before <= head ? before - 1 : head, first = last > RECORDS ? last - RECORDS : 0;
    *s = (struct stretch){.after = first ? first - 1 : 0};
    size_t from = first ? 1 : 0;
    if (desk_store_audit(x->desk->store, s->after, last - s->after, false, &x->arena, take, s, &e) != 0) {
        reply_unable(x, &e);
        return;
    }
    room_begin(x, "audit", "Audit", "What was asked, decided and sent, in the order in which it was written down.");
    if (s->n <= from) {
        room_empty(x, "Nothing is written down yet.", "The first record comes with the first start.");
    } else {
        state(x, s, from, head, signed_head);
        records(x, s, from, head);
    }
    page_end(x);
}
