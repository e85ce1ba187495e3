// The dashboard of `5spot dev` in a real browser.
//
// With UPDATE_PICTURES=1 the pictures below docs/pictures are written anew; a person looks at
// each of them. Otherwise they are compared, so that a gross change is noticed.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { ROOT, startBrowser, startDev, writeFleet } from "./dev.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const PICTURES = join(ROOT, "docs/pictures");

// How large a share of the pixels may differ from the picture that a person has looked at.
const SHARE = 0.15;

let browser;
let directory;
let still; // A Friday evening: the office has closed, and a budget holds a pod.
let quick; // An hour passes in two minutes, so that windows open and close while a test looks.
let past; // A day passes in a minute, so that there is something to look back at.

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "5spot-fleet-"));
  const fleet = join(directory, "fleet.yaml");
  await writeFleet(fleet);
  const office = await readFile(join(ROOT, "examples/business-hours.yaml"), "utf8");
  const held = join(directory, "held.yaml");
  // Neither pod may leave, and there is time until the deadline.
  await writeFile(held, office.replaceAll("Timeout: 5m", "Timeout: 30m")
    .replace("minAvailable: 1", "minAvailable: 2"));
  const restless = join(ROOT, "examples/every-other-minute.yaml");
  [browser, still, quick, past] = await Promise.all([
    startBrowser(),
    startDev(["--start", "2026-03-06T22:59:15Z", "--speed", "1", "--apply", fleet, "--apply", held]),
    startDev(["--start", "2026-03-06T15:00:00Z", "--speed", "30", "--apply", restless, "--apply", held]),
    startDev(["--start", "2026-03-05T10:00:00Z", "--speed", "2000", "--apply", fleet, "--apply", held]),
  ]);
  for (const dev of [past, still, quick]) dev.context = await signIn(dev);
});

after(async () => {
  await browser?.close();
  await Promise.all([still, quick, past].map((dev) => dev?.stop()));
  await rm(directory, { recursive: true, force: true });
});

/** A browser that has used the printed URL. */
async function signIn(dev) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const answer = await page.goto(dev.url);
  assert.equal(answer.status(), 200);
  dev.address = new URL(dev.url).origin;
  // The token is neither in the address nor in the history any more.
  assert.equal(page.url(), `${dev.address}/`);
  await page.close();
  return context;
}

/** Opens an address and collects what the browser complains of. */
async function open(dev, path, setup = {}) {
  const page = await dev.context.newPage();
  page.complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error") page.complaints.push(message.text());
  });
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  page.on("request", (request) => {
    const isOurs = request.url().startsWith(dev.address) || request.url().startsWith("data:");
    if (!isOurs || request.method() !== "GET") page.complaints.push(request.url());
  });
  if (setup.viewport) await page.setViewportSize(setup.viewport);
  if (setup.colorScheme) await page.emulateMedia({ colorScheme: setup.colorScheme });
  await page.goto(dev.address + path);
  return page;
}

/** The rules of axe, all that apply. */
async function violations(page) {
  // It is evaluated by the debugger, which the content security policy does not concern.
  await page.evaluate(await readFile(AXE, "utf8"));
  const found = await page.evaluate(() => window.axe.run());
  return found.violations.map((it) => `${it.id}: ${it.nodes.map((node) => node.html)}`);
}

/** Compares with the picture that a person has looked at, or writes it. */
async function looksLike(page, name, options = {}) {
  const path = join(PICTURES, `${name}.png`);
  const seen = await page.screenshot({ animations: "disabled", ...options });
  if (process.env.UPDATE_PICTURES) {
    await writeFile(path, seen);
    return;
  }
  const kept = await readFile(path);
  const blank = await browser.newPage();
  const share = await blank.evaluate(
    async ([one, other]) => {
      const pixels = async (text) => {
        const bytes = Uint8Array.from(atob(text), (it) => it.charCodeAt(0));
        const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
        const canvas = new OffscreenCanvas(image.width, 900).getContext("2d");
        canvas.drawImage(image, 0, 0);
        return canvas.getImageData(0, 0, image.width, 900);
      };
      const [left, right] = await Promise.all([pixels(one), pixels(other)]);
      if (left.width !== right.width) return 1;
      let different = 0;
      for (let at = 0; at < left.data.length; at += 4) {
        const distance = [0, 1, 2].map((it) => Math.abs(left.data[at + it] - right.data[at + it]));
        if (Math.max(...distance) > 48) different += 1;
      }
      return different / (left.data.length / 4);
    },
    [seen.toString("base64"), kept.toString("base64")],
  );
  await blank.close();
  assert.ok(share < SHARE, `${name}: ${(share * 100).toFixed(1)} % of the pixels differ`);
}

test("the URL works once, and nothing is shown without the cookie", async () => {
  const stranger = await browser.newContext();
  for (const address of [still.url, `${still.address}/machines`, `${still.address}/live`]) {
    const answer = await stranger.request.get(address);
    assert.equal(answer.status(), 401, address);
    assert.doesNotMatch(await answer.text(), /desk-/);
  }
  const named = await still.context.request.get(still.address, {
    headers: { host: "evil.example" },
  });
  assert.equal(named.status(), 421);
  await stranger.close();
});

test("nothing but reading is answered", async () => {
  for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
    const answer = await still.context.request.fetch(`${still.address}/machines`, { method });
    assert.equal(answer.status(), 405, method);
  }
});

test("a window opens and closes while the page is open", async () => {
  const page = await open(quick, "/machines?q=every-other-minute");
  const phase = page.locator("tbody .phase").first();
  await phase.filter({ hasText: "Active" }).waitFor({ timeout: 30_000 });
  await phase.filter({ hasText: "Inactive" }).waitFor({ timeout: 30_000 });
  await phase.filter({ hasText: "Active" }).waitFor({ timeout: 30_000 });
  assert.deepEqual(page.complaints, []);
  await page.close();
});

test("a shutdown is followed to its end on the page of its machine", async () => {
  const page = await open(quick, "/machines/default/every-other-minute");
  await page.locator("#timeline").waitFor({ timeout: 30_000 });
  const words = await page.locator("#timeline desc").textContent();
  assert.match(words, /ShuttingDown/);
  assert.equal(await page.locator("tr.decides").count(), 1);
  assert.deepEqual(page.complaints, []);
  await page.close();
});

test("a filter is kept in the address, and its fields keep what is typed while the page lives", async () => {
  const page = await open(quick, "/machines");
  await page.getByLabel("Name contains").fill("business");
  const updates = () => page.locator("#live").getAttribute("data-updates").then(Number);
  const before = await updates();
  await page.waitForFunction(
    (before) => Number(document.getElementById("live").dataset.updates || 0) > before + 1,
    before,
    { timeout: 30_000 },
  );
  assert.equal(await page.getByLabel("Name contains").inputValue(), "business");
  await page.keyboard.press("Enter");
  await page.waitForURL(/q=business/);
  assert.equal(await page.locator("tbody tr").count(), 1);
  await page.close();
});

test("the keyboard reaches everything, in the order of the page", async () => {
  const page = await open(still, "/");
  const focused = () => page.evaluate(() => {
    const it = document.activeElement;
    const outline = getComputedStyle(it).outlineStyle;
    return { text: (it.textContent || it.name).trim().slice(0, 24), name: it.name, tag: it.tagName, id: it.id, outline };
  });
  await page.keyboard.press("Tab");
  assert.equal((await focused()).text, "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal((await focused()).id, "main");
  const walked = [];
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press("Tab");
    const it = await focused();
    walked.push(it.name || it.text);
    if (it.text.startsWith("desk-")) {
      assert.notEqual(it.outline, "none", "what has the focus is seen");
      break;
    }
  }
  for (const name of ["q", "phase", "cluster", "label", "stalled"]) {
    assert.ok(walked.includes(name), `${name} in ${walked}`);
  }
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/machines\/default\/desk-/);
  await page.close();
});

const PAGES = [
  // From a fixed day, however far the clock has come.
  ["week", () => past, "/?from=2026-03-05"],
  ["machines", () => still, "/machines"],
  ["machine", () => still, "/machines/default/business-hours-worker"],
];
const SETUPS = [
  ["light", { viewport: { width: 1280, height: 900 }, colorScheme: "light" }],
  ["dark", { viewport: { width: 1280, height: 900 }, colorScheme: "dark" }],
  ["phone", { viewport: { width: 360, height: 740 }, colorScheme: "light" }],
];

for (const [name, dev, path] of PAGES) {
  for (const [setting, setup] of SETUPS) {
    test(`axe finds nothing, and nothing runs over the edge: ${name}, ${setting}`, async () => {
      const page = await open(dev(), path, setup);
      if (name === "machine") {
        await page.locator("#live .phase").filter({ hasText: "ShuttingDown" }).first()
          .waitFor({ timeout: 120_000 });
        await page.locator("#timeline").waitFor();
      } else {
        await page.locator("#live figure, #live table").first().waitFor();
      }
      assert.deepEqual(await violations(page), []);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= setup.viewport.width, `${width} pixels wide`);
      const fullPage = name !== "machines" && setting !== "phone";
      await looksLike(page, `dashboard-${name}-${setting}`, { fullPage });
      assert.deepEqual(page.complaints, []);
      await page.close();
    });
  }
}

// After all the others: what they have clicked is in the audit log.
test("a session of clicks makes no request that writes", async () => {
  for (const dev of [still, quick, past]) {
    const requests = await dev.requests();
    assert.ok(requests.length >= 3, `${requests.length} requests`);
    const verbs = new Set(requests.map((it) => it.verb));
    for (const verb of verbs) {
      assert.ok(["get", "list", "watch"].includes(verb), verb);
    }
  }
});
