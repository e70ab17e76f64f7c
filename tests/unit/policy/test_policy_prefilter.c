/* The prefilter: it says no never where the whole question would say anything else, and always where one word tells.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/match/prefilter.h"
#include "policy_kit.h"

#define HEAD "version: 1\nrules:\n"

static struct ask ask_of(const struct policy *p, const struct request *r, struct span op, enum effect effect)
{
    static const struct subject nobody;
    static struct body_view body;
    struct ask k = {
        .p = p, .subject = &nobody, .request = r, .path = SPAN("/"), .method = r->method, .op = op, .effect = effect};
    body = (struct body_view){.looked = false};
    k.body = &body;
    ask_written(&k);
    return k;
}

static struct request request_of(struct span method, struct span scheme, uint16_t port, struct span query)
{
    return (struct request){.method = method,
                            .scheme = scheme,
                            .host = SPAN("a.example"),
                            .port = port,
                            .path = SPAN("/"),
                            .query = query};
}

/* Each rule, each question, each way to ask: what the prefilter drops fits in none. */
static size_t agree(const struct policy *p, const struct ask *k)
{
    size_t said = 0;
    for (uint32_t i = 0; i < p->n[IMG_RULE]; i++) {
        const struct img_rule *r = img_at(p, IMG_RULE, i);
        const struct img_match *m = img_at(p, IMG_MATCH, r->match.first);
        if ((p->never[i] & prefilter_classes(k)) == 0)
            continue;
        said++;
        if (match_fits(k, m, r->verdict == VERDICT_DENY ? ANY_PLACE : ANY_SPELLING) != FIT_NO ||
            match_fits(k, m, AS_WRITTEN) != FIT_NO)
            fail_msg("rule %.*s fits %.*s %.*s:%u?%.*s, but the prefilter drops it", SPAN_FMT(img_span(p, r->id)),
                     SPAN_FMT(k->method), SPAN_FMT(k->request->scheme), k->request->port,
                     SPAN_FMT(k->request->query));
    }
    return said;
}

static const char rules[] =
    HEAD "  - { id: a, decide: allow, match: { host: a.example, method: GET } }\n"
         "  - { id: b, decide: hold, match: { host: a.example, method: [POST, PATCH], effect: write } }\n"
         "  - { id: c, decide: deny, match: { host: a.example, method: DELETE } }\n"
         "  - { id: d, decide: deny, match: { host: a.example } }\n"
         "  - { id: e, decide: deny, match: { host: a.example, port: [8443, 80] } }\n"
         "  - { id: f, decide: hold, match: { host: a.example, port: 8443, scheme: [http, https] } }\n"
         "  - { id: g, decide: allow, match: { host: a.example, scheme: http } }\n"
         "  - { id: h, decide: allow, match: { host: a.example, op: [http.get, http.head] } }\n"
         "  - { id: i, decide: hold, match: { host: a.example, op: \"http.*\" } }\n"
         "  - { id: j, decide: hold, match: { host: a.example, op: http.override } }\n"
         "  - { id: k, decide: hold, match: { host: a.example, query: { q: \"*\" } } }\n"
         "  - { id: l, decide: hold, match: { host: a.example, query_names: [q] } }\n"
         "  - { id: m, decide: allow, match: { host: a.example, ws: {} } }\n"
         "  - { id: o, decide: deny, match: { host: a.example, effect: [read, delete] } }\n";

static void sound(void **state)
{
    static const char *const methods[] = {"GET", "get", "HEAD", "POST", "Patch", "DELETE", "OPTIONS", "X", ""};
    static const char *const ops[] = {"http.get", "http.head", "http.post", "http.override", "git.push", "x", ""};
    static const char *const schemes[] = {"https", "http"};
    static const char *const queries[] = {"", "q=1", "r"};
    static const uint16_t ports[] = {443, 80, 8443, 1};
    enum { ALL = 9 * 7 * 2 * 3 * 4 * 8 * 7 };
    size_t said = 0;
    struct kit k;
    (void)state;
    if (!kit_load(&k, rules, NULL))
        fail_msg("%s", k.e.text);
    for (size_t i = 0; i < ALL; i++) {
        size_t n = i;
        struct span method = span_str(methods[n % 9]), op = span_str(ops[n / 9 % 7]);
        n /= 63;
        struct request r =
            request_of(method, span_str(schemes[n % 2]), ports[n / 2 % 4], span_str(queries[n / 8 % 3]));
        n /= 24;
        struct ask ask = ask_of(k.p, &r, op, (enum effect)(n / 8));
        ask.arena = &k.a;
        ask.upgrade = n % 2;
        ask.lifted = ask.upgrade && n / 2 % 2;
        ask.overridden = n / 4 % 2;
        ask_written(&ask);
        said += agree(k.p, &ask);
    }
    assert_in_range(said, ALL, SIZE_MAX);
    kit_free(&k);
}

/* How many of a hundred rules about one host are looked at, when a word tells them from the request. */
static void few(void **state)
{
    static const char *const differ[] = {
        "method: POST", "method: [PUT, DELETE]", "effect: write", "op: http.post", "op: http.options",
        "scheme: http", "query: { q: a }",       "ws: {}",        "port: 8444",    "effect: [delete]"};
    static char yaml[16 * 1024];
    struct kit k;
    size_t n = (size_t)snprintf(yaml, sizeof(yaml), HEAD);
    (void)state;
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(yaml + n, sizeof(yaml) - n,
                              "  - { id: r%d, decide: %s, match: { host: a.example, %s } }\n", i,
                              i % 2 ? "hold" : "allow", differ[i / 10]);
    assert_true(kit_load(&k, yaml, NULL));
    struct request r = request_of(SPAN("GET"), SPAN("https"), 443, SPAN_NONE);
    struct ask ask = ask_of(k.p, &r, SPAN("http.get"), EFFECT_READ);
    assert_int_equal(agree(k.p, &ask), 100);
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sound), cmocka_unit_test(few)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
