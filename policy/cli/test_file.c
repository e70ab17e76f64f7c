/* FILE_test.yaml: its grammar. */
#include "policy/cli/test_file.h"

#include "policy/load/grammar_limits.h"

#define TEXT(T, f, name_)                                                                                            \
    {                                                                                                                \
        .name = name_, .type = KEY_TEXT, .at = offsetof(struct T, f)                                                 \
    }
#define NEEDED(T, f, name_)                                                                                          \
    {                                                                                                                \
        .name = name_, .type = KEY_TEXT, .at = offsetof(struct T, f), .flags = KEY_NEEDED                            \
    }
#define PAIRS(T, f, name_)                                                                                           \
    {                                                                                                                \
        .name = name_, .type = KEY_PAIRS, .at = offsetof(struct T, f)                                                \
    }
#define MAP(T, f, name_, t)                                                                                          \
    {                                                                                                                \
        .name = name_, .type = KEY_MAP, .at = offsetof(struct T, f), .table = t                                      \
    }
#define LIST(T, f, name_, t)                                                                                         \
    {                                                                                                                \
        .name = name_, .type = KEY_LIST, .at = offsetof(struct T, f), .table = t, .flags = KEY_NEEDED                \
    }

static const struct choice decide_names[] = {
    {"deny", VERDICT_DENY}, {"hold", VERDICT_HOLD}, {"allow", VERDICT_ALLOW}, {0}};
static const struct key as_keys[] = {TEXT(t_as, sandbox, "sandbox"), PAIRS(t_as, labels, "labels"), {0}};
static const struct table as_table = {"as:", sizeof(struct t_as), as_keys};
static const struct key request_keys[] = {NEEDED(t_request, method, "method"),
                                          NEEDED(t_request, url, "url"),
                                          PAIRS(t_request, headers, "headers"),
                                          {.name = "body", .type = KEY_PROSE, .at = offsetof(struct t_request, body)},
                                          PAIRS(t_request, form, "form"),
                                          {.name = "json", .type = KEY_PROSE, .at = offsetof(struct t_request, json)},
                                          {0}};
static const struct table request_table = {"request:", sizeof(struct t_request), request_keys};
static const struct key ref_keys[] = {
    NEEDED(t_ref, name, "name"), TEXT(t_ref, old_id, "old"), TEXT(t_ref, new_id, "new"), {0}};
static const struct table ref_table = {"a ref", sizeof(struct t_ref), ref_keys};
static const struct key push_keys[] = {NEEDED(t_push, url, "url"), LIST(t_push, refs, "refs", &ref_table), {0}};
static const struct table push_table = {"git_push:", sizeof(struct t_push), push_keys};
static const struct key expect_keys[] = {{.name = "decide",
                                          .type = KEY_ONE_OF,
                                          .at = offsetof(struct t_expect, decide),
                                          .choices = decide_names,
                                          .flags = KEY_NEEDED},
                                         TEXT(t_expect, because, "because"),
                                         TEXT(t_expect, rule, "rule"),
                                         TEXT(t_expect, credential, "credential"),
                                         TEXT(t_expect, op, "op"),
                                         TEXT(t_expect, effect, "effect"),
                                         TEXT(t_expect, resource, "resource"),
                                         TEXT(t_expect, say, "say"),
                                         {0}};
static const struct table expect_table = {"expect:", sizeof(struct t_expect), expect_keys};
static const struct key used_keys[] = {
    NEEDED(t_used, rule, "rule"),
    TEXT(t_used, field, "field"),
    TEXT(t_used, pointer, "pointer"),
    {.name = "requests", .type = KEY_COUNT, .at = offsetof(struct t_used, requests), .hi = LIMIT_SUM_MOST},
    {.name = "sum", .type = KEY_COUNT, .at = offsetof(struct t_used, sum), .hi = LIMIT_SUM_MOST},
    {0}};
static const struct table used_table = {"an entry of used:", sizeof(struct t_used), used_keys};
static const struct key case_keys[] = {
    NEEDED(t_case, name, "name"),
    MAP(t_case, as, "as", &as_table),
    MAP(t_case, request, "request", &request_table),
    MAP(t_case, push, "git_push", &push_table),
    {.name = "at", .type = KEY_INSTANT, .at = offsetof(struct t_case, when)},
    {.name = "used", .type = KEY_MAPS, .at = offsetof(struct t_case, used), .table = &used_table},
    {.name = "expect",
     .type = KEY_MAP,
     .at = offsetof(struct t_case, expect),
     .table = &expect_table,
     .flags = KEY_NEEDED},
    {0}};
static const struct table case_table = {"a case", sizeof(struct t_case), case_keys};
static const struct key file_keys[] = {
    {.name = "policy", .type = KEY_TEXTS, .at = offsetof(struct t_file, policy), .flags = KEY_NEEDED},
    TEXT(t_file, floors, "floors"),
    LIST(t_file, cases, "cases", &case_table),
    {0}};
static const struct table file_table = {"a test file", sizeof(struct t_file), file_keys};

int test_file_decode(struct loader *l, const char *file, struct span text, struct t_file *out)
{
    struct node *root = yaml_tree(l, file, text);
    if (root)
        decode_map(l, root, &file_table, out);
    return root && !l->failed ? 0 : -1;
}
