/* countersign ca: the certificates that sandboxes trust, for whoever wants them in some form */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "cli/verb.h"
#include "common/id.h"

static const char *const files[] = {"ca.crt", "bundle.crt", "truststore.p12", NULL};

static int path_put(char out[PATH_MAX], const char *dir, const char *file)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", dir, file);

    return n > 0 && n < PATH_MAX ? CLI_OK : verb_fail(CLI_USAGE, "the path %s is too long", dir);
}

static int copy(const char *path, FILE *to, const char *what)
{
    char buf[16 * 1024];
    FILE *f = fopen(path, "re");
    size_t n;

    if (!f)
        return verb_fail(CLI_RUNTIME, "%s: %s (`countersign up` makes it)", path, strerror(errno));
    while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
        (void)fwrite(buf, 1, n, to);
    int bad = ferror(f) || fflush(to) != 0 || ferror(to);
    (void)fclose(f);
    return bad ? verb_fail(CLI_RUNTIME, "%s cannot be written: %s", what, strerror(errno)) : CLI_OK;
}

/* What one compares with the certificate in a sandbox. */
static int describe(const char *path)
{
    struct digest d;
    char hex[2 * DIGEST_BYTES + 1];
    unsigned char *der = NULL;
    BIO *bio = BIO_new_file(path, "r");
    X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;
    BIO *out = BIO_new_fp(stdout, BIO_NOCLOSE);
    int n = cert ? i2d_X509(cert, &der) : -1, rc = CLI_RUNTIME;

    if (n > 0 && out) {
        digest_of(span_of(der, (size_t)n), &d);
        hex_text(span_of(d.b, DIGEST_BYTES), hex);
        (void)BIO_printf(out, "file     %s\nsubject  ", path);
        (void)X509_NAME_print_ex(out, X509_get_subject_name(cert), 0, XN_FLAG_RFC2253);
        (void)BIO_printf(out, "\nuntil    ");
        (void)ASN1_TIME_print(out, X509_get0_notAfter(cert));
        (void)BIO_printf(out, "\nSHA-256  %s\n", hex);
        rc = CLI_OK;
    } else {
        (void)verb_fail(rc, "%s is not there or not a certificate (`countersign up` makes it)", path);
    }
    OPENSSL_free(der);
    X509_free(cert);
    BIO_free(bio);
    BIO_free(out);
    return rc;
}

/* The public files, for a directory that can be mounted whole: the state directory never may be. */
static int export_to(const char *state, const char *dir)
{
    char from[PATH_MAX], to[PATH_MAX];
    int rc = CLI_OK;

    if (mkdir(dir, 0755) != 0 && errno != EEXIST)
        return verb_fail(CLI_RUNTIME, "%s: %s", dir, strerror(errno));
    for (const char *const *f = files; *f && rc == CLI_OK; f++) {
        if (path_put(from, state, *f) != CLI_OK || path_put(to, dir, *f) != CLI_OK)
            return CLI_USAGE;
        (void)unlink(to);
        int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
        if (!out)
            return verb_fail(CLI_RUNTIME, "%s: %s", to, strerror(errno));
        rc = fchmod(fd, 0644) == 0 ? copy(from, out, to) : verb_fail(CLI_RUNTIME, "%s: %s", to, strerror(errno));
        if (fclose(out) != 0 && rc == CLI_OK)
            rc = verb_fail(CLI_RUNTIME, "%s: %s", to, strerror(errno));
    }
    return rc;
}

/* --- NSS ------------------------------------------------------------------ */

static int certutil(char *const argv[])
{
    extern char **environ;
    int status;
    pid_t pid;

    errno = posix_spawnp(&pid, "certutil", NULL, NULL, argv, environ);
    if (errno != 0)
        return verb_fail(CLI_RUNTIME, "certutil: %s; install the package libnss3-tools", strerror(errno));
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return verb_fail(CLI_RUNTIME, "certutil: %s", strerror(errno));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? CLI_OK
               : verb_fail(CLI_RUNTIME, "certutil did not do it; its words stand above");
}

/* Chromium and Firefox read a database instead of a file. One that is there gets the certificate added. */
static int nss(const char *state, const char *dir)
{
    char db[PATH_MAX], ca[PATH_MAX], spec[PATH_MAX + 4];
    char name[] = "certutil", d[] = "-d", make[] = "-N", empty[] = "--empty-password", add[] = "-A", t[] = "-t",
         trust[] = "C,,", n[] = "-n", nick[] = "Countersign", i[] = "-i";
    char *made[] = {name, d, spec, make, empty, NULL},
         *added[] = {name, d, spec, add, t, trust, n, nick, i, ca, NULL};
    int rc;

    if (path_put(db, dir, "cert9.db") != CLI_OK || path_put(ca, state, "ca.crt") != CLI_OK)
        return CLI_USAGE;
    if (access(ca, R_OK) != 0)
        return verb_fail(CLI_RUNTIME, "%s: %s (`countersign up` makes it)", ca, strerror(errno));
    (void)snprintf(spec, sizeof(spec), "sql:%s", dir);
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return verb_fail(CLI_RUNTIME, "%s: %s", dir, strerror(errno));
    if (access(db, F_OK) != 0 && (rc = certutil(made)) != CLI_OK)
        return rc;
    return certutil(added);
}

static int in_state(const struct cli_call *c, int (*fn)(const char *state, const char *dir))
{
    char dir[PATH_MAX];
    struct err e;

    if (api_state_dir(c->state_dir, dir, &e) != 0)
        return verb_fail(CLI_USAGE, "%s", e.text);
    return fn(dir, c->nwords ? c->word[0] : NULL);
}

int ca_export(const struct cli_call *c)
{
    return in_state(c, export_to);
}

int ca_nss(const struct cli_call *c)
{
    return in_state(c, nss);
}

static int show(const char *state, const char *unused)
{
    char path[PATH_MAX];

    if (path_put(path, state, "ca.crt") != CLI_OK)
        return CLI_USAGE;
    int rc = describe(path);
    return rc == CLI_OK ? copy(path, stdout, "standard output") : rc;
}

static int bundle(const char *state, const char *unused)
{
    char path[PATH_MAX];

    return path_put(path, state, "bundle.crt") == CLI_OK ? copy(path, stdout, "standard output") : CLI_USAGE;
}

static int truststore(const char *state, const char *unused)
{
    char path[PATH_MAX];

    if (isatty(STDOUT_FILENO))
        return verb_fail(CLI_USAGE, "a truststore is not for a terminal: countersign ca truststore > truststore.p12");
    return path_put(path, state, "truststore.p12") == CLI_OK ? copy(path, stdout, "standard output") : CLI_USAGE;
}

int ca_show(const struct cli_call *c)
{
    return in_state(c, show);
}

int ca_bundle(const struct cli_call *c)
{
    return in_state(c, bundle);
}

int ca_truststore(const struct cli_call *c)
{
    return in_state(c, truststore);
}
