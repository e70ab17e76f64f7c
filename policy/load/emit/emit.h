/* Writing an image: tables grow side by side and are joined at the end. */
#ifndef POLICY_LOAD_EMIT_EMIT_H
#define POLICY_LOAD_EMIT_EMIT_H

#include "policy/load/read/model.h"

struct key_of_rule {
    uint32_t hash, rule;
};

struct emit {
    struct loader *l;
    const struct model *m;
    struct dynbuf table[IMG_TABLES], strings, keys; /* keys: struct key_of_rule */
    struct span last_text;
    struct img_str last_str;
};

/* Every put fails by leaving its buffer failed; emit_image looks once, at the end. */
struct img_str emit_str(struct emit *w, struct span s);
uint32_t emit_record(struct emit *w, enum img_table t, const void *record); /* its index */
uint32_t emit_count(const struct emit *w, enum img_table t);
struct img_range emit_range(const struct emit *w, enum img_table t, uint32_t first); /* up to the last record */
struct img_range emit_texts(struct emit *w, const struct items *v);                  /* IMG_STR */
/* The path of a file that the policy names, for whoever opens it. */
struct span emit_beside(struct emit *w, const struct item *f);
/* With the text of the files it names. -1: a problem was told. */
int emit_upstream(struct emit *w, const struct m_upstream *u) MUSTCHECK;
/* IMG_STUB records of a credential, whose number in the image is said. */
void emit_stub(struct emit *w, const struct m_credential *c, uint32_t credential);
/* IMG_WINDOW records of a rule, with the zones they need. */
struct img_range emit_windows(struct emit *w, const struct m_rule *r);
struct img_range emit_limits(struct emit *w, const struct m_rule *r); /* IMG_LIMIT */
void emit_grants(const struct m_rule *r, struct img_rule *out);
/* How many must agree to what it holds, and who counts. */
void emit_people(const struct model *m, const struct m_rule *r, struct img_rule *out);
void emit_escalate(struct emit *w, const struct m_rule *r, struct img_rule *out);
void emit_gates(struct emit *w);
/* The keys under which rule i is looked for (policy/decide/rule_votes.c says which there are). */
void emit_index_rule(struct emit *w, uint32_t i, const struct m_rule *r);
void emit_index(struct emit *w);

#endif
