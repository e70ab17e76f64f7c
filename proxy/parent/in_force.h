/* The policy that is in force, and how another one comes to be. */
#ifndef PROXY_PARENT_IN_FORCE_H
#define PROXY_PARENT_IN_FORCE_H

#include "proxy/parent/config/config.h"
#include "proxy/parent/versions/versions.h"

struct child;
struct parent;

/* A policy: its image and the texts it was made of, memory files that are sealed. */
struct compiled {
    int image, bundle;
    struct digest digest;
};

/* image.c: compile the policy in a child, from the files (stored NULL) or from a version that is kept. */
int parent_compile(const struct config *conf, const char *stored, struct compiled *out, struct err *e) MUSTCHECK;
void parent_take(struct parent *p, struct compiled *c); /* it is the image of all */
void parent_drop(struct compiled *c);
void parent_send_image(struct parent *p, struct child *c);
/* reload.c, rollback.c. -1: nothing has changed. said: what has, and what needs a restart. who: an operator. */
int parent_reload(struct parent *p, struct span who, char *said, size_t cap, struct err *e) MUSTCHECK;
int parent_rollback(struct parent *p, struct span prefix, struct span who, char *said, size_t cap,
                    struct err *e) MUSTCHECK;
int parent_unpin(struct parent *p, struct span who, char *said, size_t cap, struct err *e) MUSTCHECK;
/* switched.c: what is in force has changed, or was to and did not: kept, written down, said. how: "start" ... */
void parent_switched(struct parent *p, const char *how, struct span who);
void parent_refused(struct parent *p, const char *how, struct span who, const char *why);
void parent_say_notes(struct parent *p, struct child *ledger);
/* One more of them: json is an object; the next ledger has it too, when this one does not take it. */
void parent_note(struct parent *p, const char *kind, struct dynbuf *json);
void parent_say_notice(struct parent *p, struct child *desk);
#endif
