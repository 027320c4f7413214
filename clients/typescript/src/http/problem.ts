/** Converts the body of a refusal into the error of this package. */

import { CountersignError, type FieldError } from "../errors.js";
import { isList, isObject, member, type Json, type JsonObject } from "../json/value.js";

/** Returns the error for a refusal. A response without a coded problem, for example of a proxy, has the code `unknown`. */
export function problem(status: number, body: Json | undefined): CountersignError {
  const found = isObject(body) ? (objectOf(member(body, "error")) ?? body) : {};
  const code = textOf(member(found, "code"));
  if (code === undefined) {
    const detail = "The response is not the gateway's. Check the address and the proxies.";
    return new CountersignError("unknown", { source: "gateway", status, detail });
  }
  // Errors of the Agent Approval Protocol have a `message`.
  const detail = textOf(member(found, "detail")) ?? textOf(member(found, "message")) ?? textOf(member(found, "title"));
  const requestId = textOf(member(found, "request_id"));
  return new CountersignError(code, {
    source: "gateway",
    status,
    detail: detail ?? "",
    ...(requestId !== undefined && { requestId }),
    errors: fieldErrors(member(found, "errors")),
    problem: found,
  });
}

function fieldErrors(listed: Json | undefined): FieldError[] {
  const found = listed !== undefined && isList(listed) ? listed.filter(isObject) : [];
  return found.map((it) => {
    const offset = member(it, "offset");
    const rule = textOf(member(it, "rule"));
    return {
      pointer: textOf(member(it, "pointer")) ?? "",
      code: textOf(member(it, "code")) ?? "unknown",
      detail: textOf(member(it, "detail")) ?? "",
      ...(rule !== undefined && { rule }),
      ...(typeof offset === "number" && { offset }),
      ...(Object.hasOwn(it, "value") && { value: it["value"] }),
    };
  });
}

function objectOf(value: Json | undefined): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}
