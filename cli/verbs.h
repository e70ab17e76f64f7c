/* The verbs of this room: argv[0] is the verb's name; each returns an enum cli_exit. */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

int approvals_main(int argc, char **argv); /* verb_approvals.c */
int sandbox_main(int argc, char **argv);   /* verb_sandbox.c */
int env_main(int argc, char **argv);
int audit_main(int argc, char **argv);  /* verb_audit.c */
int ca_main(int argc, char **argv);     /* verb_ca.c */
int up_main(int argc, char **argv);     /* verb_misc.c */
int freeze_main(int argc, char **argv); /* verb_freeze.c */
int thaw_main(int argc, char **argv);
int policy_main(int argc, char **argv);
int reload_main(int argc, char **argv);
int status_main(int argc, char **argv);
int signin_main(int argc, char **argv);
int doctor_main(int argc, char **argv); /* verb_doctor.c */

#endif
