// The explorer's page: controls make a question, the server proves the answer, uPlot draws what it proved.
// No privacy is computed here; numbers are rounded outward and lines read between proved vertices, nothing else.
"use strict";

const NUMBERS = {
  noise_multiplier: { label: "Noise multiplier", low: 0.3, high: 30 },
  target_epsilon: { label: "Target epsilon", low: 0.05, high: 20 },
  rate: { label: "Sampling rate", low: 1e-5, high: 1 },
  batch_size: { label: "Batch size", low: 1, high: 1e5, whole: true },
  examples: { label: "Examples", low: 100, high: 1e8, whole: true },
  steps: { label: "Steps", low: 1, high: 1e6, whole: true },
  epochs: { label: "Epochs", low: 0.1, high: 1000 },
  delta: { label: "Delta", low: 1e-12, high: 1e-2 },
};
const CHOICES = ["sampling", "given", "duration", "adjacency", "batches"];
const START = {
  noise_multiplier: 1, target_epsilon: 2, rate: 0.01, batch_size: 500, examples: 50000, steps: 2000, epochs: 20, delta: 1e-5,
  sampling: "poisson", given: "rate", duration: "steps", adjacency: "add-remove", batches: "", lock: false,
};
// milliseconds: without a move, until finer curves are asked for; until the page says that it computes; until a question
// that is still being answered makes way for the next
const REST = 150, FOLLOW = 400, SAID = 400, PATIENT = 1500;
const $ = (id) => document.getElementById(id);
const runs = { first: { ...START }, second: null };
const answers = { first: {}, second: {} };
const charts = {};
let resting, computing, moved = null;

// ------------------------------------------------------------------------------------------------ numbers, rounded outward

function outward(value, digits, up) {
  if (!isFinite(value) || value === 0) return String(value);
  const text = value.toPrecision(digits), rounded = Number(text);
  if (up ? rounded >= value : rounded <= value) return String(rounded);
  const unit = 10 ** (Math.floor(Math.log10(Math.abs(rounded))) - digits + 1);
  return String(Number((rounded + (up ? unit : -unit)).toPrecision(digits)));
}
const bracketText = ([low, high]) => `[${outward(low, 5, false)}, ${outward(high, 5, true)}]`;

// The value of a broken line at x: straight between its vertices on the picture's axes; at a jump the outer end.
function along([xs, ys], x, log, outer) {
  if (x < xs[0] || x > xs[xs.length - 1]) return null;
  let low = 0, high = xs.length - 1;
  while (high - low > 1) { const middle = (low + high) >> 1; if (xs[middle] < x) low = middle; else high = middle; }
  const same = [];
  for (let i = low; i < xs.length && xs[i] <= x; i++) if (xs[i] === x) same.push(ys[i]);
  if (same.length) return outer(...same);
  const share = (x - xs[low]) / (xs[high] - xs[low]);
  return log ? Math.exp(Math.log(ys[low]) * (1 - share) + Math.log(ys[high]) * share) : ys[low] * (1 - share) + ys[high] * share;
}
// What never falls is at least its last known lower side and at most its next known upper side.
function between(stairs, x) {
  const next = stairs.x.findIndex((known) => known >= x), last = stairs.x.findLastIndex((known) => known <= x);
  return next < 0 || last < 0 ? null : [stairs.lower[last], stairs.upper[next]];
}

// ------------------------------------------------------------------------------------------------ questions

const rateOf = (run) => (run.given === "rate" ? run.rate : run.batch_size / run.examples);
// batches of a pass over the data, the last, short one counted; a rate such as 1/235 is rounded
const batchesOf = (run) => Math.ceil(run.given === "rate" ? (1 - 2 ** -50) / run.rate : run.examples / run.batch_size);
const stepsOf = (run) => (run.duration === "steps" ? run.steps : Math.ceil(run.epochs * batchesOf(run)));

function questionOf(run, detail) {
  const asked = { sampling: run.sampling, steps: stepsOf(run), delta: run.delta, adjacency: run.adjacency, detail };
  Object.assign(asked, run.given === "rate" ? { rate: run.rate } : { batch_size: run.batch_size, examples: run.examples });
  Object.assign(asked, run.lock ? { target_epsilon: run.target_epsilon } : { noise_multiplier: run.noise_multiplier });
  return run.batches ? { ...asked, batches: run.batches } : asked;
}

async function ask(view, question, signal) {
  try {
    const reply = await fetch(`api/${view}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(question), signal });
    return await reply.json();
  } catch {
    return { error: "the server does not answer: is hockeystick explore still running?" };
  }
}

// One live question of a kind at a time; of those that come meanwhile only the last is asked. A slow one makes way for
// it, and a fine one holds up no live one.
class Feed {
  constructor(which, view, told) { Object.assign(this, { which, view, told, busy: false, next: null, asked: 0, coarse: false }); }
  async fine(question) {
    this.coarse = false;
    const number = this.another(), found = await ask(this.view, question, this.fineOne.signal);
    if (number !== this.asked || !runs[this.which]) return;
    answers[this.which][this.view] = found;
    this.told(found, true);
  }
  another() { this.fineOne?.abort(); this.fineOne = new AbortController(); return ++this.asked; }
  async live(question) {
    this.another();
    this.next = question;
    if (this.busy) { if (performance.now() - this.since > PATIENT) this.liveOne.abort(); return; }
    this.busy = this.coarse = true;
    while (this.next) {
      const asked = this.next, signal = (this.liveOne = new AbortController()).signal;
      this.next = null;
      this.since = performance.now();
      const found = await ask(this.view, asked, signal);
      if (runs[this.which] && !signal.aborted) { answers[this.which][this.view] = found; this.told(found, this.next === null); }
    }
    this.busy = false;
  }
}
const feeds = [], following = { first: null, second: null };
for (const which of ["first", "second"]) {
  feeds.push(new Feed(which, "answer", (found, last) => { if (which === "first") showAnswer(found, last); else showSecond(); draw("curve", "trade_off"); }));
  for (const view of ["steps", "rates"]) feeds.push(new Feed(which, view, () => draw(view)));
}

function changed(which = "first") {
  if (which === "first") { moved ??= performance.now(); computing ??= setTimeout(() => say("computing", "Computing: a run of this kind takes longer."), SAID); $("claim").classList.add("waiting"); for (const name in charts) $(`plot-${name}`).classList.add("waiting"); }
  history.replaceState(null, "", address());
  for (const feed of feeds) if (feed.which === which) { if (feed.view === "answer") feed.live(questionOf(runs[which], "live")); else feed.coarse = true; }
  following[which] ??= setTimeout(() => { following[which] = null; follow(which); }, FOLLOW);
  clearTimeout(resting);
  resting = setTimeout(refine, REST);
}
// The slower panels follow a few times a second, so that the curve has the processor for itself between.
function follow(which) {
  for (const feed of feeds) if (runs[which] && feed.which === which && feed.view !== "answer") feed.live(questionOf(runs[which], "live"));
}
function refine() {
  for (const which in following) { clearTimeout(following[which]); following[which] = null; }
  for (const feed of feeds) if (runs[feed.which] && feed.coarse && !feed.busy) feed.fine(questionOf(runs[feed.which], "fine"));
  if (feeds.some((feed) => feed.busy)) resting = setTimeout(refine, REST);
}

// ------------------------------------------------------------------------------------------------ the address

const written = (run) => new URLSearchParams(Object.entries(run).map(([name, value]) => [name, String(value)]));
function address() {
  const query = written(runs.first);
  if (runs.second) query.set("second", written(runs.second).toString());
  return `?${query}`;
}
function readRun(query) {
  const run = { ...START };
  for (const [name, value] of query) {
    if (name in NUMBERS && value !== "" && isFinite(Number(value))) run[name] = Number(value);
    else if (name === "lock") run.lock = value === "true";
    else if (CHOICES.includes(name) && [...$(name).options].some((option) => option.value === value)) run[name] = value;
  }
  if (run.sampling !== "poisson") run.given = "batch";
  return run;
}

// ------------------------------------------------------------------------------------------------ controls

const short = (value, whole) => (whole ? Math.max(1, Math.round(Number(value.toPrecision(3)))) : Number(value.toPrecision(3)));
const place = ({ low, high }, value) => 1000 * Math.log(value / low) / Math.log(high / low);

function makeControls() {
  for (const field of document.querySelectorAll("[data-number]")) {
    const name = field.dataset.number, range = NUMBERS[name];
    const label = Object.assign(document.createElement("label"), { htmlFor: name, textContent: range.label });
    const number = Object.assign(document.createElement("input"), { type: "number", id: name, step: range.whole ? 1 : "any", min: 0 });
    const slider = Object.assign(document.createElement("input"), { type: "range", id: `${name}-slider`, min: 0, max: 1000, step: 1 });
    slider.setAttribute("aria-label", `${range.label} slider`);
    label.append(" ", Object.assign(document.createElement("small"), { id: `${name}-note` }));
    field.append(label, number, slider);
    number.addEventListener("input", () => { runs.first[name] = number.value === "" ? null : Number(number.value); showRun(number); changed(); });
    slider.addEventListener("input", () => {
      runs.first[name] = short(range.low * (range.high / range.low) ** (slider.value / 1000), range.whole);
      showRun(slider); changed();
    });
  }
  for (const name of CHOICES) $(name).addEventListener("change", () => {
    runs.first[name] = $(name).value;
    if (runs.first.sampling !== "poisson") runs.first.given = "batch"; // a set of fixed size has a size
    showRun(); changed();
  });
  $("lock").addEventListener("change", () => {
    const run = runs.first, found = answers.first.answer;
    if (!(run.lock = $("lock").checked) && found?.noise_multiplier) run.noise_multiplier = found.noise_multiplier;
    showRun(); changed();
  });
  $("run").addEventListener("submit", (event) => event.preventDefault());
}

function showRun(touched = null) {
  const run = runs.first, hidden = { rate: run.given !== "rate", batch_size: run.given === "rate", examples: run.given === "rate" };
  Object.assign(hidden, { steps: run.duration !== "steps", epochs: run.duration === "steps" });
  for (const [name, range] of Object.entries(NUMBERS)) {
    const number = $(name), slider = $(`${name}-slider`);
    if (number !== touched) number.value = run[name] ?? "";
    if (slider !== touched) slider.value = run[name] > 0 ? place(range, run[name]) : 0;
    slider.setAttribute("aria-valuetext", String(run[name]));
    number.disabled = slider.disabled = (name === "noise_multiplier" && run.lock) || (name === "target_epsilon" && !run.lock);
    number.closest(".field").hidden = Boolean(hidden[name]);
  }
  for (const name of CHOICES) $(name).value = run[name];
  $("lock").checked = run.lock;
  $("given").querySelector('[value="rate"]').disabled = run.sampling !== "poisson";
  $("batch_size-note").textContent = run.given === "batch" ? `rate ${Number(rateOf(run).toPrecision(4))}` : "";
  $("epochs-note").textContent = run.duration === "epochs" ? `${stepsOf(run)} steps` : "";
}

// ------------------------------------------------------------------------------------------------ the answer in words

function list(id, texts) { $(id).replaceChildren(...texts.map((text) => Object.assign(document.createElement("li"), { textContent: text }))); $(id).hidden = !texts.length; }
function say(id, text) { $(id).textContent = text ?? ""; $(id).hidden = !text; }

function showAnswer(found, last) {
  if (last) { $("claim").classList.remove("waiting"); clearTimeout(computing); computing = null; say("computing", null); }
  $("claim").classList.toggle("refuted", Boolean(found.verdict || found.error));
  say("problem", found.error);
  say("verdict", found.verdict);
  say("headline", found.error ? "No answer" : found.headline);
  say("bracket", found.error ? "" : found.bracket && `epsilon in ${found.bracket}` + (found.met ? `; with noise multiplier ${outward(found.noise_multiplier, 6, true)} ${found.met.words}` : ""));
  list("broken", found.broken ?? []);
  say("statement", found.statement); say("method", found.method);
  list("unstated", found.unstated ?? []); list("not_included", found.not_included ?? []);
  if (runs.first.lock && found.noise_multiplier) { $("noise_multiplier").value = found.noise_multiplier; $("noise_multiplier-slider").value = place(NUMBERS.noise_multiplier, found.noise_multiplier); }
  for (const id of ["show-specification", "show-python", "show-command", "receipt"]) $(id).disabled = Boolean(found.error);
}
function showSecond() {
  const found = answers.second.answer;
  say("second", runs.second && found && `Second run: ${found.error ?? (found.verdict ? `${found.verdict}; ` : "") + found.headline}`);
  $("swap").hidden = $("drop").hidden = !runs.second;
}

// ------------------------------------------------------------------------------------------------ charts

const lines = (view, part) => ({ view, part, of: (found) => found?.[part] });
const PICTURES = {
  curve: { title: "Privacy curve", x: "epsilon", y: "delta", log: [false, true], safe: "above", ...lines("answer", "curve") },
  trade_off: { title: "Trade-off of any attack", x: "false-positive rate", y: "false-negative rate", log: [false, false], safe: "below", range: { x: [0, 1], y: [0, 1] }, ...lines("answer", "trade_off") },
  steps: { title: "Epsilon against steps", x: "steps", y: "epsilon", log: [true, false], safe: "above", view: "steps", of: (found) => (found?.x ? found : null) },
  rates: { title: "Noise against sampling rate", x: "sampling rate", y: "noise multiplier", log: [true, true], safe: "above", view: "rates", of: (found) => (found?.x ? found : null) },
};
const drawnRuns = (picture) => ["first", "second"].map((which) => runs[which] && picture.of(answers[which][picture.view]));
const bracketAt = (picture, found, x) => {
  if (found.x) return between(found, x);
  const sides = [along(found.below, x, picture.log[1], Math.min), along(found.above, x, picture.log[1], Math.max)];
  if (picture.part === "curve" && x >= found.above[0].at(-1) && found.above[1].at(-1) <= found.least) sides[1] = found.least; // delta never rises
  if (picture.part === "curve") sides[0] ??= 0;
  return sides.includes(null) ? null : sides;
};

function dataOf(picture) {
  const found = drawnRuns(picture), places = new Set();
  for (const one of found) if (one) for (const x of one.x ?? [...one.below[0], ...one.above[0]]) places.add(x);
  const end = Math.max(...found.map((one) => one?.end ?? 0));
  const xs = [...places].filter((x) => picture.part !== "curve" || x <= end).sort((a, b) => a - b);
  const columns = found.flatMap((one) => {
    if (!one) return [xs.map(() => null), xs.map(() => null)];
    if (one.x) { const both = xs.map((x) => between(one, x)); return [both.map((b) => (b && (b[0] || !picture.log[1]) ? b[0] : null)), both.map((b) => b && b[1])]; }
    return [["below", Math.min], ["above", Math.max]].map(([side, outer]) => xs.map((x) => along(one[side], x, picture.log[1], outer)));
  });
  return [xs, ...columns];
}

// The ends of the axes, also where there is nothing to draw yet.
function acrossRange(picture, low, high) {
  if (!picture.log[0]) return [0, high > 0 ? high : 1];
  return low > 0 ? [low, high > low ? high : 10 * low] : [1, 10];
}
function upRange(picture, low, high) {
  if (picture.part === "curve") return [low > 0 ? Math.min(low, 0.1) : 1e-9, 1];
  if (!picture.log[1]) return [0, high > 0 ? 1.05 * high : 1];
  return low > 0 ? uPlot.rangeLog(low, high, 10, false) : [1, 10];
}

// Ticks of a logarithmic axis: powers of ten, not too many; with their doubles and fives where they are few.
function powers(low, high) {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), apart = Math.ceil((last - first + 1) / 8), found = [];
  for (let power = first - (first % apart); power <= last; power += apart) for (const factor of last - first < 3 ? [1, 2, 5] : [1]) found.push(Number(`${factor}e${power}`));
  return found.filter((value) => value >= low && value <= high);
}

function makeChart(name) {
  const picture = PICTURES[name], style = getComputedStyle(document.documentElement), colour = (key) => style.getPropertyValue(`--${key}`).trim();
  const holder = $(`plot-${name}`), stepped = ["steps", "rates"].includes(name);
  const side = (run, key) => ({
    stroke: picture.safe === key ? colour(run) : "transparent", width: 2, points: { show: false }, spanGaps: false,
    dash: run === "second" ? [7, 4] : undefined, ...(stepped && { paths: uPlot.paths.stepped({ align: key === "above" ? -1 : 1 }) }),
  });
  const tick = (value) => {
    if (value === null) return null;
    const rounded = Number(value.toPrecision(6)), size = Math.abs(rounded);
    return size >= 1e5 || (size !== 0 && size < 1e-3) ? rounded.toExponential().replace("e+", "e") : String(rounded);
  };
  const axis = (label, log) => ({
    label, stroke: colour("soft"), grid: { stroke: colour("rule"), width: 1 }, ticks: { stroke: colour("rule") }, labelSize: 20, size: label === picture.y ? 58 : 40, labelFont: "13px system-ui", font: "12px system-ui",
    values: (_, splits) => splits.map(tick), ...(label === picture.y && { filter: (_, splits) => splits }), ...(log && label === picture.x && { filter: (_, splits) => (splits.length > 4 ? splits.map((value) => (/^1e/.test(value.toExponential()) ? value : null)) : splits) }), ...(log && { splits: (_chart, _axis, low, high) => powers(low, high) }),
  });
  charts[name]?.destroy();
  charts[name] = new uPlot({
    width: Math.max(holder.clientWidth, 200), height: 280, legend: { show: false }, padding: [8, 24, 0, 0],
    scales: {
      x: { time: false, distr: picture.log[0] ? 3 : 1, range: (_, low, high) => picture.range?.x ?? acrossRange(picture, low, high) },
      y: { distr: picture.log[1] ? 3 : 1, range: (_, low, high) => picture.range?.y ?? upRange(picture, low, high) },
    },
    axes: [axis(picture.x, picture.log[0]), axis(picture.y, picture.log[1])],
    series: [{}, side("first", "below"), side("first", "above"), side("second", "below"), side("second", "above")],
    bands: [{ series: [2, 1], fill: `${colour("first")}2e` }, { series: [4, 3], fill: `${colour("second")}2e` }],
    cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
    hooks: {
      setCursor: [(chart) => hover(name, chart)],
      draw: [() => { if (name === "curve" && moved !== null && !$("claim").classList.contains("waiting")) { performance.measure("redraw", { start: moved, end: performance.now() }); moved = null; } }],
    },
  }, dataOf(picture), holder);
}

function hover(name, chart) {
  const picture = PICTURES[name], output = $(`read-${name}`), at = chart.cursor.left;
  if (at === undefined || at < 0) { output.textContent = "Point at the curve, or use the arrow keys, to read its bracket."; return; }
  let x = Number(chart.posToVal(at, "x").toPrecision(4)); // the bracket is that of the number shown
  if (name === "steps") x = Math.round(x);
  const said = drawnRuns(picture).map((one, index) => {
    const sides = one && bracketAt(picture, one, x), verdict = one && answers[["first", "second"][index]][picture.view].verdict;
    return sides && `${index ? "second run: " : ""}${picture.y} in ${bracketText(sides)}${verdict ? " — NOT CERTIFIED" : ""}`;
  });
  output.textContent = `${picture.x} ${x}: ${said.filter(Boolean).join("; ") || "outside what was computed"}`;
}

function draw(...names) {
  for (const name of names) {
    const picture = PICTURES[name], found = ["first", "second"].map((which) => runs[which] && answers[which][picture.view]);
    const nothing = found[0]?.later ? "Each value of this curve takes a while: it is drawn once the controls rest." : "One direction alone says nothing of an attack.";
    say(`problem-${name}`, found[0]?.error ?? (found[0] && !picture.of(found[0]) ? nothing : null));
    const coarse = feeds.some((feed) => feed.which === "first" && feed.view === picture.view && feed.coarse);
    say(`values-${name}`, found[0]?.values && picture.of(found[0]) && `Proved to lie in the band everywhere, from ${found[0].values} values${coarse ? "; from more once the controls rest" : ""}.`);
    const broken = [found[0]?.verdict && "this run", found[1]?.verdict && "second run"].filter(Boolean);
    say(`stamp-${name}`, broken.length ? `NOT CERTIFIED${runs.second ? `: ${broken.join(" and ")}` : ""}` : "");
    // faded until what is drawn is of the run that the controls show
    $(`plot-${name}`).classList.toggle("waiting", feeds.some((feed) => feed.view === picture.view && feed.next !== null));
    charts[name].setData(dataOf(picture));
    hover(name, charts[name]);
  }
}

function makeCharts() {
  for (const [name, picture] of Object.entries(PICTURES)) {
    const kinds = name === "curve" ? ["PNG", "SVG", "CSV"] : ["PNG", "CSV"];
    const box = document.createElement("section");
    box.className = "chart";
    box.setAttribute("aria-labelledby", `title-${name}`);
    box.innerHTML = `<h2 id="title-${name}">${picture.title}</h2><div class="buttons">${kinds.map((kind) => `<button type="button" id="${kind.toLowerCase()}-${name}" aria-label="${picture.title} as ${kind}">${kind}</button>`).join("")}</div>
      <p id="stamp-${name}" class="stamp" hidden></p><p id="problem-${name}" class="problem" hidden></p>
      <div id="plot-${name}" class="plot" tabindex="0" role="img" aria-label="${picture.title}: ${picture.y} against ${picture.x}; arrow keys read it" aria-describedby="read-${name}"></div><output id="read-${name}"></output><p id="values-${name}" class="soft values" hidden></p>`;
    $("charts").append(box);
    makeChart(name);
    $(`plot-${name}`).addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key], chart = charts[name], width = chart.over.clientWidth;
      if (!step) return;
      event.preventDefault();
      const from = chart.cursor.left >= 0 ? chart.cursor.left : width / 2;
      chart.setCursor({ left: Math.min(Math.max(from + step * width, 0), width), top: 10 });
    });
    $(`png-${name}`).addEventListener("click", () => savePicture(name));
    $(`csv-${name}`).addEventListener("click", () => saveTable(name));
  }
  $("svg-curve").addEventListener("click", async () => { const found = await ask("picture", questionOf(runs.first, "fine")); found.error ? say("told", found.error) : save("privacy-curve.svg", found.svg, "image/svg+xml"); });
  new ResizeObserver(() => { for (const name in charts) { const width = $(`plot-${name}`).clientWidth; if (width && width !== charts[name].width) charts[name].setSize({ width, height: 280 }); } }).observe($("charts"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Object.keys(charts).forEach(makeChart));
}

// ------------------------------------------------------------------------------------------------ taking things away

function save(name, content, kind) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(new Blob([content], { type: kind })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
function headings(name) {
  const found = ["first", "second"].filter((which) => runs[which]).map((which) => answers[which]);
  return [PICTURES[name].title, ...found.flatMap((one, index) => [[index ? "Second run" : "This run", one.answer?.verdict, one.answer?.headline].filter(Boolean).join(": ")])];
}
function savePicture(name) {
  const drawn = charts[name].ctx.canvas, style = getComputedStyle(document.documentElement), scale = devicePixelRatio || 1, said = headings(name);
  const canvas = Object.assign(document.createElement("canvas"), { width: drawn.width, height: drawn.height + (10 + 20 * said.length) * scale }), pen = canvas.getContext("2d");
  pen.fillStyle = style.getPropertyValue("--paper"); pen.fillRect(0, 0, canvas.width, canvas.height);
  said.forEach((text, index) => { pen.fillStyle = style.getPropertyValue(text.includes("NOT CERTIFIED") ? "--red" : "--ink"); pen.font = `${(index ? 12 : 15) * scale}px system-ui`; pen.fillText(text, 10 * scale, (18 + 20 * index) * scale, canvas.width - 20 * scale); });
  pen.drawImage(drawn, 0, canvas.height - drawn.height);
  canvas.toBlob((blob) => save(`${name}.png`, blob, "image/png"));
}
function saveTable(name) {
  const picture = PICTURES[name], rows = headings(name).map((text) => `# ${text}`);
  rows.push(`# broken lines, straight between their vertices${picture.log[1] ? " where y is logarithmic" : ""}; of stairs the next upper and the last lower side`, `run,side,${picture.x},${picture.y}`);
  drawnRuns(picture).forEach((one, index) => {
    if (!one) return;
    const sides = one.x ? { below: [one.x, one.lower], above: [one.x, one.upper] } : one;
    for (const side of ["below", "above"]) sides[side][0].forEach((x, i) => rows.push(`${index + 1},${side},${x},${sides[side][1][i]}`));
  });
  save(`${name}.csv`, rows.join("\n") + "\n", "text/csv");
}
function show(title, note, text, file) {
  $("dialog-title").textContent = title; $("dialog-note").textContent = note; $("dialog-text").textContent = text;
  $("save").onclick = () => save(file, text, "text/plain");
  $("copy").onclick = async () => { await navigator.clipboard.writeText(text); $("copy").textContent = "Copied"; };
  $("copy").textContent = "Copy";
  $("dialog").showModal();
}
function makeButtons() {
  const current = () => answers.first.answer;
  const verdict = () => (current().verdict ? `${current().verdict}. ` : "");
  $("show-specification").onclick = () => show("Specification", `${verdict()}hockeystick account spec.json gives the same digits.`, current().specification, "spec.json");
  $("show-python").onclick = () => show("Python", `${verdict()}The same run, the same digits.`, current().python, "run.py");
  $("show-command").onclick = () => show("Command", verdict() + (runs.first.batches ? "Download the spec first: it says how batches are drawn." : "The same run, the same digits."), current().command, "run.sh");
  $("close").onclick = () => $("dialog").close();
  $("link").onclick = async () => { await navigator.clipboard.writeText(location.href); say("told", "The link is copied. It opens where hockeystick explore runs."); };
  $("receipt").onclick = async () => { say("told", "Making the receipt…"); const found = await ask("receipt", questionOf(runs.first, "fine")); say("told", found.error ?? "The receipt is downloaded."); if (found.html) save("receipt.html", found.html, "text/html"); };
  $("keep").onclick = () => { runs.second = { ...runs.first }; Object.assign(answers.second, answers.first); showSecond(); changed("second"); draw(...Object.keys(charts)); };
  $("swap").onclick = () => { [runs.first, runs.second] = [runs.second, runs.first]; showRun(); changed(); changed("second"); };
  $("drop").onclick = () => { runs.second = null; answers.second = {}; showSecond(); history.replaceState(null, "", address()); draw(...Object.keys(charts)); };
}

const query = new URLSearchParams(location.search);
runs.first = readRun(query);
if (query.has("second")) runs.second = readRun(new URLSearchParams(query.get("second")));
makeControls(); makeCharts(); makeButtons(); showRun(); changed();
if (runs.second) { changed("second"); showSecond(); }
