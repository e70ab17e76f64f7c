#!/usr/bin/env bash
# The example policies by the users' own verbs: each is valid without a warning and passes its tests;
# a wrong expectation fails; a broken file is refused with its place.
set -u
src=${srcdir:-.}
cs=./countersign
packs=$src/conf/packs
failed=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

expect() { # NAME WANTED-EXIT WORDS-IN-OUTPUT COMMAND...
	local name=$1 want=$2 words=$3 out rc
	shift 3
	out=$("$@" 2>&1)
	rc=$?
	if [ "$rc" = "$want" ] && [[ $out == *"$words"* ]]; then
		echo "ok $name"
	else
		printf 'FAILED %s: exit %s (wanted %s), wanted "%s" in:\n%s\n' "$name" "$rc" "$want" "$words" "$out"
		failed=1
	fi
}

for f in "$src"/conf/examples/*.yaml; do
	case $f in
	*_test.yaml) expect "test ${f##*/}" 0 ", 0 failed" $cs policy test --packs "$packs" "$f" ;;
	*) expect "check ${f##*/}" 0 ", 0 warnings" $cs policy check --packs "$packs" "$f" ;;
	esac
done

cp "$src"/conf/examples/held-writes.yaml "$tmp"/
sed 's/decide: hold/decide: allow/' "$src"/conf/examples/held-writes_test.yaml >"$tmp"/wrong_test.yaml
chmod -R u+w "$tmp"
expect "a wrong expectation fails and explains" 1 "HOLD  by rule write" $cs policy test "$tmp"/wrong_test.yaml
printf 'policy: held-writes.yaml\ncases: []\n' >"$tmp"/empty_test.yaml
expect "no case proves nothing" 1 "0 passed, 0 failed" $cs policy test "$tmp"/empty_test.yaml
printf 'version: 1\nrules:\n  - id: a\n    match: { hots: a.example }\n    decide: allow\n' >"$tmp"/bad.yaml
expect "B51 policy: a misspelt key" 3 'bad.yaml:4:14: error P006: match: has no key "hots"; did you mean "host"?' \
	$cs policy check "$tmp"/bad.yaml
expect "the same as JSON" 3 '"valid":false' $cs policy check --json "$tmp"/bad.yaml
ln -s bad.yaml "$tmp"/link.yaml
expect "B51 policy: a symbolic link" 3 "is a symbolic link" $cs policy check "$tmp"/link.yaml
expect "B51 policy: a device" 3 "is not a regular file" $cs policy check /dev/null
cp "$tmp"/held-writes.yaml "$tmp"/open.yaml
chmod o+w "$tmp"/open.yaml
expect "B51 policy: a file that anybody may write" 3 "anybody may write" $cs policy check "$tmp"/open.yaml
truncate -s 2G "$tmp"/large.yaml
expect "B51 policy: a file of 2 GiB" 3 "more than the 1048576 that are read" $cs policy check "$tmp"/large.yaml
expect "no file" 3 "No such file" $cs policy check "$tmp"/none.yaml
expect "no argument" 2 "usage:" $cs policy check
expect "an option of nobody" 2 "no option" $cs policy check --frce "$tmp"/bad.yaml
expect "not available yet" 2 "not available yet" $cs policy diff a b

policy=$src/conf/examples/held-writes.yaml
expect "explain: allowed" 0 "ALLOW by rule read" $cs policy explain GET https://api.example.com/v1/a "$policy"
expect "explain: held" 10 "HOLD  by rule write" $cs policy explain --label team=billing POST https://api.example.com/v1/a "$policy"
expect "explain: denied, near misses" 11 "write (scope)" $cs policy explain POST https://api.example.com/v1/a "$policy"
expect "explain: in JSON" 11 '"code":"no-rule"' $cs policy explain --json POST https://api.example.com/v1/a "$policy"
expect "explain: no URL" 2 "https://" $cs policy explain GET api.example.com "$policy"
expect "explain: what the gateway would not take" 2 "400" $cs policy explain GET https://api.example.com/a/../b "$policy"
cat > "$tmp"/body.yaml <<'YAML'
version: 1
credentials: { c: { source: { env: A }, inject: { basic: true }, only: [{ host: a.example, scheme: http }] } }
rules:
  - { id: small, match: { host: a.example, method: POST, json: [{ pointer: /n, int_lte: 5 }] }, decide: allow }
  - { id: open, match: { host: a.example, scheme: http, effect: read }, decide: allow, use: c }
YAML
echo '{"n": 3}' > "$tmp"/body.json
small="POST https://a.example/x $tmp/body.yaml"
expect "explain: a body that is seen" 0 "ALLOW by rule small" $cs policy explain --body "$tmp"/body.json --header "Content-Type: application/json" $small
expect "explain: a body of no type" 11 "why: the body has no Content-Type" $cs policy explain --body "$tmp"/body.json $small
expect "explain: a body in a coding" 11 '"why":"the body is in a content coding"' $cs policy explain --json --body "$tmp"/body.json --header "Content-Type: application/json" --header "Content-Encoding: gzip" $small
expect "explain: a body that is none" 11 "why: the body is malformed" $cs policy explain --body "$tmp"/body.yaml --header "Content-Type: application/json" $small
expect "explain: a credential in clear text" 11 "because credential-cleartext" $cs policy explain GET http://a.example/x "$tmp"/body.yaml
expect "check: a credential in clear text" 0 "P111" $cs policy check "$tmp"/body.yaml
exit $failed
