/* What our parser makes of messages, for tests/differential/run.py.
 *
 * in:  u32 length | place (1 to 3: enum http_place; 4: a response to a GET) | bytes of one connection, to its end
 * out: one line for each: its messages in a row, then how it ended.
 *      message: "Q method target minor body name=value,name=value" or "A status reason minor body ...", in hex
 *
 *      end: "clean", "cut", "tunnel" (after CONNECT), "closed" (no further message may come), "bad CODE" */
#include <stdio.h>
#include <stdlib.h>

#include "common/http/http.h"

enum { RESPONSE = 4, MESSAGE_MAX = 1 << 20 };

static void hex(struct span s)
{
    putchar('x');
    for (size_t i = 0; i < s.n; i++)
        printf("%02x", s.p[i]);
}

static void say(const struct http_head *h, const struct dynbuf *body)
{
    printf(h->status ? "A %u " : "Q ", h->status);
    hex(h->status ? h->reason : h->method);
    if (!h->status) {
        putchar(' ');
        hex(h->target);
    }
    printf(" %u ", h->minor);
    hex(dynbuf_span(body));
    putchar(' ');
    for (size_t i = 0; i < h->nfields; i++) {
        hex(h->field[i].name);
        putchar('=');
        hex(h->field[i].value);
        putchar(',');
    }
    printf("; ");
}

/* The body behind a head, all of which is there. Its end as enum http_result; *code of a refusal. */
static enum http_result read_body(const struct http_head *h, struct span *in, struct dynbuf *body, const char **code)
{
    struct http_body b;
    enum http_result r;
    http_body_begin(&b, h);
    do {
        struct span data;
        size_t used;
        r = http_body_step(&b, *in, &used, &data);
        if (r != HTTP_BAD)
            (void)dynbuf_add(body, data);
        *in = span_from(*in, used);
        if (r == HTTP_MORE && used == 0)
            break;
    } while (r == HTTP_MORE);
    if (r == HTTP_MORE && h->framing == HTTP_UNTIL_CLOSE)
        r = http_body_eof(&b);
    *code = b.err.code;
    return r;
}

/* One message off the front of in. HTTP_OK: it was said. */
static enum http_result one(int place, struct span *in, struct http_head *h, const char **code)
{
    struct http_err e = {0};
    struct dynbuf body;
    size_t used, seen = 0;
    enum http_result r = place == RESPONSE ? http_parse_response(*in, SPAN("GET"), &seen, h, &used, &e)
                                           : http_parse_request(*in, (enum http_place)place, &seen, h, &used, &e);
    *code = e.code;
    if (r != HTTP_OK)
        return r;
    *in = span_from(*in, used);
    dynbuf_init(&body, MESSAGE_MAX);
    r = read_body(h, in, &body, code);
    if (r == HTTP_OK)
        say(h, &body);
    dynbuf_free(&body);
    return r;
}

static void connection(int place, struct span in)
{
    static struct http_head h;
    const char *code = NULL, *end = "clean";
    while (in.n) {
        enum http_result r = one(place, &in, &h, &code);
        if (r != HTTP_OK) {
            end = r == HTTP_BAD ? "bad " : "cut";
            break;
        }
        code = NULL;
        if (h.form == HTTP_AUTHORITY || h.status == 101) {
            end = "tunnel";
            break;
        }
        if (!h.keep_alive || (h.status >= 200 && in.n)) {
            end = "closed";
            break;
        }
    }
    printf("%s%s\n", end, *end == 'b' && code ? code : "");
}

int main(void)
{
    uint8_t head[5];
    while (fread(head, 1, sizeof head, stdin) == sizeof head) {
        size_t n = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
        uint8_t *p = n > MESSAGE_MAX ? NULL : malloc(n ? n : 1); /* ends where its memory ends */
        if (p == NULL || fread(p, 1, n, stdin) != n) {
            fprintf(stderr, "verdict: a message is too long or cut\n");
            free(p);
            return 1;
        }
        connection(head[4], span_of(p, n));
        free(p);
    }
    return fflush(stdout) == 0 ? 0 : 1;
}
