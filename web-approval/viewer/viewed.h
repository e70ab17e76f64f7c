/* What the viewer says of a picture, and its bounds: shared by the viewer, who parses it, and the desk, who never
 * does. All of it is numbers: who took a viewer over chooses no words. */
#ifndef WEB_APPROVAL_VIEWER_VIEWED_H
#define WEB_APPROVAL_VIEWER_VIEWED_H

#include "common/dynbuf.h"
#include "common/msg.h"

enum view_end {
    VIEW_FAILED = 0, /* it ended without a word, or had no memory */
    VIEW_SHOWN,      /* there is a PNG of it */
    VIEW_KIND,       /* of a format, or a variant of one, that is not drawn here */
    VIEW_LARGE,      /* its bytes, its sides or its pixels are more than is drawn */
    VIEW_DAMAGED,    /* cut short, or programs would differ in what they see in it */
    VIEW_MOVES,      /* several pictures one after the other, of a format whose first is not drawn either */
    VIEW_BUSY,       /* said by the desk alone: too many wait */
    VIEW_ENDS
};

enum view_format { VIEW_NO_FORMAT = 0, VIEW_PNG, VIEW_JPEG, VIEW_GIF, VIEW_WEBP, VIEW_PACKAGE, VIEW_FORMATS };

enum {
    VIEW_BYTES_MAX = 16 * 1024 * 1024,  /* of a picture */
    VIEW_SIDE_MAX = 16384,              /* pixels */
    VIEW_PIXELS_MAX = 32 * 1024 * 1024, /* of it; refused by its head, before there is memory for them */
    VIEW_SHOWN_MAX = 2 * 1024 * 1024,   /* pixels of what is made of it: a screen's 1920 x 1080 is shown as it is */
    VIEW_SHOWN_SIDE_MAX = 4096,
    VIEW_PNG_MAX = 10 * 1024 * 1024, /* bytes of that */
    VIEW_FRAMES_MAX = 10000,         /* counted so far */
    VIEW_SECONDS = 10,               /* for one picture, by the clock and of the processor */
};

struct viewed {
    enum view_end end;
    enum view_format format;
    uint32_t width, height; /* its own, as its head says; 0: not known; of a package width: how many files it lists */
    uint32_t w, h;          /* of the PNG; 0: there is none */
    uint32_t frames;        /* one after the other; the first is shown */
    uint64_t behind;        /* bytes that follow its end */
    bool clear;             /* parts of it can be seen through */
};

void viewed_put(struct dynbuf *b, const struct viewed *v);
/* -1, and v says VIEW_FAILED: it is not within what a viewer may say. */
int viewed_get(struct msg_in *m, struct viewed *v) MUSTCHECK;
/* "PNG"; for one that is not known "a picture". */
const char *viewed_format(const struct viewed *v);
/* Is what was made what was said: a PNG of these sides, or a package's list of so many files? */
bool viewed_made(struct span made, const struct viewed *v);
/* Has a PNG these sides, by its first bytes, and its end at its end? What lies between nobody of ours reads. */
bool viewed_png(struct span png, const struct viewed *v);

#endif
