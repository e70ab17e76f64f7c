/* A message to people (proxy/keeper/tell): one POST, or one mail. Nothing is made of what the other side says but its
 * status: no byte of an answer's body is kept, and nobody is asked elsewhere because an answer says so. */
#include <stdio.h>
#include <time.h>

#include "common/time/clock.h"
#include "proxy/fetcher/job/tell.h"

enum { MAIL_MOST = 64 * 1024, MAIL_LINE = 78 };

bool tell_is_clear(const struct wire_fetch *f)
{
    return f->kind == FETCH_TELL && span_starts(wire_setting(f, SPAN("url"), 0), SPAN("http://"));
}

enum tell_says tell_status(unsigned status)
{
    return status >= 200 && status < 300 ? TELL_SAYS_TOLD : status == 410 ? TELL_SAYS_NEVER : TELL_SAYS_LATER;
}

/* What may stand in a header: one line of ASCII, whoever wrote the title. */
static void add_plain(struct dynbuf *b, struct span text, bool lines)
{
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = text.p[i];
        if (lines && c == '\n')
            (void)dynbuf_add(b, SPAN("\r\n"));
        else
            (void)dynbuf_add_byte(b, c >= 0x20 && c < 0x7f ? c : '?');
    }
}

/* RFC 5322 section 3.3, in UTC. */
static void add_date(struct dynbuf *b, uint64_t ms)
{
    static const char *const day[] = {"Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"};
    static const char *const month[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t s = (time_t)(ms / 1000);
    struct tm t;
    if (gmtime_r(&s, &t) == NULL)
        return;
    (void)dynbuf_addf(b, "Date: %s, %d %s %d %02d:%02d:%02d +0000\r\n", day[(ms / 86400000) % 7], t.tm_mday,
                      month[t.tm_mon], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

int tell_mail(const struct wire_fetch *f, uint64_t now_ms, struct dynbuf *out)
{
    struct span from = wire_setting(f, SPAN("from"), 0), to, domain = SPAN_NONE, local;
    (void)span_cut(from, '@', &local, &domain);
    dynbuf_init(out, MAIL_MOST);
    add_date(out, now_ms);
    (void)dynbuf_add(out, SPAN("From: Countersign <"));
    add_plain(out, from, false);
    for (size_t i = 0; (to = wire_setting(f, SPAN("to"), i)).n > 0; i++) {
        (void)dynbuf_add(out, i == 0 ? SPAN(">\r\nTo: ") : SPAN(",\r\n "));
        add_plain(out, to, false);
    }
    (void)dynbuf_add(out, SPAN("\r\nMessage-ID: <"));
    add_plain(out, wire_setting(f, SPAN("id"), 0), false);
    (void)dynbuf_add_byte(out, '@');
    add_plain(out, domain, false);
    (void)dynbuf_add(out, SPAN(">\r\nSubject: "));
    add_plain(out, wire_setting(f, SPAN("title"), 0), false);
    (void)dynbuf_add(out,
                     SPAN("\r\nAuto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\n"
                          "Content-Type: text/plain; charset=us-ascii\r\nContent-Transfer-Encoding: 7bit\r\n\r\n"));
    add_plain(out, wire_setting(f, SPAN("body"), 0), true);
    (void)dynbuf_add(out, SPAN("\r\n"));
    return dynbuf_ok(out) ? 0 : -1;
}

static void as_mail(const struct job *j, struct http *h) __attribute__((noreturn));
static void as_mail(const struct job *j, struct http *h)
{
    struct err e = {{0}};
    struct dynbuf mail;
    unsigned status = 0;
    if (tell_mail(&j->ask, clock_ms(CLOCK_REALTIME), &mail) != 0)
        job_failed(j, "the mail is too long, or there is no memory");
    if (http_mail(h, dynbuf_span(&mail), &status, &e) != 0)
        job_failed(j, "its relay%s%.*u: %s", status ? " answered " : "", status ? 3 : 0, status, e.text);
    job_done(j, SPAN("its relay took it"), 0, SPAN_NONE);
}

void tell(const struct job *j, struct http *h)
{
    struct err e = {{0}};
    struct span body;
    unsigned status = 0;
    char words[64];
    if (span_eq(wire_setting(&j->ask, SPAN("way"), 0), SPAN("mail")))
        as_mail(j, h);
    if (http_ask_signed(h, &status, &body, &e) != 0)
        job_failed(j, "%s", e.text);
    enum tell_says says = tell_status(status);
    (void)snprintf(words, sizeof(words), "%sit answered %u", says == TELL_SAYS_NEVER ? "never: " : "", status);
    if (says == TELL_SAYS_LATER)
        job_failed(j, "%s", words);
    job_done(j, span_str(words), 0, SPAN_NONE);
}
