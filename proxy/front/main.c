/* The front's start-up. */
#include "proxy/front/front.h"

#include <stdlib.h>

#include "common/log.h"
#include "common/role/role.h"
#include "common/trace.h"

static struct front front;
static uint64_t instance, clients;
static uint8_t name[255]; /* the sandbox's */
static size_t name_n;
static bool running;

static void on_config(void *arg, struct span key, struct span value)
{
    (void)arg;
    if (span_eq(key, SPAN("sandbox")))
        name_n = span_first(value, sizeof(name)).n;
    if (span_eq(key, SPAN("sandbox")) && name_n > 0)
        memcpy(name, value.p, name_n);
    if (span_eq(key, SPAN("instance")) && span_u64(value, FRONT_INSTANCE_MAX, &instance) != 0)
        log_die("the instance number is not one");
    if (span_eq(key, SPAN("connections_max")) && (span_u64(value, FRONT_CLIENTS_MAX, &clients) != 0 || clients == 0))
        log_die("the number of connections is not one");
}

static void on_stop(void *arg)
{
    if (running)
        front_end(arg);
    else
        exit(0);
}

int main(void)
{
    static const struct role_ops ops = {
        .frame = front_frame, .peer = front_peer, .config = on_config, .stop = on_stop};
    static const struct wall wall = {.calls = WALL_MEMFD | WALL_ACCEPT};
    struct err e = {""};
    struct loop *loop = loop_new();
    if (loop == NULL)
        log_die("no event loop");
    struct role *role = role_start("front", loop, &ops, &front);
    if (front_init(&front, loop, instance, &e) != 0)
        log_die("%s", e.text);
    front.name = span_of(name, name_n);
    if (clients != 0)
        front.limits.clients = clients;
    front.parent = role_parent(role);
    trace_keep(TRACE_MARKS_SMALL);
    role_confine(role, &wall);
    role_ready(role);
    running = true;
    int rc = loop_run(loop);
    front_done(&front); /* what is queued is flushed, as far as it goes */
    return rc == 0 ? 0 : 1;
}
