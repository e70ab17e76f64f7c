/* All files of a policy together, names resolved: what is checked, warned about
 * and written as an image. Lives in the loader's arena. */
#ifndef POLICY_LOAD_MODEL_H
#define POLICY_LOAD_MODEL_H

#include "policy/image.h"
#include "policy/load/grammar_pack.h"

/* Everything of all files, in one place. */
struct model {
    struct item name;
    struct m_scope **scopes;
    struct m_credential **credentials;
    struct m_upstream **upstreams;
    struct m_approver **approvers;
    struct m_rule **rules; /* by id */
    struct m_pack **packs; /* by name */
    size_t nscopes, ncredentials, nupstreams, napprovers, nrules, npacks;
};

/* Each reports its problems; l->failed says whether any refuses. */
struct m_file *read_file(struct loader *l, const struct policy_file *f);
void gather(struct loader *l, struct m_file *const *files, size_t n, struct model *m);
void read_packs(struct loader *l, struct m_file *const *files, size_t n, struct model *m);
void check_model(struct loader *l, struct model *m);
void warn_model(struct loader *l, const struct model *m);
int emit_image(struct loader *l, const struct model *m, struct dynbuf *out) MUSTCHECK;

/* Index by name, or -1. */
int find_scope(const struct model *m, struct span name);
int find_credential(const struct model *m, struct span name);
int find_approver(const struct model *m, struct span name);

#endif
