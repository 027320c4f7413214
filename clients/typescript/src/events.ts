/** The audit log as a stream. After a break it continues from the last event, so nothing is missed. */

import { CountersignError, unexpectedAnswer } from "./errors.js";
import { within } from "./http/deadline.js";
import { problem } from "./http/problem.js";
import { isPassing, pause, pauseSecs } from "./http/retries.js";
import { answerTooLarge, parsedAnswer, parsedOrNothing, type CallOptions, type Transport } from "./http/transport.js";
import { answer, type Schema } from "./schemas.js";
import { anyObject, anyText, count, listOf, openObject } from "./verify/forms.js";

/** An event of the audit log. */
export type AuditEvent = Schema<"EventResponse">;

/** Options of reading events. */
export interface EventsOptions extends CallOptions {
  /** The log position after which to read, 0 by default. Store the last `index` to continue from there. */
  readonly after?: number;
}

// The gateway sends a keep-alive every 15 seconds. After three missing ones the client reconnects.
const silenceSecs = 45;
// The gateway's own maximum.
const pageEvents = 500;
const eventForm = openObject({ index: count, id: anyText, type: anyText, timestamp: anyText, data: anyObject });
const readEvent = answer<AuditEvent>(eventForm);
const readPage = answer<{ events: AuditEvent[]; next: number }>(openObject({ events: listOf(eventForm), next: count }));

/** Yields every event after a log position, up to the current end. */
export async function* events(transport: Transport, options: EventsOptions): AsyncGenerator<AuditEvent> {
  for (let after = options.after ?? 0; ; ) {
    const query = { after, limit: pageEvents };
    const page = await transport.send(
      { method: "GET", path: "/v1/events", query, accepts: { 200: readPage }, isIdempotent: true },
      options,
    );
    yield* page.events;
    if (page.next <= after) return;
    after = page.next;
  }
}

/** Yields each new event, over lost connections and restarts of the gateway, until the signal ends it. */
export async function* followEvents(transport: Transport, options: EventsOptions): AsyncGenerator<AuditEvent> {
  const stream = new EventStream(options.after ?? 0, transport.answerBytesMax);
  for (let failures = 0; ; ) {
    let retryAfter: string | null = null;
    try {
      const response = await connect(transport, stream.position, options.signal);
      retryAfter = response.headers.get("retry-after");
      if (response.status !== 200) throw problem(response.status, parsedOrNothing(await bodyOf(transport, response, options.signal)));
      for await (const chunk of chunksOf(response, options.signal)) {
        failures = 0;
        yield* stream.add(chunk);
      }
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      if (error instanceof CountersignError && !isPassing(error)) throw error;
    }
    stream.forget();
    failures += 1;
    const wait = pauseSecs(transport.retries, failures, retryAfter) ?? transport.retries.retryAfterMostSecs;
    await pause(wait, options.signal);
  }
}

async function connect(transport: Transport, after: number, caller: AbortSignal | undefined): Promise<Response> {
  const headers = { accept: "text/event-stream", "last-event-id": String(after) };
  return within(silenceSecs, caller, (signal) => transport.open({ method: "GET", path: "/v1/events", headers }, signal));
}

function bodyOf(transport: Transport, response: Response, caller: AbortSignal | undefined): Promise<Uint8Array> {
  return within(silenceSecs, caller, () => transport.bytesOf(response));
}

/** Yields the chunks of a body. Silence ends the connection. */
async function* chunksOf(response: Response, caller: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      const { done, value } = await within(silenceSecs, caller, () => reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    // The consumer may also have left the loop.
    void reader.cancel().catch(() => undefined);
  }
}

/** The parsed part of a stream (`text/event-stream`), and the position to continue from. */
export class EventStream {
  #rest: number[] = [];
  #data: string[] = [];
  #id: number | undefined;
  #messageBytes = 0;

  constructor(
    public position: number,
    private readonly bytesMax: number,
  ) {}

  /** Yields the events that a chunk completes. Only a line feed ends a line. */
  *add(chunk: Uint8Array): Generator<AuditEvent> {
    for (const byte of chunk) {
      this.#messageBytes += 1;
      if (this.#messageBytes > this.bytesMax) throw answerTooLarge(this.bytesMax);
      if (byte !== 10) {
        this.#rest.push(byte);
        continue;
      }
      const event = this.line(decoded(this.#rest));
      this.#rest = [];
      if (event !== undefined) yield event;
    }
  }

  /** Forgets an incomplete message. */
  forget(): void {
    [this.#rest, this.#data, this.#id, this.#messageBytes] = [[], [], undefined, 0];
  }

  private line(line: string): AuditEvent | undefined {
    if (line !== "") {
      const colon = line.indexOf(":");
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (name === "data") this.#data.push(value);
      if (name === "id" && /^[0-9]{1,16}$/.test(value)) this.#id = Number(value);
      return undefined;
    }
    const [data, id] = [this.#data, this.#id];
    this.forget();
    const text = new TextEncoder().encode(data.join("\n"));
    const event = data.length === 0 ? undefined : readEvent(parsedAnswer(text, this.bytesMax));
    if (event !== undefined && event.index !== id) throw unexpectedAnswer("an event has another log position than its id");
    // A message without an event is a keep-alive with the current position.
    this.position = id ?? this.position;
    return event;
  }
}

function decoded(bytes: readonly number[]): string {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(new Uint8Array(bytes));
    return text.replace(/\r$/, "");
  } catch {
    throw unexpectedAnswer("the stream is not UTF-8");
  }
}
