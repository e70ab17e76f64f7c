// page.mjs against desk_parent.py: its tickets are known, so what a hostile one may not do can be checked.
import { approve, args, axe, check, chromium, covered, flags, guard, layout, looks, opened, origin, signIn } from "./page.mjs";

const hostile = "hst" + "0".repeat(23), twice = "dp0" + "0".repeat(23), big = "bng" + "0".repeat(23), bin = "bnr" + "0".repeat(23);
const [picture, damaged] = ["pct", "pcb"].map((n) => n + "0".repeat(23));
const [first, second] = ["gr0", "gr1"].map((n) => n + "0".repeat(23));
const [past, fresh, gone] = ["past", "new0", "g0ne"].map((n) => n + "0".repeat(22));

async function hostileTicket(context) {
  const page = await context.newPage(), strangers = [];
  guard(page, strangers);
  await page.goto(`${origin}/tickets/${hostile}`);
  await page.waitForTimeout(800);
  check(strangers.length === 0, `a hostile ticket does nothing: ${strangers}`);
  check((await page.locator("main script, main img, main svg, main iframe").count()) === 0, "no element of the request's making");
  check((await page.locator("main form").count()) === 3, "only the three forms of the page");
  const text = await page.locator("main").innerText();
  // eslint-disable-next-line no-control-regex
  check(!/[\u202a-\u202e\u2066-\u2069\u200b-\u200f\u2060\ufeff\u061c\u001b\u0085\u0300-\u036f\u{e0000}-\u{e007f}]/u.test(text),
    "no character that hides or rearranges is in the text");
  check(text.includes("\\u{202e}"), "it is shown as an escape");
  check(text.includes("letters may imitate"), "an internationalised name is flagged");
  check(text.includes("empty lines"), "padding is counted, not shown");
  check((await page.getByRole("button", { name: "Approve this request" }).count()) === 1, "a request's own words make no button");
  await page.close();
  covered("E14", "E16", "E18", "E20");
}

// A picture stands where the request has it, as wide as the screen lets it; with one that cannot be shown nothing is approved.
async function pictures(context) {
  const page = await context.newPage(), strangers = [];
  guard(page, strangers);
  await page.goto(`${origin}/tickets/${picture}`);
  const img = page.locator("main figure img");
  check((await img.count()) === 1, "one picture");
  const is = await img.evaluate(async (el) => { await el.decode(); return [el.naturalWidth, el.naturalHeight, el.width <= innerWidth, el.alt]; });
  check(is[0] === 1036 && is[1] === 288 && is[2] && is[3] === "Picture 1 of this request: PNG, 1036 \u00d7 288 pixels", `it is shown: ${is}`);
  await page.getByRole("button", { name: "Approve this request" }).waitFor({ state: "visible" });
  await page.goto(`${origin}/tickets/${damaged}`);
  check((await page.locator("main figure img").count()) === 1 && (await page.locator("main figure .note").count()) === 1, "one of two is shown");
  check((await page.locator("form.approve").count()) === 0, "what cannot be shown cannot be approved");
  const text = await page.innerText("main");
  check(text.includes("second: A picture that is damaged") && text.includes("Download the exact bytes"), `it is said, and can be had: ${text.slice(0, 800)}`);
  check(strangers.length === 0, `nothing strange: ${strangers}`);
  await page.close();
  covered("E15", "E19");
}

async function longBodies(context) {
  const page = await context.newPage();
  await page.goto(`${origin}/tickets/${big}`);
  check((await page.getByRole("button", { name: "Approve this request" }).count()) === 0, "a cut body cannot be approved");
  await page.getByRole("link", { name: "Read all of it, then approve" }).click();
  check((await page.locator("pre.body").first().innerText()).includes('"delete": "everything"'), "its end is there");
  const button = page.getByRole("button", { name: "Approve this request" });
  await button.waitFor({ state: "visible" });
  await button.click(); // the box is not ticked: the browser keeps the form
  check(page.url().endsWith("/whole"), "not without the box");
  await page.getByRole("checkbox").check();
  await button.click();
  await page.waitForURL(`${origin}/tickets/${big}`);
  await page.goto(`${origin}/tickets/${bin}/whole`);
  check((await page.innerText("main")).includes("too long for a page"), "two megabytes are said to be cut");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download the exact bytes" }).click()]);
  const { statSync } = await import("node:fs");
  check(statSync(await download.path()).size === 2 * 1024 * 1024, "the download has every byte");
  await page.close();
  covered("E15", "E17");
}

// What an approver is to know beside the request: of this moment, of why it is held, of what a yes does.
async function notices(context) {
  const page = await context.newPage();
  const has = async (path, where, yes, no = []) => {
    await page.goto(origin + path);
    const text = (await page.locator(where).allInnerTexts()).join("\n").replace(/\s+/g, " ");
    for (const words of yes) check(text.includes(words), `${path} ${where} says "${words}": ${text.slice(0, 400)}`);
    for (const words of no) check(!text.includes(words), `${path} ${where} does not say "${words}": ${text.slice(0, 400)}`);
  };
  const moment = ["Writes are frozen by uid 0", "Shadow mode.", "An earlier policy is in force: version 4f0c4f0c4f0c, pinned by a rollback by uid 1000, 3 h ago.",
    "A change of the policy was refused: the end of a rollback by uid 1000, "];
  await has("/", ".alert", moment, ["wanted hold"]);
  await page.getByText("Why it was refused").click();
  check((await page.locator(".alert details p").innerText()).includes("wanted hold, got allow"), "the reason of a refusal opens");
  await has("/", ".card", ["past a limit", "no rule fits it"]);
  await has("/", ".row", ["by the policy", "by the end of its time", "by uid 0"]);
  await has(`/tickets/${past}`, ".alert", moment.slice(0, 3), ["A change of the policy"]);
  await has(`/tickets/${past}`, ".title", ["asked by builder", "held by large-payments, past a limit", "expires in"]);
  await has(`/tickets/${past}`, "aside", ["is past its limit. Rule small-payments: the limit of 2 requests in 1 day is used up"]);
  await has(`/tickets/${past}`, "section[aria-labelledby=does]", ["amount 250"], ["small-payments"]);
  await has(`/tickets/${past}`, ".decide", ["exactly as shown, with the credential pay: when the agent asks again.",
    "Writes are frozen: a yes counts, but nothing leaves before countersign thaw."], ["not released"]);
  await has(`/tickets/${past}`, "aside", ["Whether it will be released is not known"], ["does not know it"]);
  await has(`/tickets/${fresh}`, ".title", ["held: no rule fits it"]);
  await has(`/tickets/${fresh}`, "aside", ["No rule: what no rule fits waits while the policy is learning"], ["not the judge's"]);
  await has(`/tickets/${fresh}`, "section[aria-labelledby=does]", ["Limit not the judge's"]);
  await has(`/tickets/${fresh}`, ".decide", ["exactly as shown, without a credential"], ["not released"]);
  await has(`/tickets/${gone}`, ".outcome", ["withdrawn and never leaves: by the policy as it was then, it would not have been held like this any more (another policy, or the hours of a rule).", "Decided by the policy, 20"], ["on the"]);
  await page.close();
}

// A burst: opened before it is decided, the odd one out of it, and one that changed meanwhile said.
async function group(context) {
  const page = await context.newPage(), strangers = [];
  guard(page, strangers);
  await page.goto(origin);
  const card = page.locator(".card.group");
  check((await card.count()) === 1 && (await card.innerText()).includes("8 alike: Invite somebody to acme"), "a burst is one row");
  check((await card.locator("button, input").count()) === 0, "nothing is decided on the list");
  await card.getByRole("link").click();
  await page.waitForURL(`${origin}/groups/${first}`);
  await page.waitForTimeout(700);
  check((await page.locator("tr.odd").innerText()).includes("owner"), "the odd one stands out");
  check(!(await page.locator("tr.odd input").isChecked()), "and is not picked");
  check((await page.locator("tbody input:checked").count()) === 6, "what hides something is not picked either");
  check((await page.locator("section[aria-labelledby=common]").innerText()).includes("core"), "what they share is said");
  check((await page.locator("main b b, main script").count()) === 0, "a value makes no element");
  const other = await context.newPage(); // one of them is decided elsewhere meanwhile
  await other.goto(`${origin}/tickets/${second}`);
  await other.getByRole("button", { name: "Deny this request" }).click();
  await other.getByRole("heading", { name: "What became of it" }).waitFor();
  await other.close();
  await page.getByText("1 of these changed").waitFor();
  await page.getByLabel("Words").fill("as every month");
  await page.getByRole("button", { name: "Approve those picked" }).click();
  await page.getByRole("heading", { name: "5 of 6 approved" }).waitFor();
  const text = await page.locator("main").innerText();
  check(text.includes("left as it was") && text.includes("not pending any more"), "what changed meanwhile is said, by its row");
  await layout(page, "group result");
  await axe(page, "group result");
  check(strangers.length === 0, `a group does nothing strange: ${strangers}`);
  await page.goto(`${origin}/history?q=invite&state=approved`);
  check((await page.locator(".row.past").count()) === 5, "the history has them");
  check((await page.locator(".row.past").first().innerText()).includes("as every month"), "with the words");
  await page.close();
  covered("E3", "E21", "E25");
}

// What deletes looks different and asks for its name.
async function named(context) {
  const page = await context.newPage();
  await page.goto(origin);
  await page.locator("[data-ticket]", { hasText: "Delete branch" }).getByRole("link").first().click();
  check((await page.locator("#asker").innerText()).includes("The agent waits: a yes sends this now."), "that the agent waits stands first");
  const button = page.getByRole("button", { name: "Approve this request" });
  await button.waitFor({ state: "visible" });
  await page.locator("#why-yes").fill("it was merged");
  await page.locator("#name").fill("acme/application");
  await button.click();
  await page.getByRole("heading", { name: "The name is needed" }).waitFor();
  await page.goBack();
  await page.waitForTimeout(700);
  await page.locator("#why-yes").fill("it was merged");
  await page.locator("#name").fill("acme/app");
  await button.click();
  await page.getByRole("heading", { name: "What became of it" }).waitFor();
  await page.close();
}

// Forms that come from elsewhere, too early, or for something else.
async function forged(context) {
  const page = await context.newPage();
  await page.goto(`${origin}/tickets/${twice}`);
  const post = (fields, more = {}) => page.evaluate(async ([url, f, m]) => {
    const r = await fetch(url, { method: "POST", body: new URLSearchParams(f), redirect: "manual", ...m });
    return r.status;
  }, [`/tickets/${twice}/approve`, fields, more]);
  const early = await page.evaluate(async (url) => {
    const html = await (await fetch(url)).text(); // fetched and sent back in one breath
    const form = new DOMParser().parseFromString(html, "text/html").querySelector("form.approve");
    return (await fetch(form.getAttribute("action"), { method: "POST", body: new URLSearchParams(new FormData(form)) })).status;
  }, `/tickets/${twice}`);
  check(early === 409, `a form that comes back at once is refused: ${early}`);
  await page.waitForTimeout(600);
  const form = await page.evaluate(() => Object.fromEntries(new FormData(document.querySelector("form.approve"))));
  check((await post({ ...form, mark: form.mark.slice(0, -1) + (form.mark.endsWith("0") ? "1" : "0") })) === 403, "a forged mark is refused");
  check((await post({ ...form, digest: "0".repeat(64) })) === 403, "a mark covers its digest");
  const deny = await page.evaluate(() => Object.fromEntries(new FormData(document.querySelector("form.deny"))));
  check((await post(deny)) === 403, "a mark covers its purpose");
  const evil = await context.newPage();
  await evil.goto("about:blank");
  const status = await context.request.post(`${origin}/tickets/${twice}/approve`, { form, headers: { origin: "http://evil.example" } });
  check(status.status() === 403, "another origin is refused");
  const none = await context.request.post(`${origin}/tickets/${twice}/approve`, { form });
  check(none.status() === 403, "no origin is refused");
  const get = await context.request.get(`${origin}/tickets/${twice}/approve`);
  check(get.status() === 405 || get.status() === 404, "a GET decides nothing");
  await evil.close();
  await page.close();
  covered("E11", "E13", "E24");
}

// What comes is there without a press: on the list, in the title, as a notification; nothing moves under a hand.
async function live(context) {
  await context.addInitScript(() => {
    window.notes = [];
    window.Notification = class { static permission = "granted"; constructor(words, more) { window.notes.push([words, more.body]); } };
  });
  const page = await context.newPage();
  await page.goto(origin);
  await page.evaluate(() => {
    localStorage.setItem("notify", "on");
    Object.defineProperty(document, "hidden", { value: true });
  });
  const later = page.locator("#waiting .card", { hasText: "One that came later" });
  process.stdout.write("want ticket\n");
  await later.first().waitFor();
  check((await page.evaluate(() => document.activeElement.tagName)) === "BODY", "news takes no focus");
  check((await page.title()).startsWith("(1) "), `the title counts: ${await page.title()}`);
  check((await page.evaluate(() => window.notes)).join() === "One that came later,builder asks, api.example.com", "a notification says who and what");
  const count = () => page.evaluate(() => [...document.querySelectorAll("#waiting [data-ticket]")].flatMap((el) => el.dataset.ticket.split(" ")).length);
  const n = await count();
  await page.keyboard.press("j"); // a hand is on it
  check(await page.evaluate(() => document.activeElement.matches(".card h3 a")), "j goes to the first");
  process.stdout.write("want ticket\n");
  await page.locator("#newer").waitFor();
  check((await page.locator("#newer").innerText()) === "1 new: show" && (await count()) === n, "nothing moves meanwhile");
  await page.locator("#newer").click();
  check((await count()) === n + 1, "it is shown when asked for");
  await page.close();
  covered("E16");
}

// Letters alone move, and can be turned off; what leads to a decision wants Alt, and presses nothing.
async function keys(context) {
  const page = await context.newPage();
  await page.goto(origin);
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  const path = await page.evaluate(() => document.activeElement.getAttribute("href"));
  check(path === (await page.locator(".card h3 a").first().getAttribute("href")), "j, j and k are one step");
  await page.keyboard.press("?");
  check(await page.getByRole("dialog", { name: "Keys" }).isVisible(), "? says the keys");
  await axe(page, "keys");
  await page.keyboard.press("Escape");
  await page.locator(".card.e-grave", { hasText: "Start 4" }).getByRole("link").press("Enter");
  await page.getByRole("button", { name: "Approve this request" }).waitFor({ state: "visible" });
  await page.waitForLoadState("load"); // the script that takes keys has run by then
  const at = page.url();
  await page.keyboard.press("a");
  check((await page.evaluate(() => document.activeElement.tagName)) === "BODY", "a alone does nothing");
  for (const [key, name] of [["Alt+a", "Approve this request"], ["Alt+d", "Deny this request"]]) {
    await page.keyboard.press(key);
    check((await page.evaluate(() => document.activeElement.textContent)) === name && page.url() === at, `${key} goes there`);
  }
  await page.getByRole("button", { name: "Keys are on (?)" }).click();
  await page.goto(origin);
  await page.keyboard.press("j");
  check((await page.evaluate(() => document.activeElement.tagName)) === "BODY", "keys that are off do nothing");
  await page.getByRole("button", { name: "Keys are off" }).click();
  await page.close();
}

// The decision is on the screen from the first moment and at each end of the page; times have the wall clock beside them.
async function onScreen(context, path) {
  const page = await context.newPage();
  await page.emulateMedia({ reducedMotion: "reduce" });
  for (const [width, height] of [[320, 560], [360, 640], [768, 1024], [1024, 700], [1440, 800]]) {
    await page.setViewportSize({ width, height });
    await page.goto(origin + path);
    for (const name of ["Approve this request", "Deny this request"]) await page.getByRole("button", { name }).waitFor({ state: "visible" });
    for (const y of [0, 100000]) {
      await page.evaluate((to) => scrollTo(0, to), y);
      const seen = await page.evaluate(() => [...document.querySelectorAll(".ticket .go")].map((el) => {
        const r = el.getBoundingClientRect();
        const top = document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2);
        return r.top >= 0 && r.bottom <= innerHeight && el.contains(top);
      }));
      check(seen.length === 2 && seen.every(Boolean), `the decision is on the screen at ${width} px, ${y}: ${seen}`);
    }
  }
  await page.close();
  const far = await opened(context.browser(), { timezoneId: "Asia/Kolkata" });
  await far.addCookies(await context.cookies());
  const there = await far.newPage();
  await there.goto(origin + path);
  check(/\d UTC \((\w+ )?\d\d:\d\d( [AP]M)? here\)/.test(await there.locator("aside").innerText()), "the local time stands beside UTC");
  await far.close();
}

// All writes stop from the page, and go on.
async function freeze(context) {
  const page = await context.newPage();
  await page.goto(origin);
  await page.getByRole("link", { name: "Freeze writes" }).click();
  await page.getByRole("button", { name: "Let writes leave again" }).waitFor({ state: "visible" });
  await page.locator("#why").fill("it is over");
  await page.getByRole("button", { name: "Let writes leave again" }).click();
  await page.getByRole("heading", { name: "Freeze writes" }).waitFor();
  check(!(await page.locator(".moment").innerText()).includes("frozen"), "nothing is frozen any more");
  await layout(page, "freeze");
  await axe(page, "freeze");
  await page.locator("#why").fill("<b>again</b>");
  await page.getByRole("button", { name: "Freeze all writes" }).click();
  await page.getByRole("heading", { name: "Writes are frozen" }).waitFor();
  check((await page.locator("dl").innerText()).includes("<b>again</b>"), "with the reason");
  await page.close();
}

async function withoutScript(browser, cookies) {
  const context = await opened(browser, { javaScriptEnabled: false });
  await context.addCookies(cookies);
  const page = await context.newPage();
  await page.goto(`${origin}/tickets/${twice}`);
  await page.waitForTimeout(700);
  await page.locator("form.deny input[name=reason]").fill("duplicate keys");
  await page.getByRole("button", { name: "Deny this request" }).click();
  check((await page.innerText("main")).includes("duplicate keys"), "it was denied, without a script");
  await page.goto(origin);
  await page.getByRole("button", { name: "Sign out" }).click();
  check((await page.textContent("h1")).includes("Sign in"), "signed out");
  await context.close();
}

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: flags });
try {
  const context = await opened(browser);
  await signIn(context);
  const page = await context.newPage();
  await page.goto(origin);
  const push = await page.locator("[data-ticket]", { hasText: "Push 2 refs" }).getAttribute("data-ticket");
  const pull = await page.locator("[data-ticket]", { hasText: "Create pull request" }).getAttribute("data-ticket");
  const grave = await page.locator("[data-ticket]", { hasText: "Delete branch" }).getAttribute("data-ticket");
  await page.close();
  const denied = "den" + "1".repeat(22) + "0";
  await looks(context, [["list", "/"], ["push", `/tickets/${push}`], ["pull", `/tickets/${pull}`],
    ["hostile", `/tickets/${hostile}`], ["big", `/tickets/${big}`], ["denied", `/tickets/${denied}`],
    ["past", `/tickets/${past}`], ["learning", `/tickets/${fresh}`], ["withdrawn", `/tickets/${gone}`], ["signin", "/sign-in?t=x"],
    ["group", `/groups/${first}`], ["history", "/history"], ["delete", `/tickets/${grave}`],
    ["picture", `/tickets/${picture}`], ["damaged", `/tickets/${damaged}`]]);
  await notices(context);
  await hostileTicket(context);
  await named(context);
  await group(context);
  await forged(context);
  await longBodies(context);
  await pictures(context);
  await keys(context);
  await onScreen(context, `/tickets/${pull}`);
  await freeze(context);
  await approve(context, push);
  await live(context);
  await withoutScript(browser, await context.cookies());
  console.log("browser: all well");
} catch (e) {
  console.error(e.message);
  process.exitCode = 1;
} finally {
  await browser.close();
  if (args.approve) console.error("--approve is for page.mjs alone");
}
