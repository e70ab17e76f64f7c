/* The client of the control socket (STATE_DIR/control.sock): HTTP/1.1 (RFC 9112)
 * and JSON over a Unix socket, blocking. Every verb that asks the gateway uses
 * it. Answers are capped at API_ANSWER_MAX, one event at API_EVENT_MAX bytes. */
#ifndef COMMON_CONTROL_API_H
#define COMMON_CONTROL_API_H

#include <limits.h>

#include "common/dynbuf.h"
#include "common/err.h"

enum { API_ANSWER_MAX = 8 * 1024 * 1024, API_EVENT_MAX = 256 * 1024 };

/* Where the gateway keeps its state: `flag` (--state-dir, or NULL), else
 * $COUNTERSIGN_STATE, else for root /var/lib/countersign, else
 * $XDG_STATE_HOME/countersign, else ~/.local/state/countersign. Absolute, not
 * resolved, need not exist. -1: no home to be found, or too long. */
int api_state_dir(const char *flag, char out[PATH_MAX], struct err *e) MUSTCHECK;
/* STATE_DIR/control.sock of the same. */
int api_socket(const char *flag, char out[PATH_MAX], struct err *e) MUSTCHECK;

/* Does a gateway answer there? 1 yes; 0 no (no such socket, or nobody listens);
 * -1 cannot tell (not permitted, ...), with the reason. */
int api_running(const char *sock, struct err *e) MUSTCHECK;

/* One request on its own connection. `body` is sent as application/json when it
 * is not empty. 0: *status is the answer's, and its whole body is in `answer`
 * (born here, freed by the caller with dynbuf_free also after a failure). -1: no
 * usable answer. A status of 400 and above is still 0: see api_explain. */
int api_call(const char *sock, const char *method, const char *path, struct span body, unsigned *status,
             struct dynbuf *answer, struct err *e) MUSTCHECK;
/* The same of what has a time limit at the gateway: its answer is waited for however long it takes. */
int api_call_patient(const char *sock, const char *method, const char *path, struct span body, unsigned *status,
                     struct dynbuf *answer, struct err *e) MUSTCHECK;
/* The same; each second that nothing comes, waits is called. */
typedef void api_wait_fn(void *ctx, unsigned seconds);
int api_call_watched(const char *sock, const char *method, const char *path, struct span body, api_wait_fn *waits,
                     void *ctx, unsigned *status, struct dynbuf *answer, struct err *e) MUSTCHECK;
/* A sandbox was idle until an answer since the last of these calls, and its files were restored: as which generation.
 * 0: none was. */
uint64_t api_restored(void);
/* With another image than it had: since the last of these calls. */
bool api_restored_with_another(void);
/* Put into e what a refusing answer says (problem+json: detail, else title), and return -1. */
int api_explain(unsigned status, struct span answer, struct err *e);
/* All of it, to a connected socket that blocks. -1 with errno. */
int api_send(int fd, struct span s) MUSTCHECK;

/* A request whose body is said piece by piece. api_upload_end gives the answer as api_call does, api_upload_put -1
 * when the gateway takes no more: then its answer says why, and comes by api_upload_end all the same. api_upload_drop
 * ends it before its end, which the gateway sees; it takes NULL. */
struct api_upload;
struct api_upload *api_upload_begin(const char *sock, const char *method, const char *path, struct err *e) MUSTCHECK;
int api_upload_put(struct api_upload *u, struct span piece) MUSTCHECK;
int api_upload_end(struct api_upload **u, unsigned *status, struct dynbuf *answer, struct err *e) MUSTCHECK;
void api_upload_drop(struct api_upload **u);
/* GET what may be of any length: of an answer 200 fn gets each piece, any other goes to `answer`. -1: none, or it was
 * cut short, or what fn returned that was not 0, with fn's words in e. */
typedef int api_piece_fn(void *ctx, struct span piece, struct err *e);
int api_download(const char *sock, const char *path, api_piece_fn *fn, void *ctx, unsigned *status,
                 struct dynbuf *answer, struct err *e) MUSTCHECK;

struct api_event {
    struct span id, name, data; /* name is "message" when the stream names none */
};
/* Return 0 to go on, anything else to end the stream with that value. */
typedef int api_event_fn(void *ctx, const struct api_event *ev);
/* GET an event stream (text/event-stream) and call fn for each event, until it
 * ends (0), fn ends it (its value), or it breaks (-1). last_id resumes after that
 * event, or is NULL. A status other than 200 is -1 with the answer's words. */
int api_stream(const char *sock, const char *path, const char *last_id, api_event_fn *fn, void *ctx,
               struct err *e) MUSTCHECK;
/* The same of what POSTing this body (as application/json) is answered with. */
int api_stream_of(const char *sock, const char *path, struct span body, api_event_fn *fn, void *ctx,
                  struct err *e) MUSTCHECK;

#endif
