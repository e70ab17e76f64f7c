#include "policy/image/image.h"

enum field_kind { F_END = 0, F_STR, F_RANGE, F_ONE, F_INDEX, F_BELOW, F_BYTE };

/* One row a field that holds an offset, an index or an enumeration. */
struct field {
    enum field_kind kind;
    size_t at;
    uint32_t arg; /* a table; for F_BELOW and F_BYTE the bound */
};

#define STR(T, f)                                                                                                    \
    {                                                                                                                \
        F_STR, offsetof(struct T, f), 0                                                                              \
    }
#define RANGE(T, f, t)                                                                                               \
    {                                                                                                                \
        F_RANGE, offsetof(struct T, f), t                                                                            \
    }
#define ONE(T, f, t)                                                                                                 \
    {                                                                                                                \
        F_ONE, offsetof(struct T, f), t                                                                              \
    }
#define INDEX(T, f, t)                                                                                               \
    {                                                                                                                \
        F_INDEX, offsetof(struct T, f), t                                                                            \
    }
#define BELOW(T, f, n)                                                                                               \
    {                                                                                                                \
        F_BELOW, offsetof(struct T, f), n                                                                            \
    }
#define BYTE(T, f, n)                                                                                                \
    {                                                                                                                \
        F_BYTE, offsetof(struct T, f), n                                                                             \
    }

static const struct field str_fields[] = {{F_STR, 0, 0}, {0}};
static const struct field glob_fields[] = {STR(img_glob, text), BELOW(img_glob, literal, 2), {0}};
static const struct field pair_fields[] = {STR(img_pair, key), RANGE(img_pair, values, IMG_GLOB), {0}};
static const struct field host_fields[] = {
    STR(img_host, text), BELOW(img_host, kind, HOST_ANY_LABELS + 1), BELOW(img_host, port, 65536), {0}};
static const struct field port_fields[] = {{F_BELOW, 0, 65536}, {0}};
static const struct field scope_fields[] = {
    STR(img_scope, name),          RANGE(img_scope, sandboxes, IMG_GLOB), RANGE(img_scope, labels, IMG_PAIR),
    BELOW(img_scope, resident, 2), RANGE(img_scope, regions, IMG_STR),    {0}};
static const struct field scope_ref_fields[] = {{F_BELOW, 0, IMG_NONE}, {0}};
static const struct field match_fields[] = {RANGE(img_match, hosts, IMG_HOST),
                                            RANGE(img_match, ports, IMG_PORT),
                                            RANGE(img_match, methods, IMG_STR),
                                            RANGE(img_match, paths, IMG_GLOB),
                                            RANGE(img_match, query, IMG_PAIR),
                                            RANGE(img_match, header, IMG_PAIR),
                                            RANGE(img_match, ops, IMG_GLOB),
                                            RANGE(img_match, resources, IMG_GLOB),
                                            RANGE(img_match, git_refs, IMG_GLOB),
                                            BELOW(img_match, schemes, 4),
                                            BELOW(img_match, effects, 1u << (EFFECT_EXEC + 1)),
                                            BELOW(img_match, git_force, 3),
                                            BELOW(img_match, git_delete, 3),
                                            BELOW(img_match, git_service, 4),
                                            BELOW(img_match, any_place, 2),
                                            BELOW(img_match, ws, 2),
                                            RANGE(img_match, ws_protocols, IMG_GLOB),
                                            RANGE(img_match, body, IMG_COND),
                                            BELOW(img_match, query_only, 2),
                                            RANGE(img_match, query_names, IMG_STR),
                                            RANGE(img_match, written, IMG_STR),
                                            {0}};
static const struct field rule_fields[] = {STR(img_rule, id),
                                           STR(img_rule, file),
                                           BELOW(img_rule, verdict, VERDICT_ALLOW + 1),
                                           BELOW(img_rule, floor, 2),
                                           BELOW(img_rule, scoped, 2),
                                           RANGE(img_rule, scopes, IMG_SCOPE_REF),
                                           ONE(img_rule, match, IMG_MATCH),
                                           RANGE(img_rule, except, IMG_MATCH),
                                           INDEX(img_rule, credential, IMG_CRED),
                                           INDEX(img_rule, approver, IMG_APPROVER),
                                           BELOW(img_rule, reason_required, 2),
                                           BELOW(img_rule, ws_send, (WS_SENDS_TEXT | WS_SENDS_BINARY) + 1),
                                           STR(img_rule, say),
                                           STR(img_rule, instead),
                                           RANGE(img_rule, limits, IMG_LIMIT),
                                           RANGE(img_rule, windows, IMG_WINDOW),
                                           INDEX(img_rule, over, IMG_RULE),
                                           BYTE(img_rule, grant_uses, GRANT_USES_MOST + 1),
                                           BYTE(img_rule, grant_named, 2),
                                           BYTE(img_rule, quorum, QUORUM_MOST + 1),
                                           BYTE(img_rule, self, SELF_YES + 1),
                                           BYTE(img_rule, step_up, 2),
                                           BYTE(img_rule, diff, DIFF_REQUIRED + 1),
                                           {0}};
static const struct field rule_ref_fields[] = {{F_BELOW, 0, IMG_NONE}, {0}};
static const struct field slot_fields[] = {RANGE(img_slot, rules, IMG_RULE_REF), {0}};
static const struct field cred_fields[] = {STR(img_cred, name),
                                           STR(img_cred, arg),
                                           STR(img_cred, header),
                                           STR(img_cred, where),
                                           STR(img_cred, format),
                                           STR(img_cred, user),
                                           BELOW(img_cred, source, SOURCE_KINDS),
                                           BELOW(img_cred, slot, SLOT_KINDS),
                                           BELOW(img_cred, basic, 2),
                                           BELOW(img_cred, certificate, 2),
                                           BELOW(img_cred, refuse, 2),
                                           BELOW(img_cred, lease, LEASE_FORMAT_COUNT),
                                           BELOW(img_cred, require_lease, 2),
                                           BELOW(img_cred, freeze_on_leak, 2),
                                           BELOW(img_cred, stub, STUB_KINDS),
                                           INDEX(img_cred, beside, IMG_CRED),
                                           STR(img_cred, region),
                                           STR(img_cred, service),
                                           BELOW(img_cred, sign, SIGN_WAYS),
                                           STR(img_cred, template),
                                           RANGE(img_cred, fields, IMG_SETTING),
                                           BELOW(img_cred, hash, SIGN_HASHES),
                                           BELOW(img_cred, encoding, SIGN_CODINGS),
                                           BELOW(img_cred, key_coding, SIGN_CODINGS),
                                           BELOW(img_cred, secret_parts, SIGN_SECRETS),
                                           RANGE(img_cred, only, IMG_PLACE),
                                           RANGE(img_cred, settings, IMG_SETTING),
                                           {0}};
static const struct field setting_fields[] = {
    STR(img_setting, key), STR(img_setting, value), BELOW(img_setting, from, SOURCE_SYSTEMD + 1), {0}};
static const struct field stub_fields[] = {STR(img_stub, host),
                                           STR(img_stub, path),
                                           BELOW(img_stub, port, 65536),
                                           BELOW(img_stub, scheme, 4),
                                           BELOW(img_stub, kind, STUB_KINDS),
                                           INDEX(img_stub, credential, IMG_CRED),
                                           {0}};
static const struct field place_fields[] = {STR(img_place, host),
                                            BELOW(img_place, port, 65536),
                                            BELOW(img_place, scheme, 4),
                                            RANGE(img_place, path, IMG_GLOB),
                                            {0}};
static const struct field upstream_fields[] = {STR(img_upstream, host),
                                               STR(img_upstream, address),
                                               STR(img_upstream, ca),
                                               STR(img_upstream, crl),
                                               STR(img_upstream, region),
                                               BELOW(img_upstream, port, 65536),
                                               BELOW(img_upstream, cleartext, 2),
                                               BELOW(img_upstream, only_tls13, 2),
                                               RANGE(img_upstream, pins, IMG_STR),
                                               RANGE(img_upstream, allow_private, IMG_STR),
                                               {0}};
static const struct field approver_fields[] = {
    STR(img_approver, name), RANGE(img_approver, operators, IMG_STR), RANGE(img_approver, groups, IMG_STR), {0}};
static const struct field escalate_fields[] = {INDEX(img_escalate, approver, IMG_APPROVER), {0}};
static const struct field gate_fields[] = {STR(img_gate, name),
                                           RANGE(img_gate, program, IMG_STR),
                                           BELOW(img_gate, kind, GATE_KINDS),
                                           BELOW(img_gate, body, 2),
                                           STR(img_gate, url),
                                           STR(img_gate, secret),
                                           BELOW(img_gate, api, GATE_APIS),
                                           INDEX(img_gate, credential, IMG_CRED),
                                           STR(img_gate, model),
                                           STR(img_gate, instructions),
                                           STR(img_gate, host),
                                           BELOW(img_gate, port, 65536),
                                           {0}};
static const struct field pack_fields[] = {STR(img_pack, name),
                                           RANGE(img_pack, hosts, IMG_HOST),
                                           RANGE(img_pack, ops, IMG_OP),
                                           RANGE(img_pack, resources, IMG_RESOURCE),
                                           BELOW(img_pack, keep_slash, 2),
                                           {0}};
static const struct field op_fields[] = {STR(img_op, op),
                                         STR(img_op, query),
                                         STR(img_op, content_type),
                                         STR(img_op, resource),
                                         STR(img_op, strip),
                                         STR(img_op, summary),
                                         STR(img_op, could_op),
                                         STR(img_op, could_method),
                                         STR(img_op, could_path),
                                         RANGE(img_op, methods, IMG_STR),
                                         ONE(img_op, path, IMG_GLOB),
                                         BELOW(img_op, effect, EFFECT_EXEC + 1),
                                         BELOW(img_op, dialect, DIALECT_COUNT),
                                         BELOW(img_op, body, BODY_KINDS),
                                         BELOW(img_op, query_rule, QUERY_EXACT + 1),
                                         {0}};
static const struct field resource_fields[] = {STR(img_resource, host), STR(img_resource, text), {0}};

static const struct field cond_fields[] = {
    BELOW(img_cond, kind, COND_KINDS), BELOW(img_cond, op, COND_OPS),    STR(img_cond, key),
    RANGE(img_cond, texts, IMG_STR),   RANGE(img_cond, globs, IMG_GLOB), {0}};

static const struct field limit_fields[] = {
    BELOW(img_limit, measure, LIMIT_MEASURES), BELOW(img_limit, per, LIMIT_PERS), STR(img_limit, key), {0}};
static const struct field window_fields[] = {BELOW(img_window, days, WINDOW_DAYS_ALL + 1),
                                             BELOW(img_window, from_min, 24 * 60 + 1),
                                             BELOW(img_window, to_min, 24 * 60 + 1),
                                             INDEX(img_window, zone, IMG_ZONE),
                                             {0}};
static const struct field zone_fields[] = {STR(img_zone, name), RANGE(img_zone, shifts, IMG_SHIFT), {0}};
static const struct field shift_fields[] = {{0}};

static const struct {
    size_t size;
    const struct field *fields;
} tables[IMG_TABLES] = {
    [IMG_STR] = {sizeof(struct img_str), str_fields},
    [IMG_GLOB] = {sizeof(struct img_glob), glob_fields},
    [IMG_PAIR] = {sizeof(struct img_pair), pair_fields},
    [IMG_HOST] = {sizeof(struct img_host), host_fields},
    [IMG_PORT] = {sizeof(uint32_t), port_fields},
    [IMG_SCOPE] = {sizeof(struct img_scope), scope_fields},
    [IMG_SCOPE_REF] = {sizeof(uint32_t), scope_ref_fields},
    [IMG_MATCH] = {sizeof(struct img_match), match_fields},
    [IMG_RULE] = {sizeof(struct img_rule), rule_fields},
    [IMG_RULE_REF] = {sizeof(uint32_t), rule_ref_fields},
    [IMG_SLOT] = {sizeof(struct img_slot), slot_fields},
    [IMG_CRED] = {sizeof(struct img_cred), cred_fields},
    [IMG_PLACE] = {sizeof(struct img_place), place_fields},
    [IMG_UPSTREAM] = {sizeof(struct img_upstream), upstream_fields},
    [IMG_APPROVER] = {sizeof(struct img_approver), approver_fields},
    [IMG_PACK] = {sizeof(struct img_pack), pack_fields},
    [IMG_OP] = {sizeof(struct img_op), op_fields},
    [IMG_RESOURCE] = {sizeof(struct img_resource), resource_fields},
    [IMG_COND] = {sizeof(struct img_cond), cond_fields},
    [IMG_LIMIT] = {sizeof(struct img_limit), limit_fields},
    [IMG_WINDOW] = {sizeof(struct img_window), window_fields},
    [IMG_ZONE] = {sizeof(struct img_zone), zone_fields},
    [IMG_SHIFT] = {sizeof(struct img_shift), shift_fields},
    [IMG_SETTING] = {sizeof(struct img_setting), setting_fields},
    [IMG_STUB] = {sizeof(struct img_stub), stub_fields},
    [IMG_GATE] = {sizeof(struct img_gate), gate_fields},
    [IMG_ESCALATE] = {sizeof(struct img_escalate), escalate_fields},
};

size_t img_record_size(enum img_table t)
{
    return tables[t].size;
}

const void *img_at(const struct policy *p, enum img_table t, uint32_t i)
{
    return (const uint8_t *)p->table[t] + tables[t].size * i;
}

int img_rule_named(const struct policy *p, struct span id)
{
    uint32_t lo = 0, hi = p->n[IMG_RULE];
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        int c = span_cmp(img_span(p, ((const struct img_rule *)img_at(p, IMG_RULE, mid))->id), id);
        if (c == 0)
            return (int)mid;
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return -1;
}

static bool str_ok(const struct policy *p, const uint8_t *at)
{
    struct img_str s;
    memcpy(&s, at, sizeof(s));
    return s.off <= p->head->size && s.n <= p->head->size - s.off;
}

static bool range_ok(const struct policy *p, const uint8_t *at, uint32_t table)
{
    struct img_range r;
    memcpy(&r, at, sizeof(r));
    return r.first <= p->n[table] && r.n <= p->n[table] - r.first;
}

static bool field_ok(const struct policy *p, const uint8_t *record, const struct field *f)
{
    uint32_t v[2] = {0, 0};
    bool one = f->kind == F_INDEX || f->kind == F_BELOW;
    memcpy(v, record + f->at, f->kind == F_BYTE ? 1 : one ? sizeof(v[0]) : sizeof(v));
    switch (f->kind) {
    case F_STR: return str_ok(p, record + f->at);
    case F_RANGE: return range_ok(p, record + f->at, f->arg);
    case F_ONE: return range_ok(p, record + f->at, f->arg) && v[1] == 1;
    case F_INDEX: return v[0] == IMG_NONE || v[0] < p->n[f->arg];
    case F_BELOW: return v[0] < f->arg;
    case F_BYTE: return record[f->at] < f->arg;
    case F_END: break;
    }
    return false;
}

static bool table_place_ok(const struct img_head *h, uint32_t t)
{
    uint64_t end = (uint64_t)h->table[t].first + (uint64_t)h->table[t].n * tables[t].size;
    return h->table[t].first % 8 == 0 && h->table[t].first >= sizeof(*h) && end <= h->size;
}

/* What a row a field cannot say. */
static bool extras_ok(const struct policy *p)
{
    for (uint32_t i = 0; i < p->n[IMG_GLOB]; i++) {
        const struct img_glob *g = img_at(p, IMG_GLOB, i);
        if (g->head > g->text.n || g->tail > g->text.n)
            return false;
    }
    for (uint32_t i = 0; i < p->n[IMG_MATCH]; i++) {
        const struct img_match *m = img_at(p, IMG_MATCH, i);
        if (m->written.n && m->written.n != m->paths.n)
            return false;
    }
    for (uint32_t i = 0; i < p->n[IMG_SCOPE_REF]; i++)
        if (*(const uint32_t *)img_at(p, IMG_SCOPE_REF, i) >= p->n[IMG_SCOPE])
            return false;
    for (uint32_t i = 0; i < p->n[IMG_RULE_REF]; i++)
        if (*(const uint32_t *)img_at(p, IMG_RULE_REF, i) >= p->n[IMG_RULE])
            return false;
    for (uint32_t i = 0; i < p->n[IMG_WINDOW]; i++)
        if (((const struct img_window *)img_at(p, IMG_WINDOW, i))->zone == IMG_NONE)
            return false;
    for (uint32_t i = 0; i < p->n[IMG_STUB]; i++)
        if (((const struct img_stub *)img_at(p, IMG_STUB, i))->credential == IMG_NONE)
            return false;
    if (p->n[IMG_GATE] > GATES_MAX || p->n[IMG_ESCALATE] > ESCALATE_MAX)
        return false;
    for (uint32_t i = 0; i < p->n[IMG_RULE]; i++) /* a gate that is not there would be one nobody asks */
        if (((const struct img_rule *)img_at(p, IMG_RULE, i))->gates >> p->n[IMG_GATE])
            return false;
    for (uint32_t i = 0; i < p->n[IMG_ESCALATE]; i++)
        if (((const struct img_escalate *)img_at(p, IMG_ESCALATE, i))->approver == IMG_NONE)
            return false;
    for (uint32_t i = 0; i < p->n[IMG_RULE]; i++)
        if ((uint64_t)((const struct img_rule *)img_at(p, IMG_RULE, i))->escalate >> p->n[IMG_ESCALATE])
            return false;
    for (uint32_t i = 0; i < p->n[IMG_UPSTREAM]; i++) {
        const struct img_upstream *u = img_at(p, IMG_UPSTREAM, i);
        for (uint32_t k = 0; k < u->pins.n; k++)
            if (((const struct img_str *)img_at(p, IMG_STR, u->pins.first + k))->n != 32)
                return false;
    }
    /* A free slot ends every search; without one a miss would not end. */
    uint32_t used = 0, slots = p->n[IMG_SLOT];
    for (uint32_t i = 0; i < slots; i++)
        used += ((const struct img_slot *)img_at(p, IMG_SLOT, i))->rules.n != 0;
    return slots != 0 && (slots & (slots - 1)) == 0 && used < slots;
}

bool img_check(struct policy *p)
{
    const struct img_head *h = p->head;
    if (!str_ok(p, (const uint8_t *)&h->name))
        return false;
    for (uint32_t t = 0; t < IMG_TABLES; t++) {
        if (!table_place_ok(h, t))
            return false;
        p->table[t] = p->base + h->table[t].first;
        p->n[t] = h->table[t].n;
    }
    for (uint32_t t = 0; t < IMG_TABLES; t++)
        for (uint32_t i = 0; i < p->n[t]; i++)
            for (const struct field *f = tables[t].fields; f->kind != F_END; f++)
                if (!field_ok(p, img_at(p, (enum img_table)t, i), f))
                    return false;
    return range_ok(p, (const uint8_t *)&h->residents, IMG_SCOPE_REF) && extras_ok(p);
}

struct span policy_name(const struct policy *p)
{
    return img_span(p, p->head->name);
}

struct span policy_digest(const struct policy *p)
{
    return span_of(p->head->digest, sizeof(p->head->digest));
}

uint64_t policy_learning_until(const struct policy *p)
{
    return p->head->learning_until_ms;
}

uint32_t img_hash_begin(uint8_t kind)
{
    return (2166136261u ^ kind) * 16777619u;
}

uint32_t img_hash_add(uint32_t h, struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        h = (h ^ (c >= 'A' && c <= 'Z' ? c | 0x20u : c)) * 16777619u;
    }
    return h;
}

uint32_t img_hash_end(uint32_t h)
{
    h ^= h >> 15;
    h *= 0x2c1b3c6du;
    return h ^ h >> 13;
}

struct img_range img_find(const struct policy *p, uint32_t hash)
{
    uint32_t mask = p->n[IMG_SLOT] - 1;
    for (uint32_t i = hash & mask;; i = (i + 1) & mask) {
        const struct img_slot *s = img_at(p, IMG_SLOT, i);
        if (s->rules.n == 0)
            return (struct img_range){0, 0};
        if (s->hash == hash)
            return s->rules;
    }
}
