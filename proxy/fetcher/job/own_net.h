/* A network of its own for a program that may reach some hosts: a user and a network namespace in which there is
 * nothing but a loopback device, and on it the listener of a relay (relay.h). The relay is a process of its own
 * outside, which has none of the question's secrets and ends with the job. */
#ifndef PROXY_FETCHER_JOB_OWN_NET_H
#define PROXY_FETCHER_JOB_OWN_NET_H

#include "proxy/fetcher/job/job.h"

#define OWN_NET_PROXY "127.0.0.1:3128" /* where the relay listens in there */

/* Start the relay to the hosts of j->ask. *to: for own_net_enter; the caller's to close. Before anything else has
 * taken a copy of the question. */
int own_net_relay(struct job *j, int *to, struct err *e) MUSTCHECK;
/* The calling process, which has no thread yet, goes there for good, without a capability left, and the relay is
 * given its listener. Closes to. -1: errno; it must not go on. */
int own_net_enter(int to) MUSTCHECK;

#endif
