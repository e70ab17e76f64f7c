/* countersign policy: its verbs, how each is used, and which options each takes. */
#include "policy/cli/policy_cli.h"

#include <stdio.h>

/* takes: the options of read_args, a blank around each. */
struct policy_verb {
    const char *name, *about, *usage, *takes;
    int (*fn)(const struct policy_args *a);
};

static const struct policy_verb verbs[] = {
    {"check", "is the file valid, and what is likely not meant",
     "[--format text|json|sarif] [--floors FILE] [--packs DIR] [--signers FILE] FILE...\n"
     "--explain CODE",
     " --format --json --floors --packs --signers --explain ", policy_cli_check},
    {"test", "requests with what must come of them, from FILE_test.yaml",
     "[--coverage] [--fail-under PERCENT] [--json] [--packs DIR] [--signers FILE] FILE_test.yaml...",
     " --coverage --fail-under --json --packs --signers ", policy_cli_test},
    {"explain", "what comes of one request, by which rule, and what would change it",
     "[OPTIONS] METHOD URL FILE...\n"
     "[OPTIONS] --curl 'curl ...' FILE...\n"
     "[OPTIONS] --record FILE|- FILE...\n"
     "    who and when  --as SANDBOX  --label KEY=VALUE  --at TIME\n"
     "    the request   --header \"NAME: VALUE\"  --body FILE  --data TEXT  --ref \"create|update|delete REF\"\n"
     "    the policy    --floors FILE  --packs DIR  --signers FILE  --json",
     " --as --label --at --header -H --body --data --ref --curl --record --floors --packs --signers --json ",
     policy_cli_explain},
    {"diff", "what one policy lets through that another does not, each with a request",
     "[OPTIONS] OLD NEW\n"
     "[OPTIONS] OLD... -- NEW...\n"
     "    --fail-on widened|any|never  --witness DIR  --json\n"
     "    --floors FILE  --old-floors FILE  --new-floors FILE  --packs DIR  --signers FILE",
     " --fail-on --witness --json --floors --old-floors --new-floors --packs --signers ", policy_cli_diff},
    {"replay", "recorded requests, judged by another policy",
     "[--since 24h|TIME] [--until TIME] [--from FILE|- | --state-dir DIR]\n"
     "    [--fail-on widened|any|never] [--json] [--floors FILE] [--packs DIR] [--signers FILE] FILE...",
     " --since --until --from --state-dir --fail-on --json --floors --packs --signers ", policy_cli_replay},
    {"learn", "rules proposed from recorded requests",
     "[--since 24h|TIME] [--until TIME] [--from FILE|- | --state-dir DIR]\n"
     "    [--as GLOB] [--policy FILE [--scope NAME] [--patch]] [--json] [--packs DIR] [--signers FILE]",
     " --since --until --from --state-dir --as --policy --scope --patch --json --packs --signers ", policy_cli_learn},
    {"schema", "the JSON Schema of a policy, for editors", "[policy | floors | pack | test]", " ", policy_cli_schema},
};
/* These ask a gateway and are another room's (cli/verb_policy.c); they are listed here all the same. */
static const struct policy_verb elsewhere[] = {
    {"history", "the versions that were in force", "[--json] [--state-dir DIR]", NULL, NULL},
    {"show", "one of them, or a file of it", "DIGEST [--files | FILE] [--json] [--state-dir DIR]", NULL, NULL},
    {"rollback", "put one of them in force again, or end that",
     "DIGEST [--json] [--state-dir DIR]\n--end [--json] [--state-dir DIR]", NULL, NULL},
};

enum { VERBS = sizeof(verbs) / sizeof(verbs[0]), ELSEWHERE = sizeof(elsewhere) / sizeof(elsewhere[0]) };

static const struct policy_verb *find(const char *name)
{
    for (size_t i = 0; i < VERBS; i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    for (size_t i = 0; i < ELSEWHERE; i++)
        if (strcmp(elsewhere[i].name, name) == 0)
            return &elsewhere[i];
    return NULL;
}

/* Each line of its usage is a way to call it; one that is indented goes on with the last. */
static void print_usage(FILE *to, const struct policy_verb *v)
{
    struct span rest = span_str(v->usage), line;
    for (bool first = true; rest.n; first = false) {
        (void)span_cut(rest, '\n', &line, &rest);
        if (line.n && line.p[0] == ' ')
            fprintf(to, "    %.*s\n", SPAN_FMT(line));
        else
            fprintf(to, "%s countersign policy %s %.*s\n", first ? "usage:" : "      ", v->name, SPAN_FMT(line));
    }
}

static void print_verbs(FILE *to)
{
    fputs("usage: countersign policy VERB [ARGUMENT...]\n\n", to);
    for (size_t i = 0; i < VERBS + ELSEWHERE; i++) {
        const struct policy_verb *v = i < VERBS ? &verbs[i] : &elsewhere[i - VERBS];
        fprintf(to, "  %-10s %s\n", v->name, v->about);
    }
    fputs("\n`countersign policy help VERB` says how one is used; countersign-policy(5) says more.\n", to);
}

int policy_usage(const char *name)
{
    const struct policy_verb *v = name ? find(name) : NULL;
    if (v)
        print_usage(stderr, v);
    else
        print_verbs(stderr);
    return EXIT_POLICY_USAGE;
}

static int help(const char *name)
{
    const struct policy_verb *v = name ? find(name) : NULL;
    if (name && v == NULL) {
        fprintf(stderr, "countersign policy has no \"%s\"\n", name);
        return policy_usage(NULL);
    }
    if (v)
        print_usage(stdout, v);
    else
        print_verbs(stdout);
    if (v)
        printf("  %s\n", v->about);
    return EXIT_POLICY_OK;
}

static bool takes(const struct policy_verb *v, const char *option)
{
    size_t n = strlen(option);
    for (const char *at = strstr(v->takes, option); at; at = strstr(at + 1, option))
        if (at[-1] == ' ' && at[n] == ' ')
            return true;
    return false;
}

static int add_word(const char **list, size_t *n, const char *word)
{
    if (*n == CLI_WORDS_MAX) {
        fprintf(stderr, "countersign policy: more than %d of them\n", CLI_WORDS_MAX);
        return -1;
    }
    list[(*n)++] = word;
    return 0;
}

/* one: of the last; list: of all; flag: there is no value. */
struct option {
    const char *name;
    const char **one, **list;
    size_t *n;
    bool *flag;
};

static int take_option(const struct policy_verb *verb, const struct option *o, const char *value)
{
    if (o->flag == NULL && value == NULL) {
        fprintf(stderr, "countersign policy %s: %s needs a value\n", verb->name, o->name);
        return -1;
    }
    if (o->list)
        return add_word(o->list, o->n, value);
    if (o->flag)
        *o->flag = true;
    else
        *o->one = value;
    return 0;
}

/* argv[*i], and what follows it if that is its value. */
static int read_option(const struct policy_verb *verb, const struct option *options, size_t known, int argc,
                       char **argv, int *i)
{
    const char *word = argv[*i], *value = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    size_t k = 0, n = value ? (size_t)(value - word) : strlen(word);
    while (k < known && (strlen(options[k].name) != n || memcmp(options[k].name, word, n) != 0))
        k++;
    if (k == known || !takes(verb, options[k].name) || (value && options[k].flag)) {
        fprintf(stderr, "countersign policy %s: %s is no option of it\n", verb->name, word);
        return -1;
    }
    if (value)
        value++;
    else if (options[k].flag == NULL && *i + 1 < argc)
        value = argv[++*i];
    return take_option(verb, &options[k], value);
}

static int read_args(const struct policy_verb *verb, int argc, char **argv, struct policy_args *a)
{
    const struct option options[] = {
        {"--packs", &a->packs, NULL, NULL, NULL},
        {"--signers", &a->signers, NULL, NULL, NULL},
        {"--format", &a->format, NULL, NULL, NULL},
        {"--explain", &a->code, NULL, NULL, NULL},
        {"--floors", &a->floors, NULL, NULL, NULL},
        {"--as", &a->as, NULL, NULL, NULL},
        {"--body", &a->body, NULL, NULL, NULL},
        {"--fail-under", &a->fail_under, NULL, NULL, NULL},
        {"--at", &a->at, NULL, NULL, NULL},
        {"--data", &a->data, NULL, NULL, NULL},
        {"--curl", &a->curl, NULL, NULL, NULL},
        {"--record", &a->record, NULL, NULL, NULL},
        {"--header", NULL, a->headers, &a->nheaders, NULL},
        {"-H", NULL, a->headers, &a->nheaders, NULL},
        {"--label", NULL, a->labels, &a->nlabels, NULL},
        {"--ref", NULL, a->refs, &a->nrefs, NULL},
        {"--old-floors", &a->old_floors, NULL, NULL, NULL},
        {"--new-floors", &a->new_floors, NULL, NULL, NULL},
        {"--witness", &a->witness, NULL, NULL, NULL},
        {"--fail-on", &a->fail_on, NULL, NULL, NULL},
        {"--since", &a->source.since, NULL, NULL, NULL},
        {"--until", &a->source.until, NULL, NULL, NULL},
        {"--from", &a->source.from, NULL, NULL, NULL},
        {"--state-dir", &a->source.state_dir, NULL, NULL, NULL},
        {"--policy", &a->policy, NULL, NULL, NULL},
        {"--scope", &a->scope, NULL, NULL, NULL},
        {"--json", NULL, NULL, NULL, &a->json},
        {"--coverage", NULL, NULL, NULL, &a->coverage},
        {"--patch", NULL, NULL, NULL, &a->patch},
    };
    bool only_words = false;
    int rc = 0;
    for (int i = 0; i < argc && rc == 0; i++) {
        if (strcmp(argv[i], "--") == 0) {
            only_words = true;
            a->dashes += 1;
            a->dash = a->nwords;
        } else if (only_words || argv[i][0] != '-' || argv[i][1] == 0) {
            rc = add_word(a->words, &a->nwords, argv[i]);
        } else {
            rc = read_option(verb, options, sizeof(options) / sizeof(options[0]), argc, argv, &i);
        }
    }
    return rc;
}

int policy_cli_main(int argc, char **argv)
{
    struct policy_args a = {0};
    if (argc < 2)
        return policy_usage(NULL);
    if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0)
        return help(argc > 2 ? argv[2] : NULL);
    if (strcmp(argv[1], "import") == 0) {
        fputs("countersign policy import is not available yet\n", stderr);
        return EXIT_POLICY_USAGE;
    }
    const struct policy_verb *v = find(argv[1]);
    if (v == NULL)
        fprintf(stderr, "countersign policy has no \"%s\"\n", argv[1]);
    if (v == NULL || v->fn == NULL)
        return policy_usage(v ? v->name : NULL);
    if (argc > 2 && strcmp(argv[2], "--help") == 0)
        return help(v->name);
    return read_args(v, argc - 2, argv + 2, &a) == 0 ? v->fn(&a) : policy_usage(v->name);
}
