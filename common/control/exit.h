/* What `countersign` exits with, for every verb. `run` is the one exception:
 * once the command was started, its own status is passed on. */
#ifndef COMMON_CONTROL_EXIT_H
#define COMMON_CONTROL_EXIT_H

enum cli_exit {
    CLI_OK = 0,      /* done; of a question about a request: allowed */
    CLI_RUNTIME = 1, /* it did not work; the words on stderr say why */
    CLI_USAGE = 2,   /* the command line makes no sense */
    CLI_INVALID = 3, /* the configuration, policy or schema is not valid */
    CLI_STORE = 4,   /* the gateway or its store cannot be reached */
    CLI_HOLD = 10,   /* of a question about a request: held */
    CLI_DENY = 11,   /* of a question about a request: denied */
};

#endif
