#include "common/crypto/signature.h"

#include <openssl/evp.h>
#include <string.h>

#include "common/dynbuf.h"
#include "common/id.h"

enum { SIG = 64, BLOB_MAX = 4096, HASH_MAX = 64 };

static int verify(const uint8_t key[SIGNATURE_KEY], const uint8_t sig[SIG], struct span message)
{
    EVP_PKEY *k = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, SIGNATURE_KEY);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    int ok = k && c && EVP_DigestVerifyInit(c, NULL, NULL, NULL, k) == 1 &&
             EVP_DigestVerify(c, sig, SIG, message.p, message.n) == 1;
    EVP_MD_CTX_free(c);
    EVP_PKEY_free(k);
    return ok ? 0 : -1;
}

static int hash(const EVP_MD *md, struct span message, uint8_t out[HASH_MAX], size_t *n)
{
    unsigned len = 0;
    int ok = EVP_Digest(message.p, message.n, out, &len, md, NULL);
    *n = len;
    return ok == 1 ? 0 : -1;
}

/* Strict base64 of at most BLOB_MAX bytes. */
static int decode(struct span code, uint8_t out[BLOB_MAX], size_t *n)
{
    return code.n == 0 || code.n > BLOB_MAX / 3 * 4 ? -1 : base64_decode(code, out, n);
}

/* SSH's wire: a length of four bytes, then so many. */
static bool take_string(struct span *from, struct span *out)
{
    if (from->n < 4)
        return false;
    size_t n = (size_t)from->p[0] << 24 | (size_t)from->p[1] << 16 | (size_t)from->p[2] << 8 | from->p[3];
    if (n > from->n - 4)
        return false;
    *out = span_first(span_from(*from, 4), n);
    *from = span_from(*from, 4 + n);
    return true;
}

static void put_string(struct dynbuf *b, struct span s)
{
    const uint8_t n[4] = {(uint8_t)(s.n >> 24), (uint8_t)(s.n >> 16), (uint8_t)(s.n >> 8), (uint8_t)s.n};
    (void)dynbuf_add(b, span_of(n, sizeof(n)));
    (void)dynbuf_add(b, s);
}

/* "ssh-ed25519" and so many bytes, and nothing behind them. */
static bool take_ed25519(struct span blob, size_t want, struct span *out)
{
    struct span type;
    return take_string(&blob, &type) && span_eq(type, SPAN("ssh-ed25519")) && take_string(&blob, out) &&
           out->n == want && blob.n == 0;
}

static struct span take_word(struct span *line)
{
    struct span word;
    (void)span_cut(*line, ' ', &word, line);
    while (span_starts(*line, SPAN(" ")))
        *line = span_from(*line, 1);
    return word;
}

/* namespaces="a,b": is ns one of them, letter for letter? */
static bool names_namespace(struct span option, struct span ns)
{
    struct span rest = span_from(option, 12), one;
    if (!span_starts(option, SPAN("namespaces=\"")) || !span_ends(rest, SPAN("\"")))
        return false;
    rest = span_first(rest, rest.n - 1);
    while (rest.n) {
        (void)span_cut(rest, ',', &one, &rest);
        if (span_eq(one, ns))
            return true;
    }
    return false;
}

/* NAME [namespaces="..."] ssh-ed25519 BASE64 [comment] */
static const char *ssh_line(struct span line, struct span ns, struct signer_key *out)
{
    uint8_t blob[BLOB_MAX];
    size_t n = 0;
    struct span key, name = take_word(&line), word = take_word(&line);
    if (name.n == 0 || span_index(name, '"') < name.n)
        return "this is neither NAME ssh-ed25519 KEY nor a minisign public key";
    if (span_starts(word, SPAN("namespaces="))) {
        if (!names_namespace(word, ns))
            return "namespaces= does not name the one of policies, countersign-policy";
        word = take_word(&line);
    }
    if (!span_eq(word, SPAN("ssh-ed25519")))
        return "only ssh-ed25519 keys are read, with no option but namespaces=\"countersign-policy\"";
    if (decode(take_word(&line), blob, &n) != 0 || !take_ed25519(span_of(blob, n), SIGNATURE_KEY, &key))
        return "the ssh-ed25519 key is malformed";
    out->format = SIGNATURE_SSH;
    memcpy(out->key, key.p, SIGNATURE_KEY);
    return NULL;
}

/* "Ed", 8 bytes of key id, 32 bytes of key. */
static bool minisign_line(struct span line, struct signer_key *out)
{
    uint8_t blob[BLOB_MAX];
    size_t n = 0;
    if (line.n != 56 || decode(line, blob, &n) != 0 || n != 2 + 8 + SIGNATURE_KEY || memcmp(blob, "Ed", 2) != 0)
        return false;
    out->format = SIGNATURE_MINISIGN;
    memcpy(out->id, blob + 2, 8);
    memcpy(out->key, blob + 10, SIGNATURE_KEY);
    return true;
}

int signers_parse(struct span text, struct span ns, struct signers *out, struct err *e)
{
    struct span line;
    *out = (struct signers){.n = 0};
    for (size_t at = 1; text.n; at++) {
        struct signer_key key = {.format = SIGNATURE_NONE};
        (void)span_cut(text, '\n', &line, &text);
        line = span_trim(line);
        if (line.n == 0 || line.p[0] == '#' || span_starts(line, SPAN("untrusted comment:")))
            continue;
        const char *why = minisign_line(line, &key) ? NULL : ssh_line(line, ns, &key);
        if (why == NULL && out->n == SIGNERS_MAX)
            why = "there are more than 64 keys";
        if (why) {
            out->n = 0;
            return err_set(e, "line %zu: %s", at, why);
        }
        out->v[out->n++] = key;
    }
    return out->n ? 0 : err_set(e, "it names no key");
}

/* The base64 between the marks, its lines joined. */
static int unarmor(struct span text, uint8_t out[BLOB_MAX], size_t *n)
{
    struct span line, rest = text;
    struct dynbuf code;
    int rc = -1;
    dynbuf_init(&code, BLOB_MAX / 3 * 4);
    (void)span_cut(rest, '\n', &line, &rest);
    bool begun = span_eq(line, SPAN("-----BEGIN SSH SIGNATURE-----")), ended = false;
    while (begun && !ended && rest.n) {
        (void)span_cut(rest, '\n', &line, &rest);
        ended = span_eq(line, SPAN("-----END SSH SIGNATURE-----"));
        if (!ended)
            (void)dynbuf_add(&code, line);
    }
    if (ended && rest.n == 0 && dynbuf_ok(&code))
        rc = decode(dynbuf_span(&code), out, n);
    dynbuf_free(&code);
    return rc;
}

struct sshsig {
    struct span key, ns, hash, sig;
};

static bool sshsig_parse(struct span blob, struct sshsig *s)
{
    struct span public, reserved, sig;
    if (!span_starts(blob, SPAN("SSHSIG\0\0\0\1")))
        return false;
    blob = span_from(blob, 10);
    return take_string(&blob, &public) && take_string(&blob, &s->ns) && take_string(&blob, &reserved) &&
           take_string(&blob, &s->hash) && take_string(&blob, &sig) && blob.n == 0 && reserved.n == 0 &&
           take_ed25519(public, SIGNATURE_KEY, &s->key) && take_ed25519(sig, SIG, &s->sig);
}

static int check_sshsig(const struct sshsig *s, struct span message)
{
    uint8_t h[HASH_MAX];
    size_t n = 0;
    const EVP_MD *md = span_eq(s->hash, SPAN("sha512"))   ? EVP_sha512()
                       : span_eq(s->hash, SPAN("sha256")) ? EVP_sha256()
                                                          : NULL;
    struct dynbuf b;
    if (md == NULL || hash(md, message, h, &n) != 0)
        return -1;
    dynbuf_init(&b, BLOB_MAX);
    (void)dynbuf_add(&b, SPAN("SSHSIG"));
    put_string(&b, s->ns);
    put_string(&b, SPAN_NONE);
    put_string(&b, s->hash);
    put_string(&b, span_of(h, n));
    int rc = dynbuf_ok(&b) ? verify(s->key.p, s->sig.p, dynbuf_span(&b)) : -1;
    dynbuf_free(&b);
    return rc;
}

static int ssh_check(const struct signers *all, struct span ns, struct span text, struct span message, struct err *e)
{
    uint8_t blob[BLOB_MAX];
    struct sshsig s = {.key = SPAN_NONE};
    size_t n = 0, i = 0;
    if (unarmor(text, blob, &n) != 0 || !sshsig_parse(span_of(blob, n), &s))
        return err_set(e, "it is no Ed25519 signature of ssh-keygen -Y sign");
    if (!span_eq(s.ns, ns))
        return err_set(e, "it is of another namespace: sign with ssh-keygen -Y sign -n %.*s", SPAN_FMT(ns));
    while (i < all->n && !(all->v[i].format == SIGNATURE_SSH && memcmp(all->v[i].key, s.key.p, SIGNATURE_KEY) == 0))
        i++;
    if (i == all->n)
        return err_set(e, "its key is not among the signers");
    return check_sshsig(&s, message) == 0 ? 0 : err_set(e, "it does not fit the file: one of the two was changed");
}

struct minisig {
    uint8_t head[2 + 8 + SIG], global[SIG]; /* head: algorithm, key id, signature */
    struct span trusted;
};

static bool minisig_parse(struct span text, struct minisig *s)
{
    uint8_t head[BLOB_MAX], global[BLOB_MAX];
    size_t n = 0, m = 0;
    struct span untrusted, line, code;
    if (!span_cut(text, '\n', &untrusted, &text) || !span_cut(text, '\n', &line, &text) ||
        !span_cut(text, '\n', &s->trusted, &text) || !span_starts(untrusted, SPAN("untrusted comment: ")) ||
        !span_starts(s->trusted, SPAN("trusted comment: ")))
        return false;
    (void)span_cut(text, '\n', &code, &text);
    if (text.n || decode(line, head, &n) != 0 || decode(code, global, &m) != 0 || n != sizeof(s->head) ||
        m != sizeof(s->global))
        return false;
    s->trusted = span_from(s->trusted, 17);
    memcpy(s->head, head, sizeof(s->head));
    memcpy(s->global, global, sizeof(s->global));
    return true;
}

/* "Ed" is over the file, "ED" over its BLAKE2b-512; the other one over that signature and the trusted comment. */
static int check_minisig(const struct minisig *s, const struct signer_key *k, struct span message)
{
    uint8_t h[HASH_MAX];
    size_t n = 0;
    const uint8_t *sig = s->head + 10;
    struct dynbuf b;
    bool prehashed = memcmp(s->head, "ED", 2) == 0;
    if (!prehashed && memcmp(s->head, "Ed", 2) != 0)
        return -1;
    if (prehashed && hash(EVP_blake2b512(), message, h, &n) != 0)
        return -1;
    if (verify(k->key, sig, prehashed ? span_of(h, n) : message) != 0)
        return -1;
    dynbuf_init(&b, SIG + SIGNATURE_TEXT_MAX);
    (void)dynbuf_add(&b, span_of(sig, SIG));
    (void)dynbuf_add(&b, s->trusted);
    int rc = dynbuf_ok(&b) ? verify(k->key, s->global, dynbuf_span(&b)) : -1;
    dynbuf_free(&b);
    return rc;
}

static int minisign_check(const struct signers *all, struct span text, struct span message, struct err *e)
{
    struct minisig s;
    bool known = false;
    if (!minisig_parse(text, &s))
        return err_set(e, "it is no signature of minisign");
    for (size_t i = 0; i < all->n; i++) {
        const struct signer_key *k = &all->v[i];
        if (k->format != SIGNATURE_MINISIGN || memcmp(k->id, s.head + 2, sizeof(k->id)) != 0)
            continue;
        known = true;
        if (check_minisig(&s, k, message) == 0)
            return 0;
    }
    return err_set(e, known ? "it does not fit the file: one of the two was changed"
                            : "its key is not among the signers");
}

int signature_check(const struct signers *s, enum signature_format format, struct span ns, struct span text,
                    struct span message, struct err *e)
{
    if (text.n > SIGNATURE_TEXT_MAX)
        return err_set(e, "it is larger than any signature");
    if (format == SIGNATURE_SSH)
        return ssh_check(s, ns, text, message, e);
    if (format == SIGNATURE_MINISIGN)
        return minisign_check(s, text, message, e);
    return err_set(e, "there is no such format");
}
