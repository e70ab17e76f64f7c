/* Which hosts and addresses a sandbox may reach, as whoever created it said it: a narrowing, which lets nothing
 * through that the policy does not. Text, a line a rule: '+' or '-', 'n' (a name) or 'a' (an address or range), a
 * blank, and that one. What a '-' fits is never reached; where there is a '+', nothing else is. Empty: no narrowing.
 */
#ifndef PROXY_REACH_REACH_H
#define PROXY_REACH_REACH_H

#include "common/span.h"

enum { REACH_MAX = 8192 /* bytes of the text */, REACH_RULES_MAX = 128 };

struct reach_rule {
    bool allows, address;
    struct span what;
};
/* 1: *rule is the next one and *rest what follows it; 0: there is no other; -1: it is none. */
int reach_next(struct span *rest, struct reach_rule *rule) MUSTCHECK;
/* All of it is rules, and not too many of them. */
bool reach_ok(struct span text) MUSTCHECK;
/* A name in small letters; or "*." before one, for all names below it and not itself. */
bool reach_name_ok(struct span name) MUSTCHECK;

enum reach_said { REACH_NO = 0, REACH_YES, REACH_BY_ADDRESS /* the address that is dialled decides */ };
/* host: as it is decided, in small letters. A text that is none: REACH_NO. */
enum reach_said reach_by_name(struct span text, struct span host) MUSTCHECK;
/* Of REACH_BY_ADDRESS. fits: is arg's address in this range? */
typedef bool reach_fits(struct span range, const void *arg);
bool reach_by_address(struct span text, struct span host, reach_fits *fits, const void *arg) MUSTCHECK;

#endif
