/* What the files of `countersign replay` share: the broker of this machine,
 * asked as its operator. */
#ifndef CLI_VERBS_REPLAY_REPLAY_H
#define CLI_VERBS_REPLAY_REPLAY_H

#include "broker/replay/report.h"
#include "cli/verb.h"

struct replaying {
    char sock[PATH_MAX];
    const char *tenant;
    struct dynbuf set; /* the file that is made: its first line is in it; freed by
                          the caller */
    uint64_t runs, left_out;
};

/* CLI_OK, or what to exit with after words on stderr. */
int replay_begin(struct replaying *x, const struct cli_call *c) MUSTCHECK;
/* /WHAT/ID/WHICH; words on stderr when there is no answer. The answer is born
 * here. */
int replay_call(const struct replaying *x, const char *method, const char *what, const char *id, const char *which,
                uint64_t after, unsigned *status, struct dynbuf *answer) MUSTCHECK;
/* What a refusing answer says, on stderr. */
int replay_refused(unsigned status, const struct dynbuf *answer) MUSTCHECK;
/* A turn's recording, at the end of the set. status 404: there is no such turn,
 * and nothing was said. */
int replay_add(struct replaying *x, const char *id, unsigned *status) MUSTCHECK;
/* Each run of the set is asked once more, one after the other; x->set has what
 * came of them. Those that cannot be are taken out of `then`, and counted. */
int replay_ask(struct replaying *x, struct replay_set *then) MUSTCHECK;
/* Each run by each model that is named, live, as the options say; the report of it. */
int replay_live(const struct cli_call *c, struct replay_set *set, struct arena *a) MUSTCHECK;
/* The report, in the format that is asked for. */
int replay_report(const struct cli_call *c, const struct score *s) MUSTCHECK;

#endif
