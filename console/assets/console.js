// Makes the pages live: they are whole without it. No page is asked for while it is hidden.
(() => {
  "use strict";
  const prefix = document.body.dataset.prefix;
  const main = () => document.getElementById("main");
  const live = () => main().dataset.live; // as the page was read last: "" when nothing more happens to it
  const said = document.getElementById("said");

  // Reads the page again and changes only what is new. What a person has typed or opened stays.
  const busy = () => {
    const at = document.activeElement;
    return document.querySelector("dialog[open]") || (at && at.closest && at.closest("form:not([role=search])"));
  };
  let reading = false, stopped = false, fresh = false, stream, typed, here = "", took = 0;
  const hangUp = () => {
    stream?.close();
    stream = undefined;
    document.body.dataset.stream = stopped || !live() ? "over" : "paused";
  };
  const opens = (row) => (row?.querySelector("a.id") || row?.querySelector("a"))?.href || "";
  document.addEventListener("input", (e) => typed?.set(e.target.id, e.target.value)); // while the page is read, too
  // What can be opened is known by the row that it is in, and its place there: rows come and go.
  const folds = () => {
    const counts = new Map();
    return [...document.querySelectorAll("main details")].map((d) => {
      const row = d.parentElement.closest("[id]")?.id ?? "", n = counts.get(row) ?? 0;
      counts.set(row, n + 1);
      return [row + " " + n, d];
    });
  };
  // A page that is not answered any more (logged out, refused, gone) stays as it was, and is not asked for again.
  document.addEventListener("htmx:before:response", (e) => {
    const { status, raw } = e.detail.ctx.response;
    fresh = status === 200 && !raw.redirected;
    if (fresh) return;
    e.preventDefault();
    if (status >= 500 || stopped) return;
    stopped = true;
    hangUp();
    const note = document.createElement("p");
    note.className = "bad";
    note.setAttribute("role", "alert");
    note.textContent = "This page is not kept up to date any more (" + (raw.redirected ? "logged out" : status) + "): load it again.";
    main().prepend(note);
  });
  // On a phone a row of a table is a card, and each cell has the name of its column.
  const label = () => {
    for (const table of document.querySelectorAll("main table")) {
      const names = [...table.querySelectorAll("thead th")].map((th) => th.textContent);
      for (const row of table.tBodies[0].rows) [...row.cells].forEach((cell, i) => { cell.dataset.label = names[i] ?? ""; });
      table.classList.add("cards");
    }
  };
  label();

  // Reports whether the page is as it is now.
  const again = async (asked) => {
    if (reading || stopped || document.hidden || (!asked && (!live() || busy()))) return false;
    reading = true;
    fresh = false;
    const began = performance.now();
    const open = new Map(folds().map(([key, d]) => [key, d.open]));
    typed = new Map([...document.querySelectorAll("main input, main textarea, main select")].map((e) => [e.id, e.value]));
    try {
      await htmx.ajax("GET", location.href, { target: "#main", select: "#main", swap: "outerMorph" });
      for (const [key, d] of folds()) if (open.has(key)) d.open = open.get(key);
      for (const [id, value] of typed) {
        const e = id && document.getElementById(id);
        if (e && e.value !== value && e.type !== "hidden") e.value = value;
      }
      const row = [...document.querySelectorAll("main tbody tr")].find((r) => here && opens(r) === here);
      row?.classList.add("here");
      label();
      times();
    } finally {
      took = performance.now() - began;
      reading = false;
      typed = undefined;
    }
    if (!live()) hangUp();
    return fresh;
  };

  // Every five seconds, and not so often where reading takes long: a page costs what it reads.
  const every = (read) => setTimeout(async () => { await read(); every(read); }, Math.max(5000, 10 * took));

  // A run tells of its events; lists are read now and then.
  if (live().startsWith("run:")) {
    const url = prefix + "/events?run=" + encodeURIComponent(live().slice(4));
    const follow = () => {
      if (stream || stopped || document.hidden || !live()) return;
      stream = new EventSource(url);
      for (const name of document.body.dataset.events.split(" ")) stream.addEventListener(name, soon);
      stream.addEventListener("open", () => { document.body.dataset.stream = "open"; });
      stream.addEventListener("error", () => {
        document.body.dataset.stream = "lost";
        if (stream?.readyState !== EventSource.CLOSED) return soon(); // the browser tries again by itself
        stream = undefined;
        ask();
      });
    };
    // The answer was no stream, as that of a run that has ended or of a caller who is not let in: the page says which.
    const ask = () => setTimeout(async () => {
      if (stopped || stream || document.hidden || !live()) return;
      if (await again()) follow(); else ask();
    }, 3000);
    let waiting;
    const soon = () => { waiting ||= setTimeout(() => { waiting = 0; again(); }, Math.max(250, 4 * took)); };
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) { hangUp(); } else { follow(); again(); }
    });
    follow();
    every(() => document.querySelector("main .tree") && again()); // what it called has events, too
  } else if (live() === "list") {
    every(again);
    document.addEventListener("visibilitychange", () => again());
  }

  // Times are beside now, and exact on hover, in UTC or in the zone of this machine.
  let local = localStorage.getItem("runlane.zone") === "local";
  const zone = document.getElementById("zone");
  const large = (s) => (s < 60 ? `${Math.floor(s)} s` : s < 3600 ? `${Math.floor(s / 60)} min` : s < 172800 ? `${Math.floor(s / 3600)} h` : `${Math.floor(s / 86400)} days`);
  const times = () => {
    for (const e of document.querySelectorAll("time")) {
      const at = new Date(e.dateTime), s = (Date.now() - at) / 1000;
      if (isNaN(s)) continue;
      const text = Math.abs(s) < 1 ? "now" : s > 0 ? large(s) + " ago" : "in " + large(-s);
      if (e.textContent !== text) e.textContent = text;
      e.title = local ? at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" }) : at.toISOString().replace("T", " ");
    }
    zone.textContent = local ? "Times: local" : "Times: UTC";
  };
  zone.addEventListener("click", () => {
    local = !local;
    localStorage.setItem("runlane.zone", local ? "local" : "utc");
    times();
  });
  setInterval(() => { if (!document.hidden) times(); }, 1000);
  times();

  const theme = document.getElementById("theme");
  const themes = ["", "light", "dark"];
  const dress = (name) => {
    if (name) document.documentElement.dataset.theme = name; else delete document.documentElement.dataset.theme;
    theme.textContent = "Theme: " + (name || "system");
  };
  let dressed = localStorage.getItem("runlane.theme") || "";
  dress(dressed);
  theme.addEventListener("click", () => {
    dressed = themes[(themes.indexOf(dressed) + 1) % themes.length];
    localStorage.setItem("runlane.theme", dressed);
    dress(dressed);
  });

  // What was sent once is not sent again by a second click. Back on the page it can be.
  const sends = (of, disabled) => of.querySelectorAll("button:not([type=button])").forEach((b) => { b.disabled = disabled; });
  document.addEventListener("submit", (e) => setTimeout(() => {
    if (e.target.method === "post") sends(e.target, true);
  }));
  addEventListener("pageshow", (e) => { if (e.persisted) document.querySelectorAll("form[method=post]").forEach((f) => sends(f, false)); });

  document.addEventListener("click", async (e) => {
    const button = e.target.closest("[data-copy]");
    if (!button) return;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      said.textContent = "Copied";
    } catch {
      said.textContent = "Not copied: " + button.dataset.copy;
    }
  });

  // Keys. A form that is being filled in gets its own.
  const help = document.getElementById("help");
  document.getElementById("keys").addEventListener("click", () => help.showModal());
  const places = { o: "/", r: "/runs", f: "/flows", q: "/queues", s: "/schedules", d: "/deadletters", t: "/tasks", c: "/doctor" };
  let went = 0;
  const step = (by) => {
    const rows = [...document.querySelectorAll("main tbody tr")];
    if (!rows.length) return;
    const at = rows.findIndex((r) => r.classList.contains("here"));
    rows[at]?.classList.remove("here");
    const row = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
    row.classList.add("here");
    here = opens(row);
    row.scrollIntoView({ block: "nearest" });
    (row.querySelector("a.id") || row.querySelector("a"))?.focus();
  };
  document.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select")) return;
    if (went && Date.now() - went < 1500 && places[e.key]) {
      location.href = prefix + places[e.key];
      return;
    }
    went = e.key === "g" ? Date.now() : 0;
    const search = document.getElementById("search");
    switch (e.key) {
      case "/": if (search) { e.preventDefault(); search.focus(); } break;
      case "?": help.showModal(); break;
      case "j": step(1); break;
      case "k": step(-1); break;
      case "r": again(true); break;
    }
  });
})();
