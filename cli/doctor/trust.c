/* countersign doctor --from-sandbox: does each file that a variable names lead to trust in the gateway? */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>

#include "cli/doctor/findings.h"
#include "cli/doctor/probe.h"
#include "common/file.h"

enum { FILE_MAX = 8 * 1024 * 1024, NAMES_MAX = 1024 };

int doctor_file(const char *path, struct dynbuf *b)
{
    dynbuf_init(b, FILE_MAX);
    if (file_read(path, b) == 0)
        return 0;
    int why = errno;
    dynbuf_free(b);
    errno = why;
    return -1;
}

/* The certificates of a PKCS#12 store as PEM, in place. -1: it is none, or has another password. */
static int store_to_pem(struct dynbuf *b)
{
    const unsigned char *at = b->p;
    PKCS12 *store = d2i_PKCS12(NULL, &at, (long)b->n);
    STACK_OF(X509) *certs = NULL;
    BIO *out = BIO_new(BIO_s_mem());
    char *pem;
    int rc = -1;

    if (store && out && PKCS12_parse(store, "changeit", NULL, NULL, &certs)) {
        for (int i = 0; i < sk_X509_num(certs); i++)
            (void)PEM_write_bio_X509(out, sk_X509_value(certs, i));
        long n = BIO_get_mem_data(out, &pem);
        dynbuf_free(b);
        dynbuf_init(b, FILE_MAX);
        rc = dynbuf_add(b, span_of(pem, n > 0 ? (size_t)n : 0));
    }
    sk_X509_pop_free(certs, X509_free);
    PKCS12_free(store);
    BIO_free(out);
    ERR_clear_error();
    return rc;
}

/* The path behind -Djavax.net.ssl.trustStore= in JAVA_TOOL_OPTIONS; false: it names none. */
static bool java_store(const char *options, char out[PATH_MAX])
{
    static const char key[] = "-Djavax.net.ssl.trustStore=";
    const char *at = options ? strstr(options, key) : NULL;

    if (!at)
        return false;
    bool quoted = at > options && at[-1] == '"';
    at += sizeof(key) - 1;
    (void)snprintf(out, PATH_MAX, "%.*s", (int)strcspn(at, quoted ? "\"" : " \""), at);
    return true;
}

struct trial {
    struct findings *f;
    const struct env_url *proxy;
    const char *path, *names;
    bool java;
    struct dynbuf *good;
};

static void try_file(const struct trial *t)
{
    struct dynbuf pem;
    struct err e = {{0}};
    int fd;

    if (doctor_file(t->path, &pem) != 0) {
        finding(t->f, FINDING_BAD, "trust", "what reads it trusts nobody",
                "copy the gateway's files here: countersign "
                "ca export DIR",
                "%s: %s cannot be read: %s", t->names, t->path, strerror(errno));
        return;
    }
    if (t->java && store_to_pem(&pem) != 0)
        finding(t->f, FINDING_BAD, "trust", "Java trusts nobody by it", "copy the gateway's truststore.p12 here",
                "%s: %s is not a truststore with the password changeit", t->names, t->path);
    else if (probe_open(t->proxy, PROBE_HOST, 443, &fd, &e) != PROBE_OK)
        finding(t->f, FINDING_BAD, "trust", "so certificates cannot be looked at", "try again",
                "no TLS through the gateway: %s", e.text);
    else if (probe_tls(fd, dynbuf_span(&pem), &e) != 0)
        finding(t->f, FINDING_BAD, "trust",
                "it holds another gateway's certificate, or none; what reads it trusts nothing",
                strcmp(t->path, "/etc/ssl/certs/ca-certificates.crt") == 0
                    ? "put the gateway's ca.crt into /usr/local/share/ca-certificates and run update-ca-certificates"
                    : "copy the gateway's files here again: countersign ca export DIR",
                "%s: %s does not verify the gateway: %s", t->names, t->path, e.text);
    else {
        finding(t->f, FINDING_OK, "trust", NULL, NULL, "%s verifies the gateway (%s)", t->path, t->names);
        if (t->good->n == 0)
            (void)dynbuf_add(t->good, dynbuf_span(&pem));
    }
    dynbuf_free(&pem);
}

static bool is_trust(const struct env_row *r)
{
    return r->kind == ENV_BUNDLE || r->kind == ENV_CA;
}

/* Every variable of the same file in one go; NULL when an earlier one had it. */
static const char *names_of(const struct env_row *r, const char *path, char names[NAMES_MAX])
{
    size_t n = 0;

    names[0] = '\0';
    for (const struct env_row *o = env_rows; o->name; o++) {
        const char *is = is_trust(o) ? getenv(o->name) : NULL;
        if (!is || strcmp(is, path) != 0)
            continue;
        if (o < r)
            return NULL;
        if (n < NAMES_MAX)
            n += (size_t)snprintf(names + n, NAMES_MAX - n, "%s%s", n ? " " : "", o->name);
    }
    return names;
}

void doctor_trust(struct findings *f, const struct env_url *proxy, struct dynbuf *good)
{
    char names[NAMES_MAX], store[PATH_MAX];

    dynbuf_init(good, FILE_MAX);
    for (const struct env_row *r = env_rows; r->name; r++) {
        const char *path = is_trust(r) ? getenv(r->name) : NULL;
        if (!path || !*path || !names_of(r, path, names))
            continue;
        try_file(&(struct trial){f, proxy, path, names, false, good});
    }
    if (java_store(getenv("JAVA_TOOL_OPTIONS"), store))
        try_file(&(struct trial){f, proxy, store, "JAVA_TOOL_OPTIONS", true, good});
}
