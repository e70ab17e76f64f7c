/* proxy/wire: every pair gives back what was put, and refuses every truncation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>

#include "proxy/refusals.h"
#include "proxy/wire_ticket.h"
#include "proxy/wire.h"

static struct wire_request sample_request(void)
{
    struct wire_request r = {.scheme = SPAN("https"),
                             .host = SPAN("api.example.com"),
                             .method = SPAN("POST"),
                             .path = SPAN("/a/b"),
                             .query = SPAN("x=1"),
                             .has_query = true,
                             .port = 443,
                             .nfields = 1};
    r.field[0] = (struct http_field){SPAN("Accept"), SPAN("*/*")};
    return r;
}

static void every_truncation_is_refused(struct span whole, int (*get)(struct msg_in *))
{
    for (size_t n = 0; n < whole.n; n++) {
        struct msg_in m = msg_in(span_first(whole, n));
        assert_true(get(&m) == -1 || msg_end(&m) == -1);
    }
    struct msg_in m = msg_in(whole);
    assert_int_equal(get(&m), 0);
    assert_int_equal(msg_end(&m), 0);
}

static int get_request(struct msg_in *m)
{
    struct wire_request r;
    if (wire_get_request(m, &r) != 0)
        return -1;
    return span_eq(r.path, SPAN("/a/b")) && r.nfields == 1 && span_eq(r.field[0].value, SPAN("*/*")) ? 0 : -1;
}

static int get_ticket(struct msg_in *m)
{
    struct wire_ticket t;
    if (wire_get_ticket(m, &t) != 0)
        return -1;
    return span_eq(t.summary, SPAN("sum")) && t.within_ms == 9 && t.record.rule.line == 41 ? 0 : -1;
}

static int get_sandbox(struct msg_in *m)
{
    struct wire_sandbox s;
    if (wire_get_sandbox(m, &s) != 0)
        return -1;
    return s.nlabels == 1 && span_eq(s.label[0].value, SPAN("v")) && s.generation == 3 ? 0 : -1;
}

static int get_usage(struct msg_in *m)
{
    struct wire_usage u;
    if (wire_get_usage(m, &u) != 0)
        return -1;
    return u.version == 1 && u.memory == 2 && u.peak == 3 && u.disk == 4 && u.pids == 5 && u.cpu_us == 6 ? 0 : -1;
}

static void pairs_mirror_each_other(void **state)
{
    struct dynbuf b;
    struct wire_request r = sample_request();
    dynbuf_init(&b, 1 << 20);
    wire_put_request(&b, &r);
    every_truncation_is_refused(dynbuf_span(&b), get_request);
    dynbuf_reset(&b);

    wire_put_usage(&b, &(struct wire_usage){1, 2, 3, 4, 5, 6});
    assert_int_equal(b.n, WIRE_USAGE);
    every_truncation_is_refused(dynbuf_span(&b), get_usage);
    dynbuf_reset(&b);

    struct wire_ticket t = {.request = r, .summary = SPAN("sum"), .within_ms = 9};
    t.record.rule.line = 41;
    wire_put_ticket(&b, &t);
    every_truncation_is_refused(dynbuf_span(&b), get_ticket);
    dynbuf_reset(&b);

    struct wire_sandbox s = {.name = SPAN("s"), .generation = 3, .nlabels = 1};
    s.label[0].key = SPAN("k");
    s.label[0].value = SPAN("v");
    wire_put_sandbox(&b, &s);
    every_truncation_is_refused(dynbuf_span(&b), get_sandbox);
    dynbuf_reset(&b);
    s.has_token = true;
    s.nolder = WIRE_TOKENS_OLDER;
    s.older[WIRE_TOKENS_OLDER - 1].b[0] = 7;
    wire_put_sandbox(&b, &s);
    every_truncation_is_refused(dynbuf_span(&b), get_sandbox);
    struct msg_in m = msg_in(dynbuf_span(&b));
    struct wire_sandbox back;
    assert_int_equal(wire_get_sandbox(&m, &back), 0);
    assert_true(back.nolder == WIRE_TOKENS_OLDER && back.older[WIRE_TOKENS_OLDER - 1].b[0] == 7);
    dynbuf_reset(&b);
    s.has_token = false; /* older ones without a newest */
    wire_put_sandbox(&b, &s);
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_sandbox(&m, &back), -1);
    dynbuf_free(&b);
}

static void impossible_requests_are_refused(void **state)
{
    struct dynbuf b;
    struct wire_request r = sample_request(), out;
    dynbuf_init(&b, 1 << 20);
    r.scheme = SPAN("ftp");
    wire_put_request(&b, &r);
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_request(&m, &out), -1);
    dynbuf_reset(&b);
    r = sample_request();
    r.path = SPAN("a");
    wire_put_request(&b, &r);
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_request(&m, &out), -1);
    dynbuf_free(&b);
}

/* "born.number", and one without the other is none. */
static void a_step_is_both_or_none(void **state)
{
    static const struct wire_step steps[] = {{3, 7}, {0, 0}, {3, 0}, {0, 7}};
    char text[WIRE_STEP_TEXT];
    struct wire_step out;
    for (size_t i = 0; i < 4; i++) {
        struct dynbuf b;
        dynbuf_init(&b, 64);
        wire_put_step(&b, &steps[i]);
        assert_int_equal(b.n, WIRE_STEP);
        struct msg_in m = msg_in(dynbuf_span(&b));
        assert_int_equal(wire_get_step(&m, &out), i < 2 ? 0 : -1);
        dynbuf_free(&b);
    }
    assert_true(span_eq(wire_step_text(&steps[0], text), SPAN("3.7")));
}

/* A policy may lie as deep in the tree as a path can; its records must all the same be taken. */
static void a_long_file_name_is_cut_to_its_end(void **state)
{
    char file[1000];
    struct wire_record r = {.rule.line = 7, .generation = 3, .by = {2, 9}, .lease = {{5}}}, out;
    struct dynbuf b;
    memset(file, 'd', sizeof(file));
    memcpy(file + sizeof(file) - 5, "/p.ya", 5);
    r.rule.file = span_of(file, sizeof(file));
    dynbuf_init(&b, 1 << 20);
    wire_put_record(&b, &r);
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_record(&m, &out), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(out.rule.file.n, 256);
    assert_int_equal(out.generation, 3);
    assert_true(out.by.born == 2 && out.by.number == 9 && out.lease.b[0] == 5);
    assert_true(span_ends(out.rule.file, SPAN("d/p.ya")));
    dynbuf_free(&b);
}

/* What the writer cuts the reader does not take: one spelling of a record. */
static void a_long_path_is_cut_and_a_longer_one_refused(void **state)
{
    static char path[2049];
    struct wire_record r = {.rule.line = 7}, out;
    struct dynbuf b;
    (void)state;
    memset(path, '/', sizeof(path));
    r.path = r.resource = span_of(path, sizeof(path));
    dynbuf_init(&b, 1 << 20);
    wire_put_record(&b, &r);
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_record(&m, &out), 0);
    assert_true(out.path.n == 2048 && out.resource.n == 2048);
    size_t at = 5 * 4; /* the lengths before the path's, all of nothing */
    b.p[at + 3]++;     /* one more byte, taken from what follows */
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_record(&m, &out), -1);
    dynbuf_free(&b);
}

static int get_record(struct msg_in *m)
{
    struct wire_record r;
    if (wire_get_record(m, &r) != 0)
        return -1;
    return r.has_body && r.upgrade && span_eq(r.content_type, SPAN("text/plain")) && span_ends(r.refs, SPAN("/x")) &&
                   span_eq(r.cause, SPAN("in-query")) && span_eq(r.range, SPAN("bytes=1-2")) &&
                   span_eq(r.range_sent, SPAN("bytes=0-9")) && r.shadow
               ? 0
               : -1;
}

static void a_record_says_what_else_was_seen(void **state)
{
    static char long_type[101], long_refs[1025];
    struct wire_record out, r = {.has_body = true,
                                 .upgrade = true,
                                 .cause = SPAN("in-query"),
                                 .content_type = SPAN("text/plain"),
                                 .refs = SPAN("create refs/heads/x"),
                                 .range = SPAN("bytes=1-2"),
                                 .range_sent = SPAN("bytes=0-9"),
                                 .shadow = true};
    struct dynbuf b;
    dynbuf_init(&b, 1 << 16);
    wire_put_record(&b, &r);
    every_truncation_is_refused(dynbuf_span(&b), get_record);
    dynbuf_reset(&b);
    r.content_type = r.range = span_of(long_type, sizeof(long_type));
    wire_put_record(&b, &r);
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_record(&m, &out), 0);
    assert_true(out.content_type.n == 100 && out.range.n == 96);
    dynbuf_reset(&b);
    r.refs = span_of(long_refs, sizeof(long_refs));
    wire_put_record(&b, &r);
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_record(&m, &out), -1);
    dynbuf_free(&b);
}

static struct wire_limits sample_limits(size_t n)
{
    struct wire_limits l = {.n = n};
    for (size_t i = 0; i < n; i++)
        l.limit[i] = (struct wire_limit){.rule = SPAN("refunds"),
                                         .measure = SPAN("json:/amount"),
                                         .per = WIRE_PER_SESSION,
                                         .max = 20000 + i,
                                         .window_ms = 1000,
                                         .amount = 7,
                                         .uncountable = i % 2};
    return l;
}

static int get_limits(struct msg_in *m)
{
    struct wire_limits l;
    if (wire_get_limits(m, &l) != 0 || l.n != WIRE_LIMITS_MAX)
        return -1;
    const struct wire_limit *k = &l.limit[WIRE_LIMITS_MAX - 1];
    return span_eq(k->measure, SPAN("json:/amount")) && k->max == 20015 && k->amount == 7 && k->uncountable ? 0 : -1;
}

static int get_over(struct msg_in *m)
{
    struct wire_over o;
    return wire_get_over(m, &o) == 0 && o.n == 2 && !o.past[0] && o.past[1] && o.room_ms == 5 ? 0 : -1;
}

static void limits_mirror_each_other_and_have_bounds(void **state)
{
    struct wire_limits l = sample_limits(WIRE_LIMITS_MAX), out;
    struct wire_over o = {.n = 2, .past = {false, true}, .room_ms = 5};
    struct dynbuf b;
    dynbuf_init(&b, 1 << 16);
    wire_put_limits(&b, &l);
    every_truncation_is_refused(dynbuf_span(&b), get_limits);
    b.p[0]++; /* one more than there may be */
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_limits(&m, &out), -1);
    assert_true(m.bad);
    static const struct {
        const char *rule, *measure;
        uint64_t window;
        uint8_t per;
    } bad[] = {{"", "m", 1, 0}, {"r", "", 1, 0}, {"r", "m", 0, 0}, {"r", "m", 1, WIRE_PER_ALL + 1}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        dynbuf_reset(&b);
        l = (struct wire_limits){.n = 1};
        l.limit[0] = (struct wire_limit){.rule = span_str(bad[i].rule),
                                         .measure = span_str(bad[i].measure),
                                         .window_ms = bad[i].window,
                                         .per = bad[i].per};
        wire_put_limits(&b, &l);
        m = msg_in(dynbuf_span(&b));
        assert_int_equal(wire_get_limits(&m, &out), -1);
    }
    dynbuf_reset(&b);
    wire_put_over(&b, &o);
    every_truncation_is_refused(dynbuf_span(&b), get_over);
    b.p[0] = WIRE_LIMITS_MAX + 1;
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_over(&m, &o), -1);
    dynbuf_free(&b);
}

/* Too many of something is a fault that sticks, however the message goes on. */
static void a_listener_has_limits(void **state)
{
    static const struct {
        size_t sources, peers;
        int result;
    } cases[] = {{LISTENER_SOURCES_MAX, LISTENER_PEERS_MAX, 0},
                 {LISTENER_SOURCES_MAX + 1, 0, -1},
                 {0, LISTENER_PEERS_MAX + 1, -1}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        static struct wire_listener out;
        struct dynbuf b;
        dynbuf_init(&b, 1 << 16);
        msg_put_u8(&b, WAY_HTTP);
        msg_put_u8(&b, IDENTITY_SOURCE);
        msg_put_span(&b, SPAN_NONE);
        msg_put_u16(&b, (uint16_t)cases[i].sources);
        for (size_t k = 0; k < 2 * cases[i].sources; k++)
            msg_put_span(&b, SPAN("x"));
        msg_put_u16(&b, (uint16_t)cases[i].peers);
        for (size_t k = 0; k < cases[i].peers; k++)
            msg_put_span(&b, SPAN("x"));
        msg_put_u8(&b, 0);
        struct msg_in m = msg_in(dynbuf_span(&b));
        assert_int_equal(wire_get_listener(&m, &out), cases[i].result);
        assert_int_equal(m.bad, cases[i].result != 0);
        dynbuf_free(&b);
    }
}

static void a_listener_is_what_was_put(void **state)
{
    struct wire_listener in = {.way = WAY_SOCKS,
                               .identity = IDENTITY_SOURCE,
                               .nsources = 1,
                               .npeers = 1,
                               .tls = true},
                         out;
    struct dynbuf b;
    (void)state;
    in.source[0].key = SPAN("192.0.2.0/24");
    in.source[0].sandbox = SPAN("vm1");
    in.peer[0] = SPAN("10.0.0.1/32");
    dynbuf_init(&b, 1 << 16);
    wire_put_listener(&b, &in);
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_listener(&m, &out), 0);
    assert_int_equal(msg_end(&m), 0);
    assert_int_equal(out.way, WAY_SOCKS);
    assert_true(span_eq(out.source[0].key, SPAN("192.0.2.0/24")) && span_eq(out.source[0].sandbox, SPAN("vm1")));
    assert_true(span_eq(out.peer[0], SPAN("10.0.0.1/32")) && out.tls);
    in.identity = IDENTITY_NONE; /* nobody is not an identity */
    dynbuf_reset(&b);
    wire_put_listener(&b, &in);
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_listener(&m, &out), -1);
    dynbuf_free(&b);
}

static void refusals_are_summed_and_capped(void **state)
{
    static struct refusals in, out;
    struct dynbuf b;
    char code[32];
    in.n = out.n = 0;
    refusals_count(&in, SPAN("agents"), SPAN("no-token"), 2);
    refusals_count(&in, SPAN("agents"), SPAN("no-token"), UINT32_MAX);
    for (int i = 0; i < 2 * REFUSALS_MAX; i++) {
        snprintf(code, sizeof(code), "code-%d", i);
        refusals_count(&in, SPAN("agents"), span_str(code), 1);
    }
    assert_int_equal(in.n, REFUSALS_MAX);
    assert_string_equal(in.row[REFUSALS_MAX - 1].listener, "other");
    assert_int_equal(in.row[REFUSALS_MAX - 1].count, REFUSALS_MAX + 2);
    dynbuf_init(&b, 1 << 16);
    wire_put_refusals(&b, &in);
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_refusals(&m, SPAN_NONE, &out), 0);
    assert_int_equal(out.n, REFUSALS_MAX);
    assert_int_equal(out.row[0].count, UINT32_MAX);
    out.n = 0;
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_refusals(&m, SPAN("vm1"), &out), 0);
    assert_string_equal(out.row[0].listener, "vm1"); /* a front speaks for its own sandbox alone */
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_refusals(&m, SPAN("vm\"1"), &out), -1); /* and whatever it is called is printed */
    dynbuf_reset(&b);
    msg_put_u16(&b, 1);
    msg_put_span(&b, SPAN("a"));
    msg_put_span(&b, SPAN("\",\"x")); /* no word */
    msg_put_u32(&b, 1);
    m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_refusals(&m, SPAN_NONE, &out), -1);
    dynbuf_free(&b);
}

static int get_sign(struct msg_in *m)
{
    struct wire_sign s;
    return wire_get_sign(m, &s);
}

static void what_is_to_be_signed_is_what_was_put(void **state)
{
    uint8_t chunks[2 * WIRE_CHUNK] = {1};
    struct wire_sign s = {
        .method = SPAN("PUT"), .path = SPAN("/a"), .query = SPAN("b="), .payload = SPAN("UNSIGNED-PAYLOAD")};
    struct wire_sign back;
    struct dynbuf b;
    s.tell_payload = true;
    s.field[s.nfields++] = (struct http_field){SPAN("x-amz-a"), SPAN("b")};
    s.chunks = span_of(chunks, sizeof(chunks));
    s.trailer = true;
    dynbuf_init(&b, 4096);
    wire_put_sign(&b, &s);
    every_truncation_is_refused(dynbuf_span(&b), get_sign);
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_sign(&m, &back), 0);
    assert_true(span_eq(back.method, s.method) && span_eq(back.path, s.path) && span_eq(back.query, s.query));
    assert_true(span_eq(back.payload, s.payload) && back.tell_payload && back.trailer &&
                span_eq(back.chunks, s.chunks));
    assert_true(back.nfields == 1 && span_eq(back.field[0].name, s.field[0].name));
    const struct span odd[] = {span_of(chunks, WIRE_CHUNK - 1), span_of(chunks, WIRE_CHUNK)}; /* a trailer alone */
    for (size_t i = 0; i < 2; i++) {
        s.chunks = odd[i];
        dynbuf_reset(&b);
        wire_put_sign(&b, &s);
        m = msg_in(dynbuf_span(&b));
        assert_int_equal(wire_get_sign(&m, &back), -1);
    }
    dynbuf_free(&b);
}

static int get_signed(struct msg_in *m)
{
    struct wire_signed s;
    return wire_get_signed(m, &s);
}

static int again(struct dynbuf *b, const struct wire_signed *s)
{
    dynbuf_reset(b);
    wire_put_signed(b, s);
    struct msg_in m = msg_in(dynbuf_span(b));
    return get_signed(&m);
}

static void what_a_lease_signed_is_what_was_put(void **state)
{
    uint8_t chunks[2 * WIRE_CHUNK_SAID] = {1}, text[WIRE_CHUNK_TEXT] = {2};
    struct wire_signed s = {.lease = {{3}},
                            .format = LEASE_AWS,
                            .scheme = SIGN_AWS4,
                            .stamp = SPAN("20260101T000000Z"),
                            .region = SPAN("r"),
                            .service = SPAN("s"),
                            .canonical = {{4}},
                            .signature = span_of(text, sizeof(text)),
                            .chunks = span_of(chunks, sizeof(chunks)),
                            .trailer = true};
    struct wire_signed back, bad[5];
    struct dynbuf b;
    dynbuf_init(&b, 4096);
    wire_put_signed(&b, &s);
    every_truncation_is_refused(dynbuf_span(&b), get_signed);
    struct msg_in m = msg_in(dynbuf_span(&b));
    assert_int_equal(wire_get_signed(&m, &back), 0);
    assert_true(id_eq(&back.lease, &s.lease) && back.format == s.format && back.scheme == s.scheme && back.trailer);
    assert_true(span_eq(back.stamp, s.stamp) && span_eq(back.region, s.region) && span_eq(back.service, s.service));
    assert_true(span_eq(back.signature, s.signature) && span_eq(back.chunks, s.chunks));
    assert_memory_equal(&back.canonical, &s.canonical, sizeof(s.canonical));
    for (size_t i = 0; i < 5; i++)
        bad[i] = s;
    bad[0].signature = span_first(s.signature, WIRE_CHUNK_TEXT - 1);
    bad[1].chunks = span_first(s.chunks, WIRE_CHUNK_SAID + 1);
    bad[2].chunks = span_first(s.chunks, WIRE_CHUNK_SAID); /* a trailer alone */
    bad[3].scheme = SIGN_NONE;
    bad[4].format = LEASE_FORMAT_COUNT;
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(again(&b, &bad[i]), -1);
    dynbuf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pairs_mirror_each_other),
                                       cmocka_unit_test(impossible_requests_are_refused),
                                       cmocka_unit_test(a_step_is_both_or_none),
                                       cmocka_unit_test(a_long_file_name_is_cut_to_its_end),
                                       cmocka_unit_test(a_listener_is_what_was_put),
                                       cmocka_unit_test(a_long_path_is_cut_and_a_longer_one_refused),
                                       cmocka_unit_test(a_listener_has_limits),
                                       cmocka_unit_test(a_record_says_what_else_was_seen),
                                       cmocka_unit_test(limits_mirror_each_other_and_have_bounds),
                                       cmocka_unit_test(refusals_are_summed_and_capped),
                                       cmocka_unit_test(what_is_to_be_signed_is_what_was_put),
                                       cmocka_unit_test(what_a_lease_signed_is_what_was_put)};
    return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
