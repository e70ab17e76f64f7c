/* countersign VERB: the way into the table of verbs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* The first word names no verb alone: a group, with what is no verb of it, or nothing at all. */
static int no_verb(int argc, char **argv)
{
    const char *next = argc > 2 ? argv[2] : NULL;
    bool asked = next && (asks_for_help(next) || strcmp(next, "help") == 0);
    if (asked && argc > 3)
        return help_main(argc - 1, (char *[]){argv[0], argv[1], argv[3], NULL});
    if (next == NULL || asked)
        return cli_help_group(argv[1], !asked) ? (asked ? CLI_OK : CLI_USAGE) : cli_unknown("", argv[1]);
    for (const struct cli_verb *v = cli_verbs; v->name; v++)
        if (strncmp(v->name, argv[1], strlen(argv[1])) == 0 && v->name[strlen(argv[1])] == ' ')
            return cli_unknown(argv[1], next);
    return cli_unknown("", argv[1]);
}

int version_main(const struct cli_call *c)
{
    puts(PACKAGE_STRING);
    return CLI_OK;
}

/* What was wrong is said; asking for help among the options is not. */
static int wrong(const struct cli_call *c, int rc)
{
    if (!c->help)
        return rc;
    cli_help_verb(c->verb);
    return CLI_OK;
}

/* These read their own options; which there are says the table alone, and it has the better words. */
static int raw(const struct cli_verb *v, int argc, char **argv)
{
    char **copy = calloc((size_t)argc, sizeof *copy); /* reading puts them in another order */
    struct cli_call c = {.verb = v};
    int rc = CLI_RUNTIME;
    if (copy) {
        memcpy(copy, argv + 1, (size_t)(argc - 1) * sizeof *copy);
        rc = cli_read(v, argc - 1, copy, &c);
    }
    free(copy);
    return rc == CLI_OK ? v->raw(argc, argv) : wrong(&c, rc);
}

int main(int argc, char **argv)
{
    static char version[] = "version";
    struct cli_call c;
    int used;

    if (argc < 2) {
        (void)cli_help_group("", true);
        return CLI_USAGE;
    }
    if (asks_for_help(argv[1]))
        return help_main(argc - 1, argv + 1);
    if (strcmp(argv[1], "--version") == 0)
        argv[1] = version;
    const struct cli_verb *v = cli_find(argc - 1, argv + 1, &used);
    if (v == NULL)
        return no_verb(argc, argv);
    if (v->raw)
        return raw(v, argc - used, argv + used);
    int rc = cli_read(v, argc - used - 1, argv + used + 1, &c);
    return rc == CLI_OK ? v->fn(&c) : wrong(&c, rc);
}
