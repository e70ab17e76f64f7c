/* Why a request cannot be understood well enough to be decided: the causes behind the code "unclassified". Found out
 * anew for the refusal, for explain and for the record; the decision itself stays as short as it is. */
#ifndef POLICY_AMBIGUITY_H
#define POLICY_AMBIGUITY_H

#include "policy/policy.h"

#define AMBIGUITY_CAUSES(X)                                                                                          \
    X(NONE, "", "")                                                                                                  \
    X(OTHER, "ambiguous",                                                                                            \
      "its path, query, a field or the body may mean one thing to this policy and another to the server")            \
    X(BODY_CUT, "body-cut", "not all of the body is here")                                                           \
    X(NO_TYPE, "no-content-type", "the body has no Content-Type")                                                    \
    X(TYPES, "content-types", "the body has several Content-Types")                                                  \
    X(CODING, "content-coding", "the body is in a content coding")                                                   \
    X(TYPE, "body-type", "the body is of a type that is not looked into: only JSON, GraphQL and forms in UTF-8 are") \
    X(JSON, "bad-json", "the body is not well-formed JSON")                                                          \
    X(KEY_TWICE, "key-twice", "an object in the JSON body has a key twice")                                          \
    X(ENCODING, "bad-encoding", "the body is not all clean UTF-8: a bad byte, half of a pair, a control character")  \
    X(FORM, "bad-form", "the form has a ';', a broken escape, bytes that are not UTF-8, or a field _charset_")       \
    X(MULTIPART, "bad-multipart", "the parts of the form are not all in the one way that every server reads alike")  \
    X(BODY_LARGE, "body-large", "the body has more parts, or nests deeper, than is looked into")                     \
    /* These tell what a rule asks about, or which packs there are. */                                               \
    X(KIND, "body-kind", "the body is of one kind (JSON, GraphQL, a form), and another is asked about")              \
    X(KEY_CASE, "key-case", "the JSON body has a key that differs in case, _ or - alone from the one asked about")   \
    X(BATCH, "batch", "the JSON body has a list where one object is asked about")                                    \
    X(VALUE, "value-type", "the value there is of another type than the one asked about")                            \
    X(NUMBER, "number-spelling", "the number there is not written as plain whole digits")                            \
    X(FIELD, "field-spelling", "the form has a field that servers may take for the one asked about")                 \
    X(PART, "part-name", "servers differ in what that part's file name or type is")                                  \
    X(QUERY, "in-query", "the query has what the body is asked about, and servers differ in which counts")           \
    X(HEADER, "headers-unknown", "the fields of the request are not recorded, and a rule asks about one")            \
    X(OFFERS, "subprotocols-unknown",                                                                                \
      "the subprotocols that were offered are not recorded, and a rule asks about them")                             \
    X(GRAPHQL, "bad-graphql", "the GraphQL document is not well-formed, or lacks a fragment or variable it names")   \
    X(GRAPHQL_REQUEST, "graphql-request", "it is no GraphQL request in one of the forms that are looked into")       \
    X(GRAPHQL_STORED, "graphql-stored", "the GraphQL request names a document that the server has")                  \
    X(OPERATION, "graphql-operation", "which operation of the GraphQL document is meant is not clear")               \
    X(JSONRPC, "jsonrpc-request", "it is no JSON-RPC 2.0 in the form that is looked into")                           \
    X(JSONRPC_FIELDS, "mcp-fields", "Mcp-Method or Mcp-Name says something else than the body")                      \
    X(PATH, "path-spelling", "its path is another spelling of one that the pack knows")                              \
    X(PACKS, "too-many-packs", "more packs know this request than are judged together")                              \
    X(PUSH_TYPE, "push-type", "a push has a body of the one type application/x-git-receive-pack-request")            \
    X(PUSH_CODING, "push-coding", "a push is understood in no content coding")                                       \
    X(PUSH, "push-refs", "a push is understood by its list of refs, whole and as git writes it")

enum ambiguity_cause {
#define X(name, word, words) AMBIGUITY_##name,
    AMBIGUITY_CAUSES(X)
#undef X
};

struct ambiguity {
    enum ambiguity_cause cause;
    struct rule_ref rule; /* the one that asks about it, or empty */
    const char *word;     /* stable, "" when it was understood */
    struct span words;    /* the end of a sentence */
    struct span asked;    /* the field or pointer that a rule asks about, or empty */
    /* Both as a refusal may say them: by what the request alone shows. What follows from what a rule asks about, or
     * from a pack, is the one AMBIGUITY_OTHER, or refusals would map the policy (B54). */
    const char *told;
    struct span told_words;
};

/* Of a request that was judged as d at now_ms. What it says lives as long as p; a is for the way there. */
struct ambiguity policy_ambiguity(const struct policy *p, const struct subject *s, const struct request *r,
                                  const struct decision *d, uint64_t now_ms, struct arena *a);
const char *ambiguity_words(enum ambiguity_cause c);

#endif
