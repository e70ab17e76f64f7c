/* What a body says, to the conditions of rules and to packs. Each kind of body that is looked into is a row of
 * body_parsers; nobody else parses one. A body is parsed once a request, when it is first asked about.
 * Only what is wholly there, of a type that says so and beyond doubt is seen; anything else leaves every question
 * about it open, which denies. Pure. */
#ifndef POLICY_BODY_BODY_H
#define POLICY_BODY_BODY_H

#include "common/json/json.h"
#include "policy/ambiguity.h"
#include "policy/image/image.h"
#include "policy/spelling/params.h"

enum fit { FIT_NO = 0, FIT_MAYBE, FIT_YES };
enum amount { AMOUNT_OPEN = 0, AMOUNT_NONE, AMOUNT_SEEN };
enum { PUSH_REFS_MAX = 1000, PUSH_COMMANDS_MAX = 1024 * 1024 };

struct graphql;
struct jsonrpc;
struct multipart_form;
struct body_view {
    bool looked, absent;
    uint8_t open;                 /* enum ambiguity_cause: why nothing is seen of it */
    const struct body_parser *is; /* what it was parsed as; NULL: nothing is seen of it, or there is none */
    struct span content_type;     /* as it came, where there is one */
    const struct json *json;
    struct params form;
    struct multipart_form *multipart;
    struct params query;                /* of the same request: servers mix the two; of its own looking */
    struct json_spelt *spelt;           /* other spellings of its texts, of those that were asked about */
    struct json_object *object;         /* the members by name, of those that were asked about */
    bool graphql_looked, graphql_meant; /* meant: a pack says that it is one, understood or not */
    uint8_t graphql_open;               /* enum ambiguity_cause: of what may be GraphQL */
    const struct graphql *graphql;      /* NULL: it is none, or open */
    const struct body_found *found;     /* what a pack took from it, if that was asked */
    bool jsonrpc_looked, jsonrpc_meant;
    uint8_t jsonrpc_open;
    const struct jsonrpc *jsonrpc;
    const struct body_found *mcp_found;
    struct body_memo *memo; /* what was found of each condition; of its evaluation's arena, as all here */
};

/* What a body is made of where each part is decided for itself, as the ref commands of a push. */
struct member {
    struct span ref;
    bool force, delete;
};

/* What a pack takes from a body. */
struct body_found {
    struct span asks;    /* an operation that only asks whether the pack's may follow; it is a read. Or empty */
    bool changes;        /* or may: an operation of the pack that is a read is another one */
    bool untold;         /* which operation it is, the body says, and that is not here yet */
    struct span join;    /* the part that a retry repeats exactly; empty: all of it */
    struct span summary; /* in words; empty: the pack's */
    const struct fact *facts;
    const struct member *members; /* none: it is decided as a whole */
    size_t nfacts, nmembers;
    const struct git_push *push;
};

/* A value in words: "the string \"", the value, "\"". */
struct body_shown {
    const char *before;
    struct span value;
    const char *after;
};

struct body_question { /* of a condition */
    const struct policy *p;
    const struct img_cond *c;
    bool strictly;
};

/* How to add one: HACKING.md. */
struct body_parser {
    const char *name, *key;     /* of its conditions in a policy: "json" with a "pointer" each */
    const char *words, *number; /* "the body is JSON"; what a number in it is asked to be */
    struct span types[2];       /* media types; one that begins with '+' is an ending of some */
    /* Parse all of it into the view. AMBIGUITY_NONE: done. NULL: only packs look into it, or: */
    enum ambiguity_cause (*parse)(struct body_view *v, struct span body, struct arena *a);
    /* Of what is said by a query or by bodies of several types: look at the request, once. AMBIGUITY_NONE: done, or
     * it is of another kind beyond doubt; AMBIGUITY_KIND: it is of another kind. No types, and no param. */
    enum ambiguity_cause (*look)(struct body_view *v, const struct request *r, struct arena *a);
    /* Is it as the condition says? strictly: as it is written, else in any way that a server might take for it. */
    enum fit (*fits)(struct body_view *v, const struct body_question *q, struct arena *a);
    /* What leaves a condition about this key open. */
    enum ambiguity_cause (*doubt)(struct body_view *v, struct span key, struct arena *a);
    /* The one text that is a number to everybody, or empty. */
    struct span (*digits)(struct body_view *v, struct span key, struct arena *a);
    /* The parameter of a query that servers mix with this key; empty: there is none. -1: no memory. */
    int (*param)(struct span key, struct arena *a, struct span *name);
    /* What stands where the question is about. */
    struct body_shown (*show)(struct body_view *v, const struct body_question *q, struct arena *a);

    /* For packs: the BODY_ of the image. Of a body with the type alone, no coding at all and all here; with look: of
     * any request that is all here. op, resource: the pack's. NULL, or the code of a refusal. */
    uint32_t pack;
    enum ambiguity_cause other_type, coded, malformed; /* why it is "unclassified" */
    const char *(*find)(struct body_view *v, const struct request *r, struct span resource, struct arena *a,
                        struct body_found *found);
};
/* The first COND_KINDS rows are those that rules have conditions about, by COND_. */
extern const struct body_parser body_parsers[];

/* Is the request's body as this condition says? strictly: as it is written, for what a rule lets through; else in any
 * way that a server might take for it. */
enum fit body_fits(struct body_view *v, const struct policy *p, const struct img_cond *c, const struct request *r,
                   bool strictly, struct arena *a);

/* Parse it, if it was not looked at: v->is says as what, v->absent that there is none. */
void body_look(struct body_view *v, const struct request *r, struct arena *a);
/* Was it looked at, and taken for this COND_? */
bool body_seen(const struct body_view *v, uint32_t kind);
/* May some server take a parameter of the query for this key of a body of that kind? Then nobody knows which counts.
 */
bool body_in_query(struct body_view *v, const struct request *r, const struct body_parser *b, struct span key,
                   struct arena *a);
/* What a key of multipart: asks about: "field", "file" or "content_type", and *name of the part. */
const char *body_multipart_asks(struct span key, struct span *name);
/* A text member of a JSON body that was looked at, by pointer: where its bytes stand in text (the body's, between the
 * quotes), and what they say. -1: there is none, or one that some servers take for another. */
int body_json_string(struct body_view *v, struct span text, struct span pointer, struct arena *a, size_t *at,
                     size_t *n, struct span *is) MUSTCHECK;

/* The whole number that this field (COND_FORM) or pointer (COND_JSON) has, at most 2^53, in its one spelling and at
 * one place that no server takes for another; AMOUNT_NONE: there is no such; AMOUNT_OPEN: the body cannot be seen. */
enum amount body_amount(struct body_view *v, uint32_t kind, struct span key, const struct request *r, struct arena *a,
                        uint64_t *out);

/* What leaves this condition open, about which body_fits said FIT_MAYBE. */
enum ambiguity_cause body_ambiguity(struct body_view *v, const struct policy *p, const struct img_cond *c,
                                    const struct request *r, struct arena *a);

/* For an operation of a pack that says what its body is. *pending: it is not all here yet. NULL, or the code of a
 * refusal, with its cause when that is "unclassified". */
const char *body_find(uint32_t pack, struct body_view *v, const struct request *r, struct span resource,
                      struct arena *a, bool *pending, enum ambiguity_cause *why, struct body_found *found);

/* For how many requests it stands where requests are counted, as far as it was looked at: 1, unless it is GraphQL. 0:
 * nobody can tell. *more: some of it is nowhere to be seen, and may be any number. */
uint32_t body_requests(const struct body_view *v, bool *more);

#endif
