/* What the verbs that talk to a running gateway share. */
#ifndef CLI_VERB_H
#define CLI_VERB_H

#include "common/control/api.h"
#include "cli/verbs.h"
#include "common/id.h"
#include "common/json/json.h"

struct gateway_call {
    char sock[PATH_MAX];
    bool json;       /* print what came, as it came */
    unsigned status; /* of the last call; 0: no answer */
    struct dynbuf answer;
    struct arena arena;
    const struct json *tree; /* of the answer; NULL when it is empty or too large for a tree */
};

/* Must be ended with verb_end. CLI_OK, or what to exit with after words on stderr. */
int verb_begin(struct gateway_call *g, const struct cli_call *c) MUSTCHECK;
void verb_end(struct gateway_call *g);
/* If an idle sandbox was restored for it: say so, once. */
void verb_say_restored(void);
/* One call; the earlier answer and its tree are gone. CLI_OK when the status is `want`; else words on stderr. */
int verb_ask(struct gateway_call *g, const char *method, const char *path, struct span body, unsigned want) MUSTCHECK;
/* The same of what may take long and has a time limit at the gateway; on a terminal it is said meanwhile what is
 * done. */
int verb_ask_long(struct gateway_call *g, const char *method, const char *path, struct span body, unsigned want,
                  const char *doing) MUSTCHECK;
/* Print the answer as it came, with a newline. */
void verb_print_answer(const struct gateway_call *g);
/* The ticket that the given id, or the start of one, names, of the list that is asked for; its whole id goes to `id`.
 */
int verb_ticket(struct gateway_call *g, const char *given, char id[ID_TEXT + 1],
                const struct json **ticket) MUSTCHECK;
/* The keeper of the gateway that runs with this state directory asks a credential's source at once; what it says of
 * it, {"ok","source","why"}, is in answer, which is born here. -1: it was not asked, in words. */
int verb_check_source(const char *dir, struct span name, struct dynbuf *answer, struct err *e) MUSTCHECK;
/* "countersign: words" on stderr, also of foreign ones (as print_text has them); returns code. */
int verb_fail(int code, const char *fmt, ...) PRINTF(2, 3);

/* A program of this installation: beside this one (a build tree), below the same prefix, or where it was installed.
 * 0, or -1 with errno, and out where it was looked for last. */
int verb_program(const char *name, char out[PATH_MAX]) MUSTCHECK;

/* Foreign text to stdout: nothing in it reaches the terminal as a control character. */
void print_text(struct span s);
void print_lines(struct span s);
/* JSON and a line end: to a file or a pipe to the byte, to a terminal with escapes for what cannot be seen. */
void print_json_line(struct span s);
/* Who did something: their name, where "uid 1000" has one here. */
void print_person(struct span who);
/* A member of an object as text; numbers as their digits. */
struct span member_text(const struct json *j, const char *key);
uint64_t member_u64(const struct json *j, const char *key);
/* How long ago, as a person says it: "40 s", "12 min", "3 h", "5 days". */
const char *age_text(uint64_t now_ms, uint64_t then_ms, char out[32]);
/* Local time of a Unix time in ms, or "-" for 0. */
const char *time_text(uint64_t ms, char out[32]);

#endif
