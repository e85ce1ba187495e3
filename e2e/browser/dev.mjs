// Starting `5spot dev` and a browser for the tests.

import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

export const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const PROGRAM = process.env.FIVESPOT ?? join(ROOT, "target/debug/5spot");
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** Runs `5spot dev` with `args` until `stop()`; `url` is that of its dashboard. */
export async function startDev(args) {
  const directory = await mkdtemp(join(tmpdir(), "5spot-browser-"));
  const audit = join(directory, "audit.jsonl");
  const child = spawn(PROGRAM, ["dev", "--audit-log", audit, ...args], {
    cwd: directory,
    stdio: ["ignore", "pipe", "inherit"],
  });
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
  return {
    url,
    printed,
    /** The requests of the dashboard, as the server has recorded them. */
    async requests() {
      const text = await readFile(audit, "utf8");
      const all = text.trim().split("\n").map((line) => JSON.parse(line));
      return all.filter((it) => it.user.username === "5spot-dashboard");
    },
    async stop() {
      child.removeAllListeners("exit");
      const ended = new Promise((done) => child.once("exit", done));
      child.kill();
      await ended;
      await rm(directory, { recursive: true, force: true });
    },
  };
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

/** Writes forty machines of two teams in two time zones, and the Cluster that they join. */
export async function writeFleet(path) {
  const cluster = {
    apiVersion: "cluster.x-k8s.io/v1beta2",
    kind: "Cluster",
    metadata: { name: "production", namespace: "default" },
    spec: { clusterNetwork: { pods: { cidrBlocks: ["10.244.0.0/16"] } } },
  };
  const machine = (number) => {
    const timezone = number % 5 === 0 ? "Europe/Zurich" : "America/New_York";
    const schedules = [
      { daysOfWeek: ["mon-fri"], hoursOfDay: [`${8 + (number % 3)}-17`], timezone },
      { daysOfWeek: ["mon-sun"], hoursOfDay: ["20-6"], timezone },
      { cron: `30 ${number % 24} * * *`, duration: "5h", timezone },
    ];
    const name = `desk-${String(number).padStart(3, "0")}`;
    return {
      apiVersion: "5spot.finos.org/v1alpha1",
      kind: "ScheduledMachine",
      metadata: { name, namespace: "default", labels: { team: number % 2 ? "b" : "a" } },
      spec: {
        clusterName: number === 38 ? "prodd" : "production",
        schedule: { ...schedules[number % 3], enabled: number !== 37 },
        bootstrapSpec: {
          apiVersion: "bootstrap.cluster.x-k8s.io/v1beta2",
          kind: "K0sWorkerConfig",
          spec: { version: "v1.30.0+k0s.0" },
        },
        infrastructureSpec: {
          apiVersion: "infrastructure.cluster.x-k8s.io/v1beta2",
          kind: "RemoteMachine",
          spec: {
            address: `192.168.2.${number}`,
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
  };
  const objects = [cluster, ...Array.from({ length: 40 }, (_, number) => machine(number))];
  // JSON is YAML.
  await writeFile(path, objects.map((object) => JSON.stringify(object)).join("\n---\n"));
}
