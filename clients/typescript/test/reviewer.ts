/** A reviewer who decides on the real pages, with their forms, nonces and digests. */

interface Form {
  readonly action: string;
  readonly fields: Record<string, string>;
}

const typedDigits = 6;

export class Reviewer {
  private readonly cookies = new Map<string, string>();

  private constructor(
    private readonly site: string,
    private readonly name: string,
  ) {}

  static async signIn(site: string, name: string, password: string): Promise<Reviewer> {
    const reviewer = new Reviewer(site, name);
    const form = await reviewer.form("GET", "/sign-in", {}, "/sign-in");
    await reviewer.post(form, { username: name, password });
    return reviewer;
  }

  /** Loads the page of a review, votes, and confirms on the second page. */
  async vote(reviewUrl: string, verdict: "approve" | "deny", comment = ""): Promise<void> {
    const first = await this.form("GET", new URL(reviewUrl).pathname, {}, "/decision");
    const again = await this.form("POST", first.action, { ...first.fields, verdict, comment }, "/decision");
    const typed = "typed" in again.fields ? { typed: (again.fields["digest"] ?? "").slice(-typedDigits) } : {};
    await this.post(again, typed);
  }

  private async post(form: Form, more: Record<string, string>): Promise<void> {
    const page = await this.page("POST", form.action, { ...form.fields, ...more });
    if (page.status !== 303) throw new Error(`${form.action}: ${page.status} for ${this.name}\n${alertOf(await page.text())}`);
  }

  private async form(method: string, path: string, fields: Record<string, string>, action: string): Promise<Form> {
    const page = await this.page(method, path, fields);
    const text = await page.text();
    const found = formsOf(text).find((it) => it.action.endsWith(action));
    if (page.status !== 200 || found === undefined) {
      throw new Error(`${path}: ${page.status} and no form for ${this.name}\n${alertOf(text)}`);
    }
    return found;
  }

  private async page(method: string, path: string, fields: Record<string, string>): Promise<Response> {
    const cookie = Array.from(this.cookies, ([name, value]) => `${name}=${value}`).join("; ");
    const page = await fetch(this.site + path, {
      method,
      redirect: "manual",
      headers: { origin: this.site, cookie },
      ...(method === "POST" && { body: new URLSearchParams(fields) }),
    });
    for (const set of page.headers.getSetCookie()) {
      const [name = "", value = ""] = (set.split(";")[0] ?? "").split("=", 2);
      this.cookies.set(name, value);
    }
    return page;
  }
}

function formsOf(page: string): Form[] {
  return Array.from(page.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs), ([, head = "", body = ""]) => {
    const fields: Record<string, string> = {};
    for (const [, input = ""] of body.matchAll(/<input\b([^>]*)>/g)) {
      const name = attribute(input, "name");
      if (name && !["checkbox", "radio", "submit"].includes(attribute(input, "type"))) fields[name] = attribute(input, "value");
    }
    return { action: attribute(head, "action"), fields };
  });
}

function attribute(tag: string, name: string): string {
  const found = new RegExp(`(?:^|\\s)${name}=(?:"([^"]*)"|([^\\s>]+))`).exec(tag);
  return unescaped(found?.[1] ?? found?.[2] ?? "");
}

function unescaped(text: string): string {
  return text.replace(/&#(x[0-9a-f]+|[0-9]+);/gi, (_, code: string) =>
    String.fromCodePoint(code.startsWith("x") ? parseInt(code.slice(1), 16) : Number(code)),
  ).replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

function alertOf(page: string): string {
  return /role="alert"[^>]*>([^<]*)/.exec(page)?.[1]?.trim() ?? "";
}
