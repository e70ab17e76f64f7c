#include "policy/cli/policy_cli.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/id.h"
#include "common/json/json.h"
#include "policy/load/disk.h"

enum { PROBLEMS_MAX = 1000 };

static int usage(void)
{
    fputs("usage: countersign policy check [--json] [--packs DIR] [--floors FILE] FILE...\n"
          "       countersign policy test [--json] [--packs DIR] FILE_test.yaml...\n"
          "       countersign policy explain [--json] [--packs DIR] [--floors FILE] [--as SANDBOX] [--label "
          "KEY=VALUE]\n"
          "                          [--header \"NAME: VALUE\"] [--body FILE] METHOD URL FILE...\n"
          "       countersign policy schema [policy | floors | pack]\n",
          stderr);
    return EXIT_POLICY_USAGE;
}

int loaded_open(struct loaded *l, const char *const *paths, size_t n, const char *floors, const char *packs)
{
    *l = (struct loaded){0};
    dynbuf_init(&l->image, POLICY_IMAGE_MAX);
    l->v = calloc(PROBLEMS_MAX, sizeof(*l->v));
    l->problems = (struct policy_problems){l->v, 0, l->v ? PROBLEMS_MAX : 0};
    if (policy_load_from_disk(paths, n, floors, packs, &l->image, &l->problems, &l->e) != 0)
        return -1;
    l->p = policy_open(dynbuf_span(&l->image), &l->e);
    return l->p ? 0 : -1;
}

void loaded_close(struct loaded *l)
{
    policy_close(l->p);
    dynbuf_free(&l->image);
    free(l->v);
    *l = (struct loaded){0};
}

static size_t count(const struct loaded *l, char severity)
{
    size_t n = 0;
    for (size_t i = 0; i < l->problems.n; i++)
        n += l->v[i].severity == severity;
    return n;
}

static void json_problems(const struct loaded *l)
{
    struct dynbuf out;
    struct jsonw w;
    char hex[2 * DIGEST_BYTES + 1];
    dynbuf_init(&out, 4 << 20);
    jsonw_begin(&w, &out);
    jsonw_object(&w);
    jsonw_key(&w, "valid");
    jsonw_bool(&w, l->p != NULL);
    if (l->p) {
        hex_text(policy_digest(l->p), hex);
        jsonw_kv(&w, "digest", span_str(hex));
        jsonw_kv_u64(&w, "rules", policy_rules(l->p));
    }
    jsonw_key(&w, "problems");
    jsonw_array(&w);
    for (size_t i = 0; i < l->problems.n; i++) {
        jsonw_object(&w);
        jsonw_kv(&w, "code", span_str(l->v[i].code));
        jsonw_kv(&w, "severity", l->v[i].severity == 'E' ? SPAN("error") : SPAN("warning"));
        jsonw_kv(&w, "where", span_str(l->v[i].where));
        jsonw_kv(&w, "text", span_str(l->v[i].text));
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    jsonw_end_object(&w);
    if (dynbuf_ok(&out))
        printf("%.*s\n", SPAN_FMT(dynbuf_span(&out)));
    dynbuf_free(&out);
}

void print_problems(const struct loaded *l, bool json)
{
    if (json) {
        json_problems(l);
        return;
    }
    for (size_t i = 0; i < l->problems.n; i++)
        fprintf(stderr, "%s: %s %s: %s\n", l->v[i].where, l->v[i].severity == 'E' ? "error" : "warning", l->v[i].code,
                l->v[i].text);
    if (l->p == NULL && l->problems.n == 0)
        fprintf(stderr, "%s\n", l->e.text);
}

int policy_cli_check(const struct policy_args *a)
{
    struct loaded l;
    int rc = a->nwords == 0 ? usage() : EXIT_POLICY_OK;
    if (rc != EXIT_POLICY_OK)
        return rc;
    if (loaded_open(&l, a->words, a->nwords, a->floors, a->packs) != 0)
        rc = EXIT_POLICY_INVALID;
    print_problems(&l, a->json);
    if (!a->json && rc == EXIT_POLICY_OK)
        printf("%s: valid, %zu rules, %zu warnings\n", a->words[0], policy_rules(l.p), count(&l, 'W'));
    else if (!a->json)
        fprintf(stderr, "%s: not valid, %zu errors, %zu warnings\n", a->words[0], count(&l, 'E'), count(&l, 'W'));
    loaded_close(&l);
    return rc;
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

static int read_args(int argc, char **argv, struct policy_args *a)
{
    struct {
        const char *name;
        const char **one, **list;
        size_t *n;
    } options[] = {
        {"--packs", &a->packs, NULL, NULL},
        {"--floors", &a->floors, NULL, NULL},
        {"--as", &a->as, NULL, NULL},
        {"--body", &a->body, NULL, NULL},
        {"--header", NULL, a->headers, &a->nheaders},
        {"-H", NULL, a->headers, &a->nheaders},
        {"--label", NULL, a->labels, &a->nlabels},
    };
    bool only_words = false;
    for (int i = 0; i < argc; i++) {
        size_t k = 0, known = sizeof(options) / sizeof(options[0]);
        if (only_words || argv[i][0] != '-' || argv[i][1] == 0) {
            if (add_word(a->words, &a->nwords, argv[i]) != 0)
                return -1;
            continue;
        }
        while (k < known && strcmp(argv[i], options[k].name) != 0)
            k++;
        if (strcmp(argv[i], "--") == 0) {
            only_words = true;
        } else if (strcmp(argv[i], "--json") == 0) {
            a->json = true;
        } else if (k == known || i + 1 == argc) {
            fprintf(stderr, "countersign policy: %s%s\n", argv[i],
                    k == known ? " is no option of it" : " needs a value");
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
    static const struct {
        const char *name;
        int (*fn)(const struct policy_args *a);
    } verbs[] = {{"check", policy_cli_check},
                 {"test", policy_cli_test},
                 {"explain", policy_cli_explain},
                 {"schema", policy_cli_schema}};
    static const char *const later[] = {"diff", "replay", "learn", "history", "rollback", "import"};
    struct policy_args a = {.as = "sandbox"};
    if (argc < 2)
        return usage();
    for (size_t i = 0; i < sizeof(later) / sizeof(later[0]); i++)
        if (strcmp(argv[1], later[i]) == 0) {
            fprintf(stderr, "countersign policy %s is not available yet\n", argv[1]);
            return EXIT_POLICY_USAGE;
        }
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return read_args(argc - 2, argv + 2, &a) == 0 ? verbs[i].fn(&a) : usage();
    fprintf(stderr, "countersign policy has no \"%s\"\n", argv[1]);
    return usage();
}
