/* The file of a recording: written by the parent, since the judge has no file; its bytes are not looked at. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/file.h"
#include "common/msg.h"
#include "proxy/parent/parent.h"

#define RECORDING_BYTES (UINT64_C(64) * 1024 * 1024)

int parent_record_begin(struct parent *p, struct err *e)
{
    struct observe *o = &p->observe;
    char path[CONFIG_PATH + 16];
    snprintf(path, sizeof(path), "%s/" RECORDING_NAME, p->config->state_dir);
    parent_record_end(p);
    if (unlink(path) != 0 && errno != ENOENT)
        return err_errno(e, "the recording before cannot be removed");
    if ((o->recording = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)) < 0)
        return err_errno(e, "a recording cannot be begun in the state directory");
    o->records = true;
    return 0;
}

void parent_record_end(struct parent *p)
{
    struct observe *o = &p->observe;
    if (o->records)
        close(o->recording);
    o->records = false;
    o->recorded = 0;
}

void parent_record_tell(struct parent *p, const struct log_setting *s, struct child *started)
{
    struct observe *o = &p->observe;
    struct child *judge = started ? started : parent_child(p, ROLE_JUDGE, 0);
    uint64_t from = o->records ? s->from : 0, upto = o->records ? s->upto : 0;
    bool same = from == o->rec_from && upto == o->rec_upto;
    if (judge == NULL || judge->chan == NULL || (started == NULL && same) || (started != NULL && upto == 0))
        return;
    o->rec_from = from;
    o->rec_upto = upto;
    struct dynbuf *b = chan_begin(judge->chan, M_RECORD, 0);
    msg_put_u64(b, from);
    msg_put_u64(b, upto);
    (void)chan_commit(judge->chan); /* if not, its end is near, and the next one is told */
}

void parent_recorded(struct parent *p, struct frame *f)
{
    struct observe *o = &p->observe;
    if (!o->records)
        return; /* on its way when it ended */
    bool full = f->payload.n > RECORDING_BYTES - o->recorded;
    if (!full && file_write_fd(o->recording, f->payload) == 0) {
        o->recorded += f->payload.n;
        return;
    }
    if (full)
        log_warn("the recording has the size it may have; it ends");
    else
        log_warn("the recording cannot be written, and ends: %m");
    parent_record_end(p);
    parent_record_tell(p, &(struct log_setting){.level = LOG_INFO}, NULL);
}
