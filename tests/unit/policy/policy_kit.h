/* What the tests of the policy room share: load YAML, judge a request written in one line. */
#ifndef TESTS_UNIT_POLICY_POLICY_KIT_H
#define TESTS_UNIT_POLICY_POLICY_KIT_H

#include "policy/policy.h"
#include "policy/ambiguity.h"

struct kit {
    struct policy *p;
    uint8_t *image;
    size_t image_n;
    struct arena a;
    struct decision d;
    struct ambiguity ambiguity; /* of what was judged last */
    uint64_t now_ms;            /* of what is judged; kit_load makes it 0 */
    char problems[64][900];     /* "P006 W policy.yaml:3:5 text" */
    size_t nproblems;
    struct err e;
};

/* What a policy's pack own@1 says. */
extern const char *kit_own_pack;

/* Load (floors may be NULL). False: it was refused; the problems say why. */
bool kit_load(struct kit *k, const char *yaml, const char *floors);
/* The same, loaded at a time. */
bool kit_load_at(struct kit *k, const char *yaml, const char *floors, uint64_t now_ms);
void kit_free(struct kit *k);
/* Fields as "Name: value\n..." or NULL, body NULL for none. url: scheme://host[:port]/path[?query] */
const struct decision *kit_judge(struct kit *k, const char *sandbox, const char *method, const char *url,
                                 const char *fields, const char *body, size_t body_n, bool complete);
/* Requests, each with what it comes to: by rule, or "". A body is all there. */
struct kit_row {
    const char *method, *url, *fields, *body;
    enum verdict verdict;
    const char *code, *rule;
};
void kit_rows(struct kit *k, const struct kit_row *v, size_t n);
/* A GET without anything. */
const struct decision *kit_get(struct kit *k, const char *url);
/* Was there a problem with this code, at this place (NULL: anywhere), whose text has these words (NULL: any)? */
bool kit_problem(const struct kit *k, const char *code, const char *where, const char *words);
#define ZERO40 "0000000000000000000000000000000000000000"
#define AAAA40 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define BBBB40 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
/* A push body: each command "old new name"; NULL ends. Returns its length. */
size_t kit_push(char *dst, size_t max, const char *caps, const char *const *commands, const char *pack);
#define RP_TYPE "Content-Type: application/x-git-receive-pack-request"
/* A push of these commands to base/git-receive-pack. */
const struct decision *kit_judge_push(struct kit *k, const char *base, const char *const *commands);
/* The decision is this, by this rule ("": none). */
void kit_expect(const struct decision *d, enum verdict v, const char *code, const char *rule);
/* Print "ok ID policy" for each of the attacks; reached only when the assertions before it held. */
void kit_covered(const char *ids);

#endif
