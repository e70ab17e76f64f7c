#include "proxy/walk.h"

static const struct {
    const char *name, *code;
} rows[] = {
    {"none", "internal"},
#define X(step, role, name, code) {name, code},
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
