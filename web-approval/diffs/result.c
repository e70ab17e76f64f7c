#include <stdio.h>
#include <string.h>

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

/* again: it may well be had the next time. */
static const struct {
    const char *error, *words;
    bool again;
} errors[] = {
    {"denied",
     "the gateway did not let the repository be read: the policy has to allow the fetch to the lane of diffs", false},
    {"unauthorized", "the repository asks for a credential that the reading rule does not give", false},
    {"not-found", "the repository is not there, or its reader may not see it", false},
    {"moved", "the repository says that it is elsewhere, and nobody followed it there", false},
    {"unreachable", "the repository could not be reached", true},
    {"old-gone", "the repository does not have, or does not hand out, what the push says is there now", false},
    {"incomplete", "the pack could not be completed with what the repository has, or it is damaged", false},
    {"cut-history", "the repository's own history is cut off, so what the push drops or adds cannot be told", false},
    {"no-git", "the image of diffs has no git in it", false},
    {"failed", "a program in its sandbox (git, curl, gzip or sha512sum) did not do what it was asked for", true},
    {"no-program", "the image of diffs has no curl, no gzip or no sha512sum in it", false},
    {"bad-request", "the request is not written as npm writes one that publishes a single version", false},
    {"no-package", "the request brings no package: it changes what is said of those that are there", false},
    {"other-name", "the request names another package than its address does", false},
    {"other-place",
     "the request says that its package will lie at another place than below its own name there, from where others "
     "would install it",
     false},
    {"bad-list", "the registry's list of versions is not one that can be read here", false},
    {"list-denied",
     "the registry's list of versions was refused: the policy has to allow npm.metadata to the lane of diffs", false},
    {"list-forbidden",
     "the registry itself does not let its list of versions be read with what the reading rule gives", false},
    {"file-forbidden", "the registry itself does not hand out the last version to what the reading rule gives",
     false},
    {"list-unauthorized", "the registry asks for a credential that the reading rule does not give", false},
    {"list-moved", "the registry says that its list of versions is elsewhere, and nobody followed it there", false},
    {"list-unreachable", "the registry could not be reached", true},
    {"list-large", "the registry's list of versions is longer than is read (32 MiB)", false},
    {"elsewhere",
     "the registry says that the last version lies at another host, or not below its own name: it is not fetched",
     false},
    {"integrity",
     "what came as the last version does not have the hash that the registry's own list says: it is another "
     "package, and nothing was compared with it",
     false},
    {"file-denied", "the last version was refused: the policy has to allow npm.tarball to the lane of diffs", false},
    {"file-unauthorized", "the registry asks for a credential that the reading rule does not give", false},
    {"file-moved", "the registry says that the last version's file is elsewhere, and nobody followed it there",
     false},
    {"file-unreachable", "the last version's file could not be fetched", true},
    {"new-damaged", "the package is damaged: programs differ in what they unpack of it", false},
    {"new-large", "the package has more in it than is compared (48 MiB packed; 5,000 files, 128 MiB)", false},
    {"new-odd", "the package has what programs read differently, so nobody knows what they would unpack", false},
    {"new-twice",
     "the package has two files of one name, or of names that are one on some systems (in another case, with a dot "
     "at "
     "the end): programs differ in which they keep",
     false},
    {"bad-address", "its address is not that of an image's name: /v2/NAME/manifests/TAG, nothing of it escaped",
     false},
    {"bad-manifest",
     "it is no manifest, or list of images, that all programs take for the same: something stands twice, is missing, "
     "or says otherwise than the request",
     false},
    {"bad-config",
     "its configuration is not one that all programs take for the same, does not say of each layer what it is "
     "unpacked "
     "to, or the image says more than is read (2,000 members)",
     false},
    {"other-digest", "it has another digest than its address says", false},
    {"list-early", "an image of the list is not in the registry yet: each is pushed before the list", false},
    {"manifest-large", "the manifest is longer than registries take (4 MiB)", false},
    {"manifest-denied",
     "the image that has this name now was refused: the policy has to allow reading /v2/NAME/** to the lane of diffs",
     false},
    {"manifest-forbidden", "the registry itself does not hand out the image that has this name now", false},
    {"manifest-unauthorized", "the registry asks for a credential that the reading rule does not give", false},
    {"manifest-moved", "the registry sends on too often, or to where no encrypted connection leads", false},
    {"manifest-unreachable", "the registry could not be reached", true},
    {"config-denied",
     "the image's configuration was refused: the policy has to allow reading /v2/NAME/** to the lane of diffs, and "
     "the "
     "host where the registry keeps its blobs",
     false},
    {"config-forbidden", "the registry itself does not hand out the image's configuration", false},
    {"config-unauthorized", "the registry asks for a credential that the reading rule does not give", false},
    {"config-moved", "the registry sends on too often, or to where no encrypted connection leads", false},
    {"config-unreachable", "the image's configuration could not be fetched", true},
    {"config-not-found", "the registry does not have the image's configuration: it is pushed before the manifest",
     false},
    {"config-large", "the image's configuration is longer than is read (4 MiB)", false},
    {"config-integrity", "what came as the image's configuration does not have the digest that the manifest says",
     false},
};

static const char *error_words(struct span error, bool *again)
{
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
        if (span_eq(error, span_str(errors[i].error))) {
            *again = errors[i].again;
            return errors[i].words;
        }
    return "what was found says an error that has no words here";
}

enum { DETAIL_MAX = 700, AT_MAX = 160 };
static char detail[DETAIL_MAX]; /* until the next result */

/* Of a name what is sure to be shown as it is. */
static struct span name_shown(struct span name, char to[AT_MAX])
{
    size_t n = name.n < AT_MAX ? name.n : AT_MAX;

    for (size_t i = 0; i < n; i++)
        to[i] = (char)(name.p[i] > 0x20 && name.p[i] < 0x7f && !strchr("<>&\"'`\\", name.p[i]) ? name.p[i] : '?');
    return span_of(to, n);
}

/* Where a package has it, what it is, and what to do about it. */
static const char *package_words(const char *words, const struct json *all)
{
    static const struct {
        const char *why, *words;
    } table[] = {
        {"kind", "a member that is neither a file nor a link (a device, a pipe): leave it out"},
        {"beside", "a file that lies in no folder: pack it as npm does, below package/"},
        {"deep", "more than 64 folders in each other: move it up"},
        {"name",
         "a name with a colon or a backslash, or that Windows takes for the short form of another: rename it"},
        {"path",
         "a name that its tar spells in two ways, or with an empty part, a dot or a backslash: rename it, or pack "
         "with npm"},
        {"record", "an extended header with something that programs read differently: pack with npm"},
        {"header", "a header of its tar that is not as npm writes it (ustar): pack with npm"},
    };
    struct span why = json_text(all, SPAN("why")), at = json_text(all, SPAN("at"));
    const char *what = NULL;
    char name[AT_MAX];

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (span_eq(why, span_str(table[i].why)))
            what = table[i].words;
    if (!what && at.n == 0)
        return words;
    bool behind = span_eq(why, SPAN("header")) || span_eq(why, SPAN("record")) || span_eq(why, SPAN("path"));
    at = name_shown(at, name);
    (void)snprintf(detail, sizeof(detail), "%s%s%s%s%s%.*s%s", words, what ? ": " : "", what ? what : "",
                   at.n ? " (" : "", at.n && behind ? "behind " : "", SPAN_FMT(at), at.n ? ")" : "");
    return detail;
}

static const char *unread_words(const struct json *package)
{
    struct span side = json_text(package, SPAN("unread")), key = json_text(package, SPAN("unread_key"));
    const char *whose = span_eq(side, SPAN("old")) ? "the package.json of the last version"
                        : span_eq(side, SPAN("request"))
                            ? "what the request says of this version, or its package.json,"
                            : "the package.json of the package";

    if (key.n > 0)
        (void)snprintf(
            detail, sizeof(detail),
            "%s cannot be read here: in \"%.*s\" a name stands twice or in another case, or is too long, or "
            "it has another form than npm writes",
            whose, SPAN_FMT(key));
    else
        (void)snprintf(
            detail, sizeof(detail),
            "%s cannot be read here: it is no JSON, or longer than 128 KiB, or has a name twice or in another "
            "case",
            whose);
    return detail;
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
    if (truth(f, SPAN("runs")) ||
        (span_eq(kind, SPAN("binary")) && span_eq(json_text(f, SPAN("new_mode")), SPAN("100755"))))
        return "a binary file that can run is not shown";
    if (truth(f, SPAN("cut")))
        return "the changes of a file are too many to be shown";
    if (span_eq(kind, SPAN("text")) && !json_get(f, SPAN("patch")))
        return "the changes of a file are not there";
    return truth(f, SPAN("path_cut")) ? "the name of a file is too long to be shown" : NULL;
}

static const char *list_lacks(const struct json *of)
{
    const struct json *files = json_get(of, SPAN("files"));
    uint64_t total;

    return !files || json_u64(of, SPAN("files_total"), &total) != 0 || total != files->count ||
                   truth(of, SPAN("files_cut"))
               ? "more files change than are shown"
               : NULL;
}

static const char *files_lack(const struct json *of)
{
    const struct json *files = json_get(of, SPAN("files"));
    const char *why = NULL;

    for (const struct json *f = files ? files->child : NULL; f && !why; f = f->next)
        why = file_lacks(f);
    return why;
}

static const char *package_lacks(const struct json *package)
{
    const struct json *facts = json_get(package, SPAN("facts"));
    const char *why = list_lacks(package);
    uint64_t total;

    if (span_eq(json_text(package, SPAN("sent")), SPAN("wrong")))
        return "the package does not have the hash that the request itself says";
    if (span_eq(json_text(package, SPAN("sent")), SPAN("none")))
        return "the request does not say the hash of its package";
    if (!facts)
        return unread_words(package);
    for (const struct json *f = facts->child; f; f = f->next)
        if (span_eq(json_text(f, SPAN("in")), SPAN("request")))
            return "the request says otherwise of the package than its own package.json";
    if (json_get(package, SPAN("unread")))
        return unread_words(package);
    if (json_u64(package, SPAN("facts_total"), &total) != 0 || total != facts->count)
        return "its package.json changes more than is shown";
    if (!span_eq(json_text(package, SPAN("state")), SPAN("first")) &&
        (!json_get(package, SPAN("old")) || !json_get(package, SPAN("base")) || !json_get(package, SPAN("hash"))))
        return "with which version it was compared is not said";
    return why ? why : files_lack(package);
}

static const char *image_lacks(const struct json *image)
{
    const struct json *facts = json_get(image, SPAN("facts")), *parts = json_get(image, SPAN("parts"));
    uint64_t total;

    if (!facts || json_u64(image, SPAN("facts_total"), &total) != 0 || total != facts->count)
        return "the image says more of itself than is shown";
    if (!parts || json_u64(image, SPAN("parts_total"), &total) != 0 || total != parts->count)
        return "the image has more parts than are shown";
    for (const struct json *f = facts->child; f; f = f->next)
        if (truth(f, SPAN("cut")))
            return "the image says something of itself that is too long to be shown";
    for (const struct json *p = parts->child; p; p = p->next) {
        if (truth(p, SPAN("cut")))
            return "of a part of the image is said more than can be shown";
        if (span_eq(json_text(p, SPAN("opened")), SPAN("no")))
            return "an image of the list could not be looked into";
    }
    return NULL;
}

static const char *ref_lacks(const struct json *ref)
{
    struct span state = json_text(ref, SPAN("state"));
    const char *why;

    if (span_eq(state, SPAN("deleted")))
        return NULL;
    if (!span_eq(state, SPAN("compared")))
        return span_eq(state, SPAN("not-there"))   ? "what a ref is to lead to is neither in the push nor found there"
               : span_eq(state, SPAN("no-commit")) ? "a ref leads to something that is no commit"
                                                   : "what a ref leads to now is not there";
    if ((why = list_lacks(ref)) != NULL)
        return why;
    if (json_get(ref, SPAN("tag")) && truth(ref, SPAN("text_cut")))
        return "a tag says more than is shown";
    const struct json *commits = json_get(ref, SPAN("commits"));
    for (const struct json *c = commits ? commits->child : NULL; c; c = c->next)
        if (truth(c, SPAN("text_cut")) || !json_get(c, SPAN("text")))
            return "a commit says more than is shown";
    return files_lack(ref);
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

int diff_result(struct span json, enum diff_kind kind, size_t refs, const char **why, bool *again)
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
    const struct json *package = json_get(all, SPAN("package")), *image = json_get(all, SPAN("image"));
    if (json_get(all, SPAN("error"))) {
        *why = package_words(error_words(json_text(all, SPAN("error")), again), all);
        rc = 0;
    } else if (package && kind == DIFF_OF_PACKAGE) {
        *why = package_lacks(package);
        rc = 1;
    } else if (image && kind == DIFF_OF_IMAGE) {
        *why = image_lacks(image);
        rc = 1;
    } else if (list && kind == DIFF_OF_PUSH && list->count == refs) {
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
