/* What is written in the words of something else: regular expressions and templates where a path stands, an address
 * that no connection may go to. */
#include "common/net/addr.h"
#include "policy/load/check/warn.h"

enum { RANGES_MAX = 256, SHOWN = 100 };

/* A piece of a path that means more elsewhere; NULL: none. '*', '**' and "{name}" are this grammar's own. */
static const char *foreign_words(struct span path)
{
    static const struct {
        struct span piece;
        const char *what;
    } signs[] = {
        {SPAN(".*"), "\".*\" of a regular expression: * fits one segment, ** any number of them"},
        {SPAN(".+"), "\".+\" of a regular expression: * fits one segment, ** any number of them"},
        {SPAN("[^"), "a class of a regular expression: * fits one segment"},
        {SPAN("[0-9"), "a class of a regular expression: * fits one segment"},
        {SPAN("[a-z"), "a class of a regular expression: * fits one segment"},
        {SPAN("[A-Z"), "a class of a regular expression: * fits one segment"},
        {SPAN("\\d"), "a class of a regular expression: * fits one segment"},
        {SPAN("\\w"), "a class of a regular expression: * fits one segment"},
        {SPAN("(?"), "a group of a regular expression: write a path for each alternative"},
        {SPAN("/:"), "a template: {name} stands for one segment"},
    };
    if (span_starts(path, SPAN("/^")) || span_ends(path, SPAN("$")))
        return "an anchor of a regular expression: a path is always the whole path";
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
        if (span_find(path, signs[i].piece) < path.n)
            return signs[i].what;
    return NULL;
}

static void warn_paths(struct loader *l, const struct m_match *t)
{
    const struct items *paths = t->written.at ? &t->written : &t->paths;
    for (size_t i = 0; i < paths->n; i++) {
        const char *what = foreign_words(paths->v[i].text);
        if (what)
            load_problem(l, paths->v[i].at, "P119", "\"%.*s\" is taken as it is written, and looks like %s",
                         SPAN_FMT(span_first(paths->v[i].text, SHOWN)), what);
    }
}

void warn_words(struct loader *l, const struct m_rule *r)
{
    const struct m_match *except = r->except.v;
    warn_paths(l, &r->match);
    for (size_t i = 0; i < r->except.n; i++)
        warn_paths(l, &except[i]);
}

/* A host of a rule that is such an address itself, and that upstreams: does not have: a row there is looked at alone.
 */
void warn_private(struct loader *l, const struct model *m, const struct m_rule *r)
{
    const struct items *hosts = &r->match.hosts;
    struct addr a;
    for (size_t i = 0; r->decide.v != VERDICT_DENY && i < hosts->n; i++) {
        struct span host = hosts->v[i].text;
        size_t at = warn_upstream(m, host, 0);
        bool row = at < m->nupstreams && span_eq(m->upstreams[at]->host.text, host);
        if (!row && addr_of_host(host, &a) == 0 && !addr_may_dial(&a, NULL, 0))
            load_problem(l, hosts->v[i].at, "P120",
                         "%.*s is a %s address, and upstreams: does not say that it may be dialled: every request "
                         "will be refused; add it there with allow_private: if it is meant",
                         SPAN_FMT(span_first(host, SHOWN)), addr_class_name(addr_class(&a)));
    }
}

/* What a connection goes to: the address the operator gives, or the host where that is one. */
void warn_address(struct loader *l, const struct m_upstream *u)
{
    const struct item *said = u->address.at ? &u->address : &u->host;
    struct cidr allowed[RANGES_MAX];
    struct addr a;
    size_t n = 0;
    if (said->at == NULL || addr_of_host(said->text, &a) != 0 || u->allow_private.n > RANGES_MAX)
        return;
    for (size_t i = 0; i < u->allow_private.n; i++)
        n += cidr_parse(u->allow_private.v[i].text, &allowed[n]) == 0;
    bool literal = addr_parse(said->text, &(struct addr){0}) == 0;
    if (!addr_may_dial(&a, allowed, n))
        load_problem(l, said->at, "P120",
                     "%.*s is a %s address, which no range of allow_private: has: every request will be refused; add "
                     "allow_private: [%.*s/%d] if it is meant",
                     SPAN_FMT(said->text), addr_class_name(addr_class(&a)),
                     SPAN_FMT(literal ? said->text : SPAN("127.0.0.1")), a.family == 6 ? 128 : 32);
}
