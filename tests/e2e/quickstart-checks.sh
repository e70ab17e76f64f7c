# The second half of ./quickstart --auto: every promise of the story, checked. Sourced; uses its functions.
checks=0
ok() { checks=$((checks + 1)); printf 'ok %s\n' "$*"; }
count() { landed | tail -n "+$((before + 1))" | wc -l; }

step "a push waits for approval"
push && fail "the push landed without approval"
[ "$(count)" = 0 ] || fail "the push landed without approval"
grep -qi 'ticket' "$work/push.out" || { cat "$work/push.out"; fail "git does not show why it waits"; }
first=$(ticket)
[ -n "$first" ] || fail "no ticket is pending"
grep -q "${first:0:8}" "$work/push.out" || { cat "$work/push.out"; fail "git does not show the ticket"; }
ok "held: nothing landed, and git says which ticket it waits for"

step "approved as operator, the same push passes, once"
countersign approvals show "$first" >"$work/ticket.txt"
grep -q "$wanted" "$work/ticket.txt" || { cat "$work/ticket.txt"; fail "the ticket does not name the commit"; }
countersign approvals approve "$first" >/dev/null
push || { cat "$work/push.out"; fail "the approved push did not pass"; }
if [ "$broken" = twice ]; then
	GIT_SSL_CAINFO=$git/ca.pem git --git-dir="$git/repos/demo/app.git" -c safe.directory='*' \
		-c "http.curloptResolve=git.demo.test:$port:127.0.0.1" push -q \
		"https://$(cat "$git/user"):$(cat "$git/password")@git.demo.test:$port/demo/app.git" main:refs/heads/again
fi
[ "$(count)" = 1 ] || { landed; fail "expected exactly one push to land, $(count) did"; }
landed | tail -n 1 | grep -q "$wanted" || fail "something else than what was approved has landed"
[ "$(git -c safe.directory='*' --git-dir="$git/repos/demo/app.git" rev-parse main)" = "$wanted" ] ||
	fail "the branch is not at the approved commit"
ok "approved: exactly one push landed, with the approved commit"

step "a second, different push is held again"
commit notes.txt "again" "notes: another line"
push && fail "the second push passed on the first one's approval"
second=$(ticket)
[ -n "$second" ] && [ "$second" != "$first" ] || fail "the second push has no ticket of its own"
[ "$(count)" = 1 ] || fail "the second push landed"
ok "a second push needs its own approval"

step "denied, git shows the operator's words"
words="not on a Saturday, says the release manager"
countersign approvals deny "$second" --reason "$words" >/dev/null
push && fail "a denied push passed"
grep -q "$words" "$work/push.out" || { cat "$work/push.out"; fail "git does not show the operator's words"; }
[ "$(count)" = 1 ] || fail "the denied push landed"
ok "denied: the operator's words are in git's output"

step "the credential is nowhere inside"
inside sh -c 'env; cat /proc/*/environ 2>/dev/null | tr "\0" "\n"; cat /proc/*/cmdline 2>/dev/null | tr "\0" " "' \
	>"$work/inside.env"
[ -e "$git/password" ] || fail "no password to look for"
python3 "$top/tests/e2e/lab/canary.py" --user "$(cat "$git/user")" --secret-file "$git/password" \
	"$space" "$work/inside.env" "$work"/push.out "$work"/up.out "$work"/up.log "$work/ticket.txt" "$state" >"$work/canary.out" ||
	{ cat "$work/canary.out"; fail "the credential shows"; }
ok "the credential is not in the sandbox, its environment, any output, log or database"

countersign audit verify >"$work/verify.out" || { cat "$work/verify.out"; fail "the audit chain is broken"; }
ok "the audit chain is whole"
step "the story, from the audit log"
countersign audit tail
[ "$broken" = role ] && kill -SEGV "$(pgrep -P "$daemon" -f countersign-resolver)"
kill "$daemon"
wait "$daemon" || fail "the gateway did not end in order: status $?"
daemon=
# One line of the ledger's is due: the store was made. The rest of what is let pass says what this machine is.
if grep -hE '"level":"(warn|error)"|ERROR: [A-Za-z]*Sanitizer|runtime error:' "$work/up.log" "$work/up.out" |
	grep -vE 'made a new store|no user ids to separate|sanitizer build|Landlock|LANDLOCK'; then
	fail "a role ended, or an error is in the log"
fi
ok "no role ended before it was told to, and no log has an error"
printf 'quickstart: %d promises checked\n' "$checks"
echo '    next: install it (the last lines of "Two commands" in README.md), then "From an empty directory" there'
