/* countersign policy: its verbs, how each is used, and which options each takes. */
#include "policy/cli/policy_cli.h"

#include <stdio.h>

#include "policy/cli/replay.h"

/* takes: the options of read_args, a blank around each; NULL: the verb reads its own. */
struct policy_verb {
    const char *name, *about, *usage, *takes;
    int (*fn)(const struct policy_args *a);
    int (*own)(int argc, char **argv);
};

static const struct policy_verb verbs[] = {
    {"check", "is the file valid, and what is likely not meant",
     "[--format text|json|sarif] [--floors FILE] [--packs DIR] [--signers FILE] FILE...\n"
     "--explain CODE",
     " --format --json --floors --packs --signers --explain ", policy_cli_check, NULL},
    {"test", "requests with what must come of them, from FILE_test.yaml",
     "[--coverage] [--fail-under PERCENT] [--json] [--packs DIR] [--signers FILE] FILE_test.yaml...",
     " --coverage --fail-under --json --packs --signers ", policy_cli_test, NULL},
    {"explain", "what comes of one request, by which rule, and what would change it",
     "[OPTIONS] METHOD URL FILE...\n"
     "[OPTIONS] --curl 'curl ...' FILE...\n"
     "[OPTIONS] --record FILE|- FILE...\n"
     "    who and when  --as SANDBOX  --label KEY=VALUE  --at TIME\n"
     "    the request   --header \"NAME: VALUE\"  --body FILE  --data TEXT  --ref \"create|update|delete REF\"\n"
     "    the policy    --floors FILE  --packs DIR  --signers FILE  --json",
     " --as --label --at --header -H --body --data --ref --curl --record --floors --packs --signers --json ",
     policy_cli_explain, NULL},
    {"diff", "what one policy lets through that another does not, each with a request",
     "[OPTIONS] OLD NEW\n"
     "[OPTIONS] OLD... -- NEW...\n"
     "    --fail-on widened|any|never  --witness DIR  --json\n"
     "    --floors FILE  --old-floors FILE  --new-floors FILE  --packs DIR  --signers FILE",
     " --fail-on --witness --json --floors --old-floors --new-floors --packs --signers ", policy_cli_diff, NULL},
    {"replay", "recorded requests, judged by another policy",
     "[--since 24h|TIME] [--until TIME] [--from FILE|- | --state-dir DIR]\n"
     "    [--fail-on widened|any|never] [--json] [--floors FILE] [--packs DIR] [--signers FILE] FILE...",
     NULL, NULL, policy_cli_replay},
    {"learn", "rules proposed from recorded requests",
     "[--since 24h|TIME] [--until TIME] [--from FILE|- | --state-dir DIR]\n"
     "    [--as GLOB] [--policy FILE [--scope NAME] [--patch]] [--json] [--packs DIR] [--signers FILE]",
     NULL, NULL, policy_cli_learn},
    {"schema", "the JSON Schema of a policy, for editors", "[policy | floors | pack]", " ", policy_cli_schema, NULL},
};
/* These ask a gateway and are another room's (cli/verb_policy.c); they are listed here all the same. */
static const struct policy_verb elsewhere[] = {
    {"history", "the versions that were in force", "[--json] [--state-dir DIR]", NULL, NULL, NULL},
    {"show", "one of them, or a file of it", "DIGEST [--files | FILE] [--json] [--state-dir DIR]", NULL, NULL, NULL},
    {"rollback", "put one of them in force again, or end that",
     "DIGEST [--json] [--state-dir DIR]\n--end [--json] [--state-dir DIR]", NULL, NULL, NULL},
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

static int read_args(const struct policy_verb *verb, int argc, char **argv, struct policy_args *a)
{
    struct {
        const char *name;
        const char **one, **list;
        size_t *n;
    } options[] = {
        {"--packs", &a->packs, NULL, NULL},
        {"--signers", &a->signers, NULL, NULL},
        {"--format", &a->format, NULL, NULL},
        {"--explain", &a->code, NULL, NULL},
        {"--floors", &a->floors, NULL, NULL},
        {"--as", &a->as, NULL, NULL},
        {"--body", &a->body, NULL, NULL},
        {"--fail-under", &a->fail_under, NULL, NULL},
        {"--at", &a->at, NULL, NULL},
        {"--data", &a->data, NULL, NULL},
        {"--curl", &a->curl, NULL, NULL},
        {"--record", &a->record, NULL, NULL},
        {"--header", NULL, a->headers, &a->nheaders},
        {"-H", NULL, a->headers, &a->nheaders},
        {"--label", NULL, a->labels, &a->nlabels},
        {"--ref", NULL, a->refs, &a->nrefs},
        {"--old-floors", &a->old_floors, NULL, NULL},
        {"--new-floors", &a->new_floors, NULL, NULL},
        {"--witness", &a->witness, NULL, NULL},
        {"--fail-on", &a->fail_on, NULL, NULL},
    };
    bool only_words = false;
    for (int i = 0; i < argc; i++) {
        size_t k = 0, known = sizeof(options) / sizeof(options[0]);
        if ((only_words && strcmp(argv[i], "--") != 0) || argv[i][0] != '-' || argv[i][1] == 0) {
            if (add_word(a->words, &a->nwords, argv[i]) != 0)
                return -1;
            continue;
        }
        while (k < known && strcmp(argv[i], options[k].name) != 0)
            k++;
        if (strcmp(argv[i], "--") == 0) {
            only_words = true;
            a->dashes += 1;
            a->dash = a->nwords;
        } else if (!takes(verb, argv[i])) {
            fprintf(stderr, "countersign policy %s: %s is no option of it\n", verb->name, argv[i]);
            return -1;
        } else if (strcmp(argv[i], "--json") == 0) {
            a->json = true;
        } else if (strcmp(argv[i], "--coverage") == 0) {
            a->coverage = true;
        } else if (k == known || i + 1 == argc) {
            fprintf(stderr, "countersign policy %s: %s needs a value\n", verb->name, argv[i]);
            return -1;
        } else if (options[k].one) {
            *options[k].one = argv[++i];
        } else if (add_word(options[k].list, options[k].n, argv[++i]) != 0) {
            return -1;
        }
    }
    return 0;
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
    if (v == NULL || (v->fn == NULL && v->own == NULL))
        return policy_usage(v ? v->name : NULL);
    if (argc > 2 && strcmp(argv[2], "--help") == 0)
        return help(v->name);
    if (v->own)
        return v->own(argc - 1, argv + 1);
    return read_args(v, argc - 2, argv + 2, &a) == 0 ? v->fn(&a) : policy_usage(v->name);
}
