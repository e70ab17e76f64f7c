/* A package on its ticket's page: with which version it was compared, what its package.json changes, and its files.
 */
#include "web-approval/diffs/page_diff.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NAME_SHOWN = 300, SAID_SHOWN = 700 };

static void word(struct exchange *x, const struct json *of, const char *key)
{
    PUT(x, "<span class=\"mono\">");
    show_cut(&x->out, json_text(of, span_str(key)), NAME_SHOWN);
    PUT(x, "</span>");
}

/* --- with what ----------------------------------------------------------------------------- */

static void compared(struct exchange *x, const struct json *package)
{
    bool tagged = json_text(package, SPAN("tag")).n > 0;

    PUT(x, "<p class=\"meta\"><span>compared with ");
    word(x, package, "old");
    if (diff_says(package, "base", "tag")) {
        PUT(x, ", on which the tag ");
        word(x, package, "tag");
        PUT(x, " stands now");
    } else {
        PUT(x, ", the highest version there is");
        if (tagged) {
            PUT(x, ", as the registry has no version by the tag ");
            word(x, package, "tag");
        }
    }
    PUT(x, "</span>");
    if (!diff_says(package, "hash", "none"))
        PUT(x, " <span>its file has the hash that the registry's list says</span>");
    PUT(x, "</p>\n");
    if (diff_says(package, "hash", "none"))
        PUT(x,
            "<p class=\"note\">The registry's list says no hash of that version: whether this is its file cannot be "
            "told.</p>\n");
    if (diff_truth(package, "already"))
        PUT(x, "<p class=\"note grave\">The registry has this version already.</p>\n");
}

static void unread(struct exchange *x, const struct json *package)
{
    PUT(x, "<p class=\"note grave\">The last version, ");
    word(x, package, "old");
    show_own(&x->out, diff_says(package, "unread_old", "twice") ? ", could not be read (it has two files of one name)"
                      : diff_says(package, "unread_old", "large")
                          ? ", could not be read (it has more in it than is compared)"
                      : diff_says(package, "unread_old", "gone")
                          ? ", could not be read (the registry lists it, and does not have its file)"
                      : diff_says(package, "unread_old", "manifest")
                          ? ", could not be read (its package.json is no JSON, longer than 128 KiB, or has a name "
                            "twice, in another case or in another form than npm writes)"
                      : diff_says(package, "unread_old", "odd")
                          ? ", could not be read (programs differ in what they unpack of its headers and names)"
                          : ", could not be read (it is damaged)");
    PUT(x, ": this one is compared with nothing, and all of it is shown as new.</p>\n");
    if (diff_truth(package, "already"))
        PUT(x, "<p class=\"note grave\">The registry has this version already.</p>\n");
}

static void base(struct exchange *x, const struct json *package)
{
    PUT(x, "<h3 class=\"mono\">");
    show_cut(&x->out, json_text(package, SPAN("name")), NAME_SHOWN);
    PUT(x, " ");
    show_cut(&x->out, json_text(package, SPAN("new")), NAME_SHOWN);
    PUT(x, "</h3>\n");
    if (diff_says(package, "state", "first"))
        PUT(x,
            "<p class=\"note grave\">There is no earlier version to compare it with: the registry has none of this "
            "name, or does not show it to the sandbox that looked (the lane of <code>diff:</code> in "
            "countersign.yaml). All of it is new.</p>\n");
    else if (diff_says(package, "state", "unread"))
        unread(x, package);
    else
        compared(x, package);
}

/* --- what package.json changes ------------------------------------------------------------------ */

static bool is_install(const struct json *f)
{
    bool first = diff_says(f, "name", "preinstall") || diff_says(f, "name", "install");

    return diff_says(f, "in", "gypfile") ||
           (diff_says(f, "in", "scripts") && /* without these two npm builds what a binding.gyp says */
            (first || (diff_says(f, "name", "postinstall") && !diff_says(f, "how", "D"))));
}

/* What comes with it to whoever installs it. */
static bool is_dependency(const struct json *f)
{
    return !diff_says(f, "how", "D") &&
           (diff_says(f, "in", "dependencies") || diff_says(f, "in", "optionalDependencies") ||
            diff_says(f, "in", "peerDependencies") || diff_says(f, "in", "bundleDependencies") ||
            diff_says(f, "in", "bundledDependencies"));
}

static bool is_program(const struct json *f)
{
    return !diff_says(f, "how", "D") &&
           (diff_says(f, "in", "bin") || (diff_says(f, "in", "directories") && diff_says(f, "name", "bin")));
}

static const char *what(const struct json *f)
{
    return diff_says(f, "in", "access")                 ? "who may read it, as the request asks"
           : diff_says(f, "in", "request")              ? "the request says otherwise than the package"
           : diff_says(f, "in", "gypfile")              ? "whether it is built when it is installed"
           : diff_says(f, "in", "scripts")              ? (is_install(f) ? "runs when it is installed" : "script")
           : diff_says(f, "in", "bin")                  ? "command that it installs"
           : diff_says(f, "in", "directories")          ? (is_program(f) ? "folder of commands" : "folder")
           : diff_says(f, "in", "dependencies")         ? "dependency"
           : diff_says(f, "in", "optionalDependencies") ? "optional dependency"
           : diff_says(f, "in", "peerDependencies")     ? "peer dependency"
           : diff_says(f, "in", "devDependencies")      ? "dependency of its developers"
                                                        : "bundled dependency";
}

static void said(struct exchange *x, const struct json *f, const char *key)
{
    const struct json *v = json_get(f, span_str(key));

    if (!v) {
        PUT(x, "<span class=\"count\">nothing</span>");
        return;
    }
    PUT(x, "<q class=\"said mono\">");
    show_cut(&x->out, json_text(f, span_str(key)), SAID_SHOWN);
    PUT(x, "</q>");
}

static void fact(struct exchange *x, const struct json *f)
{
    bool grave = is_install(f) || is_dependency(f) || is_program(f) || diff_says(f, "in", "request");

    PUT(x, "<li><b class=\"mono\">");
    show_cut(&x->out, json_text(f, SPAN("name")), NAME_SHOWN);
    PUT(x, "</b>");
    diff_tag(x, diff_says(f, "how", "A") ? "new" : diff_says(f, "how", "D") ? "removed" : "changed", false);
    diff_tag(x, what(f), grave);
    PUT(x, " ");
    if (!diff_says(f, "how", "A")) {
        said(x, f, "old");
        PUT(x, " &#8594; ");
    }
    said(x, f, "new");
    if (diff_truth(f, "cut"))
        PUT(x, " <span class=\"count\">and more, which the lines of package.json below have</span>");
    PUT(x, "</li>\n");
}

static void facts(struct exchange *x, const struct json *list, uint64_t total)
{
    if (!list)
        return; /* which is said above, as what is missing */
    if (total == 0) {
        PUT(x, "<p class=\"note\">Its package.json changes no script, no dependency and no command.</p>\n");
        return;
    }
    PUT(x, "<ul class=\"commits\">\n");
    for (const struct json *f = list->child; f; f = f->next)
        fact(x, f);
    PUT(x, "</ul>\n");
    if (total > list->count) {
        PUT(x, "<p class=\"note\">And ");
        show_count(&x->out, total - list->count, "more change");
        PUT(x, " of its package.json that are not listed.</p>\n");
    }
}

/* A file that npm itself reads where it installs: of the package, and of those that it brings along. */
static bool is_read(const struct json *f)
{
    struct span path = json_text(f, SPAN("path"));
    char name[64];
    size_t at = path.n;

    while (at > 0 && path.p[at - 1] != '/')
        at--;
    (void)snprintf(name, sizeof(name), "%.*s", (int)(path.n - at), (const char *)path.p + at);
    const char *dot = strrchr(name, '.');
    return !diff_says(f, "how", "D") &&
           (strcasecmp(name, "npm-shrinkwrap.json") == 0 || (dot && strcasecmp(dot, ".gyp") == 0) ||
            (at > 0 && strcasecmp(name, "package.json") == 0 && span_find(path, SPAN("node_modules/")) < path.n));
}

void page_diff_package(struct exchange *x, const struct json *package, const char *why)
{
    const struct json *list = json_get(package, SPAN("facts"));
    struct put put = {.package = true};
    struct sums s = {.files = 0};
    uint64_t scripts = 0, dependencies = 0, programs = 0, others = 0, reads = 0;

    diff_sum(package, &s);
    for (const struct json *f = list ? list->child : NULL; f; f = f->next) {
        scripts += is_install(f);
        dependencies += is_dependency(f);
        programs += is_program(f);
        others += diff_says(f, "in", "request");
    }
    const struct json *files = json_get(package, SPAN("files"));
    for (const struct json *f = files ? files->child : NULL; f; f = f->next)
        reads += is_read(f);
    const struct found found[] = {
        {others, "contradicting claim"},     {scripts, "install script"},       {reads, "npm build or lock file"},
        {dependencies, "dependency change"}, {programs, "command it installs"}, {s.links, "link"},
        {s.binaries, "binary file"},         {s.large, "very large file"},      {s.dense, "minified file"}};
    diff_summary(x, &s, why);
    diff_look_first(x, found, sizeof(found) / sizeof(found[0]));
    base(x, package);
    facts(x, list, diff_number(package, "facts_total"));
    diff_files(x, package, &put);
}
