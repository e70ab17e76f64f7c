/* What is neither TLS nor HTTP, of protocols whose first message can be answered with words that their clients show.
 * Nothing of them is passed on.
 *
 *   SSH         "SSH-" ...                      our version, then SSH_MSG_DISCONNECT (RFC 4253 sections 4.2, 11.1)
 *   PostgreSQL  SSLRequest, GSSENCRequest       "N": without encryption; its StartupMessage follows
 *               StartupMessage                  an ErrorResponse */
#include "proxy/front/client.h"

enum {
    PG_REQUEST = 8,
    PG_VERSION_3 = 3,
    PG_SSL = 80877103,
    PG_GSS = 80877104,
    SSH_DISCONNECT = 1,
    SSH_BY_APPLICATION = 11
};

#define ONLY "Only HTTP and HTTPS pass the gateway of this sandbox. "

static uint32_t number(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void add_number(struct dynbuf *b, size_t n)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        (void)dynbuf_add_byte(b, (uint8_t)(n >> shift));
}

static void say_ssh(struct dynbuf *out)
{
    const struct span words = SPAN(ONLY "For Git use https://HOST/PATH in place of git@HOST:PATH.");
    const size_t payload = 1 + 4 + 4 + words.n + 4, pad = 8 + 7 - (4 + 1 + payload + 7) % 8;
    (void)dynbuf_add(out, SPAN("SSH-2.0-countersign\r\n"));
    add_number(out, 1 + payload + pad);
    (void)dynbuf_add_byte(out, (uint8_t)pad);
    (void)dynbuf_add_byte(out, SSH_DISCONNECT);
    add_number(out, SSH_BY_APPLICATION);
    add_number(out, words.n);
    (void)dynbuf_add(out, words);
    add_number(out, 0); /* no language */
    for (size_t i = 0; i < pad; i++)
        (void)dynbuf_add_byte(out, 0);
}

static void say_postgresql(struct dynbuf *out)
{
    const struct span fields =
        SPAN("SFATAL\0VFATAL\0C28000\0M" ONLY "A database is reached by an API over HTTP, or not at all.\0\0");
    (void)dynbuf_add_byte(out, 'E');
    add_number(out, 4 + fields.n);
    (void)dynbuf_add(out, fields);
}

static enum walk_next refuse(struct client *c, const char *code, void (*say)(struct dynbuf *out))
{
    struct dynbuf *out = &c->front->out;
    tls_leaf_free(&c->leaf);
    front_note(c, code);
    dynbuf_reset(out);
    say(out);
    if (!dynbuf_ok(out) || client_write(c, dynbuf_span(out)) != 0)
        client_free(c);
    else
        client_finish(c);
    return WALK_DONE;
}

/* Eight bytes tell all of its first messages; how long the rest is does not matter. */
static enum walk_next postgresql(struct client *c)
{
    struct span in;
    while ((in = conn_input(c->conn)).n >= PG_REQUEST) {
        uint32_t length = number(in.p), what = number(in.p + 4);
        if (length > PG_REQUEST && what >> 16 == PG_VERSION_3)
            return refuse(c, "postgresql", say_postgresql);
        if (length != PG_REQUEST || (what != PG_SSL && what != PG_GSS))
            return WALK_NEXT;
        conn_consume(c->conn, PG_REQUEST);
        if (client_write(c, SPAN("N")) != 0) {
            client_free(c);
            return WALK_DONE;
        }
    }
    return WALK_WAIT;
}

enum walk_next front_stranger(struct client *c, struct span in)
{
    const struct span ssh = SPAN("SSH-");
    if (in.p[0] == 0)
        return postgresql(c);
    if (span_starts(in, ssh))
        return refuse(c, "ssh", say_ssh);
    return span_starts(ssh, in) ? WALK_WAIT : WALK_NEXT;
}
