#include "web-approval/route.h"

#include <stdio.h>

#include "web-approval/ask.h"
#include "web-approval/broker/broker.h"
#include "web-approval/deciding/slack.h"
#include "web-approval/diffs/diffs.h"
#include "web-approval/dock.h"
#include "web-approval/idle/idle.h"
#include "web-approval/people/oidc.h"
#include "web-approval/people/passkey.h"
#include "web-approval/people/people.h"
#include "web-approval/people/who.h"
#include "web-approval/rooms/metrics.h"
#include "web-approval/rooms/told.h"
#include "web-approval/talks/talks.h"

enum {
    BOTH = PLACE_PAGE | PLACE_CONTROL,
    OPEN = 4 /* without a session */,
    STREAMS = 8 /* its body is read by whoever takes it */,
    KEYS = 32,   /* by the dock with an API key alone */
    BROKER = 64, /* of those who speak as the dock does, by the broker alone */
    WAKES = 128, /* an idle sandbox is restored for it */
    RAN = 256,   /* it needs what runs in one, and of an idle one nothing does */
    TALKS = 512  /* by who may have conversations on the page alone */
};

static const struct route {
    const char *method, *path; /* a `*` is one segment, given to the handler as x->arg */
    unsigned where;
    void (*fn)(struct exchange *x);
} routes[] = {
    {"GET", "/api/v1/tickets", BOTH, api_tickets},
    {"GET", "/api/v1/tickets/*", BOTH, api_ticket},
    {"GET", "/api/v1/tickets/*/body", BOTH, api_ticket_body},
    {"GET", "/api/v1/tickets/*/diff", BOTH, api_ticket_diff},
    {"POST", "/api/v1/tickets/*/approve", PLACE_CONTROL, api_approve},
    {"POST", "/api/v1/tickets/*/deny", PLACE_CONTROL, api_deny},
    {"POST", "/api/v1/tickets/*/claim", PLACE_CONTROL, api_claim},
    {"POST", "/api/v1/tickets/*/unclaim", PLACE_CONTROL, api_unclaim},
    {"GET", "/api/v1/tickets/*/grant", BOTH, api_ticket_grant},
    {"GET", "/api/v1/grants", BOTH, api_grants},
    {"POST", "/api/v1/grants/*/revoke", PLACE_CONTROL, api_grant_revoke},
    {"GET", "/api/v1/events", BOTH, api_events},
    {"GET", "/api/v1/audit", BOTH, api_audit},
    {"GET", "/api/v1/runs", BOTH, api_runs},
    {"GET", "/api/v1/runs/*", BOTH, api_run},
    {"GET", "/api/v1/runs/*/output", PLACE_CONTROL, api_run_output},
    {"POST", "/api/v1/runs/*/repeat", PLACE_CONTROL, api_run_repeat},
    {"GET", "/api/v1/sandboxes", BOTH, api_sandboxes},
    {"POST", "/api/v1/sandboxes", PLACE_CONTROL, api_sandbox_create},
    {"POST", "/api/v1/sandboxes/*/token", PLACE_CONTROL, api_sandbox_token},
    {"DELETE", "/api/v1/sandboxes/*", PLACE_CONTROL, api_sandbox_remove},
    {"GET", "/api/v1/sandboxes/started", BOTH | PLACE_DOCK, api_started},
    {"GET", "/api/v1/sandboxes/metrics", BOTH | PLACE_DOCK, api_started_metrics},
    {"GET", "/api/v1/sandboxes/*/log", PLACE_CONTROL | RAN, api_started_log},
    {"POST", "/api/v1/sandboxes/start", PLACE_CONTROL | PLACE_DOCK | KEYS, api_started_start},
    {"POST", "/api/v1/sandboxes/*/exec", PLACE_CONTROL | PLACE_DOCK | WAKES, api_started_exec},
    {"GET", "/api/v1/sandboxes/*/commands", PLACE_CONTROL | PLACE_DOCK | BROKER | RAN, api_started_commands},
    {"POST", "/api/v1/sandboxes/*/attach", PLACE_CONTROL | PLACE_DOCK | BROKER | RAN, api_started_attach},
    {"POST", "/api/v1/sandboxes/*/signal", PLACE_CONTROL | PLACE_DOCK | BROKER | RAN, api_started_signal},
    {"POST", "/api/v1/conversations/*/identity", PLACE_DOCK | BROKER, api_broker_identity},
    {"DELETE", "/api/v1/conversations/*/identity", PLACE_DOCK | BROKER, api_broker_identity_end},
    {"POST", "/api/v1/conversations/*/leases", PLACE_DOCK | BROKER, api_broker_lease},
    {"GET", "/api/v1/conversations/*/runs", PLACE_DOCK | BROKER, api_broker_runs},
    {"POST", "/api/v1/telemetry/*/identity", PLACE_DOCK | BROKER, api_broker_telemetry},
    {"POST", "/api/v1/streams/*/input", PLACE_CONTROL | PLACE_DOCK, api_started_input},
    {"POST", "/api/v1/streams/*/signal", PLACE_CONTROL | PLACE_DOCK, api_started_tell},
    {"POST", "/api/v1/sandboxes/*/access", PLACE_DOCK | KEYS | RAN, api_started_access},
    {"GET", "/api/v1/notify", PLACE_CONTROL, api_told},
    {"POST", "/api/v1/notify/*/test", PLACE_CONTROL, api_told_test},
    {"GET", "/api/v1/operators", PLACE_CONTROL, api_operators},
    {"POST", "/api/v1/operators", PLACE_CONTROL, api_operator_add},
    {"POST", "/api/v1/operators/*/groups", PLACE_CONTROL, api_operator_groups},
    {"POST", "/api/v1/operators/*/link", PLACE_CONTROL, api_operator_link},
    {"DELETE", "/api/v1/operators/*", PLACE_CONTROL, api_operator_remove},
    {"GET", "/api/v1/deputies", BOTH, api_deputies},
    {"POST", "/api/v1/deputies", PLACE_CONTROL, api_deputy_name},
    {"DELETE", "/api/v1/deputies/*", PLACE_CONTROL, api_deputy_end},
    {"GET", "/api/v1/metrics", BOTH, api_metrics},
    {"GET", "/api/v1/whoami", BOTH, api_whoami},
    {"GET", "/me", PLACE_PAGE, page_me},
    {"POST", "/me/passkey", PLACE_PAGE, page_me_passkey},
    {"POST", "/me/password", PLACE_PAGE, page_me_password},
    {"POST", "/me/deputy", PLACE_PAGE, page_me_deputy},
    {"GET", "/api/v1/keys", PLACE_CONTROL, api_keys},
    {"POST", "/api/v1/keys", PLACE_CONTROL, api_key_create},
    {"DELETE", "/api/v1/keys/*", PLACE_CONTROL, api_key_remove},
    {"POST", "/api/v1/streams/*/resize", PLACE_CONTROL | PLACE_DOCK, api_started_resize},
    {"POST", "/api/v1/sandboxes/*/timeout", PLACE_CONTROL | PLACE_DOCK | KEYS | RAN, api_started_timeout},
    {"POST", "/api/v1/sandboxes/*/pause", PLACE_CONTROL | PLACE_DOCK | KEYS | RAN, api_started_pause},
    {"POST", "/api/v1/sandboxes/*/resume", PLACE_CONTROL | PLACE_DOCK | KEYS | WAKES, api_started_resume},
    {"POST", "/api/v1/sandboxes/*/destroy", PLACE_CONTROL | PLACE_DOCK | KEYS, api_started_destroy},
    {"POST", "/api/v1/sandboxes/*/snapshot", PLACE_CONTROL | PLACE_DOCK | KEYS | WAKES, api_snapshot},
    {"POST", "/api/v1/sandboxes/*/fork", PLACE_CONTROL | WAKES, api_fork},
    {"POST", "/api/v1/sandboxes/*/undo", PLACE_CONTROL | RAN, api_undo},
    {"GET", "/api/v1/sandboxes/*/steps", PLACE_CONTROL | RAN, api_steps},
    {"GET", "/api/v1/tasks", BOTH, api_tasks},
    {"POST", "/api/v1/tasks", PLACE_CONTROL, api_task_run},
    {"GET", "/api/v1/tasks/running", BOTH, api_tasks_running},
    {"POST", "/api/v1/tasks/*/cancel", PLACE_CONTROL, api_task_cancel},
    {"GET", "/api/v1/checkpoints", PLACE_CONTROL | PLACE_DOCK | KEYS, api_checkpoints},
    {"DELETE", "/api/v1/checkpoints/*", PLACE_CONTROL | PLACE_DOCK | KEYS, api_checkpoint_remove},
    {"GET", "/api/v1/sandboxes/*/files", PLACE_CONTROL | PLACE_DOCK | WAKES, api_files_read},
    {"PUT", "/api/v1/sandboxes/*/files", PLACE_CONTROL | PLACE_DOCK | STREAMS | WAKES, api_files_write},
    {"DELETE", "/api/v1/sandboxes/*/files", PLACE_CONTROL | PLACE_DOCK | WAKES, api_files_remove},
    {"GET", "/api/v1/sandboxes/*/files/list", PLACE_CONTROL | PLACE_DOCK | WAKES, api_files_list},
    {"GET", "/api/v1/sandboxes/*/files/stat", PLACE_CONTROL | PLACE_DOCK | WAKES, api_files_stat},
    {"GET", "/api/v1/sandboxes/*/files/watch", PLACE_DOCK | WAKES, api_files_watch},
    {"POST", "/api/v1/sandboxes/*/files/mkdir", PLACE_CONTROL | PLACE_DOCK | WAKES, api_files_mkdir},
    {"POST", "/api/v1/sandboxes/*/files/move", PLACE_CONTROL | PLACE_DOCK | WAKES, api_files_move},
    {"GET", "/api/v1/sandboxes/*/files/tar", PLACE_CONTROL | WAKES, api_files_pack},
    {"PUT", "/api/v1/sandboxes/*/files/tar", PLACE_CONTROL | STREAMS | WAKES, api_files_unpack},
    {"GET", "/api/v1/credentials", BOTH, api_credentials},
    {"GET", "/api/v1/leases", BOTH, api_leases},
    {"POST", "/api/v1/leases", PLACE_CONTROL, api_lease_issue},
    {"GET", "/api/v1/leases/*", BOTH, api_lease},
    {"POST", "/api/v1/leases/*/narrow", PLACE_CONTROL, api_lease_narrow},
    {"POST", "/api/v1/leases/*/revoke", PLACE_CONTROL, api_lease_revoke},
    {"GET", "/api/v1/status", BOTH, api_status},
    {"POST", "/api/v1/reload", PLACE_CONTROL, api_reload},
    {"GET", "/api/v1/policy/versions", BOTH, api_policy_versions},
    {"POST", "/api/v1/policy/rollback", PLACE_CONTROL, api_policy_rollback},
    {"GET", "/api/v1/freeze", BOTH, api_frozen},
    {"POST", "/api/v1/freeze", PLACE_CONTROL, api_freeze},
    {"POST", "/api/v1/thaw", PLACE_CONTROL, api_thaw},
    {"GET", "/api/v1/log", PLACE_CONTROL, api_log},
    {"POST", "/api/v1/log", PLACE_CONTROL, api_log_change},
    {"GET", "/api/v1/trace/*", PLACE_CONTROL, api_trace},
    {"POST", "/api/v1/signin", PLACE_CONTROL, api_signin},
    {"GET", "/", PLACE_PAGE | OPEN, page_list},
    {"GET", "/sign-in", PLACE_PAGE | OPEN, page_sign_in},
    {"POST", "/sign-in", PLACE_PAGE | OPEN, page_sign_in_post},
    {"GET", "/sign-in/oidc", PLACE_PAGE | OPEN, page_oidc},
    {"GET", "/sign-in/oidc/go", PLACE_PAGE | OPEN, page_oidc_go},
    {"POST", "/sign-out", PLACE_PAGE, page_sign_out},
    {"POST", "/slack/*", PLACE_PAGE | OPEN, page_slack},
    {"GET", "/tickets/*", PLACE_PAGE, page_ticket},
    {"GET", "/tickets/*/whole", PLACE_PAGE, page_ticket_whole},
    {"GET", "/tickets/*/picture", PLACE_PAGE, page_picture},
    {"GET", "/tickets/*/body", PLACE_PAGE, api_ticket_body},
    {"POST", "/tickets/*/approve", PLACE_PAGE, page_approve},
    {"POST", "/tickets/*/deny", PLACE_PAGE, page_deny},
    {"POST", "/tickets/*/claim", PLACE_PAGE, page_claim},
    {"POST", "/tickets/*/grant", PLACE_PAGE, page_grant},
    {"GET", "/grants", PLACE_PAGE, page_grants},
    {"POST", "/grants/*/revoke", PLACE_PAGE, page_grant_revoke},
    {"GET", "/history", PLACE_PAGE, page_history},
    {"GET", "/history/export", PLACE_PAGE, page_history_export},
    {"GET", "/groups/*", PLACE_PAGE, page_group},
    {"POST", "/groups/*", PLACE_PAGE, page_group_decide},
    {"GET", "/freeze", PLACE_PAGE, page_freeze},
    {"POST", "/freeze", PLACE_PAGE, page_freeze_on},
    {"POST", "/thaw", PLACE_PAGE, page_freeze_off},
    {"GET", "/conversations", PLACE_PAGE | TALKS, page_talks},
    {"POST", "/conversations", PLACE_PAGE | TALKS, page_talk_say},
    {"GET", "/conversations/*", PLACE_PAGE | TALKS, page_talk},
    {"POST", "/conversations/*/say", PLACE_PAGE | TALKS, page_talk_say},
    {"POST", "/conversations/*/cancel", PLACE_PAGE | TALKS, page_talk_cancel},
    {"GET", "/conversations/*/news", PLACE_PAGE | TALKS, page_talk_news},
    {"GET", "/conversations/*/file", PLACE_PAGE | TALKS, page_talk_file},
    {"GET", "/models", PLACE_PAGE | TALKS, page_models},
    {"GET", "/sandboxes", PLACE_PAGE, page_sandboxes},
    {"GET", "/credentials", PLACE_PAGE, page_credentials},
    {"GET", "/policy", PLACE_PAGE, page_policy},
    {"POST", "/policy", PLACE_PAGE, page_policy_explain},
    {"GET", "/audit", PLACE_PAGE, page_audit},
    {"GET", "/health", PLACE_PAGE, page_health},
    {"GET", "/decisions", PLACE_PAGE, page_habits},
    {"GET", "/assets/*", PLACE_PAGE | OPEN, page_asset},
};

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

bool route_streams(enum desk_place place, const struct http_head *h)
{
    struct span arg;

    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
        if (routes[i].where & STREAMS && routes[i].where & place && span_eq(h->method, span_str(routes[i].method)) &&
            path_is(h->path, routes[i].path, &arg))
            return true;
    return false;
}

static const struct route *find(struct exchange *x, bool *path_known)
{
    *path_known = false;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        const struct route *r = &routes[i];
        struct span arg;
        if (!(r->where & x->place) || (r->where & BROKER && x->place == PLACE_DOCK && !x->caller.broker) ||
            !path_is(x->head.path, r->path, &arg))
            continue;
        *path_known = true;
        if (!span_eq(x->head.method, span_str(r->method)))
            continue;
        x->arg = arg;
        return r;
    }
    return NULL;
}

/* Pressing something, or going somewhere, is doing something; what the page's script asks by itself is not. */
static bool by_hand(const struct http_head *h)
{
    const struct http_field *mode = http_find(h, SPAN("sec-fetch-mode"));

    return !mode || span_eq(mode->value, SPAN("navigate"));
}

/* Whose session it is, who is still somebody, and as when they signed in; else it ends here. False: answered. */
static bool session_holds(struct exchange *x)
{
    bool gone;

    (void)snprintf(x->operator, sizeof(x->operator), "%s", x->session->operator);
    bool found = who_find(x, &gone), person = !who_is_machine(x->session->operator);
    if (person && (gone || (found && x->who.generation != x->session->generation))) {
        guard_sign_out(&x->desk->guard, x->session);
        x->session = NULL;
    } else if (!found) {
        reply_problem(x, 503, "Not possible now", "whether you may still be here cannot be looked up; try again");
        return false;
    } else if (by_hand(&x->head)) {
        guard_session_used(&x->desk->guard, x->session, x->now_ms);
    }
    return true;
}

/* What every request to the page must pass, whatever it asks for. */
static bool page_admits(struct exchange *x)
{
    struct desk *d = x->desk;

    if (!guard_host_ok(&d->guard, &x->head)) {
        reply_problem(x, 403, "Wrong host",
                      "this page answers only at %s; a tunnel or a port-forward must have the same port on your side",
                      d->desk_url);
        return false;
    }
    if (slack_is(&x->head))
        return true; /* signed by who sends it */
    x->session = guard_session(&d->guard, &x->head, x->now_ms);
    if (x->session && !session_holds(x))
        return false;
    if (!span_eq(x->head.method, SPAN("GET")) && !guard_origin_ok(&d->guard, &x->head)) {
        reply_problem(x, 403, "Refused", "this did not come from the page itself");
        return false;
    }
    return true;
}

static void run(struct exchange *x, const struct route *r)
{
    if (r->where & TALKS && !who_may_talk(x)) {
        page_problem(
            x, 403, "Not for you",
            "Conversations are for those whom `broker: people:` of countersign.yaml(5) names, and for who runs "
            "this gateway.");
        return;
    }
    if ((r->where & WAKES && idle_wakes(x, r->fn)) || (r->where & RAN && idle_refuses(x, r->fn)))
        return;
    r->fn(x);
}

void route_run(struct exchange *x)
{
    const struct route *r;
    bool path_known;

    bool gone;

    if (x->place == PLACE_CONTROL)
        (void)who_find(x, &gone); /* who it is by name matters where something is decided */
    if (x->place == PLACE_PAGE && !page_admits(x))
        return;
    r = find(x, &path_known);
    if (x->place == PLACE_PAGE && !x->session && !(r && r->where & OPEN)) {
        /* The same words whether it exists or not. */
        reply_problem(x, 403, "Sign in first",
                      "sign in at /sign-in, or open the link that `countersign up` printed, or get a new one with "
                      "`countersign signin`");
        return;
    }
    if (!r && path_known)
        reply_problem(x, 405, "Method not allowed", "this path takes another method%s",
                      x->place == PLACE_PAGE
                          ? "; what changes something goes through the page's forms or the control socket"
                          : "");
    else if (!r)
        reply_problem(x, 404, "Not found", "there is nothing at this path");
    else if (x->place != PLACE_DOCK || dock_admits(x, r->where & KEYS))
        run(x, r);
    if (x->status != 0 && !dynbuf_ok(&x->out))
        reply_problem(x, 500, "Too large", "the answer is larger than the desk gives out");
}
