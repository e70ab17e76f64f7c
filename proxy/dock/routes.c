/* From a request to its handler. Which routes there are, per version of the SDK: README.md. */
#include "proxy/dock/routes.h"

#include "common/log.h"
#include "proxy/dock/access/signed.h"

enum { UNKNOWN_SAID = 64 /* of the requests for what is not here: logged, the rest is counted */ };

/* A `*` is one segment, given to the handler as x->arg. */
static const struct route {
    const char *method, *path;
    enum call_form form;
    call_fn *fn;
    bool pieces; /* the handler takes the body itself */
} routes[] = {
    {"POST", "/sandboxes", CALL_CONTROL, control_create, false},
    {"POST", "/v2/sandboxes", CALL_CONTROL, control_create, false},
    {"GET", "/sandboxes", CALL_CONTROL, control_list, false},
    {"GET", "/v2/sandboxes", CALL_CONTROL, control_list, false},
    {"GET", "/sandboxes/*", CALL_CONTROL, control_info, false},
    {"DELETE", "/sandboxes/*", CALL_CONTROL, control_kill, false},
    {"POST", "/sandboxes/*/connect", CALL_CONTROL, control_connect, false},
    {"POST", "/v2/sandboxes/*/connect", CALL_CONTROL, control_connect, false},
    {"POST", "/sandboxes/*/resume", CALL_CONTROL, control_connect, false},
    {"POST", "/sandboxes/*/timeout", CALL_CONTROL, control_timeout, false},
    {"POST", "/sandboxes/*/pause", CALL_CONTROL, control_pause, false},
    {"GET", "/sandboxes/*/metrics", CALL_CONTROL, control_metrics, false},
    {"PUT", "/sandboxes/*/network", CALL_CONTROL, route_no_network, false},
    {"POST", "/sandboxes/*/snapshots", CALL_CONTROL, snapshot_make, false},
    {"POST", "/sandboxes/*/fork", CALL_CONTROL, fork_make, false},
    {"POST", "/sandboxes/*/refreshes", CALL_CONTROL, control_refresh, false},
    {"GET", "/snapshots", CALL_CONTROL, snapshot_list, false},
    {"DELETE", "/templates/*", CALL_CONTROL, snapshot_remove, false},
    {"GET", "/secrets", CALL_CONTROL, route_no_secrets, false},
    {"POST", "/secrets", CALL_CONTROL, route_no_secrets, false},
    {"GET", "/health", CALL_ENVD, files_health, false},
    {"GET", "/files", CALL_ENVD, files_read, false},
    {"POST", "/files", CALL_ENVD, files_write, true},
    {"POST", "/filesystem.Filesystem/Stat", CALL_RPC, entries_stat, false},
    {"POST", "/filesystem.Filesystem/ListDir", CALL_RPC, entries_list, false},
    {"POST", "/filesystem.Filesystem/MakeDir", CALL_RPC, entries_mkdir, false},
    {"POST", "/filesystem.Filesystem/Move", CALL_RPC, entries_move, false},
    {"POST", "/filesystem.Filesystem/Remove", CALL_RPC, entries_remove, false},
    {"POST", "/filesystem.Filesystem/CreateWatcher", CALL_RPC, watch_create, false},
    {"POST", "/filesystem.Filesystem/GetWatcherEvents", CALL_RPC, watch_events, false},
    {"POST", "/filesystem.Filesystem/RemoveWatcher", CALL_RPC, watch_remove, false},
    {"POST", "/filesystem.Filesystem/WatchDir", CALL_STREAM, watch_dir, false},
    {"POST", "/process.Process/Start", CALL_STREAM, process_start, false},
    {"POST", "/process.Process/Connect", CALL_STREAM, process_connect, false},
    {"POST", "/process.Process/List", CALL_RPC, process_list, false},
    {"POST", "/process.Process/SendInput", CALL_RPC, process_input, false},
    {"POST", "/process.Process/CloseStdin", CALL_RPC, process_close, false},
    {"POST", "/process.Process/SendSignal", CALL_RPC, process_signal, false},
    {"POST", "/process.Process/Update", CALL_RPC, process_update, false},
};

void route_no_network(struct call *x)
{
    reply_no(x, 501, "the network of a sandbox is said when it is created, and by this gateway's policy");
}

void route_no_secrets(struct call *x)
{
    reply_no(x, 501, "this API keeps no secrets: credentials are set by operators (`countersign secret set`)");
}

static bool path_is(struct span path, const char *pattern, struct span *arg)
{
    struct span want = span_str(pattern), a, b;

    *arg = SPAN_NONE;
    for (;;) {
        bool more = span_cut(path, '/', &a, &path), wanted = span_cut(want, '/', &b, &want);
        if (span_eq(b, SPAN("*")) && a.n > 0)
            *arg = a;
        else if (!span_eq(a, b))
            return false;
        if (more != wanted)
            return false;
        if (!more)
            return true;
    }
}

bool dock_name_ok(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!letter && (i == 0 || (c != '-' && c != '.' && c != '_')))
            return false;
    }
    return s.n > 0 && s.n <= DOCK_BOX_MAX;
}

/* The API key of the control plane. */
static bool key_take(struct call *x)
{
    struct span key = call_field(x, SPAN("x-api-key")), bearer = call_field(x, SPAN("authorization"));

    if (key.n == 0 && span_starts(bearer, SPAN("Bearer ")))
        key = span_from(bearer, 7);
    if (key.n == 0 || key.n > DOCK_KEY_MAX) {
        reply_no(x, 401, "send an API key as X-API-KEY: `countersign key create NAME` issues one");
        return false;
    }
    memcpy(x->key, key.p, key.n);
    token_hash(key, &x->token);
    return true;
}

/* What opens one sandbox, and which. */
static bool access_take(struct call *x)
{
    struct span token = call_field(x, SPAN("x-access-token")), user, signature;

    if (call_query(x, "username", &user) != 0 || (user.n && !span_eq(user, SPAN("user")))) {
        reply_no(x, 400, "a sandbox has one user, which is not root: leave `user` out");
        return false;
    }
    if (call_query(x, "signature", &signature) != 0) {
        reply_no(x, 400, "the query has `signature` twice, or it cannot be decoded");
        return false;
    }
    if (signature.n > 0)
        return signed_take(x, signature);
    x->arg = call_field(x, SPAN("e2b-sandbox-id"));
    if (!dock_name_ok(x->arg)) {
        reply_no(x, 400, "no sandbox is named: send its id as E2b-Sandbox-Id");
        return false;
    }
    if (token.n == 0 || token.n > DOCK_KEY_MAX) {
        reply_no(x, 401, "send the token that the sandbox was created with as X-Access-Token");
        return false;
    }
    token_hash(token, &x->token);
    return true;
}

/* "Basic base64(user:)": whom a command is to run as. */
static bool user_ok(struct call *x)
{
    struct span basic = call_field(x, SPAN("authorization"));
    uint8_t text[96];
    size_t n = 0;

    if (basic.n == 0)
        return true;
    bool read = span_starts(basic, SPAN("Basic ")) && basic.n <= 6 + 4 * (sizeof(text) / 3) &&
                base64_decode(span_from(basic, 6), text, &n) == 0;
    if (read && (span_eq(span_of(text, n), SPAN("user:")) || span_eq(span_of(text, n), SPAN(":"))))
        return true;
    reply_no(x, 400, "a sandbox has one user, which is not root: leave `user` out");
    return false;
}

static enum call_takes unknown(struct call *x, bool known)
{
    struct dock *d = x->dock;

    if (++d->unknown <= UNKNOWN_SAID)
        log_info("the sandbox API was asked for what it does not have, for the %lluth time",
                 (unsigned long long)d->unknown);
    if (known)
        reply_no(x, 405, "this path takes another method");
    else
        reply_no(x, 404,
                 "this gateway has nothing at this path: which parts of the API it has is in "
                 "countersign-dock(7)");
    return TAKES_REFUSED;
}

enum call_takes route_find(struct call *x, call_fn **fn)
{
    const struct route *r = NULL;
    struct span arg = SPAN_NONE;
    bool known = false;

    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]) && !r; i++) {
        if (!path_is(x->head.path, routes[i].path, &arg))
            continue;
        known = true;
        if (span_eq(x->head.method, span_str(routes[i].method)))
            r = &routes[i];
    }
    if (!r) {
        x->form = span_starts(x->head.path, SPAN("/process.")) || span_starts(x->head.path, SPAN("/filesystem."))
                      ? CALL_RPC
                      : CALL_CONTROL;
        return unknown(x, known);
    }
    x->form = r->form;
    if (r->form == CALL_CONTROL) {
        x->arg = arg;
        if (!key_take(x))
            return TAKES_REFUSED;
        if (arg.n > 0 && !dock_name_ok(arg)) {
            reply_no(x, 404, "there is nothing of that name");
            return TAKES_REFUSED;
        }
    } else if (!access_take(x) || !user_ok(x)) {
        return TAKES_REFUSED;
    }
    *fn = r->fn;
    return r->pieces ? TAKES_PIECES : TAKES_WHOLE;
}
