#include "broker/models/route/table.h"

#include "policy/load/read/keys.h"
#include "policy/load/read/scalar.h"

#define AT(type, member) offsetof(struct type, member)
#define CONTEXT_MAX      UINT64_C(1000000000)

struct row_price {
    const struct node *at;
    struct number input, cache_read, cache_write, output;
};
struct row_model {
    const struct node *at;
    struct item name, provider, model, endpoint, lease;
    struct number protocol, reasoning, old_limit, context, output;
    struct row_price price;
};
struct row_task {
    const struct node *at;
    struct item name;
    struct items models;
    struct number by;
};
struct row_file {
    const struct node *at;
    struct number version;
    struct list models, tasks;
};

static void read_price(struct loader *l, const struct node *n, void *field)
{
    struct number *out = field;
    out->at = n;
    if (n->kind != NODE_TEXT || scalar_money(n->text, PRICE_MAX, &out->v) != NULL)
        load_problem(l, n, "M001",
                     "a price is a number for a million tokens with at most six decimals, such as 0.075");
}

static void read_endpoint(struct loader *l, const struct node *n, void *field)
{
    struct item *out = field;
    struct span s = n->kind == NODE_TEXT ? n->text : SPAN_NONE;
    bool url = span_starts(s, SPAN("https://")) || span_starts(s, SPAN("http://"));
    *out = (struct item){s, n};
    for (size_t i = 0; i < s.n; i++)
        url &= s.p[i] > 0x20 && s.p[i] < 0x7f && s.p[i] != '?' && s.p[i] != '#' && s.p[i] != '@';
    if (!url || s.n > 2 * MODEL_NAME_MAX || span_ends(s, SPAN("/")))
        load_problem(l, n, "M002",
                     "an endpoint is the URL before /messages, /chat/completions or /responses, without a slash at "
                     "its end, a query or a name, such as https://api.anthropic.com/v1");
}

static const struct choice protocols[] = {
    {"anthropic", MODEL_ANTHROPIC}, {"chat", MODEL_CHAT}, {"responses", MODEL_RESPONSES}, {NULL, 0}};
static const struct choice orders[] = {{"order", 0}, {"price", 1}, {NULL, 0}};

static const struct key price_keys[] = {
    {"input", KEY_CALL, AT(row_price, input), KEY_NEEDED, .call = read_price, .help = "for a million tokens read"},
    {"output", KEY_CALL, AT(row_price, output), KEY_NEEDED, .call = read_price, .help = "for a million written"},
    {"cache_read", KEY_CALL, AT(row_price, cache_read), 0, .call = read_price, .help = "as input if it is not said"},
    {"cache_write", KEY_CALL, AT(row_price, cache_write), 0, .call = read_price,
     .help = "as input if it is not said"},
    {.type = KEY_END}};
static const struct table price_table = {"price", sizeof(struct row_price), price_keys};

static const struct key model_keys[] = {
    {"protocol", KEY_ONE_OF, AT(row_model, protocol), KEY_NEEDED, .choices = protocols, .help = "what it speaks"},
    {"provider", KEY_TEXT, AT(row_model, provider), KEY_NEEDED, .help = "who runs it"},
    {"model", KEY_TEXT, AT(row_model, model), KEY_NEEDED, .help = "what the provider calls it"},
    {"endpoint", KEY_CALL, AT(row_model, endpoint), KEY_NEEDED, .call = read_endpoint, .help = "its URL"},
    {"lease", KEY_TEXT, AT(row_model, lease), 0,
     .help = "the credential of the policy of which a lease is shown; else the gateway puts one in unasked"},
    {"context", KEY_COUNT, AT(row_model, context), KEY_NEEDED, .lo = 1024, .hi = CONTEXT_MAX,
     .help = "tokens, question and answer together"},
    {"output", KEY_COUNT, AT(row_model, output), KEY_NEEDED, .lo = 1, .hi = CONTEXT_MAX,
     .help = "tokens of an answer at most"},
    {"reasoning", KEY_BOOL, AT(row_model, reasoning), 0, .help = "its reasoning is given back to it"},
    {"old_limit", KEY_BOOL, AT(row_model, old_limit), 0, .help = "chat: it knows max_tokens only"},
    {"price", KEY_MAP, AT(row_model, price), KEY_NEEDED, .table = &price_table, .help = "what it costs"},
    {.type = KEY_END}};
static const struct table model_table = {"a model", sizeof(struct row_model), model_keys};

static const struct key task_keys[] = {
    {"models", KEY_TEXTS, AT(row_task, models), KEY_NEEDED, .help = "of those above, the preferred one first"},
    {"by", KEY_ONE_OF, AT(row_task, by), 0, .choices = orders, .help = "order, or price: the cheapest first"},
    {.type = KEY_END}};
static const struct table task_table = {"a task", sizeof(struct row_task), task_keys};

static const struct key file_keys[] = {
    {"version", KEY_COUNT, AT(row_file, version), KEY_NEEDED, .lo = 1, .hi = 1, .help = "1"},
    {"models", KEY_NAMED, AT(row_file, models), KEY_NEEDED, .table = &model_table, .help = "by their names here"},
    {"tasks", KEY_NAMED, AT(row_file, tasks), KEY_NEEDED, .table = &task_table, .help = "what models are for"},
    {.type = KEY_END}};
static const struct table file_table = {"the table of models", sizeof(struct row_file), file_keys};

static void take_model(struct loader *l, const struct row_model *r, struct route_model *m)
{
    const struct row_price *p = &r->price;
    *m = (struct route_model){
        .target = {.name = r->name.text,
                   .protocol = (enum model_protocol)r->protocol.v,
                   .origin = {r->provider.text, r->model.text, r->endpoint.text},
                   .reasoning = r->reasoning.v == 1,
                   .old_limit = r->old_limit.v == 1},
        .lease = r->lease.text,
        .context = r->context.v,
        .output = r->output.v,
        .price = {.input = p->input.v,
                  .cache_read = p->cache_read.at ? p->cache_read.v : p->input.v,
                  .cache_write = p->cache_write.at ? p->cache_write.v : p->input.v,
                  .output = p->output.v},
    };
    if (!model_origin_ok(&m->target.origin))
        load_problem(l, r->at, "M003", "provider and model are 1 to %d printable characters without blanks",
                     MODEL_NAME_MAX);
}

static size_t named(const struct route_table *t, struct span name)
{
    size_t i = 0;
    while (i < t->n && !span_eq(t->model[i].target.name, name))
        i++;
    return i;
}

static void take_task(struct loader *l, const struct row_task *r, const struct route_table *t,
                      struct route_task *task)
{
    uint8_t *model = arena_alloc(&l->a, ROUTE_MODELS_MAX);
    *task = (struct route_task){.name = r->name.text, .model = model, .by_price = r->by.v == 1};
    for (size_t i = 0; i < r->models.n && model != NULL; i++) {
        size_t k = named(t, r->models.v[i].text);
        bool twice = false;
        for (size_t j = 0; j < task->n; j++)
            twice |= model[j] == k;
        if (k == t->n)
            load_problem(l, r->models.v[i].at, "M004",
                         "there is no model \"%.*s\" under models:", SPAN_FMT(span_first(r->models.v[i].text, 64)));
        else if (twice)
            load_problem(l, r->models.v[i].at, "M004", "this model is named twice");
        else
            model[task->n++] = (uint8_t)k;
    }
    if (model == NULL)
        load_problem(l, r->at, "M005", "no memory for the table of models");
}

static void take(struct loader *l, const struct row_file *r, struct route_table *t)
{
    if (r->models.n > ROUTE_MODELS_MAX || r->tasks.n > ROUTE_TASKS_MAX || r->models.n == 0 || r->tasks.n == 0) {
        load_problem(l, r->at, "M005", "1 to %d models and 1 to %d tasks are read", ROUTE_MODELS_MAX,
                     ROUTE_TASKS_MAX);
        return;
    }
    struct route_model *model = arena_alloc(&l->a, r->models.n * sizeof(*model));
    struct route_task *task = arena_alloc(&l->a, r->tasks.n * sizeof(*task));
    if (model == NULL || task == NULL) {
        load_problem(l, r->at, "M005", "no memory for the table of models");
        return;
    }
    for (size_t i = 0; i < r->models.n; i++)
        take_model(l, (const struct row_model *)r->models.v + i, &model[i]);
    *t = (struct route_table){model, r->models.n, task, r->tasks.n};
    for (size_t i = 0; i < r->tasks.n; i++)
        take_task(l, (const struct row_task *)r->tasks.v + i, t, &task[i]);
}

int table_read(const char *file, struct span text, struct arena *a, struct route_table *out, struct err *e)
{
    struct loader l = {.a = *a, .e = e, .file = file};
    struct row_file row = {0};
    *out = (struct route_table){0};
    const struct node *root = NULL;
    if (text.n > TABLE_TEXT_MAX)
        load_problem(&l, NULL, "M005", "the table of models is larger than %d bytes", TABLE_TEXT_MAX);
    else
        root = yaml_tree(&l, file, text);
    if (root != NULL)
        keys_decode_map(&l, root, &file_table, &row);
    if (root != NULL && !l.failed)
        take(&l, &row, out);
    bool bad = root == NULL || l.failed;
    if (bad)
        *out = (struct route_table){0};
    *a = l.a;
    return bad ? -1 : 0;
}
