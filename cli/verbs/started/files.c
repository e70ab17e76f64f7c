/* countersign sandbox cp|ls: files of the sandboxes that the gateway itself starts. */
#include "cli/verbs/started/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/text/visible.h"
#include "sandbox-shim/plan/limits.h"

enum { PIECE = 64 * 1024, NAME_BYTES = 63, NUMBER_ROOM = 32, FILES_PATH_ROOM = 16 * 1024 };
#define PAGE "200"

/* `&name=value`, percent-encoded. */
static void put_option(struct dynbuf *to, const char *name, struct span value)
{
    (void)dynbuf_addf(to, "&%s=", name);
    dynbuf_add_percent(to, value, "-._/");
}

/* All of it, for who asks: as long as it is. */
static const char *target_of(struct dynbuf *to)
{
    return dynbuf_add_byte(to, '\0') == 0 ? (const char *)to->p : "";
}

/* /api/v1/sandboxes/NAME/files, `more` of it and the query with the path; more options go behind it. */
static void put_path(struct dynbuf *to, const struct remote *r, const char *more)
{
    dynbuf_init(to, FILES_PATH_ROOM);
    (void)dynbuf_addf(to, "/api/v1/sandboxes/%s/files%s?", r->name, more);
    put_option(to, "path", span_str(r->path));
}

/* What an answer of another status than was asked for says; CLI_RUNTIME. */
static int refused(unsigned status, const struct dynbuf *answer)
{
    struct err e;

    (void)api_explain(status, dynbuf_span(answer), &e);
    return verb_fail(CLI_RUNTIME, "%s", e.text);
}

/* --- content on its way --------------------------------------------------------------- */

struct api_upload *files_send(const struct gateway_call *g, const struct remote *to, const char *more,
                              const char *mode)
{
    struct dynbuf path;
    struct err e;

    put_path(&path, to, more);
    if (mode)
        put_option(&path, "mode", span_str(mode));
    struct api_upload *u = api_upload_begin(g->sock, "PUT", target_of(&path), &e);
    if (!u)
        (void)verb_fail(CLI_STORE, "%s", e.text);
    dynbuf_free(&path);
    return u;
}

int files_sent(struct api_upload **u, int rc)
{
    struct dynbuf answer = {0};
    unsigned status = 0;
    struct err e;

    if (rc == CLI_OK && api_upload_end(u, &status, &answer, &e) != 0)
        rc = verb_fail(CLI_STORE, "%s", e.text);
    else if (rc == CLI_OK && status != 204)
        rc = refused(status, &answer);
    api_upload_drop(u);
    dynbuf_free(&answer);
    return rc;
}

int files_get(const struct gateway_call *g, const struct remote *from, const char *more, const char *most,
              api_piece_fn *fn, void *ctx)
{
    struct dynbuf path, answer;
    unsigned status = 0;
    struct err e;

    put_path(&path, from, more);
    if (most)
        put_option(&path, "most", span_str(most));
    int rc = api_download(g->sock, target_of(&path), fn, ctx, &status, &answer, &e) != 0
                 ? verb_fail(CLI_RUNTIME, "%s", e.text)
             : status != 200 ? refused(status, &answer)
                             : CLI_OK;
    dynbuf_free(&answer);
    dynbuf_free(&path);
    return rc;
}

int files_write(void *ctx, struct span piece, struct err *e)
{
    const int *fd = ctx;

    while (piece.n > 0) {
        ssize_t n = write(*fd, piece.p, piece.n);
        if (n < 0 && errno != EINTR)
            return err_errno(e, "cannot write it");
        piece = span_from(piece, n > 0 ? (size_t)n : 0);
    }
    return 0;
}

/* --- names ------------------------------------------------------------------------------ */

/* False: it is a name of ours, which may have a colon behind a slash. */
static bool remote_of(const char *word, struct remote *r)
{
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-._");

    if (n == 0 || n > NAME_BYTES || word[n] != ':' || strlen(word + n + 1) >= sizeof(r->path))
        return false;
    memcpy(r->name, word, n);
    r->name[n] = '\0';
    (void)snprintf(r->path, sizeof(r->path), "%s", word[n + 1] ? word + n + 1 : ".");
    return true;
}

/* What is there: CLI_OK with *kind, 'f', 'd', 'l', 'o', or 0: nothing. */
static int remote_kind(struct gateway_call *g, const struct remote *r, char *kind, unsigned *mode)
{
    struct dynbuf path, answer;
    unsigned status = 0;
    struct arena a;
    struct err e;

    *kind = 0;
    put_path(&path, r, "/stat");
    int rc = api_call(g->sock, "GET", target_of(&path), SPAN_NONE, &status, &answer, &e) == 0
                 ? CLI_OK
                 : verb_fail(CLI_STORE, "%s", e.text);
    arena_init(&a, API_EVENT_MAX);
    const struct json *j = rc == CLI_OK && status == 200 ? json_parse(dynbuf_span(&answer), &a) : NULL;
    struct span said = member_text(j, "kind"), octal = member_text(j, "mode");
    if (rc == CLI_OK && status != 200 && status != 404 && status != 409)
        rc = refused(status, &answer);
    else if (said.n > 0)
        *kind = span_eq(said, SPAN("file"))     ? 'f'
                : span_eq(said, SPAN("folder")) ? 'd'
                : span_eq(said, SPAN("link"))   ? 'l'
                                                : 'o';
    *mode = 0;
    for (size_t i = 0; i < octal.n; i++)
        *mode = *mode << 3 | (octal.p[i] & 7);
    arena_free(&a);
    dynbuf_free(&answer);
    dynbuf_free(&path);
    return rc;
}

/* What a path ends in; empty of `.`, `..` and `/`. */
static const char *last_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ? "" : name;
}

static void no_slashes(char *path)
{
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = '\0';
}

/* path/name in place of path. */
static int below(char path[PATH_MAX], const char *name)
{
    size_t n = strlen(path);
    int more = snprintf(path + n, PATH_MAX - n, "%s%s", n > 0 && path[n - 1] == '/' ? "" : "/", name);

    return more > 0 && (size_t)more < PATH_MAX - n ? CLI_OK : verb_fail(CLI_USAGE, "the path is too long");
}

/* --- into a sandbox ------------------------------------------------------------------ */

/* Nothing is there, and what was there stays, until all of it has come. */
static int file_up(struct gateway_call *g, int fd, const char *from, const struct remote *to)
{
    static uint8_t piece[PIECE];
    char mode[NUMBER_ROOM] = "";
    struct stat st;
    ssize_t n = 0;

    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fd != STDIN_FILENO)
        (void)snprintf(mode, sizeof(mode), "%o", (unsigned)st.st_mode & 0777);
    struct api_upload *u = files_send(g, to, "", *mode ? mode : NULL);
    if (!u)
        return CLI_STORE;
    while ((n = read(fd, piece, sizeof(piece))) > 0 || (n < 0 && errno == EINTR))
        if (n > 0 && api_upload_put(u, span_of(piece, (size_t)n)) != 0)
            break;
    return files_sent(&u, n < 0 ? verb_fail(CLI_RUNTIME, "cannot read %s: %s", from, strerror(errno)) : CLI_OK);
}

static int copy_in(struct gateway_call *g, const struct cli_call *c, const char *from, struct remote *to)
{
    bool in = strcmp(from, "-") == 0, slash = to->path[strlen(to->path) - 1] == '/';
    char own[PATH_MAX], kind = 0;
    unsigned mode;
    struct stat st;

    if (in && cli_flag(c, "tar"))
        return tree_up(g, NULL, to);
    if (strlen(from) >= sizeof(own))
        return verb_fail(CLI_USAGE, "the path is too long");
    (void)snprintf(own, sizeof(own), "%s", from);
    no_slashes(own);
    int fd = in ? STDIN_FILENO : open(own, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0)
        return verb_fail(CLI_RUNTIME, "cannot open %s: %s", from, strerror(errno));
    int rc = in ? CLI_OK : remote_kind(g, to, &kind, &mode);
    if (rc == CLI_OK && (kind == 'd' || slash) && last_of(own)[0] && !in)
        rc = below(to->path, last_of(own));
    if (rc == CLI_OK)
        rc = !in && S_ISDIR(st.st_mode) ? tree_up(g, own, to) : file_up(g, fd, from, to);
    if (!in)
        close(fd);
    return rc;
}

/* --- out of a sandbox ------------------------------------------------------------------ */

/* On a terminal, it may be meant for that, and not for who reads it. */
static int piece_show(void *ctx, struct span piece, struct err *e)
{
    print_lines(piece);
    return ferror(stdout) ? err_set(e, "cannot write it") : 0;
}

/* It has the name when all of it is there. */
static int file_down(struct gateway_call *g, const struct remote *from, const char *most, unsigned mode,
                     const char *to)
{
    char name[PATH_MAX];
    struct stat st;
    mode_t mask = umask(0);

    (void)umask(mask);
    if (stat(to, &st) == 0 && !S_ISREG(st.st_mode))
        return verb_fail(CLI_RUNTIME, "%s is there and is no file", to);
    if (snprintf(name, sizeof(name), "%s.XXXXXX", to) >= (int)sizeof(name))
        return verb_fail(CLI_USAGE, "the path is too long");
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return verb_fail(CLI_RUNTIME, "cannot write %s: %s", to, strerror(errno));
    int rc = files_get(g, from, "", most, files_write, &fd);
    if (rc == CLI_OK && (fchmod(fd, mode & 0777 & ~mask) != 0 || rename(name, to) != 0))
        rc = verb_fail(CLI_RUNTIME, "cannot write %s: %s", to, strerror(errno));
    if (rc != CLI_OK)
        (void)unlink(name);
    close(fd);
    return rc;
}

static int copy_out(struct gateway_call *g, const struct cli_call *c, struct remote *from, const char *to)
{
    const char *most = cli_value(c, "most");
    char own[PATH_MAX], number[NUMBER_ROOM], kind;
    bool out = strcmp(to, "-") == 0;
    int fd = STDOUT_FILENO;
    unsigned mode;
    struct stat st;
    uint64_t bytes;
    struct err e;

    if (most && limits_bytes(&bytes, "--most", most, 0, &e) != 0)
        return verb_fail(CLI_USAGE, "%s", e.text);
    (void)snprintf(number, sizeof(number), "%llu", most ? (unsigned long long)bytes : 0);
    most = most ? number : NULL;
    if (out && cli_flag(c, "tar"))
        return tree_down(g, from, most, NULL);
    if (out)
        return files_get(g, from, "", most, isatty(fd) ? piece_show : files_write, &fd);
    if (strlen(to) >= sizeof(own))
        return verb_fail(CLI_USAGE, "the path is too long");
    int rc = remote_kind(g, from, &kind, &mode);
    (void)snprintf(own, sizeof(own), "%s", to);
    no_slashes(from->path);
    if (rc == CLI_OK && stat(own, &st) == 0 && S_ISDIR(st.st_mode) && last_of(from->path)[0])
        rc = below(own, last_of(from->path));
    if (rc != CLI_OK)
        return rc;
    return kind == 'd' ? tree_down(g, from, most, own) : file_down(g, from, most, kind == 'l' ? 0666 : mode, own);
}

int sandbox_cp(const struct cli_call *c)
{
    struct remote from, to;
    bool out = remote_of(c->word[0], &from), in = remote_of(c->word[1], &to);
    struct gateway_call g;
    int rc = verb_begin(&g, c);

    if (rc == CLI_OK && in == out)
        rc = verb_fail(CLI_USAGE, "one side is NAME:PATH, of a started sandbox, and the other is here; a name here "
                                  "that has a colon begins with ./");
    if (rc == CLI_OK)
        rc = out ? copy_out(&g, c, &from, c->word[1]) : copy_in(&g, c, c->word[0], &to);
    verb_end(&g);
    return rc;
}

/* --- what is there ----------------------------------------------------------------------- */

static void print_entry(const struct json *r)
{
    struct span kind = member_text(r, "kind"), octal = member_text(r, "mode"), target = member_text(r, "target");
    static const char bits[] = "rwxrwxrwx";
    char text[11], time[32];
    unsigned mode = 0;

    for (size_t i = 0; i < octal.n; i++)
        mode = mode << 3 | (octal.p[i] & 7);
    text[0] = span_eq(kind, SPAN("folder")) ? 'd' : span_eq(kind, SPAN("link")) ? 'l' : '-';
    if (span_eq(kind, SPAN("other")))
        text[0] = '?';
    for (int i = 0; i < 9; i++)
        text[i + 1] = (char)(mode >> (8 - i) & 1 ? bits[i] : '-');
    text[10] = '\0';
    printf("%s %12llu  %s  ", text, (unsigned long long)member_u64(r, "size"),
           time_text(member_u64(r, "mtime") * 1000, time));
    print_text(member_text(r, "name"));
    if (target.n > 0) {
        fputs(" -> ", stdout);
        print_text(target);
    }
    putchar('\n');
}

/* The last name as the next question has it, in place of the one that it was asked with; -1: it is no text, or not
 * behind that, and asking on would have no end. */
static int last_name(const struct json *rows, struct dynbuf *to)
{
    const struct json *last = rows ? rows->child : NULL;

    while (last && last->next)
        last = last->next;
    struct span name = member_text(last, "name"), raw = member_text(last, "name_base64");
    uint8_t bytes[PATH_MAX];
    size_t n = 0;
    if (raw.n > 0 && (raw.n > sizeof(bytes) || base64_decode(raw, bytes, &n) != 0))
        return -1;
    name = raw.n > 0 ? span_of(bytes, n) : name;
    if (span_cmp(name, dynbuf_span(to)) <= 0)
        return -1;
    dynbuf_reset(to);
    return dynbuf_add(to, name);
}

int sandbox_ls(const struct cli_call *c)
{
    struct remote of;
    struct gateway_call g;
    struct dynbuf path, after;
    bool more = true;
    int rc = verb_begin(&g, c);

    dynbuf_init(&after, PATH_MAX);
    if (rc == CLI_OK && !remote_of(c->word[0], &of))
        rc = verb_fail(CLI_USAGE, "%s is not NAME:PATH of a started sandbox", c->word[0]);
    while (rc == CLI_OK && more) {
        put_path(&path, &of, "/list");
        put_option(&path, "limit", SPAN(PAGE)); /* however long their names, an answer has room for them */
        if (after.n > 0)
            put_option(&path, "after", dynbuf_span(&after));
        rc = verb_ask(&g, "GET", target_of(&path), SPAN_NONE, 200);
        dynbuf_free(&path);
        const struct json *rows = rc == CLI_OK ? json_get(g.tree, SPAN("entries")) : NULL;
        const struct json *said = rc == CLI_OK ? json_get(g.tree, SPAN("more")) : NULL;
        if (rc == CLI_OK && g.json)
            verb_print_answer(&g);
        for (const struct json *r = rows && !g.json ? rows->child : NULL; r; r = r->next)
            print_entry(r);
        if (rc == CLI_OK && !rows)
            rc = verb_fail(CLI_RUNTIME, "the gateway's answer is larger than this program takes");
        more = rc == CLI_OK && said && said->truth && rows->child;
        if (more && last_name(rows, &after) != 0)
            rc = verb_fail(CLI_RUNTIME, "the sandbox lists what it has listed before, and says that there is more");
    }
    dynbuf_free(&after);
    verb_end(&g);
    return rc;
}
