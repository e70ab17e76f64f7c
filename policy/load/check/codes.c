#include "policy/load/check/codes.h"

#include <strings.h>

static const struct policy_code codes[] = {
    {"P000", "a file that cannot be read",
     "Files are regular ones that not everybody may write, and are named themselves, not by a symbolic link. With "
     "signers each needs a signature beside it."},
    {"P001", "not YAML", "Mend the syntax at the place that is named; indentation and quotes are the usual ones."},
    {"P002", "bytes that are no text of a policy, or too many",
     "Save the file as UTF-8 without a byte order mark, with LF at the ends of lines and spaces for tabs; split one "
     "that is too large and name the parts in include:."},
    {"P003", "too deep, too many values, or no memory", "Split the file and name the parts in include:."},
    {"P004", "a key twice", "Keep one of the two; lists of both can be joined."},
    {"P005", "what makes YAML mean more than it shows",
     "Anchors, aliases, merge keys, tags, directives and further documents are not read: write out what is meant, "
     "and "
     "put a value that begins with * or & in quotes."},
    {"P006", "a key that is not known",
     "Correct the spelling; countersign policy schema prints every key there is, and where."},
    {"P007", "a key or value that nothing enforces yet",
     "It belongs to the grammar but would do nothing here: take it out rather than rely on it."},
    {"P008", "a value of the wrong kind", "The text says what is wanted in its place."},
    {"P009", "a word that YAML takes for something else",
     "YAML reads no, on, 010 and 22:22 as a switch or a number: write it in quotes if the word is meant."},
    {"P010", "a key is missing, or the file is empty", "Add the key; every file begins with version: 1."},
    {"P011", "something is named that is not there",
     "Correct the name, or add the scope, credential, approvers entry, pack, time zone or file that it means. A file "
     "is looked for beside the one that names it."},
    {"P012", "a name that two things have", "Names and ids are unique over all files: rename one of the two."},
    {"P013", "a pattern, host, path or address that cannot be", "The text says what it would have to look like."},
    {"P014", "a floor that does not deny",
     "Floors are the operator's own denies: move any other rule into a policy file."},
    {"P015", "keys that do not go together", "Take one of them out; the text says why they exclude each other."},
    {"P016", "a pack that is not well made", "Mend the pack's file, or use the installed one."},
    {"P017", "more than fits", "Every list and text has a limit: write several smaller ones, or split the policy."},
    {"P018", "an include that cannot be",
     "Included files lie in the folder of the file that the gateway is given or below, are reached through no "
     "symbolic link, do not include each other in a circle, and are at most 64 in all."},
    {"P019", "files that must be signed, and nobody said by whom",
     "The operator names a file of keys: policy_signers: in countersign.yaml, --signers for the verbs."},
    {"P020", "a {name} that the rule's paths do not have",
     "What say: and instead: have in braces is a segment of the path, named so in every path of the rule: correct "
     "the "
     "name, or name the segment."},
    {"P099", "a fault of this program", "The file may be right: report it, with the file if you can."},
    {"P101", "a credential may go where no rule uses it",
     "Take the place out of only:, or write the rule that is about it."},
    {"P102", "a rule that can never fit, or an entry of except: that takes nothing away, or everything",
     "What excludes each other is named: loosen one of the two, or remove the rule or the entry."},
    {"P103", "a rule that never decides: another has all it is about, or says the same",
     "Deny goes before hold, hold before allow, and a floor before all: give the other rule an except: (or, where "
     "this one has a when:, a when: of the other hours), or remove this one."},
    {"P104", "a rule allows writes and does not say so",
     "Add effect: read, or effect: [read, write] if that is meant."},
    {"P105", "no rule uses the credential", "Write use: in the rule it is for, or remove it."},
    {"P106", "a rule is about a place where its credential may not go",
     "Such requests will be denied: add the host, scheme and port to only: of the credential, or narrow the rule."},
    {"P107", "there are no rules", "Everything is denied. That is safe, and likely not what is wanted."},
    {"P108", "a name of another script, and what it is on the wire",
     "Requests are compared with the name on the wire (xn--...): see that it is the one you mean."},
    {"P109", "a wildcard under which every customer of a service has a name",
     "An attacker can have one there too: name your own hosts."},
    {"P110", "a WebSocket that counts as a read, and over which messages may be sent",
     "A freeze does not stop those messages: take effect: read out if they change something."},
    {"P111", "a credential would travel in clear text, without leave of the upstream",
     "Such requests will be denied: use https, or say cleartext_credentials: true of this host and port in "
     "upstreams:."},
    {"P112", "a scope has a region that no upstream has",
     "It reaches nothing by it: give the upstreams that it may reach this region:."},
    {"P113", "the hold of an over: fits all that its rule allows, which never decides",
     "A hold goes before an allow: give the hold an except: for what the limited rule lets through."},
    {"P115", "learning is over", "The time of learning: is past and it does nothing: take the key out."},
    {"P116", "limits that an amount of 0 never uses up",
     "A sum alone does not bound how many requests there are: add requests:, or let the match ask for int_gte: 1 of "
     "what is added up."},
    {"P117", "an operator's name that nobody has",
     "Name who may approve as the audit names them: a person by the name that countersign operator list shows, or "
     "\"uid 1000\" for the user with that number (id -u)."},
    {"P118", "the hold of an over: is never in force in the hours of its rule",
     "What is past the limits is denied then: name a hold without when:, or with the hours of the limited rule."},
    {"P119", "a path that looks like a regular expression or a template",
     "Paths are compared as they are written: * is one segment, ** any number of them, {name} one segment with a "
     "name. "
     "Write it with these, or leave it if the characters are meant."},
    {"P120", "an upstream's address, or a rule's host that is one, that connections may not go to",
     "Addresses that are not public are dialled only where allow_private: of the upstream has them: add the range, "
     "and "
     "the upstream where there is none."},
    {"P121", "a CA that does not keep to RFC 5280 to the letter",
     "Certificates below it are checked without X509_STRICT, since none would pass: make the CA anew with what the "
     "text "
     "names (with openssl req -x509: -addext keyUsage=critical,keyCertSign,cRLSign), or leave it as it is."},
    {"P122", "a credential that goes into the URL",
     "URLs are written into the logs of servers and of what stands before them. Use header: where the service takes "
     "it there; leave it where it takes it nowhere else, and give it few rights."},
    {"P123", "query_names: without the parameter that the rule's credential is",
     "The request is decided as it leaves, with that parameter in its query: add it to query_names:."},
    {"P124", "a rule that names no port or scheme, about a host or port that is known for another",
     "Without scheme: a rule is about https, without port: about 443, or 80 over http: add those of upstreams:, or "
     "write out the usual ones if they are meant."},
    {"P125", "a rule's host that upstreams: nearly has",
     "No rule is about the upstream that is named: correct the one or the other, or leave both if both are meant."},
    {"P126", "parts of a request that run together in what an HMAC is made over",
     "Where nothing between two parts tells where the first ends, a signature over one request is good for another. "
     "If the service lets you choose, put a line feed between them; where its scheme is such, that is its own "
     "fault."},
    {"P127", "a rule that denies or holds by what a body says, without a path or operation",
     "It is about all bodies sent to its hosts, and refuses as unclassified those that are not of its kind: name the "
     "path or operation that it is for."},
};

const struct policy_code *policy_code_at(size_t i)
{
    return i < sizeof(codes) / sizeof(codes[0]) ? &codes[i] : NULL;
}

const struct policy_code *policy_code_find(const char *code)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strcasecmp(codes[i].code, code) == 0)
            return &codes[i];
    return NULL;
}
