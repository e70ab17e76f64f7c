/* Who carries what is kept elsewhere: nobody (none.c, countersign-checkpoint), or S3's API through the gateway's own
 * listener, with a lease (s3.c, countersign-checkpoint-s3). */
#ifndef SANDBOX_SHIM_CHECKPOINT_AWAY_CARRIER_H
#define SANDBOX_SHIM_CHECKPOINT_AWAY_CARRIER_H

#include "sandbox-shim/checkpoint/away/away.h"

/* As whoever started this program, before it is somebody else and confined: what it is told, and what it needs of
 * files. NULL: nobody. It ends with the process where something is missing, in the log. */
const struct away_carrier *carrier_prepare(void);
/* When this process is who it is to be, and before it is confined. */
void carrier_confine(void);
/* The walls that are left open for it (WALL_*). */
unsigned carrier_calls(void);

#endif
