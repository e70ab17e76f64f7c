/* JSON Schema 2020-12, the part that tools and tasks use: a schema is compiled once, instances are then held against
 * it. Pure, and bounded: what a schema or an instance may cost is known before it is looked at.
 *
 * What would restrict and is not understood is refused when the schema is compiled, with the place where it stands:
 * an instance is never let through because a keyword was skipped. Taken as mere notes are title, description,
 * default, examples, $comment and their like, names that begin with x-, and format unless its assertion is asked for.
 * A schema may call itself draft-07 when it uses only what means the same in both, or a list of items.
 *
 * Numbers are exact decimals, never rounded: 1e400 is an integer, 0.3 is a multiple of 0.1, 1.0 equals 1. Texts are
 * counted in code points. Patterns are ECMAScript's with the flag u, as far as they can be matched in linear time
 * (pattern.h). Names that stand twice in an object are refused, in schema and instance (common/json/json.h). */
#ifndef COMMON_SCHEMA_SCHEMA_H
#define COMMON_SCHEMA_SCHEMA_H

#include "common/err.h"

enum {
    SCHEMA_TEXT_MAX = 256 * 1024,          /* bytes of a schema */
    SCHEMA_NODES_MAX = 4096,               /* schemas in it, with those inside others */
    SCHEMA_INSTANCE_MAX = 4 * 1024 * 1024, /* bytes; nested at most JSON_DEPTH_MAX, JSON_NODES_MAX values */
    SCHEMA_STEPS_MAX = 10 * 1000 * 1000,   /* of one validation; all of them take a fifth of a second of CPU */
    SCHEMA_POINTER_MAX = 256,              /* bytes of a pointer that is told, with its NUL */
    SCHEMA_KEYWORD_MAX = 48
};

struct schema;

enum schema_options {
    SCHEMA_PLAIN = 0,
    /* format restricts: date-time, date, time, email, uri, uuid, ipv4, ipv6; any other is refused */
    SCHEMA_FORMATS = 1
};

/* Why a schema is refused. The texts are UTF-8 of whoever wrote the schema: what they may do to a terminal is the
 * caller's to prevent. */
struct schema_fault {
    char pointer[SCHEMA_POINTER_MAX]; /* RFC 6901, into the schema; cut behind a whole name when it is longer */
    char keyword[SCHEMA_KEYWORD_MAX]; /* "" when it is none */
    struct err why;                   /* our own words */
};

/* options: of enum schema_options. 0, and *out is the caller's to free; -1 after filling *f. The text may go. */
int schema_compile(struct span text, unsigned options, struct schema **out, struct schema_fault *f) MUSTCHECK;
/* NULL is fine; *s is NULL then. */
void schema_free(struct schema **s);

enum schema_verdict {
    SCHEMA_MISFIT = 0, /* it breaks the schema; where, says struct schema_miss */
    SCHEMA_FITS,
    SCHEMA_NOT_JSON,  /* not JSON as common/json/json.h has it: also a name twice in an object */
    SCHEMA_TOO_LARGE, /* bytes, values, depth, or a number of over 1,024 characters or with an exponent past 9,999 */
    SCHEMA_TOO_COSTLY /* the steps were used up before it was known */
};
/* "schema-violation", "fits", "not-json", "too-large", "schema-too-costly" */
const char *schema_verdict_name(enum schema_verdict v);

/* Where an instance breaks the schema, told without a word of the instance's own: the path has positions and names
 * that the schema itself gives in `properties`, and ends where a name that is only the instance's begins. */
struct schema_miss {
    char path[SCHEMA_POINTER_MAX]; /* RFC 6901, into the instance; "" is the whole */
    bool below;                    /* the place is somewhere below the path */
    const char *keyword;           /* never freed; "false" when the whole schema is that; NULL unless SCHEMA_MISFIT */
};

/* A schema may be used for many validations, also at the same time. *m is filled whatever the verdict is. */
enum schema_verdict schema_validate(const struct schema *s, struct span instance, struct schema_miss *m) MUSTCHECK;

#endif
