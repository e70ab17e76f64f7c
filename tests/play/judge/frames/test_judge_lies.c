/* The judge: what a front says is believed only as far as a proper one would say it (B65). */
#include "tests/play/judge/play.h"

/* A request as a front that was taken over may write it, whatever the walls of a proper one. */
static int lies(struct play *p, uint64_t xid, const struct wire_request *r)
{
    struct dynbuf *b = from(p);
    wire_put_request(b, r);
    msg_put_span(b, SPAN_NONE);
    msg_put_u8(b, 0);
    msg_put_u64(b, 0);
    msg_put_span(b, SPAN_NONE);
    return give(p, ROLE_FRONT, FRONT, M_REQUEST, xid, -1);
}

static struct wire_request honest(void)
{
    struct wire_request r = {.scheme = SPAN("https"),
                             .host = SPAN("api.example"),
                             .method = SPAN("GET"),
                             .path = SPAN("/read/a:b%3F"),
                             .query = SPAN("a=b%25"),
                             .port = 443,
                             .has_query = true,
                             .nfields = 1};
    r.field[0] = (struct http_field){SPAN("X-Field"), SPAN("a \xc3\xbc b")};
    return r;
}

/* Parts that contradict each other, and an upgrade with what belongs to another handshake. */
static void lies_of_more(struct play *p)
{
    struct wire_request r = honest();
    uint64_t n = 200;
    r.has_query = false;
    assert_int_equal(lies(p, XID(++n), &r), -1);
    r = honest();
    r.port = 0;
    assert_int_equal(lies(p, XID(++n), &r), -1);
    r = honest();
    r.scheme = SPAN("ftp");
    assert_int_equal(lies(p, XID(++n), &r), -1);
    r = honest();
    r.field[0] = (struct http_field){SPAN("Upgrade"), SPAN("websocket")};
    r.field[1] = (struct http_field){SPAN("Sec-WebSocket-Key"), SPAN("a")};
    r.nfields = 2;
    assert_int_equal(lies(p, XID(++n), &r), -1);
    r.field[1] = r.field[0];
    assert_int_equal(lies(p, XID(++n), &r), -1);
}

/* Another channel is made for whoever lost one, but not for it: the parent is told to end it. */
static void who_breaks_the_contract_gets_no_other_channel(void **state)
{
    struct play p;
    struct wire_request r = honest();
    play_all(&p, "allow read GET /read\n");
    p.up[ROLE_PARENT] = true;
    r.path = SPAN("//a");
    assert_int_equal(lies(&p, XID(1), &r), -1);
    struct msg_in m = expect(&p, ROLE_PARENT, M_FRONT_OVER, 0);
    assert_int_equal(msg_get_u64(&m), FRONT);
    play_gone(&p, ROLE_FRONT, FRONT);
    play_close(&p);
    covers("B65");
}

/* What a front calls canonical is so, or its channel ends (B65): the rules of the policy know one spelling alone. */
static void a_front_that_lies_is_ended(void **state)
{
    static const struct span hosts[] = {SPAN("API.example"),    SPAN("api.example."), SPAN("127.1"),
                                        SPAN("a..b"),           SPAN("[::0]"),        SPAN("a b"),
                                        SPAN("api.example:443")};
    static const struct span paths[] = {SPAN("/%61"),   SPAN("/a%3a"),  SPAN("//a"),     SPAN("/a/../b"),
                                        SPAN("/a/%2e"), SPAN("/a%00"),  SPAN("/a?b"),    SPAN("/a b"),
                                        SPAN("/a|b"),   SPAN("/a%5Cb"), SPAN("/a/..;x"), SPAN("/a\r\nb"),
                                        SPAN("/%ff"),   SPAN("/a%"),    SPAN("/a#b")};
    static const struct span queries[] = {SPAN("%61"), SPAN("a=%3a"), SPAN("a b"),  SPAN("%00"), SPAN("a%"),
                                          SPAN("a#b"), SPAN("|"),     SPAN("a=\\"), SPAN("{}")};
    static const struct span methods[] = {SPAN("GE T"), SPAN("GET\r\n"), SPAN("G\xc3\xa9t")};
    static const struct http_field fields[] = {{SPAN("Host"), SPAN("a")},
                                               {SPAN("Content-Length"), SPAN("1")},
                                               {SPAN("Content_Length"), SPAN("1")},
                                               {SPAN("Connection"), SPAN("x")},
                                               {SPAN("TE"), SPAN("trailers")},
                                               {SPAN("Transfer-Encoding"), SPAN("chunked")},
                                               {SPAN("Upgrade"), SPAN("h2c")},
                                               {SPAN("X-HTTP-Method"), SPAN("PUT")},
                                               {SPAN("X_Forwarded_For"), SPAN("1")},
                                               {SPAN("Expect"), SPAN("a")},
                                               {SPAN("Proxy-Authorization"), SPAN("a")},
                                               {SPAN("Countersign-Ticket"), SPAN("a")},
                                               {SPAN("X Y"), SPAN("a")},
                                               {SPAN(""), SPAN("a")},
                                               {SPAN("X"), SPAN("a\r\nY: b")},
                                               {SPAN("X"), SPAN("a\0")},
                                               {SPAN("X"), SPAN(" a")},
                                               {SPAN("X-Api-Key"), SPAN("\xe9")},
                                               {SPAN("X"), SPAN("a\t")}};
    struct wire_request r;
    struct play p;
    uint64_t n = 100;
    play_all(&p, "allow read GET /read\n");
    r = honest();
    assert_int_equal(lies(&p, XID(1), &r), 0);
    (void)expect(&p, ROLE_CARRIER, M_UPSTREAM, 0);
    (void)expect_forward(&p, XID(1), NULL);
#define EACH(list, part)                                                                                             \
    for (size_t i = 0; i < sizeof(list) / sizeof((list)[0]); i++) {                                                  \
        r = honest();                                                                                                \
        r.part = (list)[i];                                                                                          \
        if (lies(&p, XID(++n), &r) != -1)                                                                            \
            fail_msg(#part " %zu is believed", i);                                                                   \
    }
    EACH(hosts, host)
    EACH(paths, path)
    EACH(queries, query)
    EACH(methods, method)
    EACH(fields, field[0])
#undef EACH
    lies_of_more(&p);
    judge_free(&p.j); /* the first one is under way still */
    dynbuf_free(&p.got.payload);
    covers("B65");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_front_that_lies_is_ended),
        cmocka_unit_test(who_breaks_the_contract_gets_no_other_channel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
