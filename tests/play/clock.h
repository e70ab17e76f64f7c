/* Time in a play: it passes while the play is at work, and stands still while a busy machine does something else, so
 * that what must be done within 40 ms is, however late the play itself gets its turn. */
#ifndef TESTS_PLAY_CLOCK_H
#define TESTS_PLAY_CLOCK_H

/* A turn of the loop is over. */
void clock_turn(void);
/* The loop waits by itself: until the next turn is over time passes as it does. */
void clock_waits(void);

#endif
