/* Tokens in an answer, and the answer that goes on: leases in their places, and no text that nobody said is no
 * secret. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "proxy/carrier/swap/swap.h"

#define NOW   UINT64_C(1795424400000) /* 2026-11-23T09:00:00Z */
#define TOKEN "eyJhbGciOiJFUzI1NiJ9.e30.c2lnbmF0dXJl"

static struct wire_swap what[SWAPS_MAX];
static size_t nwhat;
static struct swap s;
static struct err e;

static int setup(void **state)
{
    what[0] = (struct wire_swap){.credential = SPAN("a"),
                                 .expires = SPAN("/expires_in"),
                                 .lifetime_ms = 300000,
                                 .ntoken = 2,
                                 .token = {SPAN("/token"), SPAN("/access_token")}};
    what[1] = (struct wire_swap){
        .credential = SPAN("b"), .lifetime_ms = 9000, .ntoken = 1, .token = {SPAN("/deep/0/refresh")}};
    nwhat = 1;
    return 0;
}

static int read_from(struct span body)
{
    static uint8_t room[8192];
    struct dynbuf b;
    dynbuf_init(&b, sizeof(room));
    msg_put_u8(&b, (uint8_t)nwhat);
    for (size_t i = 0; i < nwhat; i++)
        wire_put_swap(&b, &what[i]);
    assert_true(dynbuf_ok(&b));
    memcpy(room, b.p, b.n);
    size_t n = b.n;
    dynbuf_free(&b);
    return swap_read(&s, span_of(room, n), body, NOW, &e);
}

static void becomes(const char *body, const char *wanted)
{
    static const struct swap_lease lease[] = {{SPAN("cs_LEASE"), SPAN("SECRET")}, {SPAN("cs_OTHER"), SPAN_NONE}};
    struct dynbuf out;
    dynbuf_init(&out, 1 << 20);
    if (read_from(span_str(body)) != 0)
        fail_msg("%s: %s", body, e.text);
    assert_int_equal(swap_write(&s, lease, &out), 0);
    if (!span_eq(dynbuf_span(&out), span_str(wanted)))
        fail_msg("%.*s", SPAN_FMT(dynbuf_span(&out)));
    dynbuf_free(&out);
    swap_end(&s);
}

static void refused(const char *body)
{
    if (read_from(span_str(body)) == 0)
        fail_msg("taken: %s", body);
    assert_true(e.text[0] != '\0');
    assert_null(strstr(e.text, TOKEN));
    swap_end(&s);
}

static void a_lease_takes_its_place(void **state)
{
    becomes("{\"token\":\"" TOKEN "\",\"expires_in\":60,\"issued_at\":\"2026-01-01T00:00:00Z\"}",
            "{\"token\":\"cs_LEASE\",\"expires_in\":60,\"issued_at\":\"2026-01-01T00:00:00Z\"}");
    becomes(" { \"access_token\" : \"" TOKEN "\", \"token\": \"" TOKEN "\", \"ok\": true, \"none\": null } ",
            "{\"access_token\":\"cs_LEASE\",\"token\":\"cs_LEASE\",\"ok\":true,\"none\":null}");
    becomes("{\"token\":\"e\\u0079J.e30.c2ln\"}", "{\"token\":\"cs_LEASE\"}"); /* however it is written */
}

static void other_texts_stay_behind(void **state)
{
    becomes("{\"token\":\"" TOKEN "\",\"refresh_token\":\"r-0123456789\",\"id_token\":\"x\",\"Scope\":\"a b\","
            "\"more\":{\"secret\":\"y\",\"n\":1,\"l\":[\"z\",2]},\"scope\":[\"p\",{\"q\":\"r\"},[\"s\"]]}",
            "{\"token\":\"cs_LEASE\",\"Scope\":\"a b\",\"more\":{\"n\":1,\"l\":[2]},\"scope\":[\"p\",{},[\"s\"]]}");
    what[0].nkeep = 2;
    what[0].keep[0] = SPAN("/more");
    what[0].keep[1] = SPAN("/nowhere");
    becomes("{\"token\":\"" TOKEN "\",\"more\":{\"secret\":\"y\"},\"x\":\"z\"}",
            "{\"token\":\"cs_LEASE\",\"more\":{\"secret\":\"y\"}}");
}

/* Where something is known by a secret that is its name. */
static void names_stay_behind_that_are_no_words(void **state)
{
    static const char word[] = "refresh_token_expires-in.seconds", *const bad[] = {
                                                                       "r0123456789",
                                                                       "r-token/abc",
                                                                       "a b",
                                                                       "",
                                                                       "t\\u00e4st",
                                                                       "refresh_token_expires-in.secondsX"};
    char body[256], wanted[256];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        (void)snprintf(body, sizeof(body), "{\"token\":\"" TOKEN "\",\"sessions\":{\"%s\":1},\"%s\":{\"n\":2}}",
                       bad[i], bad[i]);
        becomes(body, "{\"token\":\"cs_LEASE\",\"sessions\":{}}");
    }
    (void)snprintf(body, sizeof(body), "{\"token\":\"" TOKEN "\",\"%s\":1}", word);
    (void)snprintf(wanted, sizeof(wanted), "{\"token\":\"cs_LEASE\",\"%s\":1}", word);
    becomes(body, wanted);
    becomes("{\"token\":\"" TOKEN "\",\"scope\":{\"r0123456789\":true,\"a\":\"b\"}}",
            "{\"token\":\"cs_LEASE\",\"scope\":{}}");
    what[0].nkeep = 1; /* what the policy names goes on, with the names above it */
    what[0].keep[0] = SPAN("/oauth2/keep");
    what[0].token[1] = SPAN("/v1/x");
    becomes("{\"v1\":{\"x\":\"" TOKEN "\",\"k2\":0},\"oauth2\":{\"keep\":{\"r2\":\"text\"},\"r3\":3},\"r4\":[]}",
            "{\"v1\":{\"x\":\"cs_LEASE\"},\"oauth2\":{\"keep\":{\"r2\":\"text\"}}}");
}

static void several_tokens(void **state)
{
    nwhat = 2;
    becomes("{\"token\":\"" TOKEN "\",\"deep\":[{\"refresh\":\"r-0123456789\"}]}",
            "{\"token\":\"cs_LEASE\",\"deep\":[{\"refresh\":\"cs_OTHER\"}]}");
    refused("{\"token\":\"" TOKEN "\",\"deep\":[]}");
}

static void keys_to_sign_with(void **state)
{
    what[0].token[0] = SPAN("/Id");
    what[0].ntoken = 1;
    what[0].key = SPAN("/Key");
    what[0].session = SPAN("/Token");
    becomes("{\"Id\":\"AKID0123456789\",\"Key\":\"k-0123456789\",\"Token\":\"t-0123456789\",\"Other\":\"o\"}",
            "{\"Id\":\"cs_LEASE\",\"Key\":\"SECRET\",\"Token\":\"cs_LEASE\"}");
    refused("{\"Id\":\"AKID0123456789\",\"Key\":\"k-0123456789\"}");
    refused("{\"Id\":\"AKID0123456789\",\"Token\":\"t-0123456789\"}");
    refused("{\"Key\":\"k-0123456789\",\"Token\":\"t-0123456789\"}");
    refused("{\"Id\":\"AKID0123456789\",\"Key\":1234567890,\"Token\":\"t-0123456789\"}");
}

static void lives(const char *body, uint64_t ms)
{
    assert_int_equal(read_from(span_str(body)), 0);
    assert_int_equal(s.token[0].lives_ms, ms);
    swap_end(&s);
}

static void how_long_it_lives(void **state)
{
    lives("{\"token\":\"" TOKEN "\",\"expires_in\":60}", 60000);
    lives("{\"token\":\"" TOKEN "\",\"expires_in\":\"61\"}", 61000);
    lives("{\"token\":\"" TOKEN "\",\"expires_in\":3600}", 300000);
    lives("{\"token\":\"" TOKEN "\"}", 300000);
    lives("{\"token\":\"" TOKEN "\",\"expires_in\":59.75}", 59750);
    lives("{\"token\":\"" TOKEN "\",\"expires_in\":1.2e2}", 120000);
    refused("{\"token\":\"" TOKEN "\",\"expires_in\":0}");
    refused("{\"token\":\"" TOKEN "\",\"expires_in\":0.0001}");
    refused("{\"token\":\"" TOKEN "\",\"expires_in\":1e10}");
    refused("{\"token\":\"" TOKEN "\",\"expires_in\":-5}");
    refused("{\"token\":\"" TOKEN "\",\"expires_in\":\"soon\"}");
    refused("{\"token\":\"" TOKEN "\",\"expires_in\":{}}");
}

static void until_when_it_lives(void **state)
{
    what[0].ends = SPAN("/ends");
    lives("{\"token\":\"" TOKEN "\",\"ends\":\"2026-11-23T09:00:10Z\"}", 10000);
    lives("{\"token\":\"" TOKEN "\",\"ends\":\"2026-11-23T10:00:10.5+01:00\"}", 10000);
    lives("{\"token\":\"" TOKEN "\",\"ends\":1795424410}", 10000);
    lives("{\"token\":\"" TOKEN "\",\"ends\":\"1795424410\"}", 10000);
    lives("{\"token\":\"" TOKEN "\",\"ends\":\"2026-11-24T09:00:00Z\"}", 300000);
    lives("{\"token\":\"" TOKEN "\",\"ends\":\"2026-11-23T09:00:10Z\",\"expires_in\":5}", 5000);
    lives("{\"token\":\"" TOKEN "\",\"expires_in\":5}", 5000);
    refused("{\"token\":\"" TOKEN "\",\"ends\":\"2026-11-23T08:59:59Z\"}");
    refused("{\"token\":\"" TOKEN "\",\"ends\":\"2026-11-23T09:00:00Z\"}");
    refused("{\"token\":\"" TOKEN "\",\"ends\":1795424399}");
    refused("{\"token\":\"" TOKEN "\",\"ends\":\"2026-11-23T09:00:10\"}");
    lives("{\"token\":\"" TOKEN "\",\"ends\":1.79542441025e9}", 10250); /* as AWS's JSON has times */
    lives("{\"token\":\"" TOKEN "\",\"ends\":1795424410.25}", 10250);
    lives("{\"token\":\"" TOKEN "\",\"ends\":1795424410250}", 10250);
    refused("{\"token\":\"" TOKEN "\",\"ends\":1795424399.999}");
    refused("{\"token\":\"" TOKEN "\",\"ends\":1795424399999}");
    refused("{\"token\":\"" TOKEN "\",\"ends\":1.795424410e12}");
    refused("{\"token\":\"" TOKEN "\",\"ends\":-1795424410}");
    refused("{\"token\":\"" TOKEN "\",\"ends\":\"soon\"}");
    refused("{\"token\":\"" TOKEN "\",\"ends\":null}");
}

static void xml_setup(void)
{
    what[0] = (struct wire_swap){.credential = SPAN("a"),
                                 .ends = SPAN("/R/C/Expiration"),
                                 .lifetime_ms = 300000,
                                 .key = SPAN("/R/C/Key"),
                                 .session = SPAN("/R/C/Token"),
                                 .ntoken = 2,
                                 .token = {SPAN("/R/C/Id"), SPAN("/R/m/0/Id")},
                                 .nkeep = 1,
                                 .keep = {SPAN("/R/User")}};
}

#define KEYS "<Id>ASIA0123456789</Id><Key>k/0123456789</Key><Token>t+0123456789==</Token>"
#define MADE "<Id>cs_LEASE</Id><Key>SECRET</Key><Token>cs_LEASE</Token>"

static void an_answer_in_xml(void **state)
{
    xml_setup();
    becomes("<R><C>" KEYS "</C></R>", "<R><C>" MADE "</C></R>");
    becomes(
        "<?xml version=\"1.0\"?>\n<R xmlns=\"https://sts.example/doc/\" x='y'>\n <C z=\"" TOKEN "\">\n " KEYS
        "\n <Expiration>\n2026-11-23T09:00:10Z </Expiration> </C>\n <Meta><RequestId>r &amp; &#60;</RequestId></Meta>"
        "</R>\n",
        "<R xmlns=\"https://sts.example/doc/\"><C>" MADE "<Expiration>2026-11-23T09:00:10Z</Expiration></C>"
        "<Meta><RequestId>r &#38; &#60;</RequestId></Meta></R>");
    becomes("<R><m><Id>ASIA0123456789</Id></m><m><Id>another-one</Id></m><C><Key>k/0123456789</Key>"
            "<Token>t+0123456789==</Token></C></R>",
            "<R><m><Id>cs_LEASE</Id></m><m></m><C><Key>SECRET</Key><Token>cs_LEASE</Token></C></R>");
}

static void other_texts_of_xml_stay_behind(void **state)
{
    xml_setup();
    becomes("<R xmlns='r-0123456789'><C>" KEYS "</C></R>", "<R><C>" MADE "</C></R>");
    becomes("<R xmlns='https://sts.example/?r-0123456789'><C>" KEYS "</C></R>", "<R><C>" MADE "</C></R>");
    becomes("<R xmlns='urn:sts.example'><C>" KEYS "</C></R>", "<R xmlns=\"urn:sts.example\"><C>" MADE "</C></R>");
    becomes("<R><C>" KEYS
            "<Refresh>r-0123456789</Refresh></C><User><Arn>a</Arn><n>1</n><n>2</n></User><n>7</n><l>x</l>"
            "<l>y</l><o><p>" TOKEN "</p></o><Scope><v>w</v></Scope><e/></R>",
            "<R><C>" MADE "</C><User><Arn>a</Arn><n>1</n><n>2</n></User><o></o><Scope></Scope></R>");
}

static void xml_that_is_no_such_answer(void **state)
{
    xml_setup();
    refused("<R><C><Id>ASIA0123456789</Id><Key>k/0123456789</Key></C></R>");
    refused("<R><C>" KEYS KEYS "</C></R>");
    refused("<R><C>" KEYS "</C><C>" KEYS "</C></R>");
    refused("<S><C>" KEYS "</C></S>");
    refused("<R><x:C>" KEYS "</x:C></R>");
    refused("<R><C>" KEYS "</C><m><Id>another-one</Id></m><m><Id>" TOKEN "</Id></m></R>");
    refused("<!DOCTYPE R [<!ENTITY x \"y\">]><R><C>" KEYS "</C></R>");
    refused("<R><C><Id><![CDATA[ASIA0123456789]]></Id><Key>k/0123456789</Key><Token>t+0123456789==</Token></C></R>");
    refused("<R><C>" KEYS "<!-- " TOKEN " --></C></R>");
    refused("<R><C>" KEYS "</C></R><R/>");
    refused("<R><C>" KEYS "</C>");
    refused("<R><C>" KEYS "<Expiration>2026-11-23T08:00:00Z</Expiration></C></R>");
    refused("<R><C>" KEYS "<Expiration><At>2026-11-23T10:00:00Z</At></Expiration></C></R>");
    refused("<R><C>" KEYS "</C></R>{}");
}

static void what_is_no_such_answer(void **state)
{
    static char large[SWAP_BODY_MAX + 100];
    refused("");
    refused("<html>" TOKEN "</html>");
    refused("{\"token\":\"" TOKEN "\"");
    refused("{\"token\":\"" TOKEN "\"} more");
    refused("{\"token\":\"" TOKEN "\",\"token\":\"another-one\"}");
    refused("{\"tokens\":\"" TOKEN "\"}");
    refused("{\"token\":[\"" TOKEN "\"]}");
    refused("{\"token\":12345678901234567890}");
    refused("{\"token\":\"short\"}");
    refused("{\"token\":\"" TOKEN "\",\"access_token\":\"another-" TOKEN "\"}");
    refused("[\"" TOKEN "\"]");
    memset(large, ' ', sizeof(large) - 1);
    memcpy(large, "{\"token\":\"" TOKEN "\"}", sizeof("{\"token\":\"" TOKEN "\"}") - 1);
    refused(large);
    size_t n = (size_t)snprintf(large, sizeof(large), "{\"token\":\"" TOKEN "\",\"l\":[0");
    while (n < SWAP_BODY_MAX - 100)
        n += (size_t)snprintf(large + n, sizeof(large) - n, ",0");
    (void)snprintf(large + n, sizeof(large) - n, "]}");
    refused(large); /* its tree takes some fifty times as much */
    nwhat = 0;
    refused("{\"token\":\"" TOKEN "\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_lease_takes_its_place, setup),
        cmocka_unit_test_setup(other_texts_stay_behind, setup),
        cmocka_unit_test_setup(names_stay_behind_that_are_no_words, setup),
        cmocka_unit_test_setup(several_tokens, setup),
        cmocka_unit_test_setup(keys_to_sign_with, setup),
        cmocka_unit_test_setup(how_long_it_lives, setup),
        cmocka_unit_test_setup(until_when_it_lives, setup),
        cmocka_unit_test_setup(an_answer_in_xml, setup),
        cmocka_unit_test_setup(other_texts_of_xml_stay_behind, setup),
        cmocka_unit_test_setup(xml_that_is_no_such_answer, setup),
        cmocka_unit_test_setup(what_is_no_such_answer, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
