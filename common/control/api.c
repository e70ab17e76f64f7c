/* The client of the control socket. */
#include "common/control/api.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/control/sse.h"
#include "common/http/http.h"
#include "common/json/json.h"
#include "common/text/visible.h"

enum { READ_BYTES = 16 * 1024, CALL_WAIT_S = 60, REQUEST_MAX = 16 * 1024 };

/* A socket's path may be 107 bytes long, a state directory longer: then the way
 * leads through a descriptor of the directory. *dir is that, or -1. */
static int address_fill(const char *sock, struct sockaddr_un *a, int *dir)
{
    const char *slash = strrchr(sock, '/');
    char parent[PATH_MAX];
    int n;

    *dir = -1;
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(sock) < sizeof(a->sun_path)) {
        memcpy(a->sun_path, sock, strlen(sock));
        return 0;
    }
    n = slash ? snprintf(parent, sizeof(parent), "%.*s", (int)(slash - sock), sock) : -1;
    if (n < 1 || n >= (int)sizeof(parent)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    *dir = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*dir < 0)
        return -1;
    n = snprintf(a->sun_path, sizeof(a->sun_path), "/proc/self/fd/%d/%s", *dir, slash + 1);
    if (n > 0 && n < (int)sizeof(a->sun_path))
        return 0;
    close(*dir);
    *dir = -1;
    errno = ENAMETOOLONG;
    return -1;
}

/* A connected socket, or -1 with errno. */
static int sock_connect(const char *sock)
{
    struct sockaddr_un a;
    int dir, fd = -1;

    if (address_fill(sock, &a, &dir) != 0)
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
        int why = errno;
        close(fd);
        fd = -1;
        errno = why;
    }
    if (dir >= 0) {
        int why = errno;
        close(dir);
        errno = why;
    }
    return fd;
}

int api_running(const char *sock, struct err *e)
{
    int fd = sock_connect(sock);

    if (fd >= 0) {
        close(fd);
        return 1;
    }
    if (errno == ENOENT || errno == ECONNREFUSED || errno == ENOTDIR)
        return 0;
    return err_errno(e, "cannot reach the gateway at %s", sock);
}

static int gateway_open(const char *sock, struct err *e)
{
    int fd = sock_connect(sock);

    if (fd >= 0)
        return fd;
    if (errno == ENOENT || errno == ECONNREFUSED)
        return err_set(e,
                       "no gateway runs: nothing answers at %s. Start one with `countersign up`; to read what was "
                       "decided, it needs no policy",
                       sock);
    if (errno == EACCES || errno == EPERM)
        return err_errno(e, "the gateway at %s belongs to another user", sock);
    return err_errno(e, "cannot reach the gateway at %s", sock);
}

/* --- one exchange --------------------------------------------------------- */

struct reader {
    int fd;
    struct dynbuf in;
    struct http_body body;
    size_t taken; /* bytes at the front of in that were given out */
    bool ended;
    api_wait_fn *waits; /* of who waits however long it takes, told each second; or NULL */
    void *ctx;
    unsigned seconds;
};

int api_send(int fd, struct span s)
{
    while (s.n > 0) {
        ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        s = span_from(s, (size_t)n);
    }
    return 0;
}

static int request_send(int fd, const char *method, const char *path, struct span body, const char *accept,
                        const char *last_id, struct err *e)
{
    struct dynbuf head;
    bool has_body = body.n > 0 || strcmp(method, "GET") != 0;
    int rc;

    dynbuf_init(&head, REQUEST_MAX);
    rc = http_write_request_line(&head, span_str(method), span_str(path)) ||
         http_write_field(&head, SPAN("Host"), SPAN("countersign")) ||
         http_write_field(&head, SPAN("Accept"), span_str(accept)) ||
         http_write_field(&head, SPAN("Connection"), SPAN("close")) ||
         (body.n > 0 && http_write_field(&head, SPAN("Content-Type"), SPAN("application/json"))) ||
         (last_id && http_write_field(&head, SPAN("Last-Event-ID"), span_str(last_id))) ||
         http_write_end(&head, has_body ? HTTP_LENGTH : HTTP_NO_BODY, body.n);
    if (rc != 0)
        rc = err_set(e, "this cannot be asked of the gateway: %s is not a path it could have", path);
    else if (api_send(fd, dynbuf_span(&head)) != 0 || api_send(fd, body) != 0)
        rc = err_errno(e, "asking the gateway failed");
    dynbuf_free(&head);
    return rc;
}

/* More bytes into r->in: 1, 0 at the end, -1. */
static int reader_fill(struct reader *r, struct err *e)
{
    uint8_t *to = dynbuf_room(&r->in, READ_BYTES);
    ssize_t n;

    if (!to)
        return err_set(e, "the gateway's answer is larger than this program takes");
    while ((n = recv(r->fd, to, READ_BYTES, 0)) < 0 && (errno == EINTR || (errno == EAGAIN && r->waits)))
        if (errno == EAGAIN)
            r->waits(r->ctx, ++r->seconds);
    if (n < 0 && errno == EAGAIN)
        return err_set(e, "the gateway did not answer within %d seconds", CALL_WAIT_S);
    if (n < 0)
        return err_errno(e, "the gateway's answer broke off");
    dynbuf_grew(&r->in, (size_t)n);
    return n > 0;
}

static uint64_t restored;
static bool another;

uint64_t api_restored(void)
{
    uint64_t generation = restored;

    restored = 0;
    return generation;
}

bool api_restored_with_another(void)
{
    bool was = another;

    another = false;
    return was;
}

static int reader_head(struct reader *r, const char *method, unsigned *status, struct err *e)
{
    size_t seen = 0, used = 0;
    struct http_head h;
    struct http_err why;

    for (;;) {
        enum http_result rc = http_parse_response(dynbuf_span(&r->in), span_str(method), &seen, &h, &used, &why);
        if (rc == HTTP_BAD)
            return err_set(e, "the gateway's answer is not HTTP: %s", why.why);
        if (rc == HTTP_OK)
            break;
        int got = reader_fill(r, e);
        if (got <= 0)
            return got < 0 ? -1 : err_set(e, "the gateway closed without an answer");
    }
    *status = h.status;
    const struct http_field *woke = http_find(&h, SPAN("countersign-restored"));
    if (woke && span_u64(woke->value, UINT64_MAX, &restored) != 0)
        restored = 0;
    another |= http_find(&h, SPAN("countersign-image")) != NULL;
    http_body_begin(&r->body, &h);
    dynbuf_drop(&r->in, used);
    return 0;
}

/* The next piece of the body: 1 with *data (valid until the next call), 0 at its end, -1. */
static int reader_data(struct reader *r, struct span *data, struct err *e)
{
    size_t used;

    dynbuf_drop(&r->in, r->taken);
    r->taken = 0;
    while (!r->ended) {
        enum http_result rc = http_body_step(&r->body, dynbuf_span(&r->in), &used, data);
        if (rc == HTTP_BAD)
            return err_set(e, "the gateway's answer is broken: %s", r->body.err.why);
        r->ended = rc == HTTP_OK;
        if (data->n > 0) {
            r->taken = used;
            return 1;
        }
        dynbuf_drop(&r->in, used);
        if (r->ended || used > 0)
            continue;
        int got = reader_fill(r, e);
        if (got < 0)
            return -1;
        if (got == 0 && http_body_eof(&r->body) != HTTP_OK)
            return err_set(e, "the gateway's answer broke off");
        r->ended = got == 0;
    }
    return 0;
}

static void reader_close(struct reader *r)
{
    if (r->fd >= 0)
        close(r->fd);
    dynbuf_free(&r->in);
}

/* All of an answer that is not large. */
static int answer_read(struct reader *r, struct dynbuf *answer, struct err *e)
{
    struct span data;
    int rc;

    while ((rc = reader_data(r, &data, e)) > 0)
        if (dynbuf_add(answer, data) != 0)
            return err_set(e, "the gateway's answer is larger than this program takes");
    return rc;
}

static int call(const char *sock, const char *method, const char *path, struct span body, struct reader r,
                unsigned *status, struct dynbuf *answer, struct err *e)
{
    struct timeval wait = {.tv_sec = r.waits ? 1 : CALL_WAIT_S};
    int rc = -1;

    dynbuf_init(answer, API_ANSWER_MAX);
    dynbuf_init(&r.in, HTTP_HEAD_MAX + 2 * READ_BYTES);
    r.fd = gateway_open(sock, e);
    if (r.fd < 0)
        goto out;
    (void)setsockopt(r.fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    if (request_send(r.fd, method, path, body, "application/json", NULL, e) != 0 ||
        reader_head(&r, method, status, e) != 0)
        goto out;
    rc = answer_read(&r, answer, e);
out:
    reader_close(&r);
    return rc;
}

int api_call(const char *sock, const char *method, const char *path, struct span body, unsigned *status,
             struct dynbuf *answer, struct err *e)
{
    return call(sock, method, path, body, (struct reader){.fd = -1}, status, answer, e);
}

static void waits_only(void *ctx, unsigned seconds)
{
}

int api_call_patient(const char *sock, const char *method, const char *path, struct span body, unsigned *status,
                     struct dynbuf *answer, struct err *e)
{
    return api_call_watched(sock, method, path, body, waits_only, NULL, status, answer, e);
}

int api_call_watched(const char *sock, const char *method, const char *path, struct span body, api_wait_fn *waits,
                     void *ctx, unsigned *status, struct dynbuf *answer, struct err *e)
{
    return call(sock, method, path, body, (struct reader){.fd = -1, .waits = waits, .ctx = ctx}, status, answer, e);
}

/* The words may quote an agent: nothing of theirs reaches a terminal that would not be seen as it is. */
static void words_put(struct err *e, struct span words)
{
    struct dynbuf shown;

    dynbuf_init(&shown, VISIBLE_ESCAPE_MAX * sizeof(e->text));
    visible_text(&shown, span_first(words, sizeof(e->text)), false);
    (void)err_set(e, "%.*s", SPAN_FMT(dynbuf_span(&shown)));
    dynbuf_free(&shown);
}

int api_explain(unsigned status, struct span answer, struct err *e)
{
    struct arena a;
    struct span words;
    const struct json *j;

    arena_init(&a, 4 * API_EVENT_MAX);
    j = json_parse(answer, &a);
    words = json_text(j, SPAN("detail"));
    if (words.n == 0)
        words = json_text(j, SPAN("title"));
    if (words.n == 0)
        words = json_text(j, SPAN("error"));
    if (words.n > 0)
        words_put(e, words);
    else
        (void)err_set(e, "the gateway answered %u and gave no reason", status);
    arena_free(&a);
    return -1;
}

struct asked {
    const char *method, *path, *last_id;
    struct span body;
};

static int stream(const char *sock, const struct asked *a, api_event_fn *fn, void *ctx, struct err *e)
{
    struct reader r = {.fd = -1};
    struct sse sse;
    struct dynbuf answer;
    struct span data;
    unsigned status = 0;
    int rc = -1;

    sse_init(&sse, fn, ctx);
    dynbuf_init(&answer, API_EVENT_MAX);
    dynbuf_init(&r.in, HTTP_HEAD_MAX + 2 * READ_BYTES);
    r.fd = gateway_open(sock, e);
    if (r.fd < 0 || request_send(r.fd, a->method, a->path, a->body, "text/event-stream", a->last_id, e) != 0 ||
        reader_head(&r, a->method, &status, e) != 0)
        goto out;
    while ((rc = reader_data(&r, &data, e)) > 0) {
        rc = status == 200 ? sse_feed(&sse, data) : dynbuf_add(&answer, data);
        if (rc == 0)
            continue;
        if (!dynbuf_ok(&sse.line) || !dynbuf_ok(&sse.data) || !dynbuf_ok(&answer))
            rc = err_set(e, "the gateway sent an event larger than this program takes");
        goto out;
    }
    if (rc == 0 && status != 200)
        rc = api_explain(status, dynbuf_span(&answer), e);
out:
    reader_close(&r);
    dynbuf_free(&answer);
    sse_free(&sse);
    return rc;
}

int api_stream(const char *sock, const char *path, const char *last_id, api_event_fn *fn, void *ctx, struct err *e)
{
    return stream(sock, &(struct asked){"GET", path, last_id, SPAN_NONE}, fn, ctx, e);
}

int api_stream_of(const char *sock, const char *path, struct span body, api_event_fn *fn, void *ctx, struct err *e)
{
    return stream(sock, &(struct asked){"POST", path, NULL, body}, fn, ctx, e);
}

/* --- bodies of any length ----------------------------------------------------- */

struct api_upload {
    struct reader r;
    const char *method;
};

void api_upload_drop(struct api_upload **u)
{
    if (*u) {
        reader_close(&(*u)->r);
        free(*u);
    }
    *u = NULL;
}

struct api_upload *api_upload_begin(const char *sock, const char *method, const char *path, struct err *e)
{
    struct api_upload *u = calloc(1, sizeof(*u));
    struct dynbuf head;

    if (!u) {
        (void)err_set(e, "no memory");
        return NULL;
    }
    u->method = method;
    dynbuf_init(&u->r.in, HTTP_HEAD_MAX + 2 * READ_BYTES);
    dynbuf_init(&head, REQUEST_MAX);
    u->r.fd = gateway_open(sock, e);
    if (u->r.fd < 0)
        goto fail;
    if (http_write_request_line(&head, span_str(method), span_str(path)) != 0 ||
        http_write_field(&head, SPAN("Host"), SPAN("countersign")) != 0 ||
        http_write_field(&head, SPAN("Connection"), SPAN("close")) != 0 ||
        http_write_field(&head, SPAN("Content-Type"), SPAN("application/octet-stream")) != 0 ||
        http_write_end(&head, HTTP_CHUNKED, 0) != 0) {
        (void)err_set(e, "this cannot be asked of the gateway: %s is not a path it could have", path);
        goto fail;
    }
    if (api_send(u->r.fd, dynbuf_span(&head)) != 0) {
        (void)err_errno(e, "asking the gateway failed");
        goto fail;
    }
    dynbuf_free(&head);
    return u;
fail:
    dynbuf_free(&head);
    api_upload_drop(&u);
    return NULL;
}

int api_upload_put(struct api_upload *u, struct span piece)
{
    struct dynbuf chunk;

    dynbuf_init(&chunk, piece.n + 64);
    int rc = http_write_chunk(&chunk, piece) != 0 ? -1 : api_send(u->r.fd, dynbuf_span(&chunk));
    dynbuf_free(&chunk);
    return rc;
}

int api_upload_end(struct api_upload **u, unsigned *status, struct dynbuf *answer, struct err *e)
{
    struct reader *r = &(*u)->r;

    dynbuf_init(answer, API_ANSWER_MAX);
    (void)!api_send(r->fd, SPAN("0\r\n\r\n")); /* if nobody takes it any more, there is an answer */
    int rc = reader_head(r, (*u)->method, status, e) != 0 ? -1 : answer_read(r, answer, e);
    api_upload_drop(u);
    return rc;
}

int api_download(const char *sock, const char *path, api_piece_fn *fn, void *ctx, unsigned *status,
                 struct dynbuf *answer, struct err *e)
{
    struct reader r = {.fd = -1};
    struct span data;
    int rc = -1;

    dynbuf_init(answer, API_ANSWER_MAX);
    dynbuf_init(&r.in, HTTP_HEAD_MAX + 2 * READ_BYTES);
    r.fd = gateway_open(sock, e);
    if (r.fd < 0 || request_send(r.fd, "GET", path, SPAN_NONE, "*/*", NULL, e) != 0 ||
        reader_head(&r, "GET", status, e) != 0)
        goto out;
    if (*status != 200) {
        rc = answer_read(&r, answer, e);
        goto out;
    }
    while ((rc = reader_data(&r, &data, e)) > 0)
        if (fn(ctx, data, e) != 0) {
            rc = -1;
            break;
        }
out:
    reader_close(&r);
    return rc;
}
