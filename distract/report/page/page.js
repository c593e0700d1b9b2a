"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const verdicts = data.verdicts, texts = data.texts, filters = data.filters.map(([name]) => name);
  const element = (name) => document.getElementById(name);
  const choice = (name) => element(`filter-${name}`);
  const list = element("list"), panel = element("verdict"), PAGE = 100;
  let shown = [], current = -1, drawn = 0;

  // Texts come from the judged responses: they are only ever inserted as text.
  const make = (tag, text, parent, kind) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = visible(text);
    if (kind) node.className = kind;
    if (parent) parent.append(node);
    return node;
  };
  // Control characters and those that reorder a line are shown by their codes.
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
  const visible = (text) => text.replace(HIDDEN, (c) => "\\x" + c.codePointAt(0).toString(16).padStart(2, "0"));
  const words = (text) => text.match(/\s*[\p{L}\p{N}_]+|\s*[^\s\p{L}\p{N}_]|\s+/gu) || [];

  // The longest common subsequence of words; texts that would take too long differ as a whole.
  const differ = (before, after) => {
    let start = 0, a = before.length, b = after.length;
    while (start < a && start < b && before[start] === after[start]) start++;
    while (a > start && b > start && before[a - 1] === after[b - 1]) { a--; b--; }
    const parts = [["", before.slice(0, start)]], n = a - start, m = b - start;
    if (n * m > 4e6) parts.push(["del", before.slice(start, a)], ["ins", after.slice(start, b)]);
    else {
      const table = Array.from({ length: n + 1 }, () => new Uint32Array(m + 1));
      for (let i = n - 1; i >= 0; i--)
        for (let j = m - 1; j >= 0; j--)
          table[i][j] = before[start + i] === after[start + j]
            ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
      for (let i = 0, j = 0; i < n || j < m;) {
        if (i < n && j < m && before[start + i] === after[start + j]) { parts.push(["", [before[start + i]]]); i++; j++; }
        else if (i < n && (j === m || table[i + 1][j] >= table[i][j + 1])) parts.push(["del", [before[start + i++]]]);
        else parts.push(["ins", [after[start + j++]]]);
      }
    }
    parts.push(["", before.slice(a)]);
    return parts;
  };
  const showDifference = (before, after, parent) => {
    const box = make("p", undefined, parent, "text");
    let last = null;
    for (const [kind, tokens] of differ(words(before), words(after))) {
      if (!tokens.length) continue;
      if (!last || last.kind !== kind) last = { kind, node: make(kind || "span", "", box) };
      last.node.textContent += visible(tokens.join(""));
    }
  };
  const showText = (title, text, parent) => {
    if (!text) return;
    make("h4", title, parent);
    make("p", text, parent, "text");
  };

  const PARTS = {
    heading: (box, title) => make("h4", title, box),
    line: (box, title) => make("p", title, box, "near"),
    strong: (box, title) => make("p", title, box, "near strong"),
    text: (box, title, text) => showText(title, text, box),
    change: (box, title, before, after) => { make("h4", title, box); showDifference(before, after, box); },
    compare: (box, title, before, after) => {
      const fold = make("details", undefined, box);
      make("summary", title, fold);
      fold.addEventListener("toggle", () => { if (fold.children.length < 2) showDifference(before, after, fold); });
    },
  };
  const open = (at, isFocused, isAsked) => {
    if (at < 0 || at >= shown.length) { panel.replaceChildren(); current = -1; return; }
    current = at;
    while (drawn <= at) drawMore();
    const verdict = shown[at];
    for (const link of list.querySelectorAll("[aria-current]")) link.removeAttribute("aria-current");
    const link = list.children[at].firstChild;
    link.setAttribute("aria-current", "true");
    // Scroll the list alone, and not the page.
    const top = link.offsetTop;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + link.offsetHeight > list.scrollTop + list.clientHeight)
      list.scrollTop = top + link.offsetHeight - list.clientHeight;
    const box = document.createDocumentFragment();
    const heading = make("h3", undefined, box);
    make("a", verdict.title, heading).href = `#${verdict.id}`;
    for (const [kind, title, ...numbers] of verdict.parts) PARTS[kind](box, title, ...numbers.map((one) => texts[one]));
    panel.replaceChildren(box);
    if (isAsked) history.replaceState(null, "", `#${verdict.id}`);
    if (isFocused) panel.focus();
  };

  const drawMore = () => {
    const part = document.createDocumentFragment();
    for (const verdict of shown.slice(drawn, drawn + PAGE)) {
      const link = make("a", verdict.case, make("li", undefined, part));
      link.href = `#${verdict.id}`;
      make("small", verdict.note, link);
    }
    list.append(part);
    drawn = Math.min(drawn + PAGE, shown.length);
  };
  const ORDERS = {
    "clearest first": () => 0,
    "by case": (a, b) => a.case.localeCompare(b.case) || a.at - b.at,
    [`by ${data.filters[0][1].toLowerCase()}`]: (a, b) => a[filters[0]].localeCompare(b[filters[0]]) || a.at - b.at,
    "least clear first": (a, b) => b.at - a.at,
  };
  const filter = (wanted) => {
    const search = element("search").value.trim().toLowerCase();
    const chosen = filters.map((name) => [name, choice(name).value]);
    shown = verdicts.filter((verdict) => chosen.every(([name, value]) => !value || verdict[name] === value)
      && (!search || verdict.search.includes(search)));
    shown.sort(ORDERS[element("order").value]);
    list.replaceChildren();
    drawn = 0;
    drawMore();
    element("count").textContent = `${shown.length} of ${verdicts.length} shown · j and k move, / searches, Enter reads`;
    const at = shown.findIndex((verdict) => verdict.id === wanted);
    open(at < 0 ? (shown.length ? 0 : -1) : at, false);
  };

  verdicts.forEach((verdict, at) => {
    verdict.at = at;
    const numbers = verdict.parts.flatMap((part) => part.slice(2));
    verdict.search = [verdict.title, ...verdict.parts.map((part) => part[1]), ...numbers.map((one) => texts[one])]
      .join("\n").toLowerCase();
  });
  for (const name of filters) {
    make("option", "all", choice(name)).value = "";
    for (const value of new Set(verdicts.map((verdict) => verdict[name]).filter(Boolean)))
      make("option", value, choice(name)).value = value;
    choice(name).addEventListener("change", () => filter());
  }
  for (const [name, value] of Object.entries(data.chosen)) choice(name).value = value;
  for (const name of Object.keys(ORDERS)) make("option", name, element("order")).value = name;
  element("order").addEventListener("change", () => filter());
  element("search").addEventListener("input", () => filter());
  element("filters").addEventListener("submit", (event) => event.preventDefault());
  element("about").textContent = data.about;
  list.addEventListener("scroll", () => {
    if (drawn < shown.length && list.scrollTop + list.clientHeight > list.scrollHeight - 400) drawMore();
  });
  list.addEventListener("click", (event) => {
    const item = event.target.closest("li");
    if (item) { event.preventDefault(); open([...list.children].indexOf(item), false, true); }
  });
  const follow = () => {
    const wanted = decodeURIComponent(location.hash.slice(1));
    if (!verdicts.some((verdict) => verdict.id === wanted)) return filter();
    for (const control of [...filters.map(choice), element("search")]) control.value = "";
    filter(wanted);
    element("verdicts").scrollIntoView();
  };
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("input, select");
    if (event.key === "/" && !isTyping) { event.preventDefault(); element("search").focus(); }
    else if (event.key === "Escape" && isTyping) event.target.blur();
    else if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    else if (event.key === "j") open(Math.min(current + 1, shown.length - 1), false, true);
    else if (event.key === "k") open(Math.max(current - 1, 0), false, true);
    else if (event.key === "Enter" && event.target === document.body) open(current, true, true);
  });
  follow();
})();
