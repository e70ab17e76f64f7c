/* countersign chat: a conversation with a model, at this terminal. What it waits for an approval of is shown here,
 * too, and decided here. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "cli/verb.h"
#include "common/text/visible.h"

enum {
    LINE_MAX_BYTES = 64 * 1024,
    BODY_ROOM = 256 * 1024,
    PATH_ROOM = 256,
    SEEN_MAX = 256,
    SHOWN_ROOM = 256 * 1024,
    LOOK_MS = 1000
};

struct chat {
    const struct cli_call *c;
    struct gateway_call g; /* of the gateway */
    char sock[PATH_MAX];   /* of the broker */
    char conversation[ID_TEXT + 1], turn[ID_TEXT + 1], after[48];
    const char *private; /* names of models, or NULL: a new conversation is one of all */
    bool json, talks;    /* talks: text was printed, and its line is open */
    int turns;           /* a file whose lock is held by who prints, the talk or what asks; it grows as it is asked */
    off_t asked;         /* how far it had grown when the talk printed last */
    int status;
};

/* Two processes print here: neither into what the other has begun. The kernel lets go of it for who ends. */
static void may_print(const struct chat *c, bool mine)
{
    struct flock l = {.l_type = mine ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET};

    while (fcntl(c->turns, F_SETLKW, &l) != 0 && errno == EINTR)
        ;
}

/* --- what waits, in a process of its own ------------------------------------------------------ */

struct waits {
    const struct chat *chat;
    char seen[SEEN_MAX][ID_TEXT + 1];
    size_t n;
};

static bool is_new(struct waits *w, struct span id)
{
    if (id.n != ID_TEXT)
        return false;
    for (size_t i = 0; i < w->n; i++)
        if (memcmp(w->seen[i], id.p, ID_TEXT) == 0)
            return false;
    if (w->n == SEEN_MAX)
        return false;
    memcpy(w->seen[w->n], id.p, ID_TEXT);
    w->seen[w->n++][ID_TEXT] = '\0';
    return true;
}

/* As if this had been typed: `countersign approvals HOW ID`. */
static int as_typed(const struct chat *c, const char *how, char *id)
{
    char *words[] = {(char[]){"approvals"}, (char *)(uintptr_t)how};
    char *word[] = {id};
    int used;
    struct cli_call call = {.word = word, .nwords = 1, .state_dir = c->c->state_dir};

    call.verb = cli_find(2, words, &used);
    return call.verb ? call.verb->fn(&call) : CLI_RUNTIME;
}

static bool still_waits(const struct chat *c, const char *id)
{
    char path[PATH_ROOM];
    struct dynbuf answer;
    struct arena a;
    struct err e;
    unsigned status = 0;

    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s", id);
    arena_init(&a, 4 * API_ANSWER_MAX);
    int rc = api_call(c->g.sock, "GET", path, SPAN_NONE, &status, &answer, &e);
    const struct json *t = rc == 0 && status == 200 ? json_parse(dynbuf_span(&answer), &a) : NULL;
    bool is = !t || span_eq(member_text(t, "state"), SPAN("pending")); /* who cannot tell asks on */
    arena_free(&a);
    dynbuf_free(&answer);
    return is;
}

/* A line that was typed after the question: 1 yes, 0 no, -1 nothing was said. A line is read to its end, whatever its
 * length, so that no rest of it answers the next question; and not by way of stdio, which may have read ahead. */
static int yes(const struct chat *c, const char *id)
{
    struct pollfd typed = {.fd = 0, .events = POLLIN};
    char line[8], byte;
    size_t n = 0;
    ssize_t got;

    while (poll(&typed, 1, LOOK_MS) == 0)
        if (!still_waits(c, id)) {
            printf("\n--- it was decided elsewhere ---\n");
            return -1;
        }
    while ((got = read(0, &byte, 1)) == 1 ? byte != '\n' : got < 0 && errno == EINTR) {
        if (got == 1 && n < sizeof(line))
            line[n++] = byte;
    }
    if (got != 1)
        return -1;
    return span_eq(span_of(line, n), SPAN("y")) || span_eq(span_of(line, n), SPAN("yes"));
}

/* What was typed before the request was shown whole answers nothing. In reverse video, which nothing a model prints
 * can have: its control characters are shown as escapes. */
static void ask_person(const struct chat *c, char *id)
{
    bool bright = isatty(1);

    may_print(c, true);
    printf("\n%s--- this waits for your approval ---%s\n", bright ? "\033[7m" : "", bright ? "\033[0m" : "");
    bool shown = as_typed(c, "show", id) == CLI_OK && fflush(stdout) == 0 && !ferror(stdout);
    if (!shown || !isatty(0) || !bright || tcflush(0, TCIFLUSH) != 0) {
        printf("--- countersign approvals approve %.8s, or deny %.8s ---\n", id, id);
    } else {
        printf("\033[7m--- approve it? [y/N]\033[0m ");
        (void)fflush(stdout);
        int said = yes(c, id);
        if (said >= 0)
            (void)as_typed(c, said ? "approve" : "deny", id);
    }
    (void)fflush(stdout);
    (void)!write(c->turns, "", 1); /* the talk's line is not open any more */
    may_print(c, false);
}

/* Those of this conversation that nobody has decided. */
static void look(struct waits *w)
{
    const struct chat *c = w->chat;
    struct dynbuf answer;
    struct arena a;
    struct err e;
    unsigned status = 0;
    char session[ID_TEXT + 3];

    (void)snprintf(session, sizeof(session), "c-%s", c->conversation);
    arena_init(&a, 4 * API_ANSWER_MAX);
    int rc = api_call(c->g.sock, "GET", "/api/v1/tickets?state=pending", SPAN_NONE, &status, &answer, &e);
    const struct json *list =
        rc == 0 && status == 200 ? json_get(json_parse(dynbuf_span(&answer), &a), SPAN("tickets")) : NULL;
    for (const struct json *t = list ? list->child : NULL; t; t = t->next)
        if (span_eq(member_text(t, "session"), span_str(session)) && is_new(w, member_text(t, "id")))
            ask_person(c, w->seen[w->n - 1]);
    arena_free(&a);
    dynbuf_free(&answer);
}

static int on_change(void *ctx, const struct api_event *ev)
{
    look(ctx);
    return 0;
}

/* The pid of who watches; -1: nobody. */
static pid_t watch(const struct chat *c)
{
    static struct waits w;
    struct err e;

    (void)fflush(stdout);
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    w = (struct waits){.chat = c};
    while (getppid() == parent) {
        look(&w);
        if (api_stream(c->g.sock, "/api/v1/events", NULL, on_change, &w, &e) < 0)
            (void)usleep(500 * 1000);
    }
    _exit(0);
}

static void unwatch(pid_t pid)
{
    if (pid <= 0)
        return;
    (void)kill(pid, SIGTERM);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* --- what happens ------------------------------------------------------------------------------ */

static void end_line(struct chat *c)
{
    if (c->talks)
        putchar('\n');
    c->talks = false;
}

/* Text of the model or of a command: on a terminal each of its lines stands behind a bar, so that none looks like a
 * line of ours. */
static void print_foreign(struct chat *c, struct span s)
{
    struct dynbuf shown;
    bool bars = isatty(1);

    dynbuf_init(&shown, SHOWN_ROOM);
    visible_text(&shown, s, true);
    for (size_t i = 0; dynbuf_ok(&shown) && i < shown.n; i++) {
        if (!c->talks && bars)
            printf("| ");
        putchar(shown.p[i]);
        c->talks = shown.p[i] != '\n';
    }
    dynbuf_free(&shown);
}

static bool lost_files(const struct json *e)
{
    const struct json *lost = json_get(e, SPAN("files_lost"));
    return lost && lost->type == JSON_BOOL && lost->truth;
}

static void say(struct chat *c, const struct api_event *ev, const struct json *e)
{
    if (span_eq(ev->name, SPAN("message.delta"))) {
        print_foreign(c, member_text(e, "text"));
    } else if (span_eq(ev->name, SPAN("tool.call"))) {
        end_line(c);
        printf("[");
        print_text(member_text(e, "tool"));
        printf("] ");
        print_text(member_text(e, "arguments"));
        putchar('\n');
    } else if (span_eq(ev->name, SPAN("tool.output"))) {
        print_foreign(c, member_text(e, "text"));
    } else if (span_eq(ev->name, SPAN("tool.done")) && !span_eq(member_text(e, "end"), SPAN("done"))) {
        end_line(c);
        printf("[");
        print_text(member_text(e, "tool"));
        printf(": ");
        print_text(member_text(e, "end"));
        printf("]\n");
        print_foreign(c, member_text(e, "result"));
        end_line(c);
    } else if (span_eq(ev->name, SPAN("turn.retry")) || span_eq(ev->name, SPAN("turn.attempt_superseded"))) {
        end_line(c);
        printf("[it begins this step again] ");
        print_text(member_text(e, "why"));
        putchar('\n');
    } else if (span_eq(ev->name, SPAN("summary.done"))) {
        end_line(c);
        printf("[older messages were summarised: the model sees the summary, and the newest ones]\n");
    } else if (span_eq(ev->name, SPAN("sandbox.started")) && lost_files(e)) {
        end_line(c);
        printf("[its sandbox is a new one: what stood in the one before is gone]\n");
    } else if (span_eq(ev->name, SPAN("tool.server")) && span_eq(member_text(e, "state"), SPAN("failed"))) {
        end_line(c);
        printf("[a server of tools failed] ");
        print_text(member_text(e, "why"));
        putchar('\n');
    } else if (span_eq(ev->name, SPAN("session_lost"))) {
        end_line(c);
        printf("[earlier events are not kept any more]\n");
    }
}

static void say_end(struct chat *c, const struct json *e)
{
    end_line(c);
    if (span_eq(member_text(e, "end"), SPAN("completed"))) {
        c->status = CLI_OK;
        return;
    }
    c->status = CLI_RUNTIME;
    print_text(member_text(e, "words"));
    putchar(' ');
    print_text(member_text(e, "why"));
    putchar('\n');
}

static int on_event(void *ctx, const struct api_event *ev)
{
    struct chat *c = ctx;
    struct arena a;
    int rc = 0;

    arena_init(&a, 4 * API_EVENT_MAX);
    const struct json *e = json_get(json_parse(ev->data, &a), SPAN("event"));
    may_print(c, true);
    if (lseek(c->turns, 0, SEEK_END) != c->asked)
        c->talks = false;
    c->asked = lseek(c->turns, 0, SEEK_END);
    if (ev->id.n && ev->id.n < sizeof(c->after))
        (void)snprintf(c->after, sizeof(c->after), "%.*s", SPAN_FMT(ev->id));
    if (c->json)
        printf("{\"event\":\"%.*s\",\"data\":%.*s}\n", SPAN_FMT(ev->name), SPAN_FMT(ev->data));
    else
        say(c, ev, e);
    if (span_eq(ev->name, SPAN("turn.done")) && span_eq(member_text(e, "turn"), span_str(c->turn))) {
        c->json ? (void)(c->status = span_eq(member_text(e, "end"), SPAN("completed")) ? CLI_OK : CLI_RUNTIME)
                : say_end(c, e);
        rc = 1;
    }
    (void)fflush(stdout);
    may_print(c, false);
    arena_free(&a);
    return rc;
}

/* To the end of the turn, whatever ends between us and it. */
static int follow(struct chat *c)
{
    char path[PATH_ROOM];
    struct err e;
    int rc = 0;

    for (int i = 0; rc <= 0 && i < 600; i++) {
        (void)snprintf(path, sizeof(path), "/stream/%s", c->conversation);
        rc = api_stream(c->sock, path, c->after, on_event, c, &e);
        if (rc <= 0)
            (void)usleep(200 * 1000);
    }
    return rc > 0 ? c->status : verb_fail(CLI_RUNTIME, "the turn goes on, and its stream cannot be read: %s", e.text);
}

/* --- what is said ------------------------------------------------------------------------------- */

static int fail(unsigned status, struct span answer)
{
    struct err e;

    (void)api_explain(status, answer, &e);
    return verb_fail(CLI_RUNTIME, "%s", e.text);
}

/* Which models may see it: names with commas between them. */
static void put_private(struct jsonw *w, struct span names)
{
    struct span name;
    bool more = true;

    jsonw_kv_array(w, "private");
    while (more) {
        more = span_cut(names, ',', &name, &names);
        jsonw_string(w, span_trim(name));
    }
    jsonw_end_array(w);
}

static int talk(struct chat *c, const char *text)
{
    struct dynbuf body, answer;
    struct jsonw w;
    struct arena a;
    struct err e;
    unsigned status = 0;

    dynbuf_init(&body, BODY_ROOM);
    jsonw_begin(&w, &body);
    jsonw_object(&w);
    jsonw_kv(&w, "message", span_str(text));
    if (c->conversation[0])
        jsonw_kv(&w, "conversation_id", span_str(c->conversation));
    else if (c->private)
        put_private(&w, span_str(c->private));
    jsonw_end_object(&w);
    arena_init(&a, 4 * API_EVENT_MAX);
    int rc = dynbuf_ok(&body) ? api_call(c->sock, "POST", "/chat", dynbuf_span(&body), &status, &answer, &e)
                              : (dynbuf_init(&answer, 1), err_set(&e, "the message is too long"));
    const struct json *j = rc == 0 && status == 202 ? json_parse(dynbuf_span(&answer), &a) : NULL;
    if (j) {
        (void)snprintf(c->conversation, sizeof(c->conversation), "%.*s", SPAN_FMT(member_text(j, "conversation_id")));
        (void)snprintf(c->turn, sizeof(c->turn), "%.*s", SPAN_FMT(member_text(j, "turn_id")));
        (void)snprintf(c->after, sizeof(c->after), "%.*s", SPAN_FMT(member_text(j, "last_event_id")));
        pid_t pid = c->json ? -1 : watch(c);
        rc = follow(c);
        unwatch(pid);
    } else {
        rc = rc != 0 ? verb_fail(CLI_RUNTIME, "%s", e.text) : fail(status, dynbuf_span(&answer));
    }
    arena_free(&a);
    dynbuf_free(&body);
    dynbuf_free(&answer);
    return rc;
}

static int list(struct chat *c)
{
    struct dynbuf answer;
    struct arena a;
    struct err e;
    unsigned status = 0;
    int rc = api_call(c->sock, "GET", "/conversations", SPAN_NONE, &status, &answer, &e);

    arena_init(&a, 4 * API_ANSWER_MAX);
    if (rc != 0 || status != 200) {
        rc = rc != 0 ? verb_fail(CLI_RUNTIME, "%s", e.text) : fail(status, dynbuf_span(&answer));
    } else if (c->json) {
        print_json_line(dynbuf_span(&answer));
    } else {
        const struct json *all = json_get(json_parse(dynbuf_span(&answer), &a), SPAN("conversations"));
        char when[32];
        for (const struct json *r = all ? all->child : NULL; r; r = r->next)
            printf("%.*s  %s  %llu messages%s%s\n", SPAN_FMT(member_text(r, "conversation_id")),
                   time_text(member_u64(r, "changed_ms"), when), (unsigned long long)member_u64(r, "messages"),
                   json_get(r, SPAN("busy")) && json_get(r, SPAN("busy"))->truth ? ", busy" : "",
                   json_get(r, SPAN("private")) ? ", private" : "");
    }
    arena_free(&a);
    dynbuf_free(&answer);
    return rc;
}

/* Lines of standard input, until it ends. */
static int converse(struct chat *c)
{
    static char line[LINE_MAX_BYTES];
    int rc = CLI_OK;

    for (;;) {
        if (isatty(0)) {
            printf("> ");
            (void)fflush(stdout);
        }
        if (!fgets(line, sizeof(line), stdin))
            break;
        size_t n = strcspn(line, "\n");
        line[n] = '\0';
        if (n > 0)
            rc = talk(c, line);
    }
    if (c->conversation[0] && !c->json)
        printf("\nIt goes on with: countersign chat --conversation %s\n", c->conversation);
    return rc;
}

static int begin(struct chat *c)
{
    const char *given = cli_value(c->c, "conversation"), *slash = strrchr(c->g.sock, '/');
    struct err e;
    struct id id;

    if (given && id_parse(span_str(given), &id) != 0)
        return verb_fail(CLI_USAGE, "that is no conversation: `countersign chat --list` has them");
    c->private = cli_value(c->c, "private");
    if (given && c->private)
        return verb_fail(CLI_USAGE, "which models may see a conversation is said when it begins, and not again");
    (void)snprintf(c->conversation, sizeof(c->conversation), "%s", given ? given : "");
    (void)snprintf(c->sock, sizeof(c->sock), "%.*s/broker.sock", slash ? (int)(slash - c->g.sock) : 0, c->g.sock);
    int runs = api_running(c->sock, &e);
    if (runs < 0)
        return verb_fail(CLI_RUNTIME, "%s", e.text);
    return runs > 0
               ? CLI_OK
               : verb_fail(CLI_STORE,
                           "no broker serves here: `broker:` in countersign.yaml makes one (in `only:`, stream)");
}

int chat_main(const struct cli_call *c)
{
    static struct chat chat;
    int rc = verb_begin(&chat.g, c);

    chat.c = c;
    chat.json = c->json;
    chat.turns = memfd_create("turns", MFD_CLOEXEC);
    if (rc == CLI_OK && chat.turns < 0)
        rc = verb_fail(CLI_RUNTIME, "the system has no memory to give");
    if (rc == CLI_OK)
        rc = begin(&chat);
    if (rc == CLI_OK)
        rc = cli_flag(c, "list") ? list(&chat) : c->nwords ? talk(&chat, c->word[0]) : converse(&chat);
    if (rc == CLI_OK && c->nwords && !chat.json && !cli_flag(c, "list"))
        fprintf(stderr, "# conversation %s\n", chat.conversation);
    verb_end(&chat.g);
    return rc;
}
