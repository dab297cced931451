"use strict";
// All texts of the run: filtered, in pages, each opened on demand. Texts are only ever set as text.
(async () => {
  const PAGE = 20;
  const at = (id) => document.getElementById(id);
  const packed = at("texts-data");
  if (!packed) return;
  const make = (tag, text = "", name = "") => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (name) element.className = name;
    return element;
  };
  const status = at("shown");
  if (typeof DecompressionStream === "undefined") {
    status.textContent = "This browser is too old to unpack the texts; they are in texts.jsonl.";
    return;
  }
  const bytes = Uint8Array.from(atob(packed.textContent.trim()), (c) => c.charCodeAt(0));
  packed.textContent = "";
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { head, texts } = JSON.parse(await new Response(stream).text());
  const fields = ["kind", "curve", "generator", "bin", "metric", "verdict", "defence", "decision", "words"];
  const input = Object.fromEntries(fields.map((name) => [name, at(`filter-${name}`)]));
  const said = (label) => label.replaceAll("_", " ");

  const fill = (name, values) => {
    for (const [value, text] of values) {
      const option = make("option", text);
      option.value = value;
      input[name].append(option);
    }
    input[name].closest("label").hidden = values.length === 0;
  };
  const distinct = (key) =>
    [...new Set(texts.map((text) => text[key]))].filter((v) => v !== null && v !== undefined).map((v) => [v, v]);
  fill("kind", distinct("k"));
  const curves = distinct("v");
  fill("curve", curves.length ? [["-", "no curve"], ...curves] : []);
  fill("generator", distinct("g"));
  fill("bin", distinct("b"));
  fill("metric", head.metrics.map((name, n) => [n, name]));
  fill("verdict", head.labels.map((name, n) => [n, said(name)]));
  fill("defence", head.defences.map((name, n) => [n, name]));
  fill("decision", head.defences.length ? [["kept", "kept"], ["dropped", "dropped"],
    ...head.reasons.slice(1).map((name, n) => [n + 1, `dropped: ${name}`])] : []);

  // Which claims of a metric's column fulfil what is asked of verdicts, decisions.
  const decided = (decision, reason) =>
    decision === "" || (decision === "kept" ? reason === "0"
      : decision === "dropped" ? reason !== "0" && reason !== "-" : reason === decision);
  const claimFits = (text, column, claim, asked) => {
    if (asked.metric !== "" && column[0] !== Number(asked.metric)) return false;
    if (asked.verdict !== "" && column[2][claim] !== asked.verdict) return false;
    if (asked.decision === "") return true;
    const own = text.s[column[1]].d;
    const defences = asked.defence === "" ? Object.keys(own) : [asked.defence];
    return defences.some((name) => own[name] && decided(asked.decision, own[name][0][claim]));
  };
  const narrowed = (asked) => asked.verdict !== "" || asked.decision !== "";
  const hay = new Map();
  const words = (text) => {
    if (!hay.has(text)) {
      hay.set(text, [text.i, text.t, text.x, ...text.s.flatMap((set) => set.c)].join("\n").toLowerCase());
    }
    return hay.get(text);
  };
  const fits = (text, asked) => {
    if (asked.kind !== "" && text.k !== asked.kind) return false;
    if (asked.curve !== "" && (text.v === undefined ? "-" : text.v) !== asked.curve) return false;
    if (asked.generator !== "" && text.g !== asked.generator) return false;
    if (asked.bin !== "" && text.b !== asked.bin) return false;
    if (asked.words.length && !asked.words.every((word) => words(text).includes(word))) return false;
    if (!narrowed(asked)) return true;
    return text.m.some((column) =>
      [...column[2]].some((_, claim) => claimFits(text, column, claim, asked)));
  };

  const score = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));
  const scores = (text, asked) => text.m
    .filter((column) => asked.metric === "" || column[0] === Number(asked.metric))
    .map((column) => {
      const own = head.defences.map((name, n) => [n, name])
        .filter(([n]) => n in column[5] && (asked.defence === "" || n === Number(asked.defence)))
        .map(([n, name]) => `${name} ${score(column[5][n])}`);
      return `${head.metrics[column[0]]} ${score(column[5][-1])}${own.length ? `, ${own.join(", ")}` : ""}`;
    }).join("; ");

  const verdictCell = (column, claim) => {
    const cell = make("td");
    cell.dataset.name = head.metrics[column[0]];
    const letter = column[2][claim];
    const label = letter === "-" ? "–" : said(head.labels[letter]);
    cell.append(make("b", label, { 0: "yes", 1: "no", 2: "no" }[letter] || ""));
    if (column[3] && column[3][claim] !== null) cell.append(make("span", ` p\u00a0=\u00a0${(column[3][claim] / 100).toFixed(2)}`, "note"));
    if (claim in column[4]) cell.append(make("span", ` (${column[4][claim]})`, "note"));
    for (const [name, letters] of Object.entries(column[6])) {
      if (letters[claim] !== "-") cell.append(" ", make("span", `with ${head.defences[name]}: ${said(head.labels[letters[claim]])}`, "n"));
    }
    return cell;
  };
  const decisionCell = (set, name, claim) => {
    const cell = make("td");
    cell.dataset.name = head.defences[name];
    const [letters, weights, entailed, other] = set.d[name];
    const letter = letters[claim];
    if (letter === "-") {
      cell.append("–");
      return cell;
    }
    cell.append(make("b", letter === "0" ? "✓ kept" : `✗ ${head.reasons[letter]}`, letter === "0" ? "yes" : "no"));
    const sign = weights[claim] < 0 ? "" : "+";
    const share = entailed[claim] === null ? "–" : (entailed[claim] / 100).toFixed(2);
    cell.append(" ", make("span", `weight ${sign}${weights[claim].toFixed(2)}, entailed ${share}`, "n"));
    if (letter !== "0") {
      const again = claim in other ? `: “${set.c[other[claim]]}”` : "";
      cell.append(make("span", ` ${head.why[letter]}${again}`, "note"));
    }
    return cell;
  };
  const tableOf = (text, number, asked) => {
    const set = text.s[number];
    const columns = text.m.filter((column) => column[1] === number
      && (asked.metric === "" || column[0] === Number(asked.metric)));
    const defences = Object.keys(set.d).filter((name) => asked.defence === "" || name === asked.defence);
    if (asked.metric !== "" && !columns.length) return null;
    const table = make("table", "", "cards claims-of-text");
    const top = make("tr");
    for (const name of ["Claim", ...columns.map((c) => head.metrics[c[0]]), ...defences.map((n) => head.defences[n])]) {
      const cell = make("th", name);
      cell.scope = "col";
      top.append(cell);
    }
    table.append(make("thead"), make("tbody"));
    table.tHead.append(top);
    set.c.forEach((claim, place) => {
      const row = make("tr");
      const cell = make("td", claim, "any");
      if (place in set.f) cell.append(make("span", ` failed (${set.f[place]})`, "note"));
      row.append(cell, ...columns.map((column) => verdictCell(column, place)), ...defences.map((name) => decisionCell(set, name, place)));
      if (narrowed(asked) && columns.some((column) => claimFits(text, column, place, asked))) row.className = "found";
      table.tBodies[0].append(row);
    });
    const wide = make("div", "", "wide");
    wide.append(table);
    return wide;
  };
  const itemOf = (text, asked) => {
    const item = make("details", "", "document");
    const line = make("summary");
    line.append(make("b", text.t), " ");
    const behind = text.v === undefined ? null : text.n === undefined ? `${text.v}, clean` : `${text.v}, k = ${text.n}`;
    for (const tag of [text.k, behind, text.g, text.b, text.r]) if (tag !== null) line.append(make("span", tag, "tag"), " ");
    line.append(make("span", scores(text, asked), "note"));
    item.append(line);
    item.addEventListener("toggle", () => {
      if (!item.open || item.children.length > 1) return;
      item.append(make("p", text.x, "text"), make("p", `id: ${text.i}`, "note"));
      if (text.w !== undefined) {
        const twin = make("button", `its clean twin, ${text.w}`);
        twin.type = "button";
        twin.addEventListener("click", () => openText(texts.findIndex((other) => other.v === text.v && other.i === text.w)));
        item.append(twin);
      }
      if (text.z) item.append(make("p", "Cut here; whole in texts.jsonl.", "left-out"));
      text.s.forEach((set, number) => {
        const table = set.c.length ? tableOf(text, number, asked) : make("p", "No claim was found in this text.", "left-out");
        if (table) item.append(table);
      });
    });
    return item;
  };

  let page = 0;
  let asked = {};
  let chosen = texts;
  const list = at("texts-list");
  const show = () => {
    const last = Math.max(0, Math.ceil(chosen.length / PAGE) - 1);
    page = Math.min(Math.max(page, 0), last);
    list.replaceChildren(...chosen.slice(page * PAGE, (page + 1) * PAGE).map((text) => itemOf(text, asked)));
    status.textContent = `${chosen.length.toLocaleString("en")} of ${texts.length.toLocaleString("en")} texts; page ${page + 1} of ${last + 1}`;
    at("texts-back").disabled = page === 0;
    at("texts-on").disabled = page === last;
  };
  const apply = () => {
    asked = Object.fromEntries(fields.map((name) => [name, input[name].value]));
    asked.words = asked.words.toLowerCase().split(/\s+/).filter(Boolean);
    chosen = texts.filter((text) => fits(text, asked));
    page = 0;
    show();
  };
  const turn = (by) => {
    page += by;
    show();
  };
  // Opens a text by its place among all; choices that hide it are taken back.
  const openText = (number) => {
    if (number < 0) return;
    if (!chosen.includes(texts[number])) {
      for (const name of fields) input[name].value = "";
      apply();
    }
    const place = chosen.indexOf(texts[number]);
    page = Math.floor(place / PAGE);
    show();
    const item = list.children[place % PAGE];
    item.open = true;
    item.scrollIntoView();
  };
  for (const name of fields) input[name].addEventListener(name === "words" ? "input" : "change", apply);
  at("texts-back").addEventListener("click", () => turn(-1));
  at("texts-on").addEventListener("click", () => turn(1));
  at("texts-form").addEventListener("submit", (event) => event.preventDefault());
  at("texts-form").addEventListener("reset", () => setTimeout(apply));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && event.target === input.words) input.words.blur();
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    if (event.key === "/") {
      event.preventDefault();
      input.words.focus();
    }
    if (event.key === "n") turn(1);
    if (event.key === "p") turn(-1);
  });
  apply(); // a browser may remember the choices
  // A link to one text: report.html#text=ID, also where it is typed into the open page's address
  const follow = () => {
    if (!location.hash.startsWith("#text=")) return;
    openText(texts.findIndex((text) => text.i === decodeURIComponent(location.hash.slice(6))));
  };
  window.addEventListener("hashchange", follow);
  follow();
})();
