/* The request head that goes upstream, written from the decided model and nothing else (INV1). Pure.
 *
 * Request line with path and query, Host from the decided authority, the model's fields but those that
 * proxy/outbound.h keeps back, the credential in its one slot, one framing field. Where the slot is in the path or
 * the query, the judge has found it: here only the mark is looked for, in that one place. */
#ifndef CARRIER_INJECT_H
#define CARRIER_INJECT_H

#include "proxy/carrier/credential/cred.h"
#include "proxy/wire.h"

struct inject {
    const struct wire_request *request;
    struct span name, value; /* the credential; both empty: none is injected */
    enum slot_kind slot;     /* where its mark stands, behind slot_at bytes; SLOT_HEADER: in no part of the head */
    size_t slot_at;
    struct span header;                              /* of SLOT_HEADER: its field */
    struct http_field signature[CRED_SIGNATURE_MAX]; /* or the fields of a signature, Authorization among them */
    size_t nsignature;
    struct span range;         /* in place of the client's Range; empty: that one leaves */
    struct span ws_key;        /* of a WebSocket upgrade, made for it; empty: the request must be none */
    bool identity;             /* the host has secrets: ask for an answer that can be looked at */
    enum http_framing framing; /* HTTP_NO_BODY, HTTP_LENGTH or HTTP_CHUNKED */
    uint64_t length;
};

/* The room the largest head can take: what came in, Host and the rest, a credential of 16 KiB. */
enum { INJECT_HEAD_MAX = HTTP_HEAD_MAX + 3 * HTTP_TARGET_MAX + 32 * 1024 };

/* A part of the request with the value in place of its mark. -1: no mark stands there. */
int inject_marked(struct dynbuf *out, const struct inject *in, enum slot_kind part, struct span text) MUSTCHECK;
/* Append the head to out. -1: something in it cannot be written; nothing may be sent then. Wipe out after use. */
int inject_head(struct dynbuf *out, const struct inject *in) MUSTCHECK;

#endif
