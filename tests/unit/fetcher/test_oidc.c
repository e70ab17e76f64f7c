/* Who an ID token says that somebody is: its claims one by one. Covers E26 (oidc). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "common/arena.h"
#include "common/id.h"
#include "proxy/fetcher/job/sources.h"

enum { NOW = 1700000000 };

static const struct wire_fetch asked = {.kind = FETCH_OIDC,
                                        .nsettings = 7,
                                        .setting = {{SPAN("issuer"), SPAN("https://login.example")},
                                                    {SPAN("client_id"), SPAN("desk")},
                                                    {SPAN("nonce"), SPAN("n-1")},
                                                    {SPAN("claim"), SPAN("preferred_username")},
                                                    {SPAN("code"), SPAN("a+b/c=")},
                                                    {SPAN("redirect_uri"), SPAN("https://desk.example/sign-in/oidc")},
                                                    {SPAN("code_verifier"), SPAN("verifier")}}};

static void part(char *out, size_t cap, const char *json)
{
    char b64[4096];
    size_t n = base64_encode(span_str(json), b64), at = strlen(out);
    while (n > 0 && b64[n - 1] == '=')
        n--;
    for (size_t i = 0; i < n; i++)
        b64[i] = (char)(b64[i] == '+' ? '-' : b64[i] == '/' ? '_' : b64[i]);
    (void)snprintf(out + at, cap - at, "%.*s", (int)n, b64);
}

/* An answer with an ID token of this head and these claims. */
static struct span answer_of(const char *head, const char *claims)
{
    static char out[8192];
    (void)snprintf(out, sizeof(out), "{\"access_token\":\"x\",\"token_type\":\"Bearer\",\"id_token\":\"");
    part(out, sizeof(out), head);
    strcat(out, ".");
    part(out, sizeof(out), claims);
    strcat(out, ".c2lnbmVk\"}");
    return span_str(out);
}

static void says(const struct wire_fetch *f, struct span answer, const char *name, const char *why)
{
    struct wire_fetched got;
    struct err e = {{0}};
    struct arena a;
    arena_init(&a, 8 * 1024 * 1024);
    int rc = oidc_answer(answer, f, NOW, &a, &got, &e);
    if (name != NULL && (rc != 0 || !span_eq(got.value, span_str(name))))
        fail_msg("%.*s: %s", SPAN_FMT(answer), e.text);
    if (name == NULL && (rc == 0 || strstr(e.text, why) == NULL))
        fail_msg("%.*s: %d %s", SPAN_FMT(answer), rc, e.text);
    arena_free(&a);
}

/* What is left out of the claims below, or stands in the place of what begins alike. */
static struct span with(const char *name, const char *instead)
{
    static const char *const rows[] = {"\"iss\":\"https://login.example\"",
                                       "\"aud\":\"desk\"",
                                       "\"sub\":\"a1\"",
                                       "\"nonce\":\"n-1\"",
                                       "\"iat\":1700000000",
                                       "\"exp\":1700000300",
                                       "\"preferred_username\":\"alice\""};
    char claims[2048] = "{";
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *row = n > 0 && strncmp(rows[i] + 1, name, n) == 0 ? instead : rows[i];
        if (row[0] != '\0')
            (void)snprintf(claims + strlen(claims), 512, "%s%s", claims[1] ? "," : "", row);
    }
    if (n == 0 && instead[0] != '\0')
        (void)snprintf(claims + strlen(claims), 512, ",%s", instead);
    strcat(claims, "}");
    return answer_of("{\"alg\":\"RS256\"}", claims);
}

static void every_claim_counts(void **state)
{
    static const struct {
        const char *name, *instead, *why; /* why NULL: it is taken */
    } rows[] = {
        {"", "", NULL},
        {"aud", "\"aud\":[\"desk\"]", NULL},
        {"", "\"azp\":\"desk\"", NULL},
        {"exp", "\"exp\":1699999941", NULL},
        {"iat", "\"iat\":1700000060", NULL},
        {"iat", "\"iat\":1699999340", NULL},
        {"", "\"nbf\":1700000060", NULL},
        {"iss", "", "another issuer"},
        {"iss", "\"iss\":\"https://login.example/\"", "another issuer"},
        {"iss", "\"iss\":[\"https://login.example\"]", "another issuer"},
        {"aud", "", "not for this client alone"},
        {"aud", "\"aud\":\"Desk\"", "not for this client alone"},
        {"aud", "\"aud\":[]", "not for this client alone"},
        {"aud", "\"aud\":[\"desk\",\"other\"]", "not for this client alone"},
        {"aud", "\"aud\":[[\"desk\"]]", "not for this client alone"},
        {"", "\"azp\":\"other\"", "not for this client alone"},
        {"", "\"azp\":null", "not for this client alone"},
        {"sub", "", "no sub"},
        {"sub", "\"sub\":1", "no sub"},
        {"nonce", "", "another sign-in"},
        {"nonce", "\"nonce\":\"n-2\"", "another sign-in"},
        {"nonce", "\"nonce\":\"\"", "another sign-in"},
        {"exp", "", "does not say when"},
        {"exp", "\"exp\":\"1700000300\"", "does not say when"},
        {"exp", "\"exp\":1e99", "does not say when"},
        {"exp", "\"exp\":1699999940", "has expired"},
        {"iat", "", "does not say when"},
        {"iat", "\"iat\":1700000061", "of the future"},
        {"iat", "\"iat\":1699999339", "made long ago"},
        {"", "\"nbf\":1700000061", "of the future"},
        {"", "\"nbf\":\"x\"", "nbf"},
        {"preferred", "", "no claim preferred_username"},
        {"preferred", "\"preferred_username\":\"\"", "no claim preferred_username"},
        {"preferred", "\"preferred_username\":1", "no claim preferred_username"},
        {"preferred", "\"preferred_username\":\"uid 0\"", "no name that a person here can have"},
        {"preferred", "\"preferred_username\":\"alice\\u0000\"", ""},
        {"preferred", "\"preferred_username\":\"al\\u00efce\"", "no name that a person here can have"},
        {"preferred", "\"preferred_username\":\"alice\",\"preferred_username\":\"bob\"", "cannot be read"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        says(&asked, with(rows[i].name, rows[i].instead), rows[i].why ? NULL : "alice", rows[i].why);
}

static void an_address_counts_once_it_is_verified(void **state)
{
    struct wire_fetch f = asked;
    f.setting[3].value = SPAN("email");
    says(&f, with("", "\"email\":\"a@b.example\",\"email_verified\":true"), "a@b.example", NULL);
    says(&f, with("", "\"email\":\"a@b.example\""), NULL, "verified");
    says(&f, with("", "\"email\":\"a@b.example\",\"email_verified\":false"), NULL, "verified");
    says(&f, with("", "\"email\":\"a@b.example\",\"email_verified\":\"true\""), NULL, "verified");
    says(&f, with("", "\"email\":\"a@b.example\",\"email_verified\":1"), NULL, "verified");
    says(&f, with("", "\"email_verified\":true"), NULL, "no claim email");
    f.setting[3].value = SPAN("sub");
    says(&f, with("", ""), "a1", NULL);
}

static void what_is_no_signed_token_says_nothing(void **state)
{
    static const struct {
        const char *answer, *why;
    } rows[] = {{"", "not a JSON object"},
                {"[]", "not a JSON object"},
                {"{}", "no id_token"},
                {"{\"id_token\":1}", "no id_token"},
                {"{\"id_token\":\"e30\"}", "not a signed JWT"},
                {"{\"id_token\":\"e30.e30\"}", "not a signed JWT"},
                {"{\"id_token\":\"e30.e30.a.b.c\"}", "not a signed JWT"},
                {"{\"id_token\":\"e30.e30.\"}", "not signed"},
                {"{\"id_token\":\"e30.e30.a\"}", "not signed"},
                {"{\"id_token\":\".e30.a\"}", "cannot be read"},
                {"{\"id_token\":\"e3+.e30.a\"}", "cannot be read"},
                {"{\"id_token\":\"W10.e30.a\"}", "cannot be read"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        says(&asked, span_str(rows[i].answer), NULL, rows[i].why);
    says(&asked, answer_of("{\"alg\":\"none\"}", "{}"), NULL, "not signed");
    says(&asked, answer_of("{\"alg\":\"NONE\"}", "{}"), NULL, "not signed");
    says(&asked, answer_of("{\"alg\":\"RS256\"}", "{}"), NULL, "another issuer");
}

/* Without what it must be compared with nothing is the same. */
static void what_is_not_asked_for_is_not_taken(void **state)
{
    for (size_t i = 0; i < 3; i++) {
        struct wire_fetch f = asked;
        f.setting[i].value = SPAN_NONE;
        says(&f, with("", ""), NULL, "not known");
    }
}

static void the_question(void **state)
{
    struct dynbuf form;
    struct err e;
    dynbuf_init(&form, 4096);
    assert_int_equal(oidc_question(&asked, &form, &e), 0);
    assert_true(
        span_eq(dynbuf_span(&form),
                SPAN("grant_type=authorization_code&code=a%2Bb%2Fc%3D&redirect_uri=https%3A%2F%2Fdesk.example%"
                     "2Fsign-in%2Foidc&code_verifier=verifier")));
    for (size_t i = 4; i < 7; i++) {
        struct wire_fetch f = asked;
        f.setting[i].value = SPAN_NONE;
        dynbuf_reset(&form);
        assert_int_equal(oidc_question(&f, &form, &e), -1);
    }
    dynbuf_free(&form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_claim_counts), cmocka_unit_test(an_address_counts_once_it_is_verified),
        cmocka_unit_test(what_is_no_signed_token_says_nothing), cmocka_unit_test(what_is_not_asked_for_is_not_taken),
        cmocka_unit_test(the_question)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
