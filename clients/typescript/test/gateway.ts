/** A real gateway for the tests: its own process, on a free port, in a temporary folder. */

import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

import { Client, type ClientOptions } from "countersign-gateway";

import { Reviewer } from "./reviewer.js";

const startsMs = 60_000;
const password = "correct horse battery staple";

function program(): string {
  const named = process.env["COUNTERSIGN_BIN"];
  if (named === undefined) throw new Error("COUNTERSIGN_BIN names no gateway");
  return named;
}

/** Returns the environment without variables of other gateways, such as their database. */
export function environment(settings: Record<string, string> = {}): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith("COUNTERSIGN_"));
  return { ...Object.fromEntries(own), ...settings };
}

export class Gateway {
  private process: ChildProcess | undefined;
  private names = 0;
  /** The address of the pages. */
  site = "";

  private constructor(
    private readonly folder: string,
    private readonly settings: Record<string, string>,
  ) {}

  static async start(settings: Record<string, string> = {}): Promise<Gateway> {
    const gateway = new Gateway(mkdtempSync(`${tmpdir()}/countersign-`), settings);
    await gateway.up("127.0.0.1:0");
    return gateway;
  }

  /** The folder of the data, for commands that a test runs by itself. */
  get data(): string {
    return `${this.folder}/data`;
  }

  get url(): string {
    return this.site.replace("//localhost", "//127.0.0.1");
  }

  /** Starts the process, after `kill` at the same address. */
  async up(listen = this.url.replace("http://", "")): Promise<void> {
    const [out, log] = [openSync(`${this.folder}/out`, "w"), openSync(`${this.folder}/log`, "a")];
    const options = ["--data", this.data, "serve", "--listen", listen];
    this.process = spawn(program(), options, { stdio: ["ignore", out, log], env: environment(this.settings) });
    closeSync(out);
    closeSync(log);
    for (const until = Date.now() + startsMs; Date.now() < until; await sleep(20)) {
      const found = /^Countersign listens at (\S+)$/m.exec(readFileSync(`${this.folder}/out`, "utf8"));
      if (found?.[1] !== undefined) {
        this.site = found[1];
        return;
      }
      if (this.process.exitCode !== null) break;
    }
    throw new Error(`the gateway did not start: ${readFileSync(`${this.folder}/log`, "utf8")}`);
  }

  /** Kills it, as a power cut would. */
  async kill(): Promise<void> {
    const { process } = this;
    if (process === undefined || process.exitCode !== null) return;
    const ended = new Promise((resolve) => process.once("exit", resolve));
    process.kill("SIGKILL");
    await ended;
  }

  async close(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Runs a command of the command line on its data. */
  run(options: readonly string[], typed = ""): string {
    const all = ["--data", this.data, ...options];
    return execFileSync(program(), all, { input: typed, encoding: "utf8", env: environment(this.settings), stdio: ["pipe", "pipe", "pipe"] }).trim();
  }

  addToken(role: string, bound: { flow?: string; node?: string } = {}): string {
    this.names += 1;
    const options = Object.entries(bound).flatMap(([name, value]) => [`--${name}`, value]);
    return this.run(["token", "add", `${role}-${this.names}`, "--role", role, "--owner", "platform", "--new-group", ...options]);
  }

  async reviewer(name: string, group: string): Promise<Reviewer> {
    this.run(["user", "add", name, "--role", "reviewer", "--group", group, "--password-stdin"], `${password}\n`);
    return Reviewer.signIn(this.site, name, password);
  }

  client(token: string, options: Partial<ClientOptions> = {}): Client {
    return new Client({ url: this.url, token, ...options });
  }
}
