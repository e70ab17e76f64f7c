/* The dock: E2B's sandbox API on a listener of its own. It holds nothing but connections and which commands it has
 * begun: whose a token is, which sandboxes there are and what is done in them, it asks the desk, over streams that
 * are opened with the token that its caller has shown (proxy/errand/errand.h).
 *
 *   door.c      bytes of a caller <-> one struct call at a time
 *   routes.c    which handler, and what a caller must bring
 *   proxy/errand one request to the desk
 *   control.c   sandboxes · snapshots/ and forks · files.c, entries.c, watch.c their files · commands/ what runs in
 *               them */
#ifndef PROXY_DOCK_DOCK_H
#define PROXY_DOCK_DOCK_H

#include "common/arena.h"
#include "common/http/http.h"
#include "common/id.h"
#include "common/json/json.h"
#include "proxy/errand/errand.h"

struct chan;
struct client;
struct dock;
struct errand;
struct loop;
struct proc;
struct signed_token;
struct watcher;

enum {
    DOCK_CLIENTS = 512,              /* connections of callers; past them whoever holds most loses one */
    DOCK_BODY_MAX = ERRAND_BODY_MAX, /* of a request that is read whole */
    DOCK_ANSWER_MAX = ERRAND_ANSWER_MAX,
    DOCK_ARENA_MAX = 32 * 1024 * 1024,
    DOCK_UNREAD_MAX = 256 * 1024, /* bytes of a caller that nobody takes yet */
    DOCK_REQUEST_MS = 30 * 1000,
    DOCK_IDLE_MS = 75 * 1000,
    DOCK_SEND_MS = 60 * 1000,                 /* without progress of a caller that is being answered */
    DOCK_PING_MS = 20 * 1000,                 /* of a stream on which nothing is said */
    DOCK_PROCS = 192,                         /* commands that were begun and have not ended */
    DOCK_TENANT_PROCS = 160,                  /* of one tenant's, however many sandboxes it has */
    DOCK_ERRANDS = DOCK_CLIENTS + DOCK_PROCS, /* one of each */
    DOCK_PROC_CALLERS = 8,                    /* who follow one of them */
    DOCK_KEY_MAX = 256,
    DOCK_BOX_MAX = 63,
    DOCK_PATH_MAX = 4095,
    DOCK_FAR_MAX = 64, /* folders that are looked at for one listing */
    DOCK_FORKS_MAX = 16,
    DOCK_WATCHERS = 128, /* folders that are watched */
    DOCK_TENANT_WATCHERS = 48,
    DOCK_BOX_WATCHERS = 16,
};

/* How a refusal is written. */
enum call_form { CALL_CONTROL = 0, CALL_ENVD, CALL_RPC, CALL_STREAM };

struct call;
typedef void call_fn(struct call *x);

/* One request and its answer. It lives until its client has all of the answer, or has gone. */
struct call {
    struct dock *dock;
    struct client *client;
    enum call_form form;
    uint64_t wall_ms;
    struct dynbuf raw; /* the head; the spans of `head` point into it */
    struct http_head head;
    struct dynbuf body;  /* of a request that is read whole; of a stream's first frame */
    struct span arg;     /* the {id} of the path, or the sandbox of envd */
    struct digest token; /* what the caller brought, as the desk knows it */
    char key[DOCK_KEY_MAX + 1];
    struct arena arena;
    const struct json *json; /* of body */
    struct errand *errand;   /* that it waits for */
    void *step;              /* of a handler; in the arena */
    /* who takes the body as it comes: it is told of new bytes, and calls door_body for them */
    call_fn *takes;
    /* the client's queue is low again; and it has gone (after which the call is freed) */
    call_fn *drained, *gone;
    call_fn *ping;     /* of one that streams: says something, so that its client hears that it is there */
    struct proc *proc; /* that it follows */
    struct watcher *watcher;
    /* the answer */
    unsigned status; /* 0: not yet */
    const char *type;
    char next[80]; /* x-next-token */
    struct dynbuf out;
    bool streams; /* its head has left, and more comes */
};

struct dock {
    struct loop *loop;
    struct errands errands; /* what the desk is asked */
    struct client *clients;
    size_t nclients;
    struct proc *procs;
    size_t nprocs;
    uint32_t last_pid;
    struct watcher *watchers;
    struct signed_token *tokens; /* access/signed.h */
    uint64_t tokens_used;
    uint64_t unknown; /* requests for what is not here */
};

/* --- door.c ------------------------------------------------------------------- */

struct door;
struct door *door_new(struct dock *d, int fd) MUSTCHECK;
/* x->status, type and out are the answer. Whoever answers, also by a reply_*, has no x any more. */
void call_answer(struct call *x);
/* The head of an answer of pieces, of this type; then pieces; then its end (whole: false, it is cut off). -1: the
 * client has gone, and x with it. */
int call_stream(struct call *x, unsigned status, const char *type) MUSTCHECK;
int call_piece(struct call *x, struct span s) MUSTCHECK;
void call_stream_end(struct call *x, bool whole);
/* For so long more of its body is waited for; 0: for as long as it takes. */
void call_patience(struct call *x, uint64_t ms);
/* The desk has said whose token x came with: its connection counts as this tenant's from now on. */
void call_holder(struct call *x, const char *tenant);
/* The digest of the tenant's name; zeros: the desk has not said. */
const struct digest *call_tenant(const struct call *x);
/* Does the client read what it is sent? */
bool call_reads(const struct call *x);
/* Of a body that x->takes: what is here, behind what `to` has, until that has `most` bytes. *over: that was all of
 * it. -1: it is malformed. */
int call_body(struct call *x, size_t most, struct dynbuf *to, bool *over) MUSTCHECK;

/* --- reply.c ------------------------------------------------------------------ */

void reply_json(struct call *x, unsigned status, struct jsonw *w);
void reply_empty(struct call *x, unsigned status);
/* A refusal in the form that this caller reads, and it is answered. code: of Connect, "not_found". */
void reply_no(struct call *x, unsigned status, const char *fmt, ...) PRINTF(3, 4);
void reply_no_span(struct call *x, unsigned status, struct span words);
/* With a code of Connect that is not its status' usual one. */
void reply_code_no(struct call *x, unsigned status, const char *code, struct span words);
/* The desk's own refusal, handed on: its words, or ours where it has none. */
void reply_desk(struct call *x, unsigned status, struct span body);
const char *reply_code(unsigned status);
/* A member of a query, decoded. -1: it is there twice or cannot be. Empty: it is not there. */
int call_query(struct call *x, const char *name, struct span *out) MUSTCHECK;
/* %xx and + decoded, into the arena. -1: it cannot be. */
int call_decode(struct call *x, struct span in, struct span *out) MUSTCHECK;
/* A field of the head, or empty. */
struct span call_field(const struct call *x, struct span name);
/* The message of an envd call, or of a stream's one frame: a JSON object, as x->json. NULL: answered. */
const struct json *call_message(struct call *x);
/* For so long its answer is wanted: a day, unless it says another time. In seconds. */
uint64_t call_timeout_s(const struct call *x);
/* Of a stream: one frame; its last, and its end, whole or in words. -1: the client has gone, and x with it. */
int call_frame(struct call *x, uint8_t flags, struct span json);
void call_frame_end(struct call *x);
void call_frame_no(struct call *x, unsigned status, struct span words);

/* --- routes.c ----------------------------------------------------------------- */

enum call_takes { TAKES_REFUSED = 0, TAKES_WHOLE, TAKES_PIECES };
/* By x->head: what is to be done with its body. REFUSED: answered. */
enum call_takes route_find(struct call *x, call_fn **fn) MUSTCHECK;
/* The name of a sandbox or snapshot as they are given: nothing else is in a path to the desk. */
bool dock_name_ok(struct span s);

/* --- access/token.c ------------------------------------------------------------------ */

enum { ACCESS_TEXT = 3 + 2 * DIGEST_BYTES };
/* What the holder of a key opens one sandbox with: "at_" and 64 hexadecimal digits. */
void token_access(struct span key, struct span sandbox, uint64_t restored, char out[ACCESS_TEXT + 1]);
void token_hash(struct span text, struct digest *out);

#endif
