/* The judge, start here: who asks, what it is, whether it may, and the record of it.
 * It holds no socket, file or secret: frames come in through judge_frame, go out
 * through struct judge_ports. The walk of one request is walk.c and one steps/step_*.c a step. */
#ifndef PROXY_JUDGE_JUDGE_H
#define PROXY_JUDGE_JUDGE_H

#include "common/net/chan.h"
#include "proxy/judge/ports.h"

struct judge;

/* NULL: no memory. */
struct judge *judge_new(const struct judge_ports *ports) MUSTCHECK;
void judge_free(struct judge **j);
/* One setting: hold.inline_wait_ms, hold.expires_ms, body_max, store_lost (deny | allow-reads),
 * disclose (none | rules), mode (enforce | shadow), desk_url. */
enum judge_config_result {
    JUDGE_CONFIG_BAD = -1,
    JUDGE_CONFIG_OK,
    JUDGE_CONFIG_OTHER /* not a setting of the judge */
};
enum judge_config_result judge_config(struct judge *j, struct span key, struct span value) MUSTCHECK;
/* A channel to a peer stands (info: a front's sandbox); an earlier one of the same is gone by that. */
void judge_peer(struct judge *j, enum role_id role, uint64_t instance, struct span info);
void judge_gone(struct judge *j, enum role_id role, uint64_t instance);
/* A frame from a peer (or ROLE_PARENT). -1: it broke the contract; the caller ends that channel and calls judge_gone.
 */
int judge_frame(struct judge *j, enum role_id role, uint64_t instance, struct frame *f) MUSTCHECK;
/* The alarm of ports.wake went off. */
void judge_tick(struct judge *j);
/* From now on all that is not with the carrier is refused, at once; what is, may still end. */
void judge_end(struct judge *j);
/* How many exchanges are open: for the plays, and for a quiet end. */
size_t judge_exchanges(const struct judge *j);

#endif
