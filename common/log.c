#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/time/clock.h"

enum { BOOT_TEXT = 40 };

static const char *const names[] = {"none", "debug", "info", "warn", "error"};
static const char *role_name = "countersign";
static struct log_setting in_force = {.level = LOG_INFO};
static bool text_form;
static char boot_text[BOOT_TEXT + 1];

void log_init(const char *role, enum log_level level)
{
    role_name = role;
    in_force = (struct log_setting){.level = level};
    log_form(LOG_AUTO);
}

void log_form(enum log_form form)
{
    int saved = errno;
    text_form = form == LOG_TEXT || (form == LOG_AUTO && isatty(STDERR_FILENO));
    errno = saved;
}

void log_set(const struct log_setting *s)
{
    if (s->level > LOG_NONE && s->level <= LOG_ERROR)
        in_force = *s;
}

void log_boot(struct span boot)
{
    snprintf(boot_text, sizeof(boot_text), "%.*s", SPAN_FMT(span_first(boot, BOOT_TEXT)));
}

const char *log_level_name(enum log_level level)
{
    return (unsigned)level <= LOG_ERROR ? names[level] : names[LOG_NONE];
}

enum log_level log_level_of(struct span name)
{
    for (unsigned i = LOG_DEBUG; i <= LOG_ERROR; i++)
        if (span_eq(name, span_str(names[i])))
            return (enum log_level)i;
    return LOG_NONE;
}

bool log_wants(enum log_level level, uint64_t exchange)
{
    return level >= in_force.level || (exchange >= in_force.from && exchange < in_force.upto);
}

static void escape(char *out, size_t cap, const char *in)
{
    size_t n = 0;
    for (; *in && n + 7 < cap; in++) {
        unsigned char c = (unsigned char)*in;
        if (!text_form && (c == '"' || c == '\\'))
            n += (size_t)snprintf(out + n, cap - n, "\\%c", c);
        else if (c < 0x20 || c >= 0x7f)
            n += (size_t)snprintf(out + n, cap - n, "\\u%04x", c);
        else
            out[n++] = (char)c;
    }
    out[n] = '\0';
}

static int put_json(char *line, size_t cap, const char *when, enum log_level level, uint64_t exchange,
                    const char *words)
{
    char of[BOOT_TEXT + 48] = "";
    if (exchange != 0)
        snprintf(of, sizeof(of), ",\"exchange\":\"%s%s%llu\"", boot_text, boot_text[0] ? "-" : "",
                 (unsigned long long)exchange);
    return snprintf(line, cap, "{\"time\":\"%s\",\"role\":\"%s\",\"pid\":%d,\"level\":\"%s\",\"msg\":\"%s\"%s}\n",
                    when, role_name, (int)getpid(), names[level], words, of);
}

/* The time of day in UTC, as everywhere; the exchange without its run, of which a terminal shows one. */
static int put_text(char *line, size_t cap, const char *when, enum log_level level, uint64_t exchange,
                    const char *words)
{
    char of[40] = "";
    if (exchange != 0)
        snprintf(of, sizeof(of), "  exchange=%llu", (unsigned long long)exchange);
    return snprintf(line, cap, "%-5s %-8s %.12s  %s%s\n", names[level], role_name, when + sizeof("2026-11-22"), words,
                    of);
}

static void vlog(enum log_level level, uint64_t exchange, const char *fmt, va_list ap)
{
    char text[2048], safe[4096], line[4500], when[UTC_TEXT];
    int saved = errno;
    vsnprintf(text, sizeof(text), fmt, ap);
    escape(safe, sizeof(safe), text);
    (void)utc_text(clock_ms(CLOCK_REALTIME), true, when);
    int n = (text_form ? put_text : put_json)(line, sizeof(line), when, level, exchange, safe);
    if (n > 0) {
        ssize_t unused = write(STDERR_FILENO, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1);
        (void)unused;
    }
    errno = saved;
}

void log_at(enum log_level level, const char *fmt, ...)
{
    va_list ap;
    if (!log_wants(level, 0))
        return;
    va_start(ap, fmt);
    vlog(level, 0, fmt, ap);
    va_end(ap);
}

void log_exchange(enum log_level level, uint64_t exchange, const char *fmt, ...)
{
    va_list ap;
    if (!log_wants(level, exchange))
        return;
    va_start(ap, fmt);
    vlog(level, exchange, fmt, ap);
    va_end(ap);
}

void log_die(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vlog(LOG_ERROR, 0, fmt, ap);
    va_end(ap);
    exit(1);
}
