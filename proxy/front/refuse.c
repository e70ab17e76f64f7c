/* What the front refuses by itself: what cannot be parsed, and what finds a part of the gateway missing. */
#include "proxy/front/client.h"

static const char *phrase(unsigned status)
{
    switch (status) {
    case 405: return "Method Not Allowed";
    case 407: return "Proxy Authentication Required";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 414: return "URI Too Long";
    case 417: return "Expectation Failed";
    case 421: return "Misdirected Request";
    case 431: return "Request Header Fields Too Large";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Bad Request";
    }
}

/* Our own sentences: printable, but there are quotes in some. */
static void put_text(struct dynbuf *b, const char *key, const char *text)
{
    (void)dynbuf_addf(b, ",\"%s\":\"", key);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            (void)dynbuf_add_byte(b, '\\');
        (void)dynbuf_add_byte(b, (uint8_t)*text);
    }
    (void)dynbuf_add_byte(b, '"');
}

void front_refuse_tls(struct client *c, uint8_t description, const char *code)
{
    front_note(c, code);
    front_alert(c, description);
}

void front_alert(struct client *c, uint8_t description)
{
    const uint8_t alert[] = {21, 3, 3, 0, 2, 2, description}; /* RFC 8446 section 5.1: one record, fatal */
    if (client_write(c, span_of(alert, sizeof(alert))) != 0)
        client_free(c);
    else
        client_finish(c);
}

void front_refuse_socks(struct client *c, enum socks5_reply why, const char *code)
{
    uint8_t reply[SOCKS5_REPLY_BYTES];
    front_note(c, code);
    socks5_reply(why, reply);
    if (client_write(c, span_of(reply, sizeof(reply))) != 0)
        client_free(c);
    else
        client_finish(c);
}

void front_refuse(struct client *c, unsigned status, const char *code, const char *why)
{
    struct dynbuf *body = &c->front->query, *out = &c->front->out;
    if (c->hello) {
        front_refuse_tls(c, ALERT_INTERNAL, code);
        return;
    }
    if (c->state == CLIENT_SOCKS) {
        front_refuse_socks(c, SOCKS5_FAILURE, code);
        return;
    }
    front_note(c, code);
    if ((client_answered(c)) || c->state == CLIENT_HANDSHAKE) {
        client_cut(c);
        return;
    }
    dynbuf_reset(body);
    dynbuf_reset(out);
    (void)dynbuf_addf(body, "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%u", phrase(status), status);
    put_text(body, "code", code);
    put_text(body, "error", why);
    put_text(body, "message", why);
    put_text(body, "detail", why);
    (void)dynbuf_addf(body, ",\"retry\":%s}\n", status == 503 || status == 408 ? "true" : "false");
    (void)dynbuf_addf(out,
                      "HTTP/1.1 %u %s\r\nContent-Type: application/problem+json\r\nCountersign-Decision: refused\r\n"
                      "%sConnection: close\r\nContent-Length: %zu\r\n\r\n",
                      status, phrase(status),
                      status == 407 ? "Proxy-Authenticate: Basic realm=\"countersign\"\r\n" : "", body->n);
    bool head_only = client_asks(c) && c->x.is_head;
    if (!dynbuf_ok(body) || !dynbuf_ok(out) || client_write(c, dynbuf_span(out)) != 0 ||
        (!head_only && client_write(c, dynbuf_span(body)) != 0))
        client_free(c);
    else
        client_finish(c);
}
