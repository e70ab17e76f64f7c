#include "broker/work/tools.h"

#define OBJECT(props, needed)                                                                                        \
    "{\"type\":\"object\",\"properties\":{" props "},\"required\":[" needed "],\"additionalProperties\":false}"
#define PATH "\"path\":{\"type\":\"string\",\"description\":\"relative to the workspace\"}"

/* What each may do if it is done once more is decided here, and by no model: see broker/loop/README.md. */
static const struct tool tools[] = {
    {"run_command",
     "Run a command with /bin/sh in the workspace and return what it says and how it ended. Its outcome may be "
     "unknown "
     "after a failure; it is never run again by itself.",
     OBJECT("\"command\":{\"type\":\"string\"},\"dir\":{\"type\":\"string\"},\"timeout\":{\"type\":\"integer\","
            "\"description\":\"seconds, at most 3600; 300 if it is not said\"}",
            "\"command\""),
     CALL_UNSAFE, run_command},
    {"read_file", "Return a file of the workspace as text, of a long one a piece that says how much there is in all.",
     OBJECT(PATH ",\"offset\":{\"type\":\"integer\",\"description\":\"bytes before the piece; 0 if it is not said\"}",
            "\"path\""),
     CALL_READ, run_read},
    {"list_files",
     "Return what lies in a folder of the workspace, as JSON; where more is true, after reads on from a name.",
     OBJECT(PATH ",\"after\":{\"type\":\"string\",\"description\":\"the last name that was had\"}", "\"path\""),
     CALL_READ, run_list},
    {"write_file", "Write a file of the workspace, whole; folders above it are made.",
     OBJECT(PATH ",\"content\":{\"type\":\"string\"}", "\"path\",\"content\""), CALL_IDEMPOTENT, run_write},
    {"edit_file", "Replace a text that stands exactly once in a file of the workspace.",
     OBJECT(PATH ",\"old\":{\"type\":\"string\"},\"new\":{\"type\":\"string\"}", "\"path\",\"old\",\"new\""),
     CALL_RECONCILABLE, run_edit},
    {"remove_file", "Remove a file, or a folder with all in it, from the workspace.", OBJECT(PATH, "\"path\""),
     CALL_IDEMPOTENT, run_remove},
};

const struct tool *tool_of(struct span name)
{
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
        if (span_eq(name, span_str(tools[i].name)))
            return &tools[i];
    return NULL;
}

size_t tools_for_model(struct model_tool *out, size_t most)
{
    size_t n = 0;
    for (; n < sizeof(tools) / sizeof(tools[0]) && n < most; n++)
        out[n] =
            (struct model_tool){span_str(tools[n].name), span_str(tools[n].description), span_str(tools[n].schema)};
    return n;
}
