/* common/net/tls: servers whose certificate is wrong in one way each, through the real client path.
 * attacks.tsv: D17 D18 */
#include "tests/unit/net/conn_world.h"

#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct bad {
    const char *what;
    struct cert_wish w;
    const char *why; /* words to be found; NULL: any */
    const char *name;
};

#define LEAF .eku = "serverAuth", .usage = "critical,digitalSignature"

static const struct bad bads[] = {
    {"good", {.san = "DNS:a.test", LEAF}, "", NULL},
    {"good wildcard", {.san = "DNS:*.test.example", LEAF}, "", "a.test.example"},
    {"good address", {.san = "IP:127.0.0.1", LEAF}, "", "127.0.0.1"},
    {"expired", {.san = "DNS:a.test", LEAF, .from = -86400, .to = -3600}, "expired", NULL},
    {"not yet", {.san = "DNS:a.test", LEAF, .from = 3600, .to = 86400}, "not yet", NULL},
    {"another host", {.san = "DNS:b.test", LEAF}, "mismatch", NULL},
    {"address as DNS name", {.san = "DNS:127.0.0.1", LEAF}, "mismatch", "127.0.0.1"},
    {"CN only, no SAN", {.cn = "a.test", LEAF}, NULL, NULL},
    {"CN right, SAN wrong", {.cn = "a.test", .san = "DNS:b.test", LEAF}, "mismatch", NULL},
    {"CN right, SAN of another kind", {.cn = "a.test", .san = "email:x@a.test", LEAF}, "mismatch", NULL},
    {"no EKU", {.san = "DNS:a.test", .usage = "digitalSignature"}, "serverAuth", NULL},
    {"EKU clientAuth", {.san = "DNS:a.test", .eku = "clientAuth"}, NULL, NULL},
    {"EKU any only", {.san = "DNS:a.test", .eku = "anyExtendedKeyUsage"}, NULL, NULL},
    {"a CA as leaf",
     {.san = "DNS:a.test", .eku = "serverAuth", .usage = "digitalSignature,keyCertSign", .basic = "critical,CA:TRUE"},
     "CA's",
     NULL},
    {"version 1", {.cn = "a.test", .v1 = true}, NULL, NULL},
    {"partial wildcard", {.san = "DNS:f*.x.example", LEAF}, "mismatch", "foo.x.example"},
    {"wildcard in the middle", {.san = "DNS:f*o.x.example", LEAF}, "mismatch", "foo.x.example"},
    {"wildcard of a top domain", {.san = "DNS:*.com", LEAF}, "mismatch", "foo.com"},
    {"wildcard, two labels", {.san = "DNS:*.x.example", LEAF}, "mismatch", "a.b.x.example"},
    {"wildcard, apex", {.san = "DNS:*.x.example", LEAF}, "mismatch", "x.example"},
    {"double wildcard", {.san = "DNS:*.*.example", LEAF}, "mismatch", "a.b.example"},
    {"serial 0", {.san = "DNS:a.test", LEAF, .serial = "0"}, "serial", NULL},
    {"serial negative", {.san = "DNS:a.test", LEAF, .serial = "-5"}, "serial", NULL},
    {"serial of 21 bytes",
     {.san = "DNS:a.test", LEAF, .serial = "374144419156711147060143317175368453031918731001857"},
     "serial",
     NULL},
    {"name constraints", {.san = "DNS:a.test", LEAF, .nc = "permitted;DNS:a.test"}, "constraints", NULL},
    {"AIA that is none", {.san = "DNS:a.test", LEAF, .odd = "\x30\x05nonsense"}, "authority information", NULL},
};

static void expect(const struct bad *b, struct world *w)
{
    bool good = b->why != NULL && b->why[0] == '\0';
    if (good != (w->a.seen[CONN_TLS_READY] == 1 && w->a.seen[CONN_FAILED] == 0))
        fail_msg("%s: %s", b->what, w->a.why);
    if (b->why != NULL && strstr(w->a.why, b->why) == NULL)
        fail_msg("%s: said \"%s\", not \"%s\"", b->what, w->a.why, b->why);
    assert_int_equal(w->b.got.n, 0);
}

/* D17, D18: no byte of a request leaves towards a peer that is not proven. */
static void test_certificates(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bads) / sizeof(*bads); i++) {
        struct world w;
        const char *name = bads[i].name != NULL ? bads[i].name : "a.test";
        struct tls_leaf *leaf = leaf_for(&bads[i].w);
        shake(&w, keys.client, leaf, name, name);
        expect(&bads[i], &w);
        close_world(&w);
        tls_leaf_free(&leaf);
    }
}

/* Both ends of a handshake over memory, without a connection of ours. NULL: the client is content; else its words. */
static const char *shake_lent(SSL_CTX *client, SSL_CTX *server, struct tls_leaf *leaf, const struct tls_lent *lent)
{
    SSL *c = SSL_new(client), *s = SSL_new(server);
    BIO *one, *other;
    assert_int_equal(BIO_new_bio_pair(&one, 64 * 1024, &other, 64 * 1024), 1);
    SSL_set_bio(c, one, one);
    SSL_set_bio(s, other, other);
    assert_int_equal(SSL_use_cert_and_key(s, leaf->cert, leaf->pkey, leaf->chain, 1), 1);
    SSL_set_connect_state(c);
    SSL_set_accept_state(s);
    int done = 0;
    for (int i = 0; i < 8 && done != 1; i++) {
        done = SSL_do_handshake(c);
        (void)SSL_do_handshake(s);
    }
    const char *why = done == 1 ? NULL : lent->why;
    if (done != 1 && why == NULL)
        why = X509_verify_cert_error_string(SSL_get_verify_result(c));
    SSL_free(c);
    SSL_free(s);
    return why;
}

/* What a library asks that makes its own context is held to the same. */
static void test_lent(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(bads) / sizeof(*bads); i++) {
        const struct bad *b = &bads[i];
        struct tls_lent lent = {.client = keys.client, .name = span_str(b->name ? b->name : "a.test")};
        SSL_CTX *client = SSL_CTX_new(TLS_client_method()), *server = SSL_CTX_new(TLS_server_method());
        struct tls_leaf *leaf = leaf_for(&b->w);
        SSL_CTX_set_security_level(server, 0);
        assert_int_equal(tls_client_lend(&lent, client), 0);
        const char *why = shake_lent(client, server, leaf, &lent);
        if ((why == NULL) != (b->why != NULL && b->why[0] == '\0'))
            fail_msg("%s: %s", b->what, why ? why : "taken");
        if (b->why != NULL && why != NULL && strstr(why, b->why) == NULL)
            fail_msg("%s: said \"%s\", not \"%s\"", b->what, why, b->why);
        tls_leaf_free(&leaf);
        SSL_CTX_free(client);
        SSL_CTX_free(server);
    }
    struct tls_lent nobody = {.client = keys.client};
    SSL_CTX *client = SSL_CTX_new(TLS_client_method());
    assert_int_equal(tls_client_lend(&nobody, client), -1); /* any name would do */
    SSL_CTX_free(client);
    ERR_clear_error();
}

/* A server with a key of its own, issued by `ca` (or by itself). */
static void shake_key(const struct bad *b, EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key)
{
    struct world w;
    struct tls_leaf leaf = {.pkey = key, .chain = sk_X509_new_null()};
    leaf.cert = cert_make(&b->w, key, ca, ca_key);
    if (ca != NULL)
        sk_X509_push(leaf.chain, ca);
    SSL_CTX_set_security_level(keys.server->ctx, 0);
    SSL_CTX_set_cipher_list(keys.server->ctx, "ALL");
    const char *name = b->name != NULL ? b->name : "a.test";
    shake(&w, keys.client, &leaf, name, name);
    expect(b, &w);
    close_world(&w);
    SSL_CTX_set_security_level(keys.server->ctx, 2);
    sk_X509_free(leaf.chain);
    X509_free(leaf.cert);
    EVP_PKEY_free(key);
}

static void test_keys_and_issuers(void **state)
{
    static const struct cert_wish leaf = {.san = "DNS:a.test", LEAF};
    (void)state;
    shake_key(&(struct bad){"RSA 2048", leaf, "", NULL}, cert_key_rsa(2048), keys.ca, keys.ca_key);
    shake_key(&(struct bad){"RSA 1024", leaf, NULL, NULL}, cert_key_rsa(1024), keys.ca, keys.ca_key);
    shake_key(&(struct bad){"RSA 2052", leaf, "size", NULL}, cert_key_rsa(2052), keys.ca, keys.ca_key);
    shake_key(&(struct bad){"P-384", leaf, "", NULL}, cert_key_ec("P-384"), keys.ca, keys.ca_key);
    shake_key(&(struct bad){"secp256k1", leaf, NULL, NULL}, cert_key_ec("secp256k1"), keys.ca, keys.ca_key);
    EVP_PKEY *key = cert_key_ec("P-256");
    EVP_PKEY_up_ref(key);
    shake_key(&(struct bad){"self-signed", leaf, "self", NULL}, key, NULL, key);
    EVP_PKEY_free(key);

    struct cert_wish sha1 = leaf;
    sha1.md = EVP_sha1();
    shake_key(&(struct bad){"SHA-1", sha1, NULL, NULL}, cert_key_ec("P-256"), keys.ca, keys.ca_key);

    /* Another root of the same name. */
    EVP_PKEY *other_key = cert_key_ec("P-256");
    X509 *other = cert_make(&good_ca, other_key, NULL, other_key);
    shake_key(&(struct bad){"another CA", leaf, NULL, NULL}, cert_key_ec("P-256"), other, other_key);
    X509_free(other);

    /* Name constraints of an issuer below the root. */
    struct cert_wish wish = good_ca;
    wish.cn = "constrained";
    wish.nc = "excluded;DNS:bar.x.example";
    other = cert_make(&wish, other_key, keys.ca, keys.ca_key);
    struct cert_wish wild = {.san = "DNS:*.x.example", LEAF};
    shake_key(&(struct bad){"wildcard, not excluded", wild, "", "foo.x.example"}, cert_key_ec("P-256"), other,
              other_key);
    shake_key(&(struct bad){"wildcard, excluded", wild, "vouch", "bar.x.example"}, cert_key_ec("P-256"), other,
              other_key);
    struct cert_wish plain = {.san = "DNS:bar.x.example", LEAF};
    shake_key(&(struct bad){"excluded", plain, NULL, "bar.x.example"}, cert_key_ec("P-256"), other, other_key);
    X509_free(other);

    /* An issuer with a key that may not sign. */
    EVP_PKEY *dsa = cert_key_dsa();
    other = cert_make(&good_ca, dsa, keys.ca, keys.ca_key);
    shake_key(&(struct bad){"issued with DSA", leaf, "kind", NULL}, cert_key_ec("P-256"), other, dsa);
    X509_free(other);
    EVP_PKEY_free(dsa);
    EVP_PKEY *small = cert_key_ec("prime192v1");
    other = cert_make(&good_ca, small, keys.ca, keys.ca_key);
    shake_key(&(struct bad){"issued with 192 bits", leaf, NULL, NULL}, cert_key_ec("P-256"), other, small);
    X509_free(other);
    EVP_PKEY_free(small);

    /* An issuer that is no CA. */
    other = cert_make(&leaf, other_key, keys.ca, keys.ca_key);
    shake_key(&(struct bad){"issued by a leaf", leaf, NULL, NULL}, cert_key_ec("P-256"), other, other_key);
    X509_free(other);
    EVP_PKEY_free(other_key);
}

/* D18: what the environment says is of no interest. */
/* As the carrier has it: names that anybody can have are below co.uk and nowhere else. */
static bool below_couk(struct span name)
{
    return span_eq(name, SPAN("co.uk"));
}

/* A server of this certificate, by the CA itself, to a client that trusts it like this. */
static void shake_trust(const struct bad *b, X509 *ca, EVP_PKEY *ca_key, const struct tls_trust *how)
{
    struct tls_trust trust = *how;
    struct err e = {""};
    struct tls_client *before = keys.client;
    struct span pem = cert_pem(ca);
    trust.roots_pem = pem;
    keys.client = tls_client_new(&trust, &e);
    assert_non_null(keys.client);
    shake_key(b, cert_key_ec("P-256"), ca, ca_key);
    tls_client_free(&keys.client);
    keys.client = before;
    free((void *)pem.p);
}

static void test_wildcards_of_everybody(void **state)
{
    const struct tls_trust asked = {.public_suffix = below_couk}, not_asked = {.only_13 = false};
    struct bad row = {"a wildcard over co.uk", {.san = "DNS:*.co.uk", LEAF}, "public suffix", "foo.co.uk"};
    (void)state;
    shake_trust(&row, keys.ca, keys.ca_key, &asked);
    row = (struct bad){"and the name itself", {.san = "DNS:*.co.uk,DNS:foo.co.uk", LEAF}, "", "foo.co.uk"};
    shake_trust(&row, keys.ca, keys.ca_key, &asked);
    row = (struct bad){"one label below", {.san = "DNS:*.foo.co.uk", LEAF}, "", "a.foo.co.uk"};
    shake_trust(&row, keys.ca, keys.ca_key, &asked);
    shake_trust(&row, keys.ca, keys.ca_key, &not_asked);
    covers("D17");
}

/* By the letter where the CA itself is; what one lacks is said by name. */
static void test_strict(void **state)
{
    static const struct {
        const char *lacks;
        struct cert_wish ca;
    } rows[] = {{NULL, {.cn = "root", .basic = "critical,CA:TRUE", .usage = "keyCertSign", .ids = true}},
                {"not critical", {.cn = "root", .basic = "CA:TRUE", .usage = "keyCertSign", .ids = true}},
                {"key usage", {.cn = "root", .basic = "critical,CA:TRUE", .ids = true}},
                {"subject key identifier", {.cn = "root", .basic = "critical,CA:TRUE", .usage = "keyCertSign"}}};
    const struct tls_trust trust = {.npins = 0};
    EVP_PKEY *key = cert_key_ec("P-256");
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct err e = {""};
        X509 *ca = cert_make(&rows[i].ca, key, NULL, key);
        struct span pem = cert_pem(ca);
        struct bad leaf = {"a leaf by the letter", {.san = "DNS:a.test", LEAF, .ids = rows[i].ca.ids}, "", NULL};
        assert_int_equal(tls_roots_strict(pem, &e), rows[i].lacks ? -1 : 0);
        if (rows[i].lacks != NULL && (strstr(e.text, rows[i].lacks) == NULL || strstr(e.text, "root") == NULL))
            fail_msg("said \"%s\"", e.text);
        shake_trust(&leaf, ca, key, &trust);
        /* Below a CA that keeps to the letter, and only there, everybody has to. */
        struct bad loose = {"a leaf without identifiers", {.san = "DNS:a.test", LEAF}, "Identifier", NULL};
        loose.why = rows[i].lacks ? "" : "Identifier";
        shake_trust(&loose, ca, key, &trust);
        /* What else is wrong stays wrong. */
        struct bad old = {"expired",
                          {.san = "DNS:a.test", LEAF, .from = -86400, .to = -3600, .ids = rows[i].ca.ids},
                          "expired",
                          NULL};
        shake_trust(&old, ca, key, &trust);
        free((void *)pem.p);
        X509_free(ca);
    }
    EVP_PKEY_free(key);
    covers("D17");
}

static void test_environment(void **state)
{
    struct err e;
    struct world w;
    char path[] = "/tmp/conn-roots-XXXXXX";
    (void)state;
    EVP_PKEY *k = cert_key_ec("P-256");
    X509 *other = cert_make(&good_ca, k, NULL, k);
    struct span pem = cert_pem(other);
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, keys.ca_pem.p, keys.ca_pem.n) == (ssize_t)keys.ca_pem.n);
    close(fd);
    setenv("SSL_CERT_FILE", path, 1);
    struct tls_client *t = tls_client_new(&(struct tls_trust){.roots_pem = pem}, &e);
    assert_non_null(t);
    struct tls_leaf *leaf = leaf_for(&good_leaf);
    shake(&w, t, leaf, "a.test", "a.test");
    assert_int_equal(w.a.seen[CONN_FAILED], 1);
    close_world(&w);
    unsetenv("SSL_CERT_FILE");
    unlink(path);
    tls_leaf_free(&leaf);
    tls_client_free(&t);
    free((void *)pem.p);
    X509_free(other);
    EVP_PKEY_free(k);
}

/* A program of its own, since a configuration would be loaded once, at the first use. */
static int in_a_new_process(void)
{
    struct tls_key *k = tls_key_new();
    struct tls_server *s = tls_server_new(NULL);
    int rc = k != NULL && s != NULL && SSL_CTX_get_max_proto_version(s->ctx) == 0 ? 0 : 1;
    tls_key_free(&k);
    tls_server_free(&s);
    return rc;
}

static void test_configuration(void **state)
{
    static const char text[] = "openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n"
                               "[c]\nMaxProtocol = TLSv1.2\n";
    char path[] = "/tmp/conn-conf-XXXXXX", env[64], name[] = "test", word[] = "configured";
    char *argv[] = {name, word, NULL}, *envp[] = {env, NULL};
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, text, sizeof(text) - 1) == (ssize_t)sizeof(text) - 1);
    close(fd);
    snprintf(env, sizeof(env), "OPENSSL_CONF=%s", path);
    pid_t pid = fork();
    if (pid == 0) {
        execve("/proc/self/exe", argv, envp);
        _exit(2);
    }
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    unlink(path);
    assert_int_equal(status, 0);
}

static void test_settings_refused(void **state)
{
    struct err e = {""};
    (void)state;
    assert_null(tls_client_new(&(struct tls_trust){.roots_pem = SPAN("")}, &e));
    assert_null(tls_client_new(&(struct tls_trust){.roots_pem = SPAN("no certificate in here\n")}, &e));
    assert_non_null(strstr(e.text, "no certificate"));
    assert_null(tls_client_new(
        &(struct tls_trust){.roots_pem = SPAN("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")},
        &e));
    assert_non_null(strstr(e.text, "certificate 1"));
    /* A leaf for another key, cut short, or with something after it. */
    struct tls_key *k = tls_key_new();
    X509 *x = cert_make(&good_leaf, keys.key->pkey, keys.ca, keys.ca_key);
    struct span der = cert_der(x);
    struct tls_leaf *leaf = tls_leaf_new(k, der, keys.ca_der);
    assert_null(leaf);
    assert_null(tls_leaf_new(keys.key, span_first(der, der.n - 1), keys.ca_der));
    assert_null(tls_leaf_new(keys.key, der, SPAN("")));
    uint8_t more[4096] = {0};
    memcpy(more, der.p, der.n);
    assert_null(tls_leaf_new(keys.key, span_of(more, der.n + 1), keys.ca_der));
    OPENSSL_free((void *)der.p);
    X509_free(x);
    tls_key_free(&k);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "configured") == 0)
        return in_a_new_process();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_certificates),     cmocka_unit_test(test_lent),
        cmocka_unit_test(test_keys_and_issuers), cmocka_unit_test(test_wildcards_of_everybody),
        cmocka_unit_test(test_strict),           cmocka_unit_test(test_environment),
        cmocka_unit_test(test_configuration),    cmocka_unit_test(test_settings_refused),
    };
    return cmocka_run_group_tests(tests, keys_new, keys_free);
}
