/* What the ledger has the keeper ask a gate, and what comes back of it. */
#include "proxy/keeper/tell/tell.h"
#include "tests/unit/keeper/keeper_world.h"

static void ask_named(struct span name, const struct id *ticket, const struct digest *of)
{
    struct dynbuf *b = chan_begin(ledger, M_GATE, 1); /* as each ledger numbers its first */
    msg_put_id(b, ticket);
    msg_put_digest(b, of);
    msg_put_span(b, name);
    msg_put_span(b, SPAN("{\"input\":1,\"body\":{\"size\":2"));
    msg_put_span(b, SPAN("aGk="));
    msg_put_u8(b, true);
    assert_int_equal(chan_commit(ledger), 0);
}

static void ask_gate(const struct id *ticket, const struct digest *of)
{
    ask_named(SPAN("scan"), ticket, of);
}

static struct span words; /* of what it was told last */

/* What the ledger is told is of this ticket. */
static uint8_t gated_by(size_t i, struct span name, const struct id *ticket)
{
    struct msg_in m = msg_in(payload(i));
    struct id of;
    assert_int_equal(got[i].type, M_GATED);
    assert_int_equal(got[i].id, 1);
    msg_get_id(&m, &of);
    assert_memory_equal(&of, ticket, sizeof(of));
    assert_true(span_eq(msg_get_span(&m, 256), name));
    uint8_t said = msg_get_u8(&m);
    words = msg_get_span(&m, 512);
    assert_int_equal(msg_end(&m), 0);
    return said;
}

static uint8_t gated(size_t i, const struct id *ticket)
{
    return gated_by(i, SPAN("scan"), ticket);
}

static void a_gate_that_cannot_be_asked_now_may_be_later(void **state)
{
    const struct id one = {{1}};
    struct digest before = scan;
    ask_gate(&one, &scan);
    await(1);
    assert_int_equal(gated(0, &one), GATE_NOT_ASKED); /* there is no fetcher */
    fetcher = introduce(ROLE_FETCHER);
    settle();
    send_image_of("  - { id: b, match: { host: b.example, effect: read }, decide: allow }\n", "/bin/scan");
    await(1);
    assert_int_equal(got[0].type, M_SECRETS);
    ask_gate(&one, &before); /* another policy, the same gate */
    await(1);
    assert_int_equal(got[0].type, M_FETCH);
    assert_true(says(0, SPAN("--strict")) &&
                says(0, SPAN("{\"input\":1,\"body\":{\"size\":2,\"base64\":\"aGk=\",\"complete\":true}}")));
    not_begun(got[0].id, SPAN("too many values are being fetched"));
    await(1);
    assert_int_equal(gated(0, &one), GATE_NOT_ASKED); /* nobody's store that hangs decides for it */
    send_image_of("", "/bin/scan2");
    await(1);
    ask_gate(&one, &before); /* a gate of the same name: another program would run */
    await(1);
    assert_int_equal(gated(0, &one), GATE_NOT_ASKED);
}

static void what_a_gate_said_is_of_the_ticket_it_was_asked_about(void **state)
{
    const struct id one = {{1}}, two = {{2}};
    fetcher = introduce(ROLE_FETCHER);
    settle();
    ask_gate(&one, &scan);
    await(1);
    assert_int_equal(got[0].type, M_FETCH);
    uint64_t first = got[0].id;
    chan_free(&ledger);
    await(1); /* the parent hears that it is lost */
    ledger = introduce(ROLE_LEDGER);
    await(1);
    assert_int_equal(got[0].type, M_DATA_KEY);
    ask_gate(&two, &scan);
    await(1);
    assert_int_equal(got[0].type, M_FETCH);
    assert_int_not_equal(got[0].id, first);
    uint64_t second = got[0].id;
    fetched(first, span_of((const uint8_t[]){GATE_DENY}, 1), SPAN_NONE); /* nobody there asked it */
    fetched(second, span_of((const uint8_t[]){GATE_ALLOW}, 1), SPAN_NONE);
    await(1);
    assert_int_equal(gated(0, &two), GATE_ALLOW);
}

#define KEY "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
static const struct span key = SPAN("whsec_" KEY);

static void keep(const char *name, struct span value)
{
    char text[512];
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", sock);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    int n = snprintf(text, sizeof(text),
                     "PUT /v1/secrets/%s HTTP/1.1\r\nHost: keeper\r\nContent-Length: %zu\r\n"
                     "Connection: close\r\n\r\n%.*s",
                     name, value.n, SPAN_FMT(value));
    assert_int_equal(write(fd, text, (size_t)n), n);
    assert_true(read(fd, text, sizeof(text)) > 12);
    assert_memory_equal(text, "HTTP/1.1 204", 12);
    close(fd);
    settle();
}

static void keep_key(void)
{
    keep("hook-key", key);
}

/* A gate "hook", the first by its name: `scan` is its digest. */
static void send_hook(const char *more)
{
    char text[512];
    snprintf(
        text, sizeof(text),
        "/bin/scan, --strict] }\n  hook: { webhook: \"https://hooks.example/a\", secret: { store: hook-key }%s }\n"
        "  other: { program: [/bin/other",
        more);
    send_image_of("", text);
    await(1);
    assert_int_equal(got[0].type, M_SECRETS);
}

static struct wire_fetch *hook_asked(const struct id *ticket)
{
    static struct wire_fetch f;
    ask_named(SPAN("hook"), ticket, &scan);
    await(1);
    assert_int_equal(got[0].type, M_FETCH);
    struct msg_in m = msg_in(payload(0));
    assert_int_equal(wire_get_fetch(&m, &f), 0);
    assert_int_equal(msg_end(&m), 0);
    return &f;
}

static void a_webhook_is_signed_here_and_sent_what_it_may_see(void **state)
{
    const struct id one = {{1}};
    struct err e;
    struct dynbuf signature;
    uint64_t seconds;
    fetcher = introduce(ROLE_FETCHER);
    settle();
    send_hook("");
    ask_named(SPAN("hook"), &one, &scan);
    await(1);
    assert_int_equal(gated_by(0, SPAN("hook"), &one), GATE_NOT_ASKED);
    assert_true(span_find(words, SPAN("no stored secret hook-key")) < words.n);
    keep_key();
    const struct wire_fetch *f = hook_asked(&one);
    assert_int_equal(f->kind, FETCH_GATE_HOOK);
    assert_true(span_eq(f->to.host, SPAN("hooks.example")) && f->to.port == 443 && f->to.ncidrs == 0);
    assert_true(span_eq(f->input, SPAN("{\"input\":1,\"body\":{\"size\":2,\"complete\":false}}")));
    assert_false(says(0, SPAN(KEY)) || says(0, SPAN("aGk=")));
    struct span id = wire_setting(f, SPAN("field.webhook-id"), 0);
    assert_true(span_starts(id, SPAN("gate_")));
    assert_int_equal(span_u64(wire_setting(f, SPAN("field.webhook-timestamp"), 0), UINT64_MAX, &seconds), 0);
    dynbuf_init(&signature, 128);
    assert_int_equal(tell_sign(key, id, seconds, f->input, &signature, &e), 0);
    assert_true(span_eq(wire_setting(f, SPAN("field.webhook-signature"), 0), dynbuf_span(&signature)));
    dynbuf_free(&signature);
    fetched(got[0].id,
            SPAN("\x01"
                 "fine"),
            SPAN_NONE);
    await(1);
    assert_int_equal(gated_by(0, SPAN("hook"), &one), GATE_ALLOW);
    send_hook(", body: true");
    f = hook_asked(&one);
    assert_true(span_eq(f->input, SPAN("{\"input\":1,\"body\":{\"size\":2,\"base64\":\"aGk=\",\"complete\":true}}")));
}

/* F: who reads the words is a person, or the sandbox. */
static void an_answer_does_not_bring_the_key_back(void **state)
{
    static const struct span bad[] = {
        SPAN("\x02"
             "the key is whsec_" KEY),
        SPAN("\x02" KEY),
        SPAN("\x02 4d664b51397238474b59717254776a55504438494c505a496f324c614c615377"),
        SPAN("\x02 xx4D664B51397238474B59717254776A55504438494C505A496F324C614C615377"),
        SPAN("\x02 TWZLUTlyOEdLWXFyVHdqVVBEOElMUFpJbzJMYUxhU3c="),
        SPAN("\x02 eE1mS1E5cjhHS1lxclR3alVQRDhJTFBaSW8yTGFMYVN3"),
        SPAN("\x02 eHhNZktROXI4R0tZcXJUd2pVUEQ4SUxQWklvMkxhTGFTdw"),
    };
    fetcher = introduce(ROLE_FETCHER);
    settle();
    keep_key();
    send_hook("");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct id ticket = {{(uint8_t)(i + 1)}};
        (void)hook_asked(&ticket);
        fetched(got[0].id, bad[i], SPAN_NONE);
        await(1);
        assert_int_equal(gated_by(0, SPAN("hook"), &ticket), GATE_DENY);
        assert_true(span_starts(words, SPAN("its words are left out")));
    }
}

/* A reload that changes where it is asked, or by what secret: nothing of the one before is asked or counts as its. */
static void another_address_or_secret_is_another_gate(void **state)
{
    const struct id one = {{1}};
    static const char *const other[] = {", body: true", ", timeout: 3s"};
    fetcher = introduce(ROLE_FETCHER);
    settle();
    keep_key();
    send_hook("");
    struct digest before = scan;
    for (size_t i = 0; i < 2; i++) {
        send_hook(other[i]);
        assert_memory_not_equal(&before, &scan, sizeof(before));
        ask_named(SPAN("hook"), &one, &before);
        await(1);
        assert_int_equal(gated_by(0, SPAN("hook"), &one), GATE_NOT_ASKED);
        assert_true(span_find(words, SPAN("another gate")) < words.n);
    }
}

/* A gate "hook" that is a model, asked with the credential "store". */
static void send_model(const char *model, const char *more)
{
    char text[512];
    snprintf(text, sizeof(text),
             "/bin/scan, --strict] }\n  hook: { model: %s, api: anthropic, url: \"https://a.example/v1\", "
             "credential: store%s }\n  other: { program: [/bin/other",
             model, more);
    send_image_of("", text);
    await(1);
    assert_int_equal(got[0].type, M_SECRETS);
}

static void a_model_is_asked_with_a_credential_that_may_go_there(void **state)
{
    const struct id one = {{1}};
    char fence[64];
    fetcher = introduce(ROLE_FETCHER);
    settle();
    send_model("m-1", ", instructions: look closely");
    ask_named(SPAN("hook"), &one, &scan);
    await(1);
    assert_int_equal(gated_by(0, SPAN("hook"), &one), GATE_NOT_ASKED); /* it has no value yet */
    keep("kept", SPAN("model-canary-012345"));
    const struct wire_fetch *f = hook_asked(&one);
    assert_int_equal(f->kind, FETCH_GATE_MODEL);
    assert_true(span_eq(f->to.host, SPAN("a.example")) && f->to.port == 443);
    assert_true(span_eq(wire_setting(f, SPAN("field.Authorization"), 0), SPAN("Bearer model-canary-012345")));
    assert_true(span_eq(wire_setting(f, SPAN("field.anthropic-version"), 0), SPAN("2023-06-01")));
    assert_true(span_eq(wire_setting(f, SPAN("model"), 0), SPAN("m-1")) &&
                span_eq(wire_setting(f, SPAN("instructions"), 0), SPAN("look closely")));
    assert_true(span_eq(f->input, SPAN("{\"input\":1,\"body\":{\"size\":2,\"complete\":false}}")));
    struct span first = wire_setting(f, SPAN("fence"), 0);
    assert_int_equal(first.n, ID_TEXT);
    memcpy(fence, first.p, first.n);
    fetched(got[0].id, SPAN("\x01model m-1: it is bW9kZWwtY2FuYXJ5LTAxMjM0NQ=="), SPAN_NONE);
    await(1);
    assert_int_equal(gated_by(0, SPAN("hook"), &one), GATE_ALLOW);
    assert_true(span_starts(words, SPAN("its words are left out")));
    f = hook_asked(&one);
    assert_memory_not_equal(wire_setting(f, SPAN("fence"), 0).p, fence, ID_TEXT);
    struct digest before = scan;
    static const char *const other[][2] = {{"m-2", ", instructions: look closely"}, {"m-1", ""}};
    for (size_t i = 0; i < 2; i++) {
        send_model(other[i][0], other[i][1]);
        ask_named(SPAN("hook"), &one, &before);
        await(1);
        assert_int_equal(gated_by(0, SPAN("hook"), &one), GATE_NOT_ASKED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {FRESH(a_gate_that_cannot_be_asked_now_may_be_later),
                                       FRESH(what_a_gate_said_is_of_the_ticket_it_was_asked_about),
                                       FRESH(a_webhook_is_signed_here_and_sent_what_it_may_see),
                                       FRESH(an_answer_does_not_bring_the_key_back),
                                       FRESH(another_address_or_secret_is_another_gate),
                                       FRESH(a_model_is_asked_with_a_credential_that_may_go_there)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
