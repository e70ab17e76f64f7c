/* One server, asked a few times over connections that are made before anything it says is read: from then on this
 * process can open neither socket nor file. */
#ifndef PROXY_FETCHER_JOB_HTTP_H
#define PROXY_FETCHER_JOB_HTTP_H

#include "proxy/fetcher/job/job.h"

enum {
    HTTP_ANSWER_MAX = 256 * 1024,
    HTTP_ASKS_MAX = 5, /* of one job */
    HTTP_ASK_FIELDS = 8,
    HTTP_ROOTS_MAX = 8 * 1024 * 1024,
    HTTP_URL_MAX = 4096
};

struct http;

/* Connect n times to an address that the question allows, and read whom to trust: held to what the
 * carrier holds an upstream to. NULL with words; of a gate that cannot be reached the job ends, which is to be asked
 * again. Before confinement. */
struct http *http_open(const struct job *j, unsigned n, struct err *e) MUSTCHECK;

struct http_ask {
    const char *method; /* "GET" or "POST" */
    struct span path;   /* below the url: of the settings, beginning with "/"; empty: the url itself */
    struct span fields[HTTP_ASK_FIELDS]; /* "Name: value" */
    struct span body;
    uint32_t ms; /* that it may take; 0: what the policy says */
};
/* 0 with status and body (which stays until the next one), or -1 with words that hold nothing of either. */
int http_ask(struct http *h, const struct http_ask *ask, unsigned *status, struct span *body,
             struct err *e) MUSTCHECK;

/* One mail by SMTP, from and to the settings of these names, over TLS as "tls" says. -1: *status is the relay's code,
 * if it said one. */
int http_mail(struct http *h, struct span mail, unsigned *status, struct err *e) MUSTCHECK;

/* A POST with the fields that the keeper made: settings "field.NAME". */
int http_post(struct http *h, struct span text, unsigned *status, struct span *body, struct err *e) MUSTCHECK;
/* The same with the body that the keeper made too: the setting "body" (proxy/keeper/sources/signed.h). */
int http_ask_signed(struct http *h, unsigned *status, struct span *body, struct err *e) MUSTCHECK;

/* Percent-encode what is not unreserved, behind NAME= and, from the second on, &. */
void http_form_add(struct dynbuf *form, const char *name, struct span value);

#endif
