#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static const char *role_name = "countersign";
static enum log_level floor_level = LOG_INFO;

void log_init(const char *role, enum log_level level)
{
    role_name = role;
    floor_level = level;
}

static size_t escape(char *out, size_t cap, const char *in)
{
    size_t n = 0;
    for (; *in && n + 7 < cap; in++) {
        unsigned char c = (unsigned char)*in;
        if (c == '"' || c == '\\')
            n += (size_t)snprintf(out + n, cap - n, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            n += (size_t)snprintf(out + n, cap - n, "\\u%04x", c);
        else
            out[n++] = (char)c;
    }
    out[n] = '\0';
    return n;
}

static void vlog(enum log_level level, const char *fmt, va_list ap)
{
    static const char *const names[] = {"", "debug", "info", "warn", "error"};
    char text[2048], safe[4096], line[4400], when[32];
    struct timespec ts;
    struct tm tm;
    int saved = errno;
    vsnprintf(text, sizeof(text), fmt, ap);
    escape(safe, sizeof(safe), text);
    clock_gettime(CLOCK_REALTIME, &ts);
    gmtime_r(&ts.tv_sec, &tm);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
    int n = snprintf(line, sizeof(line),
                     "{\"time\":\"%s.%03ldZ\",\"role\":\"%s\",\"pid\":%d,\"level\":\"%s\",\"msg\":\"%s\"}\n", when,
                     ts.tv_nsec / 1000000, role_name, (int)getpid(), names[level], safe);
    if (n > 0) {
        ssize_t unused = write(STDERR_FILENO, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
        (void)unused;
    }
    errno = saved;
}

void log_at(enum log_level level, const char *fmt, ...)
{
    va_list ap;
    if (level < floor_level)
        return;
    va_start(ap, fmt);
    vlog(level, fmt, ap);
    va_end(ap);
}

void log_die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vlog(LOG_ERROR, fmt, ap);
    va_end(ap);
    exit(1);
}
