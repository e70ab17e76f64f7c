/* countersign policy check: is the file valid, and what is likely not meant. */
#include "cli/policy/loaded.h"

#include <stdio.h>

#include "cli/policy/check/sarif.h"
#include "policy/explain.h"
#include "common/net/tls.h"

static size_t count(const struct loaded *l, char severity)
{
    size_t n = 0;
    for (size_t i = 0; i < l->problems.n; i++)
        n += l->v[i].severity == severity;
    return n;
}

static int check_files(const struct cli_call *c, bool json, bool sarif)
{
    struct loaded l;
    int rc = CLI_OK;
    struct policy_place place = {.paths = (const char *const *)c->word,
                                 .n = c->nwords,
                                 .floors = cli_value(c, "floors"),
                                 .packs = cli_value(c, "packs"),
                                 .signers = cli_value(c, "signers"),
                                 .roots_strict = tls_roots_strict};
    if (loaded_open(&l, place) != 0)
        rc = CLI_INVALID;
    if (!sarif && !json)
        loaded_print(&l, false);
    else if ((sarif ? sarif_print(&l) : loaded_json(&l)) != 0)
        rc = CLI_RUNTIME;
    if (!json && !sarif && rc == CLI_OK)
        printf("%s: valid, %zu rules, %zu warnings\n", c->word[0], policy_rules(l.p), count(&l, 'W'));
    else if (!json && !sarif)
        fprintf(stderr, "%s: not valid, %zu errors, %zu warnings\n", c->word[0], count(&l, 'E'), count(&l, 'W'));
    loaded_close(&l);
    return rc;
}

int policy_check(const struct cli_call *c)
{
    const char *code = cli_value(c, "explain"), *format = cli_value(c, "format");
    if (code && c->nwords == 0)
        return sarif_print_code(code);
    if (c->nwords == 0 || code)
        return cli_complain(c->verb, code ? "--explain takes no FILE" : "FILE is missing");
    return check_files(c, format ? strcmp(format, "json") == 0 : c->json, format && strcmp(format, "sarif") == 0);
}
