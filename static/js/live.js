// Keeps a page up to date. The server renders every change: the script loads the page again and copies the named parts.
// Nothing that is read or pointed at is moved. New content is only offered.

const main = document.getElementById("main");
const bar = document.querySelector("[data-news]");
const alarm = document.querySelector("[data-alarm]");
const LOOK_MILLIS_MIN = 700;
const LOOK_MILLIS_MAX = 60_000;
const REST_MILLIS = 500;
const LAST_MINUTE_MILLIS = 60_000;
const TIMER_MILLIS_MAX = 2 ** 31 - 1;

// Kind of the page: a list, the page of one thread, or a page that only offers a reload.
const about = { kind: main.dataset.live, thread: main.dataset.thread, at: main.dataset.look || location.href };

function concerns({ missed, events }) {
  if (missed) return true;
  return events.some((it) => !it.thread || !about.thread || it.thread === about.thread);
}

// Shows the offer below the page, so that nothing moves.
function offer(words, button, act) {
  // An equal offer stays, so that its button keeps the focus and screen readers do not repeat it.
  if (!bar.hidden && bar.firstElementChild?.textContent === words) {
    if (button) bar.querySelector("button").onclick = act;
    return;
  }
  const text = document.createElement("p");
  text.textContent = words;
  bar.replaceChildren(text);
  if (button) {
    const it = document.createElement("button");
    it.type = "button";
    it.className = "button";
    it.textContent = button;
    it.onclick = act;
    bar.append(it);
  }
  bar.hidden = false;
}

// Reloads the page. The same address with a fragment would not load it.
function openAgain() {
  const [at, here] = [new URL(about.at, location.href), new URL(location.href)];
  at.hash = here.hash = "";
  if (at.href === here.href) location.reload();
  else location.assign(at);
}

// Updates the number in the title and beside the links of the navigation.
function count(fresh) {
  const number = /^\(\d+\+?\) /;
  document.title = (number.exec(fresh.title)?.[0] ?? "") + document.title.replace(number, "");
  for (const link of document.querySelectorAll("header nav a")) {
    const other = fresh.querySelector(`header nav a[href="${CSS.escape(link.getAttribute("href"))}"]`);
    if (other && other.innerHTML !== link.innerHTML) link.innerHTML = other.innerHTML;
  }
}

// Copies the named parts that differ. Returns whether one did.
function takeOver(here, there) {
  let changed = false;
  for (const part of here.querySelectorAll("[data-part]")) {
    const other = there.querySelector(`[data-part="${part.dataset.part}"]`);
    if (!other || other.innerHTML === part.innerHTML || part.contains(document.activeElement)) continue;
    part.innerHTML = other.innerHTML;
    changed = true;
  }
  return changed;
}

// A list: updates its rows in place, marks ended rows, and offers new rows.
function list(fresh) {
  const rows = (root) => new Map([...root.querySelectorAll("[data-waiting] > [data-review]")].map((it) => [it.dataset.review, it]));
  const ended = new Map([...fresh.querySelectorAll("[data-ended] > [data-review]")].map((it) => [it.dataset.review, it]));
  const [here, there] = [rows(main), rows(fresh)];
  for (const [id, row] of here) {
    if (there.has(id)) takeOver(row, there.get(id));
    else markEnded(row, ended.get(id)?.querySelector(".row-outcome").innerHTML);
  }
  const fresher = [...there.keys()].filter((id) => !here.has(id)).length;
  if (fresher > 0) offer(`${fresher} new`, "Show", () => show(fresh));
}

// Shows the outcome of a row, or that it left the list because it was decided or moved to another page.
function markEnded(row, outcome) {
  row.classList.add("gone");
  for (const box of row.querySelectorAll("input")) Object.assign(box, { checked: false, disabled: true });
  const badges = row.querySelector(".badges");
  if (outcome) badges.innerHTML = outcome;
  else badges.textContent = "no longer in this list";
}

// Replaces the page with the loaded one. Ticked boxes stay ticked.
function show(fresh) {
  const ticked = [...main.querySelectorAll("input:checked")].map((it) => it.value);
  main.replaceChildren(...fresh.getElementById("main").childNodes);
  for (const box of main.querySelectorAll("input[type=checkbox]")) box.checked = ticked.includes(box.value);
  bar.hidden = true;
  main.focus();
}

// A review: updates votes and status, and disables a form that is no longer valid. The change itself is never updated,
// because a reader would then decide on values that they have not read.
function review(fresh) {
  const form = main.querySelector("[data-decide]:not([data-shut])");
  const [open, wasOver] = [fresh.querySelector("[data-decide]"), isOver(main)];
  const digest = (it) => it.querySelector("[data-digest]")?.textContent;
  if (digest(main) !== digest(fresh.getElementById("main"))) {
    shut(form, "The request was updated. This page shows the earlier version.");
    return;
  }
  const changed = takeOver(main, fresh);
  // A form with the focus is not replaced, so it is disabled if it is no longer offered.
  const revoking = main.querySelector("[data-revoke]:not([data-shut])");
  if (revoking && !fresh.querySelector("[data-revoke]")) {
    shut(revoking, "This can no longer be revoked.");
    return;
  }
  if (form && !open) shut(form, sentence(fresh) ?? "This can no longer be decided here.");
  else if (form && changed) rest(form);
  else if (!wasOver && isOver(fresh)) offer(sentence(fresh), "Reload page", openAgain);
  else if (open && !main.querySelector("[data-decide]")) offer("You can decide this now.", "Reload page", openAgain);
}

const isOver = (page) => page.querySelector(".ended-title") !== null;
const sentence = (page) => page.querySelector(".ended-title, .closed")?.textContent.trim().replace(/\s+/g, " ");

// Disables the form and shows the reason. The typed text stays.
function shut(form, why) {
  if (form) {
    form.setAttribute("data-shut", "");
    for (const it of form.querySelectorAll("button, input[type=submit]")) it.disabled = true;
    alarm.textContent = why;
  }
  offer(form ? `${why} Your input was not sent.` : why, "Reload page", openAgain);
}

// Ignores clicks for a moment after an update, because they may be meant for the earlier content.
function rest(form) {
  form.setAttribute("data-resting", "");
  clearTimeout(form.restingUntil);
  form.restingUntil = setTimeout(() => form.removeAttribute("data-resting"), REST_MILLIS);
}

main.addEventListener(
  "submit",
  (event) => {
    if (!event.target.matches("[data-resting], [data-shut]")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  true,
);

const past = () => offer("This page is out of date.", "Reload page", openAgain);

const kinds = { list, review };

async function look() {
  const answer = await fetch(about.at, { headers: { accept: "text/html" }, cache: "no-store" });
  if (new URL(answer.url).pathname.startsWith("/sign-in")) {
    offer("You are signed out. Sign in in another tab, then you can still send your input here.", "Sign in", () => window.open("/sign-in"));
  } else if (answer.ok) {
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    count(fresh);
    kinds[about.kind]?.(fresh);
  }
}

// Loads the page soon, one load at a time, and at least once a minute while the page is visible.
let [looking, due] = [null, false];
async function lookSoon() {
  due = true;
  if (looking) return;
  looking = (async () => {
    while (due) {
      due = false;
      // After an error the page stays unchanged until the next event.
      await look().catch(() => {});
      await new Promise((done) => setTimeout(done, LOOK_MILLIS_MIN));
    }
  })();
  await looking;
  looking = null;
}

function expire() {
  const left = Number(main.dataset.endsIn) * 1000 - performance.now();
  if (!(left > 0 && left < TIMER_MILLIS_MAX)) return;
  setTimeout(() => lookSoon(), left + LOOK_MILLIS_MIN);
  if (left > LAST_MINUTE_MILLIS) setTimeout(() => (alarm.textContent = "This review ends in one minute."), left - LAST_MINUTE_MILLIS);
}

const news = (it) => {
  if (!concerns(it)) return;
  if (about.kind === "past") past();
  else lookSoon();
};

if (bar && about.kind) {
  document.addEventListener("news", (it) => news(it.detail));
  document.addEventListener("nonews", lookSoon);
  setInterval(() => document.visibilityState === "visible" && about.kind !== "past" && lookSoon(), LOOK_MILLIS_MAX);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && about.kind !== "past" && lookSoon());
  expire();
}
