/* The way of one diff: what the other side has is asked, as much of it fetched as the pack needs, the pack completed
 * and checked, then each ref compared. Each step that fails ends it with a word; nothing of git's own words crosses.
 */
#include "sandbox-shim/inside/diff/shim_diff.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COMPLAINT = 4096 };

struct ref {
    const char *old, *new; /* as the push says; all zeros: it is not there */
};
struct work {
    const char *url, *format;
    long pack_at; /* -1: every ref is deleted */
    struct ref ref[DIFF_REFS_MAX];
    size_t n;
    const char *tips[DIFF_REFS_MAX + 3], *news[DIFF_REFS_MAX + 1]; /* what is there; what comes */
    char head[DIFF_ID_MAX + 1];                                    /* the default branch; empty: there is none */
    char empty_tree[DIFF_LINE_MAX], empty_blob[DIFF_LINE_MAX];
};

static bool is_zero(const char *id)
{
    return strspn(id, "0") == strlen(id);
}

/* Why the other side cannot be read. */
static const char *why(const char *complaint)
{
    static const struct {
        const char *says, *word;
    } table[] = {{"returned error: 403", "denied"},
                 {"returned error: 401", "unauthorized"},
                 {"could not read Username", "unauthorized"},
                 {"not found", "not-found"},
                 {"returned error: 404", "not-found"},
                 {"returned error: 3", "moved"},
                 {"not our ref", "old-gone"},
                 {"unadvertised object", "old-gone"}};

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (strstr(complaint, table[i].says))
            return table[i].word;
    return "unreachable";
}

static void repository_make(struct work *w)
{
    const char *error = git_repository(w->format, w->empty_blob, w->empty_tree);

    if (error)
        over(error);
}

/* Which branch is the default one, and whether anything can be read at all. */
static void other_side_ask(struct work *w)
{
    const char *const words[] = {"ls-remote", "--quiet", "--", w->url, "HEAD", NULL};
    char complaint[COMPLAINT], head[DIFF_ID_MAX + 16];

    if (!git_line(head, sizeof(head), -1, words)) {
        int status = git_do(complaint, sizeof(complaint), -1, words);
        if (status != 0)
            over(why(complaint));
    }
    head[strcspn(head, "\t")] = '\0';
    if (strspn(head, "0123456789abcdef") == strlen(head) && strlen(head) <= DIFF_ID_MAX)
        snprintf(w->head, sizeof(w->head), "%.*s", DIFF_ID_MAX, head);
}

/* So deep. NULL, or why not. */
static const char *fetch(const struct work *w, const char *depth, bool all)
{
    const char *words[DIFF_REFS_MAX + 16];
    char complaint[COMPLAINT];
    size_t n = 0, wanted = 0;

    words[n++] = "fetch";
    words[n++] = "--quiet";
    words[n++] = "--no-tags";
    words[n++] = "--no-write-fetch-head";
    words[n++] = "--no-recurse-submodules";
    words[n++] = depth;
    words[n++] = "--";
    words[n++] = w->url;
    for (size_t i = 0; i < w->n; i++)
        if (!is_zero(w->ref[i].old) && ++wanted)
            words[n++] = w->ref[i].old;
    if (w->head[0] && ++wanted)
        words[n++] = w->head;
    if (all && w->head[0] && ++wanted) {
        words[n++] = "+refs/heads/*:refs/others/heads/*";
        words[n++] = "+refs/tags/*:refs/others/tags/*";
    }
    words[n] = NULL;
    return wanted == 0 || git_do(complaint, sizeof(complaint), -1, words) == 0 ? NULL : why(complaint);
}

/* Is the push's pack whole with what is there? Whether each link of it leads somewhere is a part of that. */
static bool complete(const struct work *w)
{
    static const char *const words[] = {"index-pack", "--stdin", "--fix-thin", "--strict", "--threads=1", NULL};
    char complaint[COMPLAINT];

    if (w->pack_at < 0)
        return true;
    int fd = open(PUSH_FILE, O_RDONLY | O_CLOEXEC);
    bool good = fd >= 0 && lseek(fd, w->pack_at, SEEK_SET) == w->pack_at &&
                git_do(complaint, sizeof(complaint), fd, words) == 0;
    if (fd >= 0)
        close(fd);
    return good;
}

/* The commit that an id stands for, if it stands for one. */
static bool commit_of(const char *id, char out[DIFF_ID_MAX + 2])
{
    char text[DIFF_ID_MAX + 16];
    const char *const words[] = {"rev-parse", "--quiet", "--verify", "--end-of-options", text, NULL};

    snprintf(text, sizeof(text), "%.*s^{commit}", DIFF_ID_MAX, id);
    return git_line(out, DIFF_ID_MAX + 2, -1, words);
}

/* What a ref that is new is compared with: where it left the default branch. */
static bool base_of(const struct work *w, const char *commit, char out[DIFF_ID_MAX + 2])
{
    char head[DIFF_ID_MAX + 2];
    const char *const words[] = {"merge-base", head, commit, NULL};

    return w->head[0] && commit_of(w->head, head) && git_line(out, DIFF_ID_MAX + 2, -1, words);
}

static bool is_there(const char *id)
{
    const char *const words[] = {"cat-file", "-e", id, NULL};
    char complaint[COMPLAINT];

    return git_do(complaint, sizeof(complaint), -1, words) == 0;
}

/* Does what is between the two not meet the end of a history that was fetched in part? Where it does, neither what
 * they share nor how far they are apart can be told. */
static bool is_exact(const char *one, const char *other)
{
    char range[2 * DIFF_ID_MAX + 8], mark[DIFF_ID_MAX + 4];
    const char *const words[] = {"rev-list", range, NULL};
    FILE *f = fopen(DIFF_GIT_DIR "/shallow", "re");
    struct git_said s;

    if (!f)
        return true; /* all of it is here */
    snprintf(range, sizeof(range), "%s...%s", one, other);
    bool exact = git_say(&s, DIFF_NAMES_MAX, -1, words) == 0 && !s.cut && s.p;
    while (exact && fgets(mark, sizeof(mark), f))
        exact = strlen(mark) < 40 || strstr(s.p, mark) == NULL;
    said_free(&s);
    (void)fclose(f);
    return exact;
}

/* With what is there, each ref can be compared: the old one is there, and a new one's beginning is found. */
static bool comparable(const struct work *w)
{
    char commit[DIFF_ID_MAX + 2], other[DIFF_ID_MAX + 2];

    for (size_t i = 0; i < w->n; i++) {
        const struct ref *r = &w->ref[i];
        if (is_zero(r->new))
            continue;
        if (!is_there(r->new))
            return false;
        if (!commit_of(r->new, commit))
            continue;
        if (!is_zero(r->old) ? !commit_of(r->old, other) || !is_exact(other, commit)
                             : w->head[0] && (!base_of(w, commit, other) || !commit_of(w->head, other) ||
                                              !is_exact(other, commit)))
            return false;
    }
    return true;
}

/* As little as will do: a large repository is not fetched for a small push. */
static void repository_fill(const struct work *w)
{
    static const char *const depth[] = {"--depth=1", "--depth=100", "--depth=2147483647"};
    enum { DEPTHS = sizeof(depth) / sizeof(depth[0]) };
    bool whole = false;

    for (size_t i = 0; i < DEPTHS; i++) {
        bool last = i + 1 == DEPTHS;
        const char *bad = fetch(w, depth[i], last);
        if (bad)
            over(bad);
        whole = whole || complete(w);
        if (whole && comparable(w))
            return;
        if (whole && last && access(DIFF_GIT_DIR "/shallow", F_OK) != 0)
            return;
        if (whole && last)
            over("cut-history");
    }
    over("incomplete");
}

/* --- what is said of a ref ------------------------------------------------------------ */

static void put_words(const char *key, const char *p, size_t n)
{
    bool odd = false;

    out_raw(key);
    out_text(p, n, DIFF_WORDS_MAX, &odd);
}

static uint64_t how_many(const char *in, const char *not_in)
{
    char most[32], text[32];
    snprintf(most, sizeof(most), "--max-count=%d", DIFF_COUNT_MAX);
    const char *const words[] = {"rev-list", "--count", most, in, "--not", not_in, NULL};
    const char *const every[] = {"rev-list", "--count", most, in, NULL};

    if (!git_line(text, sizeof(text), -1, not_in ? words : every))
        over("failed");
    return strtoull(text, NULL, 10);
}

/* All that a commit or a tag says, its words and what stands above them. Is it a merge? */
static bool raw_put(const char *key, const char *type, const char *id, size_t *budget)
{
    const char *const words[] = {"cat-file", type, id, NULL};
    size_t most = *budget < DIFF_RAW_MAX ? *budget : DIFF_RAW_MAX;
    bool odd = false, merge;
    struct git_said s;

    if (git_say(&s, most, -1, words) != 0 || !s.p)
        over("failed");
    out_raw(",\"");
    out_raw(key);
    out_raw("\":");
    out_text(s.p, s.n, SIZE_MAX, &odd);
    out_raw(s.cut ? ",\"text_cut\":true" : ",\"text_cut\":false");
    *budget -= s.n;
    const char *parent = strstr(s.p, "\nparent ");
    merge = s.cut || (parent && strstr(parent + 1, "\nparent "));
    said_free(&s);
    if (!hidden_show(id, ""))
        over("failed");
    return merge;
}

struct listed {
    char id[DIFF_COMMITS_MAX][DIFF_ID_MAX + 2];
    bool merge[DIFF_COMMITS_MAX];
    size_t n;
};

static void commits_put(const char *to, const char *base, struct listed *l, size_t *budget)
{
    char most[32];
    snprintf(most, sizeof(most), "--max-count=%d", DIFF_COMMITS_MAX);
    const char *const words[] = {"log",
                                 "-z",
                                 "--no-show-signature",
                                 "--no-mailmap",
                                 "--no-color",
                                 "--no-decorate",
                                 "--encoding=UTF-8",
                                 most,
                                 "--format=%H%x01%an%x01%s",
                                 to,
                                 base ? "--not" : NULL,
                                 base,
                                 NULL};
    struct git_said s;

    out_raw(",\"commits\":[");
    if (git_say(&s, 4 * 1024 * 1024, -1, words) != 0 || s.cut)
        over("failed");
    for (char *at = s.p, *end = s.p + s.n; at < end; at += strlen(at) + 1) {
        char *name = strchr(at, 1), *subject = name ? strchr(name + 1, 1) : NULL;
        if (subject == NULL || l->n == DIFF_COMMITS_MAX)
            over("failed");
        put_words(l->n ? ",{\"id\":" : "{\"id\":", at, (size_t)(name - at));
        put_words(",\"author\":", name + 1, (size_t)(subject - name - 1));
        put_words(",\"subject\":", subject + 1, strlen(subject + 1));
        snprintf(l->id[l->n], sizeof(l->id[0]), "%.*s", (int)(name - at), at);
        l->merge[l->n] = raw_put("text", "commit", l->id[l->n], budget);
        l->n++;
        out_raw("}");
    }
    said_free(&s);
    out_raw("]");
    out_number("commits_total", how_many(to, base));
}

static void compared_put(const struct work *w, const struct ref *r, const char *new, size_t *budget)
{
    char base[DIFF_ID_MAX + 2] = "";
    const char *kind = is_zero(r->old) ? "branch-off" : "old";
    bool there = is_zero(r->old) ? base_of(w, new, base) : commit_of(r->old, base);
    struct files f = {.empty_blob = w->empty_blob, .budget = budget};
    struct listed l = {.n = 0};

    if (!there && !is_zero(r->old)) {
        out_raw("\"state\":\"no-old\"");
        return;
    }
    out_raw("\"state\":\"compared\",\"base\":\"");
    out_raw(there ? kind : "nothing");
    out_raw("\",\"base_id\":\"");
    out_raw(there ? base : w->empty_tree);
    out_raw("\"");
    if (strcmp(r->new, new) != 0)
        (void)raw_put("tag", "tag", r->new, budget);
    commits_put(new, there ? base : NULL, &l, budget);
    out_number("dropped", is_zero(r->old) ? 0 : how_many(base, new));
    if (!files_put(&f, there ? base : w->empty_tree, new))
        over("failed");
    for (size_t i = 0; i < l.n; i++)
        if (!files_between(&f, l.id[i], l.merge[i]))
            over("failed");
    files_end(&f);
}

/* What is there, as the hidden is counted against it, and what comes. */
static void tips_find(struct work *w)
{
    size_t n = 0, news = 0;

    for (size_t i = 0; i < w->n; i++) {
        if (!is_zero(w->ref[i].old))
            w->tips[n++] = w->ref[i].old;
        if (!is_zero(w->ref[i].new) && is_there(w->ref[i].new))
            w->news[news++] = w->ref[i].new;
    }
    if (w->head[0])
        w->tips[n++] = w->head;
    if (n > 0)
        w->tips[n++] = "--glob=refs/others/*";
    if (!hidden_begin(w->tips) || !hidden_show(w->empty_blob, "") || !hidden_show(w->empty_tree, ""))
        over("failed");
}

static void ref_put(const struct work *w, const struct ref *r, size_t *budget)
{
    char new[DIFF_ID_MAX + 2];

    out_raw("{");
    if (is_zero(r->new))
        out_raw("\"state\":\"deleted\"");
    else if (!is_there(r->new))
        out_raw("\"state\":\"not-there\"");
    else if (!commit_of(r->new, new))
        out_raw("\"state\":\"no-commit\"");
    else
        compared_put(w, r, new, budget);
    out_raw("}");
}

static bool is_id(const char *s)
{
    size_t n = strlen(s);

    return (n == 40 || n == 64) && strspn(s, "0123456789abcdef") == n;
}

void push_diff(char **argv)
{
    static struct work w;
    size_t budget = DIFF_TEXT_MAX;
    uint64_t hidden = 0;
    char scheme[8];

    if (!argv[0] || !argv[1] || !argv[2] ||
        (strncmp(argv[0], "https://", 8) != 0 && strncmp(argv[0], "http://", 7) != 0))
        _exit(2);
    w.url = argv[0];
    w.pack_at = strtol(argv[1], NULL, 10);
    w.format = argv[2];
    for (argv += 3; argv[0] && argv[1] && is_id(argv[0]) && is_id(argv[1]) && w.n < DIFF_REFS_MAX; argv += 2)
        w.ref[w.n++] = (struct ref){argv[0], argv[1]};
    if (w.n == 0 || argv[0])
        _exit(2);
    snprintf(scheme, sizeof(scheme), "%.*s", (int)strcspn(w.url, ":"), w.url);
    git_begin(scheme);
    repository_make(&w);
    other_side_ask(&w);
    repository_fill(&w);
    tips_find(&w);
    out_begin(DIFF_FILE);
    out_raw("{\"version\":1,\"refs\":[");
    for (size_t i = 0; i < w.n; i++) {
        out_raw(i ? "," : "");
        ref_put(&w, &w.ref[i], &budget);
    }
    out_raw("]");
    if (w.news[0] && !hidden_count(w.news, w.tips, &hidden))
        over("failed");
    out_number("hidden", hidden);
    out_raw("}\n");
    _exit(out_end() == 0 ? 0 : 1);
}
