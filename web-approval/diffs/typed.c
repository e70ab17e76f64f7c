#include "common/json/json.h"
#include "web-approval/diffs/diffs.h"

/* Said in UTF-8, or in nothing, as JSON is; another parameter may be read as a charset. */
static bool is_json(struct span value)
{
    size_t at = span_index(value, ';');
    struct span rest = span_trim(span_from(value, at + 1));

    return span_ieq(span_trim(span_first(value, at)), SPAN("application/json")) &&
           (at == value.n || span_ieq(rest, SPAN("charset=utf-8")) || span_ieq(rest, SPAN("charset=\"utf-8\"")));
}

const char *diff_typed(const struct ticket *t, struct arena *a)
{
    const struct json *list = json_parse(t->fields_json, a);
    bool json = false;
    size_t types = 0, codings = 0;

    for (const struct json *f = list ? list->child : NULL; f; f = f->next) {
        if (!f->child || !f->child->next)
            continue;
        struct span name = f->child->text, value = f->child->next->text;
        if (span_ieq(name, SPAN("content-type")) && types++ == 0)
            json = is_json(value);
        codings += span_ieq(name, SPAN("content-encoding")) && !span_ieq(span_trim(value), SPAN("identity"));
    }
    if (types != 1 || !json)
        return "the request does not say once that it is application/json in UTF-8: a registry that reads it in "
               "another "
               "charset stores something else than is shown";
    return codings > 0 ? "the request says that it is packed (Content-Encoding): it is not opened here" : NULL;
}
