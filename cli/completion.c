/* Completion scripts, printed from the table of verbs. */
#include <stdio.h>
#include <string.h>

#include "cli/verbs.h"

/* The next words after these of a name, once each: verbs of one group follow each other in the table. */
static void print_next(const char *group)
{
    size_t n = strlen(group), nlast = 0;
    const char *last = "";
    for (const struct cli_verb *v = cli_verbs; v->name; v++) {
        if (n && (strncmp(v->name, group, n) != 0 || v->name[n] != ' '))
            continue;
        const char *rest = v->name + (n ? n + 1 : 0);
        size_t len = strcspn(rest, " ");
        if (len == nlast && memcmp(last, rest, len) == 0)
            continue;
        printf("%s%.*s", nlast ? " " : "", (int)len, rest);
        last = rest;
        nlast = len;
    }
}

static void print_options(const struct cli_verb *v)
{
    const struct cli_option *o;
    for (size_t i = 0; (o = cli_option_at(v, i)) != NULL; i++)
        printf("%s--%s", i ? " " : "", o->name);
}

/* Groups have no row of their own: the first word of a verb of two. True once for each. */
static bool begins_group(const struct cli_verb *v, char group[32])
{
    size_t n = strcspn(v->name, " ");
    if (v->name[n] == '\0')
        return false;
    (void)snprintf(group, 32, "%.*s", (int)n, v->name);
    return v == cli_verbs || strncmp(v[-1].name, v->name, n + 1) != 0;
}

/* $line: the words before the one at the cursor, a blank behind each. Verbs of two words come before their group. */
static void bash(void)
{
    const struct cli_option *o;
    char group[32];
    puts("_countersign() {\n"
         "  local cur=${COMP_WORDS[COMP_CWORD]} line=\"${COMP_WORDS[*]:1:COMP_CWORD-1} \" words=\n"
         "  case \"$line\" in");
    for (const struct cli_verb *v = cli_verbs; v->name; v++)
        for (size_t i = 0; (o = cli_option_at(v, i)) != NULL; i++)
            if (o->choices)
                printf("  '%s '*'--%s ') words='%s' ;;\n", v->name, o->name, o->choices);
            else if (o->arg)
                printf("  '%s '*'--%s ') words=' ' ;;\n", v->name, o->name);
    for (const struct cli_verb *v = cli_verbs; v->name; v++) {
        printf("  '%s '*) words='", v->name);
        print_options(v);
        puts("' ;;");
    }
    for (const struct cli_verb *v = cli_verbs; v->name; v++)
        if (begins_group(v, group)) {
            printf("  '%s ') words='", group);
            print_next(group);
            puts("' ;;");
        }
    fputs("  ' ') words='", stdout);
    print_next("");
    puts("' ;;\n"
         "  esac\n"
         "  if [ \"${words#--}\" = \"$words\" ] || [ \"${cur#-}\" != \"$cur\" ]; then\n"
         "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
         "  fi\n"
         "}\n"
         "complete -o default -F _countersign countersign");
}

static void zsh(void)
{
    puts("autoload -U +X bashcompinit && bashcompinit");
    bash();
}

/* In single quotes, as fish reads them. */
static void quoted(const char *text)
{
    putchar('\'');
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    putchar('\'');
}

static void fish_option(const char *when, const struct cli_option *o)
{
    printf("complete -c countersign -n '%s' -l %s", when, o->name);
    if (o->letter)
        printf(" -s %c", o->letter);
    if (o->choices)
        printf(" -x -a '%s'", o->choices);
    else if (o->arg)
        fputs(" -r", stdout);
    fputs(" -d ", stdout);
    quoted(o->help);
    putchar('\n');
}

static void fish(void)
{
    const struct cli_option *o;
    char group[32], when[128];
    fputs("complete -c countersign -f -n __fish_use_subcommand -a '", stdout);
    print_next("");
    puts("'");
    for (const struct cli_verb *v = cli_verbs; v->name; v++) {
        size_t n = strcspn(v->name, " ");
        const char *second = v->name[n] ? v->name + n + 1 : NULL;
        if (begins_group(v, group)) {
            printf("complete -c countersign -f -n '__fish_seen_subcommand_from %s' -a '", group);
            print_next(group);
            puts("'");
        }
        (void)snprintf(when, sizeof when, "__fish_seen_subcommand_from %.*s%s%s", (int)n, v->name,
                       second ? "; and __fish_seen_subcommand_from " : "", second ? second : "");
        for (size_t i = 0; (o = cli_option_at(v, i)) != NULL; i++)
            fish_option(when, o);
    }
}

int completion_main(const struct cli_call *c)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(c->word[0], shells[i].name) == 0) {
            shells[i].print();
            return CLI_OK;
        }
    fprintf(stderr, "countersign completion: bash, zsh or fish, not %s\n", c->word[0]);
    return CLI_USAGE;
}
