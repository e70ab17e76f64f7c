/* A benchmark set: recorded runs, as `countersign replay export` writes them. A file of lines, each a JSON object:
 * first what it is, then of each run who it was and how it ended, and below that its recording (tape.h). */
#ifndef BROKER_REPLAY_SET_H
#define BROKER_REPLAY_SET_H

#include "broker/replay/tape.h"

enum {
    SET_RUNS_MAX = 1000,
    SET_BYTES_MAX = 64 << 20,
    SET_ARENA_MAX = 1 << 30 /* memory for what is read of it */
};
#define SET_HEAD "{\"countersign\":\"replay set\",\"version\":1}"

struct set_row {
    struct tape_row row;
    uint64_t step;      /* of which step it is */
    uint64_t lat;       /* ms between what was asked for and that it came; of what nobody asked for: 0 */
    struct used wasted; /* what was spent by then, or right after it, of which no answer tells */
    bool asked;         /* something was done for it to be heard */
};

/* Why a worker had nothing more to do with the turn. */
enum set_left { LEFT_LOST = 0 /* nobody wrote it down */, LEFT_BACK, LEFT_OVER };
/* What one worker did of a run: rows first .. last - 1, the first a begin. */
struct set_epoch {
    size_t first, last;
    enum set_left left;
};

struct set_run {
    struct id turn, conversation;
    enum turn_end end;
    struct used used;
    struct budget budget;
    bool cut; /* not all of it was kept */
    struct set_row *row;
    size_t rows;
    struct set_epoch *epoch;
    size_t epochs;
};
struct replay_set {
    struct set_run *run;
    size_t n;
};

/* All of a file. What is read lives in the arena. -1 with the reason and its line. */
int set_read(struct span text, struct arena *a, struct replay_set *out, struct err *e) MUSTCHECK;
/* The line that begins a run, with its end: what its rows stand below. */
void set_put_run(struct dynbuf *out, const struct set_run *run);

#endif
