/* The parameters of a query, or the fields of a form: cut apart and decoded once a request, and found by name in time
 * that does not depend on how many there are. */
#ifndef POLICY_SPELLING_PARAMS_H
#define POLICY_SPELLING_PARAMS_H

#include "policy/spelling/spelling.h"

struct param {
    struct span name, value; /* decoded */
    struct span again;       /* the name decoded once more, where that makes another one */
    struct span raw;         /* the value as it came */
    size_t pieces;           /* so many follow that to some servers stand in its place, as a ';' parts them, */
    size_t hidden[2];        /* and so many as they are parted when it is decoded once or twice before */
    bool parted, piece;      /* there is a ';' in it; it is one of those that it parts */
    bool late;               /* only there to who decodes before it is cut */
    uint32_t met;            /* in which question about all names it was named last */
    struct spellings *other; /* of the value; made when it is first asked for */
};

struct param_key {
    uint64_t key;
    uint32_t param, next; /* IMG_NONE: the last */
};

/* What servers cut into parameters: the query as it is, first; and, where that makes other ones, what those cut that
 * decode before, once or twice, and the end of a path with an escaped '?'. */
struct param_texts {
    struct span v[4];
    size_t n;
};
/* -1: no memory. */
int param_texts_of(struct span text, struct span path, struct arena *a, struct param_texts *out) MUSTCHECK;
/* Is there an escaped '?', behind which a query begins to who decodes first? */
bool path_hides_query(struct span path);

struct params {
    bool looked, failed; /* failed: no memory, or more than is looked into */
    bool doubtful;       /* a name whose escapes are no UTF-8 */
    struct param *v;
    size_t n, whole, pieces; /* all; of the first text those that '&' parts; those that '&' and ';' part */
    size_t of_query, room;   /* so many are of the query; the others of the end of the path */
    struct param_key *key;
    uint32_t *slot;
    size_t nkeys, slots;
    uint32_t question;
};

enum { PARAMS_MAX = 20000, PARAM_NAME_MAX = 4096, PARAM_KEYS_MAX = 1 << 16 };

/* Of a canonical query, where ';' may part too, and path. Looks once; failed says whether anything can be said. */
void params_of_query(struct params *ps, struct span query, struct span path, struct arena *a);
/* Of a form (WHATWG URL section 5.1). -1: a ';' that may part, an escape that is none, a NUL, bytes that are no
 * UTF-8, a field that says what the encoding is, or more than is looked into. */
int params_of_form(struct params *ps, struct span body, struct arena *a) MUSTCHECK;
/* Of names and values in no encoding, as of the parts of a form with files; v is of the arena, and kept. -1: as of a
 * form. */
int params_of_parts(struct params *ps, struct param *v, size_t n, struct arena *a) MUSTCHECK;

/* The parameters that some server may take for this one: the same name in another spelling, or a member of it, as in
 * a[] and a[b]; also decoded once more. *at: IMG_NONE to begin with. NULL: no more. */
struct param *params_next(const struct params *ps, uint64_t key, uint32_t *at);
uint64_t params_key(struct span want);
/* Is there one? */
bool params_have(const struct params *ps, struct span name);

/* Does a value that what restricts asks for stand there, in any spelling? Without memory it does. */
struct spellings *param_spellings(struct param *p, struct arena *a);
bool param_fits(const struct policy *p, struct img_range globs, struct param *one, struct arena *a);

#endif
