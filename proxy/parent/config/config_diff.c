/* diff: of the configuration: sandboxes in which it is found out what a held push or package changes. */
#include "proxy/parent/config/config_in.h"

static const struct key diff_keys[] = {
    {"lane", KEY_TEXT, AT(row_diff, lane), KEY_NEEDED,
     .help = "by which lane they read the repository or the registry: the policy has to allow it"},
    {"image", KEY_TEXT, AT(row_diff, image), 0,
     .help = "an imported image with git, for packages curl and gzip, in it, or host"},
    {.type = KEY_END}};
const struct table config_diff_table = {"diff", sizeof(struct row_diff), diff_keys};

void config_take_diff(struct loader *l, const struct row_diff *r, struct config *c)
{
    if (r->at == NULL)
        return;
    if (!config_sandbox_ok(r->lane.text))
        load_problem(l, r->lane.at, "C020", "a lane's name is 1 to 63 of a-z 0-9 . _ -");
    config_copy(l, c->diff_lane, sizeof(c->diff_lane), &r->lane);
    if (r->image.at == NULL || span_eq(r->image.text, SPAN("host")))
        return;
    if (!config_sandbox_ok(r->image.text))
        load_problem(l, r->image.at, "C020", "an image's name is 1 to 63 of a-z 0-9 . _ -");
    config_copy(l, c->diff_image, sizeof(c->diff_image), &r->image);
}
