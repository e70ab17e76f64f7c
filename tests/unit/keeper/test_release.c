/* What the keeper releases and what it does not, with a policy made of a table: D15 D24 D36. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "policy/identity.h"
#include "proxy/keeper/keep.h"
#include "proxy/keeper/release.h"
#include "proxy/keeper/sources/tokens.h"
#include "proxy/wire_ticket.h"

/* The policy: host a.example takes all but "other", below /api only; open.example has http with leave. */
struct policy {
    int unused;
};
static struct policy table;
static const struct {
    struct credential c;
    const char *host;
} creds[] = {
    {{.name = SPAN("file"), .source = SOURCE_FILE, .source_arg = SPAN("/source"), .format = SPAN("Bearer {}")},
     "a.example"},
    {{.name = SPAN("env"), .source = SOURCE_ENV, .source_arg = SPAN("TOKEN"), .header = SPAN("X-Key")}, "a.example"},
    {{.name = SPAN("store"),
      .source = SOURCE_STORE,
      .source_arg = SPAN("kept"),
      .basic = true,
      .basic_user = SPAN("git"),
      .refuse = true},
     "a.example"},
    {{.name = SPAN("other"), .source = SOURCE_STORE, .source_arg = SPAN("kept2")}, "b.example"},
    {{.name = SPAN("open"), .source = SOURCE_STORE, .source_arg = SPAN("kept2")}, "open.example"},
    {{.name = SPAN("nowhere")}, "a.example"},
    {{.name = SPAN("keys"),
      .source = SOURCE_STORE,
      .source_arg = SPAN("pair"),
      .header = SPAN("Authorization"),
      .sign = SIGN_AWS4,
      .region = SPAN("r"),
      .service = SPAN("s3")},
     "s.example"},
    {{.name = SPAN("hook"),
      .source = SOURCE_STORE,
      .source_arg = SPAN("hookkey"),
      .header = SPAN("X-Signature"),
      .sign = SIGN_HMAC,
      .hmac = {.sign = SPAN("{method}\n{body}"),
               .encoding = SIGN_HEX,
               .key = SIGN_BASE64,
               .secret = SIGN_ID_KEY,
               .nfields = 1}},
     "h.example"},
};
enum { CREDS = sizeof(creds) / sizeof(creds[0]) };

bool policy_credential(const struct policy *p, size_t i, struct credential *c)
{
    if (i >= CREDS)
        return false;
    *c = creds[i].c;
    return true;
}

bool policy_signed_field(const struct policy *p, const struct credential *c, size_t i, struct span *name,
                         struct span *format)
{
    *name = SPAN("X-Signature");
    *format = SPAN("{id}={signature}");
    return i < c->hmac.nfields;
}

bool policy_setting(const struct policy *p, const struct credential *c, size_t i, struct setting *out)
{
    return false;
}

const char *policy_source_name(enum source_kind k)
{
    return "?";
}

bool policy_credential_bound(const struct policy *p, size_t i, struct span scheme, struct span host, uint16_t port)
{
    return i < CREDS && span_eq(host, span_str(creds[i].host)) && (port == 443 || port == 80);
}

bool policy_credential_may_go(const struct policy *p, size_t i, struct span scheme, struct span host, uint16_t port,
                              struct span path)
{
    return policy_credential_bound(p, i, scheme, host, port) && span_starts(path, SPAN("/api/"));
}

/* Which of two policies is in force is all that a place differs by here. */
static uint8_t version = 1;
static struct digest place_of_now(void)
{
    struct digest d;
    digest_of(span_of(&version, 1), &d);
    return d;
}

void policy_put_place(const struct policy *p, struct span scheme, struct span host, uint16_t port, struct dynbuf *out)
{
    (void)dynbuf_add_byte(out, version);
}

void policy_put_credential(const struct policy *p, size_t i, struct dynbuf *out)
{
    (void)p, (void)i, (void)out; /* what a release asks for goes by the place */
}

void policy_put_gate(const struct policy *p, const struct gate *g, struct dynbuf *out)
{
    fail_msg("no gate is asked here");
}

void policy_put_terms(const struct policy *p, const struct decision *d, struct dynbuf *out)
{
    (void)dynbuf_add_byte(out, version);
}

bool policy_upstream(const struct policy *p, struct span host, uint16_t port, struct arena *a, struct upstream *u)
{
    u->cleartext_credentials = span_eq(host, SPAN("open.example"));
    return u->cleartext_credentials;
}

static char folder[64], path[80];
static int dir;
static struct err e;
static struct keep keep;
static struct sources *sources;
static struct tokens *tokens;
static struct releaser *releaser;
static EVP_PKEY *ledger;
static uint8_t signature[RELEASE_SIGNATURE];
static const struct digest policy = {{1}};

static void write_file(const char *text, size_t n, unsigned mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, text, n), (ssize_t)n);
    fchmod(fd, mode);
    close(fd);
}

static void give_file(void)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(fd >= 0);
    assert_int_equal(sources_add_file(sources, &policy, SOURCE_FILE, SPAN("/source"), fd, &e), 0);
    sources_switch(sources, &policy);
}

static void put(struct span name, struct span value)
{
    struct secret *s = secret_new(value);
    assert_int_equal(vault_set(keep.vault, name, s, 0, 1, &e), 0);
    secret_free(&s);
}

static int setup(void **state)
{
    char *env[] = {strdup("A=1"), strdup("TOKEN=env-canary-1"), strdup("TOKENX=2"), strdup("EMPTY="), NULL};
    char *first = env[1];
    uint8_t raw[RELEASE_KEY];
    size_t n = sizeof(raw);
    snprintf(folder, sizeof(folder), "/tmp/cs-release-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s.source", folder);
    dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(keep_open(&keep, dir, NULL, time(NULL), &e), 0);
    sources = sources_new(geteuid());
    sources_store(sources, keep.vault);
    tokens = tokens_new();
    releaser = releaser_new(sources, NULL, tokens);
    releaser_policy(releaser, &table);
    char *all[] = {env[0], env[1], env[2], env[3]};
    assert_int_equal(sources_take_env(sources, env, &e), 0);
    assert_null(env[0]);
    for (int i = 0; i < 18; i++) /* nothing of it is left where it was */
        assert_int_equal(first[i], 0);
    for (int i = 0; i < 4; i++)
        free(all[i]);
    write_file("file-canary-1\n", 14, 0600);
    give_file();
    put(SPAN("kept"), SPAN("store-canary-1"));
    put(SPAN("kept2"), SPAN("store-canary-2"));
    ledger = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    assert_int_equal(EVP_PKEY_get_raw_public_key(ledger, raw, &n), 1);
    assert_int_equal(releaser_ledger_key(releaser, span_of(raw, n)), 0);
    return 0;
}

static int teardown(void **state)
{
    static const char *const files[] = {"master.key", "ca.key", "ca.crt", "secrets.sealed"};
    releaser_free(&releaser);
    tokens_free(&tokens);
    sources_free(&sources);
    keep_close(&keep);
    EVP_PKEY_free(ledger);
    for (int i = 0; i < 4; i++)
        (void)unlinkat(dir, files[i], 0);
    close(dir);
    (void)unlink(path);
    return rmdir(folder);
}

static struct release_ask ask(const char *credential, const char *host)
{
    return (struct release_ask){.xid = 7,
                                .credential = span_str(credential),
                                .scheme = SPAN("https"),
                                .host = span_str(host),
                                .path = SPAN("/api/x"),
                                .place = place_of_now(),
                                .port = 443};
}

static void expect(struct release_ask a, struct span value)
{
    struct release r;
    assert_int_equal(releaser_ask(releaser, &a, &r), value.p ? RELEASE_GIVEN : RELEASE_REFUSED);
    if (value.p)
        assert_true(span_eq(secret_bytes(r.value), value));
    else
        assert_null(r.value);
    assert_true(value.p || (r.code != NULL && r.why.text[0] != '\0'));
    assert_null(strstr(r.why.text, "canary"));
    release_clear(&r);
}

static bool scrubs(const struct release *r, struct span s)
{
    for (size_t i = 0; i < r->nscrub; i++)
        if (span_eq(secret_bytes(r->scrub[i]), s))
            return true;
    return false;
}

static void each_source_gives_its_value(void **state)
{
    expect(ask("file", "a.example"), SPAN("Bearer file-canary-1"));
    expect(ask("env", "a.example"), SPAN("env-canary-1"));
    expect(ask("store", "a.example"), SPAN("Basic Z2l0OnN0b3JlLWNhbmFyeS0x"));
    expect(ask("nowhere", "a.example"), SPAN_NONE);
    expect(ask("unheard-of", "a.example"), SPAN_NONE);
}

static void only_where_the_policy_says(void **state)
{
    struct release_ask a = ask("file", "b.example");
    expect(a, SPAN_NONE);
    a = ask("file", "a.example");
    a.path = SPAN("/other");
    expect(a, SPAN_NONE);
    a = ask("file", "a.example");
    a.port = 8443;
    expect(a, SPAN_NONE);
    a = ask("file", "a.example");
    a.scheme = SPAN("http");
    a.port = 80;
    expect(a, SPAN_NONE); /* in clear text */
    a = ask("open", "open.example");
    a.scheme = SPAN("http");
    a.port = 80;
    expect(a, SPAN("store-canary-2"));
    releaser_policy(releaser, NULL);
    expect(ask("file", "a.example"), SPAN_NONE);
}

static void the_scrub_list_is_that_of_the_host(void **state)
{
    struct release r;
    struct release_ask a = ask("", "a.example");
    a.path = SPAN("/other"); /* the secrets of the host, not of the path */
    put(SPAN("kept"), SPAN("store-canary-9"));
    assert_int_equal(releaser_ask(releaser, &a, &r), RELEASE_GIVEN);
    assert_null(r.value);
    assert_int_equal(r.header.n, 0);
    assert_true(scrubs(&r, SPAN("file-canary-1")));
    assert_true(scrubs(&r, SPAN("env-canary-1")));
    assert_true(scrubs(&r, SPAN("store-canary-9")));
    assert_true(scrubs(&r, SPAN("git:store-canary-9")));
    assert_true(scrubs(&r, SPAN("store-canary-1"))); /* D36: the value before the rotation */
    assert_true(scrubs(&r, SPAN("git:store-canary-1")));
    assert_false(scrubs(&r, SPAN("store-canary-2")));
    assert_int_equal(r.nscrub, 6);
    for (size_t i = 0; i < r.nscrub; i++) /* each as its own credential says, in all its versions */
        assert_int_equal(r.refuse[i],
                         span_find(secret_bytes(r.scrub[i]), SPAN("store-canary")) < secret_bytes(r.scrub[i]).n);
    assert_int_equal(r.ttl_ms, RELEASE_TTL_MS);
    release_clear(&r);
    a.host = SPAN("c.example");
    assert_int_equal(releaser_ask(releaser, &a, &r), RELEASE_GIVEN);
    assert_int_equal(r.nscrub, 0);
    release_clear(&r);
}

/* What leaves is a signature, never the key; and only a request that is to be signed gets one. */
static void keys_sign_and_stay(void **state)
{
    struct wire_sign w = {
        .method = SPAN("GET"), .path = SPAN("/api/x"), .query = SPAN(""), .payload = SPAN("UNSIGNED-PAYLOAD")};
    struct release_ask a = ask("keys", "s.example");
    struct release r;
    put(SPAN("pair"), SPAN("AKIAEXAMPLE:key-canary-1:token-canary-1"));
    expect(a, SPAN_NONE);
    a.sign = &w;
    assert_int_equal(releaser_ask(releaser, &a, &r), RELEASE_GIVEN);
    assert_null(r.value);
    assert_int_equal(r.header.n, 0);
    assert_int_equal(r.ttl_ms, 0);
    assert_int_equal(r.signature.nfields, 3);
    for (size_t i = 0; i < r.signature.nfields; i++) {
        struct span v = secret_bytes(r.signature.field[i].value);
        assert_int_equal(span_find(v, SPAN("key-canary")), v.n);
    }
    assert_true(scrubs(&r, SPAN("key-canary-1")));
    assert_true(scrubs(&r, SPAN("token-canary-1")));
    assert_true(scrubs(&r, SPAN("AKIAEXAMPLE")));
    assert_true(scrubs(&r, SPAN("AKIAEXAMPLE:key-canary-1:token-canary-1")));
    release_clear(&r);
    a = ask("file", "a.example");
    a.sign = &w;
    expect(a, SPAN_NONE); /* one that does not sign */
    a = ask("keys", "s.example");
    a.sign = &w;
    a.path = SPAN("/other");
    expect(a, SPAN_NONE);
    put(SPAN("pair"), SPAN("no-pair-canary-1"));
    a.path = SPAN("/api/x");
    expect(a, SPAN_NONE);
}

/* A key that is written as base64 is looked for in answers as the bytes that it is, too. */
static void a_template_signs_and_the_key_stays(void **state)
{
    struct wire_sign w = {.method = SPAN("POST"), .path = SPAN("/api/x"), .payload = SPAN("{}")};
    struct release_ask a = ask("hook", "h.example");
    struct release r;
    put(SPAN("hookkey"), SPAN("my-id-12:a2V5LWNhbmFyeS0x"));
    expect(a, SPAN_NONE); /* the judge says nothing of signing */
    a.sign = &w;
    assert_int_equal(releaser_ask(releaser, &a, &r), RELEASE_GIVEN);
    assert_null(r.value);
    assert_int_equal(r.header.n, 0);
    assert_int_equal(r.ttl_ms, 0);
    assert_int_equal(r.signature.nfields, 1);
    assert_true(span_eq(secret_bytes(r.signature.field[0].value),
                        SPAN("my-id-12=611b9e99eecd40a55f6e4baf659c2c3f494b26f91459fd07dbff3a4d4a547c26")));
    assert_true(scrubs(&r, SPAN("a2V5LWNhbmFyeS0x")));
    assert_true(scrubs(&r, SPAN("key-canary-1")));
    assert_true(scrubs(&r, SPAN("my-id-12")));
    assert_true(scrubs(&r, SPAN("my-id-12:a2V5LWNhbmFyeS0x")));
    release_clear(&r);
    put(SPAN("hookkey"), SPAN("my-id-12:no base64 canary"));
    expect(a, SPAN_NONE);
}

static void sign(struct release_ask *a, EVP_PKEY *key)
{
    struct dynbuf b;
    size_t n = sizeof(signature);
    dynbuf_init(&b, 4096);
    wire_release_statement(&b, a->xid, a->credential, a->host, a->port, &a->digest);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    assert_int_equal(EVP_DigestSignInit(c, NULL, NULL, NULL, key), 1);
    assert_int_equal(EVP_DigestSign(c, signature, &n, b.p, b.n), 1);
    EVP_MD_CTX_free(c);
    dynbuf_free(&b);
    a->signature = span_of(signature, n);
}

static struct release_ask held(uint64_t xid)
{
    struct release_ask a = ask("file", "a.example");
    a.held = true;
    a.xid = xid;
    memset(&a.digest, 0xd1, sizeof(a.digest));
    sign(&a, ledger);
    return a;
}

static void a_held_write_needs_the_ledgers_word(void **state)
{
    struct span bearer = SPAN("Bearer file-canary-1");
    struct release r;
    struct release_ask a = held(1);
    assert_int_equal(releaser_ask(releaser, &a, &r), RELEASE_GIVEN);
    assert_int_equal(r.ttl_ms, 0);
    release_clear(&r);
    expect(a, SPAN_NONE); /* once for each exchange */
    a = held(2);
    a.xid = 3;
    expect(a, SPAN_NONE);
    a = held(2);
    a.digest.b[31] ^= 1;
    expect(a, SPAN_NONE);
    a = held(2);
    a.credential = SPAN("env");
    expect(a, SPAN_NONE);
    a = held(2);
    a.port = 80;
    expect(a, SPAN_NONE);
    a = held(2);
    signature[0] ^= 1;
    expect(a, SPAN_NONE);
    a = held(2);
    a.signature.n--;
    expect(a, SPAN_NONE);
    a = held(2);
    a.signature = SPAN_NONE;
    expect(a, SPAN_NONE);
    EVP_PKEY *other = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    a = held(2);
    sign(&a, other);
    EVP_PKEY_free(other);
    expect(a, SPAN_NONE);
    a = held(0);
    expect(a, SPAN_NONE);
    a = held(2);
    memset(&a.digest, 0, sizeof(a.digest)); /* signed or not, no digest is no approval */
    sign(&a, ledger);
    expect(a, SPAN_NONE);
    expect(held(2), bearer);
    releaser_ledger_gone(releaser);
    expect(held(4), SPAN_NONE);
    assert_int_equal(releaser_ledger_key(releaser, SPAN_NONE), -1);
    expect(held(5), SPAN_NONE);
}

/* It remembers as many as it says, whatever came between. */
static void none_is_served_twice_after_many_others(void **state)
{
    struct release r;
    for (uint64_t i = 1; i <= RELEASE_ONCE; i++) {
        struct release_ask a = held(i);
        assert_int_equal(releaser_ask(releaser, &a, &r), RELEASE_GIVEN);
        release_clear(&r);
    }
    for (uint64_t i = 1; i <= RELEASE_ONCE; i += RELEASE_ONCE / 8 - 1)
        expect(held(i), SPAN_NONE);
    expect(held(RELEASE_ONCE), SPAN_NONE);
    expect(held(0), SPAN_NONE); /* no exchange at all */
}

static void a_file_is_read_again_when_it_changes(void **state)
{
    struct release r;
    struct release_ask scrub = ask("", "a.example");
    expect(ask("file", "a.example"), SPAN("Bearer file-canary-1"));
    write_file("file-canary-two", 15, 0600);
    expect(ask("file", "a.example"), SPAN("Bearer file-canary-two"));
    assert_int_equal(releaser_ask(releaser, &scrub, &r), RELEASE_GIVEN);
    assert_true(scrubs(&r, SPAN("file-canary-1"))); /* D36 */
    assert_true(scrubs(&r, SPAN("file-canary-two")));
    release_clear(&r);
    assert_int_equal(unlink(path), 0); /* replaced: the descriptor shows the old one for ever */
    expect(ask("file", "a.example"), SPAN_NONE);
    write_file("file-canary-3", 13, 0600);
    give_file();
    expect(ask("file", "a.example"), SPAN("Bearer file-canary-3"));
}

static void d15_d24_bad_files_are_refused(void **state)
{
    static const unsigned modes[] = {0640, 0604, 0644, 0620, 0601};
    static char big[64 * 1024];
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        write_file("file-canary-1", 13, modes[i]);
        expect(ask("file", "a.example"), SPAN_NONE);
    }
    write_file("file-canary-1", 13, 0400);
    expect(ask("file", "a.example"), SPAN("Bearer file-canary-1"));
    assert_int_equal(unlink(path), 0);
    write_file("", 0, 0600);
    give_file();
    expect(ask("file", "a.example"), SPAN_NONE);
    write_file("file-canary\r\nX: y", 17, 0600);
    expect(ask("file", "a.example"), SPAN_NONE);
    memset(big, 'c', sizeof(big));
    write_file(big, sizeof(big), 0600);
    expect(ask("file", "a.example"), SPAN_NONE);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    give_file();
    expect(ask("file", "a.example"), SPAN_NONE);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(sources_add_file(sources, &policy, SOURCE_FILE, SPAN("/source"), open(folder, O_RDONLY), &e), 0);
    sources_switch(sources, &policy);
    expect(ask("file", "a.example"), SPAN_NONE);
}

/* D44: the next policy gives the name another file, which cannot be opened: never the old file's value. */
static void a_file_belongs_to_its_policy(void **state)
{
    struct digest next = {{2}}, third = {{3}};
    struct release r;
    struct release_ask scrub = ask("", "a.example");
    expect(ask("file", "a.example"), SPAN("Bearer file-canary-1"));
    assert_int_equal(sources_add_file(sources, &next, SOURCE_FILE, SPAN("/elsewhere"), open(path, O_RDONLY), &e), 0);
    expect(ask("file", "a.example"), SPAN("Bearer file-canary-1")); /* not yet */
    sources_switch(sources, &next);
    expect(ask("file", "a.example"), SPAN_NONE);
    give_file();
    expect(ask("file", "a.example"), SPAN("Bearer file-canary-1"));
    assert_int_equal(sources_add_file(sources, &next, SOURCE_FILE, SPAN("/source"), open(path, O_RDONLY), &e), 0);
    sources_switch(sources, &third); /* what was opened for another policy is not of this one */
    expect(ask("file", "a.example"), SPAN_NONE);
    give_file();
    write_file("file-canary-2", 13, 0600);
    expect(ask("file", "a.example"), SPAN("Bearer file-canary-2"));
    write_file("file-canary-3", 13, 0600);
    give_file(); /* the same file, opened anew: what it held is scrubbed all the same */
    expect(ask("file", "a.example"), SPAN("Bearer file-canary-3"));
    assert_int_equal(releaser_ask(releaser, &scrub, &r), RELEASE_GIVEN);
    assert_true(scrubs(&r, SPAN("file-canary-2")));
    release_clear(&r);
}

/* E45: judge and keeper mean the same by the name, or nothing leaves. */
static void what_the_names_mean_must_be_the_same_here_and_there(void **state)
{
    struct release_ask a = ask("file", "a.example"), scrub = ask("", "a.example");
    version = 2;
    expect(a, SPAN_NONE);
    struct release r;
    assert_int_equal(releaser_ask(releaser, &scrub, &r), RELEASE_REFUSED);
    release_clear(&r);
    expect(ask("file", "a.example"), SPAN("Bearer file-canary-1"));
    version = 1;
    expect(a, SPAN("Bearer file-canary-1"));
}

static void too_many_sources_are_refused(void **state)
{
    char name[32];
    for (int i = 0; i < SOURCES_FILES; i++)
        assert_int_equal(sources_add_file(sources, &policy, SOURCE_FILE,
                                          span_of(name, (size_t)snprintf(name, sizeof(name), "n%d", i)),
                                          open("/dev/null", O_RDONLY), &e),
                         0);
    assert_int_equal(sources_add_file(sources, &policy, SOURCE_FILE, SPAN("more"), open("/dev/null", O_RDONLY), &e),
                     -1);
    int fd = open(path, O_RDONLY | O_NONBLOCK);
    assert_int_equal(sources_add_file(sources, &policy, SOURCE_FILE, SPAN("n1"), fd, &e),
                     0); /* of one that is there, once more */
}

#define FRESH(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FRESH(each_source_gives_its_value),
        FRESH(only_where_the_policy_says),
        FRESH(the_scrub_list_is_that_of_the_host),
        FRESH(keys_sign_and_stay),
        FRESH(a_template_signs_and_the_key_stays),
        FRESH(a_held_write_needs_the_ledgers_word),
        FRESH(a_file_is_read_again_when_it_changes),
        FRESH(d15_d24_bad_files_are_refused),
        FRESH(too_many_sources_are_refused),
        FRESH(a_file_belongs_to_its_policy),
        FRESH(what_the_names_mean_must_be_the_same_here_and_there),
        FRESH(none_is_served_twice_after_many_others),
    };
    return cmocka_run_group_tests_name("release", tests, NULL, NULL);
}
