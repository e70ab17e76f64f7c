/* What people decided of late, by shape: how often, how fast, and the rule that would have said it for them. Pure. */
#ifndef WEB_APPROVAL_ROOMS_HABITS_H
#define WEB_APPROVAL_ROOMS_HABITS_H

#include "web-approval/page/page.h"

enum {
    HABITS = 60,       /* shapes that are told apart */
    HABIT_SEEN = 1000, /* decisions that are looked at */
    HABIT_LEAST = 20,  /* and so many of a shape, all of them yes, before a rule is proposed */
    HABIT_FAST_MS = 3000,
};

struct habit {
    struct ticket t;  /* the newest */
    struct span path; /* with "*" for steps that differ */
    size_t approved, denied, fast;
    uint64_t median_ms; /* from being asked to being decided */
};
struct habits {
    struct habit v[HABITS];
    size_t n, seen, left; /* left: of shapes that found no room */
    struct {
        size_t habit;
        uint64_t ms;
    } time[HABIT_SEEN];
};

/* One that was decided; others than by a person are passed over. */
void habits_add(struct habits *h, const struct ticket *t, struct arena *a);
/* After the last: medians; the most frequent first. */
void habits_end(struct habits *h);
/* The median of all, in ms. */
uint64_t habits_median(const struct habits *h);

/* The change of the policy that would have let all of these through: an exception of the rule that held them, and a
 * rule that allows them. False: there is none to propose (too few, a no among them, grave, or not to be written as a
 * pattern). */
bool habit_rule(const struct habit *h, struct dynbuf *out);

#endif
