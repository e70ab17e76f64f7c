/* A command with a lane of its own: walls of its own in its sandbox (sandbox-shim/cell/), with a first process that
 * is told this one command and nothing else. They end with the command, and what it left behind with them. */
#ifndef SANDBOX_SHIM_WARDEN_CELL_H
#define SANDBOX_SHIM_WARDEN_CELL_H

#include "sandbox-shim/warden/warden.h"

/* It is asked for, and r is in it from now on. Why not, or NULL. */
const char *cell_begin(struct run *r) MUSTCHECK;
/* To whoever runs it, and (cell_say) to the first process of its cell; which may end the run, and the sandbox with
 * it. */
void run_say(struct run *r, const struct dynbuf *frame);
void cell_say(struct run *r, const struct dynbuf *frame);
/* The parent is told to take its walls down, with all that is in there, before anybody is told of its end, and does
 * so when it reads that; and (cell_end) it is none any more. r may be in none. */
void cell_falls(struct run *r);
void cell_end(struct run *r);
/* The command is over, for this reason of ours. */
void cell_lost(struct run *r, enum sb_end how, const char *why);
/* M_CELL_NONE of the parent. */
void cell_on_none(struct warden *w, struct frame *f);
/* Is there one in it? */
bool cell_runs(const struct box *b);

#endif
