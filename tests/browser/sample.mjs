// page.mjs against desk_parent.py: its tickets are known, so what a hostile one may not do can be checked.
import { approve, args, axe, check, chromium, covered, flags, guard, layout, looks, opened, origin, signIn } from "./page.mjs";

const hostile = "hst" + "0".repeat(23), twice = "dp0" + "0".repeat(23), big = "bng" + "0".repeat(23), bin = "bnr" + "0".repeat(23);
const [first, second] = ["gr0", "gr1"].map((n) => n + "0".repeat(23));
const [past, fresh, gone] = ["past", "new0", "g0ne"].map((n) => n + "0".repeat(22));

async function hostileTicket(context) {
  const page = await context.newPage(), strangers = [];
  guard(page, strangers);
  await page.goto(`${origin}/tickets/${hostile}`);
  await page.waitForTimeout(800);
  check(strangers.length === 0, `a hostile ticket does nothing: ${strangers}`);
  check((await page.locator("main script, main img, main svg, main iframe").count()) === 0, "no element of the request's making");
  check((await page.locator("main form").count()) === 2, "only the two forms of the page");
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
  await page.locator(".card.e-grave", { hasText: "Delete branch" }).getByRole("link").click();
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

async function live(context) {
  const page = await context.newPage();
  await page.goto(origin);
  await page.waitForTimeout(300);
  process.stdout.write("want ticket\n");
  await page.locator("#news a").waitFor();
  check((await page.evaluate(() => document.activeElement.tagName)) === "BODY", "news takes no focus");
  await page.locator("#news a").click();
  await page.getByText("One that came later").first().waitFor();
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
    ["group", `/groups/${first}`], ["history", "/history"], ["delete", `/tickets/${grave}`]]);
  await notices(context);
  await hostileTicket(context);
  await named(context);
  await group(context);
  await forged(context);
  await longBodies(context);
  await live(context);
  await approve(context, push);
  await withoutScript(browser, await context.cookies());
  console.log("browser: all well");
} catch (e) {
  console.error(e.message);
  process.exitCode = 1;
} finally {
  await browser.close();
  if (args.approve) console.error("--approve is for page.mjs alone");
}
