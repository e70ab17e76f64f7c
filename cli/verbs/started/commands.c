/* countersign sandbox exec|shell|ps|attach|kill: commands in sandboxes that the gateway itself started. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/verbs/started/follow.h"
#include "cli/verbs/started/started.h"
#include "common/text/utf8.h"

enum { ENV_MAX = CLI_GIVEN_MAX, SHELL_S = 86400 };

/* What is asked for beside what both verbs take from the command line. */
struct asked {
    const char *const *argv;
    size_t nargs;
    bool input, terminal, detached, undo;
    const char *lane;   /* NULL: its sandbox's */
    uint64_t timeout_s; /* unless it is given; 0: as long as the gateway likes */
};

/* It goes as JSON, in which another byte would become another character, and a name that of another file. */
static int put_word(struct jsonw *w, const char *word)
{
    struct span s = span_str(word);

    jsonw_string(w, s);
    return utf8_run(s) == s.n ? CLI_OK
                              : verb_fail(CLI_USAGE, "a command is told to a sandbox as UTF-8, and a word of it is "
                                                     "not; a shell inside can make such bytes with printf");
}

/* Those that are given, and, at a terminal, what kind of one it is. */
static int put_env(struct jsonw *w, const struct cli_call *c, bool terminal)
{
    const char *variable[ENV_MAX], *kind = getenv("TERM");
    size_t n = cli_values(c, "env", variable, ENV_MAX);
    char term[128];
    int rc = CLI_OK;

    jsonw_kv_array(w, "env");
    if (terminal && kind && snprintf(term, sizeof(term), "TERM=%s", kind) < (int)sizeof(term) &&
        utf8_run(span_str(term)) == strlen(term))
        jsonw_string(w, span_str(term));
    for (size_t i = 0; rc == CLI_OK && i < n; i++)
        rc = put_word(w, variable[i]);
    jsonw_end_array(w);
    return rc;
}

static void put_input(struct jsonw *w, const struct asked *a)
{
    unsigned rows, columns;

    if (a->terminal) {
        terminal_size(&rows, &columns);
        jsonw_kv_bool(w, "tty", true);
        jsonw_kv_u64(w, "rows", rows);
        jsonw_kv_u64(w, "columns", columns);
    } else if (a->detached) {
        jsonw_kv_bool(w, "detach", true);
    } else if (a->input) {
        jsonw_kv_bool(w, "input", true);
    }
}

static int request(const struct cli_call *c, const struct asked *a, struct dynbuf *body)
{
    const char *dir = cli_value(c, "dir");
    int rc = CLI_OK;
    struct jsonw w;

    jsonw_begin(&w, body);
    jsonw_object(&w);
    jsonw_kv_array(&w, "argv");
    for (size_t i = 0; rc == CLI_OK && i < a->nargs; i++)
        rc = put_word(&w, a->argv[i]);
    jsonw_end_array(&w);
    if (rc == CLI_OK)
        rc = put_env(&w, c, a->terminal);
    put_input(&w, a);
    if (a->undo)
        jsonw_kv_bool(&w, "undo", true);
    if (rc == CLI_OK && a->lane)
        jsonw_kv(&w, "lane", span_str(a->lane));
    if (rc == CLI_OK && dir) {
        jsonw_key(&w, "dir");
        rc = put_word(&w, dir);
    }
    if (rc == CLI_OK && a->timeout_s > 0 && !cli_value(c, "timeout"))
        jsonw_kv_u64(&w, "timeout", a->timeout_s);
    if (rc == CLI_OK)
        rc = started_put_seconds(&w, c, "timeout");
    if (rc == CLI_OK)
        rc = started_put_bytes(&w, c, "output", 0);
    jsonw_end_object(&w);
    return rc == CLI_OK && !dynbuf_ok(body) ? verb_fail(CLI_USAGE, "the command is longer than 64 KiB") : rc;
}

/* What is wrong with what is asked for, beside its words; or NULL. */
static const char *asked_wrong(const struct cli_call *c, const struct asked *a)
{
    if (a->detached && (a->input || a->terminal || cli_value(c, "output")))
        return "with --detach it has no --stdin and no --tty, and the last of its output is kept whatever --output "
               "says";
    if (a->input && a->terminal)
        return "--tty is a --stdin";
    if (a->terminal && c->json)
        return "a terminal's output is no --json";
    if (a->terminal && !terminal_here())
        return "this needs a terminal, as standard input and output";
    return started_name_wrong(c->word[0]);
}

/* What it is called alone, which the other verbs take. */
static int detach(struct gateway_call *g, const char *path, struct span body, bool undo)
{
    int rc =
        undo ? verb_ask_long(g, "POST", path, body, 201, "its files are kept") : verb_ask(g, "POST", path, body, 201);

    if (rc == CLI_OK && g->json)
        verb_print_answer(g);
    else if (rc == CLI_OK)
        printf("%.*s\n", SPAN_FMT(member_text(g->tree, "command")));
    if (rc == CLI_OK && !g->json && member_u64(g->tree, "step"))
        fprintf(stderr, "countersign: step %llu\n", (unsigned long long)member_u64(g->tree, "step"));
    return rc == CLI_OK ? rc : EXIT_LOST;
}

static int run(const struct cli_call *c, const struct asked *a)
{
    struct follow f = {.json = c->json, .input = a->input || a->terminal, .terminal = a->terminal};
    const char *wrong = asked_wrong(c, a);
    struct gateway_call g;
    struct dynbuf body;
    char path[PATH_ROOM];
    int rc = verb_begin(&g, c);

    dynbuf_init(&body, BODY_MAX);
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    if (rc == CLI_OK)
        rc = request(c, a, &body);
    f.sock = g.sock;
    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/exec", c->word[0]);
    if (rc == CLI_OK)
        rc = a->detached ? detach(&g, path, dynbuf_span(&body), a->undo) : follow_run(&f, path, dynbuf_span(&body));
    dynbuf_free(&body);
    verb_end(&g);
    return rc;
}

int sandbox_exec(const struct cli_call *c)
{
    return run(c, &(struct asked){.argv = (const char *const *)c->word + 1,
                                  .nargs = c->nwords - 1,
                                  .input = cli_flag(c, "stdin"),
                                  .terminal = cli_flag(c, "tty"),
                                  .detached = cli_flag(c, "detach"),
                                  .lane = cli_value(c, "lane"),
                                  .undo = cli_flag(c, "undo")});
}

int sandbox_shell(const struct cli_call *c)
{
    static const char *const shell[] = {"sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"};

    return run(c,
               &(struct asked){
                   .argv = shell, .nargs = sizeof(shell) / sizeof(shell[0]), .terminal = true, .timeout_s = SHELL_S});
}

/* --- those there are -------------------------------------------------------------------- */

static bool is_true(const struct json *j, const char *key)
{
    const struct json *m = json_get(j, span_str(key));

    return m && m->truth;
}

static void print_command(const struct json *r)
{
    const struct json *argv = json_get(r, SPAN("argv"));
    struct span state = member_text(r, "state");
    char age[32], command[48];

    (void)snprintf(command, sizeof(command), "%.*s", SPAN_FMT(member_text(r, "command")));
    printf("%-5s %-8s ", command, age_text(member_u64(r, "age_ms"), 0, age));
    print_text(state);
    if (span_eq(state, SPAN("exited")))
        printf(" %llu", (unsigned long long)member_u64(r, "status"));
    else if (span_eq(state, SPAN("signalled")))
        printf(" %llu", (unsigned long long)member_u64(r, "signal"));
    if (is_true(r, "detached"))
        fputs(is_true(r, "followed") ? ", detached, followed" : ", detached", stdout);
    fputs("  ", stdout);
    for (const struct json *a = argv ? argv->child : NULL; a; a = a->next) {
        print_text(a->text);
        if (a->next)
            putchar(' ');
    }
    puts(is_true(r, "cut") ? " ..." : "");
}

int sandbox_ps(const struct cli_call *c)
{
    const char *wrong = started_name_wrong(c->word[0]);
    struct gateway_call g;
    char path[PATH_ROOM];
    int rc = verb_begin(&g, c);

    (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%.63s/commands", c->word[0]);
    if (rc == CLI_OK && wrong)
        rc = verb_fail(CLI_USAGE, "%s", wrong);
    if (rc == CLI_OK)
        rc = verb_ask(&g, "GET", path, SPAN_NONE, 200);
    const struct json *rows = rc == CLI_OK ? json_get(g.tree, SPAN("commands")) : NULL;
    if (rc == CLI_OK && g.json)
        verb_print_answer(&g);
    else
        for (const struct json *r = rows ? rows->child : NULL; r; r = r->next)
            print_command(r);
    verb_end(&g);
    return rc;
}

int sandbox_command_id(const struct cli_call *c)
{
    struct span generation, number;
    uint64_t n;

    if (span_cut(span_str(c->word[1]), '.', &generation, &number) && span_u64(generation, INT64_MAX, &n) == 0 &&
        span_u64(number, UINT32_MAX, &n) == 0 && n > 0)
        return CLI_OK;
    return verb_fail(CLI_USAGE,
                     "%s is not what a command is called, as 3.7 is; `countersign sandbox ps %s` lists them",
                     c->word[1], c->word[0]);
}

/* The command that NAME ID is, for what is asked of it there: where. */
static int command_named(const struct cli_call *c, const char *what, char path[PATH_ROOM])
{
    const char *wrong = started_name_wrong(c->word[0]);

    if (wrong)
        return verb_fail(CLI_USAGE, "%s", wrong);
    if (sandbox_command_id(c) != CLI_OK)
        return CLI_USAGE;
    (void)snprintf(path, PATH_ROOM, "/api/v1/sandboxes/%.63s/%s", c->word[0], what);
    return CLI_OK;
}

int sandbox_attach(const struct cli_call *c)
{
    struct follow f = {.json = c->json};
    struct gateway_call g;
    char path[PATH_ROOM], body[128];
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = command_named(c, "attach", path);
    f.sock = g.sock;
    (void)snprintf(body, sizeof(body), "{\"command\":\"%.48s\"}", c->word[1]);
    if (rc == CLI_OK)
        rc = follow_run(&f, path, span_str(body));
    verb_end(&g);
    return rc;
}

/* TERM, SIGTERM or 15. */
static int signal_take(const char *given, int *number)
{
    uint64_t n;

    if (span_u64(span_str(given), 64, &n) == 0 && n > 0) {
        *number = (int)n;
        return CLI_OK;
    }
    for (int i = 1; i < NSIG; i++) {
        const char *name = sigabbrev_np(i);
        if (name && strcmp(given + (strncmp(given, "SIG", 3) == 0 ? 3 : 0), name) == 0) {
            *number = i;
            return CLI_OK;
        }
    }
    return verb_fail(CLI_USAGE, "%s is no signal; TERM, KILL, INT, HUP or a number is", given);
}

int sandbox_kill(const struct cli_call *c)
{
    struct gateway_call g;
    char path[PATH_ROOM], body[128];
    int signo = SIGTERM, rc = verb_begin(&g, c);

    if (rc == CLI_OK)
        rc = command_named(c, "signal", path);
    if (rc == CLI_OK && c->nwords > 2)
        rc = signal_take(c->word[2], &signo);
    (void)snprintf(body, sizeof(body), "{\"command\":\"%.48s\",\"signal\":%d}", c->word[1], signo);
    if (rc == CLI_OK)
        rc = verb_ask(&g, "POST", path, span_str(body), 204);
    verb_end(&g);
    return rc;
}
