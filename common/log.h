/* JSON lines to stderr. Every byte that came from outside is escaped, so a
 * hostile byte cannot forge a line. Secrets have no way in here. */
#ifndef COMMON_LOG_H
#define COMMON_LOG_H

#include "common/span.h"

enum log_level { LOG_DEBUG = 1, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Name of this process in each line; level: lines below it are dropped. */
void log_init(const char *role, enum log_level level);
/* One line; at most 2 KiB of text, the rest is cut. Rate limits are the caller's. */
void log_at(enum log_level level, const char *fmt, ...) PRINTF(2, 3);
/* Log at error level and exit 1: for a start that cannot go on. */
void log_die(const char *fmt, ...) PRINTF(1, 2) __attribute__((noreturn));

#define log_debug(...) log_at(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_at(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_WARN, __VA_ARGS__)
#define log_error(...) log_at(LOG_ERROR, __VA_ARGS__)

#endif
