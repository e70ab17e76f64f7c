/* What the table says, for people: one verb, a group of them, all. And the table itself, for programs. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verbs.h"
#include "common/dynbuf.h"
#include "common/json/json.h"
#include "common/text/nearest.h"

enum { COLUMNS = 80, OPTION_COLUMN_MAX = 30, TABLE_ROOM = 256 * 1024, GROUPS_MAX = 192 };

/* --- usage --------------------------------------------------------------------- */

/* One piece of a usage, on a line of its own when the line is full. */
static void piece(FILE *to, const char *text, size_t indent, size_t *column)
{
    size_t n = strlen(text);
    if (*column > indent && *column + 1 + n > COLUMNS) {
        fprintf(to, "\n%*s", (int)indent, "");
        *column = indent;
    }
    fprintf(to, " %s", text);
    *column += 1 + n;
}

static void option_text(const struct cli_option *o, char out[64])
{
    (void)snprintf(out, 64, "[--%s%s%s]%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "", o->many ? "..." : "");
}

static void usage_print(FILE *to, const struct cli_verb *v)
{
    const char *line = v->words;
    for (bool first = true; first || *line; first = false) {
        char words[256], option[64];
        const struct cli_option *o;
        size_t n = strcspn(line, "\n");
        int indent = fprintf(to, "%s countersign %s", first ? "usage:" : "      ", v->name);
        size_t column = (size_t)indent;
        bool own = strncmp(line, "-- ", 3) == 0; /* options stand before it */
        (void)snprintf(words, sizeof words, "%.*s", (int)n, line);
        if (n && !own)
            piece(to, words, column, &column);
        for (size_t i = 0; first && (o = cli_option_at(v, i)) != NULL; i++) {
            option_text(o, option);
            piece(to, option, (size_t)indent, &column);
        }
        if (n && own)
            piece(to, words, (size_t)indent, &column);
        fputc('\n', to);
        line += n + (line[n] == '\n');
    }
}

int cli_complain(const struct cli_verb *v, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "countersign %s: ", v->name);
    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    usage_print(stderr, v);
    fprintf(stderr, "`countersign %s --help` says more.\n", v->name);
    return CLI_USAGE;
}

/* --- help ----------------------------------------------------------------------- */

static int option_head(const struct cli_option *o, char text[96])
{
    return snprintf(text, 96, "  %c%c%s--%s%s%s  ", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                    o->letter ? ", " : "  ", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
}

static void option_help(const struct cli_option *o, int column)
{
    char text[96];
    (void)option_head(o, text);
    printf("%-*s%s", column, text, o->help);
    if (o->choices)
        printf(": %s", o->choices);
    puts(o->many ? "; may be repeated" : "");
}

void cli_help_verb(const struct cli_verb *v)
{
    const struct cli_option *o;
    char text[96];
    int column = 0;
    usage_print(stdout, v);
    printf("\n  %s\n", v->help);
    for (size_t i = 0; (o = cli_option_at(v, i)) != NULL; i++) {
        int n = option_head(o, text);
        column = n > column && n <= OPTION_COLUMN_MAX ? n : column;
    }
    for (size_t i = 0; (o = cli_option_at(v, i)) != NULL; i++) {
        if (i == 0)
            putchar('\n');
        option_help(o, column);
    }
    if (v->example)
        puts("\nExample:");
    for (const char *line = v->example; line && *line; line += line[0] == '\n') {
        int n = (int)strcspn(line, "\n");
        printf("  %.*s\n", n, line);
        line += n;
    }
}

/* Does the name begin with the words of the group? *rest: what follows them. */
static bool in_group(const char *name, const char *group, const char **rest)
{
    size_t n = strlen(group);
    *rest = n ? name + n + 1 : name;
    return n == 0 || (strncmp(name, group, n) == 0 && name[n] == ' ');
}

/* What is said of several verbs with one first word. */
static const struct {
    const char *name, *help;
} groups[] = {
    {"policy", "check, test, explain and compare policies; the versions that were in force"},
    {"secret", "seal a credential's value, and what becomes of it"},
    {"approvals", "what waits for a decision, and deciding it"},
    {"sandbox", "identities for sandboxes that exist already"},
    {"checkpoint", "files of started sandboxes that outlive them"},
    {"audit", "the record of everything that was decided and sent"},
    {"ca", "the certificate that sandboxes trust"},
};

static const char *group_help(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
        if (strlen(groups[i].name) == n && memcmp(groups[i].name, name, n) == 0)
            return groups[i].help;
    return NULL;
}

size_t cli_help_group(const char *group, bool to_stderr)
{
    FILE *to = to_stderr ? stderr : stdout;
    const char *rest, *last = "";
    size_t n = 0, width = 0;
    for (const struct cli_verb *v = cli_verbs; v->name; v++)
        if (in_group(v->name, group, &rest) && strcspn(rest, " ") > width)
            width = strcspn(rest, " ");
    for (const struct cli_verb *v = cli_verbs; v->name; v++) {
        if (!in_group(v->name, group, &rest))
            continue;
        size_t len = strcspn(rest, " ");
        if (strncmp(last, rest, len) == 0 && (last[len] == ' ' || last[len] == '\0'))
            continue;
        last = rest;
        if (n++ == 0)
            fprintf(to, "usage: countersign %s%s%s [ARGUMENT...]\n\n", group, *group ? " " : "", "VERB");
        const char *words = rest[len] == ' ' ? group_help(rest, len) : NULL;
        fprintf(to, "  %-*.*s  %s\n", (int)width, (int)len, rest, words ? words : v->help);
    }
    if (n)
        fprintf(to, "\n`countersign %s%sVERB --help` says how one is used; countersign(1) says more.\n", group,
                *group ? " " : "");
    return n;
}

/* "; did you mean `policy show` or `ca show`", of the verbs whose last word this is, or is like. Are there any? */
static bool second_words(const char *word)
{
    const char *names[GROUPS_MAX + 1], *whole[GROUPS_MAX], *near;
    size_t n = 0, said = 0, all = 0;
    for (const struct cli_verb *v = cli_verbs; v->name && n < GROUPS_MAX; v++)
        if (strchr(v->name, ' ')) {
            whole[n] = v->name;
            names[n++] = strchr(v->name, ' ') + 1;
        }
    names[n] = NULL;
    near = nearest_name(span_str(word), names);
    for (size_t i = 0; near && i < n; i++)
        all += strcmp(names[i], near) == 0;
    for (size_t i = 0; near && i < n; i++)
        if (strcmp(names[i], near) == 0) {
            const char *before = said == 0 ? "; did you mean " : said + 1 == all ? " or " : ", ";
            fprintf(stderr, "%s`%s`", before, whole[i]);
            said++;
        }
    return said > 0;
}

/* Words that other programs have for what some verb here does. */
static const char *const alike[][6] = {
    {"list", "ls"},
    {"set", "create", "issue", "add", "new"},
    {"rm", "revoke", "remove", "delete", "del"},
    {"show", "get", "cat", "view"},
    {"approve", "accept", "allow"},
    {"deny", "reject", "refuse"},
    {"check", "validate", "lint"},
    {"up", "start", "serve"},
};

/* The name that does what the word says elsewhere, or NULL; like: a word that is only like one of those counts too.
 */
static const char *other_word(const char *word, const char *const *names, bool like)
{
    for (size_t i = 0; i < sizeof alike / sizeof alike[0]; i++) {
        const char *said = nearest_name(span_str(word), alike[i]);
        if (said == NULL || (!like && strcmp(said, word) != 0))
            continue;
        for (size_t k = 0; alike[i][k]; k++)
            for (size_t n = 0; names[n]; n++)
                if (strcmp(names[n], alike[i][k]) == 0)
                    return names[n];
    }
    return NULL;
}

/* What to do instead, of a word that is no verb for a reason. */
static const char *instead(const char *group, const char *word)
{
    if (*group == '\0' && (strcmp(word, "stop") == 0 || strcmp(word, "down") == 0))
        return "; what `up` started ends with Ctrl-C, or a SIGTERM to countersignd.";
    return NULL;
}

int cli_unknown(const char *group, const char *word)
{
    const char *names[GROUPS_MAX + 1], *rest;
    char heads[GROUPS_MAX][32];
    size_t n = 0;
    for (const struct cli_verb *v = cli_verbs; v->name && n < GROUPS_MAX; v++)
        if (in_group(v->name, group, &rest)) {
            (void)snprintf(heads[n], sizeof heads[n], "%.*s", (int)strcspn(rest, " "), rest);
            names[n] = heads[n];
            n++;
        }
    names[n] = NULL;
    const char *near = other_word(word, names, false);
    near = near ? near : nearest_name(span_str(word), names);
    near = near ? near : other_word(word, names, true);
    fprintf(stderr, "countersign: no verb `%s%s%s`", group, *group ? " " : "", word);
    if (instead(group, word))
        fputs(instead(group, word), stderr);
    else if (near)
        fprintf(stderr, "; did you mean `%s%s%s`?", group, *group ? " " : "", near);
    else if (*group == '\0' && second_words(word))
        putc('?', stderr);
    else
        putc('.', stderr);
    fprintf(stderr, " `countersign %s%s--help` lists them.\n", group, *group ? " " : "");
    return CLI_USAGE;
}

/* --- the table, for programs ------------------------------------------------------ */

static void option_json(struct jsonw *w, const struct cli_option *o)
{
    jsonw_object(w);
    jsonw_kv(w, "name", span_str(o->name));
    if (o->arg)
        jsonw_kv(w, "arg", span_str(o->arg));
    if (o->letter)
        jsonw_kv(w, "letter", span_of(&o->letter, 1));
    if (o->choices)
        jsonw_kv(w, "choices", span_str(o->choices));
    jsonw_kv(w, "help", span_str(o->help));
    jsonw_kv_bool(w, "many", o->many);
    jsonw_end_object(w);
}

static int print_json(void)
{
    const struct cli_option *o;
    struct dynbuf out;
    struct jsonw w;
    dynbuf_init(&out, TABLE_ROOM);
    jsonw_begin(&w, &out);
    jsonw_array(&w);
    for (const struct cli_verb *v = cli_verbs; v->name; v++) {
        jsonw_object(&w);
        jsonw_kv(&w, "name", span_str(v->name));
        jsonw_kv(&w, "words", span_str(v->words));
        jsonw_kv(&w, "help", span_str(v->help));
        jsonw_kv(&w, "example", v->example ? span_str(v->example) : SPAN_NONE);
        jsonw_kv_array(&w, "options");
        for (size_t i = 0; (o = cli_option_at(v, i)) != NULL; i++)
            option_json(&w, o);
        jsonw_end_array(&w);
        jsonw_end_object(&w);
    }
    jsonw_end_array(&w);
    bool ok = dynbuf_ok(&out) && fwrite(out.p, 1, out.n, stdout) == out.n && putchar('\n') != EOF;
    dynbuf_free(&out);
    return ok ? CLI_OK : CLI_RUNTIME;
}

int help_main(int argc, char **argv)
{
    const char *rest = "";
    char group[64] = "";
    int used;
    if (argc > 1 && strcmp(argv[1], "--json") == 0)
        return print_json();
    if (argc < 2)
        return cli_help_group("", false) ? CLI_OK : CLI_RUNTIME;
    const struct cli_verb *v = cli_find(argc - 1, argv + 1, &used);
    if (v && used == argc - 1) {
        cli_help_verb(v);
        return CLI_OK;
    }
    (void)snprintf(group, sizeof group, "%s", argv[1]);
    for (v = cli_verbs; v->name && !in_group(v->name, group, &rest);)
        v++;
    if (v->name == NULL)
        return cli_unknown("", argv[1]);
    return argc > 2 ? cli_unknown(group, argv[2]) : cli_help_group(group, false) ? CLI_OK : CLI_RUNTIME;
}
