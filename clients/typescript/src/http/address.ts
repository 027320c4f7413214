/** Address of the gateway. A token is sent over plain HTTP to localhost only, unless `allowPlainHttp` is set. */

import { invalidArgument } from "../errors.js";

/** Returns scheme, host and port of a gateway, or throws. The message never repeats the address. */
export function address(url: string, allowPlainHttp: boolean): string {
  let parts: URL;
  try {
    parts = new URL(url);
  } catch {
    throw invalidArgument("url", "is no address: is the variable set?");
  }
  if (parts.protocol !== "https:" && parts.protocol !== "http:") throw invalidArgument("url", "must start with https://");
  if (parts.username !== "" || parts.password !== "") {
    throw invalidArgument("url", "contains a user or a password: pass the token as `token`");
  }
  if (parts.pathname !== "/" || parts.search !== "" || parts.hash !== "") {
    throw invalidArgument("url", "has a path or a query: give only scheme, host and port, such as http://localhost:8480, without /aap/v1");
  }
  if (parts.protocol === "http:" && !allowPlainHttp && !isLoopback(parts.hostname)) {
    throw invalidArgument("url", "plain http would expose the token: use https");
  }
  return parts.origin;
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127\.[0-9]+\.[0-9]+\.[0-9]+$/.test(host);
}
