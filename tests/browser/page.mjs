// Signs in, reads and approves in a real browser. Given a desk and a sign-in link:
//
//   node page.mjs --link URL --modules DIR/node_modules --shots DIR [--sample] [--approve ID] [--pages FILE] [--widths PX,PX]
//
// Always: axe finds nothing serious and nothing scrolls sideways, on the list and on a ticket, at 320 and
// 1280 px, light and dark; screenshots go to --shots (-: there are none). --approve decides one ticket with the page's own button.
// --pages: JSON, [[name, path, selector, [words that must be there]], ...], looked at instead of those two.
// --sample: the desk is desk_parent.py's, whose tickets are known (E11-E18, E24, E35). Prints `ok ID browser` for
// each id of attacks that it covered; exits 1 on the first failure.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";

const args = {};
for (let i = 2; i < process.argv.length; i++) {
  const name = process.argv[i].replace(/^--/, "");
  args[name] = name === "sample" ? true : process.argv[++i];
}
const require = createRequire(resolve(args.modules, "x.js"));
const { chromium } = require("playwright-core");
const axeSource = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const shots = args.shots === "-" ? null : resolve(args.shots), widths = (args.widths ?? "320,1280").split(",").map(Number);
if (shots) mkdirSync(shots, { recursive: true });

const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const origin = new URL(args.link).origin;

function check(good, what) {
  if (!good) throw new Error(`not so: ${what}`);
}
function covered(...ids) {
  for (const id of ids) console.log(`ok ${id} browser`);
}

// Nothing may open a dialog, log an error or ask another place for anything.
function guard(page, strangers) {
  page.on("dialog", (d) => { strangers.push(`dialog ${d.message()}`); d.dismiss(); });
  page.on("pageerror", (e) => strangers.push(`error ${e.message}`));
  page.on("console", (m) => {
    // A refused page is an answer with a status of 4xx, which Chromium reports as an error of its own.
    if (m.type() === "error" && !/Failed to load resource.*(403|404|409|422)/.test(m.text())) strangers.push(m.text());
  });
  page.on("request", (r) => { if (new URL(r.url()).origin !== origin) strangers.push(`request ${r.url()}`); });
}

async function axe(page, where) {
  // The page's own policy forbids scripts that are not its own: axe runs through the debugger.
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(axeSource);
  const found = await page.evaluate('axe.run(document, { resultTypes: ["violations"] })');
  const bad = found.violations.filter((v) => v.impact === "serious" || v.impact === "critical");
  for (const v of bad) console.error(where, v.id, v.help, v.nodes.slice(0, 3).map((n) => n.html));
  check(bad.length === 0, `no serious axe finding on ${where}`);
  for (const v of found.violations) console.error(`(minor) ${where}: ${v.id} ${v.help}`);
}

async function layout(page, where) {
  const wide = await page.evaluate(() => [...document.querySelectorAll("body *")]
    .filter((el) => el.getBoundingClientRect().right > innerWidth + 1 && !el.closest("pre, .skip") && !el.matches(".skip"))
    .map((el) => el.outerHTML.slice(0, 120)));
  const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(over <= 0, `no sideways scroll on ${where}: ${over} px; ${wide.slice(0, 3)}`);
  const small = await page.evaluate(() => [...document.querySelectorAll("a, button, summary, input:not([type=hidden])")]
    .filter((el) => el.checkVisibility() && !el.matches(".skip") && !el.closest(".card, td") && el.type !== "checkbox")
    .filter((el) => !(el.closest("p") && getComputedStyle(el).display === "inline")) // a word of a sentence
    .filter((el) => { const r = el.getBoundingClientRect(); return r.height > 0 && (r.height < 43.5 || r.width < 24); })
    .map((el) => el.outerHTML.slice(0, 120)));
  check(small.length === 0, `targets of 44 px on ${where}: ${small.slice(0, 3)}`);
}

// Only where they are kept, to be looked at: a picture of a whole page takes longer than all that is checked on it.
async function shoot(page, name, options = { fullPage: true }) {
  if (shots) await page.screenshot({ path: `${shots}/${name}.png`, ...options });
}

// Each is opened once: what differs between widths and schemes is for the page's style alone to change.
async function looks(context, paths) {
  const page = await context.newPage(), strangers = [];
  guard(page, strangers);
  for (const [name, path] of paths) {
    await page.setViewportSize({ width: widths[0], height: 900 });
    await page.goto(origin + path);
    await page.waitForTimeout(700);
    for (const width of widths)
      for (const scheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: scheme });
        await page.setViewportSize({ width, height: 900 });
        const where = `${name} ${width} ${scheme}`;
        await layout(page, where);
        await axe(page, where);
        await shoot(page, `${name}-${width}-${scheme}`, { fullPage: width >= 1280 || name !== "hostile" });
      }
  }
  await page.close();
  check(strangers.length === 0, `nothing strange: ${strangers}`);
}

async function signIn(context) {
  const page = await context.newPage();
  await page.goto(args.link);
  await page.goto(args.link); // looking at it uses nothing up
  check((await page.evaluate(() => document.activeElement.tagName)) === "BODY", "nothing is focused");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(origin + "/");
  check((await page.title()).includes("Countersign"), "the list comes after signing in");
  const cookie = (await context.cookies()).find((c) => c.name === "countersign");
  check(cookie.httpOnly && cookie.sameSite === "Strict", "the cookie is HttpOnly and SameSite=Strict");
  const again = await opened(context.browser());
  const other = await again.newPage();
  await other.goto(args.link);
  await other.getByRole("button", { name: "Sign in" }).click();
  check((await other.textContent("h1")).includes("does not open"), "the link opens once");
  await again.close();
  await page.close();
  covered("E26", "E35");
}

async function approve(context, id) {
  const page = await context.newPage();
  await page.goto(`${origin}/tickets/${id}`);
  const button = page.getByRole("button", { name: "Approve this request" });
  await button.waitFor({ state: "visible" });
  check((await page.evaluate(() => document.activeElement.tagName)) === "BODY", "neither button has the focus");
  await button.click();
  await page.waitForURL(`${origin}/tickets/${id}`);
  await page.getByRole("heading", { name: "What became of it" }).waitFor();
  console.log(`approved ${id}`);
  await page.close();
}

async function says(context, pages) {
  const page = await context.newPage();
  for (const [name, path, selector, words] of pages) {
    let text = "";
    for (let i = 0; i < 60 && !words.every((w) => text.includes(w)); i++) { // what is found out once more says so meanwhile
      if (i > 0) await page.waitForTimeout(1000);
      await page.goto(origin + path);
      text = (await page.locator(selector).allInnerTexts()).join("\n").replace(/\s+/g, " ");
    }
    for (const w of words) check(text.includes(w), `${name} ${selector} says "${w}": ${text}`);
  }
  await page.close();
}

/* How long one waits is for a page that is stuck: a busy machine is not. */
async function opened(browser, options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(300000);
  return context;
}

export { args, approve, axe, check, chromium, covered, flags, guard, layout, looks, opened, origin, shoot, signIn };

if (process.argv[1].endsWith("/page.mjs")) {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: flags });
  try {
    const context = await opened(browser);
    await signIn(context);
    const page = await context.newPage();
    await page.goto(origin);
    const first = args.approve ?? (args.pages || (await page.locator("[data-ticket]").first().getAttribute("data-ticket")));
    const pages = args.pages ? JSON.parse(readFileSync(args.pages, "utf8")) : [];
    await says(context, pages);
    await looks(context, args.pages ? [...new Map(pages)] : [["list", "/"], ["ticket", `/tickets/${first}`]]);
    if (args.approve) await approve(context, args.approve);
  } catch (e) {
    console.error(e.message);
    process.exitCode = 1;
  } finally {
    await browser.close();
  }
}
