/* gates:, what their table cannot say. */
#ifndef POLICY_LOAD_CHECK_CHECK_GATE_H
#define POLICY_LOAD_CHECK_CHECK_GATE_H

#include "policy/load/read/model.h"

void check_gates(struct loader *l, const struct model *m);
/* Whom the address of one is of: the host as it is written, and the port or 443. Of a program, or of an address that
 * was told to be none, there is nothing in it. Borrows from g. */
struct gate_place {
    struct span host, path;
    uint16_t port;
};
struct gate_place check_gate_place(const struct m_gate *g);
/* Is it asked with this credential? */
bool check_gate_uses(const struct model *m, const struct m_gate *g, const struct m_credential *c);

#endif
