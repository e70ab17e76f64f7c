/* One validation under way, and the checks of all keywords. */
#ifndef COMMON_SCHEMA_CHECKS_H
#define COMMON_SCHEMA_CHECKS_H

#include "common/schema/schema_in.h"

enum { RUN_NEST_MAX = 1024 };

/* From a value to one inside it: an element, a member by a name that the schema has, or one by a name that it does
 * not have. */
struct step {
    struct span name;
    size_t index;
    int how;
};
enum { STEP_FOREIGN = 0, STEP_INDEX, STEP_NAME };

struct run {
    const struct schema *s;
    struct schema_miss *miss;
    uint64_t steps; /* left */
    bool over;      /* they are used up, or there is no memory */
    unsigned nest;
    unsigned trying; /* what does not fit here does not yet break the schema */
    struct step way[JSON_DEPTH_MAX];
    size_t nway;
    struct arena arena; /* the instance, and what checks need */
    struct pattern_room *room;
    /* What was looked at, for unevaluated*: places (uint32_t) of members or elements. From `base` on those of the
     * value at hand, by the schema at hand. */
    struct dynbuf looked;
    size_t base;
};

/* n steps more; false: there are none left, and nothing that is said from now on counts. */
bool run_spend(struct run *r, uint64_t n);
/* False, after noting where it is and which keyword says so, unless something was noted or it is only tried. */
bool run_miss(struct run *r, const struct rule *rule);
static inline bool run_says(struct run *r, const struct rule *rule, bool good)
{
    return good || run_miss(r, rule);
}
/* Does the value at hand fit a node? rule: who asks; NULL at the top. */
bool run_fits(struct run *r, const struct node *n, const struct json *j, const struct rule *rule);
/* The same when it need not. */
bool run_tries(struct run *r, const struct node *n, const struct json *j, const struct rule *rule);
/* A member or element of the value at hand, which then was looked at. place: which one it is. */
bool run_part(struct run *r, const struct branch *b, const struct json *part, size_t place, const struct rule *rule);
/* That one was looked at. */
void run_looked(struct run *r, size_t place);
/* Does the name fit the pattern? */
bool run_finds(struct run *r, const struct pattern *p, struct span text);
/* The same value, whatever its form: 1.0 and 1, members in any order. */
bool run_equal(struct run *r, const struct json *a, const struct json *b);
/* Are two elements equal? */
bool run_has_twins(struct run *r, const struct json *list);
/* Are two names the same? True also when the steps are used up, so that who looks for one stops. */
bool run_is_name(struct run *r, struct span a, struct span b);
/* A member by its name, and its place; NULL: there is none, or the steps are used up. */
const struct json *run_member(struct run *r, const struct json *object, struct span name, size_t *place);

keyword_check check_type, check_const, check_enum, check_minimum, check_maximum, check_above, check_under,
    check_multiple, check_min_length, check_max_length, check_format, check_pattern; /* values */
keyword_check check_min_properties, check_max_properties, check_required, check_dependent_required,
    check_property_names, check_properties, check_pattern_properties, check_additional; /* objects */
keyword_check check_min_items, check_max_items, check_unique, check_prefix_items, check_items,
    check_contains; /* lists */
keyword_check check_ref, check_all_of, check_any_of, check_one_of, check_not, check_if, check_dependent_schemas,
    check_unevaluated; /* schemas */

#endif
