/* Coverage of policies by the cases of one run of `policy test`, over all its files. */
#ifndef CLI_POLICY_TEST_COVER_H
#define CLI_POLICY_TEST_COVER_H

#include "common/json/json.h"
#include "policy/test/asked.h"

struct cover_row {
    struct span file, id;
    uint32_t line;
    int entry; /* of except:; -1: the rule itself */
    bool hit;
};
struct cover {
    struct arena a;
    struct dynbuf rows; /* struct cover_row */
    struct dynbuf at;   /* size_t: the row of each rule of the policy in hand */
};

void cover_init(struct cover *c);
void cover_free(struct cover *c);
/* What follows is about this policy. */
void cover_policy(struct cover *c, const struct policy *p);
void cover_case(struct cover *c, const struct policy *p, struct asked *q);
bool cover_is_under(const struct cover *c, unsigned percent);
void cover_print(const struct cover *c);
void cover_json(const struct cover *c, struct jsonw *w);

#endif
