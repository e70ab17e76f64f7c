/* The verbs of `countersign`: one table (verbs.c), from which the command line is read (read.c) and help and
 * completions are printed (help.c, completion.c); tests/cli/verbs.py holds the man page against it. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/control/exit.h"
#include "common/err.h"

enum { CLI_GIVEN_MAX = 64 }; /* options on one command line; one more is refused, so no list of values is cut */

struct cli_option {
    const char *name, *arg, *help; /* without dashes; what its value is called, NULL: it has none; one line */
    const char *choices;           /* its values, parted by blanks; NULL: free */
    char letter;                   /* short form, 0: none */
    bool many;                     /* may be given more than once; else the last one counts */
};

/* Options that many verbs take: where the state directory is, and --json. */
enum cli_takes { TAKES_NOTHING = 0, TAKES_STATE = 1, TAKES_JSON = 2, TAKES_BOTH = 3 };

struct cli_call;
struct cli_verb {
    const char *name;  /* its words, parted by one blank: "approvals list" */
    const char *words; /* what follows them beside options, like "ID" or "[NAME]" or "FILE..."; a line for each way */
    const char *help;  /* one line */
    const char *example;              /* a command line, or lines */
    const struct cli_option *options; /* ends with a NULL name; NULL: none of its own */
    enum cli_takes takes;
    int (*fn)(const struct cli_call *c); /* returns an enum cli_exit */
    int (*raw)(int argc, char **argv);   /* reads its own options; argv[0] is the last word of its name */
};

/* A command line that was read. */
struct cli_call {
    const struct cli_verb *verb;
    char **word;
    size_t nwords, dash, dashes; /* dash: how many words stood before the last "--", of which there were `dashes` */
    const char *state_dir;       /* NULL: not said */
    bool json, help;             /* help: --help was among the options, and nothing else counts */
    size_t ngiven;
    struct {
        const struct cli_option *option;
        const char *value;
    } given[CLI_GIVEN_MAX];
};

extern const struct cli_verb cli_verbs[]; /* ends with a NULL name */
extern const struct cli_option cli_state_option, cli_json_option;

/* read.c */

/* The verb that the first of these words name; *used: how many. NULL: none. */
const struct cli_verb *cli_find(int argc, char **argv, int *used);
/* Read what follows the verb's name. argv is reordered: the words come to its front. CLI_OK, or CLI_USAGE after words
 * on stderr, or with c->help and none. */
int cli_read(const struct cli_verb *v, int argc, char **argv, struct cli_call *c);
/* The last value of an option of the verb's row, NULL: not given. Asked for one that is not in the row, it aborts. */
const char *cli_value(const struct cli_call *c, const char *name);
bool cli_flag(const struct cli_call *c, const char *name);
/* All values, in their order, at most max of them. */
size_t cli_values(const struct cli_call *c, const char *name, const char **out, size_t max);
/* The i-th option that the verb takes, its own and the common ones; NULL: there are no more. */
const struct cli_option *cli_option_at(const struct cli_verb *v, size_t i);

/* help.c */

/* "countersign VERB: " and words that say what is wrong with the command line, then its usage, on stderr; CLI_USAGE.
 */
int cli_complain(const struct cli_verb *v, const char *fmt, ...) PRINTF(2, 3);
/* All of a verb on stdout. */
void cli_help_verb(const struct cli_verb *v);
/* The verbs whose names begin with these words (none: all of them, by their first word). How many. */
size_t cli_help_group(const char *group, bool to_stderr);
/* "no verb ..." with what may have been meant, on stderr; CLI_USAGE. */
int cli_unknown(const char *group, const char *word);
int help_main(int argc, char **argv);
int completion_main(const struct cli_call *c); /* completion.c */

/* One file a verb, or a few that belong together. */
int approvals_list(const struct cli_call *c);
int approvals_show(const struct cli_call *c);
int approvals_approve(const struct cli_call *c);
int approvals_deny(const struct cli_call *c);
int approvals_metrics(const struct cli_call *c);
int approvals_claim(const struct cli_call *c);
int approvals_unclaim(const struct cli_call *c);
int approvals_watch(const struct cli_call *c);
int grants_list(const struct cli_call *c);
int grants_revoke(const struct cli_call *c);
int chat_main(const struct cli_call *c);
int sandbox_create(const struct cli_call *c);
int sandbox_list(const struct cli_call *c);
int sandbox_start(const struct cli_call *c);
int image_import(const struct cli_call *c);
int image_list(const struct cli_call *c);
int image_rm(const struct cli_call *c);
int sandbox_started(const struct cli_call *c);
int sandbox_exec(const struct cli_call *c);
int sandbox_ps(const struct cli_call *c);
int sandbox_attach(const struct cli_call *c);
/* Is its second word what a command is called? Else said. */
int sandbox_command_id(const struct cli_call *c);
int sandbox_kill(const struct cli_call *c);
int sandbox_shell(const struct cli_call *c);
int sandbox_cp(const struct cli_call *c);
int sandbox_ls(const struct cli_call *c);
int sandbox_top(const struct cli_call *c);
int sandbox_logs(const struct cli_call *c);
int sandbox_timeout(const struct cli_call *c);
int sandbox_pause(const struct cli_call *c);
int sandbox_resume(const struct cli_call *c);
int sandbox_snapshot(const struct cli_call *c);
int sandbox_restore(const struct cli_call *c);
int sandbox_fork(const struct cli_call *c);
int sandbox_undo(const struct cli_call *c);
int sandbox_steps(const struct cli_call *c);
int checkpoint_list(const struct cli_call *c);
int checkpoint_rm(const struct cli_call *c);
int sandbox_destroy(const struct cli_call *c);
int sandbox_rm(const struct cli_call *c);
int env_main(const struct cli_call *c);
int audit_tail(const struct cli_call *c);
int audit_export(const struct cli_call *c);
int audit_verify(const struct cli_call *c);
int runs_list(const struct cli_call *c);
int runs_show(const struct cli_call *c);
int runs_repeat(const struct cli_call *c);
int operator_add(const struct cli_call *c);
int notify_list(const struct cli_call *c);
int notify_test(const struct cli_call *c);
int operator_list(const struct cli_call *c);
int operator_group(const struct cli_call *c);
int operator_link(const struct cli_call *c);
int operator_rm(const struct cli_call *c);
/* Who decides in the caller's place, for a while; who does for whom; the end of it. */
int operator_deputy(const struct cli_call *c);
int operator_deputies(const struct cli_call *c);
int operator_no_deputy(const struct cli_call *c);
int runs_export(const struct cli_call *c);
int runs_verify(const struct cli_call *c);
int lease_issue(const struct cli_call *c);
int lease_list(const struct cli_call *c);
int lease_show(const struct cli_call *c);
int lease_narrow(const struct cli_call *c);
int lease_revoke(const struct cli_call *c);
int lease_env(const struct cli_call *c);
int secret_set(const struct cli_call *c);
int secret_list(const struct cli_call *c);
int secret_rm(const struct cli_call *c);
int secret_check(const struct cli_call *c);
int secret_jwks(const struct cli_call *c);
int ca_show(const struct cli_call *c);
int ca_bundle(const struct cli_call *c);
int ca_truststore(const struct cli_call *c);
int ca_export(const struct cli_call *c);
int ca_nss(const struct cli_call *c);
int policy_check(const struct cli_call *c);
int policy_test(const struct cli_call *c);
int policy_explain(const struct cli_call *c);
int policy_diff(const struct cli_call *c);
int policy_replay(const struct cli_call *c);
int policy_learn(const struct cli_call *c);
int policy_schema(const struct cli_call *c);
int policy_history(const struct cli_call *c);
int policy_show(const struct cli_call *c);
int policy_rollback(const struct cli_call *c);
int schema_check(const struct cli_call *c);
int task_run(const struct cli_call *c);
int mount_list(const struct cli_call *c);
int mount_rm(const struct cli_call *c);
int task_list(const struct cli_call *c);
int task_running(const struct cli_call *c);
int task_stop(const struct cli_call *c);
int runs_output(const struct cli_call *c);
int key_create(const struct cli_call *c);
int key_list(const struct cli_call *c);
int key_rm(const struct cli_call *c);
int freeze_main(const struct cli_call *c);
int thaw_main(const struct cli_call *c);
int reload_main(const struct cli_call *c);
int status_main(const struct cli_call *c);
int signin_main(const struct cli_call *c);
int log_main(const struct cli_call *c);
int trace_main(const struct cli_call *c);
/* cli/verbs/replay/options.c */
extern const struct cli_option replay_export_options[], replay_run_options[];
int replay_export(const struct cli_call *c);
int replay_run(const struct cli_call *c);
int usage_main(const struct cli_call *c);
int replay_exchange_main(const struct cli_call *c);
int doctor_main(const struct cli_call *c);
int version_main(const struct cli_call *c);
int up_main(int argc, char **argv);

#endif
