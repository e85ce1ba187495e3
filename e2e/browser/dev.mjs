// Starts `5spot dev` and a browser for the tests.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
export const PROGRAM = process.env.FIVESPOT ?? join(ROOT, "target/debug/5spot");
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** The stop functions of the running processes. */
const running = new Set();

/** Ends every running `5spot dev`, also if another one failed to start. */
export async function stopAll() {
  await Promise.all([...running].map((stop) => stop()));
}

/** Runs `5spot dev` with `args` until `stop()`. `url` is the URL of its dashboard. */
export async function startDev(args) {
  const directory = await mkdtemp(join(tmpdir(), "5spot-browser-"));
  const audit = join(directory, "audit.jsonl");
  const child = spawn(PROGRAM, ["dev", "--audit-log", audit, ...args], {
    cwd: directory,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stop = async () => {
    if (!running.delete(stop)) return;
    child.removeAllListeners("exit");
    const ended = new Promise((done) => child.once("exit", done));
    if (child.exitCode === null && child.kill()) await ended;
    await rm(directory, { recursive: true, force: true });
  };
  running.add(stop);
  const lines = createInterface({ input: child.stdout });
  const printed = [];
  const url = await new Promise((found, failed) => {
    let url;
    child.once("exit", (code) => failed(new Error(`5spot dev ended with ${code}`)));
    lines.on("line", (line) => {
      printed.push(line);
      url ??= line.match(/^dashboard at (\S+)$/)?.[1];
      if (line.startsWith("applied ")) found(url);
    });
  });
  const kubeconfig = join(directory, ".5spot/kubeconfig");
  return {
    url,
    kubeconfig,
    printed,
    /** Patches a ScheduledMachine or, with "/status", its status, as the administrator. */
    async patch(name, subresource, change) {
      const text = await readFile(kubeconfig, "utf8");
      const path = `/apis/${API_VERSION}/namespaces/default/scheduledmachines/${name}`;
      await patch(text, path + subresource, change);
    },
    /** Returns the dashboard's requests from the server's audit log. */
    async requests() {
      const text = await readFile(audit, "utf8");
      const all = text.trim().split("\n").map((line) => JSON.parse(line));
      return all.filter((it) => it.user.username === "5spot-dashboard");
    },
    stop,
  };
}

/** Sends a merge patch to the server of a kubeconfig. */
async function patch(kubeconfig, path, change) {
  const field = (name) => kubeconfig.match(new RegExp(`"?${name}"?: *"?([^",\\s]+)`))[1];
  const options = {
    method: "PATCH",
    ca: Buffer.from(field("certificate-authority-data"), "base64"),
    headers: {
      authorization: `Bearer ${field("token")}`,
      "content-type": "application/merge-patch+json",
    },
  };
  const answer = await new Promise((found, failed) => {
    const sent = request(field("server") + path, options, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => found({ status: answer.statusCode, text: parts.join("") }));
    });
    sent.on("error", failed);
    sent.end(JSON.stringify(change));
  });
  assert.equal(answer.status, 200, answer.text);
}

export function startBrowser() {
  return chromium.launch({
    executablePath: BROWSER,
    args: [
      "--headless",
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

const CLUSTER = {
  apiVersion: "cluster.x-k8s.io/v1beta2",
  kind: "Cluster",
  metadata: { name: "production", namespace: "default" },
  spec: { clusterNetwork: { pods: { cidrBlocks: ["10.244.0.0/16"] } } },
};

const API_VERSION = "5spot.finos.org/v1alpha1";

/** The costs of machines, for the savings. */
export const RATES = {
  currency: "CHF",
  pricePerKilowattHour: 0.27,
  co2GramsPerKilowattHour: 112,
  rates: [{ name: "desks", infrastructureKind: "RemoteMachine", pricePerHour: 0.05, watts: 180 }],
};

/** A machine of one of three teams, each with a form of schedule of its own. */
export function desk(number, changes = {}) {
  const timezone = number % 5 === 0 ? "Europe/Zurich" : "America/New_York";
  const forms = [
    { daysOfWeek: ["mon-fri"], hoursOfDay: [`${8 + (number % 3)}-17`], timezone },
    { daysOfWeek: ["mon-sun"], hoursOfDay: ["20-6"], timezone },
    { cron: `30 ${number % 24} * * *`, duration: "5h", timezone },
  ];
  const labels = {
    team: ["trading", "research", "risk"][number % 3],
    floor: String(number % 4),
  };
  const { name, clusterName, ...schedule } = changes;
  return {
    apiVersion: API_VERSION,
    kind: "ScheduledMachine",
    metadata: {
      name: name ?? `desk-${String(number).padStart(3, "0")}`,
      namespace: "default",
      labels,
    },
    spec: {
      clusterName: clusterName ?? "production",
      schedule: { ...forms[number % 3], ...schedule },
      bootstrapSpec: {
        apiVersion: "bootstrap.cluster.x-k8s.io/v1beta2",
        kind: "K0sWorkerConfig",
        spec: { version: "v1.30.0+k0s.0" },
      },
      infrastructureSpec: {
        apiVersion: "infrastructure.cluster.x-k8s.io/v1beta2",
        kind: "RemoteMachine",
        spec: {
          address: `10.1.${number >> 8}.${number & 255}`,
          port: 22,
          user: "admin",
          useSudo: true,
          sshKeyRef: { name: "business-hours-worker-ssh" },
        },
      },
      gracefulShutdownTimeout: "5m",
      nodeDrainTimeout: "5m",
    },
  };
}

/** An override that is kept after its end, so that a picture of the past shows it. */
function override(name, spec) {
  const annotations = { "5spot.finos.org/keep": "true" };
  return {
    apiVersion: API_VERSION,
    kind: "ScheduleOverride",
    metadata: { name, namespace: "default", annotations },
    spec,
  };
}

/** Forty machines in the week of 2026-03-05, with a holiday, a stocktaking and three overrides. */
export function fleet() {
  const holidays = {
    apiVersion: API_VERSION,
    kind: "ScheduleCalendar",
    metadata: { name: "holidays", namespace: "default" },
    spec: { dates: [{ name: "carnival", date: "2026-03-09" }] },
  };
  const stop = { name: "holidays", action: "Stop", calendarRef: { name: "holidays" } };
  const run = { name: "stocktaking", action: "Run", startDate: "2026-03-07", endDate: "2026-03-07" };
  const changes = (number) => ({
    ...(number % 3 === 0 && { exceptions: number % 2 ? [stop] : [stop, run] }),
    ...(number === 37 && { enabled: false }),
    ...(number === 38 && { clusterName: "prodd" }),
  });
  const desks = Array.from({ length: 40 }, (_, number) => desk(number, changes(number)));
  return [CLUSTER, holidays, ...desks,
    override("inc-4711", {
      targetRef: { name: "desk-009" }, mode: "Run", reason: "INC-4711",
      startTime: "2026-03-07T14:00:00Z", endTime: "2026-03-08T02:00:00Z",
    }),
    override("electrician", {
      selector: { matchLabels: { floor: "2" } }, mode: "Stop", reason: "no power on floor 2",
      startTime: "2026-03-10T12:00:00Z", endTime: "2026-03-10T20:00:00Z",
    }),
    override("look-at-racks", {
      targetRef: { name: "desk-010" }, mode: "Hold", reason: "racks",
      startTime: "2026-03-08T06:00:00Z", endTime: "2026-03-08T18:00:00Z",
    }),
  ];
}

/** A dozen machines of three teams. */
export function office() {
  return Array.from({ length: 12 }, (_, number) => desk(number));
}

/** The status of a machine of that office with an account of February 2026. */
export function february(number) {
  // Ten hours on twenty days, eleven hours a day, five hours a day.
  const wanted = [200, 308, 140][number % 3] * 3600;
  const windows = number % 3 === 0 ? 20 : 28;
  const late = (40 + number) * windows;
  const month = {
    month: "2026-02",
    wantedSeconds: wanted,
    activeSeconds: wanted - late + 300 * windows,
    provisioningSeconds: late,
    lateSeconds: late,
    reclaims: number === 7 ? 2 : 0,
  };
  const usage = {
    months: [month],
    startTime: "2026-02-01T00:00:00Z",
    accountedTime: "2026-03-01T00:00:00Z",
    accountedState: "None",
  };
  return { status: { phase: "Inactive", usage } };
}

/** Objects with names of the maximum length, without a place for a line break. */
export function longNames() {
  const long = (text) => text.repeat(63).slice(0, 63);
  const target = { apiVersion: "apps/v1", kind: "Deployment", name: long("t"), subresource: "scale" };
  return [desk(200, { name: long("w"), clusterName: long("production") }), {
    apiVersion: API_VERSION,
    kind: "ScheduledCapacity",
    metadata: { name: long("c"), namespace: "default" },
    spec: {
      schedule: { daysOfWeek: ["mon-sun"], hoursOfDay: ["0-23"] },
      target,
      capacity: { field: "replicas", activeValue: 1 },
    },
  }];
}

/** Writes a file with these objects. */
export async function writeObjects(path, objects) {
  // JSON is YAML.
  await writeFile(path, objects.map((object) => JSON.stringify(object)).join("\n---\n"));
}
