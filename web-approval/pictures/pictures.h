/* Pictures of held requests, each opened by a viewer (viewer/), a process of its own: which are looked at when, what
 * becomes of a request whose picture cannot be shown, and the PNGs for the page. Nothing here reads a picture. */
#ifndef WEB_APPROVAL_PICTURES_PICTURES_H
#define WEB_APPROVAL_PICTURES_PICTURES_H

#include "web-approval/page/page.h"

enum {
    PICTURES_ALL = READING_PICTURES,
    PICTURES_VIEWERS_MAX = 3,   /* at once; of one operator one less, so that another never waits for them all */
    PICTURES_WAIT_MAX = 24,     /* pages that wait for one */
    PICTURES_WAIT_EACH_MAX = 8, /* of one operator */
    PICTURES_BYTES_MAX = VIEW_BYTES_MAX, /* in all pictures of one request */
    PICTURES_KEPT_MAX = 16,              /* that were made, and are kept for who asks again */
    PICTURES_KEPT_BYTES_MAX = 24 * 1024 * 1024,
    PICTURES_MS = 20 * 1000, /* for all of one page */
};

/* A viewer at work. */
struct viewing {
    uint64_t id; /* its job's; 0: none */
    struct chan *chan;
    int out; /* where it writes its PNG; -1: none */
    struct wish *wish;
    uint64_t until_ms;
};

/* How one is started and ended (viewers.c; tests have their own). */
struct viewer_ops {
    /* With that picture, sealed, and run->out. False: it cannot be. Its word comes to pictures_said. */
    bool (*begin)(struct desk *d, struct viewing *run, int picture);
    void (*end)(struct desk *d, struct viewing *run);
};
extern const struct viewer_ops *pictures_by; /* NULL: there are none, and no picture is shown */

/* Look at the pictures of a request whose body was taken, or at one of them, then go on, at once or when the viewers
 * are through; at the latest after PICTURES_MS. v->seen says what came of each, by its place in v->r.picture. With
 * one, x->file is its PNG, if there is one. */
void pictures_see(struct exchange *x, struct view *v, size_t which, void (*then)(struct exchange *x, struct view *v));
/* What a viewer said; NULL: it ended without a word. */
void pictures_said(struct desk *d, struct viewing *run, const struct viewed *said);
/* The run with this number, or NULL. */
struct viewing *pictures_run(struct desk *d, uint64_t id);
/* A viewer ended without a word. */
void pictures_lost(struct desk *d, const struct chan *c);
/* What took too long is over. */
void pictures_expire(struct desk *d, uint64_t now);

/* packages.c. Of what may be a package: what could not be listed blocks it, what is odd in it is flagged.
 * page_packages.c: its files, in the body's place. */
void packages_flag(struct exchange *x, struct view *v, size_t i);
void page_package(struct exchange *x, const struct view *v, size_t i);
/* A file's part in that: in a word of our own, or NULL. */
const char *package_mark(struct span name);

/* page_pictures.c. After a request was taken apart: what could not be shown blocks it, what is odd is flagged. */
void pictures_flag(struct exchange *x, struct view *v);
/* In the body's place: each picture, or why it is not shown. */
void page_pictures(struct exchange *x, const struct view *v);
/* The PNG that x->file is, or that there is none. */
void pictures_give(struct exchange *x, struct view *v);

#endif
