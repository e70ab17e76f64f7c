/* What matchers see of a body: JSON by pointer (RFC 6901) or the fields of a form (application/x-www-form-urlencoded,
 * WHATWG URL section 5.1). Parsed once a request, when the first rule asks. Only what is wholly there, of one of
 * these types and beyond doubt is seen; anything else leaves every question about it open, which denies. Pure. */
#ifndef POLICY_MATCH_BODY_H
#define POLICY_MATCH_BODY_H

#include "common/json/json.h"
#include "policy/image/image.h"
#include "policy/classify/params.h"
#include "policy/ambiguity.h"

enum fit { FIT_NO = 0, FIT_MAYBE, FIT_YES };
/* BODY_OPEN: not all here, of another type, encoded, malformed or too large to look into. */
enum body_kind { BODY_OPEN = 0, BODY_ABSENT, BODY_JSON, BODY_FORM };

struct body_view {
    bool looked;
    uint8_t open; /* enum ambiguity_cause: why nothing is seen of it, when it is BODY_OPEN */
    enum body_kind kind;
    const struct json *json;
    struct params form;
    struct params query;        /* of the same request: servers mix the two; of its own looking */
    struct json_spelt *spelt;   /* other spellings of its texts, of those that were asked about */
    struct json_object *object; /* the members by name, of those that were asked about */
};

/* Is the request's body as this condition says? strictly: as it is written, for what a rule lets through; else in any
 * way that a server might take for it. */
enum fit body_fits(struct body_view *v, const struct policy *p, const struct img_cond *c, const struct request *r,
                   bool strictly, struct arena *a);

/* The whole number that this field (COND_FORM) or pointer (COND_JSON) has, at most 2^53, in its one spelling and at
 * one place that no server takes for another; AMOUNT_NONE: there is no such; AMOUNT_OPEN: the body cannot be seen. */
enum amount { AMOUNT_OPEN = 0, AMOUNT_NONE, AMOUNT_SEEN };
enum amount body_amount(struct body_view *v, uint32_t kind, struct span key, const struct request *r, struct arena *a,
                        uint64_t *out);

/* What leaves this condition open, about which body_fits said FIT_MAYBE. */
enum ambiguity_cause body_ambiguity(struct body_view *v, const struct policy *p, const struct img_cond *c,
                                    const struct request *r, struct arena *a);

#endif
