// Keyboard shortcuts and the copy button of a digest. Every shortcut presses a control that also works without it.

const SETTING = "countersign.keys";
const help = document.querySelector("[data-keys]");
const single = help?.querySelector("input");
const ROWS = "main .row-title a, main .list tbody th a";
const CHANGES = "main .diff tbody tr";

const visible = (it) => it.getClientRects().length > 0;

// Moves the focus to the next or previous element.
function step(selector, by) {
  const all = [...document.querySelectorAll(selector)].filter(visible);
  const at = all.findIndex((it) => it === document.activeElement || it.contains(document.activeElement));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
  if (!next) return;
  if (!next.matches("a")) next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "center" });
}

// Presses the form's own button, so that the same checks run as for a click.
const press = (selector) => document.querySelector(selector)?.click();

const search = () => document.querySelector("main [type=search]")?.select();

function copy() {
  const button = document.querySelector("[data-copy]");
  if (button && visible(button)) button.click();
}

const KEYS = {
  j: () => step(ROWS, 1),
  k: () => step(ROWS, -1),
  "]": () => step(CHANGES, 1),
  "[": () => step(CHANGES, -1),
  "/": search,
  // Only if a confirm page follows, so that a stray key never decides.
  a: () => press("[data-asks] button[value=approve]"),
  d: () => press("[data-asks] button[value=deny]"),
  c: copy,
  "?": () => help.showModal(),
};

// Sends the form in use, or the form to confirm. A form with two verdicts is never sent this way.
function send() {
  const form = document.activeElement.closest?.("main form") ?? document.querySelector("main form[data-decide]");
  const buttons = [...(form?.querySelectorAll("button:not([type=button])") ?? [])].filter((it) => visible(it) && !it.disabled);
  const best = buttons.find((it) => it.matches("[data-passkey-go]"));
  if (best || buttons.length === 1) (best ?? buttons[0]).click();
}

function pressed(event) {
  if (event.defaultPrevented || event.isComposing || help.open) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    send();
    return;
  }
  const typing = event.target.matches("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat && !"jk[]".includes(event.key)) return;
  if (!Object.hasOwn(KEYS, event.key) || !single.checked) return;
  event.preventDefault();
  KEYS[event.key]();
}

async function copied(button) {
  const said = button.textContent;
  await navigator.clipboard.writeText(document.querySelector("[data-digest]").textContent.trim());
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = said), 2000);
}

if (help) {
  single.checked = localStorage.getItem(SETTING) !== "off";
  single.onchange = () => localStorage.setItem(SETTING, single.checked ? "on" : "off");
  for (const it of document.querySelectorAll("[data-keys-open]")) {
    it.hidden = false;
    it.onclick = () => help.showModal();
  }
  document.addEventListener("keydown", pressed);
}
for (const it of document.querySelectorAll("[data-copy]")) {
  // Without a clipboard, the reader can still select the digest.
  it.hidden = !navigator.clipboard;
  it.onclick = () => copied(it);
}
