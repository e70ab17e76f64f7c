#include "broker/store/move/move.h"

#include "broker/store/sql/sq.h"

enum { KEY_MAX = 5, KEY_BYTES = 512, CHUNK_ROWS = 2048, CHUNK_BYTES = 16 << 20 };

/* Of each column a letter: t is a word of ours, b a name that somebody chose, x bytes, i a number; a large one may be
 * NULL. The first `key` of them are its key. */
struct table {
    const char *name;
    unsigned get, put, end;
    const char *columns;
    unsigned key;
};
#define TABLE(name, of, columns, key)                                                                                \
    {                                                                                                                \
        name, SQL_MOVE_GET_##of, SQL_MOVE_PUT_##of, SQL_MOVE_END_##of, (columns), key                                \
    }
static const struct table tables[MOVE_TABLES] = {
    TABLE("tenant", TENANT, "biiiii", 1),
    TABLE("conversation", CONVERSATION, "bttiiiiiiiix", 2),
    TABLE("turn", TURN, "bttitiiiIIitiiiiiiiiiiitbXt", 2),
    TABLE("step", STEP, "btitbtiiIxxbxx", 3),
    TABLE("tool_call", CALL, "btiibxixtxbiI", 4),
    TABLE("message", MESSAGE, "btitbx", 3),
    TABLE("display", DISPLAY, "btitibxi", 3),
    TABLE("chat_key", KEY, "bbxttiii", 2),
    TABLE("recorded", RECORDED, "btiix", 3),
    TABLE("usage", USAGE, "bitbbiiiiii", 5),
};

/* Where a table was read to. */
struct place {
    uint64_t number[KEY_MAX];
    uint8_t bytes[KEY_MAX][KEY_BYTES];
    size_t n[KEY_MAX];
};

struct reader {
    struct sq *from;
    const struct table *t;
    struct place at, next;
    struct digest_ctx *digest;
    uint64_t rows;
    struct sq *to;           /* NULL: they are only counted */
    uint64_t put, put_bytes; /* in its transaction */
};

/* Nothing of its transaction is kept. */
static void drop(struct sq *l)
{
    enum bstore_result r = sq_end(l, BS_FAIL);
    (void)r;
}

static int failed(struct sq *l, struct err *e)
{
    drop(l);
    return err_set(e, "%.400s", l->why);
}

static int doom(struct sq *l)
{
    return sq_doom(l, "a value in the store is none");
}

static void bind(struct sq_stmt *q, unsigned at, char kind, struct sq_value v)
{
    switch (kind) {
    case 'i': sq_int(q, at, v.number); break;
    case 't': sq_text(q, at, v.bytes); break;
    case 'b': sq_bytes(q, at, v.bytes); break;
    default: sq_blob(q, at, v.bytes); break;
    }
}

static char kind_of(const struct table *t, size_t column)
{
    char c = t->columns[column];
    return c == 'I' ? 'i' : c == 'X' ? 'x' : c;
}

/* Each value with its length, one that is not there unlike one that is empty. */
static void add(struct digest_ctx *d, char kind, bool null, struct sq_value v)
{
    uint8_t number[9] = {1};
    if (null) {
        digest_add_field(d, SPAN("-"));
        return;
    }
    for (unsigned i = 0; i < 8; i++)
        number[i + 1] = (uint8_t)(v.number >> (56 - 8 * i));
    digest_add_field(d, SPAN("+"));
    digest_add_field(d, kind == 'i' ? span_of(number, sizeof(number)) : v.bytes);
}

static int keep_place(struct reader *r, unsigned column, struct sq_value v)
{
    if (v.bytes.n > KEY_BYTES)
        return doom(r->from);
    r->next.number[column] = v.number;
    r->next.n[column] = v.bytes.n;
    if (v.bytes.n > 0)
        memcpy(r->next.bytes[column], v.bytes.p, v.bytes.n);
    return 0;
}

/* The row that q stands at: counted, and put into the other store. */
static int row(struct reader *r, struct sq_stmt *q)
{
    struct sq_stmt *put = r->to != NULL ? sq_get(r->to, r->t->put) : NULL;
    if (r->to != NULL && put == NULL)
        return -1;
    for (unsigned i = 0; r->t->columns[i] != '\0'; i++) {
        char kind = kind_of(r->t, i);
        bool null = sq_col_null(q, (int)i);
        struct sq_value v = {.kind = SQ_NONE};
        if (null && kind == r->t->columns[i])
            return doom(r->from);
        if (kind == 'i')
            v.number = null ? 0 : sq_col_int(q, (int)i);
        else if (!null)
            v.bytes = sq_col(q, (int)i);
        if (i < r->t->key && keep_place(r, i, v) != 0)
            return -1;
        add(r->digest, kind, null, v);
        if (put == NULL)
            continue;
        bind(put, i + 1, kind, v);
        if (null)
            sq_null(put, i + 1);
        r->put_bytes += v.bytes.n;
    }
    r->rows++;
    r->put++;
    return put == NULL || sq_run(put) == 0 ? 0 : -1;
}

/* Its statement, for so many rows after the place that it was read to. */
static struct sq_stmt *first(struct reader *r, uint64_t limit)
{
    struct sq_stmt *q = sq_get(r->from, r->t->get);
    for (unsigned i = 0; q != NULL && i < r->t->key; i++)
        bind(q, i + 1, kind_of(r->t, i),
             (struct sq_value){.number = r->at.number[i], .bytes = span_of(r->at.bytes[i], r->at.n[i])});
    if (q != NULL)
        sq_int(q, r->t->key + 1, limit);
    return q;
}

/* The next rows of a table. 1: there may be more, 0: it is at its end, -1: one of both is doomed. */
static int some(struct reader *r)
{
    unsigned n = 0;
    enum sq_result got;
    struct sq_stmt *q = first(r, MOVE_ROWS_AT_ONCE);
    if (q == NULL)
        return -1;
    while ((got = sq_step(q)) == SQ_ROW) {
        n++;
        if (row(r, q) != 0) {
            sq_reset(q);
            return -1;
        }
    }
    sq_reset(q);
    r->at = r->next; /* not before: the statement was bound to what is there */
    return got == SQ_FAIL ? -1 : n == MOVE_ROWS_AT_ONCE;
}

/* The change to the other store so far is kept. */
static int chunk(struct reader *r, bool last)
{
    if (r->to == NULL || (!last && r->put < CHUNK_ROWS && r->put_bytes < CHUNK_BYTES))
        return 0;
    r->put = r->put_bytes = 0;
    if (sq_end(r->to, BS_OK) != BS_OK)
        return -1;
    return last ? 0 : sq_begin(r->to);
}

static int table(struct reader *r, struct move_count *out)
{
    int more = 1;
    r->at = r->next = (struct place){.n = {0}};
    r->rows = r->put = r->put_bytes = 0;
    if ((r->digest = digest_begin()) == NULL)
        return sq_doom(r->from, "out of memory");
    if (r->to != NULL && sq_begin(r->to) != 0)
        more = -1;
    while (more > 0)
        if ((more = some(r)) >= 0 && chunk(r, more == 0) != 0)
            more = -1;
    *out = (struct move_count){.table = r->t->name, .rows = r->rows};
    digest_end(r->digest, &out->digest);
    return more;
}

/* All tables of one moment of `from`. */
static int all(struct sq *from, struct sq *to, struct move_counts *out, struct err *e)
{
    struct reader r = {.from = from, .to = to};
    if (sq_begin_read(from) != 0)
        return failed(from, e);
    for (size_t i = 0; i < MOVE_TABLES; i++) {
        r.t = &tables[i];
        if (table(&r, &out->of[i]) == 0)
            continue;
        struct sq *which = to != NULL && !from->doomed ? to : from;
        if (to != NULL)
            drop(which == to ? from : to);
        return failed(which, e);
    }
    return sq_end(from, BS_OK) == BS_OK ? 0 : failed(from, e);
}

int move_count(struct bstore *s, struct move_counts *out, struct err *e)
{
    return all(sq_of(s), NULL, out, e);
}

/* 1: there is nothing in it, 0, or -1 with the reason. */
static int is_empty(struct bstore *s, struct err *e)
{
    struct sq *l = sq_of(s);
    struct reader r = {.from = l};
    enum sq_result got = SQ_DONE;
    if (sq_begin_read(l) != 0)
        return failed(l, e);
    for (size_t i = 0; got == SQ_DONE && i < MOVE_TABLES; i++) {
        r.t = &tables[i];
        struct sq_stmt *q = first(&r, 1);
        got = q != NULL ? sq_step(q) : SQ_FAIL;
        if (q != NULL)
            sq_reset(q);
    }
    if (got == SQ_FAIL)
        return failed(l, e);
    return sq_end(l, BS_OK) == BS_OK ? got == SQ_DONE : err_set(e, "%.400s", l->why);
}

/* --- which move it is ------------------------------------------------------------------------ */

/* Of a store's last move; empty: there was none. */
static int id_get(struct sq *l, struct sq_id *out, struct err *e)
{
    struct span id = SPAN_NONE;
    *out = (struct sq_id){""};
    struct sq_stmt *q = sq_begin_read(l) == 0 ? sq_get(l, SQL_MOVE_ID_GET) : NULL;
    enum sq_result got = q != NULL ? sq_step(q) : SQ_FAIL;
    if (got == SQ_ROW)
        id = sq_col(q, 0);
    if (id.n > ID_TEXT)
        (void)doom(l);
    else if (id.n > 0)
        memcpy(out->text, id.p, id.n);
    if (q != NULL)
        sq_reset(q);
    return sq_end(l, got == SQ_FAIL ? BS_FAIL : BS_OK) == BS_OK ? 0 : err_set(e, "%.400s", l->why);
}

/* In a transaction. */
static int id_put(struct sq *l, const struct sq_id *id)
{
    struct sq_stmt *q = sq_get(l, SQL_MOVE_ID_END);
    if (q == NULL || sq_run(q) != 0 || (q = sq_get(l, SQL_MOVE_ID_PUT)) == NULL)
        return -1;
    sq_text(q, 1, span_of(id->text, ID_TEXT));
    return sq_run(q);
}

static bool same_id(const struct sq_id *a, const struct sq_id *b)
{
    return a->text[0] != '\0' && strcmp(a->text, b->text) == 0;
}

/* The one that was cut off, or a new one, which the first store is told of before the other is touched. */
static int id_of(struct sq *from, struct sq *to, struct sq_id *out, struct err *e)
{
    struct sq_id there;
    struct id id;
    if (id_get(from, out, e) != 0 || id_get(to, &there, e) != 0)
        return -1;
    if (same_id(out, &there))
        return 0;
    if (id_new(&id) != 0)
        return err_set(e, "the system has no randomness to give");
    *out = sq_id(&id);
    if (sq_begin(from) != 0 || id_put(from, out) != 0)
        return failed(from, e);
    return sq_end(from, BS_OK) == BS_OK ? 0 : err_set(e, "%.400s", from->why);
}

int move_may(struct bstore *from, enum bstore_state is, struct bstore *to, enum bstore_state will, struct err *e)
{
    struct sq_id a = {""}, b = {""};
    int empty = 1;
    if (is == BSTORE_ABSENT)
        return err_set(e, "there is no store to move");
    if (is == BSTORE_COPYING)
        return err_set(e,
                       "what was moved to the first store is not all there: move that to its end, or begin it anew");
    if (will == BSTORE_COPYING && (id_get(sq_of(from), &a, e) != 0 || id_get(sq_of(to), &b, e) != 0))
        return -1;
    if (is == BSTORE_MOVED && !same_id(&a, &b))
        return err_set(e, "the first store was moved before: brokers use the one that it was moved to");
    if (will == BSTORE_COPYING && b.text[0] != '\0' && !same_id(&a, &b))
        return err_set(e,
                       "what is in the second store is of another move that has not ended: begin that one anew, or "
                       "name another store");
    if (will == BSTORE_MOVED)
        return err_set(e, "the second store is what is left of one that was moved: remove it, or name another");
    if (will == BSTORE_WHOLE && (empty = is_empty(to, e)) < 0)
        return -1;
    if (!empty)
        return err_set(e, "the second store has conversations of its own: name one that is empty, or none yet");
    return 0;
}

/* --- all of it --------------------------------------------------------------------------------- */

/* clear: NULL, or the move that it is emptied for. */
static int mark(struct sq *l, enum bstore_state state, const struct sq_id *clear, struct err *e)
{
    bool ok = sq_begin(l) == 0;
    for (size_t i = 0; ok && clear != NULL && i < MOVE_TABLES; i++) {
        struct sq_stmt *q = sq_get(l, tables[i].end);
        ok = q != NULL && sq_run(q) == 0;
    }
    if (ok && clear != NULL)
        ok = id_put(l, clear) == 0;
    if (!ok || l->base->mark(l, state) != 0)
        return failed(l, e);
    return sq_end(l, BS_OK) == BS_OK ? 0 : err_set(e, "%.400s", l->why);
}

int move_all(struct bstore *from, struct bstore *to, struct move_counts *out, struct err *e)
{
    struct sq *a = sq_of(from), *b = sq_of(to);
    struct move_counts there;
    struct sq_id id;
    if (id_of(a, b, &id, e) != 0 || mark(b, BSTORE_COPYING, &id, e) != 0 || all(a, b, out, e) != 0 ||
        all(b, NULL, &there, e) != 0)
        return -1;
    for (size_t i = 0; i < MOVE_TABLES; i++)
        if (out->of[i].rows != there.of[i].rows ||
            memcmp(out->of[i].digest.b, there.of[i].digest.b, DIGEST_BYTES) != 0)
            return err_set(e,
                           "what was copied of the table %s is not what is there now (%llu rows of %llu): begin the "
                           "move anew",
                           out->of[i].table, (unsigned long long)there.of[i].rows,
                           (unsigned long long)out->of[i].rows);
    /* Never are both of them taken by brokers: two that go on with the same turns would do each call twice. */
    return mark(a, BSTORE_MOVED, NULL, e) != 0 ? -1 : mark(b, BSTORE_WHOLE, NULL, e);
}
