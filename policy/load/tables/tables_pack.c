/* The grammar of packs. */
#include "policy/load/tables/tables.h"

static const struct choice effect_values[] = {{"read", EFFECT_READ},
                                              {"write", EFFECT_WRITE},
                                              {"delete", EFFECT_DELETE},
                                              {"admin", EFFECT_ADMIN},
                                              {"spend", EFFECT_SPEND},
                                              {"exec", EFFECT_EXEC},
                                              {0}};
static const struct choice dialect_names[] = {
#define X(id, word) {word, DIALECT_##id},
    DIALECTS(X)
#undef X
        {0}};
static const struct choice body_names[] = {{"opaque", BODY_NONE},
                                           {"git-receive-pack", BODY_GIT_RECEIVE_PACK},
                                           {"graphql", BODY_GRAPHQL},
                                           {"mcp", BODY_MCP},
                                           {0}};
static const struct choice slash_names[] = {{"refuse", 0}, {"keep", 1}, {0}};

static const struct key could_keys[] = {
    {.name = "op", .type = KEY_TEXT, .at = AT(m_could, op), .flags = KEY_NEEDED, .help = "an operation of this pack"},
    TEXT(m_could, method, "method", "the method it would have"),
    TEXT(m_could, path, "path", "the path it would have"),
    {0}};
static const struct table could_table = {"only_where:", sizeof(struct m_could), could_keys};

static const struct key op_keys[] = {
    {.name = "op", .type = KEY_TEXT, .at = AT(m_op, op), .flags = KEY_NEEDED, .help = "its name"},
    TEXT(m_op, about, "about", "for people"),
    {.name = "effect",
     .type = KEY_ONE_OF,
     .at = AT(m_op, effect),
     .choices = effect_values,
     .flags = KEY_NEEDED,
     .help = "what it does"},
    {.name = "method", .type = KEY_TEXTS, .at = AT(m_op, methods), .help = "default: any"},
    {.name = "path", .type = KEY_TEXT, .at = AT(m_op, path), .flags = KEY_NEEDED, .help = "at most one **"},
    TEXT(m_op, query, "query", "the whole query, exactly"),
    TEXT(m_op, content_type, "content_type", "exactly"),
    TEXT(m_op, resource, "resource", "{host}, {1} ... of the wildcards"),
    TEXT(m_op, strip, "strip", "a suffix that the wildcards lose"),
    TEXT(m_op, summary, "summary", "a sentence for the page"),
    {.name = "dialect",
     .type = KEY_ONE_OF,
     .at = AT(m_op, dialect),
     .choices = dialect_names,
     .help = "of a refusal; default: what the request is like"},
    {.name = "body", .type = KEY_ONE_OF, .at = AT(m_op, body), .choices = body_names, .help = "who reads it"},
    {.name = "body_max", .type = KEY_SIZE, .at = AT(m_op, body_max), .lo = 1024, .hi = 1u << 30, .help = "then 413"},
    {.name = "only_where",
     .type = KEY_MAP,
     .at = AT(m_op, could),
     .table = &could_table,
     .help = "a rule could let this happen"},
    {0}};
static const struct table op_table = {"an operation", sizeof(struct m_op), op_keys};

static const struct key resource_keys[] = {TEXT(m_resource, host, "host", "default: any"),
                                           {.name = "resource",
                                            .type = KEY_TEXT,
                                            .at = AT(m_resource, resource),
                                            .flags = KEY_NEEDED,
                                            .help = "as in an operation"},
                                           {0}};
static const struct table resource_table = {"an entry of resources:", sizeof(struct m_resource), resource_keys};

static const struct key pack_keys[] = {
    {.name = "pack", .type = KEY_TEXT, .at = AT(m_pack, pack), .flags = KEY_NEEDED, .help = "NAME@VERSION"},
    TEXT(m_pack, about, "about", "for people"),
    {.name = "hosts", .type = KEY_TEXTS, .at = AT(m_pack, hosts), .help = "default: any"},
    {.name = "encoded_slash",
     .type = KEY_ONE_OF,
     .at = AT(m_pack, encoded_slash),
     .choices = slash_names,
     .help = "%2F in paths"},
    {.name = "resources",
     .type = KEY_LIST,
     .at = AT(m_pack, resources),
     .table = &resource_table,
     .help = "the first that fits the host"},
    {.name = "operations",
     .type = KEY_LIST,
     .at = AT(m_pack, ops),
     .table = &op_table,
     .flags = KEY_NEEDED,
     .help = "the first that fits names the request"},
    {0}};
const struct table pack_table = {"a pack", sizeof(struct m_pack), pack_keys};
