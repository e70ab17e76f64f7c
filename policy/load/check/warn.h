/* Between the files that warn. */
#ifndef POLICY_LOAD_CHECK_WARN_H
#define POLICY_LOAD_CHECK_WARN_H

#include "policy/load/read/model.h"

/* The hosts a rule is about: those it names, or those its resource or operation implies. */
const struct items *warn_rule_hosts(const struct m_rule *r);
/* Does a pattern of hosts cover this host, or narrower pattern? */
bool warn_pattern_covers(struct span pattern, struct span host);

/* warn_use.c: credentials and the rules that use them. First all credentials; then each rule that uses one, with what
 * that made (NULL: no memory, which was told). */
struct uses;
struct uses *warn_uses(struct loader *l, const struct model *m);
void warn_use(struct loader *l, struct uses *u, const struct m_rule *r);

/* warn_never.c: rules and exceptions that fit nothing; warn_covers.c: rules that others leave nothing to. */
/* Which effects can a request have that it fits? Bits by enum effect; 0: any. */
uint64_t warn_effects_of(const struct model *m, const struct m_match *t);
void warn_never(struct loader *l, const struct model *m, const struct m_rule *r);
void warn_covered(struct loader *l, const struct model *m);
/* warn_words.c: paths in the words of something else; an upstream's address, or a host of a rule that is one, that
 * may not be dialled. */
void warn_words(struct loader *l, const struct m_rule *r);
void warn_address(struct loader *l, const struct m_upstream *u);
void warn_private(struct loader *l, const struct model *m, const struct m_rule *r);
/* warn_place.c: rules that leave a port or scheme to the usual ones, of hosts or ports that are known for others;
 * hosts that upstreams: nearly has. */
void warn_places(struct loader *l, const struct model *m);
/* warn_body.c: rules that restrict by what a body says, wherever it is sent. */
void warn_bodies(struct loader *l, const struct model *m);
/* The index of the first row of upstreams: that is not before this host and port; they are sorted by both. */
size_t warn_upstream(const struct model *m, struct span host, uint64_t port);
/* Is everything that y is about certainly something that x is about, each taken as a deny takes it? No, also when
 * l->compared says that enough was compared. */
bool warn_match_covers(struct loader *l, const struct m_match *x, const struct m_match *y);
/* when.c: two rules with when:, all of it in one zone, and no minute in which both are in force. */
bool emit_when_apart(const struct m_rule *a, const struct m_rule *b);

#endif
