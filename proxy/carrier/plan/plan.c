#include "proxy/carrier/plan/plan.h"

size_t plan_reach(size_t longest_secret)
{
    return (longest_secret + PLAN_CLASS - 1) / PLAN_CLASS * PLAN_CLASS * PLAN_FORM_MOST;
}

size_t plan_release(size_t reach, struct span waiting)
{
    size_t least = reach == 0 ? waiting.n : waiting.n >= reach ? waiting.n - (reach - 1) : 0;
    size_t at = waiting.n;
    while (at > least && waiting.p[at - 1] != '\n')
        at--;
    return at;
}
