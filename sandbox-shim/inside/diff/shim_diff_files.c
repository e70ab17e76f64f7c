#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sandbox-shim/inside/diff/shim_package.h"

enum {
    MODE_LINK = 0120000,
    MODE_MODULE = 0160000,
    MODE_KIND = 0170000,
    MODE_FILE = 0100000,
    MODE_PROGRAM = 0100755,
    RECORD_MIN = 8,
    DENSE_LINE = 2000, /* bytes of a line that nobody reads */
    DENSE_MEAN = 300,  /* of them all, in a text of at least: */
    DENSE_LEAST = 5000,
};

/* ":100644 100755 ID ID R086\0old\0new\0" at *at; NULL: it is none. */
static const char *changed_read(const char *at, const char *end, struct changed *c)
{
    char how[8] = "";
    int used = 0;

    *c = (struct changed){.from = NULL};
    if (end - at < RECORD_MIN || sscanf(at, ":%o %o %64[0-9a-f] %64[0-9a-f] %7[A-Z0-9]%n", &c->mode[0], &c->mode[1],
                                        c->id[0], c->id[1], how, &used) != 5)
        return NULL;
    at += used + 1;
    if (used == 0 || at >= end)
        return NULL;
    c->how = how[0];
    if (how[0] == 'R' || how[0] == 'C') {
        c->from = at;
        at += strlen(at) + 1;
        if (at >= end)
            return NULL;
    }
    c->path = at;
    return at + strlen(at) + 1;
}

static uint64_t size_of(const char *id)
{
    const char *const words[] = {"cat-file", "-s", id, NULL};
    struct git_said s;
    uint64_t n = git_say(&s, 64, -1, words) == 0 ? strtoull(s.p, NULL, 10) : UINT64_MAX;

    said_free(&s);
    return n;
}

static bool is_none(const char *id)
{
    return strspn(id, "0") == strlen(id);
}

static bool is_blob(const struct changed *c, int side)
{
    return c->mode[side] != 0 && (c->mode[side] & MODE_KIND) != MODE_MODULE;
}

/* The lines of a patch behind its head, counted. */
static void count(const char *p, const char *end, uint64_t *more, uint64_t *less)
{
    while (p < end) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        *more += *p == '+';
        *less += *p == '-';
        p = line ? line + 1 : end;
    }
}

/* Its hunks, whole lines of them: as many as may be shown. */
static void patch_put(const struct git_said *s, bool dense, size_t *budget)
{
    const char *end = s->p + s->n, *at = s->p;
    size_t most = *budget < DIFF_PATCH_MAX ? *budget : DIFF_PATCH_MAX;
    uint64_t more = 0, less = 0;
    bool odd = false;

    while (at < end && strncmp(at, "@@ ", 3) != 0) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        at = line ? line + 1 : end;
    }
    size_t n = (size_t)(end - at), shown = n < most ? n : most;
    while (shown < n && shown > 0 && at[shown - 1] != '\n')
        shown--;
    count(at, end, &more, &less);
    out_raw(",\"kind\":\"text\",\"patch\":");
    out_text(at, shown, SIZE_MAX, &odd);
    out_number("added", more);
    out_number("removed", less);
    out_raw(shown < n || s->cut ? ",\"cut\":true" : ",\"cut\":false");
    if (odd)
        out_raw(",\"odd_text\":true");
    if (dense)
        out_raw(",\"dense\":true");
    *budget -= shown;
}

/* Of what is too large to be shown: how much of it changed, if git tells. */
static void large_put(const char *old, const char *new)
{
    const char *const words[] = {"diff", "--no-ext-diff", "--no-textconv", "--numstat", "--no-renames", old, new,
                                 NULL};
    unsigned long long more, less;
    struct git_said s;

    out_raw(",\"kind\":\"large\"");
    if (git_say(&s, 4096, -1, words) == 0 && s.p && sscanf(s.p, "%llu\t%llu", &more, &less) == 2) {
        out_number("added", more);
        out_number("removed", less);
    }
    said_free(&s);
}

enum look { LOOK_BINARY = 0, LOOK_TEXT, LOOK_SCRIPT };

/* Minified, most likely: its lines are too long to be read. */
static bool is_dense(const char *p, size_t n)
{
    size_t lines = 0, longest = 0;

    for (const char *end = p + n; p < end;) {
        const char *line = memchr(p, '\n', (size_t)(end - p));
        size_t is = (size_t)((line ? line : end) - p);
        longest = is > longest ? is : longest;
        lines++;
        p += is + 1;
    }
    return longest > DENSE_LINE || (n >= DENSE_LEAST && n / lines > DENSE_MEAN);
}

static bool is_notable(const struct files *f, const struct changed *c);

/* One side of a file. */
struct seen {
    enum look is;
    bool dense;
    bool runs; /* of what is no text: it may */
    bool data; /* it is known as what no program reads as text */
};

/* Not git's reading, for which one NUL makes a binary: text with some of them, or in 16 bits, is text. */
static struct seen looks(const char *id, const struct changed *c, const struct files *f)
{
    const char *const words[] = {"cat-file", "blob", id, NULL};
    struct seen seen = {.is = LOOK_BINARY, .runs = true};
    size_t nul[2] = {0, 0}, odd = 0;
    struct git_said s;

    if (git_say(&s, DIFF_BLOB_MAX, -1, words) == 0 && s.p) {
        for (size_t i = 0; i < s.n; i++) {
            unsigned char b = (unsigned char)s.p[i];
            nul[i & 1] += b == 0;
            odd += b != 0 && b < 0x20 && !strchr("\t\n\r\f\b\033", b);
        }
        size_t most = nul[0] > nul[1] ? nul[0] : nul[1], least = nul[0] + nul[1] - most;
        bool wide = most > s.n / 4 && least <= s.n / 64;
        if (odd <= s.n / 64 && (wide || most + least <= 8 + s.n / 64))
            seen.is = LOOK_TEXT;
        else if (s.n > 2 && memcmp(s.p, "#!", 2) == 0)
            seen.is = LOOK_SCRIPT;
        seen.dense = is_dense(s.p, s.n);
        seen.data = package_data(c->path, s.p, s.n);
        seen.runs = seen.is == LOOK_SCRIPT || c->mode[1] == MODE_PROGRAM ||
                    (f->runs ? f->runs(c, s.p, s.n) : is_notable(f, c));
    }
    said_free(&s);
    return seen;
}

bool file_is_text(const char *id, const struct files *f)
{
    return looks(id, &(struct changed){.path = ""}, f).is == LOOK_TEXT;
}

static bool diff_said(struct git_said *s, const char *old, const char *new, bool text)
{
    const char *const words[] = {"diff",
                                 "--no-ext-diff",
                                 "--no-textconv",
                                 "--no-color",
                                 "--no-renames",
                                 "--unified=3",
                                 "--diff-algorithm=myers",
                                 text ? "--text" : "--no-text",
                                 old,
                                 new,
                                 NULL};

    return git_say(s, 2 * DIFF_BLOB_MAX + DIFF_PATCH_MAX, -1, words) == 0 && s->p;
}

/* The same bytes: what is no text, and did not run where it was, may do so where it is. */
static void same_put(const struct changed *c, const char *new, const struct files *f)
{
    bool program = c->mode[0] == MODE_PROGRAM && !f->runs;

    out_raw(",\"kind\":\"same\"");
    if (new == f->empty_blob || program)
        return;
    struct seen is = looks(new, c, f);
    if (is.is != LOOK_TEXT && is.runs)
        out_raw(",\"runs\":true");
}

/* A side that is text is shown, if need be alone. */
static void blobs_put(const struct changed *c, const uint64_t size[2], const struct files *f)
{
    const char *old = is_blob(c, 0) && !is_none(c->id[0]) ? c->id[0] : f->empty_blob;
    const char *new = is_blob(c, 1) && !is_none(c->id[1]) ? c->id[1] : f->empty_blob;
    struct git_said s;

    if (strcmp(old, new) == 0) {
        same_put(c, new, f);
        return;
    }
    if ((size[0] != UINT64_MAX && size[0] > DIFF_BLOB_MAX) || (size[1] != UINT64_MAX && size[1] > DIFF_BLOB_MAX)) {
        large_put(old, new);
        return;
    }
    struct seen was = looks(old, c, f), is = looks(new, c, f);
    /* Where a text was, what comes may only look as if it were none: no compiler minds what a comment has in it. */
    bool hides = old != f->empty_blob && was.is == LOOK_TEXT && !is.data;
    if (was.is != LOOK_TEXT && is.is == LOOK_TEXT)
        old = f->empty_blob;
    if (!diff_said(&s, old, new, is.is == LOOK_TEXT))
        out_raw(",\"kind\":\"unknown\"");
    else if (strstr(s.p, "\n@@ ") == NULL || is.is != LOOK_TEXT) {
        out_raw(",\"kind\":\"binary\"");
        if (new != f->empty_blob && (hides || is.runs))
            out_raw(",\"runs\":true");
    } else
        patch_put(&s, is.dense, f->budget);
    said_free(&s);
}

static bool one_put(const struct changed *c, const char *commit, const struct files *f)
{
    uint64_t size[2] = {UINT64_MAX, UINT64_MAX};
    char text[64];
    bool odd = false;

    out_raw("{\"path\":");
    bool all = out_text(c->path, strlen(c->path), DIFF_PATH_MAX, &odd);
    if (c->from) {
        out_raw(",\"from\":");
        all = out_text(c->from, strlen(c->from), DIFF_PATH_MAX, &odd) && all;
    }
    if (!all)
        out_raw(",\"path_cut\":true");
    snprintf(text, sizeof(text), ",\"how\":\"%c\",\"old_mode\":\"%06o\",\"new_mode\":\"%06o\"", c->how, c->mode[0],
             c->mode[1]);
    out_raw(text);
    if (odd)
        out_raw(",\"odd_name\":true");
    for (int i = 0; i < 2; i++)
        if (is_blob(c, i) && (size[i] = size_of(c->id[i])) != UINT64_MAX)
            out_number(i ? "new_size" : "old_size", size[i]);
    for (int i = 0; i < 2; i++)
        if (c->mode[i] != 0 && !is_blob(c, i)) {
            out_raw(i ? ",\"new_module\":\"" : ",\"old_module\":\"");
            out_raw(c->id[i]);
            out_raw("\"");
        }
    if (!is_blob(c, 0) && !is_blob(c, 1))
        out_raw(",\"kind\":\"module\"");
    else
        blobs_put(c, size, f);
    if (commit) {
        out_raw(",\"commit\":\"");
        out_raw(commit);
        out_raw("\"");
    }
    out_raw("}");
    return is_none(c->id[1]) || hidden_show(c->id[1], c->path);
}

/* What is shown before the rest is cut: what runs by itself on the other side, programs, links, submodules. */
static bool is_notable(const struct files *f, const struct changed *c)
{
    static const char *const begins[] = {".github/",        ".gitlab-ci",          ".circleci/",  ".gitea/",
                                         ".forgejo/",       ".buildkite/",         "Jenkinsfile", ".travis.yml",
                                         "azure-pipelines", "bitbucket-pipelines", ".gitmodules", ".gitattributes"};

    if (f->notable && f->notable(c))
        return true;
    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
        if (strncasecmp(c->path, begins[i], strlen(begins[i])) == 0 ||
            (c->from && strncasecmp(c->from, begins[i], strlen(begins[i])) == 0))
            return true;
    for (int i = 0; i < 2; i++)
        if (c->mode[i] != 0 && (c->mode[i] & MODE_KIND) != MODE_FILE)
            return true;
    return c->mode[1] == MODE_PROGRAM && c->mode[0] != MODE_PROGRAM;
}

/* One more of the list, if there is room. */
static bool listed(struct files *f, const struct changed *c, const char *commit)
{
    if (f->shown == DIFF_FILES_MAX)
        return true;
    out_raw(f->shown++ ? "," : "");
    return one_put(c, commit, f);
}

static bool one_of(struct files *f, const struct changed *c, bool notable)
{
    f->total += notable;
    return is_notable(f, c) != notable || listed(f, c, NULL);
}

/* Those that are notable, or those that are not. False: the list breaks off. */
static bool some_put(struct files *f, const struct git_said *s, bool notable)
{
    const char *at = s->p, *end = s->p + s->n;
    struct changed c;

    while (at < end) {
        if ((at = changed_read(at, end, &c)) == NULL)
            return s->cut;
        if (!one_of(f, &c, notable))
            return false;
    }
    return true;
}

bool files_list(struct files *f, const struct changed *list, size_t n)
{
    bool good = true;

    out_raw(",\"files\":[");
    for (size_t i = 0; i < n && good; i++)
        good = one_of(f, &list[i], true);
    for (size_t i = 0; i < n && good; i++)
        good = one_of(f, &list[i], false);
    return good;
}

bool files_put(struct files *f, const char *from, const char *to)
{
    char most[24];
    snprintf(most, sizeof(most), "-l%d", DIFF_RENAMES_MAX);
    const char *const words[] = {"diff-tree",
                                 "-r",
                                 "-z",
                                 "--raw",
                                 "--no-abbrev",
                                 "--find-renames",
                                 most,
                                 "--no-ext-diff",
                                 "--no-textconv",
                                 "--ignore-submodules=none",
                                 from,
                                 to,
                                 NULL};
    struct git_said s;

    out_raw(",\"files\":[");
    bool good = git_say(&s, DIFF_NAMES_MAX, -1, words) == 0 && s.p && some_put(f, &s, true) && some_put(f, &s, false);
    f->cut |= s.cut;
    said_free(&s);
    return good;
}

bool files_between(struct files *f, const char *commit, bool merge)
{
    const char *const words[] = {"diff-tree",
                                 "-r",
                                 "-z",
                                 "-m",
                                 "--raw",
                                 "--no-abbrev",
                                 "--no-renames",
                                 "--root",
                                 "--no-commit-id",
                                 "--ignore-submodules=none",
                                 commit,
                                 NULL};
    struct changed c;
    struct git_said s;
    bool good = git_say(&s, DIFF_NAMES_MAX, -1, words) == 0 && s.p;

    for (const char *at = s.p, *end = good ? s.p + s.n : s.p; good && at < end;) {
        if ((at = changed_read(at, end, &c)) == NULL) {
            good = s.cut;
            break;
        }
        if (c.mode[1] == 0 || hidden_is_shown(c.id[1], c.path) || (merge && hidden_is_known(c.id[1])))
            continue;
        f->total++;
        good = listed(f, &c, commit);
    }
    f->cut |= s.cut;
    said_free(&s);
    return good;
}

void files_end(const struct files *f)
{
    out_raw("]");
    out_number("files_total", f->total);
    out_raw(f->cut ? ",\"files_cut\":true" : ",\"files_cut\":false");
}
