/* What the desk has the keeper ask a provider, and what comes back of it. */
#include "tests/unit/keeper/keeper_world.h"

#include "proxy/keeper/oidc/oidc.h"

static struct chan *desk;

static void settings(void)
{
    static const char *const more[] = {"desk_url",    "https://desk.example",
                                       "oidc_issuer", "https://login.example",
                                       "oidc_client", "desk-client-id",
                                       "oidc_secret", "kept",
                                       "oidc_token",  "https://login.example/token",
                                       "oidc_claim",  "sub"};
    keeper_told = more;
    nkeeper_told = sizeof(more) / sizeof(more[0]);
}

static int setup_with(void **state)
{
    settings();
    int bad = setup(state);
    desk = introduce(ROLE_DESK);
    await(1);
    assert_int_equal(got[0].type, M_PASSKEYS);
    return bad;
}

static int teardown_with(void **state)
{
    nkeeper_told = 0;
    chan_free(&desk);
    return teardown(state);
}

#define WITH(f) cmocka_unit_test_setup_teardown(f, setup_with, teardown_with)

static void bring(uint64_t id, struct span code)
{
    struct dynbuf *b = chan_begin(desk, M_OIDC, id);
    msg_put_span(b, code);
    msg_put_span(b, SPAN("the-verifier"));
    msg_put_span(b, SPAN("the-nonce"));
    assert_int_equal(chan_commit(desk), 0);
}

static void is_said(size_t i, uint64_t id, struct span value, const char *why)
{
    struct msg_in m = msg_in(payload(i));
    assert_int_equal(got[i].type, M_OIDC_SAID);
    assert_int_equal(got[i].id, id);
    assert_int_equal(msg_get_bool(&m), value.n > 0);
    assert_true(span_eq(msg_get_span(&m, 128), value));
    struct span words = msg_get_span(&m, 512);
    assert_int_equal(msg_end(&m), 0);
    if (span_find(words, span_str(why)) == words.n && why[0] != '\0')
        fail_msg("%.*s", SPAN_FMT(words));
}

static void keep_secret(void)
{
    char text[512];
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", sock);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    int n = snprintf(text, sizeof(text),
                     "PUT /v1/secrets/kept HTTP/1.1\r\nHost: keeper\r\nContent-Length: 15\r\n"
                     "Connection: close\r\n\r\nclient-canary-1");
    assert_int_equal(write(fd, text, (size_t)n), n);
    assert_true(read(fd, text, sizeof(text)) > 12);
    assert_memory_equal(text, "HTTP/1.1 204", 12);
    close(fd);
    settle();
}

static void the_desk_says_what_was_brought_and_nothing_else(void **state)
{
    bring(7, SPAN("the-code"));
    await(1);
    is_said(0, 7, SPAN_NONE, "cannot be asked now"); /* there is no fetcher */
    fetcher = introduce(ROLE_FETCHER);
    settle();
    bring(8, SPAN("the-code"));
    await(1);
    is_said(0, 8, SPAN_NONE, "nothing of that name is in the store");
    keep_secret();
    bring(9, SPAN("the-code"));
    await(1);
    assert_int_equal(got[0].type, M_FETCH);
    static struct wire_fetch f;
    struct msg_in m = msg_in(payload(0));
    assert_int_equal(wire_get_fetch(&m, &f), 0);
    assert_int_equal(f.kind, FETCH_OIDC);
    assert_true(span_eq(f.to.host, SPAN("login.example")) && f.to.port == 443);
    static const struct wire_setting want[] = {{SPAN("url"), SPAN("https://login.example/token")},
                                               {SPAN("client_id"), SPAN("desk-client-id")},
                                               {SPAN("client_secret"), SPAN("client-canary-1")},
                                               {SPAN("issuer"), SPAN("https://login.example")},
                                               {SPAN("claim"), SPAN("sub")},
                                               {SPAN("code"), SPAN("the-code")},
                                               {SPAN("code_verifier"), SPAN("the-verifier")},
                                               {SPAN("nonce"), SPAN("the-nonce")},
                                               {SPAN("redirect_uri"), SPAN("https://desk.example/sign-in/oidc")}};
    assert_int_equal(f.nsettings, sizeof(want) / sizeof(want[0]));
    for (size_t i = 0; i < f.nsettings; i++)
        assert_true(span_eq(wire_setting(&f, want[i].key, 0), want[i].value));
    fetched(got[0].id, SPAN("alice"), SPAN_NONE);
    await(1);
    is_said(0, 9, SPAN("alice"), "");
    static uint8_t large[OIDC_CODE_MAX + 1];
    bring(10, span_of(large, sizeof(large)));
    await(1);
    is_said(0, 10, SPAN_NONE, "cannot be read");
    bring(10, SPAN_NONE);
    await(1);
    is_said(0, 10, SPAN_NONE, "cannot be read");
}

static void so_many_at_once(void **state)
{
    uint64_t first = 0;
    fetcher = introduce(ROLE_FETCHER);
    settle();
    keep_secret();
    for (uint64_t i = 0; i < OIDC_ASKED_MOST; i++) {
        bring(100 + i, SPAN("c"));
        await(1);
        assert_int_equal(got[0].type, M_FETCH);
        first = first ? first : got[0].id;
    }
    bring(200, SPAN("c"));
    await(1);
    is_said(0, 200, SPAN_NONE, "too many sign in at once");
    fetched(first, SPAN_NONE, SPAN("the token endpoint answered 400"));
    await(1);
    is_said(0, 100, SPAN_NONE, "answered 400");
    fetched(first, SPAN("mallory"), SPAN_NONE); /* once more: nobody waits for it */
    bring(201, SPAN("c"));
    await(1);
    assert_int_equal(got[0].type, M_FETCH);
}

/* A desk that was started again numbers its questions anew: it is told nothing of another's. */
static void what_another_desk_asked_is_told_to_nobody(void **state)
{
    fetcher = introduce(ROLE_FETCHER);
    settle();
    keep_secret();
    bring(1, SPAN("c"));
    await(1);
    uint64_t first = got[0].id;
    chan_free(&desk);
    settle();
    desk = introduce(ROLE_DESK);
    await(1);
    assert_int_equal(got[0].type, M_PASSKEYS);
    bring(1, SPAN("d"));
    await(1);
    uint64_t second = got[0].id;
    assert_int_equal(got[0].type, M_FETCH);
    assert_int_not_equal(first, second);
    fetched(first, SPAN("mallory"), SPAN_NONE);
    fetched(second, SPAN("alice"), SPAN_NONE);
    await(1);
    is_said(0, 1, SPAN("alice"), "");
    bring(2, SPAN("e"));
    await(1);
    chan_free(&fetcher);
    await(2); /* the parent hears that it is lost */
    is_said(got[0].type == M_OIDC_SAID ? 0 : 1, 2, SPAN_NONE, "has ended");
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH(the_desk_says_what_was_brought_and_nothing_else), WITH(so_many_at_once),
                                       WITH(what_another_desk_asked_is_told_to_nobody)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
