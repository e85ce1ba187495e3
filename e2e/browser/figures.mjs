// How fast the dashboard is with many machines: `npm run figures`, in a browser against the
// embedded server, and `5spot preview` for a picture. FIVESPOT names the program; a release build
// is what is meant. Everything is measured twice: with nothing else to do for the computer, and with
// a process for each second core that does nothing but compute. Prints a line for each figure, and
// with RECORD=1 writes figures.json.

import { execFileSync, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { PROGRAM, desk, startBrowser, startDev, writeObjects } from "./dev.mjs";

const MACHINES = Number(process.env.MACHINES ?? 5000);
const UPDATES = 20;
const VIEWS = 50;
const TIMES = 5;

const RECORD = join(dirname(fileURLToPath(import.meta.url)), "figures.json");
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

/** `5spot dashboard` as a process of its own, so that its memory is seen. */
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

/** The time until a page shows its picture, and until all machines are in it, in milliseconds. */
async function firstView(page, url) {
  const since = performance.now();
  await page.goto(url);
  await page.locator("#live figure").waitFor();
  const seen = performance.now() - since;
  await page.getByText(`of ${MACHINES} machines have a row`).waitFor();
  return { seen, complete: performance.now() - since };
}

/** Every figure of the page, as [what, unit, bound, number]. */
async function ofPage(dev, browser) {
  const figures = [];
  const put = (...figure) => figures.push(figure);

  // The URL is opened as soon as it is printed: nothing is known of the cluster yet.
  const firsts = [];
  let dashboard;
  let page;
  for (let time = 0; time < TIMES; time += 1) {
    dashboard?.stop();
    await page?.context().close();
    page = await (await browser.newContext()).newPage();
    // The browser itself is awake, and its first page is not part of the figures.
    await page.goto("about:blank");
    dashboard = await startDashboard(dev.kubeconfig);
    firsts.push(await firstView(page, dashboard.url));
  }
  const pid = dashboard.child.pid;
  put("first view, the URL opened as soon as it is printed", "ms", 500, middle(firsts.map((it) => it.seen)));
  put(`slowest of ${TIMES}`, "ms", 500, most(firsts.map((it) => it.seen)));
  put("all machines are in it", "ms", 1000, middle(firsts.map((it) => it.complete)));
  const first = await consumption(pid);
  put("CPU time of the dashboard for it", "ms", null, first.cpu);

  const origin = new URL(dashboard.url).origin;
  for (const [name, path] of [["week", "/"], ["machines", "/machines"], ["savings", "/savings"]]) {
    const times = [];
    for (let view = 0; view < 9; view += 1) {
      const since = performance.now();
      await page.goto(origin + path);
      await page.locator("#live").waitFor();
      times.push(performance.now() - since);
    }
    put(`a later view of ${name}, median`, "ms", 500, middle(times));
  }

  // A label that the filter of the page asks for: the machine appears.
  const seen = [];
  for (let update = 0; update < UPDATES; update += 1) {
    const value = `${update}-${pid}`;
    await page.goto(`${origin}/machines?label=${encodeURIComponent(`update=${value}`)}`);
    await page.getByText("Live", { exact: true }).waitFor();
    const name = `desk-${String(update).padStart(5, "0")}`;
    const since = performance.now();
    await dev.patch(name, "", { metadata: { labels: { update: value } } });
    await page.getByRole("link", { name }).waitFor();
    seen.push(performance.now() - since);
  }
  put("an update is seen, median", "ms", 1000, middle(seen));
  put(`an update is seen, slowest of ${UPDATES}`, "ms", 1000, most(seen));

  for (let view = 0; view < VIEWS; view += 1) {
    await page.goto(`${origin}/?page=${1 + (view % 20)}`);
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

/** Processes that keep so many cores busy, until they are ended. */
function keepBusy(cores) {
  const busy = Array.from({ length: cores }, () => spawn(process.execPath, ["-e", "for (;;);"]));
  return () => busy.forEach((it) => it.kill("SIGKILL"));
}

const dev = await startDev(["--no-controller", "--no-simulator", "--apply", machines]);
const browser = await startBrowser();
const measure = async () => [...await ofPage(dev, browser), ...await ofPicture()];
const quiet = await measure();
const rest = keepBusy(CORES >> 1);
let busy;
try {
  busy = await measure();
} finally {
  rest();
}
await browser.close();
await dev.stop();
await rm(directory, { recursive: true, force: true });

const figures = quiet.map(([what, unit, bound, number], place) => ({
  what,
  unit,
  bound,
  quiet: Math.round(number),
  busy: Math.round(busy[place][3]),
}));
for (const { what, unit, bound, quiet, busy } of figures) {
  console.log(`| ${what} | ${bound ? `${bound} ${unit}` : ""} | ${quiet} ${unit} | ${busy} ${unit} |`);
}
if (process.env.RECORD) {
  const record = { machines: MACHINES, cores: CORES, figures };
  await writeFile(RECORD, `${JSON.stringify(record, null, 2)}\n`);
}
