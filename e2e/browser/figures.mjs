// Measures the speed of the dashboard with many machines: `npm run figures`, in a browser against
// the embedded server, and `5spot preview` for a picture. FIVESPOT names the program, which should
// be a release build. Everything is measured twice: on an idle computer, and with a busy process
// for every second core. Prints a line for each figure. With RECORD=1, all of that is done three
// times, and the medians are written to figures.json, from which `cargo xtask gen` writes a part of
// docs/scale.md.
//
// The page itself records when content was painted: Playwright checks for an element at intervals
// of up to half a second, which is longer than the measured durations.

import { execFileSync, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir, totalmem } from "node:os";
import { basename, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { PROGRAM, desk, startBrowser, startDev, writeObjects } from "./dev.mjs";

const MACHINES = Number(process.env.MACHINES ?? 5000);
const UPDATES = 20;
const VIEWS = 50;
const TIMES = 5;

const ROUNDS = process.env.RECORD ? 3 : 1;

const RESULT = join(dirname(fileURLToPath(import.meta.url)), "figures.json");
const CORES = availableParallelism();

const directory = await mkdtemp(join(tmpdir(), "5spot-figures-"));
const named = (number) => desk(number, { name: `desk-${String(number).padStart(5, "0")}` });
const machines = join(directory, "machines.yaml");
await writeObjects(machines, Array.from({ length: MACHINES }, (_, number) => named(number)));
const some = join(directory, "some.yaml");
await writeObjects(some, Array.from({ length: 200 }, (_, number) => named(number)));

const middle = (numbers) => numbers.toSorted((one, other) => one - other)[numbers.length >> 1];
const most = (numbers) => Math.max(...numbers);

/** The resident memory of a process in MiB, and the CPU time that it has used in milliseconds. */
async function consumption(pid) {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1].split(" ");
  const resident = Number(status.match(/VmRSS:\s+(\d+)/)[1]) / 1024;
  return { resident, cpu: (Number(fields[11]) + Number(fields[12])) * 10 };
}

/** Starts `5spot dashboard` as a process of its own, so that its memory can be measured. */
async function startDashboard(kubeconfig) {
  const child = spawn(PROGRAM, ["dashboard", "-A", "--kubeconfig", kubeconfig], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  for await (const printed of lines) {
    const url = printed.match(/^dashboard at (\S+)$/)?.[1];
    if (url) return { child, url, stop: () => child.kill() };
  }
  throw new Error("5spot dashboard has printed no URL");
}

/** Milliseconds since 1970, to compare with the times recorded by a page. */
const clock = () => performance.timeOrigin + performance.now();

/** Returns a blank page in a new context that records when content was painted. */
async function newPage(browser) {
  const page = await (await browser.newContext()).newPage();
  await page.addInitScript(([all]) => {
    globalThis.painted = (isThere) => new Promise((found) => {
      const note = () => found(performance.timeOrigin + performance.now());
      const look = () => {
        const is = isThere();
        // The task after a frame.
        if (is) requestAnimationFrame(() => setTimeout(note));
        return is;
      };
      if (look()) return;
      const observer = new MutationObserver(() => look() && observer.disconnect());
      observer.observe(document, { childList: true, subtree: true });
    });
    const live = (what) => document.querySelector(`#live ${what}`);
    globalThis.firstFigure = globalThis.painted(() => live("figure"));
    globalThis.allMachines = globalThis.painted(() => live("> p.soft")?.textContent.includes(all));
    globalThis.content = globalThis.painted(() => live("*"));
  }, [`of ${MACHINES} machines have a row`]);
  await page.goto("about:blank");
  return page;
}

/** The time until a page shows its picture, and until all machines are in it, in milliseconds. */
async function firstView(page, url) {
  const since = clock();
  await page.goto(url, { waitUntil: "commit" });
  const seen = await page.evaluate(() => globalThis.firstFigure);
  const complete = await page.evaluate(() => globalThis.allMachines);
  return { seen: seen - since, complete: complete - since };
}

/** The time until a page shows its content, in milliseconds. */
async function laterView(page, url) {
  const since = clock();
  await page.goto(url, { waitUntil: "commit" });
  return await page.evaluate(() => globalThis.content) - since;
}

/** The time from a change in the cluster until the list shows it, in milliseconds. */
async function update(page, dev, root, number, value) {
  // The page filters by this label, so that the machine appears.
  await page.goto(`${root}/machines?label=${encodeURIComponent(`update=${value}`)}`);
  await page.getByText("Live", { exact: true }).waitFor();
  const name = `desk-${String(number).padStart(5, "0")}`;
  const appeared = page.evaluate((name) => globalThis.painted(() => {
    const links = [...document.querySelectorAll("#live tbody a")];
    return links.some((it) => it.textContent === name);
  }), name);
  const since = clock();
  await dev.patch(name, "", { metadata: { labels: { update: value } } });
  return await appeared - since;
}

/** Every figure of the page, as [what, unit, bound, number]. */
async function ofPage(dev, browser) {
  const figures = [];
  const put = (...figure) => figures.push(figure);

  // The URL is opened as soon as it is printed, before the caches of the dashboard have synced.
  const firsts = [];
  let dashboard;
  let page;
  for (let time = 0; time < TIMES; time += 1) {
    dashboard?.stop();
    await page?.context().close();
    // A first page warms up the browser and is not part of the figures.
    page = await newPage(browser);
    dashboard = await startDashboard(dev.kubeconfig);
    firsts.push(await firstView(page, dashboard.url));
  }
  const pid = dashboard.child.pid;
  put("first view, the URL opened as soon as it is printed", "ms", 500, middle(firsts.map((it) => it.seen)));
  put(`slowest of ${TIMES}`, "ms", 500, most(firsts.map((it) => it.seen)));
  put("all machines are in it", "ms", 1000, middle(firsts.map((it) => it.complete)));
  const first = await consumption(pid);
  put("CPU time of the dashboard for it", "ms", null, first.cpu);

  const root = page.url().slice(0, -1);
  for (const [name, path] of [["week", "/"], ["machines", "/machines"], ["savings", "/savings"]]) {
    const times = [];
    for (let view = 0; view < 9; view += 1) {
      times.push(await laterView(page, root + path));
    }
    put(`a later view of ${name}, median`, "ms", 500, middle(times));
  }

  const seen = [];
  for (let number = 0; number < UPDATES; number += 1) {
    seen.push(await update(page, dev, root, number, `${number}-${pid}`));
  }
  put("an update is seen, median", "ms", 1000, middle(seen));
  put(`an update is seen, slowest of ${UPDATES}`, "ms", 1000, most(seen));

  for (let view = 0; view < VIEWS; view += 1) {
    await page.goto(`${root}/?page=${1 + (view % 20)}`);
  }
  const last = await consumption(pid);
  put("memory after the first view", "MiB", null, first.resident);
  put(`memory after ${VIEWS} more views and ${UPDATES} updates`, "MiB", null, last.resident);
  dashboard.stop();
  await page.context().close();
  return figures;
}

/** Figures of `5spot preview`, in the same form. */
async function ofPicture() {
  const times = [];
  const picture = join(directory, "picture.svg");
  for (let run = 0; run < TIMES; run += 1) {
    const since = performance.now();
    const drawn = execFileSync(PROGRAM, [
      "preview", "-f", some, "--from", "2026-03-02", "--to", "2026-03-16", "-o", "svg",
    ], { maxBuffer: 1 << 26 });
    times.push(performance.now() - since);
    await writeFile(picture, drawn);
  }
  return [
    ["`preview -o svg` of 200 machines over 14 days", "ms", 1000, middle(times)],
    ["its size", "KiB", 2048, (await stat(picture)).size / 1024],
  ];
}

/** Starts processes that keep this many cores busy until they are ended. */
function keepBusy(cores) {
  const busy = Array.from({ length: cores }, () => spawn(process.execPath, ["-e", "for (;;);"]));
  return () => busy.forEach((it) => it.kill("SIGKILL"));
}

/** Every figure, on an idle computer and under load, as [what, unit, bound, quiet, busy]. */
async function round(dev, browser) {
  const measure = async () => [...await ofPage(dev, browser), ...await ofPicture()];
  const quiet = await measure();
  const rest = keepBusy(CORES >> 1);
  try {
    const busy = await measure();
    return quiet.map((figure, place) => [...figure, busy[place][3]]);
  } finally {
    rest();
  }
}

const dev = await startDev(["--no-controller", "--no-simulator", "--apply", machines]);
const browser = await startBrowser();
const rounds = [];
for (let number = 0; number < ROUNDS; number += 1) rounds.push(await round(dev, browser));
await browser.close();
await dev.stop();
await rm(directory, { recursive: true, force: true });

const figures = rounds[0].map(([what, unit, bound], place) => {
  const of = (column) => Math.round(middle(rounds.map((it) => it[place][column])));
  return { what, unit, bound, quiet: of(3), busy: of(4) };
});
for (const { what, unit, bound, quiet, busy } of figures) {
  console.log(`| ${what} | ${bound ? `${bound} ${unit}` : ""} | ${quiet} ${unit} | ${busy} ${unit} |`);
}
if (process.env.RECORD) {
  const record = {
    machine: { cores: CORES, memoryGib: Math.round(totalmem() / 2 ** 30) },
    profile: basename(dirname(PROGRAM)),
    machines: MACHINES,
    rounds: ROUNDS,
    figures,
  };
  await writeFile(RESULT, `${JSON.stringify(record, null, 2)}\n`);
}
