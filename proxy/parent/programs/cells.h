/* Commands of the warden's sandboxes with a lane of their own (cells.c). */
#ifndef PROXY_PARENT_PROGRAMS_CELLS_H
#define PROXY_PARENT_PROGRAMS_CELLS_H

#include "proxy/parent/parent.h"

/* M_CELL and M_CELL_END of the warden. */
void parent_cell_start(struct parent *p, struct frame *f);
void parent_cell_end(struct parent *p, struct frame *f);
/* Was it one of these? */
bool parent_cell_died(struct parent *p, int pid);
/* Those of a sandbox that ends; 0: all. */
void parent_cells_end(struct parent *p, uint64_t box);
/* Is there one, or has one not ended yet? Then who has been its user does not get to be anybody else's. */
bool parent_cells_left(const struct parent *p, const struct running_box *b);
/* fronts.c: the listener of one, and its end with all that came in there. */
int parent_cell_bind(struct parent *p, const struct running_cell *c, const char *path, struct err *e) MUSTCHECK;
void parent_cell_close(struct parent *p, const struct running_cell *c);

#endif
