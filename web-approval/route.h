/* From a request to its handler: the Host check first, then who asks, then what. */
#ifndef WEB_APPROVAL_ROUTE_H
#define WEB_APPROVAL_ROUTE_H

#include "web-approval/desk.h"

/* Handle a complete request. Afterwards x->status is set, or an answer of another role is awaited. */
void route_run(struct exchange *x);

/* Is the body of such a request, of any length, read while it is handled? Then x->body has nothing of it. */
bool route_streams(enum desk_place place, const struct http_head *h);

/* Handlers. */
void api_tickets(struct exchange *x);
void api_ticket(struct exchange *x);
void api_ticket_body(struct exchange *x);
void api_approve(struct exchange *x);
void api_deny(struct exchange *x);
void api_grants(struct exchange *x);
void api_ticket_grant(struct exchange *x);
void api_grant_revoke(struct exchange *x);
void api_sandboxes(struct exchange *x);
void api_sandbox_create(struct exchange *x);
void api_sandbox_token(struct exchange *x);
void api_sandbox_remove(struct exchange *x);
void api_started(struct exchange *x);
void api_started_start(struct exchange *x);
void api_started_exec(struct exchange *x);
void api_started_commands(struct exchange *x);
void api_started_attach(struct exchange *x);
void api_started_signal(struct exchange *x);
void api_started_tell(struct exchange *x);
void api_started_access(struct exchange *x);
void api_keys(struct exchange *x);
void api_key_create(struct exchange *x);
void api_key_remove(struct exchange *x);
void api_started_input(struct exchange *x);
void api_started_resize(struct exchange *x);
void api_started_metrics(struct exchange *x);
void api_started_log(struct exchange *x);
void api_started_timeout(struct exchange *x);
void api_started_pause(struct exchange *x);
void api_started_resume(struct exchange *x);
void api_started_destroy(struct exchange *x);
void api_tasks(struct exchange *x);
void api_tasks_running(struct exchange *x);
void api_task_cancel(struct exchange *x);
void api_run_output(struct exchange *x);
void api_task_run(struct exchange *x);
void api_snapshot(struct exchange *x);
void api_fork(struct exchange *x);
void api_undo(struct exchange *x);
void api_steps(struct exchange *x);
void api_checkpoints(struct exchange *x);
void api_checkpoint_remove(struct exchange *x);
void api_files_read(struct exchange *x);
void api_files_write(struct exchange *x);
void api_files_remove(struct exchange *x);
void api_files_list(struct exchange *x);
void api_files_stat(struct exchange *x);
void api_files_watch(struct exchange *x);
void api_files_mkdir(struct exchange *x);
void api_files_move(struct exchange *x);
void api_files_pack(struct exchange *x);
void api_files_unpack(struct exchange *x);
void api_credentials(struct exchange *x);
void api_leases(struct exchange *x);
void api_lease(struct exchange *x);
void api_lease_issue(struct exchange *x);
void api_lease_narrow(struct exchange *x);
void api_lease_revoke(struct exchange *x);
void api_runs(struct exchange *x);
void api_run(struct exchange *x);
void api_run_repeat(struct exchange *x);
void api_audit(struct exchange *x);
void api_events(struct exchange *x);
void api_status(struct exchange *x);
void api_frozen(struct exchange *x);
void api_freeze(struct exchange *x);
void api_thaw(struct exchange *x);
void api_reload(struct exchange *x);
void api_policy_versions(struct exchange *x);
void api_policy_rollback(struct exchange *x);
void api_log(struct exchange *x);
void api_log_change(struct exchange *x);
void api_trace(struct exchange *x);
void api_signin(struct exchange *x);

void page_list(struct exchange *x);
void page_ticket(struct exchange *x);
void page_ticket_whole(struct exchange *x);
void page_picture(struct exchange *x);
void page_history(struct exchange *x);
void page_history_export(struct exchange *x);
void page_group(struct exchange *x);
void page_group_decide(struct exchange *x);
void page_approve(struct exchange *x);
void page_deny(struct exchange *x);
void page_grant(struct exchange *x);
void page_grants(struct exchange *x);
void page_grant_revoke(struct exchange *x);
void page_freeze(struct exchange *x);
void page_freeze_on(struct exchange *x);
void page_freeze_off(struct exchange *x);
void page_sandboxes(struct exchange *x);
void page_credentials(struct exchange *x);
void page_policy(struct exchange *x);
void page_policy_explain(struct exchange *x);
void page_audit(struct exchange *x);
void page_health(struct exchange *x);
void page_models(struct exchange *x);
void page_habits(struct exchange *x);
void page_sign_in(struct exchange *x);
void page_sign_in_post(struct exchange *x);
void page_sign_out(struct exchange *x);
void page_asset(struct exchange *x);

#endif
