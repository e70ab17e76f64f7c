// Says that something changed; never moves anything, never takes the focus, never decides.
// Everything foreign arrives as JSON and is shown with textContent.

const news = document.getElementById("news");
const page = document.body.dataset.page;

function tell(words, href, link) {
  const text = document.createElement("span");
  text.textContent = words;
  const a = document.createElement("a");
  a.href = href;
  a.textContent = link;
  news.replaceChildren(text, a);
}

// --- time that is left ------------------------------------------------------

function left(ms) {
  const s = Math.floor(ms / 1000);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} days`;
}

function countdown() {
  for (const el of document.querySelectorAll("[data-expires]")) {
    const ms = Number(el.dataset.expires) - Date.now();
    const words = ms > 0 ? `expires in ${left(ms)}` : "expired";
    if (el.textContent !== words) el.textContent = words;
  }
}

// --- does the agent still wait? ---------------------------------------------

function stamp(ms) {
  return `${new Date(ms).toISOString().slice(0, 19).replace("T", " ")} UTC`;
}

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

// Of the tickets that are on the page; news that come while one is asked for are asked for once more.
const asked = new Map();
async function onAsker(subject) {
  if (!document.querySelector(`[data-ticket~="${CSS.escape(subject)}"]`)) return;
  if (asked.has(subject)) return void asked.set(subject, true);
  asked.set(subject, false);
  const answer = await fetch(`/api/v1/tickets/${encodeURIComponent(subject)}`);
  if (answer.ok) sayClient(await answer.json());
  const again = asked.get(subject);
  asked.delete(subject);
  if (again) onAsker(subject);
}

// --- what happened elsewhere ------------------------------------------------

function onList() {
  const shown = new Set([...document.querySelectorAll("[data-ticket]")].flatMap((el) => el.dataset.ticket.split(" ")));
  const fresh = new Set();
  let changed = 0;
  return (subject) => {
    if (shown.has(subject)) changed += 1;
    else fresh.add(subject);
    const words = fresh.size ? `${fresh.size} new or changed` : "Something here was decided";
    tell(words, "/", "Show");
    const base = document.title.replace(/^\(\d+\) /, "");
    document.title = fresh.size ? `(${fresh.size}) ${base}` : base;
    return changed;
  };
}

function onTicket() {
  const here = document.getElementById("ticket");
  return async (subject) => {
    if (!here || subject !== here.dataset.ticket) return;
    const answer = await fetch(`/api/v1/tickets/${subject}`);
    if (!answer.ok) return;
    const ticket = await answer.json();
    if (ticket.state === here.dataset.state) return;
    here.dataset.state = ticket.state;
    for (const button of document.querySelectorAll(".decide button")) button.disabled = true;
    tell(`This request is now: ${ticket.state}`, `/tickets/${subject}`, "Show what became of it");
  };
}

function onGroup() {
  const shown = new Set([...document.querySelectorAll("[data-ticket]")].map((el) => el.dataset.ticket));
  const changed = new Set();
  return (subject) => {
    if (!shown.has(subject)) return;
    changed.add(subject);
    tell(`${changed.size} of these changed`, location.pathname, "Load them again");
  };
}

function listen(act) {
  const events = new EventSource("/api/v1/events");
  events.addEventListener("ticket", (ev) => act(JSON.parse(ev.data).subject));
  events.addEventListener("asker", (ev) => onAsker(JSON.parse(ev.data).subject));
  addEventListener("pagehide", () => events.close());
}

countdown();
setInterval(countdown, 1000);
if (page === "list") listen(onList());
if (page === "ticket") listen(onTicket());
if (page === "group") listen(onGroup());
