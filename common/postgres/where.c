#include "common/postgres/where.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "common/id.h"

enum { PORT_DEFAULT = 5432 };

/* With %XX decoded; no byte that a C string or a connection's setting could be cut at. */
static int take(struct span s, char *to, size_t max, const char *what, struct err *e)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        int c = s.p[i];
        if (c == '%') {
            c = i + 2 < s.n ? hex_number(span_from(s, i + 1), 2) : -1;
            i += 2;
        }
        if (c <= ' ' || c > '~' || c == '\'' || c == '\\' || n >= max)
            return err_set(e, "the %s in postgresql:// is too long or has a character that has no place there", what);
        to[n++] = (char)c;
    }
    to[n] = '\0';
    return n > 0 ? 0 : err_set(e, "postgresql:// has no %s; it is postgresql://USER@HOST:PORT/DATABASE", what);
}

static bool is_address(const char *s)
{
    struct in_addr v4;
    struct in6_addr v6;
    return inet_pton(AF_INET, s, &v4) == 1 || inet_pton(AF_INET6, s, &v6) == 1;
}

static bool is_loopback(const char *s)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, s, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    return inet_pton(AF_INET6, s, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

static int take_port(struct span s, struct pg_where *out, struct err *e)
{
    uint64_t port = 0;
    if (span_u64(s, UINT16_MAX, &port) != 0 || port == 0)
        return err_set(e, "the port in postgresql:// is a number from 1 to 65535");
    out->port = (uint16_t)port;
    return 0;
}

static int take_host(struct span s, struct pg_where *out, struct err *e)
{
    struct span host = s, port = SPAN_NONE;
    bool more;
    if (span_starts(s, SPAN("["))) {
        size_t end = span_index(s, ']');
        host = span_of(s.p + 1, end > 0 ? end - 1 : 0);
        port = span_from(s, end + 1);
        if (end >= s.n || (port.n > 0 && port.p[0] != ':'))
            return err_set(e, "an address in brackets in postgresql:// is not closed");
        more = port.n > 0;
        port = span_from(port, more ? 1 : 0);
    } else {
        more = span_cut(s, ':', &host, &port);
    }
    if (more && take_port(port, out, e) != 0)
        return -1;
    if (take(host, out->name, PG_HOST_MAX, "host", e) != 0)
        return -1;
    if (out->name[0] != '/') {
        if (is_address(out->name))
            memcpy(out->address, out->name, sizeof(out->address));
        return 0;
    }
    if (take(host, out->folder, PG_FOLDER_MAX, "folder of a socket", e) != 0)
        return -1;
    out->name[0] = '\0';
    return 0;
}

static int take_setting(struct span key, struct span value, struct pg_where *out, bool *full, struct err *e)
{
    if (span_eq(key, SPAN("hostaddr")))
        return take(value, out->address, PG_HOST_MAX, "hostaddr", e);
    if (span_eq(key, SPAN("sslrootcert"))) {
        if (take(value, out->roots, PG_PATH_MAX, "sslrootcert", e) != 0)
            return -1;
        return out->roots[0] == '/' ? 0 : err_set(e, "sslrootcert= is the path of a file, from / on");
    }
    if (span_eq(key, SPAN("sslmode"))) {
        *full = span_eq(value, SPAN("verify-full"));
        return *full ? 0 : err_set(e, "sslmode= can only be verify-full: less lets somebody else be the database");
    }
    return err_set(e,
                   "postgresql:// may have hostaddr=, sslmode= and sslrootcert=; a password stands in a file of its "
                   "own, store_password:");
}

static int take_settings(struct span rest, struct pg_where *out, bool *full, struct err *e)
{
    struct span pair, key, value;
    bool more = rest.n > 0;
    while (more) {
        more = span_cut(rest, '&', &pair, &rest);
        (void)span_cut(pair, '=', &key, &value);
        if (take_setting(key, value, out, full, e) != 0)
            return -1;
    }
    return 0;
}

/* All of it together: one way there, and nobody in between. */
static int fits(const struct pg_where *w, bool full, struct err *e)
{
    if (w->folder[0] != '\0')
        return w->address[0] == '\0' && !full && w->roots[0] == '\0'
                   ? 0
                   : err_set(e, "a Unix socket in postgresql:// has no hostaddr=, sslmode= or sslrootcert=");
    if (!is_address(w->address))
        return err_set(e, "the host in postgresql:// is a name: say its address too, as hostaddr=192.0.2.7");
    if (full != (w->roots[0] != '\0'))
        return err_set(e, "sslmode=verify-full and sslrootcert=FILE go together");
    if (!full && !is_loopback(w->address))
        return err_set(e, "a database on another machine is reached over TLS: say sslmode=verify-full and "
                          "sslrootcert=FILE");
    return 0;
}

int pg_where_read(struct span url, struct pg_where *out, struct err *e)
{
    const struct span scheme = SPAN("postgresql://");
    struct span rest, settings, who, place, host, database;
    bool full = false;
    *out = (struct pg_where){.port = PORT_DEFAULT};
    if (!span_starts(url, scheme))
        return err_set(e, "it does not begin with postgresql://");
    (void)span_cut(span_from(url, scheme.n), '?', &rest, &settings);
    if (!span_cut(rest, '@', &who, &place))
        return err_set(e, "postgresql:// has no user; it is postgresql://USER@HOST:PORT/DATABASE");
    if (span_index(who, ':') < who.n)
        return err_set(e,
                       "a password has no place in postgresql://: put it into a file that only its owner can read, "
                       "and name that as store_password:");
    if (!span_cut(place, '/', &host, &database))
        return err_set(e, "postgresql:// has no database; it is postgresql://USER@HOST:PORT/DATABASE");
    if (take(who, out->user, PG_NAME_MAX, "user", e) != 0 || take_host(host, out, e) != 0 ||
        take(database, out->database, PG_NAME_MAX, "database", e) != 0 || take_settings(settings, out, &full, e) != 0)
        return -1;
    return fits(out, full, e);
}
