/* SCRUB. The upstream's answer: its head read and cleaned, its body searched (SCRUB.md). */
#include "proxy/carrier/exchange.h"

static bool credentialed(const struct exchange *x)
{
    return x->cred != NULL && x->cred->name.n > 0;
}

static bool looked_at(const struct exchange *x)
{
    return !scrub_is_empty(x->scrub.set);
}

static bool begins(struct span name, struct span prefix)
{
    return name.n >= prefix.n && span_ieq(span_first(name, prefix.n), prefix);
}

static bool is_one_of(struct span name, const struct span *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (span_ieq(name, list[i]))
            return true;
    return false;
}

/* Of an answer with tokens, what says what it is and for how long; another field may have a token that nobody named.
 */
static bool goes_with_tokens(struct span name)
{
    static const struct span names[] = {SPAN("content-type"), SPAN("cache-control"), SPAN("pragma"), SPAN("date"),
                                        SPAN("age"),          SPAN("expires"),       SPAN("vary")};
    return is_one_of(name, names, sizeof(names) / sizeof(names[0]));
}

/* Does not go to the client: hop by hop, what only the gateway may say, routes around it (C24), and beside a
 * credential what could be replayed or tells of the inside (D10, D27). */
static bool dropped(const struct exchange *x, const struct http_head *h, struct span name)
{
    if (http_is_framing(name) || http_is_hop_by_hop(h, name) || http_is_forwarding(name))
        return true;
    if (begins(name, SPAN("proxy-")) || begins(name, SPAN("countersign-")) || span_ieq(name, SPAN("alt-svc")))
        return true;
    if (x->swap == SWAP_DUE && !goes_with_tokens(name))
        return true;
    if (x->rpc.is && answer_is_digest(name))
        return true;
    if (h->status == 101 && begins(name, SPAN("sec-websocket-")) && !span_ieq(name, SPAN("sec-websocket-protocol")))
        return true;
    return credentialed(x) && (begins(name, SPAN("set-cookie")) || begins(name, SPAN("x-proxy-")) ||
                               span_ieq(name, SPAN("server-timing")));
}

bool answer_is_digest(struct span name)
{
    static const struct span names[] = {SPAN("content-digest"), SPAN("repr-digest"), SPAN("digest"),
                                        SPAN("content-md5"),    SPAN("etag"),        SPAN("signature"),
                                        SPAN("x-goog-hash"),    SPAN("x-amz-crc32"), SPAN("x-ms-content-crc64")};
    if (is_one_of(name, names, sizeof(names) / sizeof(names[0])))
        return true;
    return begins(name, SPAN("x-amz-checksum-")) || begins(name, SPAN("x-checksum-"));
}

/* May bytes in it be covered without breaking it? */
static bool is_text(const struct http_head *h)
{
    static const struct span types[] = {SPAN("application/json"),
                                        SPAN("application/xml"),
                                        SPAN("application/javascript"),
                                        SPAN("application/x-ndjson"),
                                        SPAN("application/jsonl"),
                                        SPAN("application/yaml"),
                                        SPAN("application/x-www-form-urlencoded")};
    const struct http_field *f = http_find(h, SPAN("content-type"));
    struct span type, rest;
    if (f == NULL)
        return false;
    (void)span_cut(f->value, ';', &type, &rest);
    type = span_trim(type);
    if (begins(type, SPAN("text/")) || is_one_of(type, types, sizeof(types) / sizeof(types[0])))
        return true;
    struct span tail = span_from(type, type.n > 5 ? type.n - 5 : 0);
    return span_ieq(tail, SPAN("+json")) || span_ieq(span_from(tail, 1), SPAN("+xml"));
}

static bool is_events(const struct http_head *h)
{
    const struct http_field *f = http_find(h, SPAN("content-type"));
    return f != NULL && begins(f->value, SPAN("text/event-stream")) && http_find(h, SPAN("content-encoding")) == NULL;
}

/* The one coding of an answer that has to be looked at; another one is refused (D5, F5). */
static enum walk_next open_coding(struct exchange *x, const struct http_head *h)
{
    enum coding coding = CODING_IDENTITY;
    unsigned named = 0;
    for (size_t i = 0; i < h->nfields; i++)
        if (span_ieq(h->field[i].name, SPAN("content-encoding"))) {
            coding = coding_of(h->field[i].value);
            named++;
        }
    if (named > 1 || coding == CODING_UNKNOWN)
        return carry_fail(x, "answer-encoded",
                          "the answer came in an encoding that cannot be searched for secrets, "
                          "although identity was asked for");
    if (coding == CODING_IDENTITY || h->framing == HTTP_NO_BODY)
        return WALK_NEXT;
    if (coding_is_large(coding) && x->front->nlarge >= LARGE_A_FRONT_MAX)
        return carry_fail(x, "answer-encoded",
                          "the answer came in br or zstd although identity was asked for, and %d such are being "
                          "searched for secrets already; repeat the request when they are done",
                          LARGE_A_FRONT_MAX);
    x->decode = decode_new(coding, x->scrub.set);
    if (x->decode == NULL)
        return carry_fail(x, "answer-refused", "no memory to look into the answer");
    x->front->nlarge += decode_is_large(x->decode);
    return WALK_NEXT;
}

static void note_framing(struct exchange *x, const struct http_head *h, struct wire_answer *a)
{
    a->framing = h->framing == HTTP_UNTIL_CLOSE || x->rpc.is ? HTTP_CHUNKED : h->framing;
    a->length = h->length;
    x->flows = a->framing != HTTP_LENGTH || h->length == 0;
    /* What a GET would have given; the front knows that no body follows. */
    if (h->framing == HTTP_NO_BODY && span_eq(x->f.request.method, SPAN("HEAD")) &&
        http_find(h, SPAN("content-length")) != NULL)
        a->framing = HTTP_LENGTH;
}

/* The same bytes of another copy. */
static struct span moved(struct span s, const uint8_t *from, const uint8_t *to)
{
    return s.n ? span_of(to + (s.p - from), s.n) : s;
}

static enum walk_next found_and_refused(struct exchange *x)
{
    return carry_fail(x, "secret-in-answer",
                      "a secret stood in the answer, and its credential says scrub: refuse; it was cut off");
}

/* A fold may lie inside a secret, which is whole again for who leaves the blanks of it out. head: covered already. */
static bool folds_hide_one(const struct exchange *x, const struct dynbuf *head)
{
    struct dynbuf b;
    bool refuse;
    if (!x->folded || !looked_at(x))
        return false;
    dynbuf_init(&b, HTTP_ANSWER_HEAD_MAX);
    for (size_t i = 0; i < head->n; i++)
        if (head->p[i] != ' ' && head->p[i] != '\t')
            (void)dynbuf_add_byte(&b, head->p[i]);
    bool hidden = !dynbuf_ok(&b) || scrub_cover(x->scrub.set, b.p, b.n, &refuse) != 0;
    dynbuf_wipe(&b);
    return hidden;
}

/* Secrets in names, values and the reason phrase are covered in a copy of the raw head. */
static enum walk_next keep_head(struct exchange *x, const struct http_head *h, struct span raw)
{
    struct wire_answer a UNZEROED;
    struct dynbuf copy;
    enum walk_next next = WALK_FAIL;
    bool refuse = false, hidden = false;
    a.status = (uint16_t)h->status;
    a.nfields = 0;
    dynbuf_init(&copy, HTTP_ANSWER_HEAD_MAX);
    if (dynbuf_add(&copy, raw) != 0 || (looked_at(x) && scrub_cover(x->scrub.set, copy.p, copy.n, &refuse) < 0) ||
        refuse || (hidden = folds_hide_one(x, &copy)))
        goto out;
    a.reason = moved(span_first(h->reason, HTTP_REASON_MAX), raw.p, copy.p);
    for (size_t i = 0; i < h->nfields; i++) {
        const struct http_field *f = &h->field[i];
        if (dropped(x, h, f->name))
            continue;
        x->digests |= answer_is_digest(f->name);
        a.field[a.nfields++] = (struct http_field){moved(f->name, raw.p, copy.p), moved(f->value, raw.p, copy.p)};
    }
    note_framing(x, h, &a);
    part_head(x, &a);
    wire_put_answer(&x->head, &a);
    if (dynbuf_ok(&x->head))
        next = WALK_NEXT;
out:
    dynbuf_free(&copy);
    if (hidden)
        return carry_fail(x, "secret-in-answer", "a secret stood in a folded field of the answer's head");
    if (refuse)
        return found_and_refused(x);
    return next == WALK_NEXT ? next : carry_fail(x, "answer-refused", "no memory for the answer's head");
}

/* To a retry of JSON-RPC, whose id is another one than that of the request that left. */
static void begin_rpc(struct exchange *x, const struct http_head *h)
{
    const struct http_field *type = http_find(h, SPAN("content-type"));
    const struct http_field *coding = http_find(h, SPAN("content-encoding"));
    bool coded = coding != NULL && !span_ieq(coding->value, SPAN("identity"));
    if (x->f.answer_id.n && x->f.swaps.n == 0 && h->framing != HTTP_NO_BODY && type != NULL && !coded)
        rpc_answer_begin(&x->rpc, type->value);
}

/* Others may have brought a new secret to this origin while the request was under way; it may stand in this answer.
 * (Of a part that was asked for when there was none, nothing more is known.) */
static enum walk_next look_for_newer(struct exchange *x, const struct http_head *h)
{
    struct err e;
    struct scrub *set = origins_since(&x->carrier->origins, x->upstream, x->scrub.set, &e);
    if (set == NULL && x->scrub.set != NULL)
        return carry_fail(x, "answer-refused", "it cannot be searched for secrets: %s", e.text);
    if (set == x->scrub.set || (!looked_at(x) && h->status == 206))
        return WALK_NEXT;
    scrub_end(&x->scrub);
    scrub_begin(&x->scrub, set);
    return WALK_NEXT;
}

static enum walk_next take_head(struct exchange *x, const struct http_head *h, size_t used)
{
    struct span raw = span_first(conn_input(x->conn), used);
    if (look_for_newer(x, h) != WALK_NEXT)
        return WALK_FAIL;
    if (h->status == 101 && x->websocket == NULL)
        return carry_fail(x, "bad-answer", "the upstream switches protocols though nobody asked");
    if (h->status == 101 && carry_websocket_verify(x, h) != WALK_NEXT)
        return WALK_FAIL;
    carry_answer(x, ANSWER_HEAD);
    x->head_ms = loop_now(x->carrier->loop);
    x->status = (uint16_t)h->status;
    x->keep_alive = h->keep_alive && x->sent == SENT_ALL; /* an early answer ends the connection (A48) */
    x->text = is_text(h);
    x->meter.events = is_events(h);
    if (part_begin(x, h) != WALK_NEXT || (looked_at(x) && open_coding(x, h) != WALK_NEXT) ||
        swap_head(x, h) != WALK_NEXT)
        return WALK_FAIL;
    begin_rpc(x, h);
    if (keep_head(x, h, raw) != WALK_NEXT)
        return WALK_FAIL;
    http_body_begin(&x->in, h);
    conn_consume(x->conn, used);
    conn_deadline(x->conn, x->carrier->settings.idle_ms);
    return h->status == 101 ? carry_websocket_switch(x) : WALK_NEXT;
}

static enum http_result read_head(struct exchange *x, struct http_head *h, size_t *used, struct http_err *e)
{
    struct span in = conn_input(x->conn);
    if (in.n == 0)
        return HTTP_MORE;
    enum http_result r = http_parse_response(in, x->f.request.method, &x->seen, h, used, e);
    if (r != HTTP_BAD || !http_unfold(conn_input_edit(x->conn), in.n))
        return r;
    x->folded = true;
    x->seen = 0;
    return http_parse_response(in, x->f.request.method, &x->seen, h, used, e);
}

enum walk_next answer_head(struct exchange *x)
{
    for (;;) {
        struct http_head h UNZEROED; /* it is read once it is parsed */
        struct http_err e;
        size_t used;
        if (conn_input(x->conn).n > 0 && x->answer == ANSWER_NONE)
            carry_answer(x, ANSWER_BEGUN);
        enum http_result r = read_head(x, &h, &used, &e);
        if (r == HTTP_BAD)
            return carry_fail(x, "bad-answer", "the upstream's answer is not proper HTTP/1.1: %s", e.why);
        if (r == HTTP_MORE && x->link == LINK_LOST)
            return carry_fail(x, "upstream-closed", "the upstream closed the connection without an answer");
        if (r == HTTP_MORE)
            return WALK_WAIT;
        enum walk_next renewed = h.status == 401 ? dial_renew(x) : WALK_NEXT;
        if (renewed != WALK_NEXT)
            return renewed;
        if (h.status >= 200 || h.status == 101)
            return take_head(x, &h, used);
        if (++x->interim > INTERIM_MAX)
            return carry_fail(x, "bad-answer", "the upstream sends interim answers without end");
        conn_consume(x->conn, used);
        x->seen = 0;
    }
}

/* ---- the body ---- */

/* A covered text under a digest that says otherwise helps nobody: the field goes, or if it is gone, the answer. */
static enum walk_next something_found(struct exchange *x)
{
    if (x->scrub.refuse)
        return found_and_refused(x);
    if (!x->text)
        return carry_fail(x, "secret-in-answer", "a secret stood in an answer that is not text; it was cut off");
    if (x->delivery != DELIVERY_NONE && x->digests)
        return carry_fail(x, "secret-in-answer",
                          "a secret stood in an answer whose head had a digest of it; it was cut off");
    x->covered = true;
    return WALK_NEXT;
}

static enum walk_next search(struct exchange *x, struct span data, bool last)
{
    if (x->decode != NULL) {
        if (decode_feed(x->decode, data, last, &x->ready) == DECODE_OK)
            return WALK_NEXT;
        return carry_fail(x, "answer-encoded", "the answer came encoded and was refused: %s", decode_why(x->decode));
    }
    if (!looked_at(x) || x->swap == SWAP_DUE) { /* that one is searched when its tokens are out */
        if (data.n && dynbuf_add(&x->ready, data) != 0)
            return carry_fail(x, "answer-refused", "no memory for the answer");
        return WALK_NEXT;
    }
    size_t before = x->ready.n;
    if (scrub_feed(&x->scrub, data, last, &x->ready) != 0)
        return carry_fail(x, "answer-refused", "no memory to search the answer for secrets");
    part_cut(x, before);
    return x->scrub.refuse || (x->scrub.found && !x->covered) ? something_found(x) : WALK_NEXT;
}

static void keep(struct exchange *x, size_t from)
{
    if (!x->f.repeatable && x->swap == SWAP_NONE && x->ready.n > from)
        (void)dynbuf_add(&x->kept, span_of(x->ready.p + from, x->ready.n - from));
}

/* What stands in x->ready from there on, with the id that the client knows. What is kept for another retry has the
 * one that it came with. */
static enum walk_next with_its_id(struct exchange *x, size_t from, bool last)
{
    struct dynbuf out;
    if (!x->rpc.is)
        return WALK_NEXT;
    dynbuf_init(&out, READY_MAX);
    struct span in = span_of(x->ready.p + from, x->ready.n - from);
    int rc = rpc_answer_feed(&x->rpc, x->f.answer_id, x->ready.n > from ? in : SPAN_NONE, last, &out);
    x->ready.n = from;
    if (rc != 0 || (out.n && dynbuf_add(&x->ready, dynbuf_span(&out)) != 0))
        rc = -1;
    dynbuf_free(&out);
    return rc == 0 ? WALK_NEXT : carry_fail(x, "answer-refused", "no memory for the answer");
}

/* One piece of what came, through the search into x->ready. */
static enum walk_next take_piece(struct exchange *x, struct span in)
{
    size_t used = 0, before = x->ready.n;
    struct span data = SPAN_NONE;
    enum http_result r = http_body_step(&x->in, in, &used, &data);
    if (r == HTTP_BAD)
        return carry_fail(x, "bad-answer", "the answer's body is malformed: %s", x->in.err.why);
    x->in_bytes += data.n;
    if (x->delivery == DELIVERY_NOBODY)
        meter_pass(x, data.n);
    bool last = r == HTTP_OK;
    if (last)
        carry_answer(x, ANSWER_WHOLE);
    if ((data.n || last) && search(x, data, last) != WALK_NEXT)
        return WALK_FAIL;
    keep(x, before);
    conn_consume(x->conn, used);
    if (with_its_id(x, before, last) != WALK_NEXT)
        return WALK_FAIL;
    return used == 0 && !last ? WALK_WAIT : WALK_NEXT;
}

/* Nothing more will come. What did is the client's, also of an answer that is cut short: it may say that a write was
 * done. */
static enum walk_next at_end(struct exchange *x)
{
    size_t before = x->ready.n;
    bool whole = x->lost == CONN_EOF && http_body_eof(&x->in) == HTTP_OK;
    carry_answer(x, whole ? ANSWER_WHOLE : ANSWER_CUT);
    /* What ends with its connection is all that was sent. Of what says itself that it is longer, its last bytes may
     * begin a secret and stay back (D2); of a coding that breaks off nothing more can be looked at. */
    bool all = whole || (x->in.framing == HTTP_UNTIL_CLOSE && x->decode == NULL);
    if (all && search(x, SPAN_NONE, true) != WALK_NEXT)
        return WALK_FAIL;
    keep(x, before);
    return with_its_id(x, before, true);
}

/* How much more may be taken in now. */
static size_t room(const struct exchange *x)
{
    if (x->front->held_back)
        return 0;
    if (x->delivery == DELIVERY_NOBODY)
        return meter_room(x, PIECE);
    if (x->credit <= x->ready.n)
        return 0;
    size_t free = (size_t)(x->credit - x->ready.n), most = meter_room(x, free + x->ready.n);
    return !x->meter.on ? free : most > x->ready.n ? most - x->ready.n : 0;
}

static enum walk_next take_input(struct exchange *x)
{
    while (x->answer == ANSWER_HEAD) {
        enum walk_next next = take_piece(x, span_first(conn_input(x->conn), room(x)));
        if (next == WALK_FAIL)
            return next;
        if (next == WALK_WAIT && x->link == LINK_LOST && room(x) > 0) {
            if (at_end(x) != WALK_NEXT)
                return WALK_FAIL;
        } else if (next == WALK_WAIT) {
            return WALK_NEXT;
        }
        if (x->delivery == DELIVERY_NOBODY)
            dynbuf_reset(&x->ready);
    }
    return WALK_NEXT;
}

/* What nobody reads and the store alone keeps: no more of it is taken than can be kept, and not for ever. What came
 * of the write is known by its head. */
static bool is_enough(const struct exchange *x)
{
    return x->front->instance >= XID_LATER && x->answer == ANSWER_HEAD &&
           (!dynbuf_ok(&x->kept) || loop_now(x->carrier->loop) - x->head_ms > LATER_ANSWER_MS);
}

/* For the upstream, or (stuck, or the upstream is gone) for the client and the judge alone. */
static enum walk_next waits(struct exchange *x, bool stuck)
{
    bool lost = x->link == LINK_LOST;
    conn_deadline(x->conn, stuck || lost ? 0 : x->carrier->settings.idle_ms);
    if (!lost)
        conn_pause(x->conn, stuck);
    return WALK_WAIT;
}

enum walk_next step_scrub(struct exchange *x)
{
    if (x->websocket != NULL && carry_websocket_is_on(x->websocket))
        return carry_websocket_go(x);
    enum walk_next may = meter_whole(x);
    if (may == WALK_WAIT)
        return waits(x, true);
    if (may == WALK_FAIL || take_input(x) != WALK_NEXT)
        return WALK_FAIL;
    bool nobody = x->delivery == DELIVERY_NOBODY, swaps = !nobody && swap_is_open(x);
    if (swaps && swap_go(x) != WALK_WAIT)
        return WALK_FAIL;
    if (swaps && x->answer > ANSWER_HEAD) {
        conn_deadline(x->conn, 0);
        return WALK_WAIT;
    }
    if (!swaps && !nobody && delivery_ready(x, x->answer > ANSWER_HEAD) != 0) {
        if (x->f.repeatable)
            return carry_fail(x, "cancelled", "the client is gone");
        carry_delivery(x, DELIVERY_NOBODY);
        nobody = true;
    }
    if (nobody) {
        dynbuf_reset(&x->ready);
        if (take_input(x) != WALK_NEXT)
            return WALK_FAIL;
        if (is_enough(x))
            carry_answer(x, ANSWER_CUT);
    }
    if (x->answer > ANSWER_HEAD && (nobody || x->delivery == DELIVERY_ENDED))
        return x->answer == ANSWER_WHOLE ? WALK_DONE
                                         : carry_fail(x, "answer-cut", "the upstream's answer was cut short");
    if (x->answer == ANSWER_HEAD && meter_wait(x) == WALK_FAIL)
        return WALK_FAIL;
    return waits(x, room(x) == 0);
}
