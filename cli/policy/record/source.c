/* Records from a ledger's audit table, or from lines of JSON. */
#include "cli/policy/record/source.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/control/api.h"
#include "common/json/json.h"
#include "cli/policy/record/once.h"

/* A page a statement: a read transaction that stays open keeps the gateway's log from shrinking. */
enum { PAGE_RECORDS = 20000, BUSY_MS = 2000, LABELS_MOST = 64 };

struct source {
    sqlite3 *db;
    FILE *file;
    const char *name;
    uint64_t since, until;
    struct once once;
    struct source_seen seen;
    uint8_t room[RECORD_BYTES_MAX];
};

int source_moment(const char *text, const char *option, uint64_t now_ms, uint64_t *out, struct err *e)
{
    static const struct {
        char unit;
        uint64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
    struct span s = span_str(text);
    uint64_t n = 0;
    if (s.n == 0 || record_time(s, out) == 0)
        return s.n ? 0 : err_set(e, "%s needs a time", option);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (s.p[s.n - 1] == (uint8_t)units[i].unit && span_u64(span_first(s, s.n - 1), 1000000, &n) == 0) {
            *out = now_ms > n * units[i].ms ? now_ms - n * units[i].ms : 0;
            return 0;
        }
    return err_set(e, "%s takes how long ago (30m, 24h, 7d) or a moment (2026-11-22T10:00:00Z), not %s", option,
                   text);
}

/* A path in a file: address of SQLite. */
static bool address(const char *dir, char *out, size_t cap)
{
    size_t n = (size_t)snprintf(out, cap, "file:");
    for (const char *p = dir; *p && n + 4 < cap; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                     strchr("/._-", *p) != NULL;
        n += (size_t)snprintf(out + n, cap - n, plain ? "%c" : "%%%02X", (unsigned char)*p);
    }
    return (size_t)snprintf(out + n, cap - n, "/store/ledger.db?mode=ro") < cap - n;
}

static int open_store(struct source *s, const char *flag, struct err *e)
{
    char dir[PATH_MAX], file[PATH_MAX + 32], uri[3 * PATH_MAX + 64];
    sqlite3_stmt *q = NULL;
    if (api_state_dir(flag, dir, e) != 0)
        return SOURCE_USAGE;
    (void)snprintf(file, sizeof(file), "%s/store/ledger.db", dir);
    if (access(file, R_OK) != 0) {
        (void)err_set(e, "%s: %s. %s", file, strerror(errno),
                      errno == EACCES
                          ? "Run this as the gateway's user, or give --from a file that `countersign audit "
                            "tail --json` wrote"
                          : "Say where the gateway keeps its state with --state-dir, or give --from FILE");
        return SOURCE_AWAY;
    }
    if (!address(dir, uri, sizeof(uri)) ||
        sqlite3_open_v2(uri, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK ||
        sqlite3_busy_timeout(s->db, BUSY_MS) != SQLITE_OK ||
        sqlite3_prepare_v2(s->db, "select seq, time_ms, kind, json from audit limit 1", -1, &q, NULL) != SQLITE_OK) {
        (void)err_set(e, "%s cannot be read: %s. Run this as the gateway's user, or give --from FILE", file,
                      s->db ? sqlite3_errmsg(s->db) : "no memory");
        return SOURCE_AWAY;
    }
    sqlite3_finalize(q);
    /* Where it does not help it does no harm: the pages are read then. */
    (void)sqlite3_exec(s->db, "PRAGMA mmap_size=2147418112", NULL, NULL, NULL);
    return SOURCE_OK;
}

static int open_file(struct source *s, const char *path, struct err *e)
{
    s->file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (s->file)
        return SOURCE_OK;
    (void)err_errno(e, "cannot open %s", path);
    return SOURCE_AWAY;
}

int source_open(struct source **out, const struct source_args *a, uint64_t now_ms, struct err *e)
{
    struct source *s = *out = calloc(1, sizeof(*s));
    if (s == NULL) {
        (void)err_set(e, "no memory");
        return SOURCE_AWAY;
    }
    s->until = UINT64_MAX;
    if ((a->since && source_moment(a->since, "--since", now_ms, &s->since, e) != 0) ||
        (a->until && source_moment(a->until, "--until", now_ms, &s->until, e) != 0))
        return SOURCE_USAGE;
    s->name = a->from;
    return a->from ? open_file(s, a->from, e) : open_store(s, a->state_dir, e);
}

static void take_damaged(struct source *s, uint64_t where, const char *why)
{
    if (s->seen.damaged++ == 0)
        (void)err_set(&s->seen.damage, "record %llu is none that a gateway writes: %s", (unsigned long long)where,
                      why);
}

/* Where a policy was asked, or would be: all other refusals say what was wrong with a connection. */
static bool was_asked(const struct record *r)
{
    if (r->host.n == 0 || r->scheme.n == 0 || r->verdict.n == 0)
        return false;
    if (r->method.n == 0)
        return span_eq(r->code, SPAN("host-not-named"));
    return r->path.n && r->path.p[0] == '/' && r->op.n && r->port && r->port <= UINT16_MAX;
}

/* Decided or expired: a record that has all of its request once more. */
static bool ends_ticket(const struct record *r)
{
    return span_eq(r->kind, SPAN("ticket-decided")) || span_eq(r->kind, SPAN("ticket-expired"));
}

/* ms: 0 where only the record itself says when. */
static int take(struct source *s, struct span json, uint64_t where, uint64_t ms, source_fn *fn, void *arg)
{
    struct record r;
    const char *why = NULL;
    s->seen.records++;
    if (!record_scan(json, s->room, &r, &why) || (ms == 0 && record_time(r.time, &ms) != 0)) {
        take_damaged(s, where, why ? why : "it has no time");
        return 0;
    }
    if (ms < s->since || ms > s->until) {
        s->seen.older++;
        return 0;
    }
    r.again = ends_ticket(&r);
    if (r.again)
        return was_asked(&r) ? fn(arg, &r, ms) : 0;
    if (once_ask(&s->once, &r) != ONCE_NEW)
        return 0;
    if (!was_asked(&r)) {
        s->seen.unjudged++;
        return 0;
    }
    s->seen.requests++;
    s->seen.first_ms = s->seen.first_ms ? s->seen.first_ms : ms;
    s->seen.last_ms = ms;
    return fn(arg, &r, ms);
}

/* The others say nothing of what was asked. */
static bool of_request(struct span kind)
{
    static const struct span kinds[] = {SPAN("result"),        SPAN("intent"),    SPAN("denied"),
                                        SPAN("ticket-opened"), SPAN("websocket"), SPAN("ticket-decided"),
                                        SPAN("ticket-expired")};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (span_eq(kind, kinds[i]))
            return true;
    return false;
}

/* As a blob, since a text would be copied for its terminator; the bytes are the same. */
static struct span column(sqlite3_stmt *q, int i)
{
    const void *text = sqlite3_column_blob(q, i);
    return span_of(text, (size_t)sqlite3_column_bytes(q, i));
}

static int read_page(struct source *s, sqlite3_stmt *q, uint64_t *after, source_fn *fn, void *arg, bool *more)
{
    int rc = 0, step;
    unsigned n = 0;
    sqlite3_bind_int64(q, 1, (sqlite3_int64)*after);
    sqlite3_bind_int(q, 2, PAGE_RECORDS);
    while (rc == 0 && (step = sqlite3_step(q)) == SQLITE_ROW) {
        struct span kind = column(q, 2);
        *after = (uint64_t)sqlite3_column_int64(q, 0);
        if (!of_request(kind) || (span_eq(kind, SPAN("result")) && once_ends(&s->once, column(q, 4))))
            s->seen.records++;
        else
            rc = take(s, column(q, 1), *after, (uint64_t)sqlite3_column_int64(q, 3), fn, arg);
        n++;
    }
    *more = rc == 0 && n == PAGE_RECORDS;
    bool failed = rc == 0 && step != SQLITE_DONE && step != SQLITE_ROW;
    sqlite3_reset(q);
    return failed ? -1 : 0;
}

static int read_store(struct source *s, source_fn *fn, void *arg, struct err *e)
{
    sqlite3_stmt *q = NULL;
    uint64_t after = 0;
    bool more = true;
    int rc = sqlite3_prepare_v2(
        s->db, "select seq, json, kind, time_ms, exchange from audit where seq > ? order by seq limit ?", -1, &q,
        NULL);
    rc = rc == SQLITE_OK ? 0 : -1;
    while (rc == 0 && more)
        rc = read_page(s, q, &after, fn, arg, &more);
    if (rc != 0)
        (void)err_set(e, "the audit records cannot be read: %s", sqlite3_errmsg(s->db));
    sqlite3_finalize(q);
    return rc == 0 ? SOURCE_OK : SOURCE_AWAY;
}

/* A line without its end, of which room is kept for one byte more than a record has: NUL bytes are bytes. False: none
 * is left. */
static bool next_line(FILE *f, char *line, size_t *len)
{
    int c;
    *len = 0;
    while ((c = getc_unlocked(f)) != EOF && c != '\n')
        if (*len <= RECORD_BYTES_MAX)
            line[(*len)++] = (char)c;
    return c != EOF || *len > 0;
}

static int read_lines(struct source *s, source_fn *fn, void *arg, struct err *e)
{
    char *line = malloc(RECORD_BYTES_MAX + 1);
    uint64_t n = 0;
    size_t len;
    while (line && next_line(s->file, line, &len)) {
        n++;
        if (len > RECORD_BYTES_MAX)
            take_damaged(s, n, "longer than records are");
        else if (len && take(s, span_of(line, len), n, 0, fn, arg) != 0)
            break;
    }
    free(line);
    if (!line || ferror(s->file))
        (void)err_set(e, "%s cannot be read to its end", s->name);
    return line && !ferror(s->file) ? SOURCE_OK : SOURCE_AWAY;
}

int source_read(struct source *s, source_fn *fn, void *arg, struct err *e)
{
    return s->db ? read_store(s, fn, arg, e) : read_lines(s, fn, arg, e);
}

static bool put_labels(struct span json, struct arena *a, struct subject *out)
{
    const struct json *j = json_parse(json, a);
    if (j == NULL || j->type != JSON_OBJECT || j->count > LABELS_MOST)
        return false;
    struct label *l = arena_alloc(a, (j->count + 1) * sizeof(*l));
    size_t n = 0;
    for (const struct json *c = l ? j->child : NULL; c; c = c->next)
        if (c->type == JSON_STRING)
            l[n++] = (struct label){c->key, c->text};
    out->labels = l;
    out->nlabels = n;
    return l != NULL;
}

bool source_labels(struct source *s, struct span sandbox, struct arena *a, struct subject *out)
{
    sqlite3_stmt *q = NULL;
    bool found = false;
    out->sandbox = sandbox;
    if (s == NULL || s->db == NULL)
        return false;
    if (sqlite3_prepare_v2(s->db, "select labels_json from sandbox where name = ?", -1, &q, NULL) == SQLITE_OK &&
        sqlite3_bind_text(q, 1, (const char *)sandbox.p, (int)sandbox.n, SQLITE_TRANSIENT) == SQLITE_OK &&
        sqlite3_step(q) == SQLITE_ROW) {
        const void *json = sqlite3_column_text(q, 0);
        struct span kept = arena_copy(a, span_of(json, (size_t)sqlite3_column_bytes(q, 0)));
        found = put_labels(kept, a, out);
    }
    sqlite3_finalize(q);
    return found;
}

const struct source_seen *source_seen(const struct source *s)
{
    return &s->seen;
}

void source_close(struct source **s)
{
    if (*s == NULL)
        return;
    if ((*s)->db)
        (void)sqlite3_close((*s)->db);
    if ((*s)->file && (*s)->file != stdin)
        (void)fclose((*s)->file);
    free(*s);
    *s = NULL;
}
