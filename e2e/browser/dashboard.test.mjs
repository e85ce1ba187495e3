// Tests the dashboard of `5spot dev` in a real browser.
//
// With UPDATE_PICTURES=1, the pictures below docs/pictures are written again. A person must then
// review each of them. Otherwise the pages are compared with them, to detect large changes.

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";

import {
  RATES, ROOT, february, fleet, longNames, office, startBrowser, startDev, stopAll, writeObjects,
} from "./dev.mjs";

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const PICTURES = join(ROOT, "docs/pictures");

// The largest share of pixels that may differ from the reviewed picture.
const SHARE = 0.15;

let browser;
let directory;
let still; // A Friday evening: the office has closed, and a budget holds a pod.
let quick; // An hour passes in two minutes, so that windows open and close during a test.
let dozen; // The file with the machines of an office.
let rates; // The file with their costs.

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "5spot-fleet-"));
  const write = async (name, objects) => {
    await writeObjects(join(directory, name), objects);
    return join(directory, name);
  };
  const forty = await write("fleet.yaml", fleet());
  dozen = await write("office.yaml", office());
  const long = await write("long.yaml", longNames());
  const example = await readFile(join(ROOT, "examples/business-hours.yaml"), "utf8");
  const held = join(directory, "held.yaml");
  // No pod can be evicted, and the deadline is far ahead.
  await writeFile(held, example.replaceAll("Timeout: 5m", "Timeout: 30m")
    .replace("minAvailable: 1", "minAvailable: 2"));
  const restless = join(ROOT, "examples/every-other-minute.yaml");
  rates = await write("rates.yaml", [RATES]);
  [browser, still, quick] = await Promise.all([
    startBrowser(),
    start("2026-03-06T22:59:15Z", "1", forty, held),
    start("2026-03-06T15:00:00Z", "30", restless, held, long),
  ]);
  for (const dev of [still, quick]) dev.context = await signIn(dev);
});

after(async () => {
  await browser?.close();
  await stopAll();
  await rm(directory, { recursive: true, force: true });
});

/** Starts `5spot dev` at a time, at a speed, with the objects of these files. */
function start(time, speed, ...files) {
  const applied = files.flatMap((file) => ["--apply", file]);
  return startDev(["--start", time, "--speed", speed, "--rates", rates, ...applied]);
}

/** Returns a browser context that has opened the printed URL. */
async function signIn(dev) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  const answer = await page.goto(dev.url);
  assert.equal(answer.status(), 200);
  // The token is removed from the address and the history.
  assert.match(page.url(), /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{64}\/$/);
  dev.address = page.url().slice(0, -1);
  await page.close();
  return context;
}

/** Opens an address and collects errors of the browser. */
async function open(dev, path, setup = {}) {
  const page = await dev.context.newPage();
  page.complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error") page.complaints.push(message.text());
  });
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  page.on("request", (request) => {
    const { origin } = new URL(dev.address);
    const isOurs = request.url().startsWith(`${origin}/`) || request.url().startsWith("data:");
    if (!isOurs || request.method() !== "GET") page.complaints.push(request.url());
  });
  if (setup.viewport) await page.setViewportSize(setup.viewport);
  if (setup.colorScheme) await page.emulateMedia({ colorScheme: setup.colorScheme });
  await page.goto(dev.address + path);
  return page;
}

/** Runs all applicable rules of axe. */
async function violations(page) {
  // The debugger evaluates it, so the content security policy does not apply.
  await page.evaluate(await readFile(AXE, "utf8"));
  const found = await page.evaluate(() => window.axe.run());
  return found.violations.map((it) => `${it.id}: ${it.nodes.map((node) => node.html)}`);
}

/** Compares the page with the reviewed picture, or writes the picture. */
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

test("without the cookie, a page in the style of the others explains the error", async () => {
  for (const [, setup] of SETUPS) {
    const { viewport, colorScheme } = setup;
    const stranger = await browser.newContext({ viewport, colorScheme });
    const page = await stranger.newPage();
    await page.goto(still.address);
    await page.getByRole("heading", { name: "Not signed in" }).waitFor();
    const style = () => {
      const { fontFamily, backgroundColor } = getComputedStyle(document.body);
      return { fontFamily, backgroundColor };
    };
    const ours = await open(still, "/nowhere", setup);
    assert.deepEqual(await page.evaluate(style), await ours.evaluate(style));
    await isFitToLookAt(page, setup);
    await ours.close();
    await stranger.close();
  }
});

test("a page of another server on this host receives no cookie", async () => {
  const cookies = [];
  const other = createServer((request, answer) => {
    cookies.push(request.headers.cookie);
    answer.end("<!doctype html><title>other</title>");
  });
  await new Promise((listening) => other.listen(0, "127.0.0.1", listening));
  const page = await still.context.newPage();
  for (const path of ["/", "/machines"]) {
    await page.goto(`http://127.0.0.1:${other.address().port}${path}`);
  }
  await page.close();
  // A browser opens connections ahead of need, and `close` waits for one without a request forever.
  const closed = new Promise((done) => other.close(done));
  other.closeAllConnections();
  await closed;
  assert.ok(cookies.length >= 2);
  assert.deepEqual(new Set(cookies), new Set([undefined]));
});

test("requests with methods other than reads are rejected", async () => {
  for (const method of ["POST", "PUT", "PATCH", "DELETE"]) {
    const answer = await still.context.request.fetch(`${still.address}/machines`, { method });
    assert.equal(answer.status(), 405, method);
  }
});

test("a window opens and closes while the page is open", async () => {
  const page = await open(quick, "/machines?q=every-other-minute");
  const phase = page.locator("tbody .phase").first();
  await phase.filter({ hasText: "Serving" }).waitFor({ timeout: 30_000 });
  await phase.filter({ hasText: "Off" }).waitFor({ timeout: 30_000 });
  await phase.filter({ hasText: "Serving" }).waitFor({ timeout: 30_000 });
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

test("a filter is kept in the address, and its fields keep their text while the page is updated", async () => {
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

/** Waits for some updates of the live part of a page. */
async function updates(page, count) {
  const seen = () => page.locator("#live").getAttribute("data-updates").then(Number);
  const before = await seen();
  await page.waitForFunction(
    (least) => Number(document.getElementById("live").dataset.updates || 0) >= least,
    before + count,
    { timeout: 60_000 },
  );
}

test("selected text, the focus and an opened table stay while the page is updated", async () => {
  const page = await open(quick, "/");
  await updates(page, 1);
  await page.getByText("As a table").click();
  const name = page.locator("#words th[scope=row]").first();
  const selected = await name.evaluate((it) => {
    getSelection().selectAllChildren(it);
    it.marked = true;
    return String(getSelection());
  });
  assert.ok(selected.length > 3, selected);
  await page.locator(".names a").first().focus();
  await updates(page, 3);
  assert.equal(await page.evaluate(() => String(getSelection())), selected);
  assert.equal(await name.evaluate((it) => it.marked), true, "the element is the same");
  assert.ok(await page.locator("#words").evaluate((it) => it.open));
  assert.equal(await page.evaluate(() => document.activeElement.localName), "a");
  assert.deepEqual(page.complaints, []);
  await page.close();
});

test("the chart is as wide as the window lets it be", async () => {
  const page = await open(still, "/", { viewport: { width: 1900, height: 900 } });
  const filled = () => page.waitForFunction(() => {
    const chart = document.querySelector("#week svg");
    const room = document.getElementById("week").clientWidth;
    return room > 1020 && Math.abs(chart.getBoundingClientRect().width - room) < 2;
  });
  await filled();
  await page.setViewportSize({ width: 1400, height: 900 });
  await filled();
  // The names are beside their rows.
  const tops = await page.evaluate(() => {
    const name = document.querySelector(".names li").getBoundingClientRect().top;
    const row = document.querySelector("#week svg g[transform]").getBoundingClientRect();
    return { name, top: row.top, bottom: row.bottom };
  });
  assert.ok(tops.top >= tops.name && tops.bottom <= tops.name + 22, JSON.stringify(tops));
  await page.close();
});

test("one time zone is chosen for a page and kept on the next ones", async () => {
  const context = await browser.newContext({
    timezoneId: "Asia/Tokyo", storageState: await still.context.storageState(),
  });
  const page = await context.newPage();
  await page.goto(`${still.address}/machines`);
  await page.getByText("Times are those of America/New_York.").waitFor();
  await page.getByLabel("Times of").selectOption({ label: "Yours: Asia/Tokyo" });
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByText("Times are those of Asia/Tokyo.").waitFor();
  const zones = await page.locator("#live").evaluate((it) =>
    [...new Set(it.textContent.match(/\b\d\d:\d\d [A-Z]{3,4}\b/g).map((time) => time.slice(6)))]);
  assert.deepEqual(zones, ["JST"]);
  assert.doesNotMatch(await page.locator("#live").textContent(), /\dT\d\d:\d\d:\d\dZ/);
  await page.getByRole("link", { name: "business-hours-worker" }).click();
  await page.getByText("Times are those of Asia/Tokyo.").waitFor();
  // The office closes 45 s after the start, which may be later than this.
  await page.locator("#timeline").waitFor({ timeout: 120_000 });
  assert.doesNotMatch(await page.locator("#timeline").textContent(), /\dT\d\d:\d\d:\d\dZ/);
  await page.getByRole("link", { name: "Week", exact: true }).click();
  await page.getByText("Times are those of Asia/Tokyo.").waitFor();
  await context.close();
});

test("the list is sorted by the column whose head is clicked, and again in reverse", async () => {
  const page = await open(still, "/machines?q=desk-00");
  const names = () => page.locator("tbody th a").allTextContents();
  const sort = async (column, direction) => {
    await page.getByRole("link", { name: column, exact: true }).click();
    await page.locator(`th[aria-sort=${direction}]`, { hasText: column }).waitFor();
  };
  await sort("Machine", "ascending");
  const ascending = await names();
  assert.equal(ascending.length, 10);
  assert.deepEqual(ascending, [...ascending].sort());
  await sort("Machine", "descending");
  assert.deepEqual(await names(), ascending.reverse());
  await page.close();
});

test("the commands about a machine and its manifest are copied by their buttons", async () => {
  const origin = new URL(still.address).origin;
  await still.context.grantPermissions(["clipboard-read", "clipboard-write"], { origin });
  const page = await open(still, "/machines/default/business-hours-worker");
  const copied = async (name) => {
    await page.evaluate(() => navigator.clipboard.writeText(""));
    await page.getByRole("button", { name, exact: true }).click();
    await page.waitForFunction(async () => await navigator.clipboard.readText() !== "");
    await page.locator("#status").filter({ hasText: "Copied" }).waitFor();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  for (const words of ["explain", "run", "stop"]) {
    const end = words === "explain" ? "" : " --for 2h";
    const command = `5spot ${words} business-hours-worker -n default${end}`;
    assert.equal(await copied(`Copy: ${command}`), command);
  }
  await page.getByText("Manifest", { exact: true }).click();
  const yaml = await copied("Copy the YAML");
  assert.match(yaml, /^kind: ScheduledMachine$/m);
  assert.match(yaml, /^ {2}name: "?business-hours-worker"?$/m);
  assert.doesNotMatch(yaml, /managedFields|^status:/m);
  assert.deepEqual(page.complaints, []);
  await page.close();
});

test("the keyboard reaches every control, in the order of the page", async () => {
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
      assert.notEqual(it.outline, "none", "the focus is visible");
      break;
    }
  }
  for (const name of ["q", "state", "namespace", "phase", "cluster", "label", "zone"]) {
    assert.ok(walked.includes(name), `${name} in ${walked}`);
  }
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/machines\/default\/desk-/);
  await page.close();
});

const PAGES = [
  // The week is fixed, because the clock advances during the tests.
  ["week", () => still, "/?from=2026-03-05"],
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
    test(`axe finds no violation, and no content overflows the window: ${name}, ${setting}`, async () => {
      const page = await open(dev(), path, setup);
      if (name === "machine") {
        await page.getByText("is not evicted: Cannot evict pod").first()
          .waitFor({ timeout: 120_000 });
        await page.locator("#timeline").waitFor();
      } else {
        await page.locator("#live figure, #live table").first().waitFor();
      }
      // The first update draws pictures as wide as the window.
      await page.locator("#live[data-updates]").waitFor();
      await isFitToLookAt(page, setup);
      const fullPage = name !== "machines" && setting !== "phone";
      await looksLike(page, `dashboard-${name}-${setting}`, { fullPage });
      assert.deepEqual(page.complaints, []);
      await page.close();
    });
  }
}

for (const [setting, setup] of SETUPS) {
  test(`axe finds no violation, and no content overflows the window: capacities, ${setting}`, async () => {
    const page = await open(quick, "/capacities", setup);
    await page.locator("#live table").getByText("Deployment").first().waitFor();
    await isFitToLookAt(page, setup);
    assert.deepEqual(page.complaints, []);
    await page.close();
  });
}

/** Checks that axe finds no violation and that the page is not wider than the window. */
async function isFitToLookAt(page, setup) {
  assert.deepEqual(await violations(page), []);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= setup.viewport.width, `${width} pixels wide`);
}

test("names without a line-break opportunity fit windows of every width", async () => {
  const name = "w".repeat(63);
  for (const path of ["/", "/machines", `/machines/default/${name}`, "/savings"]) {
    for (const width of [1280, 1110, 1000, 780, 600, 360]) {
      const setup = { viewport: { width, height: 800 } };
      const page = await open(quick, path, setup);
      await page.locator("#live figure, #live table").first().waitFor();
      await page.locator("h1, th, li").filter({ hasText: name }).first().waitFor();
      const seen = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(seen <= width, `${path}: ${seen} pixels in a window of ${width}`);
      await page.close();
    }
  }
});

test("every kind of bar is filled with its pattern", async () => {
  const page = await open(still, "/?from=2026-03-05");
  // In one evaluation: the page may replace its content between two, and a removed element has no
  // style.
  const painted = await page.evaluate(() => {
    const all = document.querySelectorAll('#live path[fill^="url"]');
    return [...all].map((it) => getComputedStyle(it).fill);
  });
  assert.ok(painted.length > 10, `${painted.length} bars`);
  assert.deepEqual(painted.filter((fill) => !fill.startsWith("url(")), []);
  await page.close();
});

test("the table of the week shows what holidays and overrides change", async () => {
  const page = await open(still, "/?from=2026-03-05");
  await page.getByText("As a table").click();
  const row = (machine) => page.locator("#words tr").filter({ hasText: machine }).textContent();
  assert.match(await row("desk-003"), /exception: stop \(holidays\)/);
  assert.match(await row("desk-006"), /exception: run \(stocktaking\)/);
  assert.match(await row("desk-009"), /override: run \(inc-4711\)/);
  await page.close();
});

describe("the savings of a month", () => {
  const PATH = "/savings?month=2026-02&by=team";
  let dev;

  before(async () => {
    // Only time passes. The test writes the account itself, so that the figures are known.
    dev = await startDev(["--start", "2026-01-31T22:00:00Z", "--speed", "100000",
      "--no-controller", "--no-simulator", "--rates", rates, "--apply", dozen]);
    for (const [number, { metadata }] of office().entries()) {
      await dev.patch(metadata.name, "/status", february(number));
    }
    dev.context = await signIn(dev);
    // The page has a link to March once February has ended.
    const page = await open(dev, PATH);
    const next = page.getByRole("link", { name: "March 2026" });
    const deadline = performance.now() + 120_000;
    while (!await next.isVisible()) {
      assert.ok(performance.now() < deadline, "February does not pass");
      await page.reload();
    }
    await page.close();
  });

  after(() => dev?.stop());

  for (const [setting, setup] of SETUPS) {
    test(`axe finds no violation, and no content overflows the window: savings, ${setting}`, async () => {
      const page = await open(dev, PATH, setup);
      await page.locator("#live table").first().waitFor();
      await isFitToLookAt(page, setup);
      await looksLike(page, `dashboard-savings-${setting}`, { fullPage: setting !== "phone" });
      assert.deepEqual(page.complaints, []);
      await page.close();
    });
  }

  test("hours, money, energy and CO2 are shown next to an always-on baseline, and in a CSV file", async () => {
    const page = await open(dev, PATH);
    const text = await page.locator("#live").textContent();
    for (const word of ["Hours wanted", "Active", "Always on", "CHF", "kWh", "CO2"]) {
      assert.ok(text.includes(word), word);
    }
    for (const team of ["research", "risk", "trading"]) {
      assert.ok(text.includes(`${team}, 4 machines`), team);
    }
    // Twelve machines of 28 days.
    assert.match(text, /of 8064\.0 h/);
    const address = await page.getByRole("link", { name: "CSV" }).getAttribute("href");
    const file = await dev.context.request.get(new URL(address, page.url()).href);
    assert.match(file.headers()["content-type"], /text\/csv/);
    const lines = (await file.text()).trim().split(/\r?\n/);
    assert.equal(lines.length, 1 + 12);
    await page.close();
  });

  test("reading them sends no write", () => onlyReads(dev));
});

/** Checks with the audit log that the dashboard has sent only reads. */
async function onlyReads(dev) {
  const requests = await dev.requests();
  assert.ok(requests.length >= 3, `${requests.length} requests`);
  for (const verb of new Set(requests.map((it) => it.verb))) {
    assert.ok(["get", "list", "watch"].includes(verb), verb);
  }
}

test("a session of clicks through every page works without a script error", async () => {
  const page = await open(still, "/");
  const click = async (role, name) => {
    await page.getByRole(role, { name, exact: true }).first().click();
    await page.waitForLoadState();
    assert.notEqual(await page.title(), "Not found · 5-Spot", name);
  };
  for (const time of ["Earlier", "Later", "Today", "Day", "14 days", "Week"]) {
    await click("link", time);
  }
  await click("link", "Machines");
  await page.locator("select[name=phase]").selectOption("Inactive");
  await page.locator("input[name=label]").fill("team=risk");
  await click("button", "Filter");
  await page.waitForURL(/phase=Inactive/);
  await page.locator("tbody th a").first().click();
  await page.locator("tr.decides").waitFor();
  await click("link", "Savings");
  await page.getByLabel("Group by label").fill("team");
  await click("button", "Show");
  await page.waitForURL(/by=team/);
  await page.goBack();
  assert.deepEqual(page.complaints, []);
  await page.close();
});

// Runs last, because the audit log then has the requests of all clicks.
test("a session of clicks sends no write", async () => {
  for (const dev of [still, quick]) await onlyReads(dev);
});
