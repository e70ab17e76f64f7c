/* The rows of body_parsers, as body.h says of each function, and what they share. */
#ifndef POLICY_BODY_PARSERS_H
#define POLICY_BODY_PARSERS_H

#include "policy/body/body.h"

enum ambiguity_cause body_json_look(struct body_view *v, struct span body, struct arena *a);
enum fit body_json_fits(struct body_view *v, const struct body_question *q, struct arena *a);
enum ambiguity_cause body_json_doubt(struct body_view *v, struct span key, struct arena *a);
struct span body_json_digits(struct body_view *v, struct span key, struct arena *a);
int body_json_param(struct span key, struct arena *a, struct span *name) MUSTCHECK;
/* The member or element. *doubt when a server may find one where none is written: under another key that differs in
 * case alone; in each element of a list that a name is asked of, as a batch; in an object that an index is asked of,
 * as the one element, or one of several by name; in a text, a number or a truth value, which may be read as JSON or
 * stand for a whole object. In null there is none. */
const struct json *body_json_child(struct body_view *v, const struct json *j, struct span token,
                                   enum ambiguity_cause *doubt, struct arena *a);
struct body_shown body_json_show(struct body_view *v, const struct body_question *q, struct arena *a);
/* The same of a value that was found: j, or NULL where there is none. */
enum fit body_json_value_fits(struct body_view *v, const struct json *j, const struct body_question *q,
                              struct arena *a);
struct body_shown body_json_shown(const struct json *j);
/* What stands below j by a pointer; NULL: nothing. */
const struct json *body_json_below(struct body_view *v, const struct json *j, struct span pointer,
                                   enum ambiguity_cause *doubt, struct arena *a);

enum ambiguity_cause body_form_look(struct body_view *v, struct span body, struct arena *a);
enum fit body_form_fits(struct body_view *v, const struct body_question *q, struct arena *a);
enum ambiguity_cause body_form_doubt(struct body_view *v, struct span key, struct arena *a);
struct span body_form_digits(struct body_view *v, struct span key, struct arena *a);
int body_form_param(struct span key, struct arena *a, struct span *name) MUSTCHECK;
struct body_shown body_form_show(struct body_view *v, const struct body_question *q, struct arena *a);

/* Parts of multipart/form-data. Conditions have the keys "field NAME", "file NAME" (its file name), or "content_type
 * NAME" of the part of that name. */
enum ambiguity_cause body_multipart_look(struct body_view *v, struct span body, struct arena *a);
enum fit body_multipart_fits(struct body_view *v, const struct body_question *q, struct arena *a);
enum ambiguity_cause body_multipart_doubt(struct body_view *v, struct span key, struct arena *a);
int body_multipart_param(struct span key, struct arena *a, struct span *name) MUSTCHECK;
struct body_shown body_multipart_show(struct body_view *v, const struct body_question *q, struct arena *a);

/* Conditions have the keys "type", "operation", "fields", "persisted", or /FIELD/ARGUMENT and on into its value. */
enum ambiguity_cause body_graphql_look(struct body_view *v, const struct request *r, struct arena *a);
enum fit body_graphql_fits(struct body_view *v, const struct body_question *q, struct arena *a);
enum ambiguity_cause body_graphql_doubt(struct body_view *v, struct span key, struct arena *a);
struct body_shown body_graphql_show(struct body_view *v, const struct body_question *q, struct arena *a);
/* It changes nothing, if it is understood and all its operations are queries. */
const char *body_graphql_find(struct body_view *v, const struct request *r, struct span resource, struct arena *a,
                              struct body_found *found);
/* As body_requests: an operation that only reads is one, any other as many as it has fields at its top. */
uint32_t body_graphql_requests(const struct body_view *v, bool *more);

/* Messages of JSON-RPC. Conditions have the keys "method", "tool" (of MCP's tools/call), or a pointer into params. */
enum ambiguity_cause body_jsonrpc_look(struct body_view *v, const struct request *r, struct arena *a);
enum fit body_jsonrpc_fits(struct body_view *v, const struct body_question *q, struct arena *a);
enum ambiguity_cause body_jsonrpc_doubt(struct body_view *v, struct span key, struct arena *a);
struct body_shown body_jsonrpc_show(struct body_view *v, const struct body_question *q, struct arena *a);
/* It changes nothing, if it is understood and MCP's methods that only ask. */
const char *body_mcp_find(struct body_view *v, const struct request *r, struct span resource, struct arena *a,
                          struct body_found *found);
/* As body_requests: so many as there are. */
uint32_t body_jsonrpc_requests(const struct body_view *v);

/* The type that a Content-Type says, without parameters; empty: another charset than UTF-8, a parameter that nobody
 * knows, or no one type. Of multipart/form-data its parser looks at them. */
struct span body_media_type(struct span value);
/* Of a list, for what was found so far (all), one more: of another kind only where all are; mixed: the cause where
 * some are none of what others are; else the first cause. */
enum ambiguity_cause body_list_cause(enum ambiguity_cause all, enum ambiguity_cause one, bool first,
                                     enum ambiguity_cause mixed);
/* Is what was looked at, and not understood for that cause, of another kind beyond doubt? meant: a pack says no. */
bool body_is_other(uint8_t open, bool meant);

/* The parameters of the query, into v->query. False: there is none. */
bool body_query(struct body_view *v, const struct request *r, struct arena *a);
/* A client's word for people, who are told `else_` where it is longer or has more than printable ASCII. */
struct span body_word(struct span s, size_t most, struct span else_);

/* The one media type of the body, which is not in a coding. */
enum ambiguity_cause body_type(const struct request *r, struct span *type);

/* The ref commands of a push. */
const char *body_git_find(struct body_view *v, const struct request *r, struct span resource, struct arena *a,
                          struct body_found *found);

/* ---- one value, by a condition (value.c) ---- */

/* other: its other spellings, where they count; without memory for them there are none, and it may fit. */
struct value {
    struct span text;
    bool plain;
    const struct spellings *other;
};
/* What is no plain value, or a number in a spelling that may be another's, leaves the question open unless only what
 * is written counts. */
enum fit cond_value_fits(const struct body_question *q, const struct value *v, struct arena *a);
/* Present or not is all that is asked; and of that: a value that is nothing to many is as good as absent to what
 * restricts. */
bool cond_asks_presence(const struct body_question *q);
enum fit cond_presence_fits(const struct body_question *q, bool there, bool empty);
/* Is a truth value all that is asked for? */
bool cond_asks_boolean(const struct body_question *q);
bool cond_any_spelling(const struct body_question *q, struct span s, struct arena *a);
/* A name: of letters, digits and _-./ alone, as nearly all are, servers take it for no other but in its case. */
enum fit cond_name_fits(const struct body_question *q, struct span name, struct arena *a);
/* Is it this one, in any case and any spelling that some server takes for it? */
bool cond_name_is(struct span name, struct span want, struct arena *a);
/* Where several things are asked the same: what lets through fits all of them, what restricts any. */
struct fit_sum {
    bool all, some;
    enum fit fit;
};
void fit_sum_add(struct fit_sum *s, enum fit one);
/* A whole number in its one spelling, of at most 18 digits. */
bool cond_whole_number(struct span s, int64_t *out);

#endif
