/* Objects of S3's API, as any other request of a sandbox: over the gateway's listener for them, decided by its
 * policy, signed with a lease of the credential, which the gateway signs anew. Its connections come from a process of
 * their own (dialler), which can do nothing else: this one, which reads what sandboxes wrote, cannot connect. */
#include <curl/curl.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/file.h"
#include "common/log.h"
#include "common/role/role.h"
#include "common/sign/sign.h"
#include "common/time/instant.h"
#include "sandbox-shim/checkpoint/away/answer.h"
#include "sandbox-shim/checkpoint/away/carrier.h"

enum {
    TEXT = 512,
    CA_MAX = 64 * 1024,
    ANSWER_MAX = AWAY_PART + 64 * 1024,
    PATH_MAX_ = 2048,
    WAIT_S = 300,
    SLOW_S = 45, /* less than a list may take; in which not SLOW_BYTES a second come or go: it is given up */
    SLOW_BYTES = 1024,
    TRIES = 3, /* of a request that the store has no time for */
    PAUSE_MS = 500,
    PAGES_MAX = 1000,   /* of a listing, each of 1000 names */
    LEASE_MOST_S = 600, /* another one is asked for when it is that old, or half of its time is over */
    KEPT = 64,          /* descriptors of the dialler, behind those that it came with */
};
#define METADATA "http://169.254.169.254/latest/"

static struct s3 {
    CURL *curl;
    int listener, dialler; /* listener: O_PATH */
    char endpoint[TEXT], host[TEXT], bucket[TEXT], prefix[TEXT], credential[TEXT];
    char key_id[TEXT], secret[TEXT], token[4 * TEXT];
    struct dynbuf ca, answer;
    bool too_long, leased;
    int64_t until; /* of the lease: seconds of the monotonic clock, from which on another one is asked for */
} s3;

/* --- a connection ------------------------------------------------------------------------ */

/* In the place of the C library's, for all of this program: libcurl 7.88 connects a socket to the proxy's address
 * that it was told is connected (is_connected), and ours is a Unix socket. */
int connect(int fd, const struct sockaddr *to, socklen_t n)
{
    return 0;
}

static int connected(int listener)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)snprintf(to.sun_path, sizeof(to.sun_path), "/proc/self/fd/%d", listener);
    if (fd >= 0 && syscall(SYS_connect, fd, &to, sizeof(to)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* One byte, and with it a descriptor, or none. */
static int give(int to, int fd)
{
    char byte = 0, room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v = {&byte, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

    if (fd >= 0) {
        m.msg_control = room;
        m.msg_controllen = sizeof(room);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    return sendmsg(to, &m, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* For each byte that it is sent a connection to the listener, until who asks has ended. */
static void dialler(int asker, int listener)
{
    const struct wall wall = {.calls = WALL_UNIX};
    char byte;

    role_confine_alone(&wall);
    while (read(asker, &byte, 1) == 1) {
        int fd = connected(listener);
        if (give(asker, fd) != 0)
            break;
        if (fd >= 0)
            close(fd);
    }
    _exit(0);
}

static curl_socket_t dial(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    char byte = 0, room[CMSG_SPACE(sizeof(int))];
    struct iovec v = {&byte, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    int fd = -1;

    if (write(s3.dialler, &byte, 1) != 1 || recvmsg(s3.dialler, &m, MSG_CMSG_CLOEXEC) != 1)
        return CURL_SOCKET_BAD;
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (c != NULL && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(&fd, CMSG_DATA(c), sizeof(fd));
    return fd >= 0 ? fd : CURL_SOCKET_BAD;
}

static int is_connected(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    return CURL_SOCKOPT_ALREADY_CONNECTED;
}

static size_t take(char *p, size_t size, size_t n, void *arg)
{
    s3.too_long = dynbuf_add(&s3.answer, span_of(p, size * n)) != 0;
    return s3.too_long ? 0 : size * n;
}

#define SET(option, value) (curl_easy_setopt(s3.curl, option, value) != CURLE_OK)

static int set_up(void)
{
    struct curl_blob ca = {.data = s3.ca.p, .len = s3.ca.n, .flags = CURL_BLOB_NOCOPY};

    curl_easy_reset(s3.curl);
    return SET(CURLOPT_PROXY, "http://127.0.0.1:3128") || SET(CURLOPT_NOPROXY, "") ||
                   SET(CURLOPT_PROTOCOLS_STR, "http,https") || SET(CURLOPT_FOLLOWLOCATION, 0L) ||
                   SET(CURLOPT_NOSIGNAL, 1L) || SET(CURLOPT_CAPATH, NULL) || SET(CURLOPT_CAINFO, NULL) ||
                   SET(CURLOPT_CAINFO_BLOB, &ca) || SET(CURLOPT_SSL_VERIFYPEER, 1L) ||
                   SET(CURLOPT_SSL_VERIFYHOST, 2L) || SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) ||
                   SET(CURLOPT_OPENSOCKETFUNCTION, dial) || SET(CURLOPT_SOCKOPTFUNCTION, is_connected) ||
                   SET(CURLOPT_WRITEFUNCTION, take) || SET(CURLOPT_TIMEOUT, (long)WAIT_S) ||
                   SET(CURLOPT_LOW_SPEED_LIMIT, (long)SLOW_BYTES) || SET(CURLOPT_LOW_SPEED_TIME, (long)SLOW_S) ||
                   SET(CURLOPT_PATH_AS_IS, 1L) || SET(CURLOPT_HTTP_CONTENT_DECODING, 0L) ||
                   SET(CURLOPT_USERAGENT, "countersign")
               ? -1
               : 0;
}

/* One request: its status, the body in s3.answer. -1 in words. */
static int ask(const char *method, const char *url, struct curl_slist *fields, struct span body, long *status,
               struct err *e)
{
    bool puts = method[0] == 'P';

    dynbuf_reset(&s3.answer);
    if (set_up() != 0 || SET(CURLOPT_URL, url) || SET(CURLOPT_HTTPHEADER, fields) ||
        (puts && (SET(CURLOPT_POST, 1L) || SET(CURLOPT_POSTFIELDSIZE, (long)body.n) ||
                  SET(CURLOPT_POSTFIELDS, body.n ? (const char *)body.p : ""))) ||
        SET(CURLOPT_CUSTOMREQUEST, method))
        return err_set(e, "the HTTP library cannot be set up");
    CURLcode done = curl_easy_perform(s3.curl);
    if (done != CURLE_OK)
        return s3.too_long ? err_set(e, "the checkpoint store answers with more than was asked for")
                           : err_set(e, "the checkpoint store cannot be asked: %s", curl_easy_strerror(done));
    (void)curl_easy_getinfo(s3.curl, CURLINFO_RESPONSE_CODE, status);
    return 0;
}

/* A code of the gateway's or the store's own, and no other word of an answer. */
static int refused(long status, struct err *e)
{
    struct span code = answer_code(dynbuf_span(&s3.answer));

    return err_set(e, "the checkpoint store, or the policy of requests to it, says %ld%s%.*s", status,
                   code.n > 0 ? " " : "", SPAN_FMT(code));
}

/* --- a lease --------------------------------------------------------------------------------- */

static int keep(char out[], size_t room, struct span value)
{
    if (value.n >= room)
        return -1;
    (void)snprintf(out, room, "%.*s", SPAN_FMT(value));
    return 0;
}

static int64_t seconds(void)
{
    struct timespec now;

    return clock_gettime(CLOCK_MONOTONIC, &now) == 0 ? now.tv_sec : INT64_MAX;
}

/* Half of its time, so that a long request that begins with it ends with it. */
static int64_t lasts(struct span expires)
{
    struct timespec now;
    uint64_t left;

    if (clock_gettime(CLOCK_REALTIME, &now) != 0 || instant_left(expires, (uint64_t)now.tv_sec * 1000, &left) != 0)
        return 0;
    return left / 2000 < LEASE_MOST_S ? (int64_t)(left / 2000) : LEASE_MOST_S;
}

/* As SDKs find theirs on a machine of the provider's: the gateway answers (`stub: aws`). */
static int lease(struct err *e)
{
    char url[PATH_MAX_], field[TEXT];
    struct answer_lease is = {.id = SPAN_NONE};
    struct curl_slist *ttl = curl_slist_append(NULL, "X-aws-ec2-metadata-token-ttl-seconds: 300"), *token = NULL;
    long status = 0;
    int rc = -1;

    if (s3.leased && seconds() < s3.until) {
        curl_slist_free_all(ttl);
        return 0;
    }
    if (ask("PUT", METADATA "api/token", ttl, SPAN_NONE, &status, e) != 0)
        goto out;
    (void)snprintf(field, sizeof(field), "X-aws-ec2-metadata-token: %.*s", (int)(s3.answer.n < 256 ? s3.answer.n : 0),
                   (const char *)s3.answer.p);
    token = curl_slist_append(NULL, field);
    (void)snprintf(url, sizeof(url), METADATA "meta-data/iam/security-credentials/%s", s3.credential);
    if (status == 200 && ask("GET", url, token, SPAN_NONE, &status, e) != 0)
        goto out;
    if (status != 200) {
        (void)err_set(
            e,
            "no lease of the credential %s is given to checkpoint-store (status %ld): does it say stub: aws, and "
            "does a rule let it use it?",
            s3.credential, status);
        goto out;
    }
    if (answer_lease(dynbuf_span(&s3.answer), &is) != 0 || keep(s3.key_id, TEXT, is.id) != 0 ||
        keep(s3.secret, TEXT, is.secret) != 0 || keep(s3.token, sizeof(s3.token), is.token) != 0)
        err_set(e, "the lease that was given is none that signs: the credential %s needs lease: aws", s3.credential);
    else
        rc = 0;
    s3.until = seconds() + lasts(is.expires);
out:
    s3.leased = rc == 0;
    dynbuf_reset(&s3.answer);
    curl_slist_free_all(ttl);
    curl_slist_free_all(token);
    return rc;
}

/* --- a signature --------------------------------------------------------------------------- */

static int add(struct sign_request *r, struct arena *a, struct curl_slist **fields, const char *name,
               struct span value)
{
    struct dynbuf line;
    int rc = sign_add_field(r, a, span_str(name), value);

    dynbuf_init(&line, 8 * TEXT);
    (void)dynbuf_addf(&line, "%s: %.*s", name, SPAN_FMT(value));
    (void)dynbuf_add_byte(&line, 0);
    struct curl_slist *longer = rc == 0 && dynbuf_ok(&line) ? curl_slist_append(*fields, (char *)line.p) : NULL;
    if (longer != NULL)
        *fields = longer;
    dynbuf_wipe(&line);
    return longer != NULL ? 0 : -1;
}

static int sign(struct sign_request *r, struct arena *a, struct span body, struct curl_slist **fields)
{
    uint8_t key[SIGN_KEY];
    char hex[2 * sizeof(struct digest) + 1], signature[SIGN_TEXT + 1];
    struct sign_scope scope;
    struct digest d;
    struct dynbuf line;
    int rc = -1;

    digest_of(body, &d);
    hex_text(span_of(d.b, sizeof(d.b)), hex);
    r->payload = span_str(hex);
    dynbuf_init(&line, 4 * TEXT);
    (void)dynbuf_add(&line, SPAN("Authorization: "));
    if (sign_scope_at(SIGN_AWS4, (int64_t)time(NULL), SPAN("us-east-1"), SPAN("s3"), &scope) == 0 &&
        add(r, a, fields, "host", span_str(s3.host)) == 0 &&
        add(r, a, fields, "x-amz-content-sha256", span_str(hex)) == 0 &&
        add(r, a, fields, "x-amz-date", span_str(scope.stamp)) == 0 &&
        (s3.token[0] == '\0' || add(r, a, fields, "x-amz-security-token", span_str(s3.token)) == 0) &&
        sign_key(&scope, span_str(s3.secret), key) == 0 && sign_request(&scope, key, r, signature) == 0 &&
        sign_authorization(&scope, span_str(s3.key_id), r, signature, &line) == 0 && dynbuf_add_byte(&line, 0) == 0) {
        struct curl_slist *longer = curl_slist_append(*fields, (char *)line.p);
        if (longer != NULL)
            longer = curl_slist_append(*fields = longer, "Expect:");
        if (longer != NULL)
            longer = curl_slist_append(*fields = longer, "Content-Type:");
        rc = longer != NULL ? 0 : -1;
    }
    explicit_bzero(key, sizeof(key));
    dynbuf_wipe(&line);
    return rc;
}

static int asked_once(const char *method, const char *path, const char *query, struct span body, long *status,
                      struct err *e)
{
    static struct sign_request r;
    char url[PATH_MAX_], whole[PATH_MAX_];
    struct curl_slist *fields = NULL;
    struct dynbuf where, what;
    struct arena a;
    int rc = -1;

    if (lease(e) != 0)
        return -1;
    arena_init(&a, 64 * 1024);
    dynbuf_init(&where, PATH_MAX_);
    dynbuf_init(&what, PATH_MAX_);
    (void)snprintf(whole, sizeof(whole), "/%s%s%s", s3.bucket, path[0] ? "/" : "", path);
    int n = snprintf(url, sizeof(url), "%s%s%s%s", s3.endpoint, whole, query[0] ? "?" : "", query);
    r = (struct sign_request){.method = span_str(method)};
    bool ok = n > 0 && (size_t)n < sizeof(url) && sign_canonical_path(span_str(whole), SIGN_PATH_ONCE, &where) == 0 &&
              sign_canonical_query(span_str(query), &what) == 0;
    r.path = dynbuf_span(&where);
    r.query = dynbuf_span(&what);
    if (!ok || sign(&r, &a, body, &fields) != 0)
        (void)err_set(e, "a request to the checkpoint store cannot be signed");
    else
        rc = ask(method, url, fields, body, status, e);
    curl_slist_free_all(fields);
    dynbuf_free(&where);
    dynbuf_free(&what);
    arena_free(&a);
    return rc;
}

/* The store has no time for it now. What the gateway refuses has a code of its own, and is not asked again: of a
 * write that may have arrived it says so, and holds the next one like it for the same. */
static bool is_busy(long status)
{
    return (status == 500 || status == 503) && !answer_is_ours(dynbuf_span(&s3.answer));
}

/* path: below the bucket. Each of these requests may be sent twice. */
static int asked(const char *method, const char *path, const char *query, struct span body, long *status,
                 struct err *e)
{
    bool old = s3.leased; /* what is refused may be the lease, which ends with a restart, and by whoever ends it */
    int rc = 0;

    for (int n = 1; n <= TRIES; n++) {
        rc = asked_once(method, path, query, body, status, e);
        bool again = rc == 0 && (*status == 401 || *status == 403) && old;
        if (rc != 0 || n == TRIES || (!again && !is_busy(*status)))
            break;
        old = old && !again;
        s3.leased = s3.leased && !again;
        if (!again)
            (void)poll(NULL, 0, n * PAUSE_MS);
    }
    return rc;
}

/* --- objects ---------------------------------------------------------------------------------- */

static void path_of(const char *key, char path[PATH_MAX_])
{
    (void)snprintf(path, PATH_MAX_, "%s%s%s", s3.prefix, s3.prefix[0] ? "/" : "", key);
}

static int put(void *arg, const char *key, struct span bytes, struct err *e)
{
    char path[PATH_MAX_];
    long status = 0;

    path_of(key, path);
    if (asked("PUT", path, "", bytes, &status, e) != 0)
        return -1;
    return status == 200 ? 0 : refused(status, e);
}

static int get(void *arg, const char *key, struct dynbuf *out, struct err *e)
{
    char path[PATH_MAX_];
    long status = 0;

    path_of(key, path);
    if (asked("GET", path, "", SPAN_NONE, &status, e) != 0)
        return -1;
    if (status == 404)
        return 1;
    if (status != 200)
        return refused(status, e);
    return dynbuf_add(out, dynbuf_span(&s3.answer)) == 0
               ? 0
               : err_set(e, "what lies in the checkpoint store is damaged: it is too long");
}

static int drop(void *arg, const char *key, struct err *e)
{
    char path[PATH_MAX_];
    long status = 0;

    path_of(key, path);
    if (asked("DELETE", path, "", SPAN_NONE, &status, e) != 0)
        return -1;
    return status == 204 || status == 200 || status == 404 ? 0 : refused(status, e);
}

/* Names in an answer, without the prefix. */
static int names(struct span all, away_name_fn *fn, void *ctx, struct err *e)
{
    char key[AWAY_KEY_MAX], begins[PATH_MAX_];
    struct span name;

    path_of("", begins);
    while (answer_name(&all, &name)) {
        if (!span_starts(name, span_str(begins)) || name.n - strlen(begins) >= sizeof(key))
            continue;
        (void)snprintf(key, sizeof(key), "%.*s", SPAN_FMT(span_from(name, strlen(begins))));
        if (fn(ctx, key) < 0)
            return err_set(e, "the checkpoint store has more than can be looked at");
    }
    return 0;
}

/* One page; token: how the list goes on, empty behind its end. */
static int list_page(const char *prefix, struct dynbuf *token, away_name_fn *fn, void *ctx, struct err *e)
{
    struct dynbuf query;
    long status = 0;
    int rc = -1;

    dynbuf_init(&query, PATH_MAX_);
    if (token->n > 0) {
        (void)dynbuf_add(&query, SPAN("continuation-token="));
        dynbuf_add_percent(&query, dynbuf_span(token), "-_.~");
        (void)dynbuf_add(&query, SPAN("&"));
    }
    (void)dynbuf_add(&query, SPAN("list-type=2&prefix="));
    dynbuf_add_percent(&query, span_str(prefix), "-_.~");
    (void)dynbuf_add_byte(&query, 0);
    if (!dynbuf_ok(&query))
        (void)err_set(e, "a request to the checkpoint store is too long");
    else if (asked("GET", "", (char *)query.p, SPAN_NONE, &status, e) == 0)
        rc = status == 200 ? names(dynbuf_span(&s3.answer), fn, ctx, e) : refused(status, e);
    dynbuf_free(&query);
    if (rc != 0)
        return -1;
    return answer_more(dynbuf_span(&s3.answer), token) == 0
               ? 0
               : err_set(e, "what the checkpoint store says of what it has cannot be read");
}

static int list(void *arg, const char *begins, away_name_fn *fn, void *ctx, struct err *e)
{
    char prefix[PATH_MAX_];
    struct dynbuf token;
    int rc = 0, page = 0;

    path_of(begins, prefix);
    dynbuf_init(&token, 1024);
    do
        rc = page++ < PAGES_MAX ? list_page(prefix, &token, fn, ctx, e)
                                : err_set(e, "the checkpoint store has more than can be looked at");
    while (rc == 0 && token.n > 0);
    dynbuf_free(&token);
    return rc;
}

/* --- start ------------------------------------------------------------------------------------- */

static void text(const char *name, char out[TEXT])
{
    const char *value = getenv(name);

    if (value == NULL || strlen(value) >= TEXT)
        log_die("%s is not there; countersignd starts this program", name);
    (void)snprintf(out, TEXT, "%s", value);
}

const struct away_carrier *carrier_prepare(void)
{
    static char place[3 * TEXT];
    static const struct away_carrier carrier = {NULL, put, get, drop, list, place};
    char listener[TEXT], ca[TEXT];

    text("COUNTERSIGN_STORE_ENDPOINT", s3.endpoint);
    text("COUNTERSIGN_STORE_HOST", s3.host);
    text("COUNTERSIGN_STORE_BUCKET", s3.bucket);
    text("COUNTERSIGN_STORE_PREFIX", s3.prefix);
    (void)snprintf(place, sizeof(place), "%s\n%s\n%s", s3.endpoint, s3.bucket, s3.prefix);
    text("COUNTERSIGN_STORE_CREDENTIAL", s3.credential);
    text("COUNTERSIGN_STORE_LISTENER", listener);
    text("COUNTERSIGN_STORE_CA", ca);
    s3.listener = open(listener, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    dynbuf_init(&s3.ca, CA_MAX);
    dynbuf_init(&s3.answer, ANSWER_MAX);
    if (s3.listener < 0 || file_read(ca, &s3.ca) != 0)
        log_die("the way to the checkpoint store cannot be had");
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0 || (s3.curl = curl_easy_init()) == NULL)
        log_die("the HTTP library cannot be set up");
    return &carrier;
}

void carrier_confine(void)
{
    int pair[2];

    (void)signal(SIGCHLD, SIG_IGN); /* it ends when this process does, and nobody waits for it */
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        log_die("the way to the checkpoint store cannot be had");
    pid_t pid = fork();
    if (pid < 0)
        log_die("the way to the checkpoint store cannot be had: no process can be started for it");
    if (pid == 0) {
        int kept[] = {dup2(pair[1], KEPT), dup2(s3.listener, KEPT + 1)};
        if (kept[0] != KEPT || kept[1] != KEPT + 1 || close_range(3, KEPT - 1, 0) != 0 ||
            close_range(KEPT + 2, ~0u, 0) != 0)
            _exit(1);
        dialler(KEPT, KEPT + 1);
    }
    close(pair[1]);
    close(s3.listener);
    s3.dialler = pair[0];
}

unsigned carrier_calls(void)
{
    return WALL_PAIR;
}
