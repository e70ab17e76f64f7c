/* The guard around yajl's SAX parser, and the tree it builds. */
#include <stdlib.h>
#include <yajl/yajl_parse.h>

#include "common/json/json.h"
#include "common/id.h"
#include "common/text/utf8.h"

struct frame {
    struct json *node, *last;
    struct span key;
};

struct build {
    struct arena *arena;
    struct json *top;
    size_t nodes, depth;
    enum json_fault fault; /* of what a callback refused */
    bool twice;            /* names may stand more than once */
    struct frame frame[JSON_DEPTH_MAX];
    yajl_handle parser;
    size_t end; /* of the text's one value */
};

/* Memory for yajl, which uses what its allocator gives without looking: one block,
 * big enough from the start. The newest piece grows in place. */
struct pool {
    uint8_t *p;
    size_t n, cap, newest;
};

enum { POOL_ALIGN = 16, POOL_FIXED = 16 * 1024 };

static void *pool_alloc(void *ctx, size_t n)
{
    struct pool *p = ctx;
    size_t at = (p->n + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
    if (n > p->cap - at)
        abort(); /* the bound in pool_init is wrong: better no process than a wild write */
    p->newest = at;
    p->n = at + n;
    return p->p + at;
}

static void *pool_realloc(void *ctx, void *old, size_t n)
{
    struct pool *p = ctx;
    if (old == NULL)
        return pool_alloc(ctx, n);
    size_t at = (size_t)((uint8_t *)old - p->p);
    if (at == p->newest) {
        p->n = at;
        return pool_alloc(ctx, n);
    }
    size_t had = p->n - at; /* at least its own size */
    void *fresh = pool_alloc(ctx, n);
    memcpy(fresh, old, had < n ? had : n);
    return fresh;
}

static void pool_free(void *ctx, void *old)
{
    (void)ctx;
    (void)old;
}

/* yajl keeps a fixed state and buffers that double while they hold no more than one
 * string: below four times the text each, counting what a buffer that cannot grow in
 * place leaves behind. */
static int pool_init(struct pool *p, size_t text)
{
    if (text > (SIZE_MAX - POOL_FIXED) / 8)
        return -1;
    *p = (struct pool){.cap = POOL_FIXED + 8 * text};
    p->p = malloc(p->cap);
    return p->p ? 0 : -1;
}

static struct json *add(struct build *b, enum json_type type)
{
    struct json *j = NULL;
    if (b->nodes < JSON_NODES_MAX && (b->depth > 0 || b->top == NULL))
        j = arena_alloc(b->arena, sizeof *j);
    if (j == NULL) {
        b->fault = JSON_OVER_LIMIT;
        return NULL;
    }
    b->nodes++;
    j->type = type;
    if (b->depth == 0) {
        b->top = j;
        return j;
    }
    struct frame *f = &b->frame[b->depth - 1];
    j->key = f->key;
    f->key = SPAN_NONE;
    if (f->last)
        f->last->next = j;
    else
        f->node->child = j;
    f->last = j;
    f->node->count++;
    return j;
}

/* The one value may be whole now. */
static int whole(struct build *b)
{
    if (b->depth == 0)
        b->end = yajl_get_bytes_consumed(b->parser);
    return 1;
}

static int on_null(void *ctx)
{
    return add(ctx, JSON_NULL) != NULL && whole(ctx);
}

static int on_bool(void *ctx, int truth)
{
    struct json *j = add(ctx, JSON_BOOL);
    if (j)
        j->truth = truth != 0;
    return j != NULL && whole(ctx);
}

/* With a zero byte behind it. False: no room, which is no fault of the text. */
static bool copy(struct build *b, struct span from, struct span *to)
{
    uint8_t *own = from.n ? arena_alloc(b->arena, from.n + 1) : NULL;
    *to = span_of(own, own ? from.n : 0);
    if (own)
        memcpy(own, from.p, from.n);
    if (to->n != from.n)
        b->fault = JSON_OVER_LIMIT;
    return to->n == from.n;
}

static int on_text(struct build *b, enum json_type type, struct span s)
{
    struct json *j = add(b, type);
    return j != NULL && copy(b, s, &j->text) && whole(b);
}

static int on_number(void *ctx, const char *p, size_t n)
{
    return on_text(ctx, JSON_NUMBER, span_of(p, n));
}

static int on_string(void *ctx, const unsigned char *p, size_t n)
{
    return on_text(ctx, JSON_STRING, span_of(p, n));
}

static int on_key(void *ctx, const unsigned char *p, size_t n)
{
    struct build *b = ctx;
    struct span s = span_of(p, n);
    struct frame *f = &b->frame[b->depth - 1];
    if (span_index(s, 0) < n) { /* a C program behind us would see a shorter name */
        b->fault = JSON_BYTES;
        return 0;
    }
    return copy(b, s, &f->key);
}

static int open_container(struct build *b, enum json_type type)
{
    if (b->depth == JSON_DEPTH_MAX) {
        b->fault = JSON_OVER_LIMIT;
        return 0;
    }
    struct json *j = add(b, type);
    if (j == NULL)
        return 0;
    b->frame[b->depth++] = (struct frame){.node = j};
    return 1;
}

static int on_object(void *ctx)
{
    return open_container(ctx, JSON_OBJECT);
}

static int on_array(void *ctx)
{
    return open_container(ctx, JSON_ARRAY);
}

static int on_array_end(void *ctx)
{
    struct build *b = ctx;
    b->depth--;
    return whole(b);
}

static int by_key(const void *a, const void *b)
{
    const struct json *x = *(const struct json *const *)a, *y = *(const struct json *const *)b;
    if (x->key.n != y->key.n)
        return x->key.n < y->key.n ? -1 : 1;
    return x->key.n ? memcmp(x->key.p, y->key.p, x->key.n) : 0;
}

static bool few_keys_differ(const struct json *object)
{
    for (const struct json *a = object->child; a; a = a->next)
        for (const struct json *b = a->next; b; b = b->next)
            if (span_eq(a->key, b->key))
                return false;
    return true;
}

/* Sorted, so that an object of many members costs n log n whatever its names are. */
static bool many_keys_differ(const struct json *object, enum json_fault *why)
{
    bool differ = true;
    size_t n = 0;
    const struct json **list = calloc(object->count, sizeof *list);
    if (list == NULL) {
        *why = JSON_OVER_LIMIT;
        return false;
    }
    for (const struct json *j = object->child; j; j = j->next)
        list[n++] = j;
    qsort(list, n, sizeof *list, by_key);
    for (size_t i = 1; i < n && differ; i++)
        differ = by_key(&list[i - 1], &list[i]) != 0;
    free(list);
    return differ;
}

static int on_object_end(void *ctx)
{
    struct build *b = ctx;
    struct json *object = b->frame[--b->depth].node;
    enum json_fault why = JSON_KEY_TWICE;
    bool differ = object->count <= 16 ? few_keys_differ(object) : many_keys_differ(object, &why);
    object->twice = !differ && why == JSON_KEY_TWICE;
    if (!differ && !(object->twice && b->twice)) {
        b->fault = why;
        return 0;
    }
    return whole(b);
}

/* Bytes of the escape that s begins with; 0 for a lone surrogate or broken hex.
 * Other bad escapes are left to yajl. */
static size_t escape(struct span s)
{
    if (s.n < 2 || s.p[1] != 'u')
        return 2;
    int v = hex_number(span_from(s, 2), 4);
    if (v < 0 || (v >= 0xdc00 && v <= 0xdfff))
        return 0;
    if (v < 0xd800 || v > 0xdbff)
        return 6;
    struct span low = span_from(s, 6);
    v = span_starts(low, SPAN("\\u")) ? hex_number(span_from(low, 2), 4) : -1;
    return v >= 0xdc00 && v <= 0xdfff ? 12 : 0;
}

/* No byte of the eight is a control byte or a backslash. Never true wrongly. */
static bool eight_plain(const uint8_t *p)
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t x;
    memcpy(&x, p, sizeof x);
    uint64_t y = x ^ ('\\' * ones);
    return ((((x - 0x20 * ones) & ~x) | ((y - ones) & ~y)) & high) == 0;
}

/* What yajl would let pass: bad UTF-8, lone surrogates, vertical tab and form feed as white space. */
static bool text_is_clean(struct span s)
{
    if (utf8_run(s) != s.n)
        return false;
    for (size_t i = 0; i < s.n;) {
        uint8_t c = s.p[i];
        if (s.n - i >= 8 && eight_plain(s.p + i)) {
            i += 8;
        } else if (c == '\\') {
            size_t n = escape(span_from(s, i));
            if (n == 0)
                return false;
            i += n;
        } else if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') {
            return false;
        } else {
            i++;
        }
    }
    return true;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_object_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_array_end,
};

/* Behind a whole value yajl lets a token pass that has a beginning and no end. Before one this is of no account: it
 * is the end of a number, or malformed. */
static bool nothing_follows(const struct build *b, struct span text)
{
    struct span rest = span_from(text, b->end);
    for (size_t i = 0; b->end > 0 && i < rest.n; i++)
        if (span_index(SPAN(" \t\r\n"), rest.p[i]) == 4)
            return false;
    return true;
}

static const struct json *parse(struct span text, struct arena *a, bool twice, enum json_fault *why)
{
    struct build b = {.arena = a, .twice = twice};
    struct pool pool = {0};
    yajl_alloc_funcs alloc = {pool_alloc, pool_realloc, pool_free, &pool};
    bool good = false;
    b.fault = text_is_clean(text) ? JSON_MALFORMED : JSON_BYTES;
    if (text.n == 0 || b.fault == JSON_BYTES)
        goto out;
    if (pool_init(&pool, text.n) != 0) {
        b.fault = JSON_OVER_LIMIT;
        goto out;
    }
    yajl_handle h = yajl_alloc(&callbacks, &alloc, &b);
    if (h == NULL || !yajl_config(h, yajl_allow_comments, 0) || !yajl_config(h, yajl_allow_trailing_garbage, 0) ||
        !yajl_config(h, yajl_allow_multiple_values, 0) || !yajl_config(h, yajl_allow_partial_values, 0))
        goto out;
    b.parser = h;
    good = yajl_parse(h, text.p, text.n) == yajl_status_ok && nothing_follows(&b, text) &&
           yajl_complete_parse(h) == yajl_status_ok;
    yajl_free(h);
out:
    free(pool.p);
    *why = b.fault;
    return good && b.depth == 0 ? b.top : NULL;
}

const struct json *json_parse_or(struct span text, struct arena *a, enum json_fault *why)
{
    return parse(text, a, false, why);
}

const struct json *json_parse_twice(struct span text, struct arena *a, enum json_fault *why)
{
    return parse(text, a, true, why);
}

const struct json *json_parse(struct span text, struct arena *a)
{
    enum json_fault why;
    return json_parse_or(text, a, &why);
}
