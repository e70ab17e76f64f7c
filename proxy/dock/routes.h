/* The handlers that routes.c names. */
#ifndef PROXY_DOCK_ROUTES_H
#define PROXY_DOCK_ROUTES_H

#include "proxy/dock/dock.h"

/* control.c */
call_fn control_create, control_connect, control_list, control_info, control_timeout, control_refresh, control_pause,
    control_kill, control_metrics;
/* snapshots/ */
call_fn snapshot_make, snapshot_list, snapshot_remove, fork_make;
/* files.c */
call_fn files_health, files_read, files_write;
/* entries.c */
call_fn entries_stat, entries_list, entries_mkdir, entries_move, entries_remove;
/* watch.c */
call_fn watch_dir, watch_create, watch_events, watch_remove;
/* process.c */
call_fn process_start, process_connect, process_list, process_input, process_close, process_signal, process_update;
/* What is not here yet: in words. */
call_fn route_no_network, route_no_secrets;

#endif
