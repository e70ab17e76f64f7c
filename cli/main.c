/* countersign VERB: the table of verbs and the way into it. */
#include "cli/api.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

#include "cli/verbs.h"
#include "policy/cli/source.h"
#include "sandbox-shim/run.h"

static int verb_version(int argc, char **argv);
static int verb_help(int argc, char **argv);

const struct verb cli_verbs[] = {
    {"up",
     "[--config FILE] [--policy FILE] [--state-dir DIR] [--data-dir DIR] [--private] [--quiet] [--ready-fd N] "
     "[--check-config]",
     "run the gateway in the foreground", up_main},
    {"run",
     "[--policy FILE] [--with NAME]... [--workspace DIR] [--name NAME] [--read DIR]... [--setenv NAME=VALUE]... "
     "[--state-dir DIR] [--transparent] [--bwrap FILE] -- CMD [ARG...]",
     "run a command in a sandbox that holds no secret", run_main},
    {"policy", "VERB [ARGUMENT...], or help [VERB]",
     "check, test, explain and compare policies; the versions that were in force", policy_main},
    {"secret", "set|rotate|rm NAME | list [--json]", "seal a credential's value, read from standard input",
     verb_secret},
    {"approvals",
     "list [--state STATE | --all] | show ID [--body] | approve ID [--reason WORDS] [--digest HEX] | deny ID "
     "[--reason WORDS] "
     "| watch",
     "what waits for a decision, and deciding it", approvals_main},
    {"sandbox",
     "create [NAME] [--session NAME] [--label KEY=VALUE]... [--format FORMAT] [--via http|socks5] [--dir DIR] | list "
     "| rm NAME [--end-session]",
     "identities for sandboxes that exist already", sandbox_main},
    {"env",
     "NAME [--token TOKEN | --revoke-others] [--format shell|docker|compose|kubernetes|github] [--via http|socks5] "
     "[--dir DIR]",
     "the variables that lead a sandbox's tools through the gateway", env_main},
    {"audit",
     "tail [-f] [-n LINES] [--all] | export [--since 24h|TIME] [--until TIME] [--kind KIND] | verify [--head "
     "SEQ:HASH]",
     "the record of everything that was decided and sent", audit_main},
    {"ca", "show | bundle | truststore | export DIR | nss DIR", "the certificate that sandboxes trust", ca_main},
    {"freeze", "[--reason WORDS]", "refuse every write, at once", freeze_main},
    {"thaw", "[--reason WORDS]", "let writes be decided again", thaw_main},
    {"reload", "", "read the policy again", reload_main},
    {"status", "", "what runs", status_main},
    {"signin", "", "print a link to the approval page that opens once", signin_main},
    {"doctor", "[--from-sandbox [--direct HOST:PORT]...] [--json]",
     "what is wrong, here or in a sandbox, and what to do", doctor_main},
    {"version", "", "print the version", verb_version},
    {"help", "[VERB]", "print this, or how to use one verb", verb_help},
    {NULL, NULL, NULL, NULL},
};

const struct verb *cli_verb(const char *name)
{
    for (const struct verb *v = cli_verbs; v->name; v++)
        if (strcmp(v->name, name) == 0)
            return v;
    return NULL;
}

int cli_usage(const char *name)
{
    const struct verb *v = cli_verb(name);

    if (v)
        fprintf(stderr, "usage: countersign %s %s\n", v->name, v->usage);
    return CLI_USAGE;
}

static void help_print(FILE *to)
{
    fputs("usage: countersign VERB [ARGUMENT...]\n\n", to);
    for (const struct verb *v = cli_verbs; v->name; v++)
        fprintf(to, "  %-10s %s\n", v->name, v->help);
    fputs("\n`countersign help VERB` says how one is used; countersign(1) says more.\n", to);
}

static int verb_version(int argc, char **argv)
{
    puts(PACKAGE_STRING);
    return CLI_OK;
}

static void help_verb(const struct verb *v)
{
    printf("countersign %s%s%s\n  %s\n", v->name, v->usage[0] ? " " : "", v->usage, v->help);
}

static int verb_help(int argc, char **argv)
{
    const struct verb *v;

    if (argc < 2) {
        help_print(stdout);
        return CLI_OK;
    }
    v = cli_verb(argv[1]);
    if (!v) {
        fprintf(stderr, "countersign: no verb `%s`; `countersign help` lists them\n", argv[1]);
        return CLI_USAGE;
    }
    help_verb(v);
    return CLI_OK;
}

int main(int argc, char **argv)
{
    const struct verb *v;
    const char *name;

    if (argc < 2) {
        help_print(stderr);
        return CLI_USAGE;
    }
    name = argv[1];
    if (strcmp(name, "--version") == 0)
        name = "version";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    v = cli_verb(name);
    if (!v) {
        fprintf(stderr, "countersign: no verb `%s`; `countersign help` lists them\n", name);
        return CLI_USAGE;
    }
    if (argc > 2 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
        help_verb(v);
        return CLI_OK;
    }
    source_state_dir(api_state_dir);
    return v->fn(argc - 1, argv + 1);
}
