#include "web-approval/people/who.h"

#include <stdio.h>

bool who_is_machine(const char *operator)
{
    return span_starts(span_str(operator), SPAN("uid "));
}

const char *who_how(const struct exchange *x)
{
    return x->slack                    ? "slack"
           : x->place == PLACE_CONTROL ? "socket"
           : x->session                ? guard_how_name(x->session->how)
                                       : "";
}

bool who_find(struct exchange *x, bool *gone)
{
    struct person_row r;
    struct err e;
    bool machine = who_is_machine(x->operator);
    int got = desk_store_person(x->desk->store, span_str(x->operator), machine, &x->arena, &r, &e);

    *gone = got == 0 && !machine;
    x->who = (struct who){.known = got >= 0};
    if (machine)
        (void)snprintf(x->who.uid, sizeof(x->who.uid), "%.*s", (int)sizeof(x->who.uid) - 1, x->operator);
    if (got <= 0)
        return machine;
    if (r.name.n >= sizeof(x->operator) || r.groups.n >= sizeof(x->who.groups) || r.uid.n >= sizeof(x->who.uid)) {
        x->who.known = false;
        return false;
    }
    (void)snprintf(x->operator, sizeof(x->operator), "%.*s", SPAN_FMT(r.name));
    (void)snprintf(x->who.uid, sizeof(x->who.uid), "%.*s", SPAN_FMT(r.uid));
    (void)snprintf(x->who.groups, sizeof(x->who.groups), "%.*s", SPAN_FMT(r.groups));
    x->who.person = true;
    x->who.generation = r.generation;
    return true;
}

static bool is_named(struct span names, struct span name)
{
    struct span one;
    bool more = true;

    while (more) {
        more = span_cut(names, '\n', &one, &names);
        if (one.n > 0 && span_eq(one, name))
            return true;
    }
    return false;
}

bool who_may_talk(const struct exchange *x)
{
    struct span names = span_str(x->desk->broker_people), groups = span_str(x->who.groups), group;
    char owner[sizeof x->who.uid];
    bool more = true;

    (void)snprintf(owner, sizeof(owner), "uid %llu", (unsigned long long)x->desk->owner_uid);
    if (strcmp(x->who.uid, "uid 0") == 0 || strcmp(x->who.uid, owner) == 0)
        return true;
    if (!x->who.person)
        return false;
    if (is_named(names, span_str(x->operator)))
        return true;
    while (more) {
        more = span_cut(groups, ' ', &group, &groups);
        if (is_named(names, group))
            return true;
    }
    return false;
}
