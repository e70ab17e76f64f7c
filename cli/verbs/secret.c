/* countersign secret set|rotate|list|rm|check|jwks: the keeper's own socket, or, where no gateway runs, that of a
 * keeper started for it. The value is read from standard input (at a terminal without echo), goes into the keeper,
 * and is wiped here. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "common/control/api.h"
#include "common/control/own_gateway.h"
#include "cli/table.h"
#include "cli/verb.h"
#include "cli/verbs.h"
#include "common/json/json.h"
#include "common/time/clock.h"
#include "policy/load/read/scalar.h"

enum { VALUE_MAX = 64 * 1024, NAME_LEN = 128 };

struct keeper {
    char state_dir[PATH_MAX], sock[PATH_MAX];
    const char *config; /* for a keeper of our own; NULL: not said */
};

static int keeper_find(const char *state, struct keeper *k, struct err *e)
{
    if (api_state_dir(state, k->state_dir, e) != 0)
        return -1;
    int n = snprintf(k->sock, PATH_MAX, "%s/keeper.sock", k->state_dir);
    return n > 0 && n < PATH_MAX ? 0 : err_set(e, "the state directory's path is too long");
}

static int say(const struct err *e)
{
    fprintf(stderr, "countersign: %s\n", e->text);
    return CLI_RUNTIME;
}

/* Names go into a path: the keeper's own rule, checked here so that the words are good. */
static bool name_ok(const char *name)
{
    size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return n > 0 && n <= NAME_LEN && name[n] == '\0' && name[0] != '.' && name[0] != '-';
}

static int bad_name(void)
{
    fputs("countersign: a credential's name has letters, digits, dots, hyphens and underscores\n", stderr);
    return CLI_USAGE;
}

static struct termios was;

/* A Ctrl-C at the prompt must not leave the terminal mute. */
static void interrupted(int signo)
{
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &was);
    signal(signo, SIG_DFL);
    raise(signo);
}

static void echo_off(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct termios quiet = was;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        signal(ends[i], interrupted);
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet);
}

static int read_value(struct dynbuf *value, const char *name)
{
    bool tty = tcgetattr(STDIN_FILENO, &was) == 0;
    ssize_t n = 0;
    if (tty) {
        fprintf(stderr, "value of %s (not shown; end with Enter): ", name);
        echo_off();
    }
    for (;;) {
        uint8_t *room = dynbuf_room(value, 4096);
        if (room == NULL || (n = read(STDIN_FILENO, room, 4096)) <= 0)
            break;
        dynbuf_grew(value, (size_t)n);
        if (tty && value->p[value->n - 1] == '\n')
            break;
    }
    if (tty) {
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &was);
        fputc('\n', stderr);
    }
    return dynbuf_ok(value) && n >= 0 && value->n > 0 ? 0 : -1;
}

/* To the keeper of the gateway that runs; or of one of our own, which is that and the ledger alone. */
static int call(const struct keeper *k, const char *method, const char *name, struct span body, struct dynbuf *answer,
                struct err *e)
{
    char path[NAME_LEN + 64];
    const char *const more[] = {"--secrets-only", k->config ? "--config" : NULL, k->config, NULL};
    unsigned status = 0;
    pid_t own = 0;
    int rc = api_running(k->sock, e);
    if (rc == 0)
        rc = own_gateway_start(k->state_dir, more, &own, e) == CLI_OK ? 1 : -1;
    snprintf(path, sizeof(path), "/v1/secrets%s%s", *name ? "/" : "", name);
    if (rc > 0)
        rc = api_call(k->sock, method, path, body, &status, answer, e);
    own_gateway_stop(&own);
    return rc == 0 && status >= 400 ? api_explain(status, dynbuf_span(answer), e) : rc;
}

static int set(const struct keeper *k, const struct cli_call *c)
{
    const char *name = c->word[0], *keep = cli_value(c, "keep"), *wrong;
    char what[NAME_LEN + 32];
    struct dynbuf value, answer = {0};
    struct err e = {{0}};
    uint64_t ms = 0;
    int rc = CLI_OK;
    if (keep && ((wrong = scalar_time(span_str(keep), &ms)) != NULL || ms < 1000))
        return cli_complain(c->verb, "--keep %s", wrong ? wrong : "is a second at least");
    int n = snprintf(what, sizeof(what), "%s", name);
    if (keep)
        snprintf(what + n, sizeof(what) - (size_t)n, "?keep=%llu", (unsigned long long)(ms / 1000));
    dynbuf_init(&value, VALUE_MAX);
    if (read_value(&value, name) != 0) {
        fputs("countersign: no value on standard input, or more than 64 KiB\n", stderr);
        rc = CLI_USAGE;
    } else if (call(k, "PUT", what, dynbuf_span(&value), &answer, &e) != 0) {
        rc = say(&e);
    } else {
        printf("%s is sealed\n", name);
    }
    dynbuf_wipe(&value);
    dynbuf_free(&answer);
    return rc;
}

static void put_secret(struct table *t, const struct json *s)
{
    char changed[32], used[32], left[32];
    uint64_t now = clock_ns(CLOCK_REALTIME) / 1000000, last = member_u64(s, "used_ms");
    uint64_t until = member_u64(s, "earlier_until_ms");
    table_text(t, member_text(s, "name"));
    table_cell(t, "%s%s ago", t->people ? "" : "changed ", age_text(now, member_u64(s, "changed_ms"), changed));
    table_cell(t, "%llu%s%s%s", (unsigned long long)member_u64(s, "earlier"), t->people ? "" : " earlier",
               until ? " for " : "", until ? age_text(until > now ? until : now, now, left) : "");
    if (last != 0)
        table_cell(t, "%s%s ago", t->people ? "" : "used ", age_text(now, last, used));
    else
        table_cell(t, "not used since the gateway started");
    table_row(t);
}

static int list(const struct keeper *k, const struct cli_call *c)
{
    struct dynbuf answer = {0};
    struct arena a;
    struct table t;
    struct err e = {{0}};
    int rc = CLI_OK;
    arena_init(&a, 4 * 1024 * 1024);
    if (call(k, "GET", "", SPAN_NONE, &answer, &e) != 0) {
        rc = say(&e);
        goto out;
    }
    if (c->json) {
        printf("%.*s\n", SPAN_FMT(dynbuf_span(&answer)));
        goto out;
    }
    const struct json *all = json_get(json_parse(dynbuf_span(&answer), &a), SPAN("secrets"));
    table_begin(&t, "NAME\tCHANGED\tEARLIER VALUES LOOKED FOR\tLAST USE");
    for (const struct json *s = all ? all->child : NULL; s != NULL; s = s->next)
        put_secret(&t, s);
    table_end(&t, "No secret is sealed: `countersign secret set NAME` seals one.");
out:
    arena_free(&a);
    dynbuf_free(&answer);
    return rc;
}

static int drop(const struct keeper *k, const struct cli_call *c)
{
    struct dynbuf answer = {0};
    struct err e = {{0}};
    char what[NAME_LEN + 32];
    snprintf(what, sizeof(what), "%s%s", c->word[0], cli_flag(c, "earlier") ? "?earlier" : "");
    int rc = call(k, "DELETE", what, SPAN_NONE, &answer, &e) != 0 ? say(&e) : CLI_OK;
    if (rc == CLI_OK)
        printf("%s%s\n", c->word[0], cli_flag(c, "earlier") ? ": its earlier values are forgotten" : " is forgotten");
    dynbuf_free(&answer);
    return rc;
}

/* As one set, so that a key can be trusted before it is used. */
static int jwks(const struct keeper *k, const struct cli_call *c)
{
    struct dynbuf answer = {0}, set;
    struct err e = {{0}};
    char name[NAME_LEN + 8];
    int rc = CLI_OK;
    dynbuf_init(&set, 1024 * 1024);
    for (size_t i = 0; rc == CLI_OK && i < c->nwords; i++) {
        snprintf(name, sizeof(name), "%s/jwk", c->word[i]);
        if (!name_ok(c->word[i]))
            rc = bad_name();
        else if (call(k, "GET", name, SPAN_NONE, &answer, &e) != 0)
            rc = say(&e);
        else
            (void)dynbuf_addf(&set, "%s%.*s", i ? "," : "", SPAN_FMT(dynbuf_span(&answer)));
        dynbuf_free(&answer);
    }
    if (rc == CLI_OK && dynbuf_ok(&set))
        printf("{\"keys\":[%.*s]}\n", SPAN_FMT(dynbuf_span(&set)));
    dynbuf_free(&set);
    return rc;
}

/* Of the gateway that runs, for its policy says what the source is. */
static int check(const struct keeper *k, const struct cli_call *c)
{
    struct dynbuf answer = {0};
    struct arena a;
    struct err e = {{0}};
    int rc = CLI_RUNTIME;
    arena_init(&a, 1024 * 1024);
    if (verb_check_source(k->state_dir, span_str(c->word[0]), &answer, &e) != 0) {
        (void)say(&e);
        goto out;
    }
    const struct json *j = json_parse(dynbuf_span(&answer), &a), *ok = j ? json_get(j, SPAN("ok")) : NULL;
    if (ok != NULL && ok->type == JSON_BOOL && ok->truth)
        rc = CLI_OK;
    if (c->json)
        printf("%.*s\n", SPAN_FMT(dynbuf_span(&answer)));
    else if (rc == CLI_OK)
        printf("%s: its source (%.*s) gives a value that fits\n", c->word[0], SPAN_FMT(json_text(j, SPAN("source"))));
    else {
        printf("%s: ", c->word[0]);
        print_text(j ? json_text(j, SPAN("why")) : SPAN("the keeper's answer cannot be read"));
        putchar('\n');
    }
out:
    arena_free(&a);
    dynbuf_free(&answer);
    return rc;
}

static int with_keeper(const struct cli_call *c, int (*fn)(const struct keeper *k, const struct cli_call *c))
{
    struct keeper k = {.config = c->verb->options ? cli_value(c, "config") : NULL};
    struct err e = {{0}};

    if (c->nwords && !name_ok(c->word[0]))
        return bad_name();
    return keeper_find(c->state_dir, &k, &e) != 0 ? say(&e) : fn(&k, c);
}

int secret_set(const struct cli_call *c)
{
    return with_keeper(c, set);
}

int secret_rm(const struct cli_call *c)
{
    return with_keeper(c, drop);
}

int secret_list(const struct cli_call *c)
{
    return with_keeper(c, list);
}

int secret_check(const struct cli_call *c)
{
    return with_keeper(c, check);
}

int secret_jwks(const struct cli_call *c)
{
    return with_keeper(c, jwks);
}
