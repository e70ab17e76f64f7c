/* countersign policy check: is the file valid, and what is likely not meant. */
#include "cli/policy/policy_cli.h"

#include <stdio.h>

#include "cli/policy/check/sarif.h"
#include "cli/policy/show.h"
#include "policy/explain.h"
#include "policy/load/disk.h"

static size_t count(const struct loaded *l, char severity)
{
    size_t n = 0;
    for (size_t i = 0; i < l->problems.n; i++)
        n += l->v[i].severity == severity;
    return n;
}

static int check_files(const struct policy_args *a, bool json, bool sarif)
{
    struct loaded l;
    int rc = EXIT_POLICY_OK;
    struct policy_place place = {.paths = a->words,
                                 .n = a->nwords,
                                 .floors = a->floors,
                                 .packs = a->packs,
                                 .signers = a->signers,
                                 .roots_strict = a->roots_strict};
    if (loaded_open_place(&l, place) != 0)
        rc = EXIT_POLICY_INVALID;
    if (!sarif && !json)
        print_problems(&l, false);
    else if ((sarif ? print_sarif(&l) : json_problems(&l)) != 0)
        rc = EXIT_POLICY_RUNTIME;
    if (!json && !sarif && rc == EXIT_POLICY_OK)
        printf("%s: valid, %zu rules, %zu warnings\n", a->words[0], policy_rules(l.p), count(&l, 'W'));
    else if (!json && !sarif)
        fprintf(stderr, "%s: not valid, %zu errors, %zu warnings\n", a->words[0], count(&l, 'E'), count(&l, 'W'));
    loaded_close(&l);
    return rc;
}

int policy_cli_check(const struct policy_args *a)
{
    bool sarif = a->format && strcmp(a->format, "sarif") == 0, json = a->format && strcmp(a->format, "json") == 0;
    if (a->code && a->nwords == 0)
        return print_code(a->code);
    if (a->nwords == 0 || a->code)
        return POLICY_SHOW_USAGE;
    if (a->format && !sarif && !json && strcmp(a->format, "text") != 0) {
        fprintf(stderr, "countersign policy check: --format is text, json or sarif\n");
        return EXIT_POLICY_USAGE;
    }
    return check_files(a, json || (a->json && !a->format), sarif);
}
