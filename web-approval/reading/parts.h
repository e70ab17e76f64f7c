/* What the files of this room share. */
#ifndef WEB_APPROVAL_READING_PARTS_H
#define WEB_APPROVAL_READING_PARTS_H

#include "web-approval/reading/reading.h"

/* words are told apart by their address: one literal for each kind. */
void flag_add(struct reading *r, const char *words, struct span name, struct span value);
/* The same, and the page offers no yes. Never dropped for others. */
void flag_block(struct reading *r, const char *words, struct span name, struct span value);

/* A value of the body, into the list and looked at. */
enum value_is { VALUE_TEXT = 0, VALUE_NUMBER, VALUE_WORD };
void value_add(struct reading *r, struct span name, struct span value, enum value_is is);
/* One that is not in the list: of a query, a path, a field, a fact. */
void value_look(struct reading *r, struct span name, struct span value, enum value_is is);
/* Of a name, to find it again; who chooses names may choose equal ones. */
uint32_t name_hash(struct span s);
/* What hides, turns or imitates in a text. */
void text_look(struct reading *r, struct span name, struct span text);
/* The request's host; hosts of URLs in a text. */
void host_look(struct reading *r);
void url_look(struct reading *r, struct span name, struct span s);
/* Does it order to delete: one of its words is "delete" or another of its kind? */
bool text_deletes(struct span s);
/* What bytes are by how they begin: "gzip", "a picture (PNG)"; NULL: not known. */
const char *bytes_are(struct span s);
/* Does it begin as a picture of a format that a viewer draws? */
bool picture_begins(struct span s);
/* Is a picture said to be there, by a media type? */
bool picture_said(struct span type);
/* For a viewer. One too many, or one of which only a part is here, is blocked. */
void picture_add(struct reading *r, struct span name, struct span type, struct span bytes);
/* May a reader take it for this JSON object or array? NULL: it is none. *twice: a name stands twice in an object. */
const struct json *text_json(struct reading *r, struct span text, enum json_fault *why);

void body_read(struct reading *r);
/* The body without its codings into r->text; false: it cannot be opened, and is blocked. */
bool coding_open(struct reading *r);
void tree_read(struct reading *r, const struct json *j);
/* plain: it is a form of a body, whose values are listed. */
void form_read(struct reading *r, struct span s, bool body);
/* With its content type. */
void multipart_read(struct reading *r, struct span type);
/* The pictures in it alone, of one that is too long to be taken apart, or no form. */
void multipart_pictures(struct reading *r, struct span type, bool form);
/* The body, also where it is cut; empty: no more than its beginning is here. */
struct span body_all(const struct reading *r);

#endif
