#include "proxy/judge/post.h"

#include "common/log.h"

bool judge_store_ok(struct judge *j)
{
    uint64_t now_us = j->ports.now(j->ports.arg) * 1000;
    bool silent = j->unheard_us && now_us > j->unheard_us && now_us - j->unheard_us >= LEDGER_SILENT_MS * 1000ull;
    if (silent && !j->silent)
        log_error("the ledger has not said a word for %d s: requests are refused until it does",
                  LEDGER_SILENT_MS / 1000);
    j->silent = silent;
    return j->ledger && !j->store_lost && !silent;
}

static void spoke(struct judge *j)
{
    if (j->unheard_us == 0)
        j->unheard_us = j->ports.clock(j->ports.arg);
}

void judge_heard_ledger(struct judge *j)
{
    if (j->silent)
        log_warn("the ledger speaks again");
    j->silent = false;
    j->unheard_us = 0;
}

struct dynbuf *post_begin(struct judge *j, enum role_id to, uint64_t instance, uint16_t type, uint64_t xid)
{
    struct dynbuf *b = j->ports.begin(j->ports.arg, to, instance, type, xid);
    j->post.to = to;
    j->post.instance = instance;
    j->post.xid = xid;
    j->post.nobody = b == NULL;
    return b != NULL ? b : &j->post.nowhere; /* its cap is 0 */
}

int post_commit(struct judge *j, int fd)
{
    if (j->post.nobody)
        return -1;
    if (j->post.to == ROLE_LEDGER)
        spoke(j);
    return j->ports.commit(j->ports.arg, j->post.to, j->post.instance, fd);
}

int post_commit_soon(struct judge *j)
{
    if (j->ports.commit_soon == NULL || j->post.nobody)
        return post_commit(j, -1);
    spoke(j);
    return j->ports.commit_soon(j->ports.arg, j->post.to, j->post.instance);
}

void post_send(struct judge *j, const char *lost)
{
    if (post_commit(j, -1) != 0 && !j->post.nobody)
        log_exchange(LOG_WARN, j->post.xid, "%s", lost);
}
