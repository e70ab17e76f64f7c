/* All files of a policy together, names resolved: what is checked, warned about
 * and written as an image. Lives in the loader's arena. */
#ifndef POLICY_LOAD_READ_MODEL_H
#define POLICY_LOAD_READ_MODEL_H

#include "policy/image/image.h"
#include "policy/load/read/grammar.h"

/* Everything of all files, in one place. */
struct model_zone;
struct model {
    struct item name;
    struct number learning; /* Unix ms it ends */
    struct m_scope **scopes;
    struct m_credential **credentials;
    struct m_upstream **upstreams;
    struct m_approver **approvers;
    struct m_gate **gates;
    struct m_rule **rules;    /* by id */
    struct m_pack **packs;    /* by name */
    struct model_zone *zones; /* that some when: names; policy/load/emit/when.c */
    size_t nscopes, ncredentials, nupstreams, napprovers, ngates, nrules, npacks;
    bool packs_lost; /* a pack that is named could not be had: what its operations and resources are is not known */
};

/* Each reports its problems; l->failed says whether any refuses. */
struct m_file *read_file(struct loader *l, const struct policy_file *f);
/* Those files and all that they include, each once, into out (POLICY_FILES_MAX of room). -1 when one is missing. */
int read_files(struct loader *l, const struct policy_file *files, size_t n, struct m_file **out,
               size_t *nout) MUSTCHECK;
void model_gather(struct loader *l, struct m_file *const *files, size_t n, struct model *m);
void read_packs(struct loader *l, struct m_file *const *files, size_t n, struct model *m);
void check_model(struct loader *l, struct model *m);
/* when: of a rule, days and zones understood. */
void check_when(struct loader *l, struct model *m, struct m_rule *r);
/* limits: and over: of a rule. */
void check_limits(struct loader *l, const struct model *m, const struct m_rule *r);
void warn_model(struct loader *l, const struct model *m);
int emit_image(struct loader *l, const struct model *m, struct dynbuf *out) MUSTCHECK;

/* Index by name, or -1. */
int model_scope(const struct model *m, struct span name);
int model_credential(const struct model *m, struct span name);
int model_approver(const struct model *m, struct span name);
int model_gate(const struct model *m, struct span name);
int model_rule(const struct model *m, struct span id);
/* The problem that `what` has no such entry, with the like one of rows, an array of n pointers of the model. */
void model_no_such(struct loader *l, const struct item *name, const char *what, const void *rows, size_t n);

#endif
