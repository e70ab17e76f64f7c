/* What the rows of the table in dialect.c are made of. */
#ifndef PROXY_JUDGE_DIALECT_ROWS_H
#define PROXY_JUDGE_DIALECT_ROWS_H

#include "proxy/judge/replies/dialect.h"

/* Is the request like this? One for each row; c->request is there. */
typedef bool dialect_asks(const struct dialect_client *c);
dialect_asks asks_git_info_refs, asks_git_receive_pack, asks_git_lfs, asks_npm, asks_pip, asks_s3, asks_aws_ec2,
    asks_aws_query, asks_aws_json, asks_kubernetes_discovery, asks_kubernetes, asks_oci, asks_stripe, asks_slack,
    asks_anthropic, asks_openai, asks_json_rpc, asks_graphql, asks_github, asks_anything;
/* A method of Slack's Web API, and not a file on its way to it. */
dialect_asks asks_slack_method;

/* Write the body and its type into *out, which has all else. 0, or -1: it did not fit into the arena. */
typedef int dialect_write(const struct dialect_client *c, const struct refusal *r, struct arena *a,
                          struct wire_reply *out);
dialect_write dialect_problem, dialect_git_push, dialect_text;

/* Whose names for an error a shape has, by the status (dialect_shape.c). */
enum dialect_kinds { KINDS_AWS, KINDS_KUBERNETES, KINDS_OCI, KINDS_ANTHROPIC, KINDS_OPENAI, KINDS_COUNT };

/* A body as text, with a quotation mark for each ' and, for each % and a letter:
 *   w  all words on one line, escaped (a JSON string with its quotation marks; in XML, text)
 *   k  the name of the error, of `kinds`; c  our code of it; s  the status; t  the ticket's id, or nothing;
 *      u  its page's address, a JSON string; e  the state with which its client comes again
 *   i  the id of the JSON-RPC request, or null
 *   o  a JSON member of our own, "countersign": the code, ticket, addresses and whether to repeat the request */
struct dialect_shape {
    const char *type, *text;
    enum dialect_kinds kinds;
    bool xml;
    const char *kind_field, *kind_tail; /* a field that has the error's name with this behind it, or NULL */
    const char *retry_field; /* a field that its SDKs obey before they repeat an error by themselves, or NULL */
    /* Where they obey none: they repeat this status and all above it, and what is not to be repeated by itself has
     * `final` instead; 0: no matter. final_for: of such requests alone, or NULL. */
    unsigned repeated_from, final;
    dialect_asks *final_for;
};
int dialect_shape(const struct dialect_shape *s, const struct dialect_client *c, const struct refusal *r,
                  struct arena *a, struct wire_reply *out) MUSTCHECK;
/* The id of a JSON-RPC request, as JSON: a number, a string or null (also of a batch). False: it is none. */
bool dialect_json_rpc(struct span body, struct arena *a, struct span *id);

#endif
