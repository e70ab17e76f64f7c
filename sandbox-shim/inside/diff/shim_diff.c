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
    char head[DIFF_ID_MAX + 1]; /* the default branch; empty: there is none */
    char empty_tree[DIFF_ID_MAX + 2], empty_blob[DIFF_ID_MAX + 2];
};

static bool is_zero(const char *id)
{
    return strspn(id, "0") == strlen(id);
}

static void __attribute__((noreturn)) over(const char *error)
{
    out_begin();
    out_raw("{\"version\":1,\"error\":\"");
    out_raw(error);
    out_raw("\"}\n");
    _exit(out_end() == 0 ? 0 : 1);
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

/* The one line that git says, without its end. False: it says none. */
static bool line(char *to, size_t room, int input, const char *const *words)
{
    struct git_said s;
    bool good = git_say(&s, room - 1, input, words) == 0 && s.n > 0;

    snprintf(to, room, "%s", good ? s.p : "");
    to[strcspn(to, "\n")] = '\0';
    said_free(&s);
    return good && to[0] != '\0';
}

static void repository_make(struct work *w)
{
    char format[64], complaint[COMPLAINT];
    snprintf(format, sizeof(format), "--object-format=%s", w->format);
    const char *const init[] = {"init", "--quiet", "--bare", "--template=", format, "/workspace/repository", NULL};
    const char *const blob[] = {"hash-object", "-w", "--stdin", "-t", "blob", NULL};
    const char *const tree[] = {"hash-object", "-w", "--stdin", "-t", "tree", NULL};
    int status = git_do(complaint, sizeof(complaint), -1, init);

    if (status == 127)
        over("no-git");
    if (status != 0 || !line(w->empty_blob, sizeof(w->empty_blob), -1, blob) ||
        !line(w->empty_tree, sizeof(w->empty_tree), -1, tree))
        over("failed");
}

/* Which branch is the default one, and whether anything can be read at all. */
static void other_side_ask(struct work *w)
{
    const char *const words[] = {"ls-remote", "--quiet", "--", w->url, "HEAD", NULL};
    char complaint[COMPLAINT], head[DIFF_ID_MAX + 16];

    if (!line(head, sizeof(head), -1, words)) {
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
    if (all && w->head[0] && ++wanted)
        words[n++] = "+refs/heads/*:refs/others/*";
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
    return line(out, DIFF_ID_MAX + 2, -1, words);
}

/* What a ref that is new is compared with: where it left the default branch. */
static bool base_of(const struct work *w, const char *commit, char out[DIFF_ID_MAX + 2])
{
    char head[DIFF_ID_MAX + 2];
    const char *const words[] = {"merge-base", head, commit, NULL};

    return w->head[0] && commit_of(w->head, head) && line(out, DIFF_ID_MAX + 2, -1, words);
}

/* With what is there, each ref can be compared: the old one is there, and a new one's beginning is found. */
static bool comparable(const struct work *w)
{
    char commit[DIFF_ID_MAX + 2], other[DIFF_ID_MAX + 2];

    for (size_t i = 0; i < w->n; i++) {
        const struct ref *r = &w->ref[i];
        if (is_zero(r->new) || !commit_of(r->new, commit))
            continue;
        if (is_zero(r->old) ? w->head[0] && !base_of(w, commit, other) : !commit_of(r->old, other))
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
        if (whole && (comparable(w) || last))
            return;
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

    return line(text, sizeof(text), -1, not_in ? words : every) ? strtoull(text, NULL, 10) : 0;
}

static void commits_put(const char *to, const char *base)
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
    size_t shown = 0;

    out_raw(",\"commits\":[");
    if (git_say(&s, 4 * 1024 * 1024, -1, words) == 0)
        for (char *at = s.p, *end = s.p + s.n; at < end; at += strlen(at) + 1) {
            char *name = strchr(at, 1), *subject = name ? strchr(name + 1, 1) : NULL;
            if (subject == NULL)
                break;
            put_words(shown++ ? ",{\"id\":" : "{\"id\":", at, (size_t)(name - at));
            put_words(",\"author\":", name + 1, (size_t)(subject - name - 1));
            put_words(",\"subject\":", subject + 1, strlen(subject + 1));
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

    if (!there && !is_zero(r->old)) {
        out_raw("\"state\":\"no-old\"");
        return;
    }
    out_raw("\"state\":\"compared\",\"base\":\"");
    out_raw(there ? kind : "nothing");
    out_raw("\",\"base_id\":\"");
    out_raw(there ? base : w->empty_tree);
    out_raw("\"");
    commits_put(new, there ? base : NULL);
    out_number("dropped", is_zero(r->old) ? 0 : how_many(base, new));
    if (!files_put(there ? base : w->empty_tree, new, w->empty_blob, budget))
        over("failed");
}

static void ref_put(const struct work *w, const struct ref *r, size_t *budget)
{
    char new[DIFF_ID_MAX + 2];

    out_raw("{");
    if (is_zero(r->new))
        out_raw("\"state\":\"deleted\"");
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
    out_begin();
    out_raw("{\"version\":1,\"refs\":[");
    for (size_t i = 0; i < w.n; i++) {
        out_raw(i ? "," : "");
        ref_put(&w, &w.ref[i], &budget);
    }
    out_raw("]}\n");
    _exit(out_end() == 0 ? 0 : 1);
}
