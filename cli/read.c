/* A command line, read by the rows of the table. Options and words may stand in any order; "--" ends the options. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "common/err.h"

const struct cli_option cli_state_option = {
    "state-dir", "DIR", "where the gateway keeps its state ($COUNTERSIGN_STATE)", NULL, 0, false};
const struct cli_option cli_json_option = {"json", NULL, "for programs: one JSON document", NULL, 0, false};

const struct cli_option *cli_option_at(const struct cli_verb *v, size_t i)
{
    const struct cli_option *o = v->options;
    for (; o && o->name; o++)
        if (i-- == 0)
            return o;
    if (v->takes & TAKES_JSON && i-- == 0)
        return &cli_json_option;
    return v->takes & TAKES_STATE && i == 0 ? &cli_state_option : NULL;
}

/* How many words of argv the name takes up; 0: it is another one. */
static int name_fits(const char *name, int argc, char **argv)
{
    for (int used = 0; used < argc; used++) {
        size_t n = strcspn(name, " ");
        if (strlen(argv[used]) != n || memcmp(name, argv[used], n) != 0)
            return 0;
        if (name[n] == '\0')
            return used + 1;
        name += n + 1;
    }
    return 0;
}

const struct cli_verb *cli_find(int argc, char **argv, int *used)
{
    for (const struct cli_verb *v = cli_verbs; v->name; v++)
        if ((*used = name_fits(v->name, argc, argv)) > 0)
            return v;
    return NULL;
}

/* --- what may have been meant ------------------------------------------------ */

enum { NAME_MAX_LIKE = 32, LIKE = 2 };

/* Levenshtein's distance, of short names. */
static size_t distance(const char *a, const char *b)
{
    size_t row[NAME_MAX_LIKE + 1], na = strlen(a), nb = strlen(b);
    if (na > NAME_MAX_LIKE || nb > NAME_MAX_LIKE)
        return SIZE_MAX;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = corner + (a[i - 1] != b[j - 1]);
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            corner = row[j];
            row[j] = best;
        }
    }
    return row[nb];
}

const char *cli_nearest(const char *wrong, const char *const *names)
{
    const char *best = NULL;
    size_t least = LIKE + 1, n = strlen(wrong);
    for (; *names; names++) {
        size_t d = n >= 2 && strncmp(*names, wrong, n) == 0 ? 0 : distance(wrong, *names);
        if (d < least && d < n) {
            least = d;
            best = *names;
        }
    }
    return best;
}

/* --- options ------------------------------------------------------------------ */

static int PRINTF(2, 3) complain(const struct cli_verb *v, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "countersign %s: ", v->name);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return cli_usage(v);
}

static int no_such_option(const struct cli_verb *v, const char *word)
{
    enum { NAMES_MAX = 64 };
    const char *names[NAMES_MAX + 1];
    const struct cli_option *o;
    size_t n = 0;
    while (n < NAMES_MAX && (o = cli_option_at(v, n)) != NULL)
        names[n++] = o->name;
    names[n] = NULL;
    const char *near = strncmp(word, "--", 2) == 0 ? cli_nearest(word + 2, names) : NULL;
    return near ? complain(v, "%s is no option of it; did you mean --%s?", word, near)
                : complain(v, "%s is no option of it", word);
}

static bool is_choice(const char *choices, const char *value)
{
    size_t n = strlen(value);
    for (const char *at = choices; *at; at += at[0] == ' ') {
        size_t len = strcspn(at, " ");
        if (len == n && memcmp(at, value, n) == 0)
            return true;
        at += len;
    }
    return false;
}

static int give(struct cli_call *c, const struct cli_option *o, const char *word, const char *value)
{
    if (o->arg && value == NULL)
        return complain(c->verb, "%s needs a value: %s", word, o->arg);
    if (o->arg && o->choices && !is_choice(o->choices, value))
        return complain(c->verb, "%s is one of: %s", word, o->choices);
    if (o == &cli_state_option)
        c->state_dir = value;
    else if (o == &cli_json_option)
        c->json = true;
    else if (c->ngiven == CLI_GIVEN_MAX)
        return complain(c->verb, "too many options, from %s", word);
    else {
        c->given[c->ngiven].option = o;
        c->given[c->ngiven++].value = value;
    }
    return CLI_OK;
}

/* --name, --name VALUE, --name=VALUE */
static int long_option(struct cli_call *c, int argc, char **argv, int *i)
{
    char *word = argv[*i], *equals = strchr(word, '=');
    size_t n = (equals ? (size_t)(equals - word) : strlen(word)) - 2;
    const struct cli_option *o;
    for (size_t k = 0; (o = cli_option_at(c->verb, k)) != NULL; k++)
        if (strlen(o->name) == n && memcmp(o->name, word + 2, n) == 0)
            break;
    if (o == NULL)
        return no_such_option(c->verb, word);
    if (equals && !o->arg)
        return complain(c->verb, "%s takes no value", word);
    const char *value = equals ? equals + 1 : o->arg && *i + 1 < argc ? argv[++*i] : NULL;
    return give(c, o, word, o->arg ? value : "");
}

/* -f, -n VALUE, -nVALUE */
static int letter(struct cli_call *c, int argc, char **argv, int *i)
{
    char *word = argv[*i];
    const struct cli_option *o;
    for (size_t k = 0; (o = cli_option_at(c->verb, k)) != NULL; k++)
        if (o->letter && o->letter == word[1])
            break;
    if (o == NULL || (!o->arg && word[2]))
        return no_such_option(c->verb, word);
    const char *value = word[2] ? word + 2 : o->arg && *i + 1 < argc ? argv[++*i] : NULL;
    return give(c, o, word, o->arg ? value : "");
}

/* How many words the row asks for. A row with more than one way leaves that to the verb. */
static bool words_fit(const struct cli_verb *v, size_t n)
{
    size_t least = 0, most = 0;
    if (strchr(v->words, '\n'))
        return true;
    for (const char *at = v->words; *at; at += at[0] == ' ') {
        size_t len = strcspn(at, " ");
        bool more = len > 3 && strstr(at, "...") && strstr(at, "...") < at + len;
        least += at[0] != '[';
        most = more ? SIZE_MAX : most == SIZE_MAX ? most : most + 1;
        at += len;
    }
    return n >= least && n <= most;
}

int cli_read(const struct cli_verb *v, int argc, char **argv, struct cli_call *c)
{
    bool only_words = false;
    int rc = CLI_OK;
    *c = (struct cli_call){.verb = v, .word = argv};
    for (int i = 0; i < argc && rc == CLI_OK; i++) {
        if (strcmp(argv[i], "--") == 0) {
            only_words = true;
            c->dashes++;
            c->dash = c->nwords;
        } else if (!only_words && strncmp(argv[i], "--", 2) == 0) {
            rc = long_option(c, argc, argv, &i);
        } else if (!only_words && argv[i][0] == '-' && argv[i][1]) {
            rc = letter(c, argc, argv, &i);
        } else {
            argv[c->nwords++] = argv[i];
        }
    }
    if (rc == CLI_OK && !words_fit(v, c->nwords))
        rc = cli_usage(v);
    return rc;
}

/* --- what was given ------------------------------------------------------------ */

static const struct cli_option *find_option(const struct cli_verb *v, const char *name)
{
    const struct cli_option *o;
    for (size_t i = 0; (o = cli_option_at(v, i)) != NULL; i++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

static const struct cli_option *row(const struct cli_call *c, const char *name)
{
    const struct cli_option *o = find_option(c->verb, name);
    if (o == NULL) {
        fprintf(stderr, "countersign %s has no row for --%s\n", c->verb->name, name);
        abort();
    }
    return o;
}

size_t cli_values(const struct cli_call *c, const char *name, const char **out, size_t max)
{
    const struct cli_option *o = row(c, name);
    size_t n = 0;
    for (size_t i = 0; i < c->ngiven && n < max; i++)
        if (c->given[i].option == o)
            out[n++] = c->given[i].value;
    return n;
}

const char *cli_value(const struct cli_call *c, const char *name)
{
    const struct cli_option *o = row(c, name);
    for (size_t i = c->ngiven; i-- > 0;)
        if (c->given[i].option == o)
            return c->given[i].value;
    return NULL;
}

bool cli_flag(const struct cli_call *c, const char *name)
{
    const struct cli_option *o = row(c, name);
    for (size_t i = 0; i < c->ngiven; i++)
        if (c->given[i].option == o)
            return true;
    return false;
}
