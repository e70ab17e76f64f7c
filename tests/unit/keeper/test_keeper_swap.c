/* Tokens that came in answers: kept behind a lease, and released for that lease alone, by the policy as it was. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/identity.h"
#include "proxy/keeper/keeper.h"
#include "proxy/lease/wire_swap.h"
#include "tests/unit/policy/policy_kit.h"

#define TOKENS                                                                                                       \
    "  token:\n"                                                                                                     \
    "    source: { answer: { to: login, token: /token } }\n"                                                         \
    "    inject: { header: Authorization, format: \"Bearer {}\" }\n"                                                 \
    "    lease: generic\n"

static const char policy_text[] = "version: 1\n"
                                  "credentials:\n"
                                  "  login:\n"
                                  "    source: { store: kept }\n"
                                  "    inject: { basic: true }\n"
                                  "    only: [{ host: auth.example }]\n" TOKENS "    only: [{ host: a.example }]\n"
                                  "  keys:\n"
                                  "    source: { answer: { to: login, token: /id, key: /key, session_token: /t } }\n"
                                  "    inject: { tc3: { service: tcb } }\n"
                                  "    lease: tencent\n"
                                  "    only: [{ host: k.example }]\n"
                                  "  beside:\n"
                                  "    source: { env: BESIDE }\n"
                                  "    inject: { header: X-Key, format: \"{}\" }\n"
                                  "    only: [{ host: a.example }]\n";
static const char other_text[] =
    "version: 1\n"
    "credentials:\n"
    "  login:\n"
    "    source: { store: kept }\n"
    "    inject: { basic: true }\n"
    "    only: [{ host: auth.example }]\n" TOKENS "    only: [{ host: a.example }, { host: b.example }]\n";

static struct keeper k;
static struct kit kit, other;

void keeper_expire(struct keeper *of)
{
    (void)of;
}

static void no_frame(void *arg, struct chan *c, struct frame *f)
{
}

static void gone(void *arg, struct chan *c)
{
}

static int setup(void **state)
{
    char *env[] = {NULL};
    struct err e;
    struct secret *master = secret_new(SPAN("0123456789abcdef0123456789abcdef"));
    if (!kit_load(&kit, policy_text, NULL) || !kit_load(&other, other_text, NULL))
        fail_msg("%s%s", kit.e.text, other.e.text);
    k = (struct keeper){.loop = loop_new(), .tokens = tokens_new(), .lease_root = lease_root(master)};
    secret_free(&master);
    k.sources = sources_new(0);
    assert_int_equal(sources_take_env(k.sources, env, &e), 0);
    k.releaser = releaser_new(k.sources, NULL, k.tokens);
    k.policy = kit.p;
    releaser_policy(k.releaser, kit.p);
    return 0;
}

static int teardown(void **state)
{
    releaser_free(&k.releaser);
    sources_free(&k.sources);
    tokens_free(&k.tokens);
    secret_free(&k.lease_root);
    loop_free(&k.loop);
    kit_free(&kit);
    kit_free(&other);
    return 0;
}

/* What it is answered, in b, which the caller frees. */
static struct msg_in give(struct span credential, struct span value, struct span key, struct dynbuf *b)
{
    static const struct chan_ops ops = {no_frame, gone};
    struct dynbuf q;
    int fd[2];
    struct frame f = {.type = M_SWAP, .id = 5}, got;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    assert_int_equal(fcntl(fd[0], F_SETFL, O_NONBLOCK), 0);
    k.carrier = chan_new(k.loop, fd[0], &ops, NULL);
    dynbuf_init(&q, 4096);
    msg_put_u8(&q, 1);
    msg_put_span(&q, credential);
    msg_put_span(&q, value);
    msg_put_span(&q, key);
    msg_put_span(&q, key.n ? SPAN("canary-session") : SPAN_NONE);
    msg_put_u64(&q, 60000);
    f.payload = dynbuf_span(&q);
    keeper_swap(&k, &f);
    assert_int_equal(span_find(dynbuf_span(&q), SPAN("canary")), q.n); /* wiped in the channel's buffer */
    dynbuf_free(&q);
    chan_free(&k.carrier); /* which sends what is queued */
    dynbuf_init(b, 4096);
    assert_int_equal(chan_read_one(fd[1], &got, b), 0);
    close(fd[1]);
    assert_true(got.type == M_SWAPPED && got.id == 5);
    return msg_in(got.payload);
}

static struct release_ask ask_for(const char *credential, const struct id *lease)
{
    struct release_ask a = {.xid = 6,
                            .credential = span_str(credential),
                            .scheme = SPAN("https"),
                            .host = SPAN("a.example"),
                            .path = SPAN("/x"),
                            .port = 443,
                            .now_ms = loop_wall(k.loop),
                            .lease = *lease};
    assert_int_equal(identity_of_place(k.policy, a.scheme, a.host, a.port, &a.place), 0);
    return a;
}

/* The value, or the code it was refused with. */
static void expect(const char *credential, const struct id *lease, uint64_t later_ms, const char *value)
{
    struct release_ask a = ask_for(credential, lease);
    struct release r;
    a.now_ms += later_ms;
    bool given = releaser_ask(k.releaser, &a, &r) == RELEASE_GIVEN;
    struct span is = given ? secret_bytes(r.value) : span_str(r.code);
    if (!span_eq(is, span_str(value)))
        fail_msg("%.*s, and not %s", SPAN_FMT(is), value);
    if (given && r.value != NULL) { /* its answer is searched for it */
        assert_int_equal(r.nscrub, 1);
        assert_true(span_ends(is, secret_bytes(r.scrub[0])) && r.ttl_ms == 0);
    }
    release_clear(&r);
}

static struct id keep_one(void)
{
    struct wire_swapped w;
    struct digest text;
    struct dynbuf b;
    struct msg_in m = give(SPAN("token"), SPAN("token-canary-0123"), SPAN_NONE, &b);
    assert_int_equal(msg_get_u8(&m), 1);
    assert_int_equal(msg_get_span(&m, 64).n, 0);
    assert_int_equal(wire_get_swapped(&m, &w), 0);
    struct span lease = msg_get_span(&m, LEASE_TEXT_MAX);
    assert_int_equal(msg_get_span(&m, LEASE_TEXT_MAX).n, 0);
    assert_int_equal(msg_end(&m), 0);
    digest_of(lease, &text);
    assert_true(span_starts(lease, SPAN("cs_")) && memcmp(&text, &w.text, sizeof(text)) == 0);
    assert_true(span_find(lease, w.tag) == 3 && span_eq(w.credential, SPAN("token")));
    dynbuf_free(&b);
    return w.lease;
}

static void kept_behind_its_lease(void **state)
{
    struct id lease = keep_one(), another = lease;
    another.b[15] ^= 1;
    expect("token", &lease, 0, "Bearer token-canary-0123");
    expect("token", &another, 0, "token-gone");
    expect("token", &(struct id){{0}}, 0, "token-gone");
    expect("token", &lease, 61000, "token-gone");
    expect("beside", &lease, 0, "credential-unavailable"); /* it has no value, and is not given the token's */
    tokens_drop(k.tokens, 5);
    expect("token", &lease, 0, "token-gone");
}

static void keys_to_sign_with_are_kept_as_one(void **state)
{
    struct wire_swapped w;
    struct credential c;
    struct digest meaning;
    struct dynbuf b;
    size_t at = 0;
    struct msg_in m = give(SPAN("keys"), SPAN("AKIDcanary0123456789"), SPAN("canary-key-0123"), &b);
    assert_int_equal(msg_get_u8(&m), 1);
    (void)msg_get_span(&m, 64);
    assert_int_equal(wire_get_swapped(&m, &w), 0);
    struct span id = msg_get_span(&m, LEASE_TEXT_MAX), secret = msg_get_span(&m, LEASE_TEXT_MAX);
    assert_true(msg_end(&m) == 0 && span_starts(id, SPAN("AKID")) && secret.n > 0);
    while (policy_credential(k.policy, at, &c) && !span_eq(c.name, SPAN("keys")))
        at++;
    assert_int_equal(identity_of_credential(k.policy, at, &meaning), 0);
    const struct secret *kept = tokens_find(k.tokens, &w.lease, &meaning, loop_wall(k.loop));
    assert_true(span_eq(secret_bytes(kept), SPAN("AKIDcanary0123456789:canary-key-0123:canary-session")));
    dynbuf_free(&b);
}

/* A reload lets it go to another place as well: what was kept for the first is not for that. */
static void of_the_policy_as_it_was(void **state)
{
    struct id lease = keep_one();
    k.policy = other.p;
    releaser_policy(k.releaser, other.p);
    expect("token", &lease, 0, "token-gone");
    k.policy = kit.p;
    releaser_policy(k.releaser, kit.p);
    expect("token", &lease, 0, "Bearer token-canary-0123");
}

static void what_cannot_be_a_token_is_not_kept(void **state)
{
    static const struct {
        struct span credential, value, key;
    } rows[] = {{.credential = SPAN("login"), .value = SPAN("user:token-canary-0123")},
                {.credential = SPAN("nobody"), .value = SPAN("token-canary-0123")},
                {.credential = SPAN("token"), .value = SPAN("canary")},
                {.credential = SPAN("token"), .value = SPAN("token-canary\r\nX: y")},
                {.credential = SPAN("token"), .value = SPAN("token-canary-0123 ")},
                {SPAN("token"), SPAN("token-canary-0123"), SPAN("canary-key-0123")},
                {.credential = SPAN("keys"), .value = SPAN("AKIDcanary0123456789")},
                {SPAN("keys"), SPAN("AKID0123:canary01"), SPAN("canary-key-0123")},
                {SPAN("keys"), SPAN("AKIDcanary0123456789"), SPAN("canary-k:ey-01234")}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct dynbuf b;
        struct msg_in m = give(rows[i].credential, rows[i].value, rows[i].key, &b);
        assert_int_equal(msg_get_u8(&m), 0);
        struct span why = msg_get_span(&m, 512);
        assert_true(msg_end(&m) == 0 && why.n > 0 && span_find(why, SPAN("canary")) == why.n);
        dynbuf_free(&b);
    }
}

#define FRESH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(kept_behind_its_lease),
        FRESH(keys_to_sign_with_are_kept_as_one),
        FRESH(of_the_policy_as_it_was),
        FRESH(what_cannot_be_a_token_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
