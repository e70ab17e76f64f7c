/* What the files of the tape share. */
#ifndef BROKER_REPLAY_TAPE_IN_H
#define BROKER_REPLAY_TAPE_IN_H

enum { TAPE_HEARD_KINDS = HEARD_FAILED + 1, TAPE_KNOWN_KINDS = 5 };
extern const char *const tape_heard[TAPE_HEARD_KINDS], *const tape_known[TAPE_KNOWN_KINDS];

#endif
