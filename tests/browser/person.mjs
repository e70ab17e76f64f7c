// People with passkeys in a real browser, each with a browser context and an authenticator of their own, driven by lines of
// JSON: {"who": NAME, "do": WHAT, ...}, each answered by one line, {"ok": true, ...} or {"error": WORDS}. See test_person.py.
//
//   node person.mjs --link URL --modules DIR/node_modules --shots DIR
//
// --link gives the page's origin alone. The authenticator (WebAuthn's automation API) says yes by itself, with user verification.
import { createInterface } from "node:readline";
import { args, axe, check, chromium, flags, guard, layout, opened, origin, shoot } from "./page.mjs";

const people = new Map(), strangers = [];
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", handleSIGTERM: false, args: flags });

async function person(name) {
  if (!people.has(name)) {
    const context = await opened(browser), page = await context.newPage();
    guard(page, strangers);
    const cdp = await context.newCDPSession(page);
    await cdp.send("WebAuthn.enable");
    const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", { options: { protocol: "ctap2", transport: "internal", hasResidentKey: true,
      hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true } });
    people.set(name, { page, verified: (yes) => cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: yes }) });
  }
  return people.get(name);
}

const words = async (page) => ({ text: (await page.locator("main").innerText()).replace(/\s+/g, " ") });

async function fill(page, fields) {
  for (const [selector, value] of Object.entries(fields ?? {})) {
    if ((await page.locator(selector).evaluate((el) => el.tagName)) === "SELECT") await page.locator(selector).selectOption(value);
    else await page.locator(selector).fill(value);
  }
}

const acts = {
  // The link once, then a passkey behind it, then in again with that alone.
  async enroll({ page }, { url }) {
    await page.goto(url);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForURL(`${origin}/me`);
    await page.getByRole("button", { name: "Add a passkey" }).click();
    await page.getByText("a passkey since").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.waitForURL((at) => at.pathname !== "/me");
    await page.goBack(); // E36: nothing of a page is kept for who sits down there next
    check(!(await words(page)).text.includes("a passkey since"), "back after signing out shows nothing");
    return acts.signIn({ page });
  },
  async signIn({ page }) {
    await page.goto(`${origin}/sign-in`);
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await page.waitForURL(`${origin}/`);
    await page.goto(`${origin}/me`);
    return words(page);
  },
  async look({ page }, { path }) {
    await page.goto(origin + path);
    return words(page);
  },
  // A form of a page, by its button; what comes is there once these words are.
  async press({ page }, { path, open, fields, button, until }) {
    await page.goto(origin + path);
    if (open) await page.getByText(open).click();
    await fill(page, fields);
    const at = page.getByRole("button", { name: button }).first();
    await at.waitFor({ state: "visible" });
    await at.click();
    await page.getByText(until).first().waitFor();
    return words(page);
  },
  // Off the page: nothing of it is under way when the gateway ends.
  async away() {
    for (const { page } of people.values()) await page.goto("about:blank");
    return {};
  },
  // Whether the authenticator knows who touches it.
  async verified({ verified }, { yes }) {
    await verified(yes);
    return {};
  },
  async shoot({ page }, { path, name }) {
    for (const scheme of ["light", "dark"])
      for (const [width, height] of [[360, 740], [768, 1024], [1440, 900]]) {
        await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
        await page.setViewportSize({ width, height });
        await page.goto(origin + path);
        const where = `${name} ${width} ${scheme}`;
        await layout(page, where);
        if (width === 360) await axe(page, where); // the colours are those of any width
        await shoot(page, `${name}-${width}-${scheme}`);
      }
    await page.emulateMedia({ colorScheme: null, reducedMotion: null });
    await page.setViewportSize({ width: 1280, height: 900 });
    check(strangers.length === 0, `nothing strange: ${strangers}`);
    return {};
  },
};

check(args.link && args.shots, "--link and --shots");
console.log(JSON.stringify({ ok: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const { who, do: what, ...more } = JSON.parse(line);
  let said;
  try {
    said = { ok: true, ...(await acts[what](await person(who), more)) };
  } catch (e) {
    const page = people.get(who)?.page;
    said = { error: `${e.message}\n${page ? (await words(page).catch(() => ({}))).text : ""}` };
  }
  console.log(JSON.stringify(said));
}
await browser.close();
