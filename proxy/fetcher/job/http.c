#include "proxy/fetcher/job/http.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/file.h"
#include "common/net/tls.h"
#include "common/text/suffix.h"
#include "proxy/fetcher/job/tell.h"

struct http {
    const struct job *job;
    CURL *curl;
    int fd[HTTP_ASKS_MAX]; /* connected; -1: used */
    struct tls_client *tls;
    struct tls_lent lent;
    struct dynbuf answer;
    struct curl_slist *resolve;
    char words[CURL_ERROR_SIZE];
};

/* ---- connections ---- */

/* In the place of the C library's: libcurl 7.88 connects a socket once more that it was told is connected, and behind
 * the wall this process connects nothing. */
int connect(int fd, const struct sockaddr *to, socklen_t n)
{
    return 0;
}

static int dial(const struct addr *a, uint16_t port, int ms)
{
    struct sockaddr_storage to;
    socklen_t n = addr_sockaddr(a, port, &to);
    int bad = 0, fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    socklen_t len = sizeof(bad);
    if (fd < 0)
        return -1;
    if (syscall(SYS_connect, fd, &to, n) == 0)
        return fd;
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (errno == EINPROGRESS && poll(&p, 1, ms) == 1 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &bad, &len) == 0 &&
        bad == 0)
        return fd;
    errno = bad ? bad : errno == EINPROGRESS ? ETIMEDOUT : errno;
    close(fd);
    return -1;
}

static int dial_any(struct http *h, unsigned n, struct err *e)
{
    const struct job *j = h->job;
    const struct job_place *at = &j->place[0];
    /* Of a gate's time a part, so that it is told apart who could not be reached from who does not answer. */
    uint64_t all = fetch_is_gate(j->ask.kind) ? j->ask.timeout_ms / 3 : j->ask.timeout_ms;
    int each = (int)(all / (at->naddrs ? at->naddrs : 1));
    for (size_t i = 0; i < at->naddrs; i++) {
        unsigned have = 0;
        while (have < n && (h->fd[have] = dial(&at->addr[i], j->ask.to.port, each)) >= 0)
            have++;
        if (have == n)
            return 0;
        while (have > 0)
            close(h->fd[--have]);
    }
    return err_errno(e, "%.*s port %u cannot be reached", SPAN_FMT(j->ask.to.host), j->ask.to.port);
}

static curl_socket_t give_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct http *h = arg;
    for (unsigned i = 0; i < HTTP_ASKS_MAX; i++)
        if (h->fd[i] >= 0) {
            int fd = h->fd[i];
            h->fd[i] = -1;
            return fd;
        }
    return CURL_SOCKET_BAD;
}

static int is_connected(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    return CURL_SOCKOPT_ALREADY_CONNECTED;
}

/* ---- what is set once ---- */

static size_t take(char *p, size_t size, size_t n, void *arg)
{
    struct http *h = arg;
    if (h->job->ask.kind == FETCH_TELL)
        return 0; /* its status is all that is wanted */
    return dynbuf_add(&h->answer, span_of(p, size * n)) == 0 ? size * n : 0;
}

/* So that the library looks no name up: it is told an address, and given connected sockets anyway. */
static int set_address(struct http *h)
{
    char line[HTTP_HOST_MAX + 80], ip[INET6_ADDRSTRLEN];
    const struct addr *a = &h->job->place[0].addr[0];
    const struct wire_upstream *to = &h->job->ask.to;
    if (inet_ntop(a->family == 4 ? AF_INET : AF_INET6, a->b, ip, sizeof(ip)) == NULL)
        return -1;
    snprintf(line, sizeof(line), "%.*s:%u:%s%s%s", SPAN_FMT(to->host), to->port, a->family == 6 ? "[" : "", ip,
             a->family == 6 ? "]" : "");
    h->resolve = curl_slist_append(NULL, line);
    return h->resolve != NULL ? 0 : -1;
}

/* The library has no roots of its own: unless this was called it trusts nobody. */
static CURLcode lend(CURL *curl, void *ssl_ctx, void *arg)
{
    struct http *h = arg;
    return tls_client_lend(&h->lent, ssl_ctx) == 0 ? CURLE_OK : CURLE_ABORTED_BY_CALLBACK;
}

/* The one that its url: is of, which is no other than https but for messages. */
static const char *protocol(const struct http *h)
{
    struct span url = wire_setting(&h->job->ask, SPAN("url"), 0);
    if (h->job->ask.kind != FETCH_TELL)
        return "https";
    return span_starts(url, SPAN("http:"))    ? "http"
           : span_starts(url, SPAN("smtp:"))  ? "smtp"
           : span_starts(url, SPAN("smtps:")) ? "smtps"
                                              : "https";
}

/* Nothing is said in clear to another machine. */
static int clear_ok(const struct job *j, struct err *e)
{
    for (size_t i = 0; tell_is_clear(&j->ask) && i < j->place[0].naddrs; i++)
        if (addr_class(&j->place[0].addr[i]) != ADDR_LOOPBACK)
            return err_set(e, "without TLS it may only be asked on loopback");
    return 0;
}

#define SET(option, value) (curl_easy_setopt(h->curl, option, value) != CURLE_OK)

static int set_up(struct http *h)
{
    const char *by = curl_version_info(CURLVERSION_NOW)->ssl_version;
    bool openssl = by != NULL && strncmp(by, "OpenSSL/", sizeof("OpenSSL/") - 1) == 0; /* whose context lend takes */
    return !openssl || set_address(h) != 0 || SET(CURLOPT_RESOLVE, h->resolve) ||
                   SET(CURLOPT_PROTOCOLS_STR, protocol(h)) || SET(CURLOPT_FOLLOWLOCATION, 0L) ||
                   SET(CURLOPT_PROXY, "") || SET(CURLOPT_NOSIGNAL, 1L) || SET(CURLOPT_CAPATH, NULL) ||
                   SET(CURLOPT_CAINFO, NULL) || SET(CURLOPT_SSL_CTX_FUNCTION, lend) || SET(CURLOPT_SSL_CTX_DATA, h) ||
                   SET(CURLOPT_SSL_VERIFYPEER, 1L) || SET(CURLOPT_SSL_VERIFYHOST, 2L) ||
                   SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) ||
                   SET(CURLOPT_OPENSOCKETFUNCTION, give_socket) || SET(CURLOPT_OPENSOCKETDATA, h) ||
                   SET(CURLOPT_SOCKOPTFUNCTION, is_connected) || SET(CURLOPT_WRITEFUNCTION, take) ||
                   SET(CURLOPT_WRITEDATA, h) || SET(CURLOPT_ERRORBUFFER, h->words) ||
                   SET(CURLOPT_TIMEOUT_MS, (long)h->job->ask.timeout_ms) || SET(CURLOPT_USERAGENT, "countersign")
               ? -1
               : 0;
}

/* As the carrier has it: an upstream's own CA with its own lists, or the operator's roots with the operator's lists
 * unless the upstream has some. */
static int trust(struct http *h, struct err *e)
{
    const struct wire_upstream *to = &h->job->ask.to;
    struct tls_trust t = {.roots_pem = to->ca_pem,
                          .crl_pem = to->crl_pem,
                          .npins = to->npins,
                          .only_13 = to->only_tls13,
                          .public_suffix = suffix_is_public};
    struct dynbuf roots, crl;
    dynbuf_init(&roots, HTTP_ROOTS_MAX);
    dynbuf_init(&crl, HTTP_ROOTS_MAX);
    for (size_t i = 0; i < to->npins; i++)
        t.pin[i] = to->pin[i];
    if (to->ca_pem.n == 0) {
        if (file_read(h->job->roots, &roots) != 0 || roots.n == 0) {
            err_set(e, "there are no certificates to check its server by (roots: of countersign.yaml, or ca: of its "
                       "upstream)");
            goto out;
        }
        bool lists = to->crl_pem.n == 0 && h->job->crl[0] != '\0';
        if (lists && (file_read(h->job->crl, &crl) != 0 || crl.n == 0)) {
            err_set(e, "the revocation lists in crl: of countersign.yaml cannot be read");
            goto out;
        }
        t.roots_pem = dynbuf_span(&roots);
        t.crl_pem = lists ? dynbuf_span(&crl) : t.crl_pem;
    }
    h->tls = tls_client_new(&t, e);
    h->lent = (struct tls_lent){.client = h->tls, .name = to->host};
out:
    dynbuf_free(&roots);
    dynbuf_free(&crl);
    return h->tls != NULL ? 0 : -1;
}

struct http *http_open(const struct job *j, unsigned n, struct err *e)
{
    struct http *h = calloc(1, sizeof(*h));
    if (h == NULL || n > HTTP_ASKS_MAX || j->place[0].naddrs == 0) {
        err_set(e, "out of memory");
        return NULL;
    }
    *h = (struct http){.job = j};
    for (unsigned i = 0; i < HTTP_ASKS_MAX; i++)
        h->fd[i] = -1;
    dynbuf_init(&h->answer, HTTP_ANSWER_MAX);
    if (clear_ok(j, e) != 0 || (!tell_is_clear(&j->ask) && trust(h, e) != 0))
        return NULL;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0 || (h->curl = curl_easy_init()) == NULL || set_up(h) != 0)
        err_set(e, "the HTTP library cannot be set up");
    else if (dial_any(h, n, e) == 0)
        return h;
    else if (fetch_is_gate(j->ask.kind))
        job_busy(j, "%s", e->text); /* nobody was asked yet */
    return NULL;                    /* the process ends with it */
}

/* ---- asking ---- */

static char *text_of(struct span s)
{
    char *out = span_index(s, '\0') < s.n ? NULL : malloc(s.n + 1);
    if (out == NULL)
        return NULL;
    memcpy(out, s.p, s.n);
    out[s.n] = '\0';
    return out;
}

static int add_fields(const struct http_ask *ask, struct curl_slist **list)
{
    for (size_t i = 0; i < sizeof(ask->fields) / sizeof(ask->fields[0]); i++) {
        if (ask->fields[i].n == 0)
            continue;
        char *line = text_of(ask->fields[i]);
        struct curl_slist *longer = line != NULL ? curl_slist_append(*list, line) : NULL;
        free(line);
        if (longer == NULL)
            return -1;
        *list = longer;
    }
    return 0;
}

static int explain(const struct http *h, CURLcode code, struct err *e)
{
    if (code == CURLE_WRITE_ERROR)
        return err_set(e, "its answer is longer than %d KiB", HTTP_ANSWER_MAX / 1024);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return err_set(e, "it did not answer in time");
    if (code == CURLE_PEER_FAILED_VERIFICATION || h->lent.why != NULL)
        return err_set(e, "its certificate is not accepted: %s",
                       h->lent.why   ? h->lent.why
                       : h->words[0] ? h->words
                                     : curl_easy_strerror(code));
    return err_set(e, "it cannot be asked: %s", curl_easy_strerror(code)); /* never what the server said */
}

int http_ask(struct http *h, const struct http_ask *ask, unsigned *status, struct span *body, struct err *e)
{
    struct span base = wire_setting(&h->job->ask, SPAN("url"), 0);
    char url[HTTP_URL_MAX];
    struct curl_slist *fields = NULL;
    long code = 0;
    int rc = -1, n = snprintf(url, sizeof(url), "%.*s%.*s", SPAN_FMT(base), SPAN_FMT(ask->path));
    bool post = ask->method[0] == 'P';
    dynbuf_reset(&h->answer);
    if (n < 0 || (size_t)n >= sizeof(url) || add_fields(ask, &fields) != 0) {
        err_set(e, "its url or a field is too long, or there is no memory");
        goto out;
    }
    long ms = ask->ms ? (long)ask->ms : (long)h->job->ask.timeout_ms;
    if (SET(CURLOPT_URL, url) || SET(CURLOPT_TIMEOUT_MS, ms) || SET(CURLOPT_HTTPHEADER, fields) ||
        (post ? SET(CURLOPT_POST, 1L) : SET(CURLOPT_HTTPGET, 1L)) ||
        (post && (SET(CURLOPT_POSTFIELDSIZE, (long)ask->body.n) ||
                  SET(CURLOPT_POSTFIELDS, ask->body.n ? (const char *)ask->body.p : "")))) {
        err_set(e, "the HTTP library cannot be set up");
        goto out;
    }
    CURLcode done = curl_easy_perform(h->curl);
    (void)curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &code);
    bool enough = done == CURLE_WRITE_ERROR && h->job->ask.kind == FETCH_TELL && code > 0;
    if (done != CURLE_OK && !enough) {
        explain(h, done, e);
        goto out;
    }
    *status = code > 0 ? (unsigned)code : 0;
    *body = dynbuf_span(&h->answer);
    rc = 0;
out:
    curl_slist_free_all(fields);
    return rc;
}

int http_post(struct http *h, struct span text, unsigned *status, struct span *body, struct err *e)
{
    static const struct span field = SPAN("field.");
    const struct wire_fetch *f = &h->job->ask;
    struct http_ask ask = {.method = "POST", .body = text};
    struct dynbuf line[HTTP_ASK_FIELDS];
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; i < f->nsettings && rc == 0; i++) {
        if (!span_starts(f->setting[i].key, field))
            continue;
        if (n == HTTP_ASK_FIELDS) {
            rc = err_set(e, "it is asked with too many fields");
            break;
        }
        dynbuf_init(&line[n], FETCH_SETTING_MAX + 256);
        (void)dynbuf_addf(&line[n], "%.*s: %.*s", SPAN_FMT(span_from(f->setting[i].key, field.n)),
                          SPAN_FMT(f->setting[i].value));
        ask.fields[n] = dynbuf_span(&line[n]);
        n++;
    }
    rc = rc == 0 ? http_ask(h, &ask, status, body, e) : -1;
    while (n > 0)
        dynbuf_wipe(&line[--n]);
    return rc;
}

int http_ask_signed(struct http *h, unsigned *status, struct span *body, struct err *e)
{
    return http_post(h, wire_setting(&h->job->ask, SPAN("body"), 0), status, body, e);
}

struct letter {
    struct span rest;
};

static size_t give_letter(char *to, size_t size, size_t n, void *arg)
{
    struct letter *l = arg;
    struct span part = span_first(l->rest, size * n);
    if (part.n > 0)
        memcpy(to, part.p, part.n);
    l->rest = span_from(l->rest, part.n);
    return part.n;
}

/* The password is said over TLS alone, and in the two ways in which it is said as it is: others would have the
 * library read files that there are none of here. */
static int set_mail(struct http *h, const char *from, const char *user, const char *password)
{
    const struct wire_fetch *f = &h->job->ask;
    bool required = !span_eq(wire_setting(f, SPAN("tls"), 0), SPAN("offered")) || password != NULL;
    return SET(CURLOPT_USE_SSL, (long)(required ? CURLUSESSL_ALL : CURLUSESSL_TRY)) || SET(CURLOPT_MAIL_FROM, from) ||
                   SET(CURLOPT_UPLOAD, 1L) || SET(CURLOPT_READFUNCTION, give_letter) ||
                   (password != NULL && (SET(CURLOPT_USERNAME, user) || SET(CURLOPT_PASSWORD, password) ||
                                         SET(CURLOPT_LOGIN_OPTIONS, "AUTH=PLAIN;AUTH=LOGIN")))
               ? -1
               : 0;
}

int http_mail(struct http *h, struct span mail, unsigned *status, struct err *e)
{
    const struct wire_fetch *f = &h->job->ask;
    struct letter letter = {mail};
    struct span from = wire_setting(f, SPAN("from"), 0), local, domain = SPAN_NONE, secret, to;
    struct curl_slist *all = NULL;
    char url[HTTP_URL_MAX];
    long code = 0;
    bool named = span_cut(from, '@', &local, &domain); /* whose domain the relay is greeted with */
    int rc = -1,
        n = snprintf(url, sizeof(url), "%.*s/%.*s", SPAN_FMT(wire_setting(f, SPAN("url"), 0)), SPAN_FMT(domain));
    secret = wire_setting(f, SPAN("password"), 0);
    char *sender = text_of(from), *user = text_of(wire_setting(f, SPAN("user"), 0));
    char *password = secret.n > 0 ? text_of(secret) : NULL;
    bool bad = !named || n < 0 || (size_t)n >= sizeof(url) || sender == NULL || user == NULL ||
               (secret.n > 0 && password == NULL);
    for (size_t i = 0; !bad && (to = wire_setting(f, SPAN("to"), i)).n > 0; i++) {
        char *one = text_of(to);
        struct curl_slist *longer = one != NULL ? curl_slist_append(all, one) : NULL;
        free(one);
        bad = longer == NULL;
        all = longer != NULL ? longer : all;
    }
    if (bad || all == NULL || set_mail(h, sender, user, password) != 0 || SET(CURLOPT_URL, url) ||
        SET(CURLOPT_MAIL_RCPT, all) || SET(CURLOPT_MAIL_RCPT_ALLLOWFAILS, 1L) || SET(CURLOPT_READDATA, &letter)) {
        err_set(e, "an address is too long, or there is no memory");
        goto out;
    }
    CURLcode done = curl_easy_perform(h->curl);
    (void)curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &code);
    *status = code > 0 ? (unsigned)code : 0;
    rc = done == CURLE_OK ? 0 : explain(h, done, e);
out:
    curl_slist_free_all(all);
    free(sender);
    free(user);
    if (password != NULL)
        explicit_bzero(password, secret.n);
    free(password);
    return rc;
}

void http_form_add(struct dynbuf *form, const char *name, struct span value)
{
    (void)dynbuf_addf(form, "%s%s=", form->n ? "&" : "", name);
    for (size_t i = 0; i < value.n; i++) {
        uint8_t c = value.p[i];
        bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || memchr("-._~", c, 4);
        if (plain && c != 0)
            (void)dynbuf_add_byte(form, c);
        else
            (void)dynbuf_addf(form, "%%%02X", c);
    }
}
