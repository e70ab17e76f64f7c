// What other pages, and requests themselves, try in the browser of somebody who is signed in. See test_hostile.py.
//
//   node hostile.mjs --link URL --modules DIR/node_modules --shots DIR --evil PORT --tickets A,B,C,...
//
// evil.test and rebind.test are this machine to the browser (--host-resolver-rules), as names of an attacker's would be.
// Prints "did WHAT" for each part; test_hostile.py looks at what became of the tickets.
import { createInterface } from "node:readline";
import { args, check, chromium, flags, guard, opened, origin, signIn } from "./page.mjs";

const evil = `http://evil.test:${args.evil}`, near = `http://localhost:${args.evil}`;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", handleSIGTERM: false, // it ends us
  args: [...flags, "--host-resolver-rules=MAP evil.test 127.0.0.1,MAP rebind.test 127.0.0.1"] });
const context = await opened(browser);
context.setDefaultTimeout(120000);

// Of the form of a ticket, all its fields: an attacker who knows even these has only the cookie to borrow.
async function fields(ticket, kind) {
  const page = await context.newPage();
  await page.goto(`${origin}/tickets/${ticket}`);
  const found = await page.evaluate((k) => Object.fromEntries(new FormData(document.querySelector(`form.${k}`))), kind);
  await page.waitForTimeout(700); // from here on the form is armed
  await page.close();
  return found;
}

const acts = {
  // E11: from another site, and from another port of the same one, whose requests carry the cookie though it is SameSite=Strict.
  async forge({ ticket, port }) {
    const known = await fields(ticket, "approve");
    const target = `${origin}/tickets/${ticket}/approve`, query = new URLSearchParams(known).toString();
    for (const from of [evil, near]) {
      const page = await context.newPage();
      await page.goto(`${from}/blank`);
      const status = await page.evaluate(async ([to, f, q]) => {
        const tries = [[to, { method: "POST", body: new URLSearchParams(f) }], [to, { method: "POST", body: new Blob([q], { type: "text/plain" }) }],
          [to, { method: "POST", body: JSON.stringify(f) }], [`${to}?${q}`, {}], [`${to}?${q}&_method=POST`, { method: "HEAD" }],
          [to.replace("/tickets", "/api/v1/tickets"), { method: "POST", body: new Blob([JSON.stringify(f)], { type: "text/plain" }) }]];
        const got = [];
        for (const [url, how] of tries)
          for (const mode of ["no-cors", "cors"])
            got.push(await fetch(url, { ...how, mode, credentials: "include" }).then((r) => r.type === "opaque" ? "opaque" : `read ${r.status}`, () => "failed"));
        got.push(await fetch(to, { method: "PUT", body: q, credentials: "include" }).then((r) => `read ${r.status}`, () => "failed"));
        const img = new Image();
        await new Promise((done) => { img.onload = img.onerror = done; img.src = `${to}?${q}`; });
        navigator.sendBeacon(to, new URLSearchParams(f));
        return got;
      }, [target, known, query]);
      check(!status.some((s) => s.startsWith("read")), `nothing of an answer is read from ${from}: ${status}`);
      for (const [method, enctype] of [["POST", "application/x-www-form-urlencoded"], ["POST", "text/plain"], ["POST", "multipart/form-data"], ["GET", ""]])
        for (const where of ["_self", "frame"]) {
          await page.goto(`${from}/blank`);
          const gone = where === "_self" ? page.waitForURL((at) => at.origin === origin) : page.waitForTimeout(400);
          await page.evaluate(([to, f, m, e, w]) => {
            document.body.innerHTML = '<iframe name="frame"></iframe>';
            const form = document.body.appendChild(document.createElement("form"));
            Object.assign(form, { action: to, method: m, target: w, ...(e && { enctype: e }) });
            for (const [name, value] of Object.entries(f)) Object.assign(form.appendChild(document.createElement("input")), { type: "hidden", name, value });
            form.submit();
          }, [target, known, method, enctype, where]);
          await gone;
          if (where === "_self") check(!(await page.content()).includes("What became of it"), `${method} ${enctype} from ${from} decides nothing`);
        }
      await page.goto(`${from}/blank`);
      await page.evaluate((to) => { location.href = to; }, `${target}?${query}`);
      await page.waitForURL((at) => at.origin === origin);
      await page.close();
    }
    return { port };
  },
  // The same form from where it belongs: what was refused was refused for where it came from.
  async own({ ticket }) {
    const known = await fields(ticket, "approve"), page = await context.newPage();
    await page.goto(`${origin}/tickets/${ticket}`);
    const status = await page.evaluate(async ([to, f]) => (await fetch(to, { method: "POST", body: new URLSearchParams(f) })).status,
      [`/tickets/${ticket}/approve`, known]);
    await page.close();
    check(status === 200, `the page's own form decides: ${status}`);
    return {};
  },
  // E12: a name of the attacker's that has become this machine's address.
  async rebind({ ticket }) {
    const page = await context.newPage(), at = origin.replace("localhost", "rebind.test");
    for (const path of ["/", `/tickets/${ticket}`, "/history", "/api/v1/tickets", "/assets/desk.js", "/sign-in"]) {
      const answer = await page.goto(at + path);
      check(answer.status() === 403, `${path} at rebind.test: ${answer.status()}`);
      const text = await page.content();
      check(!text.includes(ticket) && !text.includes("Approve"), `nothing of the page is there: ${text.slice(0, 300)}`);
    }
    const status = await page.evaluate(async (to) => (await fetch(to, { method: "POST", body: new URLSearchParams({ t: "x" }) })).status, "/sign-in");
    check(status === 403, `nor signs anybody in: ${status}`);
    await page.close();
    return {};
  },
  // E13: in no frame; a click or a key that was meant for something else decides nothing.
  async framed({ ticket, spare }) {
    const page = await context.newPage();
    for (const from of [evil, near])
      for (const attributes of ["", 'sandbox="allow-forms allow-scripts allow-same-origin"', 'style="opacity:0;position:fixed;inset:0;width:100%;height:100%"'])
        for (const tag of ["iframe", "object", "embed"]) {
          await page.goto(`${from}/blank`);
          const source = tag === "object" ? "data" : "src";
          await page.evaluate((html) => { document.body.innerHTML = html; }, `<${tag} ${source}="${origin}/tickets/${ticket}" ${attributes}></${tag}>`);
          await page.waitForTimeout(300);
          for (const frame of page.frames().slice(1)) {
            const text = await frame.content().catch(() => "");
            check(!text.includes("Approve this request"), `${tag} ${attributes} of ${from} shows nothing: ${text.slice(0, 200)}`);
          }
        }
    await page.goto(`${evil}/blank`);
    const [popup] = await Promise.all([context.waitForEvent("page"), page.evaluate((to) => { window.w = open(to, "w", "width=500,height=500"); }, `${origin}/tickets/${ticket}`)]);
    await popup.waitForLoadState();
    const reach = await page.evaluate(() => { try { return String(window.w.document.body.innerText); } catch { return "refused"; } });
    check(reach === "refused" || reach === "", `a window that it opened cannot be read: ${reach.slice(0, 100)}`);
    await popup.close();
    await page.close();
    // A hand that is in the middle of a double click or of typing when the page comes. The desk counts from when it wrote the
    // page to when the press reaches it; one that a busy machine made late says nothing, and the next one is tried.
    let early = 0;
    for (const one of spare) {
      const p = await context.newPage();
      await p.goto(`${origin}/tickets/${ticket}`); // a new tab's process begins here, and not while the form's time runs
      await p.addInitScript(() => {
        const press = () => {
          const button = document.querySelector("form.approve button");
          if (!button || sessionStorage.after) return;
          sessionStorage.after = performance.now() - performance.getEntriesByType("navigation")[0].responseStart;
          button.click();
        };
        new MutationObserver(press).observe(document, { childList: true, subtree: true });
      });
      await p.goto(`${origin}/tickets/${one}`).catch(() => { /* the press went on to another page before this one was whole */ });
      let text = ""; // of the page that the press led to, whenever it comes
      for (let i = 0; i < 3000 && !/What became of it|That came less than/.test(text); i++) {
        await p.waitForTimeout(100);
        text = await p.content().catch(() => "");
      }
      const after = Number(await p.evaluate(() => sessionStorage.after));
      await p.close();
      check(after >= 0, `the button was pressed: ${after}`);
      if (text.includes("What became of it")) continue; // late, or on its way for long: it was a press like any other
      early++;
      check(text.includes("That came less than half a second after the page was shown"), `a press at once decides nothing: ${after} ms, ${text.slice(0, 500)}`);
      if (early === 3) break;
    }
    check(early > 0, "not one of them was early");
    for (const keys of [["Enter"], ["Space"], ["Tab", "Enter"], ["Tab", "Space"]]) {
      const p = await context.newPage();
      await p.goto(`${origin}/tickets/${ticket}`);
      await p.waitForTimeout(700);
      for (const key of keys) await p.keyboard.press(key);
      await p.waitForTimeout(200);
      check(!(await p.content()).includes("What became of it"), `${keys} decides nothing: no button has the focus`);
      await p.close();
    }
    return {};
  },
  // E14: the words of a request do nothing, on whichever page they stand.
  async inert({ paths }) {
    const strangers = [], page = await context.newPage();
    guard(page, strangers);
    await page.addInitScript(() => { window.pwned = (how) => { alert(`script ran: ${how}`); }; }); // a dialog is a stranger
    for (const path of paths) {
      await page.goto(origin + path);
      await page.waitForTimeout(150);
      const found = await page.evaluate(() => ({
        made: [...document.querySelectorAll("main script, main svg, main iframe, main object, main embed, main base, main style, main link, main meta, main math, main [style], main img:not([src^='/tickets/'])")].map((e) => e.outerHTML.slice(0, 200)),
        on: [...document.querySelectorAll("*")].flatMap((e) => [...e.attributes].filter((a) => /^on/i.test(a.name)).map((a) => e.tagName + a.name)),
        away: [...document.querySelectorAll("a[href], form[action]")].map((e) => e.getAttribute("href") ?? e.getAttribute("action"))
          .filter((to) => to !== "" && !/^[/#?](?!\/)/.test(to) && !/^data:,?$/.test(to)),
      }));
      check(!found.made.length && !found.on.length && !found.away.length, `${path}: ${JSON.stringify(found)}`);
      await page.evaluate(() => { for (const d of document.querySelectorAll("details")) d.open = true; });
      await page.mouse.move(640, 300);
      await page.waitForTimeout(50);
    }
    check(strangers.length === 0, `a request's words do nothing: ${strangers}`);
    await page.close();
    return {};
  },
  // E3: pressed twice, in two tabs at once, and once more on the way back.
  async twice({ tickets: [double, tabs] }) {
    const page = await context.newPage();
    await page.goto(`${origin}/tickets/${double}`);
    await page.getByRole("button", { name: "Approve this request" }).waitFor({ state: "visible" });
    await page.waitForTimeout(700);
    await page.evaluate(() => { for (const n of [1, 2]) document.querySelector("form.approve button", n).click(); });
    await page.getByRole("heading", { name: "What became of it" }).waitFor();
    await page.goBack({ timeout: 5000 }).catch(() => null);
    await page.waitForTimeout(700);
    check((await page.getByRole("button", { name: "Approve this request" }).count()) === 0, "the way back is no second time");
    await page.close();
    const both = await Promise.all([1, 2].map(() => context.newPage()));
    for (const p of both) await p.goto(`${origin}/tickets/${tabs}`);
    await both[0].waitForTimeout(700);
    await Promise.all(both.map((p) => p.evaluate(() => document.querySelector("form.approve button").click())));
    await Promise.any(both.map((p) => p.getByRole("heading", { name: "What became of it" }).waitFor())); // one of two decides
    // The other is refused; or was told of it before it was pressed, and cannot be.
    const over = () => document.readyState === "complete" && !document.querySelector("form.approve button:not(:disabled)");
    for (const p of both) await p.waitForFunction(over);
    for (const p of both) await p.close();
    return {};
  },
  // E24: a page that was opened before somebody else decided. "open" leaves it, "stale" presses its button.
  async open({ ticket }) {
    acts.left = await context.newPage();
    await acts.left.goto(`${origin}/tickets/${ticket}`);
    await acts.left.route("**/events*", (route) => route.abort()); // and which nothing tells it
    await acts.left.evaluate(() => { document.querySelector("form.approve").id = "kept"; });
    await acts.left.waitForTimeout(700);
    return {};
  },
  async stale({ words }) {
    const status = await acts.left.evaluate(async () => {
      const form = document.querySelector("form.approve");
      if (!form) return "the page said it itself";
      const r = await fetch(form.getAttribute("action"), { method: "POST", body: new URLSearchParams(new FormData(form)) });
      return `${r.status} ${(await r.text()).replace(/<[^>]*>/g, " ").replace(/\s+/g, " ")}`;
    });
    check(status === "the page said it itself" || (/^(403|409) /.test(status) && status.includes(words)), `it is refused in words: ${status.slice(0, 600)}`);
    await acts.left.close();
    return {};
  },
};

await signIn(context);
if (process.env.IDLE) {
  const p = await context.newPage();
  for (const t of [0, 4000, 12000, 20000]) {
    await new Promise((r) => setTimeout(r, t));
    console.error(t, Date.now());
    await p.goto(origin + "/history", { timeout: 15000 }).then(() => console.error("ok"), (e) => console.error(String(e)));
  }
}
console.log(JSON.stringify({ ok: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const { do: what, ...more } = JSON.parse(line);
  let said;
  try {
    said = { ok: true, ...(await acts[what](more)) };
  } catch (e) {
    said = { error: String(e.message) };
  }
  console.log(JSON.stringify(said));
}
await browser.close();
