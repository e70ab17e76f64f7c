/* Listening sockets: bound at the start from the configuration, or when a sandbox is opened, and given to the role
 * that accepts. Descriptors are the parent's for as long as it lives. */
#ifndef PROXY_PARENT_LISTENERS_H
#define PROXY_PARENT_LISTENERS_H

#include "proxy/parent/config/config.h"
#include "proxy/words.h"

struct parent;
struct child;
struct running_box;

enum {
    LANES_MAX = 256, /* of sandboxes that the warden has started, */
    CELLS_MAX = 256, /* and of commands of theirs, */
    CELLS_EACH = 16, /* of each sandbox */
    CELL_OWN = 112,  /* room for " LANE BORN.NUMBER" */
};

/* A listening socket, and whose it is. */
struct listener {
    int fd, fd2;       /* fd2: LISTEN_DNS has two, UDP and TCP; else -1 */
    unsigned kind;     /* enum listen_kind */
    enum role_id role; /* who accepts; ROLE_FRONT: polled here until somebody knocks */
    bool tcp;
    bool lane;                                 /* of a sandbox that the warden has started */
    const struct config_listener *conf;        /* NULL: not of the configuration */
    char name[CONFIG_NAME], path[CONFIG_PATH]; /* of a front's: its sandbox, */
    char own[CELL_OWN];                        /* and of one command of it alone, as struct running_cell has it */
    uint64_t holder;                           /* the front that has it now; 0: none, it is polled here */
    bool resting;                              /* its front could not be started: looked at again by the clock */
    struct watch *watch;
    struct parent *parent;
};

/* One command of a sandbox of the warden's, behind walls of its own (programs/cells.c). id 0: this place is free. */
struct running_cell {
    int pid;
    uint64_t id, box;
    unsigned place;                        /* of its sandbox, among those of the parent */
    char name[CONFIG_NAME], own[CELL_OWN]; /* its sandbox, and " LANE BORN.NUMBER": as the judge knows its front */
};

/* programs/lanes.c: the listener that is this sandbox's alone, for its user, which is a user of its own where there
 * are any (0: ours); where it is. And its end, with all that came in there. */
int parent_lane_open(struct parent *p, struct running_box *b, unsigned user, char *path, size_t room,
                     struct err *e) MUSTCHECK;
void parent_lane_close(struct parent *p, struct running_box *b);

int parent_bind(struct parent *p, struct err *e) MUSTCHECK;
struct listener *parent_listener_add(struct parent *p, int fd, unsigned kind, enum role_id role, const char *name);
/* Can the files of its tls: be opened? */
int parent_files_ok(const struct config_listener *c, struct err *e) MUSTCHECK;
void parent_give_listeners(struct parent *p, struct child *c);
/* How clients name it: scheme, address, port. */
void parent_listener_url(const struct listener *l, char *out, size_t cap);
/* "proxy", "captured" or "dns". */
const char *parent_listener_way(const struct listener *l);
/* LISTEN_HTTP or LISTEN_SOCKS: where sandboxes with a token are told to find us. False: no such listener. True with
 * an empty out: there is one, but no address of it to tell; why says what to do. */
bool parent_token_url(const struct parent *p, unsigned kind, char *out, size_t cap, char *why, size_t whycap);

#endif
