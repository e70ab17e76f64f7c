/* countersign policy: the verbs a policy's author uses.
 * Exit: 0 valid, passed or allowed; 10 held; 11 denied; 1 a test failed, or a difference that --fail-on is about;
 * 2 usage; 3 invalid; 4 the store cannot be read. */
#ifndef CLI_POLICY_POLICY_CLI_H
#define CLI_POLICY_POLICY_CLI_H

#include "cli/policy/record/source.h"
#include "policy/load/load.h"

enum {
    EXIT_POLICY_OK = 0,
    EXIT_POLICY_RUNTIME = 1,
    EXIT_POLICY_USAGE = 2,
    EXIT_POLICY_INVALID = 3,
    EXIT_POLICY_STORE = 4,
    EXIT_POLICY_HOLD = 10,
    EXIT_POLICY_DENY = 11
};

/* What a verb returns that was called wrongly: its caller says how it is used. */
enum { POLICY_SHOW_USAGE = -1 };

enum { CLI_WORDS_MAX = 64 };
struct policy_args {
    const char *packs, *floors, *as, *body, *at, *data, *curl, *record, *fail_under;
    const char *signers, *format, *code, *policy, *scope;
    struct source_args source;
    const char *words[CLI_WORDS_MAX], *headers[CLI_WORDS_MAX], *labels[CLI_WORDS_MAX];
    const char *refs[CLI_WORDS_MAX], *old_floors, *new_floors, *witness, *fail_on;
    size_t nwords, nheaders, nlabels, nrefs;
    size_t dash, dashes; /* how many words stood before the last "--" */
    bool json, coverage, patch;
    int (*roots_strict)(struct span roots_pem, struct err *e); /* tls_roots_strict, for check; NULL: not looked at */
};

/* A loaded policy with what was said about it. */
struct loaded {
    struct policy *p;
    struct dynbuf image;
    struct policy_problem *v;
    struct policy_problems problems;
    struct err e;
};
int loaded_open(struct loaded *l, const char *const *paths, size_t n, const char *floors,
                const char *packs) MUSTCHECK;
/* The same of files that those in signers (a path, or NULL) signed. */
int loaded_open_signed(struct loaded *l, const char *const *paths, size_t n, const char *floors, const char *packs,
                       const char *signers) MUSTCHECK;
/* The same, of a place (policy/load/disk.h) at the present time. */
struct policy_place;
int loaded_open_place(struct loaded *l, struct policy_place from) MUSTCHECK;
void loaded_close(struct loaded *l);
/* On stderr, or as JSON on stdout. */
void print_problems(const struct loaded *l, bool json);
int json_problems(const struct loaded *l) MUSTCHECK;

int policy_cli_check(const struct policy_args *a);
int policy_cli_explain(const struct policy_args *a);
int policy_cli_diff(const struct policy_args *a);
int policy_cli_schema(const struct policy_args *a);
int policy_cli_replay(const struct policy_args *a);
int policy_cli_learn(const struct policy_args *a);
int policy_cli_test(const struct policy_args *a);

#endif
