// Recomputes the digest of a review from the visible content of the page.
//
// The script reads values from the visible cells, never from a copy. Data attributes only add salts, commitments of
// redacted values, and the paths of arrays. They cannot change a value, because wrong ones result in other roots.
// The script rebuilds two trees from the rows. Their roots and the shown statement give the digest, which must equal the
// shown digest and the one that the form submits.
//
// A cell must be visible (see `unseen`). The script does not notice an element that is drawn on top, a font with
// misleading glyphs, or a gateway that serves another script.

const encoder = new TextEncoder();
const BARE = /^sha256:[0-9a-f]{64}$/;
const ABSENT = "absent";
const NESTED = "nested";
const FONT_PIXELS_MIN = 9;
const OPACITY_MIN = 0.6;
const EDGE_PIXELS = 2;

class Mismatch extends Error {}

async function hash(tag, ...parts) {
  const pieces = [encoder.encode(tag), new Uint8Array(1), ...parts.map((it) => (typeof it === "string" ? encoder.encode(it) : it))];
  const bytes = new Uint8Array(pieces.reduce((sum, it) => sum + it.length, 0));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return "sha256:" + Array.from(digest, (it) => it.toString(16).padStart(2, "0")).join("");
}

// RFC 8785. Members are joined by hand, because an object would sort keys like "2" before all others.
function canonical(value) {
  if (Array.isArray(value)) return "[" + value.map(canonical).join(",") + "]";
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort().map((key) => JSON.stringify(key) + ":" + canonical(value[key]));
  return "{" + members.join(",") + "}";
}

// A visible text is a value's canonical text, in which characters that cannot be seen stand as
// \uXXXX. Anything else that happens to parse (another spelling of a number, a member twice) would
// let a reader and this script understand two things.
function parseShown(text, where) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Mismatch(`the value of ${where} cannot be read`);
  }
  const raw = text.replace(/\\u([0-9a-f]{4})|\\./g, (escape, digits) => {
    const unit = digits ? parseInt(digits, 16) : 0;
    return unit >= 0x20 ? String.fromCharCode(unit) : escape;
  });
  if (raw !== canonical(value)) throw new Mismatch(`the value of ${where} is not written canonically`);
  return value;
}

function saltBytes(text) {
  if (!/^[A-Za-z0-9_-]{43}$/.test(text)) throw new Mismatch("a salt is missing");
  return Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (it) => it.charCodeAt(0));
}

function transparent(colour) {
  const alpha = /(?:,|\/)\s*([\d.]+)(%?)\s*\)$/.exec(/^rgba|\//.test(colour) ? colour : "");
  return colour === "transparent" || (alpha !== null && Number(alpha[1]) / (alpha[2] ? 100 : 1) < OPACITY_MIN);
}

function ground(element) {
  for (let it = element; it; it = it.parentElement) {
    const colour = boxOf(it).ground;
    if (colour) return colour;
  }
  return "rgb(255, 255, 255)";
}

const drawsText = (content) => !["none", "normal", '""', "''"].includes(content);

// Returns the reason why an element's own style makes its text unreadable, or null.
function styleHides(element) {
  const style = getComputedStyle(element);
  if (style.display === "none") return "is not displayed";
  if (style.visibility !== "visible") return "is invisible";
  if (parseFloat(style.fontSize) < FONT_PIXELS_MIN) return "is too small to read";
  const ink = style.webkitTextFillColor || style.color;
  if (transparent(style.color) || transparent(ink)) return "is transparent";
  if (ink === ground(element) || style.color === ground(element)) return "has the colour of its ground";
  if (style.textTransform !== "none" || (style.webkitTextSecurity || "none") !== "none") return "is disguised";
  if (style.direction !== "ltr" || style.unicodeBidi.includes("override")) return "is reordered";
  if (parseFloat(style.textIndent) !== 0) return "is moved out of its place";
  for (const pseudo of ["::before", "::after"]) {
    if (drawsText(getComputedStyle(element, pseudo).content)) return "is overwritten by a style";
  }
  return drawsText(style.content || "normal") ? "is replaced by a style" : null;
}

// Effects of an element's style on everything inside it. They are cached during one check, because a page has thousands
// of cells in a few boxes.
let boxes = new Map();

function boxOf(element) {
  const known = boxes.get(element);
  if (known) return known;
  const style = getComputedStyle(element);
  const cuts = (overflow) => ["hidden", "clip"].includes(overflow);
  const box = {
    why: boxHides(style),
    opacity: Number(style.opacity),
    ground: transparent(style.backgroundColor) ? null : style.backgroundColor,
    cutsAcross: cuts(style.overflowX),
    cutsDown: cuts(style.overflowY),
  };
  if (box.cutsAcross || box.cutsDown) box.frame = element.getBoundingClientRect();
  boxes.set(element, box);
  return box;
}

function boxHides(style) {
  if (style.contentVisibility === "hidden") return "is not displayed";
  if (style.clipPath !== "none" || (style.maskImage || "none") !== "none") return "is masked";
  if (style.clip !== "auto" && style.position !== "static") return "is clipped";
  return style.filter === "none" ? null : "is filtered";
}

function cutsOff({ frame, cutsAcross, cutsDown }, place) {
  const across = place.left < frame.left - EDGE_PIXELS || place.right > frame.right + EDGE_PIXELS;
  const down = place.top < frame.top - EDGE_PIXELS || place.bottom > frame.bottom + EDGE_PIXELS;
  return (cutsAcross && across) || (cutsDown && down);
}

function outOfPage(box) {
  const page = document.documentElement;
  const [left, top] = [box.left + scrollX, box.top + scrollY];
  const width = Math.max(page.scrollWidth, page.clientWidth);
  const height = Math.max(page.scrollHeight, page.clientHeight);
  return left + box.width <= 0 || top + box.height <= 0 || left >= width || top >= height;
}

// Returns the reason why an element's text is not visible, or null. `folds` selects the folds that may hide it: a long
// value's own fold, which shows its length, and the fold of unchanged values.
function unseen(element, folds) {
  let opacity = 1;
  let box = element.getBoundingClientRect();
  for (let it = element, inside = null; it; inside = it, it = it.parentElement) {
    const folded = it.tagName === "DETAILS" && !it.open && inside !== null && inside.tagName !== "SUMMARY";
    if (folded && !it.matches(folds)) return "is folded away";
    // Elements in a closed fold have no box, so the fold itself must be visible.
    if (folded) box = it.getBoundingClientRect();
    const around = boxOf(it);
    if (around.why) return around.why;
    if (around.frame && cutsOff(around, box)) return "is cut off";
    opacity *= around.opacity;
  }
  if (opacity < OPACITY_MIN) return "is transparent";
  if (box.width < 3 || box.height < 6) return "has no room";
  if (outOfPage(box)) return "lies outside the page";
  for (const it of [element, ...element.querySelectorAll("*")]) {
    // The labels of a fold are not part of the value. An open fold shows the whole value instead of its start.
    if (it.matches(".fold-more, .fold-less") || it.closest("details[open] > summary")) continue;
    const why = styleHides(it);
    if (why) return why;
  }
  return null;
}

const FOLDS = {
  value: "details.fold",
  unchanged: "details.fold, details[data-unchanged]",
  arguments: "details.fold, details[data-more-arguments]",
};

function mustSee(element, folds, where) {
  const why = unseen(element, folds);
  if (why) throw new Mismatch(`${where} ${why}`);
}

// Returns a value's text. A fold shows only its start, and the whole value is read.
function shownText(element, read) {
  const whole = element.querySelector("[data-whole]");
  if (!whole) return read(element);
  if (whole.closest("details").open) mustSee(whole, FOLDS.value, "an unfolded value");
  const all = read(whole);
  const head = read(element.querySelector(".fold-head")).replace(/…$/, "");
  if (head.length === 0 || !all.startsWith(head)) throw new Mismatch("a fold shows something else than it folds");
  return all;
}

const readJson = (element) => element.textContent;

// In prose an escape is an element, so that no text can imitate it.
function readProse(element) {
  let text = "";
  for (const node of element.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) text += node.data;
    else if (node.nodeType === Node.ELEMENT_NODE && node.matches(".esc")) text += unescaped(node.textContent);
    else if (node.nodeType === Node.ELEMENT_NODE && node.tagName !== "WBR") throw new Mismatch("a text holds something unknown");
  }
  return text;
}

function unescaped(shown) {
  const point = /^U\+([0-9A-F]{4,6})$/.exec(shown);
  if (!point || parseInt(point[1], 16) > 0x10ffff) throw new Mismatch("an escape cannot be read");
  return String.fromCodePoint(parseInt(point[1], 16));
}

// `payment.amount` and `/payment/amount` are the same path.
function pointerOf(shown) {
  if (shown === "(the whole state)") return [];
  if (!shown.startsWith("/")) return shown.split(".");
  return shown.slice(1).split("/").map((it) => it.replace(/~1/g, "/").replace(/~0/g, "~"));
}

const pointerText = (keys) => keys.map((it) => "/" + it.replace(/~/g, "~0").replace(/\//g, "~1")).join("");

// Labels of a side without an opened leaf. The templates must use the same words. A commitment can also show itself.
const WORDS = { [ABSENT]: "nothing", [NESTED]: "several values, below", bare: "redacted" };

function sideOf(element, where) {
  const kind = Object.keys(WORDS).find((it) => it in element.dataset);
  if (!kind) return { text: canonical(parseShown(shownText(element, readJson), where)), salt: element.dataset.salt };
  const [shown, given] = [element.textContent, element.dataset[kind]];
  if (shown === WORDS[kind] && kind !== "bare") return kind;
  if (kind === "bare" && BARE.test(given || shown) && (!given || shown === WORDS.bare)) return given || shown;
  throw new Mismatch(`${where} is not what its row says`);
}

const sameSide = (one, other) => one === other || (one.text !== undefined && one.text === other.text && one.salt === other.salt);

// Reads the rows as pointer → side for each tree. Changes are read only from the table of changes, and unchanged values
// from the place that shows them. A mention elsewhere must agree, and cannot replace a missing row.
function readRows(trees) {
  const mentions = [];
  for (const row of document.querySelectorAll("[data-row]")) {
    const role = row.dataset.row;
    const name = row.querySelector("[data-pointer]");
    const keys = pointerOf(readProse(name));
    const where = keys.join(".") || "the state";
    const cells = row.querySelectorAll("[data-side]");
    const folds = role === "same" ? FOLDS.unchanged : FOLDS.value;
    for (const element of [name, ...cells]) mustSee(element, folds, where);
    for (const cell of cells) {
      const side = sideOf(cell, where);
      const both = cell.dataset.side === "both";
      if (role !== "mention" && both !== (role === "same")) throw new Mismatch(`${where} is not what its row says`);
      for (const it of both ? ["from", "to"] : [cell.dataset.side]) {
        if (role === "mention") mentions.push([trees[it], keys, side, where]);
        else plant(trees[it], keys, side, where);
      }
    }
  }
  for (const [tree, keys, side, where] of mentions) {
    const there = tree.places.get(pointerText(keys));
    if (!there || !sameSide(there.side, side)) throw new Mismatch(`${where} is shown in two ways`);
  }
  for (const list of document.querySelectorAll("[data-rows]")) {
    if (list.querySelectorAll("[data-row]").length !== Number(list.dataset.rows)) throw new Mismatch("a row is missing");
  }
}

function plant(tree, keys, side, where) {
  const pointer = pointerText(keys);
  const there = tree.places.get(pointer);
  if (there && !sameSide(there.side, side)) throw new Mismatch(`${where} is shown in two ways`);
  tree.places.set(pointer, { keys, side, where });
}

function grow(tree) {
  const top = { members: new Map() };
  for (const { keys, side, where } of tree.places.values()) {
    if (side === ABSENT || side === NESTED) continue;
    let at = top;
    for (const key of ["", ...keys]) {
      if (!at.members) throw new Mismatch(`${where} lies below a value`);
      if (!at.members.has(key)) at.members.set(key, { members: new Map() });
      at = at.members.get(key);
    }
    if (at.members?.size > 0) throw new Mismatch(`${where} is a value and holds others`);
    delete at.members;
    at.side = side;
  }
  checkClaims(tree, top);
  return top.members.get("") ?? null;
}

// If a row claims that a path is absent or has its own rows, the trees must agree.
function checkClaims(tree, top) {
  for (const { keys, side, where } of tree.places.values()) {
    if (side !== ABSENT && side !== NESTED) continue;
    let at = top;
    for (const key of ["", ...keys]) at = at?.members?.get(key);
    if ((side === ABSENT) === Boolean(at)) throw new Mismatch(`${where} is not as its row says`);
  }
}

async function commit(node, pointer, arrays) {
  if (!node) throw new Mismatch("no rows are shown");
  if (typeof node.side === "string") return node.side;
  if (node.side) return hash("countersign.leaf.v1", saltBytes(node.side.salt ?? ""), node.side.text);
  const members = [...node.members].map(([key, child]) => [key, child, pointer + pointerText([key])]);
  if (arrays.has(pointer)) {
    members.sort(([one], [other]) => Number(one) - Number(other));
    if (members.some(([key], at) => key !== String(at))) throw new Mismatch(`an item of ${pointer} is missing`);
    const roots = await Promise.all(members.map(([, child, at]) => commit(child, at, arrays)));
    return hash("countersign.array.v1", canonical(roots));
  }
  const roots = Object.create(null);
  for (const [key, child, at] of members) roots[key] = await commit(child, at, arrays);
  return hash("countersign.object.v1", canonical(roots));
}

function readStatement() {
  const statement = Object.create(null);
  for (const row of document.querySelectorAll("[data-fact]")) {
    const [name, value] = [row.querySelector("[data-key]"), row.querySelector("[data-value]")];
    const key = name.textContent;
    for (const element of [name, value]) mustSee(element, FOLDS.value, `the statement’s ${key}`);
    if (key in statement) throw new Mismatch(`the statement’s ${key} is shown twice`);
    statement[key] = parseShown(shownText(value, readJson), `the statement’s ${key}`);
  }
  return statement;
}

// Checks the tool call. If an argument is redacted, only the name can be compared. Returns whether all of it was checked.
async function readCall(stated) {
  const [name, given] = [document.querySelector("[data-tool]"), document.querySelector("[data-arguments]")];
  if (Boolean(name) !== Boolean(stated)) throw new Mismatch("the tool call is not the signed one");
  if (!name) return true;
  for (const element of [name, ...document.querySelectorAll("[data-tool-mention]")]) {
    mustSee(element, FOLDS.value, "the tool");
    if (readProse(element) !== stated.name) throw new Mismatch("the tool is not the signed one");
  }
  if (!given) return false;
  const text = canonical(readArguments(given));
  const shown = await hash("countersign.arguments.v1", saltBytes(given.dataset.salt ?? ""), text);
  if (shown !== stated.arguments) throw new Mismatch("the arguments of the tool call are not the signed ones");
  return true;
}

// Reads the arguments from the rows of their tables, one row for each. Names and values must be visible. Warnings stand
// beside them and are not part of them.
function readArguments(call) {
  const given = Object.create(null);
  for (const row of call.querySelectorAll("[data-argument]")) {
    const [name, value] = [row.querySelector("[data-pointer]"), row.querySelector("[data-value]")];
    const [key, ...below] = pointerOf(readProse(name));
    const where = `the argument ${key}`;
    for (const element of [name, value]) mustSee(element, FOLDS.arguments, where);
    if (key === undefined || below.length > 0 || key in given) throw new Mismatch(`${where} is not what its row says`);
    given[key] = parseShown(shownText(value, readJson), where);
  }
  return given;
}

async function recompute(page) {
  boxes = new Map();
  const statement = readStatement();
  const trees = { from: { places: new Map() }, to: { places: new Map() } };
  readRows(trees);
  for (const [name, arrays] of [["from", page.dataset.arraysFrom], ["to", page.dataset.arraysTo]]) {
    const root = await commit(grow(trees[name]), "", new Set(JSON.parse(arrays)));
    if (root !== statement[name]) throw new Mismatch(`the state ${name === "from" ? "before" : "after"} is not the signed one`);
  }
  for (const element of document.querySelectorAll("[data-statement]")) {
    mustSee(element, FOLDS.value, "the sentence");
    if (readProse(element) !== statement[element.dataset.statement]) throw new Mismatch("the sentence and the statement differ");
  }
  const rationale = document.querySelector("[data-rationale]");
  if (rationale) {
    mustSee(rationale, FOLDS.value, "the rationale");
    const shown = await hash("countersign.rationale.v1", shownText(rationale, readProse));
    if (shown !== statement.rationale) throw new Mismatch("the rationale is not the signed one");
  }
  const wholeCall = await readCall(statement.tool);
  const digest = await hash("countersign.transition.v1", canonical(statement));
  const shown = document.querySelector("[data-digest]");
  mustSee(shown, FOLDS.value, "the digest");
  if (shown.textContent !== digest) throw new Mismatch("the digest shown is another");
  for (const input of document.querySelectorAll("input[name=digest]")) {
    if (input.value !== digest) throw new Mismatch("the form would sign another digest");
  }
  return wholeCall ? null : "Only the tool’s name was checked, because an argument is redacted or shown in part.";
}

const SAID = {
  part: ["Recomputed in this browser: matches in part", "The keys, the other values and the statement below give exactly this digest."],
  match: ["Recomputed in this browser: matches", "The keys and values shown on this page and the statement below give exactly this digest."],
  mismatch: ["Recomputed in this browser: does not match", "Do not decide on this page. Tell the operator of the gateway."],
};

function say(state, note) {
  const part = state === "match" && note;
  const [words, detail] = SAID[part ? "part" : state];
  for (const element of document.querySelectorAll("[data-check]")) {
    element.dataset.state = part ? "part" : state;
    element.querySelector("[data-check-words]").textContent = words;
    const more = element.querySelector("[data-check-detail]");
    if (more) more.textContent = note ? `${note} ${detail}` : detail;
  }
  for (const form of document.querySelectorAll("form[data-decide]")) {
    form.elements.browser_check.value = state;
    for (const button of form.querySelectorAll("button[name=verdict]")) button.disabled = state !== "match";
  }
}

async function check(page) {
  try {
    say("match", await recompute(page));
    return true;
  } catch (error) {
    say("mismatch", `Reason: ${error instanceof Mismatch ? error.message : "the page cannot be read"}.`);
    return false;
  }
}

// The page is checked again before the form is sent, because it can change after the first check.
function checkBeforeSending(page, form) {
  let stage = "reading";
  addEventListener("pageshow", () => (stage = "reading"));
  form.addEventListener("submit", async (event) => {
    if (stage === "checked") return void (stage = "sent");
    event.preventDefault();
    if (stage !== "reading") return;
    stage = "checking";
    const right = await check(page);
    // A fast check can end before this event is fully dispatched, and until then the browser ignores another submit.
    await new Promise((done) => setTimeout(done));
    stage = right ? "checked" : "reading";
    if (right) form.requestSubmit(event.submitter);
  });
}

const page = document.querySelector("[data-proof]");
if (page && globalThis.isSecureContext && globalThis.crypto?.subtle) {
  for (const form of document.querySelectorAll("form[data-decide]")) checkBeforeSending(page, form);
  await check(page);
}
