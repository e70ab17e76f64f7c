/* An image on its ticket's page: with which it was compared, what it says of itself otherwise than that one, and its
 * layers, or the images of a list. */
#include "web-approval/diffs/page_diff.h"

enum { WORD_SHOWN = 1500, SAID_SHOWN = 600 };

static void word(struct exchange *x, const struct json *of, const char *key)
{
    PUT(x, "<span class=\"mono\">");
    show_cut(&x->out, json_text(of, span_str(key)), WORD_SHOWN);
    PUT(x, "</span>");
}

/* Long ones are opened by who wants to read them: all of each is here. */
static void said_text(struct exchange *x, struct span text)
{
    bool folds = text.n > SAID_SHOWN;

    if (folds) {
        PUT(x, "<details><summary>");
        show_size(&x->out, text.n);
        PUT(x, "</summary>");
    }
    PUT(x, "<q class=\"said mono\">");
    show_text(&x->out, text);
    PUT(x, "</q>");
    if (folds)
        PUT(x, "</details>");
}

/* --- with what --------------------------------------------------------------------------- */

static void base(struct exchange *x, const struct json *image)
{
    bool list = diff_says(image, "kind", "list");

    PUT(x, "<h3 class=\"mono\">");
    show_cut(&x->out, json_text(image, SPAN("name")), WORD_SHOWN);
    show_own(&x->out, diff_says(image, "state", "unnamed") ? "@" : ":");
    show_cut(&x->out, json_text(image, SPAN("reference")), WORD_SHOWN);
    PUT(x, "</h3>\n<p class=\"meta\"><span>");
    show_own(&x->out, list ? "a list of images, " : "an image, ");
    word(x, image, "new");
    if (diff_says(image, "state", "compared")) {
        PUT(x, ", compared with ");
        word(x, image, "old");
        PUT(x, ", which has this name now");
    }
    PUT(x, "</span></p>\n");
    if (diff_says(image, "state", "first"))
        PUT(x, "<p class=\"note grave\">Nothing has this name now, or the registry does not show it to the lane of "
               "diffs. All of it is new.</p>\n");
    else if (diff_says(image, "state", "unread"))
        PUT(x, "<p class=\"note grave\">What has this name now is nothing that can be read here, so there is nothing "
               "to compare with. All of it is shown as new.</p>\n");
    else if (diff_says(image, "state", "unnamed"))
        PUT(x,
            "<p class=\"note\">It is put there by its digest, without a name: there is nothing to compare it with. "
            "All of it is shown as new.</p>\n");
    else if (!diff_says(image, "was", list ? "list" : "image"))
        (void)dynbuf_addf(&x->out, "<p class=\"note grave\">What has this name now is %s.</p>\n",
                          list ? "one image, and no list" : "a list of images");
}

/* --- what it says of itself -------------------------------------------------------------- */

static bool is_any(struct span name, const char *const *list)
{
    for (size_t i = 0; list[i]; i++)
        if (span_ieq(name, span_str(list[i])))
            return true;
    return false;
}

/* What is run, as whom, and what reaches into it. Programs read these names in either case. */
static bool is_grave(const struct json *f)
{
    static const char *const run[] = {"Entrypoint", "Cmd",        "User",       "Shell", "Healthcheck",
                                      "OnBuild",    "StopSignal", "WorkingDir", NULL};
    static const char *const variables[] = {"PATH",     "ENV",      "BASH_ENV", "PYTHONPATH",      "PYTHONSTARTUP",
                                            "PERL5OPT", "PERL5LIB", "RUBYOPT",  "GIT_SSH_COMMAND", NULL};
    static const char *const image[] = {"os", "architecture", "variant", "os.version", NULL};
    static const char *const manifest[] = {"subject", "artifactType", "configuration", NULL};
    struct span name = json_text(f, SPAN("name"));

    if (diff_says(f, "in", "environment"))
        return span_starts(name, SPAN("LD_")) || span_ends(name, SPAN("_OPTIONS")) ||
               span_ends(name, SPAN("PROXY")) || span_ends(name, SPAN("proxy")) || is_any(name, variables);
    return (diff_says(f, "in", "run") && is_any(name, run)) || (diff_says(f, "in", "image") && is_any(name, image)) ||
           (diff_says(f, "in", "manifest") && is_any(name, manifest)) || diff_says(f, "in", "configuration");
}

/* A signature, a list of what is in it, or the like: it counts for the other one at once. */
static bool is_attached(const struct json *f)
{
    return diff_says(f, "in", "manifest") && span_ieq(json_text(f, SPAN("name")), SPAN("subject"));
}

static const char *what(const struct json *f)
{
    return diff_says(f, "in", "run")             ? "how it is run"
           : diff_says(f, "in", "environment")   ? "environment"
           : diff_says(f, "in", "label")         ? "label"
           : diff_says(f, "in", "port")          ? "port"
           : diff_says(f, "in", "volume")        ? "volume"
           : diff_says(f, "in", "image")         ? "of the image"
           : diff_says(f, "in", "annotation")    ? "annotation"
           : diff_says(f, "in", "configuration") ? "of its configuration"
           : diff_says(f, "in", "content")       ? "what it is"
           : is_attached(f)                      ? "attached to another one"
                                                 : "of the manifest";
}

static void said(struct exchange *x, const struct json *f, const char *key)
{
    if (!json_get(f, span_str(key))) {
        PUT(x, "<span class=\"count\">nothing</span>");
        return;
    }
    said_text(x, json_text(f, span_str(key)));
}

static void fact(struct exchange *x, const struct json *f)
{
    PUT(x, "<li><b class=\"mono\">");
    show_cut(&x->out, json_text(f, SPAN("name")), WORD_SHOWN);
    PUT(x, "</b>");
    diff_tag(x, diff_says(f, "how", "A") ? "new" : diff_says(f, "how", "D") ? "removed" : "changed", false);
    diff_tag(x, what(f), is_grave(f));
    PUT(x, " ");
    if (!diff_says(f, "how", "A")) {
        said(x, f, "old");
        PUT(x, " &#8594; ");
    }
    said(x, f, "new");
    if (diff_truth(f, "old_cut"))
        PUT(x, " <span class=\"count\">what it was is longer than is shown</span>");
    PUT(x, "</li>\n");
}

/* First those that decide what runs. */
static void facts(struct exchange *x, const struct json *list)
{
    if (!list || list->count == 0) {
        PUT(x, "<p class=\"note\">But for its parts it says nothing else than the one before.</p>\n");
        return;
    }
    PUT(x, "<ul class=\"commits\">\n");
    for (int grave = 1; grave >= 0; grave--)
        for (const struct json *f = list->child; f; f = f->next)
            if (is_grave(f) == (grave == 1))
                fact(x, f);
    PUT(x, "</ul>\n");
}

/* --- its parts --------------------------------------------------------------------------- */

static void opened(struct exchange *x, const struct json *p)
{
    if (!json_get(p, SPAN("opened")))
        return;
    if (!diff_says(p, "opened", "yes")) {
        PUT(x, " <b>not looked into</b>");
        return;
    }
    if (json_get(p, SPAN("os"))) {
        PUT(x, " for ");
        word(x, p, "os");
        PUT(x, " on ");
        word(x, p, "architecture");
    }
    PUT(x, " <span class=\"count\">");
    show_count(&x->out, diff_number(p, "layers"), "layer");
    PUT(x, " of ");
    show_size(&x->out, diff_number(p, "bytes"));
    PUT(x, "</span>");
    if (json_get(p, SPAN("run"))) {
        PUT(x, ", run as ");
        said_text(x, json_text(p, SPAN("run")));
    }
}

static void part(struct exchange *x, const struct json *p)
{
    bool moved = diff_says(p, "how", "moved");

    PUT(x, "<li>");
    word(x, p, "digest");
    diff_tag(x,
             diff_says(p, "how", "A")   ? "new"
             : diff_says(p, "how", "D") ? "removed"
             : moved                    ? "at another place than before"
                                        : "as it is",
             moved);
    if (diff_truth(p, "elsewhere"))
        diff_tag(x, "fetched from another host", true);
    PUT(x, " <span class=\"count\">");
    show_size(&x->out, diff_number(p, "size"));
    PUT(x, ", ");
    word(x, p, "type");
    PUT(x, "</span>");
    opened(x, p);
    if (json_get(p, SPAN("says"))) {
        PUT(x, " listed as ");
        said_text(x, json_text(p, SPAN("says")));
    }
    if (json_get(p, SPAN("unpacked"))) {
        PUT(x, " unpacked as ");
        word(x, p, "unpacked");
    }
    if (json_get(p, SPAN("by"))) {
        PUT(x, " said to be made by ");
        said_text(x, json_text(p, SPAN("by")));
    }
    PUT(x, "</li>\n");
}

static void parts(struct exchange *x, const struct json *image)
{
    const struct json *list = json_get(image, SPAN("parts"));
    bool images = diff_says(image, "kind", "list");

    PUT(x, "<h3>");
    show_own(&x->out, images ? "Images" : "Layers");
    PUT(x, "</h3>\n<ul class=\"commits\">\n");
    for (const struct json *p = list ? list->child : NULL; p; p = p->next)
        part(x, p);
    PUT(x, "</ul>\n<p class=\"hint\">");
    show_own(&x->out, "The files in layers are not opened here; how they were made is what the image itself says.");
    PUT(x, "</p>\n");
}

void page_diff_image(struct exchange *x, const struct json *image, const char *why)
{
    const struct json *list = json_get(image, SPAN("parts")), *said_of = json_get(image, SPAN("facts"));
    uint64_t more = 0, less = 0, moved = 0, elsewhere = 0, grave = 0, bytes = 0;
    bool images = diff_says(image, "kind", "list");

    for (const struct json *p = list ? list->child : NULL; p; p = p->next) {
        more += diff_says(p, "how", "A");
        less += diff_says(p, "how", "D");
        moved += diff_says(p, "how", "moved");
        elsewhere += diff_truth(p, "elsewhere");
        bytes += diff_says(p, "how", "A") ? diff_number(p, "size") : 0;
    }
    for (const struct json *f = said_of ? said_of->child : NULL; f; f = f->next)
        grave += is_grave(f);
    PUT(x, "<p class=\"meta sum\"><span>");
    show_count(&x->out, more, images ? "new image" : "new layer");
    if (!images) {
        PUT(x, " of ");
        show_size(&x->out, bytes);
    }
    (void)dynbuf_addf(&x->out, "</span> <span>%llu removed</span></p>\n", (unsigned long long)less);
    diff_missing(x, why);
    const struct found found[] = {
        {grave, "start-up change"}, {moved, "part in another order"}, {elsewhere, "part from another host"}};
    diff_look_first(x, found, sizeof(found) / sizeof(found[0]));
    base(x, image);
    facts(x, said_of);
    parts(x, image);
}
