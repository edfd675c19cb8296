"use strict";
// Everything works without this file: it only chooses a theme and draws a page anew when the run commits.
(() => {
  const root = document.documentElement, button = document.getElementById("theme");
  const kept = () => { try { return localStorage.getItem("arise-theme"); } catch { return null; } };
  if (kept()) root.dataset.theme = kept();
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
      root.dataset.theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
      try { localStorage.setItem("arise-theme", root.dataset.theme); } catch { /* private window */ }
    });
  }
  document.querySelector("header [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  const body = document.body, run = body.dataset.run;
  if (!run || !window.EventSource) return;
  const stream = new EventSource(`${run}/live`);
  let busy = false;
  stream.addEventListener("commit", async (event) => {
    const committed = JSON.parse(event.data).committed;
    if (busy || String(committed) === body.dataset.committed) return;
    const main = document.getElementById("main"), active = document.activeElement;
    // Do not interrupt a user who is typing or reading an attempt.
    if (main.querySelector(".turns") || (main.contains(active) && active.matches("input, select"))) return;
    busy = true;
    try {
      const answer = await fetch(location.href);
      if (!answer.ok) return;
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const open = [...main.querySelectorAll("details[open]")].map((d) => d.closest("[id]")?.id);
      const focused = main.contains(active) ? active.getAttribute("href") : null;
      main.replaceChildren(...fresh.getElementById("main").childNodes);
      for (const id of open) if (id) main.querySelector(`#${CSS.escape(id)} details`)?.setAttribute("open", "");
      if (focused) main.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
      document.getElementById("status").replaceChildren(...fresh.getElementById("status").childNodes);
      body.dataset.committed = String(committed);
    } finally { busy = false; }
  });
  addEventListener("pagehide", () => stream.close());
})();
