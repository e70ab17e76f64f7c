/* What the verbs of a replay take. */
#include "cli/verbs.h"

const struct cli_option replay_export_options[] = {
    {.name = "tenant", .arg = "NAME", .help = "whose they are; default"}, {.name = NULL}};
const struct cli_option replay_run_options[] = {
    {.name = "mode",
     .arg = "MODE",
     .help =
         "strict; tools-recorded: the broker asks the models once more, and tools give what they gave then; or live: "
         "tools are run, too, in sandboxes of their own",
     .choices = "strict tools-recorded live"},
    {.name = "tenant", .arg = "NAME", .help = "with tools-recorded or live: whose they are; default"},
    {.name = "model", .arg = "NAME", .help = "live: a model of the broker's table that is asked", .many = true},
    {.name = "cost", .arg = "N", .help = "live: all of it costs so many millionths at most"},
    {.name = "parallel", .arg = "N", .help = "live: so many at once, 2; at most 16"},
    {.name = "wait", .arg = "TIME", .help = "live: a run takes so long at most, 10m; held requests wait no longer"},
    {.name = "fault",
     .arg = "KIND",
     .help = "once more with this put in, in each run that completes without",
     .choices = "model tool worker",
     .many = true},
    {.name = "seeds",
     .arg = "N",
     .help = "with --fault: at so many places, 5; at most 100; live: so often each, 1; at most 20"},
    {.name = "format", .arg = "FORMAT", .help = "how the report is written", .choices = "text json html"},
    {.name = NULL}};
