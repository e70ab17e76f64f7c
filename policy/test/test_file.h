/* FILE_test.yaml as it is written, and a case of it asked: requests and what must come of them, decided by the same
 * code as in the gateway. Nothing here prints. */
#ifndef POLICY_TEST_TEST_FILE_H
#define POLICY_TEST_TEST_FILE_H

#include "policy/load/read/keys.h"
#include "policy/test/asked.h"

struct t_as {
    const struct node *at;
    struct item sandbox;
    struct list labels;
};
struct t_request {
    const struct node *at;
    struct item method, url, body, json;
    struct list headers, form, multipart;
};
struct t_ref {
    const struct node *at;
    struct item name, old_id, new_id;
};
struct t_push {
    const struct node *at;
    struct item url;
    struct list refs;
};
struct t_used { /* of a limit, by earlier requests */
    const struct node *at;
    struct item rule, field, pointer;
    struct number requests, sum;
};
struct t_expect {
    const struct node *at;
    struct number decide, because, effect; /* because: test_code_name says which */
    struct item rule, credential, op, resource, say;
};
struct t_case {
    const struct node *at;
    struct item name;
    struct t_as as;
    struct t_request request;
    struct t_push push;
    struct number when;
    struct list used; /* t_used */
    struct t_expect expect;
};
struct t_file {
    const struct node *at;
    struct items policy;
    struct item floors;
    struct list cases;
};

/* test_file.c: the table is the schema's too; a decision's code by its number there. l has its arena and problems;
 * the text lives as long as the tree. */
extern const struct table test_file_table;
const char *test_code_name(uint64_t code);
int test_file_decode(struct loader *l, const char *file, struct span text, struct t_file *out) MUSTCHECK;

/* test_run.c: what came instead of what a case expects. */
enum { TEST_DIFFS_MAX = 16 };
struct test_diff {
    const char *what; /* "decide", "rule" ... */
    struct span wanted, got;
};
struct tested {
    struct asked q;  /* its decision, if it could be asked */
    const char *why; /* the case makes no sense of this policy: it fails whatever it expects */
    struct err e;    /* the gateway would answer this request with 400: it is denied because bad-request */
    bool asked, ok;
    bool asks_time; /* it has no at:, and might end otherwise at another time */
    struct test_diff diff[TEST_DIFFS_MAX];
    size_t ndiffs;
};
void test_case_run(const struct policy *p, const struct t_case *c, struct tested *t);
void tested_free(struct tested *t);

#endif
