/* countersign policy check | test | explain: the verbs a policy's author uses.
 * Exit: 0 valid, passed or allowed; 10 held; 11 denied; 1 a test failed; 2 usage; 3 invalid. */
#ifndef POLICY_CLI_POLICY_CLI_H
#define POLICY_CLI_POLICY_CLI_H

#include "policy/explain.h"
#include "policy/load/load.h"

enum {
    EXIT_POLICY_OK = 0,
    EXIT_POLICY_RUNTIME = 1,
    EXIT_POLICY_USAGE = 2,
    EXIT_POLICY_INVALID = 3,
    EXIT_POLICY_HOLD = 10,
    EXIT_POLICY_DENY = 11
};

/* argv[0] is "policy". */
int policy_cli_main(int argc, char **argv);

/* The rest is between the files of this folder. */
enum { CLI_WORDS_MAX = 64 };
struct policy_args {
    const char *packs, *floors, *as, *body;
    const char *words[CLI_WORDS_MAX], *headers[CLI_WORDS_MAX], *labels[CLI_WORDS_MAX];
    size_t nwords, nheaders, nlabels;
    bool json;
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
void loaded_close(struct loaded *l);
void print_problems(const struct loaded *l, bool json);

/* A request as a person writes it, made canonical as the gateway would. */
struct asked {
    struct arena a;
    struct subject subject;
    struct request request;
    struct decision decision;
};
void asked_init(struct asked *q);
void asked_free(struct asked *q);
int asked_url(struct asked *q, struct span url, struct err *e) MUSTCHECK;
int asked_header(struct asked *q, struct span name, struct span value) MUSTCHECK;
int asked_label(struct asked *q, struct span key, struct span value) MUSTCHECK;
/* The body of a push that git would send: refs are name, old and new. */
int asked_push(struct asked *q, struct span url, const struct git_ref *refs, size_t n, struct err *e) MUSTCHECK;
void asked_judge(struct asked *q, const struct policy *p);
void print_explain(const struct loaded *l, struct asked *q, const char *indent);
void json_explain(const struct loaded *l, struct asked *q, struct dynbuf *out);

int policy_cli_check(const struct policy_args *a);
int policy_cli_explain(const struct policy_args *a);
int policy_cli_schema(const struct policy_args *a);
int policy_cli_test(const struct policy_args *a);

#endif
