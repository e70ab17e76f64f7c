/* What tests of the broker's store share: a folder, a clock that is set, turns that are asked for; and that all of it
 * is run with each database. */
#ifndef TESTS_UNIT_BROKER_STORE_FIX_H
#define TESTS_UNIT_BROKER_STORE_FIX_H

#include "broker/store/postgres/postgres.h"
#include "broker/store/sqlite/sqlite.h"
#include "tests/kit.h"

enum { CLAIM_MS = 1000 };

extern char fix_folder[64], fix_path[96];
extern struct bstore *fix;
extern struct bstore_test fix_test;
extern uint64_t fix_now; /* the store's clock, unless fix_test.now_ms is NULL */
extern struct arena fix_arena;
extern const struct bstore_asked fix_asked; /* of the model small, for code: 5, 3, 1 and 1 tokens */
extern const struct budgets *fix_budgets;   /* of the store that is opened next; NULL: none */
extern bool fix_postgres;                   /* the store is in a PostgreSQL, else in a file */

/* The tests of a file, with SQLite and then with PostgreSQL. */
int fix_main(const struct CMUnitTest *tests, size_t n);
#define FIX_MAIN(tests) fix_main(tests, sizeof(tests) / sizeof((tests)[0]))

int fix_setup(void **state);
int fix_teardown(void **state);
struct bstore *fix_open(void);
void fix_reopen(void);
/* What a killed process had begun is over. */
void fix_quiet(void);
/* A statement, past the store; the first value of one, as text. */
void fix_exec(const char *sql);
bool fix_one(const char *sql, char *out, size_t cap);
struct id fix_id(unsigned n);

/* Asked for by tenant, in a new conversation if `in` is NULL. */
struct bstore_chatted fix_chat(const char *tenant, const struct id *in);
struct claim fix_claim(unsigned worker);
struct bstore_turn fix_load(const struct claim *c);
/* Begin step n and plan one call in it. */
void fix_plan(const struct claim *c, uint64_t n, enum call_class class);
enum bstore_result fix_call(const struct claim *c, uint64_t n, const char *result);
enum bstore_result fix_settle(const struct claim *c, uint64_t n, const char *state);
/* How many events of this type a conversation's log has. */
unsigned fix_events(const char *tenant, const struct id *conversation, const char *type);
const struct bstore_turn_row *fix_row(const char *tenant, const struct id *turn);

#define fix_ok(expression) assert_int_equal(expression, BS_OK)

#endif
