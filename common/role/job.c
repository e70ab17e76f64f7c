/* A program that is started for one thing, and ends with its answer. See role.h. */
#include <signal.h>
#include <unistd.h>

#include "common/log.h"
#include "common/role/role.h"
#include "common/role/role_in.h"

void role_job_start(const char *name)
{
    struct role_user user;

    log_init(name, LOG_INFO);
    role_user_read(&user);
    (void)setpgid(0, 0); /* the parent does it as well: whoever comes first */
    signal(SIGPIPE, SIG_IGN);
    role_take_channel("channel");
    role_close_inherited();
    role_limits();
    role_user_become(&user);
    role_die_with_parent();
    role_wipe_environment();
}

void role_job_order(struct frame *f, struct dynbuf *payload)
{
    dynbuf_init(payload, CHAN_PAYLOAD_MAX);
    if (chan_read_one(ROLE_PARENT_FD, f, payload) == 0)
        return;
    role_end_if_alone();
    log_die("no order came; countersignd has this program started");
}

bool role_job_answer(uint16_t type, uint64_t id, const struct dynbuf *payload)
{
    if (dynbuf_ok(payload) && chan_write_one(ROLE_PARENT_FD, type, id, dynbuf_span(payload)) == 0)
        return true;
    if (role_is_alone())
        log_info("who started this program has ended before it heard how it went");
    else
        log_error("how it went cannot be told to who started this program");
    return false;
}
