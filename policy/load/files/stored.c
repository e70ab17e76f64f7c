#include "policy/load/stored.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/msg.h"
#include "policy/policy.h"

#define FIRST_LINE "countersign-policy-version 1"
enum { NAME_MAX_BYTES = 4096, LABEL_MAX = 64, PATH_BYTES = 4096 + 2 * STORED_FILE_NAME };

static const char *const kinds[] = {
    [POLICY_REF_PACK] = "pack",      [POLICY_REF_CA] = "ca",         [POLICY_REF_INCLUDE] = "include",
    [POLICY_REF_ZONE] = "zone",      [POLICY_REF_SIGNED] = "signed", [POLICY_INPUT_FILE] = "policy",
    [POLICY_INPUT_FLOORS] = "floors"};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

const char *stored_kind(uint8_t kind)
{
    return kind < KINDS && kinds[kind] ? kinds[kind] : "?";
}

int stored_begin(struct stored *s, struct err *e)
{
    *s = (struct stored){.n = 0};
    arena_init(&s->a, STORED_BYTES_MAX);
    s->v = arena_alloc(&s->a, STORED_FILES_MAX * sizeof(*s->v));
    return s->v ? 0 : err_set(e, "no memory");
}

void stored_free(struct stored *s)
{
    arena_free(&s->a);
    *s = (struct stored){.n = 0};
}

static struct stored_file *same_span(const struct stored *s, struct span text)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].size == text.n && s->v[i].from == text.p)
            return &s->v[i];
    return NULL;
}

/* "03-policy.yaml": for people who look into the folder; the manifest says what it was. */
static void name_file(struct stored_file *f, size_t i)
{
    struct span base = f->name;
    for (size_t at; (at = span_index(base, '/')) < base.n;)
        base = span_from(base, at + 1);
    base = span_first(base, LABEL_MAX);
    int n = snprintf(f->file, sizeof(f->file), "%03zu-", i);
    for (size_t k = 0; k < base.n; k++) {
        uint8_t c = base.p[k];
        bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || memchr("._-", c, 3);
        f->file[n++] = plain ? (char)c : '_';
    }
    f->file[n] = '\0';
}

void stored_add(void *arg, enum policy_input kind, struct span name, struct span text)
{
    struct stored *s = arg;
    for (size_t i = 0; i < s->n && i < STORED_FILES_MAX; i++)
        if (s->v[i].kind == kind && span_eq(s->v[i].name, name))
            return;
    if (s->n >= STORED_FILES_MAX) {
        s->n = STORED_FILES_MAX + 1;
        return;
    }
    struct stored_file *f = &s->v[s->n], *same = same_span(s, text);
    *f = (struct stored_file){.kind = (uint8_t)kind, .name = arena_copy(&s->a, name), .size = text.n, .from = text.p};
    f->text = same ? same->text : arena_copy(&s->a, text);
    if ((name.n && f->name.p == NULL) || (text.n && f->text.p == NULL)) {
        s->n = STORED_FILES_MAX + 1;
        return;
    }
    name_file(f, s->n);
    if (same)
        memcpy(f->file, same->file, sizeof(f->file));
    s->n++;
}

int stored_finish(struct stored *s, struct err *e)
{
    if (s->n > STORED_FILES_MAX)
        return err_set(e, "more than %d files, or no memory", STORED_FILES_MAX);
    for (size_t i = 0; i < s->n; i++) {
        if (s->v[i].name.n == 0 || memchr(s->v[i].name.p, '\n', s->v[i].name.n) || s->v[i].name.n > NAME_MAX_BYTES)
            return err_set(e, "a file's name is empty, too long or has a line break");
        if (s->v[i].kind >= KINDS || kinds[s->v[i].kind] == NULL)
            return err_set(e, "no manifest can say what kind of text %u is", s->v[i].kind);
        digest_of(s->v[i].text, &s->v[i].sha256);
    }
    return 0;
}

void stored_manifest(const struct stored *s, struct dynbuf *out)
{
    char hex[STORED_HEX + 1];
    (void)dynbuf_addf(out, FIRST_LINE "\ndigest %s\nrules %llu\nstored %llu\nname %.*s\n", s->hex,
                      (unsigned long long)s->rules, (unsigned long long)s->stored_ms, SPAN_FMT(s->name));
    for (size_t i = 0; i < s->n; i++) {
        const struct stored_file *f = &s->v[i];
        hex_text(span_of(f->sha256.b, DIGEST_BYTES), hex);
        (void)dynbuf_addf(out, "%s %s %llu %s %.*s\n", stored_kind(f->kind), hex, (unsigned long long)f->size,
                          f->file, SPAN_FMT(f->name));
    }
    (void)dynbuf_add(out, SPAN("end\n")); /* a manifest that was cut is none */
}

/* --- reading --------------------------------------------------------------- */

static bool is_hex(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
            return false;
    return true;
}

int stored_find(const char *dir, struct span prefix, char hex[STORED_HEX + 1], struct err *e)
{
    const struct dirent *d;
    size_t found = 0;
    if (prefix.n < STORED_PREFIX_MIN || prefix.n > STORED_HEX || !is_hex(prefix))
        return err_set(e, "a version is named by %d to %d hexadecimal digits of its digest", STORED_PREFIX_MIN,
                       STORED_HEX);
    DIR *at = opendir(dir);
    if (at == NULL)
        return err_errno(e, "cannot look for versions of the policy in %s", dir);
    while ((d = readdir(at)) != NULL) {
        struct span name = span_str(d->d_name);
        if (name.n == STORED_HEX && is_hex(name) && span_starts(name, prefix)) {
            memcpy(hex, d->d_name, STORED_HEX + 1);
            found++;
        }
    }
    closedir(at);
    if (found == 1)
        return 0;
    return err_set(e,
                   found ? "%.*s are the first digits of several versions: give more of them"
                         : "no version that is kept begins with %.*s; countersign policy history lists them",
                   SPAN_FMT(prefix));
}

static bool word(struct span *line, struct span *out)
{
    return span_cut(*line, ' ', out, line) && out->n > 0;
}

static bool keyed(struct span *text, const char *key, struct span *value)
{
    struct span line, name;
    return span_cut(*text, '\n', &line, text) && span_cut(line, ' ', &name, value) && span_eq(name, span_str(key));
}

static bool file_name_ok(struct span s)
{
    if (s.n == 0 || s.n >= STORED_FILE_NAME || s.p[0] == '.')
        return false;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] == '/' || s.p[i] >= 0x7f)
            return false;
    return true;
}

static bool file_line(struct span line, struct stored_file *f)
{
    struct span kind, hex, size, file;
    if (!word(&line, &kind) || !word(&line, &hex) || !word(&line, &size) || !word(&line, &file))
        return false;
    for (f->kind = 0; f->kind < KINDS && !(kinds[f->kind] && span_eq(kind, span_str(kinds[f->kind])));)
        f->kind++;
    f->name = line;
    if (f->kind == KINDS || hex_parse(hex, f->sha256.b, DIGEST_BYTES) != 0 ||
        span_u64(size, POLICY_IMAGE_MAX, &f->size) != 0 || !file_name_ok(file))
        return false;
    memcpy(f->file, file.p, file.n);
    f->file[file.n] = '\0';
    return true;
}

static bool parse(struct stored *s, struct span text)
{
    struct span line, digest, number;
    if (!span_cut(text, '\n', &line, &text) || !span_eq(line, SPAN(FIRST_LINE)) || !keyed(&text, "digest", &digest) ||
        !span_eq(digest, span_str(s->hex)) || !keyed(&text, "rules", &number) ||
        span_u64(number, UINT64_MAX, &s->rules) != 0 || !keyed(&text, "stored", &number) ||
        span_u64(number, UINT64_MAX, &s->stored_ms) != 0 || !keyed(&text, "name", &s->name))
        return false;
    while (span_cut(text, '\n', &line, &text)) {
        if (span_eq(line, SPAN("end")))
            return text.n == 0 && s->n > 0;
        if (s->n == STORED_FILES_MAX || !file_line(line, &s->v[s->n]))
            return false;
        s->n++;
    }
    return false;
}

bool stored_first(const struct stored *s, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(s->v[k].file, s->v[i].file) == 0)
            return false;
    return true;
}

void stored_put(const struct stored *s, struct dynbuf *out)
{
    struct dynbuf manifest;
    dynbuf_init(&manifest, STORED_MANIFEST_MAX);
    stored_manifest(s, &manifest);
    msg_put_span(out, dynbuf_span(&manifest));
    for (size_t i = 0; i < s->n; i++)
        if (stored_first(s, i))
            (void)dynbuf_add(out, s->v[i].text);
    out->failed |= !dynbuf_ok(&manifest);
    dynbuf_free(&manifest);
}

int stored_get(struct span bundle, struct stored *s, struct err *e)
{
    struct msg_in m = msg_in(bundle);
    struct span line, manifest = msg_get_span(&m, STORED_MANIFEST_MAX), rest = manifest;
    if (stored_begin(s, e) != 0)
        return -1;
    if (m.bad || !span_cut(rest, '\n', &line, &rest) || !keyed(&rest, "digest", &line) || line.n != STORED_HEX)
        return err_set(e, "no bundle of a version");
    memcpy(s->hex, line.p, STORED_HEX);
    if (!parse(s, arena_copy(&s->a, manifest)))
        return err_set(e, "the manifest of version %.12s cannot be read", s->hex);
    for (size_t i = 0; i < s->n; i++) {
        if (!stored_first(s, i))
            continue;
        if (s->v[i].size > m.rest.n)
            return err_set(e, "the files of version %.12s are cut short", s->hex);
        s->v[i].text = span_first(m.rest, s->v[i].size); /* borrowed */
        m.rest = span_from(m.rest, s->v[i].size);
    }
    return 0;
}

static int path_of(const char *dir, const char *hex, const char *file, char out[PATH_BYTES], struct err *e)
{
    int n = snprintf(out, PATH_BYTES, "%s/%s/%s", dir, hex, file);
    return n < 0 || n >= PATH_BYTES ? err_set(e, "the path of the state directory is too long") : 0;
}

int stored_open(const char *dir, const char *hex, struct stored *s, struct err *e)
{
    char path[PATH_BYTES];
    struct span text;
    struct stat st;
    if (stored_begin(s, e) != 0 || path_of(dir, hex, STORED_MANIFEST, path, e) != 0)
        return -1;
    snprintf(s->hex, sizeof(s->hex), "%s", hex);
    if (policy_read_file(path, STORED_MANIFEST_MAX, &s->a, &text, e) != 0)
        return -1;
    if (stat(path, &st) == 0)
        s->used_ms = (uint64_t)st.st_mtim.tv_sec * 1000 + (uint64_t)st.st_mtim.tv_nsec / 1000000;
    return parse(s, text) ? 0 : err_set(e, "%s is no manifest of version %s", path, hex);
}

int stored_read(const char *dir, struct stored *s, struct err *e)
{
    char path[PATH_BYTES];
    for (size_t i = 0; i < s->n; i++) {
        struct stored_file *f = &s->v[i];
        struct digest got;
        for (size_t k = 0; k < i && f->text.p == NULL; k++)
            if (strcmp(s->v[k].file, f->file) == 0)
                f->text = s->v[k].text;
        if (f->text.p == NULL && (path_of(dir, s->hex, f->file, path, e) != 0 ||
                                  policy_read_file(path, POLICY_IMAGE_MAX, &s->a, &f->text, e) != 0))
            return -1;
        digest_of(f->text, &got);
        if (f->text.n != f->size || memcmp(got.b, f->sha256.b, DIGEST_BYTES) != 0)
            return err_set(e, "%s/%s/%s is not what was stored: its SHA-256 is another than the manifest's", dir,
                           s->hex, f->file);
    }
    return 0;
}

bool stored_is_signed(const struct stored *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].kind == POLICY_REF_SIGNED)
            return true;
    return false;
}

static int fetch_stored(void *arg, enum policy_ref kind, struct span name, struct span *text, struct err *e)
{
    const struct stored *s = arg;
    *text = SPAN_NONE;
    if (kind == POLICY_REF_SIGNED && stored_is_signed(s))
        return 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].kind == (uint8_t)kind && span_eq(s->v[i].name, name)) {
            *text = s->v[i].text;
            return 0;
        }
    return err_set(e, "is not among the files that were stored");
}

static const char *c_string(struct stored *s, struct span name)
{
    char *copy = arena_alloc(&s->a, name.n + 1);
    if (copy) {
        memcpy(copy, name.p, name.n);
        copy[name.n] = '\0';
    }
    return copy;
}

static int load(struct stored *s, uint64_t now_ms, struct dynbuf *out, struct err *e)
{
    struct policy_file files[POLICY_FILES_MAX + 1] = {{0}};
    struct err why = {""};
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->v[i].kind != POLICY_INPUT_FILE && s->v[i].kind != POLICY_INPUT_FLOORS)
            continue;
        const char *name = c_string(s, s->v[i].name);
        if (name == NULL || n > POLICY_FILES_MAX)
            return err_set(e, "version %.12s has too many files, or no memory", s->hex);
        files[n++] = (struct policy_file){name, s->v[i].text, s->v[i].kind == POLICY_INPUT_FLOORS};
    }
    if (policy_load(files, n, fetch_stored, s, now_ms, out, NULL, &why) != 0)
        return err_set(e, "version %.12s cannot be compiled by this program any more: %s", s->hex, why.text);
    return 0;
}

int stored_compile(const char *dir, const char *hex, bool must_be_signed, uint64_t now_ms, struct dynbuf *out,
                   struct err *e)
{
    char got[STORED_HEX + 1] = "";
    struct stored s;
    int bad = stored_open(dir, hex, &s, e) != 0 || stored_read(dir, &s, e) != 0;
    if (!bad && must_be_signed && !stored_is_signed(&s))
        bad = err_set(e, "version %.12s was taken without signatures, and policy_signers: asks for them now", hex);
    bad = bad || load(&s, now_ms, out, e) != 0;
    struct policy *p = bad ? NULL : policy_open(dynbuf_span(out), e);
    if (p)
        hex_text(policy_digest(p), got);
    if (p && strcmp(got, hex) != 0)
        bad = err_set(e,
                      "this program makes another policy of the files of version %.12s (%.12s): what they mean has "
                      "changed since they were stored",
                      hex, got);
    bad |= p == NULL;
    policy_close(p);
    stored_free(&s);
    return bad ? -1 : 0;
}
