/* Which hosts and addresses a sandbox may reach, as whoever created it said it: a narrowing, which lets nothing
 * through that the policy does not.
 *
 * Text: layers, of which each has to let it, with a line "&" between two. Of a layer a line is a rule: '+' or '-',
 * 'n' (a name) or 'a' (addresses), a blank, and that one as reach_read spells it. What a '-' fits is never reached;
 * where there is a '+', nothing else is. Empty: no narrowing. What is not understood whole lets nothing. */
#ifndef PROXY_REACH_REACH_H
#define PROXY_REACH_REACH_H

#include "common/dynbuf.h"
#include "common/span.h"

struct addr;

enum {
    REACH_MAX = 8192,      /* bytes of a text */
    REACH_RULES_MAX = 128, /* of a layer */
    REACH_ALL_MAX = 256,   /* rules of all layers: each is looked at for each request */
    REACH_WHAT_MAX = 256,
};
#define REACH_NOTHING SPAN("0\n")

/* A name, or *. before one (all below it and not itself); or a range of addresses, or one; each in its one spelling,
 * in which requests have it too. */
struct reach_what {
    bool range;
    unsigned all; /* 4 or 6: the range is all of IPv4, or of IPv6 */
    char text[REACH_WHAT_MAX];
    size_t n;
};
/* What somebody wrote: case, a trailing dot, brackets, "localhost" and IPv4 in IPv6 (::ffff:0:0/96) make no
 * difference. -1: it is none, or one that could be read in two ways: 0x7f.1, 2130706433, bits behind a range's
 * length, a name that is not ASCII or whose xn-- stands for nothing. */
int reach_read(struct span said, struct reach_what *out) MUSTCHECK;
/* A rule more. */
void reach_put(struct dynbuf *text, bool allows, const struct reach_what *w);
/* What both let, into an empty buffer; texts that reach_ok. -1: it is more than REACH_MAX bytes or REACH_ALL_MAX
 * rules. */
int reach_both(struct dynbuf *out, struct span a, struct span b) MUSTCHECK;
bool reach_ok(struct span text) MUSTCHECK;

enum reach_said { REACH_NO = 0, REACH_YES, REACH_BY_ADDRESS /* the address that is dialled decides */ };
/* host: as it is asked for. address: where the policy says what it is dialled at, else empty; then, and where the
 * host is an address itself, what it may not reach is said here already. */
enum reach_said reach_by_name(struct span text, struct span host, struct span address) MUSTCHECK;
/* Of REACH_BY_ADDRESS, an address that is about to be dialled, or is already. A '-' counts for every address that is
 * in it (NAT64, 6to4, Teredo, ISATAP), a '+' for what is written alone. */
bool reach_by_address(struct span text, struct span host, const struct addr *a) MUSTCHECK;

#endif
