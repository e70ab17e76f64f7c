#include "cli/verbs/started/follow.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/verb.h"
#include "common/text/visible.h"

static void say_output(const struct follow *f, bool err, struct span data)
{
    uint8_t *bytes = malloc(data.n);
    struct dynbuf shown;
    size_t n;

    if (bytes && base64_decode(data, bytes, &n) == 0) {
        FILE *to = err ? stderr : stdout;
        dynbuf_init(&shown, 8 * API_EVENT_MAX);
        if (!f->terminal && isatty(fileno(to))) { /* it may be meant for the terminal, not for who reads it */
            visible_text(&shown, span_of(bytes, n), true);
            (void)fwrite(shown.p, 1, dynbuf_ok(&shown) ? shown.n : 0, to);
        } else {
            (void)fwrite(bytes, 1, n, to);
        }
        (void)fflush(to);
        dynbuf_free(&shown);
    }
    free(bytes);
}

static void say_exit(struct follow *f, struct span data)
{
    struct arena a;

    arena_init(&a, API_EVENT_MAX);
    const struct json *j = json_parse(data, &a);
    struct span how = member_text(j, "how"), why = member_text(j, "why");
    if (span_eq(how, SPAN("exited")))
        f->status = (int)member_u64(j, "status") & 0xff;
    else if (span_eq(how, SPAN("signalled")))
        f->status = EXIT_SIGNAL + ((int)member_u64(j, "signal") & 0x7f);
    else
        f->status = span_eq(how, SPAN("timed-out")) ? EXIT_TIMED_OUT : EXIT_LOST;
    if (member_u64(j, "cut") && !f->cut)
        fprintf(stderr, "countersign: %llu bytes of its output were dropped (--output)\n",
                (unsigned long long)member_u64(j, "cut"));
    if (f->status == EXIT_TIMED_OUT)
        fputs("countersign: its time was over (--timeout)\n", stderr);
    if (why.n) {
        struct dynbuf shown;
        dynbuf_init(&shown, API_EVENT_MAX);
        visible_text(&shown, why, false);
        fprintf(stderr, "countersign: %.*s\n", dynbuf_ok(&shown) ? (int)shown.n : 0, (const char *)shown.p);
        dynbuf_free(&shown);
    }
    arena_free(&a);
}

/* Of a detached command more was said than is kept. */
static void say_cut(struct follow *f, struct span data)
{
    struct arena a;

    f->cut = true;
    arena_init(&a, API_EVENT_MAX);
    const struct json *j = json_parse(data, &a);
    fprintf(stderr, "countersign: %llu bytes of its %s before what follows are not kept any more\n",
            (unsigned long long)member_u64(j, "bytes"),
            span_eq(member_text(j, "output"), SPAN("stderr")) ? "standard error" : "output");
    arena_free(&a);
}

/* Its end has words that the sandbox's side chose; object: the data is one, and else base64. */
static void say_json(const struct api_event *ev, bool object)
{
    const char *quote = object ? "" : "\"";
    struct dynbuf line;

    dynbuf_init(&line, 2 * API_EVENT_MAX);
    (void)dynbuf_addf(&line, "{\"event\":\"%.*s\",\"data\":%s%.*s%s}", SPAN_FMT(ev->name), quote, SPAN_FMT(ev->data),
                      quote);
    if (dynbuf_ok(&line))
        print_json_line(dynbuf_span(&line));
    dynbuf_free(&line);
}

/* Its command can be undone, by this number. */
static void say_step(const struct follow *f, const struct api_event *ev)
{
    struct arena a;

    arena_init(&a, API_EVENT_MAX);
    unsigned long long step = member_u64(json_parse(ev->data, &a), "step");
    if (step && f->json)
        say_json(ev, true);
    else if (step)
        fprintf(stderr, "countersign: step %llu\n", step);
    arena_free(&a);
}

static int on_event(void *ctx, const struct api_event *ev)
{
    struct follow *f = ctx;
    bool out = span_eq(ev->name, SPAN("stdout")), err = span_eq(ev->name, SPAN("stderr"));
    bool end = span_eq(ev->name, SPAN("exit")), cut = span_eq(ev->name, SPAN("cut"));

    if (span_eq(ev->name, SPAN("hello"))) {
        verb_say_restored();
        say_step(f, ev);
    }
    if (f->json && (out || err || end || cut))
        say_json(ev, end || cut);
    else if (out || err)
        say_output(f, err, ev->data);
    if (cut)
        say_cut(f, ev->data);
    if (end) {
        feed_end(&f->feed); /* before a word of ours: the terminal is the caller's again */
        say_exit(f, ev->data);
    }
    if (f->input && span_eq(ev->name, SPAN("hello")))
        return feed_begin(&f->feed, f->sock, ev->data, f->terminal);
    if (f->input && span_eq(ev->name, SPAN("fed")))
        feed_more(&f->feed, ev->data);
    return ferror(stdout) ? 1 : 0; /* nobody reads it any more: the command is killed */
}

int follow_run(struct follow *f, const char *path, struct span body)
{
    struct err e;

    f->status = -1;
    f->cut = false;
    f->feed = (struct feed){0};
    int rc = api_stream_of(f->sock, path, body, on_event, f, &e);
    feed_end(&f->feed);
    if (rc < 0)
        return verb_fail(EXIT_LOST, "%s", e.text);
    return f->status >= 0 ? f->status : verb_fail(EXIT_LOST, "the gateway ended before the command");
}
