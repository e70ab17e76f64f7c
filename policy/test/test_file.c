/* FILE_test.yaml: its grammar, and what a table cannot say of a case. */
#include "policy/test/test_file.h"

#include "policy/load/read/grammar_limits.h"

#define TEXT(T, f, name_, help_)                                                                                     \
    {                                                                                                                \
        .name = name_, .type = KEY_TEXT, .at = offsetof(struct T, f), .help = help_                                  \
    }
#define NEEDED(T, f, name_, help_)                                                                                   \
    {                                                                                                                \
        .name = name_, .type = KEY_TEXT, .at = offsetof(struct T, f), .flags = KEY_NEEDED, .help = help_             \
    }
#define PROSE(T, f, name_, help_)                                                                                    \
    {                                                                                                                \
        .name = name_, .type = KEY_PROSE, .at = offsetof(struct T, f), .help = help_                                 \
    }
#define PAIRS(T, f, name_, flags_, help_)                                                                            \
    {                                                                                                                \
        .name = name_, .type = KEY_PAIRS, .at = offsetof(struct T, f), .flags = flags_, .help = help_                \
    }
#define COUNT(T, f, name_, help_)                                                                                    \
    {                                                                                                                \
        .name = name_, .type = KEY_COUNT, .at = offsetof(struct T, f), .hi = LIMIT_SUM_MOST, .help = help_           \
    }
#define ONE_OF(T, f, name_, choices_, flags_, help_)                                                                 \
    {                                                                                                                \
        .name = name_, .type = KEY_ONE_OF, .at = offsetof(struct T, f), .choices = choices_, .flags = flags_,        \
        .help = help_                                                                                                \
    }
#define MAP(T, f, name_, t, flags_, help_)                                                                           \
    {                                                                                                                \
        .name = name_, .type = KEY_MAP, .at = offsetof(struct T, f), .table = t, .flags = flags_, .help = help_      \
    }
#define LIST(T, f, name_, t, help_)                                                                                  \
    {                                                                                                                \
        .name = name_, .type = KEY_LIST, .at = offsetof(struct T, f), .table = t, .flags = KEY_NEEDED, .help = help_ \
    }

static const struct choice decide_names[] = {
    {"deny", VERDICT_DENY}, {"hold", VERDICT_HOLD}, {"allow", VERDICT_ALLOW}, {0}};
static const struct choice effect_names[] = {
    {"unknown", EFFECT_UNKNOWN}, {"read", EFFECT_READ},   {"write", EFFECT_WRITE}, {"delete", EFFECT_DELETE},
    {"admin", EFFECT_ADMIN},     {"spend", EFFECT_SPEND}, {"exec", EFFECT_EXEC},   {0}};
/* The codes of a decision (struct decision), each at the place that is its value. */
static const struct choice code_names[] = {{"rule", 0},
                                           {"floor", 1},
                                           {"no-rule", 2},
                                           {"host-not-named", 3},
                                           {"residency", 4},
                                           {"unclassified", 5},
                                           {"bad-method", 6},
                                           {"bad-path", 7},
                                           {"bad-request", 8},
                                           {"ambiguous-credential", 9},
                                           {"ambiguous-approvers", 10},
                                           {"credential-not-for-here", 11},
                                           {"credential-cleartext", 12},
                                           {"over-limit", 13},
                                           {"too-many-limits", 14},
                                           {"learning", 15},
                                           {"no-memory", 16},
                                           {"internal", 17},
                                           {0}};

static const struct key as_keys[] = {
    TEXT(t_as, sandbox, "sandbox", "the sandbox's name; without it: sandbox"),
    PAIRS(t_as, labels, "labels", KEY_SINGLE, "its labels, each with one value; without it: none"),
    {0}};
static const struct table as_table = {"as:", sizeof(struct t_as), as_keys};
static const struct key request_keys[] = {
    NEEDED(t_request, method, "method", "GET, POST and so on"),
    NEEDED(t_request, url, "url", "https://, http://, wss:// or ws://, with the query"),
    PAIRS(t_request, headers, "headers", 0, "its fields; a list of values is the field several times"),
    PROSE(t_request, body, "body", "the body as it is"),
    PAIRS(t_request, form, "form", 0, "in its place, a form: each name with its value or values"),
    PAIRS(t_request, multipart, "multipart", 0,
          "in its place, a form with files: each name with its value or values; \"@a.png;type=image/png\" is a file"),
    PROSE(t_request, json, "json", "in its place, the text of a JSON body"),
    {0}};
static const struct table request_table = {"request:", sizeof(struct t_request), request_keys};
static const struct key ref_keys[] = {
    NEEDED(t_ref, name, "name", "refs/heads/main and so on"),
    TEXT(t_ref, old_id, "old", "how the object id that was there begins; \"0\": there was none"),
    TEXT(t_ref, new_id, "new", "how the object id that comes there begins; \"0\": the ref is deleted"),
    {0}};
static const struct table ref_table = {"a ref", sizeof(struct t_ref), ref_keys};
static const struct key push_keys[] = {
    NEEDED(t_push, url, "url", "of the repository"), LIST(t_push, refs, "refs", &ref_table, "what is pushed"), {0}};
static const struct table push_table = {"git_push:", sizeof(struct t_push), push_keys};
static const struct key expect_keys[] = {
    ONE_OF(t_expect, decide, "decide", decide_names, KEY_NEEDED, "what is decided"),
    ONE_OF(t_expect, because, "because", code_names, 0, "the code of the decision"),
    TEXT(t_expect, rule, "rule", "the id of the rule that decides; none: no rule does"),
    TEXT(t_expect, credential, "credential", "the credential that goes with it; none: no credential"),
    TEXT(t_expect, op, "op", "the operation that it is"),
    ONE_OF(t_expect, effect, "effect", effect_names, 0, "its effect"),
    TEXT(t_expect, resource, "resource", "the resource that it is about"),
    TEXT(t_expect, say, "say", "what the rule says to the sandbox"),
    {0}};
static const struct table expect_table = {"expect:", sizeof(struct t_expect), expect_keys};
static const struct key used_keys[] = {NEEDED(t_used, rule, "rule", "the rule whose limit it is"),
                                       TEXT(t_used, field, "field", "a sum of this field of forms"),
                                       TEXT(t_used, pointer, "pointer", "a sum of this value of JSON bodies"),
                                       COUNT(t_used, requests, "requests", "in their place: so many requests"),
                                       COUNT(t_used, sum, "sum", "what they came to"),
                                       {0}};
static const struct table used_table = {"an entry of used:", sizeof(struct t_used), used_keys};
static const struct key case_keys[] = {
    NEEDED(t_case, name, "name", "what it shows, in words"),
    MAP(t_case, as, "as", &as_table, 0, "who asks"),
    MAP(t_case, request, "request", &request_table, 0, "what is asked"),
    MAP(t_case, push, "git_push", &push_table, 0, "in its place, what git pushes"),
    {.name = "at",
     .type = KEY_INSTANT,
     .at = offsetof(struct t_case, when),
     .help = "when: 2026-11-23T09:00:00Z; without it: now"},
    {.name = "used",
     .type = KEY_MAPS,
     .at = offsetof(struct t_case, used),
     .table = &used_table,
     .help = "what earlier requests took of limits"},
    MAP(t_case, expect, "expect", &expect_table, KEY_NEEDED, "what must come of it"),
    {0}};
static const struct table case_table = {"a case", sizeof(struct t_case), case_keys};
static const struct key file_keys[] = {
    {.name = "policy",
     .type = KEY_TEXTS,
     .at = offsetof(struct t_file, policy),
     .flags = KEY_NEEDED,
     .help = "the files of the policy, beside this one"},
    TEXT(t_file, floors, "floors", "the file of the operator's floors"),
    LIST(t_file, cases, "cases", &case_table, "requests, and what must come of them"),
    {0}};
const struct table test_file_table = {"a test file", sizeof(struct t_file), file_keys};

const char *test_code_name(uint64_t code)
{
    return code < sizeof(code_names) / sizeof(code_names[0]) - 1 ? code_names[code].name : "";
}

static void check_used(struct loader *l, const struct t_used *u)
{
    if ((u->field.at != NULL) + (u->pointer.at != NULL) + (u->requests.at != NULL) != 1 ||
        (u->sum.at != NULL) == (u->requests.at != NULL))
        load_problem(l, u->at, "P015", "used: is requests: N, or field: or pointer: with sum: N");
}

static void check_case(struct loader *l, const struct t_case *c)
{
    const struct t_request *r = &c->request;
    const struct t_used *u = c->used.v;
    for (size_t i = 0; i < c->used.n; i++)
        check_used(l, &u[i]);
    if ((r->body.at != NULL) + (r->json.at != NULL) + (r->form.at != NULL) + (r->multipart.at != NULL) > 1)
        load_problem(l, r->at, "P015", "a request has one of body:, json:, form: and multipart:");
    if ((r->at == NULL) == (c->push.at == NULL))
        load_problem(l, c->at, "P015", "a case has request: or git_push:%s", r->at ? ", not both" : "");
}

int test_file_decode(struct loader *l, const char *file, struct span text, struct t_file *out)
{
    struct node *root = yaml_tree(l, file, text);
    if (root)
        keys_decode_map(l, root, &test_file_table, out);
    const struct t_case *c = out->cases.v;
    for (size_t i = 0; c && i < out->cases.n; i++)
        check_case(l, &c[i]);
    return root && !l->failed ? 0 : -1;
}
