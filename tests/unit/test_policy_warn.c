/* What check reports of rules that mean nothing: each report for a rule that is so, and silence for its neighbour
 * that is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy_kit.h"

static const struct row {
    const char *rules, *code, *words; /* words NULL: no such code at all */
} rows[] = {
    /* a hold over an allow */
    {"{ id: a, decide: allow, match: { host: a.example, effect: read, path: /x } }\n"
     "  - { id: h, decide: hold, match: { host: a.example } }",
     "P103", "\"a\" never decides: the rule \"h\" at policy.yaml:4 holds all it is about"},
    {"{ id: a, decide: allow, match: { host: a.example, effect: read, path: /x } }\n"
     "  - { id: h, decide: hold, match: { host: a.example, effect: write } }",
     "P103", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, effect: read, port: 8443 } }\n"
     "  - { id: h, decide: hold, match: { host: a.example } }",
     "P103", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, effect: read, scheme: http } }\n"
     "  - { id: h, decide: hold, match: { host: a.example } }",
     "P103", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, ws: {} } }\n"
     "  - { id: h, decide: hold, match: { host: a.example } }",
     "P103", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, effect: read, path: /x } }\n"
     "  - { id: h, decide: hold, match: { host: a.example }, except: [{ path: /x }] }",
     "P103", NULL},
    /* a deny over others, in both orders of id */
    {"{ id: a, decide: deny, match: { host: a.example } }\n"
     "  - { id: b, decide: hold, match: { host: a.example, scheme: http, port: 81 } }",
     "P103", "\"b\" never decides: the rule \"a\" at policy.yaml:3 denies all it is about"},
    {"{ id: a, decide: hold, match: { host: a.example } }\n"
     "  - { id: b, decide: deny, match: { host: \"**.example\" } }",
     "P103", "\"a\" never decides"},
    {"{ id: a, decide: deny, match: { host: a.example } }\n"
     "  - { id: b, decide: hold, match: { host: b.example } }",
     "P103", NULL},
    /* twice the same */
    {"{ id: a, decide: allow, match: { host: a.example, effect: read } }\n"
     "  - { id: b, decide: allow, match: { host: a.example, effect: read } }",
     "P103", "\"b\" says what \"a\" at policy.yaml:3 says"},
    {"{ id: a, decide: allow, match: { host: a.example, effect: read } }\n"
     "  - { id: b, decide: allow, match: { host: a.example, effect: read, path: /x } }",
     "P103", NULL},
    {"{ id: a, decide: allow, match: { host: a.example, effect: read, query: { a: b } } }\n"
     "  - { id: b, decide: allow, match: { host: a.example, effect: read, query: { a: b } } }",
     "P103", NULL},
    /* what excludes itself */
    {"{ id: a, decide: hold, match: { host: a.example, json: [{ pointer: /n, int_lte: 4 }, { pointer: /n, int_gte: 5 "
     "}] } }",
     "P102", "exclude each other"},
    {"{ id: a, decide: hold, match: { host: a.example, json: [{ pointer: /n, int_lte: 5 }, { pointer: /n, int_gte: 5 "
     "}] } }",
     "P102", NULL},
    {"{ id: a, decide: hold, match: { host: a.example, json: [{ pointer: /n, int_lte: 4 }, { pointer: /m, int_gte: 5 "
     "}] } }",
     "P102", NULL},
    {"{ id: a, decide: hold, match: { host: a.example, form: [{ field: amount, equals: a }, { field: amount, in: [b, "
     "c] }] } }",
     "P102", "exclude each other"},
    {"{ id: a, decide: hold, match: { host: a.example, form: [{ field: amount, equals: c }, { field: amount, in: [b, "
     "c] }] } }",
     "P102", NULL},
    {"{ id: a, decide: hold, match: { host: a.example, form: [{ field: amount, absent: true }, { field: amount, "
     "exists: true "
     "}] } }",
     "P102", "exclude each other"},
    {"{ id: a, decide: hold, match: { host: a.example, method: DELETE, effect: read } }", "P102",
     "none of its methods has this effect"},
    {"{ id: a, decide: hold, match: { host: a.example, method: GET, effect: write } }", "P102", NULL},
    {"{ id: a, decide: hold, match: { host: a.example, method: [DELETE, GET], effect: read } }", "P102", NULL},
    /* exceptions */
    {"{ id: a, decide: hold, match: { host: a.example, method: POST }, except: [{ method: GET }] }", "P102",
     "takes nothing away"},
    {"{ id: a, decide: hold, match: { host: a.example, method: [POST, GET] }, except: [{ method: GET }] }", "P102",
     NULL},
    {"{ id: a, decide: hold, match: { host: a.example }, except: [{ host: b.example }] }", "P102",
     "takes nothing away"},
    {"{ id: a, decide: hold, match: { host: a.example, effect: write }, except: [{ effect: read, path: /x }] }",
     "P102", "takes nothing away"},
    {"{ id: a, decide: hold, match: { host: a.example, path: \"/x/**\" }, except: [{ path: /x/y }] }", "P102", NULL},
    {"{ id: a, decide: hold, match: { host: a.example, path: /x/y }, except: [{ path: \"/x/**\" }] }", "P102",
     "takes everything away"},
};

static void reports(void **state)
{
    static char yaml[4096];
    struct kit k;
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        snprintf(yaml, sizeof(yaml), "version: 1\nrules:\n  - %s\n", rows[i].rules);
        if (!kit_load(&k, yaml, NULL))
            fail_msg("%s: %s", rows[i].rules, k.e.text);
        if (kit_problem(&k, rows[i].code, NULL, rows[i].words) != (rows[i].words != NULL))
            fail_msg("%s: %s %s; got %s", rows[i].rules, rows[i].words ? "no" : "there is a", rows[i].code,
                     k.nproblems ? k.problems[0] : "nothing");
        kit_free(&k);
    }
}

/* A floor is no rule of the policy's: the same words in both are no slip. */
static void floors(void **state)
{
    struct kit k;
    (void)state;
    assert_true(
        kit_load(&k, "version: 1\nrules:\n  - { id: a, decide: allow, match: { host: a.example, effect: read } }\n",
                 "version: 1\nrules:\n  - { id: f, decide: deny, match: { host: a.example } }\n"));
    assert_true(kit_problem(&k, "P103", NULL, "the floor \"f\" at floors.yaml:3 denies all it is about"));
    kit_free(&k);
    assert_true(kit_load(&k, "version: 1\nrules:\n  - { id: a, decide: deny, match: { host: a.example } }\n",
                         "version: 1\nrules:\n  - { id: f, decide: deny, match: { host: a.example } }\n"));
    assert_false(kit_problem(&k, "P103", NULL, NULL));
    kit_free(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reports), cmocka_unit_test(floors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
