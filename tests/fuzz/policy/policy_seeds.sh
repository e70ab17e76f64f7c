#!/bin/sh
# Makes corpus/policy_image anew: an image opens only in the program whose version it has (IMG_VERSION). To be run
# whenever that one is raised: make fuzz-seeds.
set -eu
seed=$1 src=$2 to=$2/tests/fuzz/corpus/policy_image

make_one() { # NAME POLICY METHOD HOST PATH QUERY BODY
	name=$1 policy=$2
	shift 2
	"$seed" "$policy" "$src/conf/packs" "$@" >"$to/$name.new"
	mv "$to/$name.new" "$to/$name"
}

book=$src/conf/cookbook
make_one git-topic-0 "$book/coding-agent.yaml" POST github.com /acme/app.git/git-receive-pack "" \
	"0077$(printf '%040d' 0) $(printf '%040d' 1) refs/heads/agent/x"
make_one git-topic-1 "$book/coding-agent.yaml" GET github.com /acme/app.git/info/refs service=git-receive-pack ""
make_one git-topic-2 "$book/coding-agent.yaml" GET elsewhere.example / "" ""
make_one npm "$book/publishing.yaml" PUT registry.npmjs.org /@acme%2Fapp "" '{"name":"@acme/app"}'
make_one limits-0 "$book/payments.yaml" POST api.pay.example /v1/refunds "" amount=4000
make_one held-writes-0 "$book/office-hours.yaml" POST deploy.example.com /v1/deployments "" ""
make_one read-only-0 "$book/residency.yaml" GET eu.api.example.com /v1/x "" ""
make_one read-only-2 "$book/research.yaml" GET docs.example.com /a "" ""
make_one websocket "$book/realtime.yaml" GET chat.example.com /socket "" ""
make_one held-writes-1 "$book/support.yaml" GET help.example.com /v1//keys\;x=1 "a=b&_method=PUT" ""

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cat >"$tmp/captures.yaml" <<'YAML'
version: 1
rules:
  - id: one
    match: { host: a.example, path: ["/u/{user}/k/{key}", "/w/**/{key}/{user}"], json: [{ pointer: /n, int_lte: 5 }] }
    decide: hold
    say: "Key {key} of {user}."
  - { id: two, match: { host: "*.example.org", query: { q: "a*" }, query_names: [q] }, decide: allow }
  - { id: three, match: { host: a.example, path: "/x/{id}" }, decide: deny, say: "Not {id}.", instead: "/y/{id}" }
YAML
make_one empty-text "$tmp/captures.yaml" GET a.example /x/9 "" ""
make_one held-writes-2 "$tmp/captures.yaml" POST a.example /u/ann/k/7/ "" '{"n":3}'
make_one read-only-1 "$tmp/captures.yaml" GET b.example.org / q=ab ""
cat >"$tmp/stubs.yaml" <<'YAML'
version: 1
scopes: { some: { sandboxes: ["*"] } }
credentials:
  key: { source: { store: k }, inject: { header: X-Key, format: "{}" }, lease: generic, only: [{ host: a.example }],
         stub: oauth, token_url: "https://a.example/token" }
rules:
  - { id: one, scope: some, match: { host: a.example, method: GET, path: /x }, decide: allow, use: key }
YAML
make_one stub "$tmp/stubs.yaml" POST a.example /token "" grant_type=password
