/* What more than one role writes into a message, as pairs: put and get in the
 * same order. Gets borrow from the payload; each returns 0, or -1 when a field is missing, over its limit, or
 * not what its kind allows. */
#ifndef PROXY_WIRE_H
#define PROXY_WIRE_H

#include "common/http/http.h"
#include "common/lease/lease.h"
#include "common/msg.h"
#include "common/sign/scheme.h"
#include "common/http/slot.h"
#include "proxy/msgs.h"
#include "common/json/rpc.h"

/* A canonical request head: lower-case scheme and host, effective port, canonical path and query; hop-by-hop,
 * framing, forwarding, Expect, Proxy-* and Countersign-* fields already removed. */
struct wire_request {
    struct span scheme, host, method, path, query;
    uint16_t port;
    bool has_query;
    size_t nfields;
    struct http_field field[HTTP_FIELDS_MAX]; /* last, as of what holds one: behind nfields nothing is set or read */
};
/* As much of it as counts. */
void wire_copy_request(struct wire_request *to, const struct wire_request *from);
void wire_put_request(struct dynbuf *b, const struct wire_request *r);
int wire_get_request(struct msg_in *m, struct wire_request *r) MUSTCHECK;

/* An answer's head as it goes to the client: hop-by-hop and framing fields removed, secrets scrubbed. */
struct wire_answer {
    uint16_t status;
    struct span reason;
    enum http_framing framing; /* HTTP_NO_BODY, HTTP_LENGTH or HTTP_CHUNKED: of unknown length */
    uint64_t length;
    size_t nfields;
    struct http_field field[HTTP_ANSWER_FIELDS_MAX];
};
void wire_put_answer(struct dynbuf *b, const struct wire_answer *a);
int wire_get_answer(struct msg_in *m, struct wire_answer *a) MUSTCHECK;

/* The gateway's own answer, complete. */
struct wire_reply {
    struct wire_answer head; /* framing and length are ignored: the body is all there is */
    struct span body;
    bool close; /* end the client's connection after it */
};
void wire_put_reply(struct dynbuf *b, const struct wire_reply *r);
int wire_get_reply(struct msg_in *m, struct wire_reply *r) MUSTCHECK;

/* How many places the carrier knows at once. The judge numbers them so that the number modulo this is a place in its
 * table: what is told with a later number takes that place, and the earlier number means nothing any more. */
enum { WIRE_UPSTREAMS_MAX = 8192 };
struct wire_upstream {
    uint32_t number;
    struct span scheme, host, address, ca_pem, crl_pem;
    uint16_t port;
    bool cleartext_credentials, has_secrets, only_tls13;
    struct digest place; /* what the policy binds to it (identity.h); all zero without secrets */
    size_t npins;
    struct span pin[16]; /* 32 bytes each */
    size_t ncidrs;
    struct span cidr[16];
};
void wire_put_upstream(struct dynbuf *b, const struct wire_upstream *u);
int wire_get_upstream(struct msg_in *m, struct wire_upstream *u) MUSTCHECK;

enum wire_release { RELEASE_NONE = 0, RELEASE_COMES, RELEASE_LIVE };
enum wire_body { BODY_NONE = 0, BODY_INLINE, BODY_STREAM, BODY_FD };
enum { WIRE_SWAPS_BYTES = 64 * 1024 };
struct wire_forward {
    uint32_t upstream;
    /* A read that was let through with nothing written down. Whatever else, zero included, is sent at most once: it
     * is reported as sent before its first byte, and its answer is kept if nobody takes it. */
    bool repeatable;
    enum wire_release release;
    struct span credential;
    enum slot_kind slot; /* where its mark stands, if it has one, */
    uint32_t slot_at;    /* and behind how many bytes of that: the query, the path or the body */
    enum wire_body body;
    struct span reach; /* to which of its addresses it may go (proxy/reach/); empty: any */
    bool metered;      /* nothing passes of it but what M_EGRESS_GIVE lets, the first of which follows */
    /* u8 n, n x wire_swap (proxy/lease/wire_swap.h): tokens of its answer; empty: there are none */
    struct span swaps;
    /* What its client knows the answer by (common/json/rpc.h); empty: the answer goes on as it is. */
    struct span answer_id;
    struct wire_request request; /* last */
};
void wire_put_forward(struct dynbuf *b, const struct wire_forward *f);
int wire_get_forward(struct msg_in *m, struct wire_forward *f) MUSTCHECK;

/* What the parent tells the lobby about a listener of several sandboxes, in M_LISTEN behind the name. Limits are
 * those of the configuration. */
enum { LISTENER_SOURCES_MAX = 256, LISTENER_PEERS_MAX = 16 };

/* Whose a connection is: a token it brings, one sandbox for all, its source address (after the PROXY header, if the
 * listener takes one), or the name in its client certificate. Zero is nobody. */
enum listener_identity { IDENTITY_NONE = 0, IDENTITY_TOKEN, IDENTITY_SANDBOX, IDENTITY_SOURCE, IDENTITY_CERTIFICATE };

struct wire_listener {
    enum way way;
    enum listener_identity identity;
    struct span sandbox; /* IDENTITY_SANDBOX */
    /* IDENTITY_SOURCE: key is an address or range (common/net/addr.h), the longest prefix wins. IDENTITY_CERTIFICATE:
     * key is a DNS name of the certificate's subjectAltName, exactly. */
    size_t nsources;
    struct {
        struct span key, sandbox;
    } source[LISTENER_SOURCES_MAX];
    size_t npeers; /* ranges whose connections must begin with a PROXY v2 header; others must not, and do not */
    struct span peer[LISTENER_PEERS_MAX];
    bool tls; /* the proxy itself speaks TLS: descriptors 1 to 3 are certificate chain, key and (IDENTITY_CERTIFICATE)
                 the CA of clients, PEM files, open and unread */
};
void wire_put_listener(struct dynbuf *b, const struct wire_listener *l);
int wire_get_listener(struct msg_in *m, struct wire_listener *l) MUSTCHECK;

/* A request as the judge prepares it to be signed, and the keeper signs it: canonical texts and digests, so that the
 * keeper parses nothing of a sandbox. At the end of M_RELEASE. Fields that the signature itself brings (Host, dates,
 * tokens) are not among these: the keeper adds them. */
enum {
    WIRE_CHUNKS_MAX = 3072, /* past so many a body is not signed for: all of their signatures go into one message */
    WIRE_CHUNK = 8 + DIGEST_BYTES, /* u64: where in the body its signature stands; SHA-256 of what is signed */
    WIRE_CHUNK_TEXT = 64,          /* a signature, in hex */
    WIRE_CHUNK_SIGNED = 8 + WIRE_CHUNK_TEXT
};

struct wire_sign {
    struct span method, path, query;          /* canonical; with a template as they leave, the query with its '?' */
    struct span payload;                      /* what stands for the body; where a template has {body}, that itself */
    bool tell_payload;                        /* the client did not say it, and the service wants to be told */
    struct http_field field[HTTP_FIELDS_MAX]; /* that the signature is to cover; with a template its other parts */
    size_t nfields;
    struct span chunks; /* WIRE_CHUNK bytes each, in their order */
    bool trailer;       /* the last of them is the trailer */
};
void wire_put_sign(struct dynbuf *b, const struct wire_sign *s);
int wire_get_sign(struct msg_in *m, struct wire_sign *s) MUSTCHECK;

/* What a client says it signed with the secret half of a lease (M_LEASE_VERIFY): digests and texts, of which the
 * keeper makes the same signatures and compares. */
enum { WIRE_CHUNK_SAID = DIGEST_BYTES + WIRE_CHUNK_TEXT /* SHA-256 of what is signed; the client's signature */ };
struct wire_signed {
    struct id lease;
    enum lease_format format;
    enum sign_scheme scheme;
    struct span stamp, region, service; /* as the client signed them */
    struct digest canonical;            /* SHA-256 of the canonical request */
    struct span signature;              /* WIRE_CHUNK_TEXT */
    struct span chunks;                 /* WIRE_CHUNK_SAID bytes each, in their order */
    bool trailer;                       /* the last of them is the trailer */
};
void wire_put_signed(struct dynbuf *b, const struct wire_signed *s);
int wire_get_signed(struct msg_in *m, struct wire_signed *s) MUSTCHECK;

/* One command in a sandbox that the warden has started: of which start of it, and its number there. The listing, the
 * runs and the audit write it "born.number". number 0: of none, or it is not known. */
struct wire_step {
    uint64_t born;
    uint32_t number;
};
enum { WIRE_STEP = 8 + 4, WIRE_STEP_TEXT = 32 /* room for its text */ };
void wire_put_step(struct dynbuf *b, const struct wire_step *s);
int wire_get_step(struct msg_in *m, struct wire_step *s) MUSTCHECK;
struct span wire_step_text(const struct wire_step *s, char to[WIRE_STEP_TEXT]);

/* What a started sandbox uses; UINT64_MAX: that is not known. */
enum { WIRE_USAGE = 1 + 5 * 8 /* bytes of one */ };
struct wire_usage {
    uint8_t version;       /* of the cgroup that counts it; 0: as seen of each process */
    uint64_t memory, peak; /* bytes, now and at most */
    uint64_t disk;         /* bytes of the memory that are its files */
    uint64_t pids;         /* processes and threads */
    uint64_t cpu_us;       /* since its start */
};
void wire_put_usage(struct dynbuf *b, const struct wire_usage *u);
int wire_get_usage(struct msg_in *m, struct wire_usage *u) MUSTCHECK;

/* What the keeper finds. */
enum wire_verified { VERIFIED_NOT = 0 /* nobody can say */, VERIFIED_WRONG, VERIFIED_CHUNK_WRONG, VERIFIED_RIGHT };

#endif
