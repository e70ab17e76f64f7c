/* The table of verbs. A new one: a row here, its function in verbs.h and its own file, its paragraph in
 * countersign(1). Options in the order in which help shows them. */
#include "cli/verbs.h"

#include "sandbox-shim/run/run.h"

/* --- the gateway and the sandbox ----------------------------------------------- */

static const struct cli_option up[] = {
    {.name = "config", .arg = "FILE", .help = "the configuration; without it embedded defaults hold"},
    {.name = "policy", .arg = "FILE", .help = "the policy, instead of the configuration's"},
    {.name = "data-dir", .arg = "DIR", .help = "where packs and shipped policies lie"},
    {.name = "private", .help = "no listener for tokens, and any free port for the approval page"},
    {.name = "secrets-only", .help = "nothing but what seals secrets; no policy is read"},
    {.name = "quiet", .help = "print nothing on standard output"},
    {.name = "ready-fd", .arg = "N", .help = "write `ready` to this descriptor when every role is up"},
    {.name = "check-config", .help = "load configuration and policy, say what is wrong, and end"},
    {.name = NULL}};
static const struct cli_option run[] = {
    {.name = "policy", .arg = "FILE", .help = "the policy of a gateway started for this command"},
    {.name = "with",
     .arg = "NAME",
     .help = "the gateway must have this credential (NAME=SET: in the variables of that set)",
     .many = true},
    {.name = "workspace",
     .arg = "DIR",
     .help = "where the command works and may write; the current directory",
     .many = true},
    {.name = "home", .arg = "NAME", .help = "a home that the next sandbox with this one finds again"},
    {.name = "memory", .arg = "AMOUNT", .help = "at most, like 512M or 4G"},
    {.name = "pids", .arg = "N", .help = "processes and threads, at most"},
    {.name = "cpus", .arg = "N", .help = "at most, like 2 or 0.5"},
    {.name = "name", .arg = "NAME", .help = "a name for the sandbox"},
    {.name = "read", .arg = "DIR", .help = "mounted read-only where it is", .many = true},
    {.name = "setenv", .arg = "NAME=VALUE", .help = "a variable for the command", .many = true},
    {.name = "transparent", .help = "capture what programs send or start nothing, and set no proxy variable"},
    {.name = "no-capture", .help = "capture nothing: programs must follow the proxy variables"},
    {.name = "quiet", .help = "do not say on standard error what waits, or is refused"},
    {.name = "bwrap", .arg = "FILE", .help = "another bubblewrap than the system's"},
    {.name = NULL}};
static const struct cli_option doctor[] = {
    {.name = "from-sandbox", .help = "look from inside a sandbox, where nothing but this program is needed"},
    {.name = "direct",
     .arg = "HOST:PORT",
     .help = "with --from-sandbox: must not be reached past the gateway",
     .many = true},
    {.name = NULL}};
static const struct cli_option log_options[] = {
    {.name = "level", .arg = "LEVEL", .help = "lines of this level and worse", .choices = "error warn info debug"},
    {.name = "trace", .arg = "NAME|EXCHANGE", .help = "all lines of a sandbox's exchanges, or of one; '' for nobody"},
    {.name = "record", .help = "also what the judge hears and says of them, for replay-exchange"},
    {.name = "for", .arg = "TIME", .help = "for so long, such as 10m; otherwise until the next reload"},
    {.name = NULL}};
static const struct cli_option replay_options[] = {
    {.name = "from", .arg = "FILE", .help = "another recording than the state directory's"},
    {.name = "debugger", .arg = "PROGRAM", .help = "start it under this one, such as gdb"},
    {.name = NULL}};
static const struct cli_option why[] = {
    {.name = "reason", .arg = "WORDS", .help = "kept in the record, and told to those who are refused"},
    {.name = NULL}};

/* --- policies -------------------------------------------------------------------- */

#define PACKS                                                                                                        \
    {.name = "packs", .arg = "DIR", .help = "packs from here instead of those that were installed"},                 \
    {                                                                                                                \
        .name = "signers", .arg = "FILE", .help = "refuse files that none of these keys signed"                      \
    }
#define FLOORS                                                                                                       \
    {                                                                                                                \
        .name = "floors", .arg = "FILE", .help = "the operator's denies, which no policy lifts"                      \
    }
#define RECORDS                                                                                                      \
    {.name = "since", .arg = "TIME", .help = "from then on: 24h ago, or a moment like 2026-11-22T10:00:00Z"},        \
        {.name = "until", .arg = "TIME", .help = "up to then"},                                                      \
    {                                                                                                                \
        .name = "from", .arg = "FILE", .help = "records from a file (-: standard input) instead of the store"        \
    }
static const struct cli_option check[] = {
    {.name = "format", .arg = "FORMAT", .help = "how problems are printed", .choices = "text json sarif"},
    FLOORS,
    PACKS,
    {.name = "explain", .arg = "CODE", .help = "what a problem's code means; no file is read"},
    {.name = NULL}};
static const struct cli_option test[] = {
    {.name = "coverage", .help = "list the rules that no test reaches"},
    {.name = "fail-under", .arg = "PERCENT", .help = "fail when fewer of the rules are reached"},
    PACKS,
    {.name = NULL}};
static const struct cli_option explain[] = {
    {.name = "as", .arg = "SANDBOX", .help = "who asks"},
    {.name = "label", .arg = "KEY=VALUE", .help = "a label of it", .many = true},
    {.name = "at", .arg = "TIME", .help = "when, instead of now"},
    {.name = "header", .arg = "\"NAME: VALUE\"", .help = "a field of the request", .letter = 'H', .many = true},
    {.name = "body", .arg = "FILE", .help = "its body"},
    {.name = "data", .arg = "TEXT", .help = "its body, from the command line"},
    {.name = "ref", .arg = "\"create|update|delete REF\"", .help = "what it pushes", .many = true},
    {.name = "curl", .arg = "COMMAND", .help = "the request that this curl command line would send"},
    {.name = "record", .arg = "FILE", .help = "the request of an audit record (-: standard input)"},
    FLOORS,
    PACKS,
    {.name = NULL}};
static const struct cli_option diff[] = {
    {.name = "fail-on", .arg = "WHAT", .help = "which differences exit with 1", .choices = "widened any never"},
    {.name = "witness", .arg = "DIR", .help = "write each request that shows a difference into a file"},
    FLOORS,
    {.name = "old-floors", .arg = "FILE", .help = "those of the old one alone"},
    {.name = "new-floors", .arg = "FILE", .help = "those of the new one alone"},
    PACKS,
    {.name = NULL}};
static const struct cli_option replay[] = {
    RECORDS,
    {.name = "fail-on", .arg = "WHAT", .help = "which differences exit with 1", .choices = "widened any never"},
    FLOORS,
    PACKS,
    {.name = NULL}};
static const struct cli_option learn[] = {
    RECORDS,
    {.name = "as", .arg = "GLOB", .help = "what these sandboxes asked"},
    {.name = "policy", .arg = "FILE", .help = "only what this policy does not allow yet"},
    {.name = "scope", .arg = "NAME", .help = "rules for this scope of the policy"},
    {.name = "patch", .help = "a patch to the policy instead of a policy"},
    PACKS,
    {.name = NULL}};
static const struct cli_option show_version[] = {{.name = "files", .help = "only the files it was made of"},
                                                 {.name = NULL}};
static const struct cli_option rollback[] = {{.name = "end", .help = "back to the policy files"}, {.name = NULL}};

static const struct cli_option schema_options[] = {
    {.name = "formats", .help = "format restricts too: date-time, date, time, email, uri, uuid, ipv4, ipv6"},
    {.name = NULL}};

/* --- approvals, sandboxes, records, secrets ---------------------------------------- */

#define OFFLINE                                                                                                      \
    {                                                                                                                \
        .name = "config", .arg = "FILE",                                                                             \
        .help = "while no gateway runs: its configuration, when that says where the master key is"                   \
    }
static const struct cli_option secret_set_options[] = {
    {.name = "keep", .arg = "TIME", .help = "how long earlier values are looked for in answers, such as 10m"},
    OFFLINE,
    {.name = NULL}};
static const struct cli_option secret_list_options[] = {OFFLINE, {.name = NULL}};
static const struct cli_option secret_rm_options[] = {
    {.name = "earlier", .help = "only the values that were before the one in use"}, OFFLINE, {.name = NULL}};
static const struct cli_option list[] = {
    {.name = "state",
     .arg = "STATE",
     .help = "what is in this state instead of what waits",
     .choices = "pending approved denied expired cancelled executing done failed unknown decided all"},
    {.name = "all", .help = "in any state"},
    {.name = NULL}};
static const struct cli_option show[] = {{.name = "body", .help = "the body's exact bytes and nothing else"},
                                         {.name = NULL}};
static const struct cli_option approve[] = {
    {.name = "reason", .arg = "WORDS", .help = "kept in the record"},
    {.name = "digest", .arg = "HEX", .help = "only if this is still its digest"},
    {.name = "name", .arg = "NAME", .help = "of what it is about: needed of what deletes, spends, or changes rights"},
    {.name = "uses", .arg = "N", .help = "and so many more of its shape, as they come"},
    {.name = "for", .arg = "TIME", .help = "with --uses: for so long, such as 10m"},
    {.name = "deputy-for", .arg = "NAME", .help = "in the place of this person, whose deputy you are"},
    {.name = NULL}};
static const struct cli_option claim[] = {{.name = "take", .help = "also from somebody else who says so"},
                                          {.name = NULL}};
static const struct cli_option grants_all[] = {{.name = "all", .help = "also those that are over"}, {.name = NULL}};
static const struct cli_option grants_why[] = {{.name = "reason", .arg = "WORDS", .help = "kept in the record"},
                                               {.name = NULL}};
static const struct cli_option decide[] = {
    {.name = "reason", .arg = "WORDS", .help = "kept in the record; of a denial, told to the agent"},
    {.name = "digest", .arg = "HEX", .help = "only if this is still its digest"},
    {.name = NULL}};
#define VARIABLES                                                                                                    \
    {.name = "format",                                                                                               \
     .arg = "FORMAT",                                                                                                \
     .help = "how the variables are printed",                                                                        \
     .choices = "shell docker compose kubernetes github"},                                                           \
        {.name = "via", .arg = "WAY", .help = "which listener they lead to", .choices = "http socks5"},              \
    {                                                                                                                \
        .name = "dir", .arg = "DIR", .help = "where the sandbox sees the files they name, an absolute path"          \
    }
#define START_HOW                                                                                                    \
    {.name = "limits",                                                                                               \
     .arg = "HOW",                                                                                                   \
     .help = "strict: held for all processes together, or nothing starts; approximate: as well as it can be",        \
     .choices = "strict approximate"},                                                                               \
        {.name = "timeout", .arg = "TIME", .help = "it ends then, whatever it does; 1h, at most 7d"},                \
    {                                                                                                                \
        .name = "session", .arg = "NAME", .help = "what its tickets belong to; its name otherwise"                   \
    }
#define START_AMOUNTS                                                                                                \
    {.name = "memory", .arg = "BYTES", .help = "all it may use, with its files, like 512M; 1G"},                     \
        {.name = "pids", .arg = "N", .help = "processes and threads, 256"},                                          \
        {.name = "cpus", .arg = "N", .help = "CPUs, like 0.5; 1"},                                                   \
        {.name = "disk", .arg = "BYTES", .help = "its workspace, 512M"},                                             \
        {.name = "egress-bytes", .arg = "BYTES", .help = "that it may send and be sent, like 100M; no limit"},       \
        {.name = "egress-requests", .arg = "N", .help = "that it may send; no limit"},                               \
        {.name = "idle", .arg = "TIME", .help = "paused for so long its files alone are kept; never"},               \
    {                                                                                                                \
        .name = "files", .arg = "N", .help = "open files of each process, 4096"                                      \
    }
#define IMAGE                                                                                                        \
    {                                                                                                                \
        .name = "image", .arg = "NAME", .help = "an imported image as its files; the machine's own /usr otherwise"   \
    }
#define LANE                                                                                                         \
    {                                                                                                                \
        .name = "lane", .arg = "NAME", .help = "a way out through this gateway, and the value of its label `lane`"   \
    }
#define MOUNT                                                                                                        \
    {                                                                                                                \
        .name = "mount", .arg = "NAME:/PLACE", .help = "a directory of `mounts:` of the configuration", .many = true \
    }
static const struct cli_option task_options[] = {
    {.name = "tenant", .arg = "NAME", .help = "for whom; default"},
    {.name = "id", .arg = "ID", .help = "what it is called while it runs; else one is made up"},
    {.name = NULL}};
static const struct cli_option start_options[] = {
    START_HOW,
    START_AMOUNTS,
    IMAGE,
    LANE,
    MOUNT,
    {.name = "from", .arg = "CHECKPOINT", .help = "with the files of this checkpoint, by its id or name"},
    {.name = NULL}};
static const struct cli_option import_options[] = {
    {.name = "ref", .arg = "NAME", .help = "which one, of a layout with several: what its index.json calls it"},
    {.name = "most", .arg = "BYTES", .help = "that its layers unpack to: more is refused; 16G"},
    {.name = NULL}};
static const struct cli_option restore_options[] = {START_HOW, START_AMOUNTS, IMAGE, LANE, MOUNT, {.name = NULL}};
/* clang-format off */
static const struct cli_option fork_options[] = {START_HOW, LANE, MOUNT,
    {.name = "from", .arg = "STEP", .help = "with the files of before this step (exec --undo), not those of now"}, {.name = NULL}};
/* clang-format on */
#define COMMAND                                                                                                      \
    {.name = "env", .arg = "NAME=VALUE", .help = "a variable of the command", .many = true},                         \
        {.name = "dir", .arg = "DIR", .help = "where it runs; /workspace"},                                          \
        {.name = "timeout",                                                                                          \
         .arg = "TIME",                                                                                              \
         .help = "it is killed then, with what it started in its group; 5m, of a shell 24h; at most 24h"},           \
    {                                                                                                                \
        .name = "output", .arg = "BYTES",                                                                            \
        .help = "of it, what is past that is dropped and said; 16M, at a terminal 1G; at most 1G"                    \
    }
static const struct cli_option exec_options[] = {
    COMMAND,
    {.name = "stdin", .help = "what it reads is what countersign reads; otherwise it reads nothing"},
    {.name = "tty", .help = "it has a terminal, which is shown in this one, with its size; what it reads is typed"},
    {.name = "detach", .help = "print its number and leave it running, for 24h unless --timeout says less"},
    {.name = "lane",
     .arg = "NAME",
     .help = "a way out of its own, as the value of its label `lane`, behind walls of its own in the sandbox"},
    {.name = "undo", .help = "a step: keep the files as they are before it, so that it can be undone"},
    {.name = NULL}};
static const struct cli_option shell_options[] = {COMMAND, {.name = NULL}};
static const struct cli_option cp_options[] = {
    {.name = "most", .arg = "BYTES", .help = "of what comes out of the sandbox: more is an error; 1G"},
    {.name = "tar", .help = "`-` is a tar stream of a folder"},
    {.name = NULL}};
static const struct cli_option create[] = {
    {.name = "name", .arg = "NAME", .help = "its name, as the word does"},
    {.name = "session", .arg = "NAME", .help = "what its tickets belong to; its name otherwise"},
    {.name = "label", .arg = "KEY=VALUE", .help = "policies name it in scopes", .many = true},
    VARIABLES,
    {.name = NULL}};
static const struct cli_option rm[] = {{.name = "end-session", .help = "withdraw its requests that wait, too"},
                                       {.name = NULL}};
static const struct cli_option key_create_options[] = {
    {.name = "tenant", .arg = "NAME", .help = "whose sandboxes or conversations it sees; default"},
    {.name = "broker", .help = "for conversations with the broker, not for the sandbox API"},
    {.name = "read-only", .help = "with --broker: to read along alone"},
    {.name = NULL}};
static const struct cli_option usage_options[] = {
    {.name = "by", .arg = "WORDS", .help = "one or several of tenant,conversation,model,task,day; model"},
    {.name = "since", .arg = "TIME", .help = "a day of UTC, 2026-11-30, or how long ago, 7d; 30d"},
    {.name = "conversation", .arg = "ID", .help = "of this one alone"},
    {.name = "tenant", .arg = "NAME", .help = "of this one alone; otherwise of all"},
    {.name = NULL}};
static const struct cli_option chat_options[] = {
    {.name = "conversation", .arg = "ID", .help = "go on with this one; otherwise a new one begins"},
    {.name = "private", .arg = "MODELS", .help = "a new one: these models, a,b, may see it, and no other ever"},
    {.name = "list", .help = "the conversations there are"},
    {.name = NULL}};
static const struct cli_option operator_options[] = {
    {.name = "group",
     .arg = "NAME",
     .help = "a group of theirs, which approvers: of a policy may name",
     .many = true},
    {.name = "uid", .arg = "N", .help = "the user of this machine that they are too"},
    {.name = NULL}};
static const struct cli_option deputy_options[] = {
    {.name = "for", .arg = "TIME", .help = "for so long, such as 8h or 5d; at most 90d"}, {.name = NULL}};
static const struct cli_option tenant_options[] = {
    {.name = "tenant", .arg = "NAME", .help = "those of this one, whose keys the sandbox API knows; default"},
    {.name = NULL}};
static const struct cli_option env[] = {
    VARIABLES,
    {.name = "token", .arg = "TOKEN", .help = "print for this token; none is made"},
    {.name = "revoke-others", .help = "its earlier tokens are worth nothing from now on"},
    {.name = NULL}};
#define BOUNDS                                                                                                       \
    {.name = "for", .arg = "TIME", .help = "how long it lives, at most 7d; 1h otherwise"},                           \
        {.name = "host", .arg = "HOST", .help = "only for this host, or HOST:PORT", .many = true},                   \
        {.name = "method", .arg = "METHOD", .help = "only for this method", .many = true},                           \
        {.name = "path", .arg = "PATTERN", .help = "only for such paths, like /repos/acme/**", .many = true},        \
        {.name = "op", .arg = "PATTERN", .help = "only for such operations, like git.*", .many = true},              \
        {.name = "effect",                                                                                           \
         .arg = "EFFECT",                                                                                            \
         .help = "only for requests of this effect",                                                                 \
         .choices = "read write delete admin spend exec",                                                            \
         .many = true},                                                                                              \
        {.name = "uses", .arg = "N", .help = "for so many requests"},                                                \
    {                                                                                                                \
        .name = "rate", .arg = "N", .help = "for so many requests a minute"                                          \
    }
static const struct cli_option lease_issue_options[] = {
    {.name = "sandbox", .arg = "NAME", .help = "whose it is: of no worth to any other"}, BOUNDS, {.name = NULL}};
static const struct cli_option lease_env_options[] = {
    {.name = "sandbox", .arg = "NAME", .help = "whose it is: of no worth to any other"},
    {.name = "set", .arg = "SET", .help = "another set of variables than that of its form, such as cloudbase"},
    {.name = "format",
     .arg = "FORMAT",
     .help = "how the variables are printed",
     .choices = "shell docker compose kubernetes github"},
    BOUNDS,
    {.name = NULL}};
static const struct cli_option lease_list_options[] = {
    {.name = "sandbox", .arg = "NAME", .help = "only what this one has"}, {.name = NULL}};
static const struct cli_option lease_narrow_options[] = {
    {.name = "child", .help = "a new one that is good for less, and ends with it; it stays as it is"},
    BOUNDS,
    {.name = NULL}};
static const struct cli_option tail[] = {
    {.name = "follow", .help = "also what comes", .letter = 'f'},
    {.name = "lines", .arg = "N", .help = "how many, 20", .letter = 'n'},
    {.name = "all", .help = "also sandboxes that come and go, and the marks before what is sent or run"},
    {.name = NULL}};
static const struct cli_option logs_options[] = {
    {.name = "follow", .help = "also what comes, until it ends, as sandbox attach", .letter = 'f'}, {.name = NULL}};
static const struct cli_option export[] = {
    {.name = "since", .arg = "TIME", .help = "from then on: 24h ago, or a moment like 2026-11-22T10:00:00Z"},
    {.name = "until", .arg = "TIME", .help = "up to then"},
    {.name = "kind", .arg = "KIND", .help = "only records of this kind"},
    {.name = NULL}};
static const struct cli_option runs_list_options[] = {
    {.name = "sandbox", .arg = "NAME", .help = "only what ran in this one"},
    {.name = "lines", .arg = "N", .help = "how many, 20", .letter = 'n'},
    {.name = NULL}};
static const struct cli_option runs_export_options[] = {
    {.name = "sandbox", .arg = "NAME", .help = "only what ran in this one"}, {.name = NULL}};
static const struct cli_option verify[] = {
    {.name = "head", .arg = "SEQ:HASH", .help = "the head that was kept elsewhere: shows a cut tail"},
    {.name = "key", .arg = "HEX", .help = "the key that signed it; otherwise the gateway's own"},
    {.name = NULL}};

/* name, words, help, example, options, takes, function */
const struct cli_verb cli_verbs[] = {
    {"up", "", "run the gateway in the foreground",
     "countersign up --policy /usr/local/share/countersign/policies/github.yaml", up, TAKES_STATE, NULL, up_main},
    {"run", "-- CMD [ARG...]", "run a command in a sandbox that holds no secret",
     "countersign run --with github -- git clone https://github.com/acme/app.git", run, TAKES_STATE, NULL, run_main},
    {"policy check", "FILE...\n--explain CODE", "is the file valid, and what is likely not meant",
     "countersign policy check policy.yaml", check, TAKES_JSON, policy_check, NULL},
    {"policy test", "FILE_test.yaml...", "requests with what must come of them",
     "countersign policy test --coverage policy_test.yaml", test, TAKES_JSON, policy_test, NULL},
    {"policy explain", "METHOD URL FILE...\nFILE... --curl 'curl ...'\nFILE... --record FILE",
     "what comes of one request, by which rule, and what would change it",
     "countersign policy explain POST https://api.github.com/repos/acme/app/issues policy.yaml", explain, TAKES_JSON,
     policy_explain, NULL},
    {"policy diff", "OLD NEW\nOLD... -- NEW...",
     "what one policy lets through that another does not, each with a request",
     "countersign policy diff policy.yaml new.yaml", diff, TAKES_JSON, policy_diff, NULL},
    {"policy replay", "FILE...", "recorded requests, judged by another policy",
     "countersign policy replay --since 24h new.yaml", replay, TAKES_BOTH, policy_replay, NULL},
    {"policy learn", "", "rules proposed from recorded requests",
     "countersign policy learn --since 24h --policy policy.yaml --patch", learn, TAKES_BOTH, policy_learn, NULL},
    {"policy schema", "[KIND]", "the JSON Schema of a policy, floors, pack or test, for editors",
     "countersign policy schema > policy.schema.json", NULL, TAKES_NOTHING, policy_schema, NULL},
    {"policy history", "", "the versions that were in force", "countersign policy history", NULL, TAKES_BOTH,
     policy_history, NULL},
    {"policy show", "DIGEST [FILE]", "one of them, or a file of it", "countersign policy show 3f2a policy.yaml",
     show_version, TAKES_BOTH, policy_show, NULL},
    {"policy rollback", "DIGEST\n--end", "put one of them in force again, or end that",
     "countersign policy rollback 3f2a", rollback, TAKES_BOTH, policy_rollback, NULL},
    {"secret set", "NAME",
     "seal a credential's value: asked for on a terminal and not shown, else read from standard input",
     "countersign secret set github", secret_set_options, TAKES_STATE, secret_set, NULL},
    {"secret rotate", "NAME", "the same; the older value is still looked for in answers",
     "countersign secret rotate github --keep 1h", secret_set_options, TAKES_STATE, secret_set, NULL},
    {"secret list", "", "the names there are", "countersign secret list", secret_list_options, TAKES_BOTH,
     secret_list, NULL},
    {"secret check", "NAME", "ask a credential's source for its value now: does it work, or which step failed",
     "countersign secret check github", NULL, TAKES_BOTH, secret_check, NULL},
    {"secret jwks", "NAME...", "the public halves of keys, for those who trust what they sign",
     "countersign secret jwks signer", secret_list_options, TAKES_STATE, secret_jwks, NULL},
    {"secret rm", "NAME", "forget a value", "countersign secret rm github", secret_rm_options, TAKES_STATE, secret_rm,
     NULL},
    {"lease issue", "CREDENTIAL", "a text to use in place of a credential, of worth to one sandbox, here, for a time",
     "countersign lease issue github --sandbox ci-7 --for 30m --effect read", lease_issue_options, TAKES_BOTH,
     lease_issue, NULL},
    {"checkpoint list", "", "which checkpoints of sandboxes' files there are", "countersign checkpoint list",
     tenant_options, TAKES_BOTH, checkpoint_list, NULL},
    {"checkpoint rm", "CHECKPOINT", "forget one; what others need of it stays", "countersign checkpoint rm built",
     tenant_options, TAKES_BOTH, checkpoint_rm, NULL},
    {"lease list", "", "who has which, and what became of them", "countersign lease list --sandbox ci-7",
     lease_list_options, TAKES_BOTH, lease_list, NULL},
    {"lease show", "ID", "one of them", "countersign lease show 8z3k --json", NULL, TAKES_BOTH, lease_show, NULL},
    {"lease narrow", "ID",
     "make it good for less, or make another one from it that is; - makes one of the lease on standard input",
     "countersign lease narrow 8z3k --path '/repos/acme/app/**'", lease_narrow_options, TAKES_BOTH, lease_narrow,
     NULL},
    {"lease revoke", "ID", "end it and what came from it, at once", "countersign lease revoke 8z3k", why, TAKES_BOTH,
     lease_revoke, NULL},
    {"lease env", "CREDENTIAL", "issue one, as the variables that its provider's tools read",
     "countersign lease env github --sandbox ci-7 --format docker >> ci.env", lease_env_options, TAKES_BOTH,
     lease_env, NULL},
    {"approvals list", "", "what waits for a decision, the newest first", "countersign approvals list --state denied",
     list, TAKES_BOTH, approvals_list, NULL},
    {"approvals show", "ID", "the whole request as it would leave, who asks, and the rule that held it",
     "countersign approvals show 8z3k", show, TAKES_BOTH, approvals_show, NULL},
    {"approvals approve", "ID", "let the request leave, once, exactly as it is", "countersign approvals approve 8z3k",
     approve, TAKES_BOTH, approvals_approve, NULL},
    {"approvals deny", "ID", "refuse the request", "countersign approvals deny 8z3k --reason 'not on a Friday'",
     decide, TAKES_BOTH, approvals_deny, NULL},
    {"approvals metrics", "", "how many were decided and after how long, as Prometheus reads it",
     "countersign approvals metrics >approvals.prom", NULL, TAKES_STATE, approvals_metrics, NULL},
    {"approvals claim", "ID", "say that you are looking at it: the others see it for 10 minutes",
     "countersign approvals claim 8z3k", claim, TAKES_BOTH, approvals_claim, NULL},
    {"approvals unclaim", "ID", "say that you are not looking at it any more", "countersign approvals unclaim 8z3k",
     NULL, TAKES_BOTH, approvals_unclaim, NULL},
    {"approvals watch", "", "what waits, then a line for each change", "countersign approvals watch", list,
     TAKES_BOTH, approvals_watch, NULL},
    {"grants list", "", "what is approved ahead: so many more of one shape, until when", "countersign grants list",
     grants_all, TAKES_BOTH, grants_list, NULL},
    {"grants revoke", "ID", "take one back: from now on its requests wait for a person again",
     "countersign grants revoke 8z3k", grants_why, TAKES_BOTH, grants_revoke, NULL},
    {"sandbox create", "[NAME]", "an identity for a container, machine or job, and the variables for it",
     "countersign sandbox create ci-7 --format docker > ci.env", create, TAKES_BOTH, sandbox_create, NULL},
    {"sandbox list", "", "every sandbox, and how many of its requests wait", "countersign sandbox list", NULL,
     TAKES_BOTH, sandbox_list, NULL},
    {"sandbox start", "[NAME]", "a sandbox of its own, without a network but by a lane, until it ends",
     "countersign sandbox start box --memory 2G --timeout 30m", start_options, TAKES_BOTH, sandbox_start, NULL},
    {"sandbox exec", "NAME CMD [ARG...]", "run a command in a started sandbox",
     "countersign sandbox exec box -- python3 -c 'print(1)'", exec_options, TAKES_BOTH, sandbox_exec, NULL},
    {"sandbox shell", "NAME", "a shell in a started sandbox, at this terminal", "countersign sandbox shell box",
     shell_options, TAKES_STATE, sandbox_shell, NULL},
    {"sandbox ps", "NAME", "the commands of a started sandbox: those that run, and detached ones that have ended",
     "countersign sandbox ps box", NULL, TAKES_BOTH, sandbox_ps, NULL},
    {"sandbox attach", "NAME ID", "follow a detached command: what it said last, what it says, and how it ends",
     "countersign sandbox attach box 1.3", NULL, TAKES_BOTH, sandbox_attach, NULL},
    {"sandbox kill", "NAME ID [SIGNAL]", "send a command a signal, with what it started in its group; TERM",
     "countersign sandbox kill box 1.3 KILL", NULL, TAKES_BOTH, sandbox_kill, NULL},
    {"sandbox cp", "SRC DST", "copy a file or folder into or out of the workspace of a started sandbox, NAME:PATH",
     "countersign sandbox cp ./app box:app", cp_options, TAKES_BOTH, sandbox_cp, NULL},
    {"sandbox ls", "NAME:PATH", "what is in a folder of the workspace of a started sandbox",
     "countersign sandbox ls box:app", NULL, TAKES_BOTH, sandbox_ls, NULL},
    {"sandbox started", "", "those that run, how long they may, and by what they are held",
     "countersign sandbox started", NULL, TAKES_BOTH, sandbox_started, NULL},
    {"sandbox top", "[NAME]", "what started sandboxes use: memory, CPU, processes and disk",
     "countersign sandbox top", NULL, TAKES_BOTH, sandbox_top, NULL},
    {"sandbox logs", "NAME [ID]", "the last that its detached commands said, or one of them",
     "countersign sandbox logs box 1.3 -f", logs_options, TAKES_BOTH, sandbox_logs, NULL},
    {"sandbox timeout", "NAME TIME", "how long from now a started sandbox may run or be paused",
     "countersign sandbox timeout box 10m", NULL, TAKES_BOTH, sandbox_timeout, NULL},
    {"sandbox pause", "NAME", "stop all that runs in a started sandbox where it is, and end its leases",
     "countersign sandbox pause box", NULL, TAKES_BOTH, sandbox_pause, NULL},
    {"sandbox resume", "NAME", "let a paused sandbox go on, as its next generation", "countersign sandbox resume box",
     NULL, TAKES_BOTH, sandbox_resume, NULL},
    {"sandbox snapshot", "NAME [CHECKPOINT]", "keep its files as a checkpoint; it goes on as its next generation",
     "countersign sandbox snapshot box built", NULL, TAKES_BOTH, sandbox_snapshot, NULL},
    {"sandbox restore", "CHECKPOINT [NAME]", "start a sandbox with the files of a checkpoint",
     "countersign sandbox restore built box-2", restore_options, TAKES_BOTH, sandbox_restore, NULL},
    {"sandbox fork", "NAME [NEW]", "start another one with the files that a started sandbox has now",
     "countersign sandbox fork box box-2", fork_options, TAKES_BOTH, sandbox_fork, NULL},
    {"sandbox undo", "NAME [STEP]", "make its files what they were before a step (exec --undo), the last one or this",
     "countersign sandbox undo box 3", NULL, TAKES_BOTH, sandbox_undo, NULL},
    {"sandbox steps", "NAME", "the steps of a started sandbox that can be undone, the last first",
     "countersign sandbox steps box", NULL, TAKES_BOTH, sandbox_steps, NULL},
    {"sandbox destroy", "NAME", "end a started sandbox now, with all that is in it",
     "countersign sandbox destroy box", NULL, TAKES_BOTH, sandbox_destroy, NULL},
    {"image import", "DIR NAME", "unpack an OCI image layout, for started sandboxes to have as their files",
     "skopeo copy docker://debian:12 oci:./debian && countersign image import ./debian debian-12", import_options,
     TAKES_BOTH, image_import, NULL},
    {"mount list", "", "directories that are kept for sandboxes, and how much of the disk each has",
     "countersign mount list", NULL, TAKES_STATE, mount_list, NULL},
    {"mount rm", "NAME@TENANT[@SESSION]", "remove one of these that no sandbox has, with all that is in it",
     "countersign mount rm cache@default", NULL, TAKES_STATE, mount_rm, NULL},
    {"image list", "", "imported images, with their digests", "countersign image list", NULL, TAKES_BOTH, image_list,
     NULL},
    {"image rm", "NAME", "remove an image that no sandbox uses", "countersign image rm debian-12", NULL, TAKES_BOTH,
     image_rm, NULL},
    {"sandbox rm", "NAME", "take its identity away", "countersign sandbox rm ci-7 --end-session", rm, TAKES_BOTH,
     sandbox_rm, NULL},
    {"chat", "[MESSAGE]", "talk with a model that works in a sandbox (`broker` of the configuration)",
     "countersign chat 'write the tests for app.py and run them'", chat_options, TAKES_BOTH, chat_main, NULL},
    {"usage", "", "what the broker's models were asked, and what that cost",
     "countersign usage --by task,model --since 7d", usage_options, TAKES_BOTH, usage_main, NULL},
    {"replay export", "ID...", "recorded turns, or all of conversations, as a set for replay run",
     "countersign replay export 0n8q4c2v6x1z9b7m5k3j1h2g4f > nightly.set", replay_export_options, TAKES_STATE,
     replay_export, NULL},
    {"replay run", "SET", "go through recorded turns once more, as strictly as they were, and score them",
     "countersign replay run nightly.set --fault worker --seeds 20 --format html > report.html", replay_run_options,
     TAKES_BOTH, replay_run, NULL},
    {"key create", "NAME",
     "a key for a platform that starts sandboxes by E2B's API (`e2b` of the configuration), or for the broker",
     "countersign key create builder --tenant acme", key_create_options, TAKES_BOTH, key_create, NULL},
    {"key list", "", "the keys there are, and whose", "countersign key list", NULL, TAKES_BOTH, key_list, NULL},
    {"key rm", "NAME", "take a key back, with all that it opens", "countersign key rm builder", NULL, TAKES_STATE,
     key_rm, NULL},
    {"notify list", "", "who is told outside the page, and what came of it", "countersign notify list", NULL,
     TAKES_BOTH, notify_list, NULL},
    {"notify test", "NAME", "tell one of them something now, and say what came of it", "countersign notify test ops",
     NULL, TAKES_STATE, notify_test, NULL},
    {"operator add", "NAME", "a person who decides, and a link that lets them in once",
     "countersign operator add alice --group finance", operator_options, TAKES_BOTH, operator_add, NULL},
    {"operator list", "", "the people who decide, and their groups", "countersign operator list", NULL, TAKES_BOTH,
     operator_list, NULL},
    {"operator group", "NAME [GROUP...]", "the groups that a person is in from now on",
     "countersign operator group alice finance leads", NULL, TAKES_STATE, operator_group, NULL},
    {"operator link", "NAME", "another link that lets a person in once", "countersign operator link alice", NULL,
     TAKES_BOTH, operator_link, NULL},
    {"operator deputy", "NAME", "somebody who decides in your place for a while; needs --for",
     "countersign operator deputy bob --for 5d", deputy_options, TAKES_STATE, operator_deputy, NULL},
    {"operator deputies", "", "who decides in whose place, and until when", "countersign operator deputies", NULL,
     TAKES_BOTH, operator_deputies, NULL},
    {"operator no-deputy", "NAME", "nobody decides in the place of this person any more",
     "countersign operator no-deputy alice", NULL, TAKES_STATE, operator_no_deputy, NULL},
    {"operator rm", "NAME", "a person decides no more, and is signed out", "countersign operator rm alice", NULL,
     TAKES_STATE, operator_rm, NULL},
    {"env", "[NAME]", "the variables that lead a sandbox's tools through the gateway, with a fresh token",
     "countersign env ci-7 --format github", env, TAKES_BOTH, env_main, NULL},
    {"audit tail", "", "what happened last, a line a record", "countersign audit tail -f", tail, TAKES_BOTH,
     audit_tail, NULL},
    {"audit export", "", "every record whole, a JSON object a line",
     "countersign audit export --since 24h > day.jsonl", export, TAKES_BOTH, audit_export, NULL},
    {"audit verify", "", "compute the hash chain over every record again",
     "countersign audit verify --head \"$(cat head.txt)\"", verify, TAKES_BOTH, audit_verify, NULL},
    {"runs list", "", "what ran in started sandboxes, the newest first", "countersign runs list --sandbox box",
     runs_list_options, TAKES_BOTH, runs_list, NULL},
    {"runs show", "ID", "one run: what it was, how it ended, and what its sandbox sent meanwhile",
     "countersign runs show 8z3k", NULL, TAKES_BOTH, runs_show, NULL},
    {"runs repeat", "ID", "make a task again from its record, and say whether its output is the same",
     "countersign runs repeat 8z3k", NULL, TAKES_BOTH, runs_repeat, NULL},
    {"runs output", "ID", "what a task left that did not fit its schema, as it is, for a file or a pipe",
     "countersign runs output 8z3k > left.bin", NULL, TAKES_STATE, runs_output, NULL},
    {"runs export", "", "every run that is kept, a JSON object a line", "countersign runs export > runs.jsonl",
     runs_export_options, TAKES_BOTH, runs_export, NULL},
    {"runs verify", "", "is every run what the audit says, whose chain is computed again",
     "countersign runs verify --head \"$(cat head.txt)\"", verify, TAKES_BOTH, runs_verify, NULL},
    {"ca show", "", "the certificate that sandboxes trust, with its fingerprint", "countersign ca show", NULL,
     TAKES_STATE, ca_show, NULL},
    {"ca bundle", "", "the same together with the system's own", "countersign ca bundle > bundle.crt", NULL,
     TAKES_STATE, ca_bundle, NULL},
    {"ca truststore", "", "the same as a PKCS#12 file for Java; its password is changeit",
     "countersign ca truststore > truststore.p12", NULL, TAKES_STATE, ca_truststore, NULL},
    {"ca export", "DIR", "all three as files in a directory that may be mounted into a sandbox",
     "countersign ca export /srv/public", NULL, TAKES_STATE, ca_export, NULL},
    {"ca nss", "DIR", "add it to the database of Chromium or Firefox", "countersign ca nss ~/.pki/nssdb", NULL,
     TAKES_STATE, ca_nss, NULL},
    {"schema check", "SCHEMA.json [INSTANCE.json]",
     "is a JSON Schema understood whole, and does an instance (-: standard input) fit it",
     "countersign schema check tool.json call.json", schema_options, TAKES_JSON, schema_check, NULL},
    {"task run", "KIND [FILE]",
     "run a kind of task in a sandbox of its own: input and result are JSON that fits its schemas",
     "countersign task run word-count input.json", task_options, TAKES_BOTH, task_run, NULL},
    {"task running", "", "the tasks that run, by their ids", "countersign task running", NULL, TAKES_BOTH,
     task_running, NULL},
    {"task cancel", "ID", "end a task, whatever it does, and its sandbox with it",
     "countersign task cancel task-8z3k", NULL, TAKES_STATE, task_stop, NULL},
    {"task list", "", "the kinds of tasks that the configuration names", "countersign task list", NULL, TAKES_BOTH,
     task_list, NULL},
    {"freeze", "", "refuse every write, at once", "countersign freeze --reason 'incident 12'", why, TAKES_BOTH,
     freeze_main, NULL},
    {"thaw", "", "let writes be decided again", "countersign thaw", why, TAKES_BOTH, thaw_main, NULL},
    {"reload", "", "read the configuration and the policy again", "countersign reload", NULL, TAKES_BOTH, reload_main,
     NULL},
    {"status", "", "what runs, by which policy, and what waits", "countersign status", NULL, TAKES_BOTH, status_main,
     NULL},
    {"log", "", "what is written to the log, or whom it follows; changed at once, in every process",
     "countersign log --level debug --for 10m\ncountersign log --trace ci-7", log_options, TAKES_BOTH, log_main,
     NULL},
    {"trace", "EXCHANGE|TICKET", "one exchange, step by step through all processes, with times",
     "countersign trace 1099511627777\ncountersign trace 8z3k", NULL, TAKES_BOTH, trace_main, NULL},
    {"replay-exchange", "EXCHANGE",
     "a recorded exchange once more, by the judge alone, under a debugger if one likes",
     "countersign log --trace ci-7 --record\ncountersign replay-exchange 1099511627777 --debugger gdb",
     replay_options, TAKES_STATE, replay_exchange_main, NULL},
    {"signin", "", "print a link to the approval page that opens once", "countersign signin", NULL, TAKES_BOTH,
     signin_main, NULL},
    {"doctor", "", "what is wrong, here or in a sandbox, and what to do", "countersign doctor", doctor, TAKES_BOTH,
     doctor_main, NULL},
    {"completion", "SHELL", "a completion script for bash, zsh or fish", "source <(countersign completion bash)",
     NULL, TAKES_NOTHING, completion_main, NULL},
    {"version", "", "print the version", NULL, NULL, TAKES_NOTHING, version_main, NULL},
    {"help", "[VERB...]", "how a verb is used", "countersign help approvals deny", NULL, TAKES_JSON, NULL, help_main},
    {.name = NULL}};
