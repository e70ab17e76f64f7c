/* countersign approvals watch, at a terminal: what waits, and one of them whole; keys that move, and two that decide.
 * A yes is taken only of what stands whole on the screen, the digest of which goes with it; of all else the page's
 * address is said. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/verbs/watch/watch.h"
#include "common/text/utf8.h"
#include "common/text/visible.h"

enum {
    ROWS_MAX = 500,
    WORDS_MAX = 300,
    SAID_MAX = 400,
    PATH_ROOM = 160,
    FOOT = 2,     /* lines below the text */
    ARM_MS = 600, /* nobody reads faster */
    LOOK_S = 15,  /* the list is asked for anew even if nothing was heard */
    TEXT_MAX = 8 * 1024 * 1024,
};

enum view { VIEW_LIST = 0, VIEW_TICKET };
enum typing { TYPING_NOTHING = 0, TYPING_NAME, TYPING_YES, TYPING_NO };
enum key { KEY_NONE = 0, KEY_DOWN = 256, KEY_UP, KEY_BACK, KEY_ENTER, KEY_ERASE, KEY_PAGE };

struct waiting {
    char id[ID_TEXT + 1];
    char *line; /* what it says, shown already as print_text shows it */
};

struct watch {
    struct gateway_call g;
    const struct cli_call *c;
    struct terminal terminal;
    unsigned rows, columns;
    sigset_t waiting; /* the signals that are let through while it waits */
    int events;       /* a byte for each */
    pid_t listener;
    char page[256]; /* its address; empty: not known */
    struct waiting list[ROWS_MAX];
    size_t n, cursor;
    enum view view;
    /* the one that is open */
    char id[ID_TEXT + 1], digest[80];
    char *text;
    size_t ntext, scroll;
    bool pending, readable, named, reasoned;
    struct lines lines;
    uint64_t shown_ms;
    /* what is being typed, and what is said in the last line */
    enum typing typing;
    char name[WORDS_MAX], words[WORDS_MAX], said[SAID_MAX];
    size_t nwords;
    bool over;
};

static volatile sig_atomic_t resized, ended;

static void on_signal(int n)
{
    if (n == SIGWINCH)
        resized = 1;
    else
        ended = 1;
}

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void say(struct watch *w, const char *words, struct span foreign)
{
    struct dynbuf b;

    dynbuf_init(&b, 64 * 1024);
    visible_text(&b, span_first(foreign, foreign.n < SAID_MAX ? foreign.n : SAID_MAX), false);
    (void)snprintf(w->said, sizeof(w->said), "%s%.*s", words, dynbuf_ok(&b) ? (int)b.n : 0,
                   b.n ? (const char *)b.p : "");
    dynbuf_free(&b);
}

/* As verb_ask, but what goes wrong is said on the screen. */
static bool ask(struct watch *w, const char *method, const char *path, struct span body)
{
    struct gateway_call *g = &w->g;
    struct err e;

    dynbuf_free(&g->answer);
    arena_free(&g->arena);
    g->tree = NULL;
    if (api_call(g->sock, method, path, body, &g->status, &g->answer, &e) != 0 ||
        (g->status >= 400 && api_explain(g->status, dynbuf_span(&g->answer), &e) != 0)) {
        say(w, "", span_str(e.text));
        return false;
    }
    arena_init(&g->arena, TEXT_MAX * 4);
    g->tree = json_parse(dynbuf_span(&g->answer), &g->arena);
    return g->tree != NULL;
}

/* What fn prints to stdout, as text that is malloced. */
static char *printed(void (*fn)(struct watch *w), struct watch *w, size_t *n)
{
    char *text = NULL;
    FILE *screen = stdout, *to = open_memstream(&text, n);

    if (!to)
        return NULL;
    stdout = to;
    fn(w);
    stdout = screen;
    (void)fclose(to);
    return text;
}

/* --- the list --------------------------------------------------------------------------- */

static const struct json *row_now;

static void print_row(struct watch *w)
{
    const struct json *t = row_now, *client = json_get(t, SPAN("client"));
    struct span what = member_text(t, "summary");

    (void)w;
    printf("%-6s", client && verb_true(client, "later")   ? "later"
                   : client && verb_true(client, "waits") ? "waits"
                                                          : "left");
    print_text(member_text(t, "effect"));
    printf("  ");
    print_text(member_text(t, "sandbox"));
    printf("  ");
    print_text(what.n ? what : member_text(t, "method"));
    printf("  ");
    print_text(member_text(t, "method"));
    putchar(' ');
    print_text(member_text(t, "host"));
    if (member_u64(t, "port") != 443)
        printf(":%llu", (unsigned long long)member_u64(t, "port"));
    print_text(member_text(t, "path"));
}

static void list_free(struct watch *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->list[i].line);
    w->n = 0;
}

static void list_take(struct watch *w)
{
    char at[ID_TEXT + 1] = "";
    size_t n, stay = 0;

    if (w->cursor < w->n)
        memcpy(at, w->list[w->cursor].id, sizeof(at));
    if (!ask(w, "GET", "/api/v1/tickets?state=pending&limit=500", SPAN_NONE))
        return;
    list_free(w);
    const struct json *list = json_get(w->g.tree, SPAN("tickets"));
    for (const struct json *t = list ? list->child : NULL; t && w->n < ROWS_MAX; t = t->next) {
        struct waiting *r = &w->list[w->n];
        row_now = t;
        r->line = printed(print_row, w, &n);
        (void)snprintf(r->id, sizeof(r->id), "%.*s", SPAN_FMT(member_text(t, "id")));
        if (strcmp(r->id, at) == 0)
            stay = w->n;
        w->n++;
    }
    w->cursor = stay;
}

/* --- one of them -------------------------------------------------------------------------- */

static void print_all(struct watch *w)
{
    const struct json *t = w->g.tree;
    uint64_t size = member_u64(t, "body_size");

    ticket_print(t);
    w->readable = size == 0;
    if (size && ticket_print_body(&w->g, w->id, size, false, &w->readable) != CLI_OK)
        w->readable = false;
}

static void recut(struct watch *w)
{
    terminal_size(&w->rows, &w->columns);
    lines_cut(span_of(w->text, w->ntext), w->columns, &w->lines);
    w->scroll = 0;
    w->shown_ms = now_ms();
}

static void open_one(struct watch *w, const char *id)
{
    char path[PATH_ROOM];

    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s?reading=1", id);
    if (!ask(w, "GET", path, SPAN_NONE))
        return;
    const struct json *reading = json_get(w->g.tree, SPAN("reading"));
    memmove(w->id, id, strlen(id) + 1);
    (void)snprintf(w->digest, sizeof(w->digest), "%.*s", SPAN_FMT(member_text(w->g.tree, "digest")));
    bool blocks = !reading || verb_true(reading, "blocks");
    w->pending = span_eq(member_text(w->g.tree, "state"), SPAN("pending"));
    w->named = member_text(reading, "name").n > 0;
    w->reasoned = verb_true(w->g.tree, "reason_required");
    free(w->text);
    w->text = printed(print_all, w, &w->ntext);
    w->readable = w->readable && !blocks && w->text;
    w->ntext = w->text ? w->ntext : 0;
    w->view = VIEW_TICKET;
    w->typing = TYPING_NOTHING;
    recut(w);
}

/* Is it still to be decided? What is on the screen stays. */
static void look_again(struct watch *w)
{
    char path[PATH_ROOM];

    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s", w->id);
    if (!w->pending || !ask(w, "GET", path, SPAN_NONE) || span_eq(member_text(w->g.tree, "state"), SPAN("pending")))
        return;
    w->pending = false;
    w->typing = TYPING_NOTHING;
    say(w, "Decided elsewhere: ", member_text(w->g.tree, "state"));
}

static unsigned room(const struct watch *w)
{
    return w->rows > FOOT + 1 ? w->rows - FOOT - 1 : 1;
}

/* All of it, at once, on this screen. */
static bool may_say_yes(const struct watch *w)
{
    return w->pending && w->readable && lines_fit(&w->lines, room(w), w->columns);
}

static void address(struct watch *w)
{
    if (w->page[0])
        (void)snprintf(w->said, sizeof(w->said), "%s/tickets/%s", w->page, w->id);
    else
        say(w, "The gateway does not say where its page is.", SPAN_NONE);
}

/* --- what the screen says ------------------------------------------------------------------- */

static void draw_list(const struct watch *w)
{
    size_t first = w->cursor >= room(w) ? w->cursor - room(w) + 1 : 0;
    struct lines *l = malloc(sizeof *l);

    printf("%zu waiting\r\n", w->n);
    if (w->n == 0)
        printf("\r\nNothing waits. What a rule holds appears here by itself.\r\n");
    for (size_t i = first; l && i < w->n && i < first + room(w); i++) {
        struct span line = w->list[i].line ? span_str(w->list[i].line) : SPAN_NONE;
        lines_cut(line, w->columns > 3 ? w->columns - 2 : 1, l); /* of a row its first line */
        printf("%s%.*s\033[0m\r\n", i == w->cursor ? "\033[7m> " : "  ", (int)(l->n > 1 ? l->at[1] : line.n),
               line.n ? (const char *)line.p : "");
    }
    free(l);
}

static void draw_ticket(const struct watch *w)
{
    for (size_t i = w->scroll; i < w->lines.n && i < w->scroll + room(w); i++) {
        size_t end = w->lines.at[i + 1];
        while (end > w->lines.at[i] && w->text[end - 1] == '\n')
            end--;
        printf("%.*s\r\n", (int)(end - w->lines.at[i]), w->text + w->lines.at[i]);
    }
}

static const char *keys(const struct watch *w)
{
    if (w->typing == TYPING_NAME)
        return "Its name, as it stands above; Enter, or Esc to leave it";
    if (w->typing == TYPING_YES)
        return w->reasoned ? "Why it is right (needed); Enter approves, Esc leaves it"
                           : "A note, if you like; Enter approves, Esc leaves it";
    if (w->typing == TYPING_NO)
        return "Words to the agent, if you like; Enter denies, Esc leaves it";
    if (w->view == VIEW_LIST)
        return "j k move   Enter show   q end";
    if (!w->pending)
        return "decided   q back";
    if (may_say_yes(w))
        return "a approve   d deny   o its page   q back";
    return "space more   o open its page, where it is approved: not all of it stands here   d deny   q back";
}

static void draw(const struct watch *w)
{
    fputs("\033[H\033[2J", stdout);
    if (w->view == VIEW_LIST)
        draw_list(w);
    else
        draw_ticket(w);
    printf("\033[%u;1H%.*s\033[%u;1H", w->rows - 1, (int)w->columns - 1, w->said, w->rows);
    printf("%.*s", (int)w->columns - 1, keys(w));
    if (w->typing)
        printf(": %.*s", (int)w->nwords, w->words);
    (void)fflush(stdout);
}

/* --- what a key does -------------------------------------------------------------------------- */

static void send_decision(struct watch *w, bool yes)
{
    struct dynbuf body;
    struct jsonw j;
    char path[PATH_ROOM];

    dynbuf_init(&body, 8 * 1024);
    jsonw_begin(&j, &body);
    jsonw_object(&j);
    jsonw_kv(&j, "digest", span_str(w->digest));
    if (w->nwords)
        jsonw_kv(&j, "reason", span_of(w->words, w->nwords));
    if (yes && w->named)
        jsonw_kv(&j, "name", span_str(w->name));
    jsonw_end_object(&j);
    (void)snprintf(path, sizeof(path), "/api/v1/tickets/%s/%s", w->id, yes ? "approve" : "deny");
    bool done = ask(w, "POST", path, dynbuf_span(&body));
    dynbuf_free(&body);
    w->typing = TYPING_NOTHING;
    if (!done)
        return;
    (void)snprintf(w->said, sizeof(w->said), "%.10s %s", w->id, yes ? "approved" : "denied");
    w->view = VIEW_LIST;
    list_take(w);
}

static void begin_typing(struct watch *w, enum typing what)
{
    w->typing = what;
    w->nwords = 0;
    w->said[0] = '\0';
}

static void typed(struct watch *w, int key)
{
    if (key == KEY_BACK) {
        w->typing = TYPING_NOTHING;
    } else if (key == KEY_ERASE) {
        while (w->nwords > 0 && ((uint8_t)w->words[--w->nwords] & 0xc0) == 0x80)
            ;
    } else if (key == KEY_ENTER && w->typing == TYPING_NAME) {
        (void)snprintf(w->name, sizeof(w->name), "%.*s", (int)w->nwords, w->words);
        begin_typing(w, TYPING_YES);
    } else if (key == KEY_ENTER) {
        if (w->typing == TYPING_YES && !may_say_yes(w)) { /* the screen became smaller meanwhile */
            w->typing = TYPING_NOTHING;
            address(w);
        } else {
            send_decision(w, w->typing == TYPING_YES);
        }
    } else if (key >= ' ' && key < 256 && key != 0x7f && w->nwords < WORDS_MAX - 1) {
        w->words[w->nwords++] = (char)key;
    }
}

static void ticket_key(struct watch *w, int key)
{
    size_t end = w->lines.n > room(w) ? w->lines.n - room(w) : 0;

    if (key == 'q' || key == KEY_BACK) {
        w->view = VIEW_LIST;
        w->said[0] = '\0';
        list_take(w);
    } else if (key == 'o') {
        address(w);
    } else if ((key == 'j' || key == KEY_DOWN || key == ' ' || key == KEY_PAGE) && w->scroll < end) {
        w->scroll += key == 'j' || key == KEY_DOWN ? 1 : room(w);
        w->scroll = w->scroll < end ? w->scroll : end;
    } else if ((key == 'k' || key == KEY_UP) && w->scroll > 0) {
        w->scroll--;
    } else if (now_ms() - w->shown_ms < ARM_MS || !w->pending) {
        return; /* a key on its way decides nothing */
    } else if (key == 'a' && may_say_yes(w)) {
        begin_typing(w, w->named ? TYPING_NAME : TYPING_YES);
    } else if (key == 'a') {
        address(w);
    } else if (key == 'd') {
        begin_typing(w, TYPING_NO);
    }
}

static void list_key(struct watch *w, int key)
{
    if (key == 'q' || key == 3 || key == 4)
        w->over = true;
    else if ((key == 'j' || key == KEY_DOWN) && w->cursor + 1 < w->n)
        w->cursor++;
    else if ((key == 'k' || key == KEY_UP) && w->cursor > 0)
        w->cursor--;
    else if (key == KEY_ENTER && w->cursor < w->n)
        open_one(w, w->list[w->cursor].id);
}

static void on_key(struct watch *w, int key)
{
    if (key == 3) /* Control-C */
        w->over = true;
    else if (w->typing)
        typed(w, key);
    else if (w->view == VIEW_LIST)
        list_key(w, key);
    else
        ticket_key(w, key);
}

/* One key, or the bytes of one, at the start of what came; how many bytes it took. */
static size_t key_of(const uint8_t *p, size_t n, int *key)
{
    *key = p[0];
    if (n >= 3 && p[0] == 27 && p[1] == '[') {
        *key = p[2] == 'A' ? KEY_UP : p[2] == 'B' ? KEY_DOWN : KEY_NONE;
        size_t end = 2;
        while (end < n && !(p[end] >= 0x40 && p[end] <= 0x7e))
            end++;
        return end < n ? end + 1 : n;
    }
    if (p[0] == 27)
        *key = KEY_BACK;
    else if (p[0] == '\r' || p[0] == '\n')
        *key = KEY_ENTER;
    else if (p[0] == 0x7f || p[0] == 8)
        *key = KEY_ERASE;
    return 1;
}

/* --- its life ------------------------------------------------------------------------------------ */

static int heard(void *ctx, const struct api_event *ev)
{
    const int *to = ctx;

    (void)ev;
    return write(*to, "x", 1) == 1 ? 0 : 1;
}

/* A process of its own waits for what the gateway says. */
static int listen_begin(struct watch *w)
{
    int both[2];
    struct err e;

    if (pipe(both) != 0)
        return verb_fail(CLI_RUNTIME, "no pipe can be made");
    w->events = both[0];
    w->listener = fork();
    if (w->listener == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGINT, SIG_IGN);
        (void)close(both[0]);
        _exit(api_stream(w->g.sock, "/api/v1/events", NULL, heard, &both[1], &e) != 0);
    }
    (void)close(both[1]);
    return w->listener > 0 ? CLI_OK : verb_fail(CLI_RUNTIME, "no process can be made");
}

/* 1: go on; 0: the keyboard has gone. */
static int step(struct watch *w)
{
    struct pollfd p[] = {{STDIN_FILENO, POLLIN, 0}, {w->events, POLLIN, 0}};
    uint8_t in[256];
    const struct timespec look = {LOOK_S, 0};
    int key, n = ppoll(p, w->events >= 0 ? 2 : 1, &look, &w->waiting); /* signals come here, and nowhere else */

    if (n < 0 && errno != EINTR)
        return 0;
    if (resized) {
        resized = 0;
        recut(w);
        return 1;
    }
    if (n > 0 && p[0].revents) {
        ssize_t got = read(STDIN_FILENO, in, sizeof(in));
        if (got <= 0)
            return 0;
        for (size_t i = 0; i < (size_t)got && !w->over; i += key_of(in + i, (size_t)got - i, &key), on_key(w, key))
            ;
        return 1;
    }
    if (n > 0 && p[1].revents && read(w->events, in, sizeof(in)) <= 0) {
        (void)close(w->events); /* the gateway has ended, or its stream: the clock is left */
        w->events = -1;
    }
    if (w->view == VIEW_LIST && n >= 0)
        list_take(w);
    else if (n > 0)
        look_again(w);
    return 1;
}

static void begin(struct watch *w)
{
    static const int signals[] = {SIGWINCH, SIGTERM, SIGHUP};
    struct sigaction on = {.sa_handler = on_signal};

    sigset_t held;
    (void)sigemptyset(&held);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)sigaction(signals[i], &on, NULL);
        (void)sigaddset(&held, signals[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &held, &w->waiting);
    terminal_size(&w->rows, &w->columns);
    if (ask(w, "GET", "/api/v1/status", SPAN_NONE))
        (void)snprintf(w->page, sizeof(w->page), "%.*s", SPAN_FMT(member_text(w->g.tree, "page")));
    list_take(w);
    fputs("\033[?1049h", stdout);
}

static void end(struct watch *w)
{
    fputs("\033[?1049l", stdout);
    (void)fflush(stdout);
    terminal_back(&w->terminal);
    if (w->listener > 0) {
        (void)kill(w->listener, SIGKILL);
        (void)waitpid(w->listener, NULL, 0);
    }
    if (w->events >= 0)
        (void)close(w->events);
    list_free(w);
    free(w->text);
}

int watch_view(const struct cli_call *c)
{
    struct watch *w = calloc(1, sizeof *w);
    struct err e;

    if (!w)
        return verb_fail(CLI_RUNTIME, "no memory");
    w->c = c;
    w->events = -1;
    int rc = verb_begin(&w->g, c);
    if (rc == CLI_OK)
        rc = verb_ask(&w->g, "GET", "/api/v1/tickets?state=pending&limit=1", SPAN_NONE, 200); /* is anybody there? */
    if (rc == CLI_OK && (terminal_look(&w->terminal, &e) != 0 || terminal_raw(&w->terminal, &e) != 0))
        rc = verb_fail(CLI_RUNTIME, "%s", e.text);
    if (rc == CLI_OK) {
        rc = listen_begin(w);
        begin(w);
        for (draw(w); rc == CLI_OK && !w->over && !ended && step(w);)
            draw(w);
        end(w);
    }
    verb_end(&w->g);
    free(w);
    return rc;
}
