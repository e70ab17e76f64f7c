/* How a refusal looks to the client that gets it: in the words of the API that it speaks, so that it shows them to a
 * person or an agent, or as RFC 9457 problem+json. Pure: values in, bytes out. What a request is like chooses the
 * words alone, never the decision, nor that a client is told an error (a client of MCP that says that it can ask its
 * user is told to). Foreign text (say, words, ref names, the id of
 * a JSON-RPC request) is made harmless for where it goes, and is bounded. */
#ifndef PROXY_JUDGE_DIALECT_H
#define PROXY_JUDGE_DIALECT_H

#include "policy/policy.h"
#include "proxy/judge/tickets/elicit.h"
#include "proxy/wire.h"

struct refusal {
    unsigned status;
    const char *code;           /* stable: "denied", "held", ...; NULL: there is no refusal */
    struct span cause;          /* of "unclassified": a stable word, or empty */
    const char *decision;       /* "deny", "hold" or "error" */
    struct span title;          /* one short sentence: reason phrase, git's ng line */
    struct span detail;         /* the whole story in plain words */
    struct span next;           /* what to do now, or empty */
    struct span instead;        /* what is allowed instead, or empty */
    struct span asked;          /* of a denial: METHOD URL, or empty */
    const struct span *allowed; /* of a denial: what may be asked there, a sentence each */
    size_t nallowed;
    struct span ticket; /* its text, or empty */
    struct span status_url, approval_url;
    struct span challenge; /* WWW-Authenticate, of a 401; or empty */
    struct span rule;      /* only where rules are disclosed */
    uint64_t expires_ms;   /* 0: nothing expires */
    bool retry;            /* the same request may succeed later */
    unsigned retry_after;  /* seconds, 0: not said */
    bool close;
    struct span elicit_state;
    enum elicit_by elicit; /* of what is held: the client asks its user, in MCP's words; else ELICIT_NO */
};

/* Who is told. */
struct dialect_client {
    enum dialect said;                  /* by a pack, or DIALECT_UNSAID */
    const struct wire_request *request; /* NULL: nothing is known of it */
    struct span body;                   /* all of it, or empty */
    const struct git_push *push;        /* or NULL */
    struct span aws_signature;          /* that was taken out of the request; or empty */
    struct span rpc_id;                 /* of JSON-RPC where the body is another try's: its own id; or empty */
};

/* The field with which AWS's clients sign, and those of others who speak as they do; or empty. */
struct span dialect_aws_signature(const struct wire_request *r);
/* What was said, or the first row that the request is like; DIALECT_PROBLEM where there is none. */
enum dialect dialect_of(const struct dialect_client *c);
/* "unsaid" for what is no dialect. */
const char *dialect_name(enum dialect d);
/* Space for the reply comes from the arena; when it is used up, the status alone still refuses. */
void dialect_reply(const struct dialect_client *c, const struct refusal *r, struct arena *a, struct wire_reply *out);

/* Helpers, of all who answer a client. */
void dialect_field(struct wire_answer *a, struct span name, struct span value);
/* Printable ASCII on one line, other bytes as '?', at most max bytes. */
struct span dialect_one_line(struct span s, size_t max, struct arena *a);
/* detail, next, instead and the page's address, a line each, each ended by \n; control bytes replaced. */
void dialect_lines(const struct refusal *r, struct dynbuf *out);
/* The buffer's bytes, kept by the arena; frees the buffer. */
int dialect_keep(struct dynbuf *b, struct arena *a, struct span *out) MUSTCHECK;
/* Unix ms as RFC 3339 in UTC. */
struct span dialect_time(uint64_t ms, struct arena *a);

#endif
