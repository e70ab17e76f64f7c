// Signing in through a provider, as a browser does it: which cookies go where, what a redirect may do. See test_provider.py.
//
//   node provider.mjs --link URL --modules DIR/node_modules --shots DIR
import { axe, check, chromium, flags, layout, origin, shoot } from "./page.mjs";

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: [...flags, "--host-resolver-rules=MAP *.test 127.0.0.1"] });

async function signIn(page, name) {
  await page.goto(`${origin}/sign-in`);
  await page.getByRole("link", { name: "Sign in with Example Org" }).click();
  await page.locator("input[name=name]").fill(name);
  await page.getByRole("button", { name: "It is me" }).click();
}

for (const javaScriptEnabled of [true, false])
  for (const colorScheme of ["light", "dark"]) {
    const context = await browser.newContext({ javaScriptEnabled, colorScheme, ignoreHTTPSErrors: true, viewport: { width: 360, height: 740 } });
    const page = await context.newPage(), where = `provider-360-${colorScheme}${javaScriptEnabled ? "" : "-plain"}`;
    await page.goto(`${origin}/sign-in`);
    await shoot(page, where);
    if (javaScriptEnabled) {
      await layout(page, where);
      await axe(page, where);
    }
    await signIn(page, "m1");
    await page.getByText("nobody here has this very name").waitFor();
    await shoot(page, `${where}-no`);
    await context.clearCookies(); // of the provider, which remembers who was there
    await signIn(page, "a1");
    await page.waitForURL(`${origin}/`); // by itself
    await page.getByRole("heading", { level: 1 }).waitFor();
    const list = await page.locator("main").innerText();
    check(!list.includes("Sign in"), `who came from there is signed in at the list: ${list}`);
    await page.goto(`${origin}/me`);
    check((await page.locator("main").innerText()).includes("through your organisation's provider"), "how they signed in is said");
    const cookies = Object.fromEntries((await context.cookies(origin)).map((c) => [c.name, c]));
    const session = cookies["__Host-countersign"], flow = cookies["__Host-countersign-flow"];
    check(session.secure && session.httpOnly && session.sameSite === "Strict", "the session's cookie is as ever");
    check(flow.secure && flow.httpOnly && flow.sameSite === "Lax", "the flow's cookie comes back from there");
    await context.close();
  }
await browser.close();
console.log("ok");
