/* Recordings for tests: a turn of one seed, worked at by the real machine in a world of chance, and written down as a
 * worker writes it down. */
#ifndef TESTS_UNIT_BROKER_RECORDER_H
#define TESTS_UNIT_BROKER_RECORDER_H

#include "broker/replay/set.h"

/* One run is added to the set. How it ended. lossy: workers may be lost in the middle. */
enum turn_end recorder_run(struct dynbuf *set, uint64_t seed, bool lossy);

#endif
