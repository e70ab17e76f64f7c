/* What is asked of a server for each kind of source, and what is made of its answer. Each answers (job.h) and does
 * not return. What a server answers is never repeated, but for a code that is made of letters. */
#ifndef PROXY_FETCHER_JOB_SOURCES_H
#define PROXY_FETCHER_JOB_SOURCES_H

#include "proxy/fetcher/job/http.h"

void source_oauth2(const struct job *j, struct http *h) __attribute__((noreturn));
void source_vault(const struct job *j, struct http *h) __attribute__((noreturn));
void source_github_app(const struct job *j, struct http *h) __attribute__((noreturn));
void source_aws(const struct job *j, struct http *h) __attribute__((noreturn));
void source_tencent(const struct job *j, struct http *h) __attribute__((noreturn));
/* Of FETCH_OIDC: the value is the claim that says who somebody is. */
void source_oidc(const struct job *j, struct http *h) __attribute__((noreturn));

struct arena;
/* Pure, for tests: the body of the question, and what is in an answer of status 200; what is to be kept
 * (out->keep) also when the rest is not as it must be. */
int oauth2_question(const struct wire_fetch *f, struct dynbuf *form, struct err *e) MUSTCHECK;
int oauth2_answer(struct span json, struct arena *a, struct wire_fetched *out, struct err *e) MUSTCHECK;
/* "Authorization: Basic ..." of the settings client_id and client_secret, both form-encoded before they are joined
 * (RFC 6749 section 2.3.1); empty without a secret, or where it goes in the body. The caller wipes it. */
int oauth2_basic(const struct wire_fetch *f, struct dynbuf *field) MUSTCHECK;
/* The body of the question of somebody who signs in; and who an answer of status 200 says that it is: out->value is
 * the claim that f names, of an ID token that is for f's client, from its issuer, of now, and has its nonce. */
int oidc_question(const struct wire_fetch *f, struct dynbuf *form, struct err *e) MUSTCHECK;
int oidc_answer(struct span json, const struct wire_fetch *f, uint64_t now_s, struct arena *a,
                struct wire_fetched *out, struct err *e) MUSTCHECK;
int vault_answer(struct span json, struct span where, struct arena *a, struct wire_fetched *out,
                 struct err *e) MUSTCHECK;
/* What a renewal of a token or a lease says of its life; -1: nothing that is one. 0: without end. */
int vault_renewed(struct span json, bool of_token, struct arena *a, uint64_t *life_ms) MUSTCHECK;
int github_app_question(const struct wire_fetch *f, struct dynbuf *body, struct err *e) MUSTCHECK;
int github_app_answer(struct span json, uint64_t now_ms, struct arena *a, struct wire_fetched *out,
                      struct err *e) MUSTCHECK;
/* out->value borrows from value. */
int aws_answer(struct span xml, uint64_t now_ms, struct arena *a, struct dynbuf *value, struct wire_fetched *out,
               struct err *e) MUSTCHECK;
int tencent_answer(struct span json, uint64_t now_ms, struct arena *a, struct dynbuf *value, struct wire_fetched *out,
                   struct err *e) MUSTCHECK;
/* A code such as AccessDenied, or empty. */
struct span aws_error_code(struct span xml, struct arena *a);
/* ID:KEY:TOKEN, as `inject: { sigv4 }` wants it. -1: one is empty, or cannot be told from the next. */
int source_keys(struct span id, struct span key, struct span token, struct dynbuf *value) MUSTCHECK;
/* A code such as invalid_client in an error's JSON, or empty. */
struct span source_error_code(struct span json, struct arena *a);

#endif
