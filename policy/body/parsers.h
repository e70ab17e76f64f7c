/* The rows of body_parsers, as body.h says of each function, and what they share. */
#ifndef POLICY_BODY_PARSERS_H
#define POLICY_BODY_PARSERS_H

#include "policy/body/body.h"

enum ambiguity_cause body_json_look(struct body_view *v, struct span body, struct arena *a);
enum fit body_json_fits(struct body_view *v, const struct body_question *q, struct arena *a);
enum ambiguity_cause body_json_doubt(struct body_view *v, struct span key, struct arena *a);
struct span body_json_digits(struct body_view *v, struct span key, struct arena *a);
int body_json_param(struct span key, struct arena *a, struct span *name) MUSTCHECK;
/* The member or element; *doubt when another key differs in case alone: some servers take it for the same, or when a
 * name is asked of a list: to a server that takes batches each of its elements is a request. */
const struct json *body_json_child(struct body_view *v, const struct json *j, struct span token,
                                   enum ambiguity_cause *doubt, struct arena *a);
struct body_shown body_json_show(const struct body_view *v, struct span key);

enum ambiguity_cause body_form_look(struct body_view *v, struct span body, struct arena *a);
enum fit body_form_fits(struct body_view *v, const struct body_question *q, struct arena *a);
enum ambiguity_cause body_form_doubt(struct body_view *v, struct span key, struct arena *a);
struct span body_form_digits(struct body_view *v, struct span key, struct arena *a);
int body_form_param(struct span key, struct arena *a, struct span *name) MUSTCHECK;
struct body_shown body_form_show(const struct body_view *v, struct span key);

/* The ref commands of a push. */
const char *body_git_find(const struct request *r, struct span resource, struct arena *a, struct body_found *found);

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
/* A whole number in its one spelling, of at most 18 digits. */
bool cond_whole_number(struct span s, int64_t *out);

#endif
