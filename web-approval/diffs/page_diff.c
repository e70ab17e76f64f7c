/* A push on its ticket's page, like a pull request: commits, files, hunks; and what of it is not there, and why. The
 * files are the same of a package (page_diff_package.c). */
#include "web-approval/diffs/page_diff.h"
#include "web-approval/pictures/pictures.h"
#include "web-approval/route.h"

enum { OPEN_FILES = 12, OPEN_BYTES = 48 * 1024, ID_SHOWN = 10, WORDS_SHOWN = 200, PATH_SHOWN = 400 };

static const char *const state_words[] = {[DIFF_NONE] = "none",
                                          [DIFF_WAITS] = "waits",
                                          [DIFF_RUNS] = "being made",
                                          [DIFF_MADE] = "made",
                                          [DIFF_FAILED] = "failed"};

uint64_t diff_number(const struct json *j, const char *key)
{
    uint64_t v = 0;

    return json_u64(j, span_str(key), &v) == 0 ? v : 0;
}

bool diff_truth(const struct json *j, const char *key)
{
    const struct json *v = json_get(j, span_str(key));

    return v && v->type == JSON_BOOL && v->truth;
}

bool diff_says(const struct json *j, const char *key, const char *word)
{
    return span_eq(json_text(j, span_str(key)), span_str(word));
}

/* --- what deserves a second look ---------------------------------------------------------- */

static struct span last_step(struct span path)
{
    size_t at = path.n;

    while (at > 0 && path.p[at - 1] != '/')
        at--;
    return span_from(path, at);
}

/* What runs by itself on the other side, once it is there. */
static bool is_workflow(struct span path)
{
    static const char *const begins[] = {".github/workflows/",  ".github/actions/", ".gitea/workflows/",
                                         ".forgejo/workflows/", ".circleci/",       ".buildkite/"};
    static const char *const is[] = {".gitlab-ci.yml", "Jenkinsfile", ".travis.yml", "azure-pipelines.yml",
                                     "bitbucket-pipelines.yml"};

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
        if (span_ieq(span_first(path, strlen(begins[i])), span_str(begins[i])))
            return true;
    for (size_t i = 0; i < sizeof(is) / sizeof(is[0]); i++)
        if (span_ieq(path, span_str(is[i])))
            return true;
    return false;
}

static bool is_lock(struct span path)
{
    static const char *const is[] = {"package-lock.json", "npm-shrinkwrap.json", "yarn.lock",  "pnpm-lock.yaml",
                                     "bun.lock",          "bun.lockb",           "Cargo.lock", "poetry.lock",
                                     "uv.lock",           "Pipfile.lock",        "go.sum",     "composer.lock",
                                     "Gemfile.lock",      "gradle.lockfile",     "flake.lock", "packages.lock.json"};

    for (size_t i = 0; i < sizeof(is) / sizeof(is[0]); i++)
        if (span_ieq(last_step(path), span_str(is[i])))
            return true;
    return false;
}

static bool becomes_program(const struct json *f)
{
    return diff_says(f, "new_mode", "100755") && !diff_says(f, "old_mode", "100755");
}

static bool is_link(const struct json *f)
{
    return diff_says(f, "new_mode", "120000") || diff_says(f, "old_mode", "120000");
}

static bool is_module(const struct json *f)
{
    return diff_says(f, "new_mode", "160000") || diff_says(f, "old_mode", "160000");
}

void diff_tag(struct exchange *x, const char *words, bool grave)
{
    (void)dynbuf_addf(&x->out, " <span class=\"tag%s\">%s</span>", grave ? " grave" : "", words);
}

static void module_tag(struct exchange *x, const struct json *f)
{
    struct span was = json_text(f, SPAN("old_module")), is = json_text(f, SPAN("new_module"));

    diff_tag(x, "submodule", true);
    PUT(x, " <span class=\"mono\">");
    show_cut(&x->out, was.n ? span_first(was, ID_SHOWN) : SPAN("none"), ID_SHOWN);
    PUT(x, " &#8594; ");
    show_cut(&x->out, is.n ? span_first(is, ID_SHOWN) : SPAN("none"), ID_SHOWN);
    PUT(x, "</span>");
}

static void mode_tag(struct exchange *x, const struct json *f)
{
    struct span was = json_text(f, SPAN("old_mode")), is = json_text(f, SPAN("new_mode"));

    if (becomes_program(f))
        diff_tag(x, diff_says(f, "how", "A") ? "executable" : "becomes executable", true);
    if (is_link(f))
        diff_tag(x, diff_says(f, "new_mode", "120000") ? "symbolic link" : "was a symbolic link", true);
    if (!span_eq(was, is) && !diff_says(f, "old_mode", "000000") && !diff_says(f, "new_mode", "000000")) {
        PUT(x, " <span class=\"mono\">");
        show_text(&x->out, was);
        PUT(x, " &#8594; ");
        show_text(&x->out, is);
        PUT(x, "</span>");
    }
}

/* What runs of a package, or should not be in one. */
static void package_tags(struct exchange *x, const struct json *f)
{
    struct span path = json_text(f, SPAN("path"));
    const char *mark = package_mark(arena_printf(&x->arena, "package/%.*s", SPAN_FMT(path)));

    if (mark)
        diff_tag(x, mark, !span_eq(path, SPAN("package.json")));
    if (diff_says(f, "kind", "large"))
        diff_tag(x, "very large", true);
}

static void tags(struct exchange *x, const struct json *f, bool package)
{
    struct span path = json_text(f, SPAN("path")), from = json_text(f, SPAN("from"));

    diff_tag(x,
             diff_says(f, "how", "A")   ? "new"
             : diff_says(f, "how", "D") ? "deleted"
             : diff_says(f, "how", "R") ? "renamed"
             : diff_says(f, "how", "C") ? "copied"
             : diff_says(f, "how", "T") ? "another kind"
                                        : "changed",
             false);
    if (package)
        package_tags(x, f);
    else if (is_workflow(path) || (from.n && is_workflow(from)))
        diff_tag(x, "runs in CI", true);
    if (is_lock(path))
        diff_tag(x, "lock file", false);
    if (is_module(f))
        module_tag(x, f);
    mode_tag(x, f);
    if (json_get(f, SPAN("commit"))) {
        diff_tag(x, "only in a commit in between", true);
        PUT(x, " <span class=\"mono\">");
        show_text(&x->out, span_first(json_text(f, SPAN("commit")), ID_SHOWN));
        PUT(x, "</span>");
    }
    if (diff_truth(f, "runs"))
        diff_tag(x, diff_says(f, "kind", "same") ? "not text, and can run now" : "not text, and can run", true);
    if (diff_truth(f, "dense"))
        diff_tag(x, "minified, or very long lines", package);
    if (diff_truth(f, "odd_name"))
        diff_tag(x, "its name is no UTF-8", true);
    if (diff_truth(f, "odd_text"))
        diff_tag(x, "text is no UTF-8", false);
}

/* --- a file -------------------------------------------------------------------------------- */

static void sizes(struct exchange *x, const struct json *f)
{
    bool was = json_get(f, SPAN("old_size")) != NULL, is = json_get(f, SPAN("new_size")) != NULL;

    if (was)
        show_size(&x->out, diff_number(f, "old_size"));
    if (was && is)
        PUT(x, " &#8594; ");
    if (is)
        show_size(&x->out, diff_number(f, "new_size"));
}

static void file_name(struct exchange *x, const struct json *f, size_t nth)
{
    struct span from = json_text(f, SPAN("from"));

    (void)dynbuf_addf(&x->out, "<b class=\"mono path\" id=\"file-%zu\">", nth);
    if (from.n) {
        show_cut(&x->out, from, PATH_SHOWN);
        PUT(x, " &#8594; ");
    }
    show_cut(&x->out, json_text(f, SPAN("path")), PATH_SHOWN);
    PUT(x, "</b>");
}

void diff_counts(struct exchange *x, uint64_t more, uint64_t less)
{
    (void)dynbuf_addf(&x->out,
                      " <span class=\"plus\"><span aria-hidden=\"true\">+%llu</span><span class=\"heard\">%llu lines "
                      "more</span></span> <span class=\"minus\"><span aria-hidden=\"true\">&#8722;%llu</span><span "
                      "class=\"heard\">%llu lines fewer</span></span>",
                      (unsigned long long)more, (unsigned long long)more, (unsigned long long)less,
                      (unsigned long long)less);
}

/* What a line is says its first character, colour only once more. */
static void patch(struct exchange *x, const struct json *f, size_t nth)
{
    struct span rest = json_text(f, SPAN("patch")), line;
    bool more = rest.n > 0;

    (void)dynbuf_addf(&x->out, "<pre class=\"patch\" tabindex=\"0\" role=\"region\" aria-labelledby=\"file-%zu\">",
                      nth);
    while (more) {
        more = span_cut(rest, '\n', &line, &rest) && rest.n > 0;
        const char *is = line.n == 0         ? "same"
                         : line.p[0] == '+'  ? "add"
                         : line.p[0] == '-'  ? "gone"
                         : line.p[0] == '@'  ? "hunk"
                         : line.p[0] == '\\' ? "hunk"
                                             : "same";
        (void)dynbuf_addf(&x->out, "<span class=\"%s\">", is);
        show_body(&x->out, line);
        PUT(x, "\n</span>");
    }
    PUT(x, "</pre>\n");
}

static void file(struct exchange *x, const struct json *f, size_t nth, bool open, bool package)
{
    bool text = diff_says(f, "kind", "text"), cut = diff_truth(f, "cut");

    (void)dynbuf_addf(&x->out, text ? "<details class=\"file\"%s>\n<summary>" : "<div class=\"file flat\">\n<p>",
                      open ? " open" : "");
    file_name(x, f, nth);
    if (text || diff_says(f, "kind", "large"))
        diff_counts(x, diff_number(f, "added"), diff_number(f, "removed"));
    tags(x, f, package);
    if (diff_says(f, "kind", "binary")) {
        diff_tag(x, "binary", false);
        PUT(x, " <span class=\"count\">");
        sizes(x, f);
        PUT(x, "</span>");
    }
    (void)dynbuf_add(&x->out, text ? SPAN("</summary>\n") : SPAN("</p>\n"));
    if (text && diff_number(f, "added") + diff_number(f, "removed") > 0)
        patch(x, f, nth);
    if (cut)
        PUT(x, "<p class=\"note\">It goes on: the rest is too long to be shown.</p>\n");
    if (diff_says(f, "kind", "large") || diff_says(f, "kind", "unknown")) {
        show_own(&x->out, diff_says(f, "kind", "large")
                              ? "<p class=\"note\">Not shown, it is too large: "
                              : "<p class=\"note\">Not shown, git did not say what changes: ");
        sizes(x, f);
        PUT(x, ".</p>\n");
    }
    (void)dynbuf_add(&x->out, text ? SPAN("</details>\n") : SPAN("</div>\n"));
}

/* --- a ref ----------------------------------------------------------------------------------- */

void diff_sum(const struct json *ref, struct sums *s)
{
    const struct json *list = json_get(ref, SPAN("files"));

    s->files += diff_number(ref, "files_total");
    for (const struct json *f = list ? list->child : NULL; f; f = f->next) {
        s->more += diff_number(f, "added");
        s->less += diff_number(f, "removed");
        s->workflows += is_workflow(json_text(f, SPAN("path"))) || is_workflow(json_text(f, SPAN("from")));
        s->programs += becomes_program(f);
        s->links += is_link(f);
        s->modules += is_module(f);
        s->binaries += diff_says(f, "kind", "binary");
        s->dense += diff_truth(f, "dense");
        s->large += diff_says(f, "kind", "large");
    }
}

/* What a commit or a tag says beside its first line leaves too. */
static void raw(struct exchange *x, struct span text, const char *title)
{
    PUT(x, "<details class=\"raw\"><summary>");
    show_own(&x->out, title);
    PUT(x, "</summary><pre tabindex=\"0\">");
    show_body(&x->out, text);
    PUT(x, "</pre></details>");
}

static void commits(struct exchange *x, const struct json *ref)
{
    const struct json *list = json_get(ref, SPAN("commits"));
    uint64_t total = diff_number(ref, "commits_total");

    if (!list || list->count == 0)
        return;
    PUT(x, "<ol class=\"commits\">\n");
    for (const struct json *c = list->child; c; c = c->next) {
        PUT(x, "<li><span class=\"mono\">");
        show_text(&x->out, span_first(json_text(c, SPAN("id")), ID_SHOWN));
        PUT(x, "</span> <q class=\"said\">");
        show_cut(&x->out, json_text(c, SPAN("subject")), WORDS_SHOWN);
        PUT(x, "</q> <span class=\"count\">");
        show_cut(&x->out, json_text(c, SPAN("author")), 80);
        PUT(x, "</span>");
        raw(x, json_text(c, SPAN("text")), "The whole commit");
        PUT(x, "</li>\n");
    }
    PUT(x, "</ol>\n");
    if (total > list->count) {
        PUT(x, "<p class=\"meta\">and ");
        show_count(&x->out, total - list->count, "earlier commit");
        PUT(x, "</p>\n");
    }
}

static void base(struct exchange *x, const struct json *ref)
{
    PUT(x, "<p class=\"meta\"><span>compared with ");
    show_own(&x->out, diff_says(ref, "base", "old") ? "what the push says is there now"
                      : diff_says(ref, "base", "branch-off")
                          ? "where it leaves the default branch"
                          : "nothing, as it shares no history with the default branch");
    if (!diff_says(ref, "base", "nothing")) {
        PUT(x, ", <span class=\"mono\">");
        show_text(&x->out, span_first(json_text(ref, SPAN("base_id")), ID_SHOWN));
        PUT(x, "</span>");
    }
    PUT(x, "</span></p>\n");
}

void diff_files(struct exchange *x, const struct json *ref, struct put *p)
{
    const struct json *list = json_get(ref, SPAN("files"));
    uint64_t total = diff_number(ref, "files_total");

    for (const struct json *f = list ? list->child : NULL; f; f = f->next) {
        size_t n = json_text(f, SPAN("patch")).n;
        bool open = p->opened < OPEN_FILES && n <= OPEN_BYTES - p->bytes;
        p->opened += open;
        p->bytes += open ? n : 0;
        file(x, f, ++p->files, open, p->package);
    }
    if (list && (total > list->count || diff_truth(ref, "files_cut"))) {
        PUT(x, "<p class=\"note\">And ");
        show_count(&x->out, total - list->count, "file");
        show_own(&x->out, diff_truth(ref, "files_cut") ? " at least that are not listed.</p>\n"
                                                       : " that are not listed.</p>\n");
    }
    if (list && total == 0)
        PUT(x, "<p class=\"note\">No file changes.</p>\n");
}

static void one_ref(struct exchange *x, const struct json *ref, struct span name, struct put *p)
{
    uint64_t dropped = diff_number(ref, "dropped");

    PUT(x, "<h3 class=\"mono\">");
    show_cut(&x->out, name, PATH_SHOWN);
    PUT(x, "</h3>\n");
    if (!diff_says(ref, "state", "compared")) {
        PUT(x, "<p class=\"note\">");
        show_own(&x->out, diff_says(ref, "state", "deleted") ? "It is deleted: nothing comes in its place."
                          : diff_says(ref, "state", "no-commit")
                              ? "It leads to something that is no commit, which is not shown."
                          : diff_says(ref, "state", "not-there")
                              ? "What it is to lead to is neither in the push nor found on the other side."
                              : "What it leads to now is not there to be compared with.");
        PUT(x, "</p>\n");
        return;
    }
    base(x, ref);
    if (dropped > 0) {
        PUT(x, "<p class=\"note\"><b>");
        show_count(&x->out, dropped, "commit");
        show_own(&x->out, dropped == 1 ? " that is there now leaves it" : " that are there now leave it");
        PUT(x, "</b>: a force push.</p>\n");
    }
    if (json_get(ref, SPAN("tag")))
        raw(x, json_text(ref, SPAN("tag")), "The whole tag");
    commits(x, ref);
    diff_files(x, ref, p);
}

/* --- all of it ------------------------------------------------------------------------------- */

void diff_look_first(struct exchange *x, const struct found *found, size_t n)
{
    bool any = false;

    for (size_t i = 0; i < n; i++) {
        if (found[i].n == 0)
            continue;
        (void)dynbuf_add(&x->out, any ? SPAN(", ") : SPAN("<p class=\"note\">Look at these first: "));
        show_count(&x->out, found[i].n, found[i].noun);
        any = true;
    }
    if (any)
        PUT(x, ".</p>\n");
}

void diff_missing(struct exchange *x, const char *why)
{
    if (!why)
        return;
    PUT(x, "<p class=\"note grave\"><b>Not all of it is here</b>: ");
    show_own(&x->out, why);
    PUT(x, ".</p>\n");
}

void diff_summary(struct exchange *x, const struct sums *s, const char *why)
{
    PUT(x, "<p class=\"meta sum\"><span>");
    show_count(&x->out, s->files, "file");
    PUT(x, "</span> <span>");
    diff_counts(x, s->more, s->less);
    PUT(x, "</span></p>\n");
    diff_missing(x, why);
}

static void push_made(struct exchange *x, const struct json *list, const struct diff *one)
{
    struct sums s = {.files = 0};
    struct put put = {.files = 0};
    struct span names = dynbuf_span(&one->names), name;

    for (const struct json *r = list ? list->child : NULL; r; r = r->next)
        diff_sum(r, &s);
    const struct found found[] = {{s.workflows, "CI file"},
                                  {s.programs, "new program"},
                                  {s.links, "symbolic link"},
                                  {s.modules, "submodule"},
                                  {s.binaries, "binary file"}};
    diff_summary(x, &s, one->why);
    diff_look_first(x, found, sizeof(found) / sizeof(found[0]));
    for (const struct json *r = list ? list->child : NULL; r; r = r->next) {
        (void)span_cut(names, '\n', &name, &names);
        one_ref(x, r, name, &put);
    }
}

static void made(struct exchange *x, const struct diff *one)
{
    struct arena a;

    arena_init(&a, DIFFS_RESULT_ARENA);
    const struct json *all = json_parse(dynbuf_span(&one->json), &a);
    PUT(x, "<p class=\"meta\">Found out ");
    show_time(&x->out, one->wall_ms);
    PUT(x, "; the other side may have changed since.</p>\n");
    if (one->kind == DIFF_OF_PACKAGE)
        page_diff_package(x, json_get(all, SPAN("package")), one->why);
    else if (one->kind == DIFF_OF_IMAGE)
        page_diff_image(x, json_get(all, SPAN("image")), one->why);
    else
        push_made(x, json_get(all, SPAN("refs")), one);
    arena_free(&a);
}

static void none_yet(struct exchange *x, const struct ticket *t, const struct diff *one)
{
    struct desk *d = x->desk;

    PUT(x, "<p class=\"note\">");
    if (!d->diff_lane[0])
        PUT(x, "It is not found out: <code>diff:</code> of the configuration names no lane to find it out by.");
    else if (one && one->state == DIFF_FAILED) {
        PUT(x, "It could not be found out: ");
        show_own(&x->out, one->why);
        PUT(x, ".");
    } else if (!span_eq(t->state, SPAN("pending")))
        PUT(x, "It is not kept any more.");
    else if (!one)
        PUT(x, "It cannot be found out now: this sandbox has as many of them waiting for it as it may, or this is "
               "nothing that can be compared.");
    else
        PUT(x, "It is being found out, in a sandbox of its own.");
    PUT(x, "</p>\n");
    if (span_eq(t->state, SPAN("pending")) && d->diff_lane[0]) {
        PUT(x, "<p><a class=\"button\" href=\"/tickets/");
        show_text(&x->out, t->id);
        PUT(x, "\">Look again</a></p>\n");
    }
}

void page_diff(struct exchange *x, const struct view *v)
{
    const struct ticket *t = &v->t;
    const struct diff *one;

    if (!diffs_asked(t))
        return;
    diffs_want(x->desk, t);
    one = diffs_of(x->desk, t);
    PUT(x, "<section id=\"diff\" class=\"diff\" aria-labelledby=\"changes\" data-diff=\"");
    show_own(&x->out, one ? state_words[one->state] : "none");
    PUT(x, "\">\n<h2 id=\"changes\">");
    enum diff_kind kind = diffs_kind(t);
    show_own(&x->out, kind == DIFF_OF_PACKAGE ? "What the package changes"
                      : kind == DIFF_OF_IMAGE ? "What the image changes"
                                              : "What the push changes");
    if (t->diff == DIFF_REQUIRED)
        PUT(x, " <small>a yes waits for it</small>");
    PUT(x, "</h2>\n");
    if (one && one->state == DIFF_MADE)
        made(x, one);
    else
        none_yet(x, t, one);
    PUT(x, "</section>\n");
}

/* --- for programs ------------------------------------------------------------------------------ */

void diffs_json(struct jsonw *w, struct desk *d, const struct ticket *t)
{
    const struct diff *one = diffs_of(d, t);

    if (!diffs_asked(t))
        return;
    jsonw_kv_object(w, "diff");
    jsonw_kv(w, "wanted", t->diff == DIFF_REQUIRED ? SPAN("required") : SPAN("optional"));
    jsonw_kv(w, "state", span_str(state_words[one ? one->state : DIFF_NONE]));
    jsonw_kv_bool(w, "complete", one && one->state == DIFF_MADE && !one->why);
    if (one && one->why)
        jsonw_kv(w, "why", span_str(one->why));
    jsonw_end_object(w);
}

void api_ticket_diff(struct exchange *x)
{
    const struct diff *one;
    struct ticket t;

    if (api_ticket_find(x, &t) != 0)
        return;
    diffs_want(x->desk, &t);
    one = diffs_of(x->desk, &t);
    if (!one || one->state != DIFF_MADE) {
        reply_problem(x, one && one->state != DIFF_FAILED ? 409 : 404, "No diff", "%s",
                      one && one->state == DIFF_FAILED ? one->why
                      : one                            ? "it is still being found out; ask again in a moment"
                                                       : "none is made of this request");
        return;
    }
    reply_empty(x, 200);
    x->type = "application/json";
    (void)dynbuf_add(&x->out, dynbuf_span(&one->json));
}
