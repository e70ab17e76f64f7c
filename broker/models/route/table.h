/* conf/models.yaml as a table: which models there are, what they cost, and which of them is for which task. */
#ifndef BROKER_MODELS_ROUTE_TABLE_H
#define BROKER_MODELS_ROUTE_TABLE_H

#include "broker/models/route/route.h"
#include "common/arena.h"
#include "common/err.h"

enum { TABLE_TEXT_MAX = 256 * 1024, TABLE_ARENA_MAX = 16 * 1024 * 1024 };

/* file: its name in problems. Everything that comes out is in the arena, born with TABLE_ARENA_MAX. -1, with
 * file:line:col and what to do in *e. */
int table_read(const char *file, struct span text, struct arena *a, struct route_table *out, struct err *e) MUSTCHECK;

#endif
