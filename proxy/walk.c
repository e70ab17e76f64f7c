#include "proxy/walk.h"

static const struct {
    const char *name, *code;
} rows[] = {
    {"none", "internal"},
#define X(step, role, name, code, file) {name, code},
    WALK_STEPS(X)
#undef X
        {"end", "internal"},
};

const char *walk_name(enum walk_step s)
{
    return (unsigned)s <= WALK_END ? rows[s].name : "none";
}

const char *walk_code(enum walk_step s)
{
    return (unsigned)s <= WALK_END ? rows[s].code : "internal";
}

const char *walk_next_name(enum walk_next n)
{
    static const char *const names[] = {"fail", "next", "wait", "rewind", "reply", "done"};
    return (unsigned)n <= WALK_DONE ? names[n] : names[WALK_FAIL];
}
