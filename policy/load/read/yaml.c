#include "policy/load/read/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "common/text/utf8.h"

/* Of more problems than there is room for, the first that refuses is kept rather than a warning. */
static struct policy_problem *next_problem(struct policy_problems *all, bool refuses)
{
    if (all == NULL || all->max == 0)
        return NULL;
    if (all->n < all->max)
        return &all->v[all->n++];
    return refuses && all->v[all->max - 1].severity == 'W' ? &all->v[all->max - 1] : NULL;
}

bool load_problem_kept(const struct loader *l, bool refuses)
{
    const struct policy_problems *p = l->problems;
    bool room = p && p->max && (p->n < p->max || (refuses && p->v[p->max - 1].severity == 'W'));
    return room || (refuses && !l->told && l->e);
}

static void problem_at(struct loader *l, const char *where, const char *code, const char *text)
{
    bool refuses = code[1] == '0';
    if (refuses && !l->told && l->e)
        err_set(l->e, "%s: %s", where, text);
    l->told |= refuses;
    l->failed |= refuses;
    l->refused += refuses;
    struct policy_problem *p = next_problem(l->problems, refuses);
    if (p == NULL)
        return;
    snprintf(p->code, sizeof(p->code), "%s", code);
    p->severity = refuses ? 'E' : 'W';
    snprintf(p->where, sizeof(p->where), "%s", where);
    snprintf(p->text, sizeof(p->text), "%s", text);
}

static void problem_line(struct loader *l, const char *file, uint32_t line, uint32_t col, const char *code,
                         const char *text)
{
    char where[300];
    snprintf(where, sizeof(where), "%.250s:%u:%u", file ? file : "policy", line, col);
    problem_at(l, where, code, text);
}

void load_problem(struct loader *l, const struct node *at, const char *code, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    for (char *c = text; *c; c++) /* a quoted value can hold any character; a terminal is not to see it */
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    problem_line(l, at ? at->file : l->file, at ? at->line : 1, at ? at->col : 1, code, text);
}

static const char *bad_character(struct span s, size_t i, size_t n)
{
    uint8_t c = s.p[i];
    if (n == 0)
        return "not UTF-8: save the file as UTF-8 without a byte order mark";
    if (c == 0)
        return "a NUL byte: save the file as UTF-8 (UTF-16 is not read)";
    if (c == '\t')
        return "a tab: indent and separate with spaces";
    if (c == '\r')
        return "a carriage return: end lines with LF alone";
    if ((c < 0x20 && c != '\n') || c == 0x7f || (c == 0xc2 && s.p[i + 1] < 0xa0))
        return "a control character: remove it";
    if (n == 3 && (memcmp(s.p + i, "\xef\xbb\xbf", 3) == 0 || memcmp(s.p + i, "\xe2\x80\xa8", 3) == 0 ||
                   memcmp(s.p + i, "\xe2\x80\xa9", 3) == 0))
        return "an invisible mark (byte order or line separator): remove it";
    /* Bidirectional controls make a rule read other than it is. */
    if (n == 3 && s.p[i] == 0xe2 &&
        ((s.p[i + 1] == 0x80 && s.p[i + 2] >= 0xaa && s.p[i + 2] <= 0xae) ||
         (s.p[i + 1] == 0x81 && s.p[i + 2] >= 0xa6 && s.p[i + 2] <= 0xa9)))
        return "a bidirectional control character: remove it";
    return NULL;
}

/* libyaml compares each %TAG with all before it, and only then says that there are any. */
enum { DIRECTIVES_MAX = 100 };

static bool bytes_ok(struct loader *l, struct span s)
{
    uint32_t line = 1, col = 1, directives = 0;
    if (s.n > POLICY_FILE_MAX) {
        load_problem(l, NULL, "P002", "the file has %zu bytes, more than the %d that are read: split it", s.n,
                     POLICY_FILE_MAX);
        return false;
    }
    for (size_t i = 0; i < s.n;) {
        size_t n = s.p[i] >= 0x20 && s.p[i] < 0x7f ? 1 : utf8_char(span_from(s, i));
        const char *why = n == 1 && s.p[i] >= 0x20 && s.p[i] < 0x7f ? NULL : bad_character(s, i, n);
        if (why) {
            problem_line(l, l->file, line, col, "P002", why);
            return false;
        }
        if (col == 1 && s.p[i] == '%' && ++directives > DIRECTIVES_MAX) {
            problem_line(l, l->file, line, col, "P005", "directives (%) are not read: remove them");
            return false;
        }
        col = s.p[i] == '\n' ? 1 : col + 1;
        line += s.p[i] == '\n';
        i += n;
    }
    return true;
}

/* The tree under construction: a stack of open lists and maps. */
struct build {
    struct loader *l;
    struct node *open[POLICY_DEPTH_MAX], *last[POLICY_DEPTH_MAX], *root;
    const struct node *key[POLICY_DEPTH_MAX]; /* of a map: its key waits for the value */
    size_t depth, nodes;
    bool documents;
};

static int add_node(struct build *b, struct node *n)
{
    if (b->depth == 0) {
        b->root = n;
        return 0;
    }
    size_t d = b->depth - 1;
    struct node *parent = b->open[d];
    if (parent->kind == NODE_MAP && b->key[d] == NULL) {
        if (n->kind != NODE_TEXT) {
            load_problem(b->l, n, "P008", "a key must be a word, not a list or mapping");
            return -1;
        }
        if (n->plain && span_eq(n->text, SPAN("<<"))) {
            load_problem(b->l, n, "P005", "merge keys (<<) are not read: write out what is meant");
            return -1;
        }
        b->key[d] = n;
        return 0;
    }
    n->key = b->key[d];
    b->key[d] = NULL;
    if (b->last[d])
        b->last[d]->next = n;
    else
        parent->child = n;
    b->last[d] = n;
    parent->count++;
    return 0;
}

static struct node *new_node(struct build *b, const yaml_event_t *ev, enum node_kind kind)
{
    struct node *n = arena_alloc(&b->l->a, sizeof(*n));
    if (n == NULL || ++b->nodes > NODES_MAX) {
        load_problem(b->l, NULL, "P003", "more than %d values, or no memory for them: split the file", NODES_MAX);
        return NULL;
    }
    n->kind = kind;
    n->file = b->l->file;
    n->line = (uint32_t)ev->start_mark.line + 1;
    n->col = (uint32_t)ev->start_mark.column + 1;
    return n;
}

static int refuse_extras(struct build *b, const struct node *n, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor)
        load_problem(b->l, n, "P005", "anchors (&%.60s) are not read: write out what is meant", (const char *)anchor);
    else if (tag)
        load_problem(b->l, n, "P005", "tags (%.60s) are not read: remove it", (const char *)tag);
    return anchor || tag ? -1 : 0;
}

static int open_node(struct build *b, const yaml_event_t *ev, enum node_kind kind)
{
    struct node *n = new_node(b, ev, kind);
    bool map = kind == NODE_MAP;
    if (n == NULL || refuse_extras(b, n, map ? ev->data.mapping_start.anchor : ev->data.sequence_start.anchor,
                                   map ? ev->data.mapping_start.tag : ev->data.sequence_start.tag) != 0)
        return -1;
    if (add_node(b, n) != 0)
        return -1;
    if (b->depth == POLICY_DEPTH_MAX) {
        load_problem(b->l, n, "P003", "nested deeper than %d levels", POLICY_DEPTH_MAX);
        return -1;
    }
    b->open[b->depth] = n;
    b->last[b->depth] = NULL;
    b->key[b->depth] = NULL;
    b->depth++;
    return 0;
}

static int add_scalar(struct build *b, const yaml_event_t *ev)
{
    struct node *n = new_node(b, ev, NODE_TEXT);
    if (n == NULL || refuse_extras(b, n, ev->data.scalar.anchor, ev->data.scalar.tag) != 0)
        return -1;
    n->plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    n->text = span_of(ev->data.scalar.value, ev->data.scalar.length);
    if (n->text.n && memchr(n->text.p, 0, n->text.n)) {
        load_problem(b->l, n, "P002", "a NUL byte (\\0) in a value: remove it");
        return -1;
    }
    n->text = arena_copy(&b->l->a, n->text);
    if (ev->data.scalar.length && n->text.n == 0) {
        load_problem(b->l, n, "P003", "no memory for the file");
        return -1;
    }
    return add_node(b, n);
}

static int take_event(struct build *b, const yaml_event_t *ev)
{
    struct node here = {
        .file = b->l->file, .line = (uint32_t)ev->start_mark.line + 1, .col = (uint32_t)ev->start_mark.column + 1};
    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->documents)
            load_problem(b->l, &here, "P005", "a second document (---) begins here: one file, one document");
        else if (ev->data.document_start.version_directive ||
                 ev->data.document_start.tag_directives.start != ev->data.document_start.tag_directives.end)
            load_problem(b->l, &here, "P005", "directives (%%) are not read: remove them");
        b->documents = true;
        return b->l->failed ? -1 : 0;
    case YAML_ALIAS_EVENT:
        load_problem(b->l, &here, "P005",
                     "aliases (*%.60s) are not read: write out what is meant, or put a value that "
                     "begins with * in quotes",
                     (const char *)ev->data.alias.anchor);
        return -1;
    case YAML_SCALAR_EVENT: return add_scalar(b, ev);
    case YAML_SEQUENCE_START_EVENT: return open_node(b, ev, NODE_LIST);
    case YAML_MAPPING_START_EVENT: return open_node(b, ev, NODE_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: b->depth--; return 0;
    default: return 0;
    }
}

static int by_key(const void *a, const void *b)
{
    return span_cmp((*(const struct node *const *)a)->key->text, (*(const struct node *const *)b)->key->text);
}

static void refuse_duplicates(struct loader *l, const struct node *map)
{
    const struct node *few[32], **v = few;
    size_t n = 0;
    if (map->count > 32)
        v = arena_alloc(&l->a, map->count * sizeof(*v));
    if (v == NULL) {
        load_problem(l, map, "P003", "no memory for the file");
        return;
    }
    for (const struct node *c = map->child; c; c = c->next)
        v[n++] = c;
    qsort(v, n, sizeof(v[0]), by_key);
    for (size_t i = 1; i < n; i++)
        if (by_key(&v[i - 1], &v[i]) == 0) {
            const struct node *a = v[i - 1]->key, *b = v[i]->key;
            bool swap = a->line > b->line || (a->line == b->line && a->col > b->col);
            load_problem(l, swap ? a : b, "P004", "the key \"%.*s\" is here twice (first in line %u): keep one",
                         SPAN_FMT(span_first(a->text, 60)), swap ? b->line : a->line);
        }
}

static void walk_duplicates(struct loader *l, const struct node *n)
{
    if (n->kind == NODE_MAP)
        refuse_duplicates(l, n);
    for (const struct node *c = n->child; c; c = c->next)
        if (c->child)
            walk_duplicates(l, c); /* at most POLICY_DEPTH_MAX deep */
}

/* What libyaml says, in words that say what to write. */
static const struct yaml_words {
    const char *problem, *context, *words;
    bool line; /* say where what it was reading began */
} yaml_words[] = {
    {"mapping values are not allowed", "",
     "a second \": \" in one line: a value that has one stands in quotes, such as "
     "\"No: ask first\"; if it is a key, it is indented too far",
     false},
    {"did not find expected key", "block mapping",
     "this line is indented unlike the keys it belongs to: they begin in the same column as the first one", true},
    {"did not find expected '-' indicator", "",
     "this line is indented unlike the list it belongs to: its entries begin with - in one column", true},
    {"did not find expected ',' or '}'", "",
     "a value with { or } in it is not in quotes, or a comma or a } is missing to the { before", true},
    {"did not find expected ',' or ']'", "", "a comma or a ] is missing to the [ before", true},
    {"found unexpected end of stream", "quoted scalar", "the quote is not closed", true},
    {"found unknown escape", "", "in double quotes \\ begins an escape: use single quotes", false},
    {"could not find expected ':'", "", "a line that is no \"key: value\": a colon and a blank are missing", false},
    {"cannot start any token", "", "a value that begins with @, % or ` stands in quotes", false},
    {"", "alias", "a value that begins with * stands in quotes, such as \"*.example.com\"", false},
};

static void say_unreadable(struct build *b, const yaml_parser_t *parser)
{
    struct node here = {.file = b->l->file,
                        .line = (uint32_t)parser->problem_mark.line + 1,
                        .col = (uint32_t)parser->problem_mark.column + 1};
    const char *problem = parser->problem ? parser->problem : "unreadable";
    const char *context = parser->context ? parser->context : "";
    for (size_t i = 0; i < sizeof(yaml_words) / sizeof(yaml_words[0]); i++)
        if (strstr(problem, yaml_words[i].problem) && strstr(context, yaml_words[i].context)) {
            load_problem(b->l, &here, "P001", yaml_words[i].line ? "not YAML: %s (line %zu)" : "not YAML: %s",
                         yaml_words[i].words, parser->context_mark.line + 1);
            return;
        }
    load_problem(b->l, &here, "P001", "not YAML: %s%s%s", problem, *context ? ", " : "", context);
}

static int parse_events(struct build *b, yaml_parser_t *parser)
{
    yaml_event_t ev;
    for (;;) {
        if (!yaml_parser_parse(parser, &ev)) {
            say_unreadable(b, parser);
            return -1;
        }
        bool end = ev.type == YAML_STREAM_END_EVENT;
        int rc = take_event(b, &ev);
        yaml_event_delete(&ev);
        if (rc != 0 || end)
            return rc;
    }
}

struct node *yaml_tree(struct loader *l, const char *file, struct span text)
{
    struct build b = {.l = l};
    yaml_parser_t parser;
    bool before = l->failed;
    l->file = file;
    if (!bytes_ok(l, text))
        return NULL;
    if (!yaml_parser_initialize(&parser)) {
        load_problem(l, NULL, "P003", "no memory to read the file");
        return NULL;
    }
    l->failed = false; /* of this file */
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, text.p ? text.p : (const uint8_t *)"", text.n);
    if (parse_events(&b, &parser) == 0 && b.root == NULL)
        load_problem(l, NULL, "P010", "the file is empty: a policy begins with \"version: 1\"");
    yaml_parser_delete(&parser);
    if (!l->failed && b.root->kind != NODE_MAP)
        load_problem(l, b.root, "P008", "the file must be a mapping: it begins with \"version: 1\"");
    if (!l->failed)
        walk_duplicates(l, b.root);
    bool ok = !l->failed;
    l->failed |= before;
    return ok ? b.root : NULL;
}
