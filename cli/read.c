/* A command line, read by the rows of the table. Options and words may stand in any order; "--" ends the options. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "common/text/nearest.h"

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

/* --- options ------------------------------------------------------------------ */

/* Its words are a command line of their own, as of `run`: options stand before the first of them. */
static bool own_options_first(const struct cli_verb *v)
{
    return strncmp(v->words, "-- ", 3) == 0;
}

static int no_such_option(struct cli_call *c, const char *word)
{
    const struct cli_verb *v = c->verb;
    enum { NAMES_MAX = 64 };
    const char *names[NAMES_MAX + 1];
    const struct cli_option *o;
    size_t n = 0;
    c->help = strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
    if (c->help)
        return CLI_USAGE;
    while (n < NAMES_MAX && (o = cli_option_at(v, n)) != NULL)
        names[n++] = o->name;
    names[n] = NULL;
    const char *near = strncmp(word, "--", 2) == 0 ? nearest_name(span_str(word + 2), names) : NULL;
    return near ? cli_complain(v, "%s is no option of it; did you mean --%s?", word, near)
                : cli_complain(v, "%s is no option of it", word);
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
        return cli_complain(c->verb, "%s needs a value: %s", word, o->arg);
    if (o->arg && o->choices && !is_choice(o->choices, value))
        return cli_complain(c->verb, "%s is one of: %s", word, o->choices);
    if (o == &cli_state_option)
        c->state_dir = value;
    else if (o == &cli_json_option)
        c->json = true;
    else if (c->ngiven == CLI_GIVEN_MAX)
        return cli_complain(c->verb, "too many options, from %s", word);
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
        return no_such_option(c, word);
    if (equals && !o->arg)
        return cli_complain(c->verb, "%s takes no value", word);
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
        return no_such_option(c, word);
    const char *value = word[2] ? word + 2 : o->arg && *i + 1 < argc ? argv[++*i] : NULL;
    return give(c, o, word, o->arg ? value : "");
}

/* An option of the verb that takes this very word as its value, or one very like it; *value: which. */
static const struct cli_option *option_of_value(const struct cli_verb *v, const char *word, char value[32])
{
    enum { VALUES_MAX = 32 };
    const struct cli_option *o;
    for (size_t i = 0; (o = cli_option_at(v, i)) != NULL; i++) {
        char text[256], *save = NULL;
        const char *names[VALUES_MAX + 1], *near;
        size_t n = 0;
        (void)snprintf(text, sizeof text, "%s", o->choices ? o->choices : "");
        for (char *at = strtok_r(text, " ", &save); at && n < VALUES_MAX; at = strtok_r(NULL, " ", &save))
            names[n++] = at;
        names[n] = NULL;
        near = nearest_name(span_str(word), names);
        if (near) {
            (void)snprintf(value, 32, "%s", near);
            return o;
        }
    }
    return NULL;
}

static int one_too_many(const struct cli_verb *v, const char *word)
{
    char value[32];
    const struct cli_option *o = option_of_value(v, word, value);
    return o ? cli_complain(v, "`%s` is one word too many; did you mean --%s %s?", word, o->name, value)
             : cli_complain(v, "`%s` is one word too many", word);
}

/* Are there as many words as the row asks for? A row with more than one way leaves that to the verb. */
static int words_check(const struct cli_verb *v, const struct cli_call *c)
{
    const char *at = v->words + (own_options_first(v) ? 3 : 0);
    size_t i = 0;
    if (strchr(v->words, '\n'))
        return CLI_OK;
    for (; *at; at += at[0] == ' ', i++) {
        size_t len = strcspn(at, " ");
        const char *more = strstr(at, "...");
        bool many = more && more < at + len;
        if (i >= c->nwords && at[0] != '[')
            return cli_complain(v, "%.*s is missing", (int)(many ? (size_t)(more - at) : len), at);
        if (many)
            return CLI_OK;
        at += len;
    }
    return c->nwords > i ? one_too_many(v, c->word[i]) : CLI_OK;
}

int cli_read(const struct cli_verb *v, int argc, char **argv, struct cli_call *c)
{
    bool only_words = false;
    int rc = CLI_OK;
    *c = (struct cli_call){.verb = v, .word = argv};
    for (int i = 0; i < argc && rc == CLI_OK; i++) {
        if (strcmp(argv[i], "--") == 0 &&
            !(only_words && strstr(v->words, "CMD"))) { /* a second one is the command's */
            only_words = true;
            c->dashes++;
            c->dash = c->nwords;
        } else if (!only_words && strncmp(argv[i], "--", 2) == 0) {
            rc = long_option(c, argc, argv, &i);
        } else if (!only_words && argv[i][0] == '-' && argv[i][1]) {
            rc = letter(c, argc, argv, &i);
        } else {
            argv[c->nwords++] = argv[i];
            only_words |= own_options_first(v); /* what follows are the command's own */
        }
    }
    return rc == CLI_OK ? words_check(v, c) : rc;
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
