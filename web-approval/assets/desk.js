// Keeps the page up to date, tells that something waits, and takes keys. It never decides, never takes the focus, and
// moves nothing under a finger. Everything foreign arrives as JSON and is shown with textContent, or as the page's own HTML.

const news = document.getElementById("news");
const page = document.body.dataset.page;
const mine = document.getElementById("mine");

function make(name, words, more = {}) {
  const el = document.createElement(name);
  el.textContent = words;
  return Object.assign(el, more);
}

function tell(words, href, link) {
  news.replaceChildren(make("span", words), make("a", link, { href }));
}

// --- times --------------------------------------------------------------------

function left(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h${Math.floor(s / 60) % 60 ? ` ${Math.floor(s / 60) % 60} min` : ""}`;
  return `${Math.floor(s / 86400)} days`;
}

function countdown() {
  for (const el of document.querySelectorAll("[data-expires]")) {
    const ms = Number(el.dataset.expires) - Date.now();
    const words = ms > 0 ? `expires in ${left(ms)}` : "expired";
    if (el.textContent !== words) el.textContent = words;
  }
}

function stamp(ms) {
  return `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

// Where the clock on the wall says something else than UTC, that stands beside it.
function local(root) {
  for (const el of root.querySelectorAll("time[datetime]")) {
    const at = new Date(el.dateTime);
    if (Number.isNaN(Number(at)) || at.getTimezoneOffset() === 0 || el.querySelector(".here")) continue;
    const far = at.getUTCDate() !== at.getDate() ? { weekday: "short" } : {};
    const here = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...far });
    el.append(make("span", ` (${here} here)`, { className: "here" }));
  }
}

// --- does the agent still wait? ---------------------------------------------

// As web-approval/page/page_asker.c says it.
function sayClient(ticket) {
  const { client, state, id } = ticket;
  if (!client || client.later) return; // what it says of those does not change while they are open
  const long = page === "ticket" && document.getElementById("asker");
  const word = (page === "list" || page === "group") && document.querySelector(`[data-ticket~="${id}"] .asker`);
  if (long) {
    const left = client.since_ms ? "The agent left" : "No agent waits";
    const when = !client.waits && client.since_ms ? ` at ${stamp(client.since_ms)}` : "";
    const then = state === "approved" ? "approved, this is sent when it asks again"
      : client.waits ? "a yes sends this now" : "after a yes this is sent when it asks again";
    long.querySelector("b").textContent = client.waits ? "The agent waits" : left;
    long.querySelector("span").textContent = `${when}: ${then}.`;
  }
  if (word) word.textContent = client.waits ? "agent waits" : "agent left";
  for (const el of [long, word]) if (el) el.classList.toggle("waits", client.waits);
}

// As web-approval/people/looking.c says it.
function sayLooking({ id, claim }) {
  const by = claim ? plain(claim.by) : "";
  for (const el of document.querySelectorAll(`[data-ticket~="${id}"] .looking`)) el.textContent = by ? `${by} is looking` : "";
  const here = document.getElementById("looking");
  if (!here || document.getElementById("ticket")?.dataset.ticket !== id) return;
  const own = claim?.by === here.dataset.me;
  here.textContent = own ? "You are looking at this, as the others see."
    : by ? `${by} is looking at this: speak with them first. What you decide counts all the same.`
    : "Nobody has said that they are looking at this.";
  here.classList.toggle("other", Boolean(by) && !own);
}

// Of the tickets that are on the page; news that come while one is asked for are asked for once more.
const asked = new Map();
async function onAsker(subject) {
  if (!document.querySelector(`[data-ticket~="${CSS.escape(subject)}"]`)) return;
  if (asked.has(subject)) return void asked.set(subject, true);
  asked.set(subject, false);
  const answer = await fetch(`/api/v1/tickets/${encodeURIComponent(subject)}`);
  if (answer.ok) {
    const ticket = await answer.json();
    sayClient(ticket);
    sayLooking(ticket);
  }
  const again = asked.get(subject);
  asked.delete(subject);
  if (again) onAsker(subject);
}

// --- something waits -------------------------------------------------------------

// What nobody would see, or what rearranges the rest, is shown as its number.
function plain(text) {
  return String(text ?? "").replace(/[\p{C}\p{Zl}\p{Zp}\p{M}]/gu, (c) => `\\u{${c.codePointAt(0).toString(16)}}`).slice(0, 160);
}

const title = document.title;
const fresh = new Set();
function badge() {
  document.title = fresh.size ? `(${fresh.size}) ${title}` : title;
}

function notify(words, body, href) {
  const note = new Notification(words, { body, tag: href });
  note.onclick = () => { window.focus(); location.assign(href); };
}

const wants = () => "Notification" in window && Notification.permission === "granted" && localStorage.getItem("notify") === "on";

// Of a few, which; of a flood, how many.
async function announce(subjects) {
  const unseen = subjects.filter((id) => !fresh.has(id) && !document.querySelector(`[data-ticket~="${CSS.escape(id)}"]`));
  const waiting = [];
  for (const id of unseen.slice(0, 3)) {
    const answer = await fetch(`/api/v1/tickets/${encodeURIComponent(id)}`);
    const ticket = answer.ok ? await answer.json() : {};
    if (ticket.state === "pending") waiting.push(ticket);
  }
  for (const t of waiting) fresh.add(t.id);
  for (const id of unseen.slice(3)) fresh.add(id);
  badge();
  if (!document.hidden || !wants()) return;
  if (unseen.length > 3) notify(`${unseen.length} requests are new or changed`, "Open the list to see them.", "/");
  else for (const t of waiting) notify(plain(t.summary) || "A request waits", plain(`${t.sandbox} asks, ${t.host}`), `/tickets/${t.id}`);
}

// --- the list, as it is now -------------------------------------------------------

function load(path) {
  return new Promise((done) => {
    const ask = new XMLHttpRequest();
    ask.open("GET", path);
    ask.responseType = "document";
    ask.onloadend = () => done(ask.status === 200 ? ask.response : null);
    ask.send();
  });
}

const ids = (root) => new Set([...root.querySelectorAll("[data-ticket]")].flatMap((el) => el.dataset.ticket.split(" ")));
let held = null;

function show(next) {
  held = null;
  document.getElementById("newer")?.remove();
  const before = ids(document);
  for (const part of ["waiting", "lately"]) {
    const from = next.getElementById(part), to = document.getElementById(part);
    if (from && to) to.replaceWith(document.importNode(from, true));
    else if (from) document.getElementById("waiting").after(document.importNode(from, true));
  }
  const n = next.querySelector(".rooms .n"), link = document.querySelector('.rooms a[href="/"]');
  link.querySelector(".n")?.remove();
  if (n) link.append(document.importNode(n, true));
  for (const el of document.querySelectorAll("#waiting [data-ticket]"))
    el.classList.toggle("fresh", el.dataset.ticket.split(" ").some((id) => !before.has(id)));
  countdown();
  local(document);
}

// Who is about to press something there is not moved: it is said, and shown when asked for or when the hand is away.
function offer(next) {
  const list = document.getElementById("waiting");
  if (!list.matches(":hover") && !list.contains(document.activeElement)) return show(next);
  const first = !held, now = ids(next.getElementById("waiting")), was = ids(list);
  held = next;
  const n = [...now].filter((id) => !was.has(id)).length;
  const words = n ? `${n} new` : "The list has changed";
  const button = document.getElementById("newer") ?? make("button", words, { id: "newer", type: "button" });
  button.textContent = `${words}: show`;
  button.onclick = () => { show(held); document.getElementById("main").focus(); };
  if (!button.isConnected) document.querySelector(".title").append(button);
  if (first) list.addEventListener("pointerleave", () => { if (held && !list.contains(document.activeElement)) show(held); }, { once: true });
  return undefined;
}

// At most one question at a time, and one more after it if something came meanwhile.
const changed = new Set();
let asking = false;
async function onList() {
  if (asking) return;
  asking = true;
  while (changed.size) {
    const subjects = [...changed];
    changed.clear();
    await announce(subjects);
    const next = await load("/");
    if (next?.getElementById("waiting")) offer(next);
    await new Promise((done) => { setTimeout(done, 500); });
  }
  asking = false;
}

async function onTicket(subject) {
  const here = document.getElementById("ticket");
  if (!here || subject !== here.dataset.ticket) return;
  const answer = await fetch(`/api/v1/tickets/${subject}`);
  if (!answer.ok) return;
  const ticket = await answer.json();
  if (ticket.state === here.dataset.state) return;
  here.dataset.state = ticket.state;
  for (const button of document.querySelectorAll(".decide button")) button.disabled = true;
  tell(`This request is now: ${ticket.state}`, `/tickets/${subject}`, "Show what became of it");
}

function onDiff(subject) {
  const here = document.getElementById("ticket");
  if (!here || subject !== here.dataset.ticket || !document.getElementById("diff")) return;
  tell("What this push changes has been looked at", `/tickets/${subject}`, "Show it");
}

const moved = new Set();
function onGroup(subject) {
  if (!ids(document).has(subject)) return;
  moved.add(subject);
  tell(`${moved.size} of these changed`, location.pathname, "Load them again");
}

// --- a conversation ------------------------------------------------------------------

// What changes is shown anew: what was said, what waits, its state. What is being written stays, and so does what was opened.
// One load at a time, and one after it for all that came meanwhile.
let loading = null, talkNext = null, talkAt = null;

function talkAnew(files) {
  if (loading) {
    talkNext = { files: files || !!talkNext?.files };
    return loading;
  }
  loading = talkLoad(files).finally(() => {
    const more = talkNext;
    loading = talkNext = null;
    if (more) talkAnew(more.files);
  });
  return loading;
}

async function talkLoad(files) {
  const here = document.getElementById("talk");
  const whole = await load(`${location.pathname}${files ? "" : "?part=1"}`), now = whole?.getElementById("talk");
  if (!now) return;
  talkAt = { ...now.dataset }; // also when nothing is replaced: what is known now is not asked for again
  const atEnd = scrollY > 0 && innerHeight + scrollY >= document.body.scrollHeight - 80;
  for (const el of here.querySelectorAll("details[open]")) now.querySelector(`#${CSS.escape(el.id)}`)?.setAttribute("open", "");
  if (here.contains(document.activeElement) || here.matches(":hover") && here.querySelector("form:hover, .card:hover")) return;
  here.replaceWith(document.importNode(now, true));
  if (files) document.getElementById("files").replaceWith(document.importNode(whole.getElementById("files"), true));
  countdown();
  local(document);
  if (atEnd) scrollTo({ top: document.body.scrollHeight });
}

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

// 204: something happened, or nothing for long. 202: all of it is here, and nothing goes on. Else it is looked again later.
async function talkOn() {
  talkAt = { ...document.getElementById("talk").dataset };
  for (let was = talkAt.busy; ;) {
    await pause(document.hidden ? 2000 : 400);
    if (document.hidden) continue;
    if (was === "1" && talkAt.busy === "0") await talkAnew(true); // with the files, as the turn left them
    was = talkAt.busy;
    const answer = await fetch(`/conversations/${talkAt.talk}/news?after=${talkAt.after}`).catch(() => null);
    if (answer?.status === 403) {
      tell("This page is not kept up to date any more", location.pathname, "Load it again");
      return;
    }
    if (answer?.status === 202) {
      await pause(5000);
      continue;
    }
    if (answer?.status !== 204) {
      tell("This page is not up to date: what happens cannot be asked for now, and is tried again", location.pathname, "Load it again");
      await pause(5000);
    } else if (news.textContent.startsWith("This page is not up to date")) {
      news.replaceChildren();
    }
    await talkAnew(false);
  }
}

// A request that is not shown here may be of any sandbox: those are looked for together, once in a while.
let soon = 0;

function talkTicket(subject) {
  if (document.getElementById("talk").querySelector(`[href="/tickets/${CSS.escape(subject)}"]`)) talkAnew(false);
  else soon ||= setTimeout(() => { soon = 0; talkAnew(false); }, talkAt?.busy === "1" ? 1000 : 5000);
}

function came(subject) {
  if (page === "talk") talkTicket(subject);
  if (page === "ticket") onTicket(subject);
  if (page === "group") onGroup(subject);
  changed.add(subject);
  if (page === "list") onList();
  else if (changed.size === 1) setTimeout(() => { const all = [...changed]; changed.clear(); announce(all); }, 500);
}

function listen() {
  const events = new EventSource("/api/v1/events");
  events.addEventListener("ticket", (ev) => came(JSON.parse(ev.data).subject));
  events.addEventListener("diff", (ev) => onDiff(JSON.parse(ev.data).subject));
  events.addEventListener("asker", (ev) => onAsker(JSON.parse(ev.data).subject));
  addEventListener("pagehide", () => events.close());
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || page !== "list") return;
    fresh.clear();
    badge();
  });
}

// --- keys ---------------------------------------------------------------------------

// Letters alone only move, and can be turned off; what leads to a decision wants Alt, and then the key that presses.
const keysOn = () => localStorage.getItem("keys") !== "off";
const help = [["j", "k"], "the next, the one before", ["Enter"], "open it", ["Alt", "A"], "go to Approve; Enter presses it",
  ["Alt", "D"], "go to Deny", ["?"], "these words"];

function step(by) {
  const all = [...document.querySelectorAll(".card h3 a, .row > a, tbody td:first-child a")].filter((el) => el.checkVisibility());
  const at = all.indexOf(document.activeElement);
  const to = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  if (!to) return;
  to.focus({ focusVisible: true });
  to.scrollIntoView({ block: "nearest" });
}

function showHelp() {
  const box = document.createElement("dialog"), list = document.createElement("dl");
  list.className = "pairs";
  for (let i = 0; i < help.length; i += 2) {
    const keys = document.createElement("dt");
    help[i].forEach((k) => keys.append(make("kbd", k), " "));
    list.append(keys, make("dd", help[i + 1]));
  }
  const close = make("button", "Close");
  close.onclick = () => box.close();
  box.onclose = () => box.remove();
  box.ariaLabel = "Keys";
  box.append(make("h2", "Keys"), list, close);
  document.body.append(box);
  box.showModal();
}

function onKey(ev) {
  if (ev.ctrlKey || ev.metaKey || document.querySelector("dialog")) return;
  if (ev.altKey) {
    const button = ev.code === "KeyA" ? ".ticket .go.yes" : ev.code === "KeyD" ? ".ticket .go.no" : null;
    const el = button && document.querySelector(button);
    if (!el) return;
    el.focus({ focusVisible: true });
    ev.preventDefault();
  } else if (keysOn() && !ev.target.matches("input, select, textarea")) {
    if (ev.key === "j" || ev.key === "k") step(ev.key === "j" ? 1 : -1);
    if (ev.key === "?") showHelp();
  }
}

// --- what is this browser's own --------------------------------------------------------

function toggle(words, press) {
  const button = make("button", words(), { type: "button", className: "quiet" });
  button.onclick = async () => { await press(); button.textContent = words(); };
  mine.append(button);
}

if (mine) {
  if ("Notification" in window && Notification.permission !== "denied")
    toggle(() => (wants() ? "Notifications are on" : "Notify me"), async () => {
      const on = !wants() && (await Notification.requestPermission()) === "granted";
      localStorage.setItem("notify", on ? "on" : "off");
    });
  toggle(() => (keysOn() ? "Keys are on (?)" : "Keys are off"), () => localStorage.setItem("keys", keysOn() ? "off" : "on"));
  mine.hidden = false;
  document.addEventListener("keydown", onKey);
  countdown();
  local(document);
  if (page === "talk") talkOn();
  setInterval(countdown, 1000);
  listen();
}
