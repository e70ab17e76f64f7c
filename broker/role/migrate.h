/* countersign-broker migrate: a store is moved to another database, by hand, while no broker runs. */
#ifndef BROKER_ROLE_MIGRATE_H
#define BROKER_ROLE_MIGRATE_H

/* argv without the program and the verb. What the process ends with: 0, 1 it was refused or failed, 2 usage. */
int migrate(int argc, char *const argv[]);

#endif
