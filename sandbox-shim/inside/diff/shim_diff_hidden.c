/* What leaves with a push and is in nothing that is shown: an object that no ref reaches, a blob that comes and goes
 * between two commits, a commit past those that are listed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox-shim/inside/diff/shim_diff.h"

enum { WORDS = 3 * DIFF_REFS_MAX + 16, SHOWN_MAX = 16 * 1024 };

/* Ids, sorted; they point into what git said. */
struct ids {
    struct git_said said;
    char **at;
    size_t n;
};

static struct ids known;
static struct {
    char id[DIFF_ID_MAX + 2], *path;
} shown[SHOWN_MAX];
static size_t nshown;

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A line each, of which the first word counts. The second, if there is one, stays behind the end of the first. */
static bool ids_read(struct ids *list, const char *const *words)
{
    *list = (struct ids){.n = 0};
    if (git_say(&list->said, DIFF_IDS_MAX, -1, words) != 0 || list->said.cut || !list->said.p)
        return false;
    size_t most = 1;
    for (const char *p = list->said.p; *p; p++)
        most += *p == '\n';
    if ((list->at = malloc(most * sizeof(*list->at))) == NULL)
        return false;
    for (char *p = list->said.p, *end; (end = strchr(p, '\n')) != NULL; p = end + 1) {
        *end = '\0';
        list->at[list->n++] = p;
    }
    for (size_t i = 0; i < list->n; i++)
        list->at[i][strcspn(list->at[i], " ")] = '\0';
    qsort(list->at, list->n, sizeof(*list->at), by_text);
    return true;
}

static bool has(const struct ids *list, const char *id)
{
    return list->n > 0 && bsearch(&id, list->at, list->n, sizeof(*list->at), by_text) != NULL;
}

static size_t words_add(const char **words, size_t n, const char *const *more)
{
    while (*more && n < WORDS - 1)
        words[n++] = *more++;
    words[n] = NULL;
    return n;
}

bool hidden_begin(const char *const *tips)
{
    const char *words[WORDS] = {"rev-list", "--objects", "--no-object-names"};

    if (*tips == NULL)
        return true; /* nothing is there */
    (void)words_add(words, 3, tips);
    return ids_read(&known, words);
}

bool hidden_is_known(const char *id)
{
    return has(&known, id);
}

bool hidden_is_shown(const char *id, const char *path)
{
    for (size_t i = 0; i < nshown; i++)
        if (strcmp(shown[i].id, id) == 0 && (path == NULL || strcmp(shown[i].path, path) == 0))
            return true;
    return false;
}

bool hidden_show(const char *id, const char *path)
{
    if (nshown == SHOWN_MAX || (shown[nshown].path = strdup(path)) == NULL)
        return false;
    snprintf(shown[nshown++].id, sizeof(shown[0].id), "%s", id);
    return true;
}

bool hidden_count(const char *const *news, const char *const *tips, uint64_t *n)
{
    static const char *const all[] = {"cat-file", "--batch-all-objects", "--unordered",
                                      "--batch-check=%(objectname) %(objecttype)", NULL};
    static const char *const no[] = {"--not", NULL};
    const char *words[WORDS] = {"rev-list", "--objects", "--no-object-names"};
    struct ids every, reached;
    size_t at = words_add(words, 3, news);

    *n = 0;
    at = words_add(words, at, no);
    (void)words_add(words, at, tips);
    if (!ids_read(&every, all) || !ids_read(&reached, words))
        return false;
    for (size_t i = 0; i < every.n; i++) {
        const char *id = every.at[i], *type = id + strlen(id) + 1;
        if (!has(&known, id) && !hidden_is_shown(id, NULL) && (strcmp(type, "tree") != 0 || !has(&reached, id)))
            (*n)++;
    }
    return true;
}
