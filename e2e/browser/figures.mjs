// How fast the dashboard is with many machines: `npm run figures`, in a browser against the
// embedded server, and `5spot preview` for a picture. FIVESPOT names the program; a release build
// is what is meant. Prints one line of a table for each figure.

import { execFileSync, spawn } from "node:child_process";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { PROGRAM, desk, startBrowser, startDev, writeObjects } from "./dev.mjs";

const MACHINES = Number(process.env.MACHINES ?? 5000);
const UPDATES = 20;
const VIEWS = 50;

const directory = await mkdtemp(join(tmpdir(), "5spot-figures-"));
const named = (number) => desk(number, { name: `desk-${String(number).padStart(5, "0")}` });
const machines = join(directory, "machines.yaml");
await writeObjects(machines, Array.from({ length: MACHINES }, (_, number) => named(number)));
const some = join(directory, "some.yaml");
await writeObjects(some, Array.from({ length: 200 }, (_, number) => named(number)));

const line = (...cells) => console.log(`| ${cells.join(" | ")} |`);
const milliseconds = (number) => `${Math.round(number)} ms`;
const middle = (numbers) => numbers.toSorted((one, other) => one - other)[numbers.length >> 1];

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
    if (url) return { child, url };
  }
  throw new Error("5spot dashboard has printed no URL");
}

const dev = await startDev(["--no-controller", "--no-simulator", "--apply", machines]);
const dashboard = await startDashboard(dev.kubeconfig);
const browser = await startBrowser();
const context = await browser.newContext();
const page = await context.newPage();
// The browser itself is awake, and its first page is not part of the figures.
await page.goto("about:blank");

const before = await consumption(dashboard.child.pid);
let since = performance.now();
await page.goto(dashboard.url);
await page.locator("#live figure").waitFor();
line(`first view of ${MACHINES} machines, list included`, "500 ms", milliseconds(performance.now() - since));
const first = await consumption(dashboard.child.pid);
line("CPU time of the dashboard for it", "", milliseconds(first.cpu - before.cpu));

const origin = new URL(dashboard.url).origin;
for (const [name, path] of [["week", "/"], ["machines", "/machines"], ["savings", "/savings"]]) {
  const times = [];
  for (let view = 0; view < 9; view += 1) {
    since = performance.now();
    await page.goto(origin + path);
    await page.locator("#live").waitFor();
    times.push(performance.now() - since);
  }
  line(`a later view of ${name}`, "500 ms", milliseconds(middle(times)));
}

// A label that the filter of the page asks for: the machine appears.
const seen = [];
for (let update = 0; update < UPDATES; update += 1) {
  const label = `update=${update}`;
  await page.goto(`${origin}/machines?label=${encodeURIComponent(label)}`);
  await page.getByText("Live", { exact: true }).waitFor();
  const name = `desk-${String(update).padStart(5, "0")}`;
  since = performance.now();
  await dev.patch(name, "", { metadata: { labels: { update: String(update) } } });
  await page.getByRole("link", { name }).waitFor();
  seen.push(performance.now() - since);
}
line("an update is seen, median", "1 s", milliseconds(middle(seen)));
line("an update is seen, slowest of " + UPDATES, "1 s", milliseconds(Math.max(...seen)));

for (let view = 0; view < VIEWS; view += 1) {
  await page.goto(`${origin}/?page=${1 + (view % 20)}`);
}
const last = await consumption(dashboard.child.pid);
line("memory before the first view", "", `${before.resident.toFixed(0)} MiB`);
line("memory after the first view", "", `${first.resident.toFixed(0)} MiB`);
line(`memory after ${VIEWS} more views and ${UPDATES} updates`, "", `${last.resident.toFixed(0)} MiB`);

await browser.close();
dashboard.child.kill();
await dev.stop();

const times = [];
const picture = join(directory, "picture.svg");
for (let run = 0; run < 5; run += 1) {
  since = performance.now();
  const drawn = execFileSync(PROGRAM, [
    "preview", "-f", some, "--from", "2026-03-02", "--to", "2026-03-16", "-o", "svg",
  ], { maxBuffer: 1 << 26 });
  times.push(performance.now() - since);
  await writeFile(picture, drawn);
}
line("`preview -o svg` of 200 machines over 14 days", "1 s", milliseconds(middle(times)));
line("its size", "2 MiB", `${((await stat(picture)).size / 1024).toFixed(0)} KiB`);
await rm(directory, { recursive: true, force: true });
