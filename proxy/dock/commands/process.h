/* Commands: what was begun in sandboxes by callers of the dock and has not ended. Each is followed by the dock
 * itself, so that it goes on when its caller leaves, and may be followed again; what nobody follows is dropped, as
 * envd does.
 *
 *   process.c   envd's Process service: what callers say
 *   proc.c      one command: what it says, and who hears it
 *   input.c     what it is given */
#ifndef PROXY_DOCK_COMMANDS_PROCESS_H
#define PROXY_DOCK_COMMANDS_PROCESS_H

#include "common/control/sse.h"
#include "proxy/dock/dock.h"

/* Who gives it input, in their order. */
struct feeder {
    struct feeder *next;
    struct call *call;
    struct span rest;
    uint32_t now; /* bytes of it that were sent last */
    bool ends, asking;
};

struct proc {
    struct proc *next;
    struct dock *dock;
    uint32_t pid; /* ours: never used twice */
    char box[DOCK_BOX_MAX + 1], tag[64];
    struct digest token;   /* that it was begun with */
    struct digest tenant;  /* call_tenant */
    struct errand *errand; /* the desk's stream of it */
    struct sse sse;
    uint64_t stream; /* the desk's number; 0: it has not begun yet */
    bool terminal, ended;
    unsigned status; /* of one that has ended: why not by itself; 0: it did */
    char why[256];
    struct call *caller[DOCK_PROC_CALLERS];
    size_t ncallers;
    struct dynbuf config; /* JSON, as it is listed */
    uint64_t window;      /* bytes of input that it may have and not have taken; 0: it has none */
    uint32_t unfed;
    struct feeder *feeders;
};

/* By the answer of a process_* handler that found it. */
struct proc *proc_find(struct dock *d, struct span box, uint64_t pid);
/* Begin one for x, which follows it; config is taken over. False: answered. */
bool proc_begin(struct call *x, struct span target, struct span json, struct proc *p);
struct proc *proc_new(struct call *x) MUSTCHECK;
void proc_free(struct proc **p);
/* x follows it from now on. False: answered. */
bool proc_follow(struct proc *p, struct call *x);

/* input.c: x has bytes for it, or its end. x is answered when it has them. */
void input_give(struct proc *p, struct call *x, struct span bytes, bool ends);
/* There is room for more of it; it has ended, and nobody gives it anything any more. */
void input_go(struct proc *p);
void input_over(struct proc *p);

#endif
