/* Lines on stderr: words a person reads where that is a terminal, JSON elsewhere. Every byte that came from outside
 * is escaped, so a hostile byte cannot forge a line. Secrets have no way in here. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include "common/span.h"

enum log_level { LOG_NONE = 0, LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };
enum log_form { LOG_AUTO = 0, LOG_JSON, LOG_TEXT }; /* LOG_AUTO: text on a terminal */

/* What is written. Lines of an exchange that is followed are written whatever their level. */
struct log_setting {
    enum log_level level;
    uint64_t from, upto; /* exchanges with these numbers are followed, `upto` is none of them; both 0: none is */
};

/* Name of this process in each line; level: lines below it are dropped. */
void log_init(const char *role, enum log_level level);
void log_form(enum log_form form);
/* From now on. A level that is none leaves things as they are. */
void log_set(const struct log_setting *s);
/* The run of the gateway in which exchanges are numbered; at most 40 bytes of it are kept. */
void log_boot(struct span boot);
bool log_wants(enum log_level level, uint64_t exchange);
/* One line; at most 2 KiB of text, the rest is cut. Rate limits are the caller's. */
void log_at(enum log_level level, const char *fmt, ...) PRINTF(2, 3);
/* The same, of an exchange: its id, as in the audit, is the line's field `exchange`. */
void log_exchange(enum log_level level, uint64_t exchange, const char *fmt, ...) PRINTF(3, 4);
/* Log at error level and exit 1: for a start that cannot go on. */
void log_die(const char *fmt, ...) PRINTF(1, 2) __attribute__((noreturn));

/* "debug", "info", "warn", "error"; LOG_NONE: of no level. */
const char *log_level_name(enum log_level level);
enum log_level log_level_of(struct span name);

#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)

#endif
