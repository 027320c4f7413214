/** A real Restate server and the worker of the guide, each in a process of its own. */

import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { connect, createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { environment } from "../gateway.js";
import { repository } from "../vectors.js";

const startsMs = 60_000;
const page = readFileSync(`${repository}/docs/guides/durable-workflows.md`, "utf8");

/** Returns a block of the guide, such as `bash init`. */
export function block(name: string): string {
  const found = page.split(`\n\`\`\`${name}\n`)[1]?.split("```\n")[0];
  if (found === undefined) throw new Error(`the guide has no block ${name}`);
  return found;
}

export class Engine {
  private worker: ChildProcess | undefined;

  private constructor(
    /** The folder in which the commands of the guide run. */
    readonly folder: string,
    private readonly server: ChildProcess,
    private readonly ports: Readonly<Record<"ingress" | "admin" | "worker", number>>,
    private readonly settings: Readonly<Record<string, string>>,
  ) {}

  /** Starts the server. `settings` are for the commands of the guide and the worker. */
  static async start(settings: Record<string, string>): Promise<Engine> {
    const folder = mkdtempSync(`${tmpdir()}/restate-`);
    const own = { RESTATE_BASE_DIR: `${folder}/data`, RESTATE_LOG_FORMAT: "json", RESTATE_DISABLE_TELEMETRY: "true", RESTATE_DEFAULT_NUM_PARTITIONS: "1" };
    const options = ["--no-logo", "--use-random-ports", "true", "--listen-mode", "tcp", "--bind-ip", "127.0.0.1"];
    const server = spawn(packaged("@restatedev/restate-server", "bin/restate-server"), options, { env: own, stdio: ["ignore", "pipe", "ignore"] });
    let log = "";
    server.stdout.on("data", (chunk: Buffer) => (log += chunk.toString()));
    const portOf = (name: string) => Number(new RegExp(`"server.port":([0-9]+),"server_name":"${name}"`).exec(log)?.[1]);
    await eventually(() => portOf("http-ingress-server") > 0 && portOf("admin-api-server") > 0, () => `Restate did not start: ${log}`);
    symlinkSync(process.env["COUNTERSIGN_BIN"] ?? "", `${folder}/countersign`);
    const ports = { ingress: portOf("http-ingress-server"), admin: portOf("admin-api-server"), worker: await freePort() };
    return new Engine(folder, server, ports, { PATH: `${folder}:${process.env["PATH"]}`, ...settings });
  }

  /** The token of the worker, which the guide has made. */
  get token(): string {
    return /^INSTANCE=(.*)$/m.exec(readFileSync(`${this.folder}/.env`, "utf8"))?.[1] ?? "";
  }

  /** Runs commands of the guide. Only the ports of Restate and of the worker are other ones. */
  async run(name: string): Promise<string> {
    const { ingress, admin, worker } = this.ports;
    const commands = block(`bash ${name}`).replaceAll(":8080", `:${ingress}`).replaceAll(":9070", `:${admin}`).replaceAll(":9080", `:${worker}`);
    const options = { cwd: this.folder, env: environment(this.settings) };
    return (await promisify(execFile)("bash", ["-euo", "pipefail", "-c", commands], options)).stdout;
  }

  /** Starts the worker, after `killWorker` at the same address. */
  async startWorker(): Promise<void> {
    const program = fileURLToPath(new URL("../../test/durable/snippets/restate.ts", import.meta.url));
    const own = { ...this.settings, INSTANCE: this.token, PORT: String(this.ports.worker) };
    const worker = spawn(packaged("node", "bin/node"), ["--no-warnings", program], { env: environment(own), stdio: ["ignore", "pipe", "pipe"] });
    let log = "";
    for (const stream of [worker.stdout, worker.stderr]) stream.on("data", (chunk: Buffer) => (log += chunk.toString()));
    this.worker = worker;
    await eventually(() => answers(this.ports.worker), () => `the worker did not start: ${log}`);
  }

  /** Kills the worker, as a power cut would. */
  async killWorker(): Promise<void> {
    await kill(this.worker);
  }

  /** Sends a request to Restate, and returns the result, or the message of the error. */
  async call(path: string, body: unknown): Promise<string> {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`http://127.0.0.1:${this.ports.ingress}/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    const found: unknown = await response.json();
    return response.ok ? String(found) : String((found as { message: string }).message);
  }

  async close(): Promise<void> {
    await Promise.all([this.worker, this.server].map(kill));
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Returns a program of a package that has one for each platform. */
function packaged(name: string, program: string): string {
  return fileURLToPath(import.meta.resolve(`${name}-${process.platform}-${process.arch}/${program}`));
}

async function kill(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  child.kill("SIGKILL");
  await ended;
}

async function eventually(holds: () => boolean | Promise<boolean>, failure: () => string): Promise<void> {
  for (const ends = Date.now() + startsMs; !(await holds()); await sleep(20)) {
    if (Date.now() > ends) throw new Error(failure());
  }
}

async function freePort(): Promise<number> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  listener.close();
  return port;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
