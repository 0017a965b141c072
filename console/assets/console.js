// Makes the pages live: they are whole without it. No page is asked for while it is hidden.
(() => {
  "use strict";
  const prefix = document.body.dataset.prefix;
  const live = document.body.dataset.live;
  const said = document.getElementById("said");

  // Reads the page again and changes only what is new. What a person has typed or opened stays.
  const busy = () => {
    const at = document.activeElement;
    return document.querySelector("dialog[open]") || (at && at.closest && at.closest("form:not([role=search])"));
  };
  let reading = false, typed, here = "";
  const opens = (row) => (row?.querySelector("a.id") || row?.querySelector("a"))?.href || "";
  document.addEventListener("input", (e) => typed?.set(e.target.id, e.target.value)); // while the page is read, too
  const again = async (asked) => {
    if (reading || document.hidden || (!asked && busy())) return;
    reading = true;
    const open = new Set([...document.querySelectorAll("main details")].flatMap((d, i) => (d.open ? [i] : [])));
    typed = new Map([...document.querySelectorAll("main input, main textarea, main select")].map((e) => [e.id, e.value]));
    try {
      await htmx.ajax("GET", location.href, { target: "#main", select: "#main", swap: "outerMorph" });
      document.querySelectorAll("main details").forEach((d, i) => { d.open = open.has(i) || d.open && !open.size; });
      for (const [id, value] of typed) {
        const e = id && document.getElementById(id);
        if (e && e.value !== value && e.type !== "hidden") e.value = value;
      }
      const row = [...document.querySelectorAll("main tbody tr")].find((r) => here && opens(r) === here);
      row?.classList.add("here");
      times();
    } finally {
      reading = false;
      typed = undefined;
    }
  };

  // A run tells of its events; lists are read now and then.
  if (live.startsWith("run:")) {
    let stream;
    const follow = () => {
      if (stream || document.hidden) return;
      stream = new EventSource(prefix + "/events?run=" + encodeURIComponent(live.slice(4)));
      for (const name of document.body.dataset.events.split(" ")) stream.addEventListener(name, soon);
      stream.addEventListener("open", () => { document.body.dataset.stream = "open"; });
      stream.addEventListener("error", () => {
        document.body.dataset.stream = "lost";
        soon();
        if (stream?.readyState !== EventSource.CLOSED) return; // else the browser tries again by itself
        stream = undefined;
        setTimeout(follow, 3000);
      });
    };
    let waiting;
    const soon = () => { waiting ||= setTimeout(() => { waiting = 0; again(); }, 250); };
    document.addEventListener("visibilitychange", () => {
      if (document.hidden && stream) { stream.close(); stream = undefined; } else { follow(); again(); }
    });
    follow();
    setInterval(() => document.querySelector("main .tree") && again(), 5000); // what it called has events of its own
  } else if (live === "list") {
    setInterval(again, 5000);
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
