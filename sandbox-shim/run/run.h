/* `countersign run [options] -- CMD`: a command in a sandbox that holds no
 * secret and has no way out but the relay to its own listener. */
#ifndef SANDBOX_SHIM_RUN_RUN_H
#define SANDBOX_SHIM_RUN_RUN_H

/* argv[0] is "run". Returns the command's own status (128 + signal), or a
 * cli_exit when it was not started. */
int run_main(int argc, char **argv);

#endif
