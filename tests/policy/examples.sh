#!/usr/bin/env bash
# The cookbook and the shipped policies by the users' own verbs: each policy is valid without a warning, passes its cases (of
# the cookbook at least eight) and is reached by them in every rule and exception;
# a wrong expectation fails; a broken file is refused with its place.
set -u
src=${srcdir:-.}
cs=./countersign
packs=$src/conf/packs
failed=0
export ASAN_OPTIONS=detect_leaks=0 # half of its time, for what a program that ends leaves behind
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

for f in "$src"/conf/cookbook/*.yaml "$src"/conf/cookbook/agents/*.yaml "$src"/conf/cookbook/clouds/*.yaml \
	"$src"/conf/cookbook/services/*.yaml; do
	case $f in
	*_test.yaml)
		expect "test ${f##*/}" 0 ", 0 failed" $cs policy test --coverage --fail-under 100 --packs "$packs" "$f"
		[ "$(grep -c '^  - name: ' "$f")" -ge 8 ] || { echo "FAILED ${f##*/} has fewer than eight cases"; failed=1; }
		;;
	*)
		expect "check ${f##*/}" 0 ", 0 warnings" $cs policy check --packs "$packs" "$f"
		[ -f "${f%.yaml}_test.yaml" ] || { echo "FAILED ${f##*/} has no tests"; failed=1; }
		grep -q "^- .${f#"$src"/conf/cookbook/}. " "$src"/conf/cookbook/README.md || { echo "FAILED ${f##*/} is not in the README"; failed=1; }
		;;
	esac
done

cp "$src"/tests/policy/held-writes.yaml "$tmp"/
for f in "$src"/conf/policies/*.yaml; do
	name=${f##*/}
	case $name in
	*_test.yaml) expect "test the shipped $name" 0 ", 0 failed" $cs policy test --coverage --fail-under 100 --packs "$packs" "$f" ;;
	*)
		expect "check the shipped $name" 0 ", 0 warnings" $cs policy check --packs "$packs" "$f"
		# default.yaml allows nothing
		[ "$name" = default.yaml ] || [ -f "${f%.yaml}_test.yaml" ] || { echo "FAILED $name has no tests"; failed=1; }
		grep -q "$name" "$src"/conf/README.md || { echo "FAILED $name is not in conf/README.md"; failed=1; }
		;;
	esac
done
sed 's/decide: hold/decide: allow/' "$src"/tests/policy/held-writes_test.yaml >"$tmp"/wrong_test.yaml
chmod -R u+w "$tmp"
expect "a wrong expectation fails and explains" 1 "HOLD  by rule write" $cs policy test "$tmp"/wrong_test.yaml
printf 'policy: held-writes.yaml\ncases: []\n' >"$tmp"/empty_test.yaml
expect "a failure in JSON has its differences and the explanation" 1 '"key":"decide","wanted":"allow","got":"hold"' $cs policy test --json "$tmp"/wrong_test.yaml
expect "a failure in JSON has the near misses" 1 '"near_misses":[' $cs policy test --json "$tmp"/wrong_test.yaml
cat >"$tmp"/few.yaml <<'YAML'
version: 1
rules:
  - { id: a, match: { host: a.example, effect: read }, decide: allow }
  - id: b
    match: { host: b.example, effect: read }
    except: [{ path: /x }, { path: /y }]
    decide: allow
YAML
cat >"$tmp"/few_test.yaml <<'YAML'
policy: few.yaml
cases:
  - { name: a, request: { method: GET, url: "https://a.example/" }, expect: { decide: allow } }
  - { name: b, request: { method: GET, url: "https://b.example/y" }, expect: { decide: deny } }
YAML
sed 's/a.example/b.example/' "$tmp"/few_test.yaml >"$tmp"/more_test.yaml
expect "coverage: a rule and an exception of four" 0 "coverage: 2 of 4 rules and exceptions, 50%" $cs policy test --coverage "$tmp"/few_test.yaml
expect "coverage: which rule was not reached" 0 "few.yaml:4 b"$'\n' $cs policy test --coverage "$tmp"/few_test.yaml
expect "coverage: which exception was not reached" 0 "few.yaml:4 b, entry 1 of its except:" $cs policy test --coverage "$tmp"/few_test.yaml
expect "coverage: of several files together" 0 "coverage: 3 of 4 rules and exceptions, 75%" $cs policy test --coverage "$tmp"/few_test.yaml "$tmp"/more_test.yaml
expect "coverage: in JSON" 0 '"coverage":{"reached":2,"all":4,"percent":50,"not_reached":[{"file":' $cs policy test --json --coverage "$tmp"/few_test.yaml
expect "coverage: enough" 0 "2 passed" $cs policy test --fail-under 50 "$tmp"/few_test.yaml
expect "coverage: not enough" 1 "the coverage is under 51%" $cs policy test --fail-under 51 "$tmp"/few_test.yaml
expect "coverage: no percentage" 2 "0 to 100" $cs policy test --fail-under 101 "$tmp"/few_test.yaml
expect "a policy in place of its tests" 3 "few.yaml is a policy, not a file of tests: countersign policy test $tmp/few_test.yaml" $cs policy test "$tmp"/few.yaml
expect "a folder in place of tests" 3 "is a folder: name its files of tests" $cs policy test "$tmp"
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
expect "B51 policy: a file of 2 GiB" 3 "more than the 8388608 that are read" $cs policy check "$tmp"/large.yaml
expect "no file" 3 "No such file" $cs policy check "$tmp"/none.yaml
expect "no argument" 2 "usage:" $cs policy check
expect "an option of nobody" 2 "no option" $cs policy check --frce "$tmp"/bad.yaml
expect "no verb" 2 "no verb" $cs policy import a b

# A version is what a policy says: not where its files lie, nor how their paths are written.
version() { $cs policy check --json "$@" | sed -n 's/.*"digest":"\([0-9a-f]\{64\}\)".*/\1/p'; }
mkdir "$tmp"/elsewhere
printf 'include: more.yaml\n' | tee -a "$tmp"/held-writes.yaml >/dev/null
printf 'version: 1\nrules:\n  - { id: more, match: { host: b.example }, decide: deny }\n' >"$tmp"/more.yaml
cp "$tmp"/held-writes.yaml "$tmp"/more.yaml "$tmp"/elsewhere/
one=$(version "$tmp"/held-writes.yaml)
[ -n "$one" ] && [ "$one" = "$(version "$tmp"/./held-writes.yaml)" ] && [ "$one" = "$(version "$tmp"/elsewhere/held-writes.yaml)" ] &&
	echo "ok the same files elsewhere are the same version" || { echo "FAILED the version depends on the path"; failed=1; }
sed -i 's/b.example/c.example/' "$tmp"/elsewhere/more.yaml
[ "$one" != "$(version "$tmp"/elsewhere/held-writes.yaml)" ] || { echo "FAILED another rule is the same version"; failed=1; }
expect "and a decision names its file" 11 "DENY  by rule more ($tmp/elsewhere/more.yaml:3)" \
	$cs policy explain GET https://c.example/ "$tmp"/elsewhere/held-writes.yaml

policy=$src/tests/policy/held-writes.yaml
expect "explain: allowed" 0 "ALLOW by rule read" $cs policy explain GET https://api.example.com/v1/a "$policy"
expect "explain: held" 10 "HOLD  by rule write" $cs policy explain --label team=billing POST https://api.example.com/v1/a "$policy"
expect "explain: denied, near misses" 11 "is not in scope billing (label team=billing)" $cs policy explain POST https://api.example.com/v1/a "$policy"
expect "explain: in JSON" 11 '"code":"no-rule"' $cs policy explain --json POST https://api.example.com/v1/a "$policy"
expect "explain: another order" 2 "METHOD URL FILE...: countersign policy explain GET https://api.example.com/ $policy" \
	$cs policy explain "$policy" GET https://api.example.com/
expect "explain: yet another" 2 "METHOD URL FILE...: countersign policy explain GET https://api.example.com/ $policy" \
	$cs policy explain "$policy" https://api.example.com/ GET
expect "explain: no policy" 2 "countersign policy explain GET https://api.example.com/ FILE" $cs policy explain GET https://api.example.com/
expect "explain: no URL" 2 "https://" $cs policy explain GET api.example.com "$policy"
expect "explain: another order, and no scheme" 2 "the URL with http:// or https://" $cs policy explain "$policy" GET api.example.com/x
expect "explain: a method in small letters" 11 "note: a method is compared as it is written" $cs policy explain get https://api.example.com/ "$policy"
expect "explain: what the gateway would not take" 2 "400" $cs policy explain GET https://api.example.com/a/../b "$policy"
hours=$src/conf/cookbook/office-hours.yaml
deploy="POST https://deploy.example.com/v1/deployments $hours"
expect "explain: in its hours" 10 "HOLD  by rule deploy" $cs policy explain --at 2026-11-23T09:00:00+01:00 $deploy
expect "explain: out of its hours" 11 "deploy (hold, " $cs policy explain --at 2026-11-23T08:00:00+01:00 $deploy
expect "explain: no time" 2 "--at is a time with its zone" $cs policy explain --at 09:00 $deploy
cp "$hours" "$tmp"/office-hours.yaml
printf 'policy: office-hours.yaml\ncases:\n  - name: a\n    request: { method: GET, url: "https://deploy.example.com/" }\n    expect: { decide: allow }\n  - name: b\n    request: { method: POST, url: "https://deploy.example.com/v1/deployments" }\n    expect: { because: floor, decide: deny }\n' >"$tmp"/now_test.yaml
expect "test: a case without at: that asks the time says so" 1 "note: the case has no at:" $cs policy test "$tmp"/now_test.yaml
sed -i '/name: b/,$d' "$tmp"/now_test.yaml
[[ $($cs policy test "$tmp"/now_test.yaml) == *note:* ]] && { echo "FAILED a note without need"; failed=1; }
cat > "$tmp"/body.yaml <<'YAML'
version: 1
credentials: { c: { source: { env: A }, inject: { basic: true }, only: [{ host: a.example, scheme: http }] } }
rules:
  - { id: small, match: { host: a.example, method: POST, json: [{ pointer: /n, int_lte: 5 }] }, decide: allow }
  - { id: open, match: { host: a.example, scheme: http, effect: read }, decide: allow, use: c }
YAML
echo '{"n": 3}' > "$tmp"/body.json
small="POST https://a.example/x $tmp/body.yaml"
printf '{"n": "\xc2\x9b2J\xe2\x80\xae"}' > "$tmp"/odd.json
expect "explain: nothing in a body moves the cursor or turns the text" 11 'n is the string "\u{9b}2J\u{202e}", the rule wants' $cs policy explain --body "$tmp"/odd.json --header "Content-Type: application/json" $small
expect "explain: a body that is seen" 0 "ALLOW by rule small" $cs policy explain --body "$tmp"/body.json --header "Content-Type: application/json" $small
expect "explain: a body of no type" 11 "why: the body has no Content-Type" $cs policy explain --body "$tmp"/body.json $small
expect "explain: a body in a coding" 11 '"cause":"content-coding","why":"the body is in a content coding","asked_about":"/n"' $cs policy explain --json --body "$tmp"/body.json --header "Content-Type: application/json" --header "Content-Encoding: gzip" $small
expect "explain: a body that is none" 11 "why: the body is not well-formed JSON" $cs policy explain --body "$tmp"/body.yaml --header "Content-Type: application/json" $small
expect "explain: a credential in clear text" 11 "credential c would travel in clear text: upstreams: lets it" $cs policy explain GET http://a.example/x "$tmp"/body.yaml
expect "check: a credential in clear text" 0 "P111" $cs policy check "$tmp"/body.yaml
refund="POST https://api.pay.example/v1/refunds $src/conf/cookbook/payments.yaml"
expect "explain: a limit, in words" 0 "at most 20000 of amount in 1d, of all together (this one: 100); past that: held by rule refunds" \
	$cs policy explain --data 'amount=100&currency=eur' $refund
expect "explain: a limit, as JSON" 0 '"of":"form:amount","max":20000' $cs policy explain --json --data 'amount=100&currency=eur' $refund
cp "$src"/conf/cookbook/payments.yaml "$tmp"/
sed 's/rule: small-refunds, field/rule: smal-refunds, field/' "$src"/conf/cookbook/payments_test.yaml >"$tmp"/payments_test.yaml
chmod -R u+w "$tmp"
expect "a case that says a limit is used which no rule has" 1 "names a limit that no rule has" $cs policy test "$tmp"/payments_test.yaml
cat >"$tmp"/none_test.yaml <<'YAML'
policy: few.yaml
cases:
  - name: no rule
    request: { method: GET, url: "https://b.example/y" }
    expect: { decide: deny, because: no-rule, rule: none }
YAML
expect "test: rule: none is that no rule decides" 0 "1 passed" $cs policy test "$tmp"/none_test.yaml
sed 's,/y",/z",; s/deny, because: no-rule/allow/' "$tmp"/none_test.yaml >"$tmp"/some_test.yaml
expect "test: and not that one does" 1 "rule: wanted none, got b" $cs policy test "$tmp"/some_test.yaml
sed 's/no-rule/norule/' "$tmp"/none_test.yaml >"$tmp"/code_test.yaml
expect "test: a code of nothing has its place" 3 'code_test.yaml:5:38: error P008: because cannot be "norule"; did you mean "no-rule"?' \
	$cs policy test "$tmp"/code_test.yaml
sed '4i\    as: { labels: { region: [eu, us] } }' "$tmp"/none_test.yaml >"$tmp"/labels_test.yaml
expect "test: a label has one value" 3 "labels_test.yaml:4:29: error P008: a single value is wanted here, this is a list" \
	$cs policy test "$tmp"/labels_test.yaml
sed '4d' "$tmp"/none_test.yaml >"$tmp"/nothing_test.yaml
expect "test: a case of nothing" 3 "nothing_test.yaml:3:5: error P015: a case has request: or git_push:" $cs policy test "$tmp"/nothing_test.yaml
expect "check: no code" 2 'there is no code P200. In the message "p.yaml:4:7: error P006: ..." the code is P006' $cs policy check --explain P200
expect "check: a code" 0 "P118 (warns)" $cs policy check --explain P118
expect "check: a code in small letters" 0 "P118 (warns)" $cs policy check --explain p118
expect "explain: a label twice" 2 "--label region is there twice" \
	$cs policy explain --label region=eu --label region=us GET https://b.example/ "$tmp"/few.yaml
expect "explain: a label of no name" 2 "--label is KEY=VALUE" $cs policy explain --label =us GET https://b.example/ "$tmp"/few.yaml
expect "sandbox create: a label twice" 2 "--label a is there twice" $cs sandbox create two --label a=b --label c=b --label a=c
exit $failed
