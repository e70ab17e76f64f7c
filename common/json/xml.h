/* A small part of XML, read strictly as the tree that JSON makes (json.h), so that who finds a way in one has it in
 * the other:
 *
 *   <A><B>text</B><C/><D>1</D><D>2</D></A>     {"A": {"B": "text", "C": "", "D": ["1", "2"]}}
 *
 * In an element stand elements or a text, without the blanks around it. Elements of one name stand one behind the
 * other. Of attributes nothing is kept but xmlns of the outermost element: it is the `text` of its object.
 *
 * Refused is what else XML has: declarations of types, other entities than its own five, sections, comments,
 * instructions, prefixes of elements, text among elements, attributes with any of <>&"', other encodings than UTF-8.
 */
#ifndef COMMON_JSON_XML_H
#define COMMON_JSON_XML_H

#include "common/json/json.h"

enum {
    XML_DEPTH_MAX = 16,
    XML_NODES_MAX = 1024 /* elements */,
    XML_NAME_MAX = 256,
    XML_ATTRIBUTES_MAX = 16 /* of one */
};

/* The whole document as an object with one member, in the arena (its strings are copied there); NULL: it is not
 * well-formed, has what is refused, is over a limit, or there is no memory. */
const struct json *xml_parse(struct span document, struct arena *a) MUSTCHECK;
/* A text of such a tree, or one in ASCII, as it stands in an element. */
void xml_put_text(struct dynbuf *out, struct span text);

#endif
