/* The tests that lie beside a policy's files, against an image that is about to be used: X.yaml has its own in
 * X_test.yaml. For the daemon, before a policy is in force. */
#ifndef POLICY_TEST_OWN_TESTS_H
#define POLICY_TEST_OWN_TESTS_H

#include "policy/load/disk.h"
#include "policy/policy.h"

struct tests_ran {
    size_t files, cases, failed;
};

/* Where the tests of path would lie. -1: it has none (no .yaml or .yml), or the name is too long. */
int policy_tests_path(const char *path, char *out, size_t cap) MUSTCHECK;
/* Every case of every test file there is, whatever it names in policy:. 0: all passed, or there is none. -1: the
 * first that did not, as file:line, its name and what came instead; or why the file is none. */
int policy_tests_run(const struct policy *p, const char *const *paths, size_t n, struct tests_ran *ran,
                     struct err *e) MUSTCHECK;

#endif
