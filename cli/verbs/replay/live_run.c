/* Live replays as they run: begun, looked after, ended. What has begun ends by itself too, by its bounds, and cleans
 * up behind itself in the broker, should this program be gone. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/verbs/replay/live.h"

enum {
    PATH_ROOM = 256,
    BODY_ROOM = 1024,
    LOOK_MS = 200,
    AWAY_MS = 120 * 1000, /* so long a broker that is away is asked again */
    TICKET_PAGES = 100,   /* of 500, back to when it began */
    TICKETS = 500
};

/* --- asked ------------------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* So many ms, or until somebody wants it to end; 0: has somebody, until now? */
static void rest(struct living *v, long ms)
{
    const struct timespec a_while = {.tv_nsec = ms * 1000000L};

    if (sigtimedwait(&v->ends, NULL, &a_while) > 0)
        v->told++;
}

/* A broker that was killed is started again, and what it was asked may be asked once more: reading, cancelling, and
 * beginning with the same key. *status is 500 or more in no answer that is given. */
static int ask(struct living *v, const char *method, const char *path, struct span body, unsigned *status,
               struct dynbuf *answer)
{
    struct err e = {"it is not able to now"};
    uint64_t until_ms = now_ms() + AWAY_MS;

    do {
        dynbuf_free(answer);
        dynbuf_init(answer, API_ANSWER_MAX);
        if (api_call(v->x->sock, method, path, body, status, answer, &e) == 0 && *status < 500)
            return CLI_OK;
        rest(v, LOOK_MS);
    } while (v->told < 2 && now_ms() < until_ms);
    return v->told < 2 ? verb_fail(CLI_RUNTIME, "the broker does not answer: %s", e.text) : CLI_RUNTIME;
}

static void path_of(const struct living *v, const char *turn, const char *what, char out[PATH_ROOM])
{
    (void)snprintf(out, PATH_ROOM, "/turns/%s%s?tenant=%s", turn, what, v->x->tenant);
}

static void why(struct live_run *r, struct span words)
{
    (void)snprintf(r->why, sizeof(r->why), "%.*s", SPAN_FMT(span_first(words, LIVE_WHY_MAX - 1)));
}

/* --- begun ------------------------------------------------------------------------------------- */

static uint64_t promised(const struct living *v)
{
    uint64_t n = 0;

    for (size_t i = 0; i < v->parallel; i++)
        n += v->slot[i].used ? v->slot[i].promised : 0;
    return n;
}

static int put_body(const struct living *v, const struct live_run *r, uint64_t share, struct dynbuf *b)
{
    char key[ID_TEXT + 1];
    struct jsonw w;
    struct id id;

    if (id_new(&id) != 0)
        return verb_fail(CLI_RUNTIME, "the system has no randomness to give");
    id_text(&id, key);
    jsonw_begin(&w, b);
    jsonw_object(&w);
    jsonw_kv(&w, "model", v->live.model[r->model].name);
    jsonw_kv(&w, "key", span_str(key));
    jsonw_kv_u64(&w, "cost_micro", share);
    jsonw_kv_u64(&w, "wall_ms", v->wait_ms);
    jsonw_end_object(&w);
    return dynbuf_ok(b) ? CLI_OK : verb_fail(CLI_USAGE, "the name of a model is too long");
}

static int begun(struct living *v, struct live_slot *s, struct span answer)
{
    struct arena a;
    int rc = CLI_OK;

    arena_init(&a, API_ANSWER_MAX);
    const struct json *j = json_parse(answer, &a);
    struct span turn = member_text(j, "turn_id");
    if (turn.n != ID_TEXT || id_parse(member_text(j, "conversation_id"), &v->conversation[s->run]) != 0)
        rc = verb_fail(CLI_RUNTIME, "the broker's answer is not understood");
    else
        memcpy(s->turn, turn.p, ID_TEXT);
    arena_free(&a);
    return rc;
}

/* It was not begun. What the broker has no room for now it may have later: it is asked again, as long as one may
 * take, and if it has none by then, whatever comes behind it is not waited for. Anything else is said of this run
 * alone. */
static int not_begun(struct living *v, struct live_slot *s, unsigned status, const struct dynbuf *answer)
{
    uint64_t now = now_ms();
    struct err e;

    if (status == 429 && v->full_ms == 0)
        v->full_ms = now;
    if (status == 429 && now - v->full_ms < v->wait_ms) {
        v->next = s->run;
        v->full = true;
        return CLI_OK;
    }
    (void)api_explain(status, dynbuf_span(answer), &e);
    why(&v->live.run[s->run], span_str(e.text));
    return CLI_OK;
}

static int begin(struct living *v, struct live_slot *s)
{
    struct live_run *r = &v->live.run[v->next];
    uint64_t share = live_share(v->live.most_micro, v->spent, promised(v), v->live.runs - v->next);
    char path[PATH_ROOM], turn[ID_TEXT + 1];
    struct dynbuf body, answer;
    unsigned status = 0;

    *s = (struct live_slot){.run = v->next++, .promised = share};
    if (share == 0) {
        why(r, SPAN("nothing of --cost is left for it"));
        return CLI_OK;
    }
    id_text(&v->live.set->run[r->turn].turn, turn);
    path_of(v, turn, "/live", path);
    dynbuf_init(&body, BODY_ROOM);
    dynbuf_init(&answer, API_ANSWER_MAX);
    int rc = put_body(v, r, share, &body);
    if (rc == CLI_OK)
        rc = ask(v, "POST", path, dynbuf_span(&body), &status, &answer);
    if (rc == CLI_OK && status == 202) {
        rc = begun(v, s, dynbuf_span(&answer));
        s->used = rc == CLI_OK;
        v->full_ms = 0;
    } else if (rc == CLI_OK) {
        rc = not_begun(v, s, status, &answer);
    }
    dynbuf_free(&body);
    dynbuf_free(&answer);
    return rc;
}

/* A turn that is none is begun by nobody: the broker says that there is none, once it has found the model. */
static int know_model(struct living *v, size_t model)
{
    const struct live_run r = {.model = model};
    char path[PATH_ROOM], turn[ID_TEXT + 1];
    struct dynbuf body, answer;
    unsigned status = 0;
    struct id none;

    if (id_new(&none) != 0)
        return verb_fail(CLI_RUNTIME, "the system has no randomness to give");
    id_text(&none, turn);
    path_of(v, turn, "/live", path);
    dynbuf_init(&body, BODY_ROOM);
    dynbuf_init(&answer, API_ANSWER_MAX);
    int rc = put_body(v, &r, 1, &body);
    if (rc == CLI_OK)
        rc = ask(v, "POST", path, dynbuf_span(&body), &status, &answer);
    if (rc == CLI_OK && status != 404)
        rc = replay_refused(status, &answer);
    dynbuf_free(&body);
    dynbuf_free(&answer);
    return rc;
}

/* --- over -------------------------------------------------------------------------------------- */

/* One that was set aside was cleaned up behind by its last worker, unless that one was lost as well. */
static void clean(const struct living *v, const struct id *conversation)
{
    static const struct {
        const char *method, *kind, *rest;
    } ask[] = {{"POST", "c-", "/destroy"}, {"DELETE", "m-", "?end_session=1"}};
    char id[ID_TEXT + 1], path[PATH_ROOM];
    struct dynbuf answer;
    unsigned status;
    struct err e;

    id_text(conversation, id);
    for (size_t i = 0; i < sizeof(ask) / sizeof(ask[0]); i++) {
        dynbuf_init(&answer, API_ANSWER_MAX);
        (void)snprintf(path, sizeof(path), "/api/v1/sandboxes/%s%s%s", ask[i].kind, id, ask[i].rest);
        if (api_call(v->control, ask[i].method, path, SPAN_NONE, &status, &answer, &e) != 0 ||
            (status != 200 && status != 204 && status != 404))
            fprintf(stderr, "# what is left of conversation %s at the gateway ends by its time\n", id);
        dynbuf_free(&answer);
    }
}

static int take(struct living *v, struct live_slot *s, struct live_run *r)
{
    char path[PATH_ROOM];
    struct dynbuf answer;
    unsigned status = 0;

    path_of(v, s->turn, "/recording", path);
    dynbuf_init(&answer, API_ANSWER_MAX);
    int rc = ask(v, "GET", path, SPAN_NONE, &status, &answer);
    bool room = answer.n <= SET_BYTES_MAX - v->x->set.n;
    if (rc == CLI_OK && status == 200 && room && dynbuf_add(&v->x->set, dynbuf_span(&answer)) == 0) {
        r->state = LIVE_RAN;
        r->made = v->x->runs++;
    } else if (rc == CLI_OK) {
        why(r, status == 200 ? SPAN("what is recorded of all runs has no room: take fewer at once")
                             : SPAN("nothing of it is recorded"));
    }
    dynbuf_free(&answer);
    return rc;
}

static int over(struct living *v, struct live_slot *s, const struct json *j)
{
    struct live_run *r = &v->live.run[s->run];
    char of[ID_TEXT + 1];

    s->used = false;
    r->state = LIVE_LOST; /* until its recording is had */
    r->end = turn_end_of(member_text(j, "end"));
    r->cost_micro = member_u64(j, "cost_micro");
    v->spent += r->cost_micro;
    why(r, member_text(j, "why")); /* the last thing that went wrong, if anything did */
    if (span_eq(member_text(j, "state"), SPAN("aside")))
        clean(v, &v->conversation[s->run]);
    id_text(&v->live.set->run[r->turn].turn, of);
    fprintf(stderr, "# %zu of %zu: %s by %.*s, repetition %llu: %s, %llu steps, %llu millionths\n", s->run + 1,
            v->live.runs, of, SPAN_FMT(v->live.model[r->model].name), (unsigned long long)r->seed,
            turn_end_name(r->end), (unsigned long long)member_u64(j, "steps"), (unsigned long long)r->cost_micro);
    return take(v, s, r);
}

static int look(struct living *v, struct live_slot *s)
{
    char path[PATH_ROOM];
    struct dynbuf answer;
    unsigned status = 0;
    struct arena a;

    path_of(v, s->turn, "", path);
    dynbuf_init(&answer, API_ANSWER_MAX);
    arena_init(&a, API_ANSWER_MAX);
    int rc = ask(v, "GET", path, SPAN_NONE, &status, &answer);
    const struct json *j = rc == CLI_OK && status == 200 ? json_parse(dynbuf_span(&answer), &a) : NULL;
    struct span state = member_text(j, "state");
    if (rc == CLI_OK && status != 200)
        rc = replay_refused(status, &answer);
    else if (rc == CLI_OK && state.n == 0)
        rc = verb_fail(CLI_RUNTIME, "the broker's answer is not understood");
    else if (span_eq(state, SPAN("done")) || span_eq(state, SPAN("aside")))
        rc = over(v, s, j);
    arena_free(&a);
    dynbuf_free(&answer);
    return rc;
}

/* --- what nobody decided ------------------------------------------------------------------------- */

static void count(struct living *v, const struct json *ticket)
{
    struct span box = member_text(ticket, "sandbox");
    struct id id;

    if (member_text(ticket, "decided_channel").n > 0) /* it ended after somebody's word */
        return;
    if (box.n != 2 + ID_TEXT || id_parse(span_from(box, 2), &id) != 0)
        return;
    for (size_t i = 0; i < v->live.runs; i++)
        if (id_eq(&v->conversation[i], &id))
            v->live.run[i].undecided++;
}

/* A page of those that ended without anybody's word, the newest first. *more: there may be another. */
static int count_page(struct living *v, const char *state, char after[ID_TEXT + 1], bool *more)
{
    char path[PATH_ROOM];
    struct dynbuf answer;
    unsigned status = 0;
    struct arena a;
    struct err e;

    (void)snprintf(path, sizeof(path), "/api/v1/tickets?state=%s&limit=%d%s%s", state, TICKETS,
                   after[0] ? "&after=" : "", after);
    dynbuf_init(&answer, API_ANSWER_MAX);
    arena_init(&a, 4 * API_ANSWER_MAX);
    int rc = api_call(v->control, "GET", path, SPAN_NONE, &status, &answer, &e);
    const struct json *list =
        rc == 0 && status == 200 ? json_get(json_parse(dynbuf_span(&answer), &a), SPAN("tickets")) : NULL;
    *more = list && list->count == TICKETS;
    for (const struct json *t = list ? list->child : NULL; t; t = t->next) {
        *more &= member_u64(t, "created_ms") >= v->began_ms;
        (void)snprintf(after, ID_TEXT + 1, "%.*s", SPAN_FMT(span_first(member_text(t, "id"), ID_TEXT)));
        count(v, t);
    }
    arena_free(&a);
    dynbuf_free(&answer);
    return list ? 0 : -1;
}

/* What was paid for is told all the same. */
static void undecided(struct living *v)
{
    static const char *const states[] = {"cancelled", "expired"};
    int rc = 0;

    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        char after[ID_TEXT + 1] = "";
        bool more = true;
        for (int page = 0; page < TICKET_PAGES && more && rc == 0; page++)
            rc = count_page(v, states[i], after, &more);
    }
    if (rc != 0)
        fprintf(stderr, "# the gateway does not say which requests nobody decided: the report does not count them\n");
}

/* --- all of them --------------------------------------------------------------------------------- */

static int cancel(struct living *v)
{
    int rc = CLI_OK;

    fprintf(stderr, "# what runs is cancelled; once more, and it is left to end by itself\n");
    for (size_t i = 0; i < v->parallel && v->told < 2; i++) {
        char path[PATH_ROOM];
        struct dynbuf answer;
        unsigned status;
        if (!v->slot[i].used)
            continue;
        path_of(v, v->slot[i].turn, "/cancel", path);
        dynbuf_init(&answer, API_ANSWER_MAX);
        int was = ask(v, "POST", path, SPAN_NONE, &status, &answer);
        rc = was != CLI_OK ? was : rc;
        dynbuf_free(&answer);
    }
    return rc;
}

static bool busy(const struct living *v)
{
    for (size_t i = 0; i < v->parallel; i++)
        if (v->slot[i].used)
            return true;
    return false;
}

static int begin_all(struct living *v)
{
    int rc = CLI_OK;

    v->full = false;
    for (size_t i = 0; i < v->parallel && rc == CLI_OK; i++)
        while (!v->slot[i].used && v->next < v->live.runs && rc == CLI_OK && v->told == 0 && !v->full) {
            rc = begin(v, &v->slot[i]);
            rest(v, 0);
        }
    return rc;
}

static int look_all(struct living *v)
{
    int rc = CLI_OK;

    for (size_t i = 0; i < v->parallel; i++) {
        int was = v->slot[i].used ? look(v, &v->slot[i]) : CLI_OK;
        rc = rc == CLI_OK ? was : rc;
    }
    return rc;
}

/* Whatever goes wrong, what runs is cancelled and waited for, as long as nobody wants to leave. */
int live_go(struct living *v)
{
    int rc = CLI_OK;
    bool cancelled = false;

    for (size_t i = 0; i < v->live.models && rc == CLI_OK; i++)
        rc = know_model(v, i);
    for (;;) {
        if (rc == CLI_OK && v->told == 0)
            rc = begin_all(v);
        bool ends = rc != CLI_OK || v->told > 0;
        if ((!busy(v) && (ends || !v->full)) || v->told > 1)
            break;
        if (ends && !cancelled && (cancelled = true) && cancel(v) != CLI_OK)
            return CLI_RUNTIME;
        rest(v, LOOK_MS);
        int was = look_all(v);
        if (was != CLI_OK && ends)
            return CLI_RUNTIME;
        rc = rc == CLI_OK ? was : rc;
    }
    if (rc == CLI_OK && v->told > 0)
        rc = verb_fail(CLI_RUNTIME, "interrupted: what ran was cancelled, and there is no report");
    if (rc == CLI_OK)
        undecided(v);
    return rc;
}
