#include "common/json/json.h"
#include "common/schema/schema.h"
#include "web-approval/diffs/diffs.h"
#include "web-approval/diffs/schema.inc"

static const struct schema *schema(void)
{
    static struct schema *compiled;
    struct schema_fault f;

    if (!compiled && schema_compile(span_of(asset_diff_schema_json, sizeof(asset_diff_schema_json)), SCHEMA_PLAIN,
                                    &compiled, &f) != 0)
        compiled = NULL;
    return compiled;
}

static const char *error_words(struct span error, bool *again)
{
    static const struct {
        const char *error, *words;
        bool again;
    } table[] = {
        {"denied",
         "the gateway did not let the repository be read: the policy has to allow the fetch to the lane of diffs",
         false},
        {"unauthorized", "the repository asks for a credential that the reading rule does not give", false},
        {"not-found", "the repository is not there, or its reader may not see it", false},
        {"moved", "the repository says that it is elsewhere, and nobody followed it there", false},
        {"unreachable", "the repository could not be reached", true},
        {"old-gone", "the repository does not have, or does not hand out, what the push says is there now", false},
        {"incomplete", "the pack could not be completed with what the repository has, or it is damaged", false},
        {"cut-history", "the repository's own history is cut off, so what the push drops or adds cannot be told",
         false},
        {"no-git", "the image of diffs has no git in it", false},
        {"failed", "git did not do what it was asked for", true},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (span_eq(error, span_str(table[i].error))) {
            *again = table[i].again;
            return table[i].words;
        }
    return "git did not do what it was asked for";
}

static bool truth(const struct json *j, struct span key)
{
    const struct json *v = json_get(j, key);

    return v && v->type == JSON_BOOL && v->truth;
}

static const char *file_lacks(const struct json *f)
{
    struct span kind = json_text(f, SPAN("kind"));

    if (span_eq(kind, SPAN("large")))
        return "a file is too large to be shown";
    if (span_eq(kind, SPAN("unknown")))
        return "git did not say what changes in a file";
    if (span_eq(kind, SPAN("binary")) &&
        (truth(f, SPAN("runs")) || span_eq(json_text(f, SPAN("new_mode")), SPAN("100755"))))
        return "a binary file that can run is not shown";
    if (truth(f, SPAN("cut")))
        return "the changes of a file are too many to be shown";
    if (span_eq(kind, SPAN("text")) && !json_get(f, SPAN("patch")))
        return "the changes of a file are not there";
    return truth(f, SPAN("path_cut")) ? "the name of a file is too long to be shown" : NULL;
}

static const char *ref_lacks(const struct json *ref)
{
    const struct json *files = json_get(ref, SPAN("files"));
    struct span state = json_text(ref, SPAN("state"));
    const char *why = NULL;
    uint64_t total;

    if (span_eq(state, SPAN("deleted")))
        return NULL;
    if (!span_eq(state, SPAN("compared")))
        return span_eq(state, SPAN("not-there"))   ? "what a ref is to lead to is neither in the push nor found there"
               : span_eq(state, SPAN("no-commit")) ? "a ref leads to something that is no commit"
                                                   : "what a ref leads to now is not there";
    if (!files || json_u64(ref, SPAN("files_total"), &total) != 0 || total != files->count ||
        truth(ref, SPAN("files_cut")))
        return "more files change than are shown";
    if (json_get(ref, SPAN("tag")) && truth(ref, SPAN("text_cut")))
        return "a tag says more than is shown";
    const struct json *commits = json_get(ref, SPAN("commits"));
    for (const struct json *c = commits ? commits->child : NULL; c; c = c->next)
        if (truth(c, SPAN("text_cut")) || !json_get(c, SPAN("text")))
            return "a commit says more than is shown";
    for (const struct json *f = files->child; f && !why; f = f->next)
        why = file_lacks(f);
    return why;
}

/* What leaves and nobody sees; a result that compares and does not tell is as one that hides. */
static const char *hides(const struct json *all, const struct json *list)
{
    uint64_t hidden = 0;
    bool told = json_u64(all, SPAN("hidden"), &hidden) == 0;

    for (const struct json *r = list->child; r && !told; r = r->next)
        if (!span_eq(json_text(r, SPAN("state")), SPAN("deleted")))
            hidden = 1;
    return hidden > 0 ? "the push carries objects that nothing here shows: they leave with it all the same" : NULL;
}

int diff_result(struct span json, size_t refs, const char **why, bool *again)
{
    struct schema_miss miss;
    struct arena a;
    int rc = -1;

    *why = "what was found does not have its form";
    *again = false;
    if (!schema() || schema_validate(schema(), json, &miss) != SCHEMA_FITS)
        return -1;
    arena_init(&a, DIFFS_RESULT_ARENA);
    const struct json *all = json_parse(json, &a), *list = json_get(all, SPAN("refs"));
    if (all && !list) {
        *why = error_words(json_text(all, SPAN("error")), again);
        rc = 0;
    } else if (list && list->count == refs) {
        *why = NULL;
        for (const struct json *r = list->child; r && !*why; r = r->next)
            *why = ref_lacks(r);
        if (!*why)
            *why = hides(all, list);
        rc = 1;
    }
    arena_free(&a);
    return rc;
}
