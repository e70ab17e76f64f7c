/* Packages in held requests, as npm publishes them: what a viewer listed of one, and what in it is worth a second
 * look. What a registry shows of a package comes from the request, what is installed from the package: so where the
 * two differ is said, too. */
#include "web-approval/pictures/pictures.h"
#include "web-approval/viewer/packed.h"

enum { COMMAND_KEPT = 400 };

/* --- names -------------------------------------------------------------------- */

/* Below the first folder, which installers leave out. */
static struct span below_top(struct span name)
{
    struct span first, rest;

    return span_cut(name, '/', &first, &rest) ? rest : name;
}

static struct span last_part(struct span name)
{
    size_t at = name.n;

    while (at > 0 && name.p[at - 1] != '/')
        at--;
    return span_from(name, at);
}

static bool ends(struct span s, const char *end)
{
    struct span e = span_str(end);

    return s.n > e.n && span_ieq(span_from(s, s.n - e.n), e);
}

/* ".env", ".env.production"; not ".env.example". */
static bool is_env(struct span last)
{
    return span_ieq(span_first(last, 4), SPAN(".env")) && (last.n == 4 || last.p[4] == '.') &&
           !ends(last, ".example") && !ends(last, ".sample") && !ends(last, ".template");
}

static bool holds_secrets(struct span name)
{
    static const char *const is[] = {".npmrc",    ".netrc",     ".pypirc",          ".git-credentials",
                                     "id_rsa",    "id_ed25519", "id_ecdsa",         "credentials.json",
                                     ".htpasswd", ".dockercfg", "terraform.tfstate"};
    static const char *const last[] = {".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx"};
    static const char *const folder[] = {".git/", ".ssh/", ".aws/", ".gnupg/", ".docker/", ".kube/"};
    struct span rest = below_top(name), file = last_part(name);

    for (size_t i = 0; i < sizeof(is) / sizeof(is[0]); i++)
        if (span_ieq(file, span_str(is[i])))
            return true;
    for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
        if (ends(file, last[i]))
            return true;
    for (size_t i = 0; i < sizeof(folder) / sizeof(folder[0]); i++)
        for (struct span s = rest; s.n > 0; s = below_top(s)) {
            if (span_ieq(span_first(s, strlen(folder[i])), span_str(folder[i])))
                return true;
            if (span_index(s, '/') == s.n)
                break;
        }
    return is_env(file);
}

const char *package_mark(struct span name)
{
    struct span rest = below_top(name);

    if (span_eq(rest, SPAN("package.json")))
        return "what it says of itself";
    if (span_eq(rest, SPAN("binding.gyp")))
        return "built and run when it is installed";
    return holds_secrets(name) ? "often holds secrets" : NULL;
}

/* --- what it says and what the request says ------------------------------------ */

static bool same(const struct json *a, const struct json *b)
{
    if (a == NULL || b == NULL || a->type != b->type || a->count != b->count || a->truth != b->truth ||
        !span_eq(a->text, b->text))
        return false;
    const struct json *other = b->child;
    for (const struct json *c = a->child; c; c = c->next) {
        if (!same(c, a->type == JSON_OBJECT ? json_get(b, c->key) : other))
            return false;
        other = other ? other->next : NULL;
    }
    return true;
}

/* One is as good as none where nothing is in it. */
static bool differs(const struct json *a, const struct json *b)
{
    bool none = (a == NULL || (a->child == NULL && a->text.n == 0)),
         nor = (b == NULL || (b->child == NULL && b->text.n == 0));

    return none || nor ? none != nor : !same(a, b);
}

/* What runs at an installation is of the package: what is shown elsewhere is of the request. */
static void compare_scripts(struct view *v, const struct json *in, const struct json *said)
{
    static const char *const at[] = {"preinstall", "install", "postinstall"};
    const struct json *mine = json_get(in, SPAN("scripts")), *theirs = json_get(said, SPAN("scripts"));

    for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        struct span name = span_str(at[i]), command = json_text(mine, name), other = json_text(theirs, name);
        /* npm adds what a binding.gyp means. */
        bool added = command.n == 0 && i == 1 && span_eq(other, SPAN("node-gyp rebuild"));
        if (command.n > 0)
            reading_flag(&v->r, "Whoever installs this package runs", name, span_first(command, COMMAND_KEPT));
        if (said && !span_eq(command, other) && !added)
            reading_flag(&v->r, "The package itself says otherwise than the request that publishes it", name,
                         command.n ? span_first(command, COMMAND_KEPT) : SPAN("nothing"));
    }
}

static void compare(struct view *v, const struct json *in, const struct json *request)
{
    static const char otherwise[] = "The package itself says otherwise than the request that publishes it";
    const struct json *versions = json_get(request, SPAN("versions"));
    struct span name = json_text(in, SPAN("name")), version = json_text(in, SPAN("version"));
    const struct json *said = versions ? json_get(versions, version) : NULL;

    reading_look(&v->r, SPAN("package.json/name"), name);
    reading_look(&v->r, SPAN("package.json/version"), version);
    compare_scripts(v, in, said);
    if (versions == NULL)
        return;
    if (!span_eq(name, json_text(request, SPAN("name"))))
        reading_flag(&v->r, otherwise, SPAN("name"), name.n ? name : SPAN("nothing"));
    if (said == NULL) {
        reading_flag(&v->r, otherwise, SPAN("version"), version.n ? version : SPAN("nothing"));
        return;
    }
    if (differs(json_get(in, SPAN("dependencies")), json_get(said, SPAN("dependencies"))) &&
        json_get(in, SPAN("optionalDependencies")) == NULL) /* those npm moves */
        reading_flag(&v->r, otherwise, SPAN("dependencies"), SPAN_NONE);
}

static void manifest(struct exchange *x, struct view *v, const struct packed *p)
{
    enum json_fault why;
    const struct json *in = p->manifest.n ? json_parse_or(p->manifest, &x->arena, &why) : NULL;
    const struct json *request = json_parse_twice(v->r.text, &x->arena, &why);

    if (p->manifests == 0)
        reading_flag(&v->r, "The package has no package.json", SPAN_NONE, SPAN_NONE);
    else if (in == NULL || in->type != JSON_OBJECT)
        reading_block(&v->r, "The package's package.json is not JSON that is read here", SPAN_NONE, SPAN_NONE);
    else
        compare(v, in, request);
    if (p->manifests > 1)
        reading_flag(&v->r, "The package has more than one package.json: programs differ in which counts", SPAN_NONE,
                     SPAN_NONE);
}

/* --- its files ------------------------------------------------------------------ */

static uint32_t hash(struct span s)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ s.p[i]) * 16777619u;
    return h;
}

static void file(struct view *v, const struct packed_file *f)
{
    struct span rest = below_top(f->name);

    reading_look(&v->r, SPAN("package"), f->name);
    if (span_eq(rest, SPAN("binding.gyp")))
        reading_flag(&v->r, "Whoever installs this package builds and runs code of it", f->name, SPAN_NONE);
    if (holds_secrets(f->name) && f->type != PACKED_FOLDER)
        reading_flag(&v->r, "The package has a file that often holds secrets", f->name, SPAN_NONE);
    if (f->type == PACKED_LINK || f->type == PACKED_HARD_LINK)
        reading_flag(&v->r, "The package has a link: programs differ in what they make of it", f->name, f->target);
    if (f->type == PACKED_OTHER)
        reading_flag(&v->r, "The package has what is neither file, folder nor link", f->name, SPAN_NONE);
}

static bool files(struct exchange *x, struct view *v, struct packed *p, uint32_t n)
{
    uint32_t *seen = arena_alloc(&x->arena, n * sizeof(*seen)), k = 0;
    struct packed_file f;
    bool twice = false, said = false;
    int got;

    if (seen == NULL)
        return false;
    while ((got = packed_next(p, &f)) == 1 && k < n) {
        file(v, &f);
        seen[k] = hash(f.name);
        for (uint32_t i = 0; i < k && !twice; i++)
            twice = seen[i] == seen[k];
        k++;
        if (twice && !said) /* what comes behind it is looked at all the same */
            reading_flag(&v->r, "Two files of the package have one name: programs differ in which they keep", f.name,
                         SPAN_NONE);
        said |= twice;
    }
    return got == 0;
}

void packages_flag(struct exchange *x, struct view *v, size_t i)
{
    static const char *const why[VIEW_ENDS] = {
        [VIEW_FAILED] = "A package that cannot be listed: what opens it ended without a word",
        [VIEW_LARGE] = "A package with more in it than is listed here",
        [VIEW_DAMAGED] = "A package that is damaged: programs differ in what they unpack of it",
        [VIEW_BUSY] = "A package that is not listed now, for too much is being opened: load this page again",
    };
    const struct viewed *s = &v->seen[i];
    struct packed p;

    if (s->end == VIEW_KIND) /* gzip of something else, as is said of the value */
        return;
    if (s->end != VIEW_SHOWN || packed_open(v->list[i], &p) != 0) {
        reading_block(&v->r, why[s->end == VIEW_SHOWN ? VIEW_FAILED : s->end], v->r.picture[i].name, SPAN_NONE);
        return;
    }
    manifest(x, v, &p);
    if (!files(x, v, &p, s->width))
        reading_block(&v->r, why[VIEW_FAILED], v->r.picture[i].name, SPAN_NONE);
    if (s->behind)
        reading_flag(&v->r, "Behind the package more bytes follow, which are not listed", v->r.picture[i].name,
                     arena_printf(&x->arena, "%llu", (unsigned long long)s->behind));
}
