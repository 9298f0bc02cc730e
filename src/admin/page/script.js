// What the page does beyond being read: the theme, transfers as they come, search while typing, keys.
"use strict";

(() => {
  const root = document.documentElement;
  const themes = ["auto", "light", "dark"];

  function kept() {
    try { return localStorage.getItem("seam-theme") || "auto"; } catch { return "auto"; }
  }

  function use(theme) {
    if (theme === "auto") root.removeAttribute("data-theme");
    else root.setAttribute("data-theme", theme);
    try { localStorage.setItem("seam-theme", theme); } catch { /* It holds for this page alone. */ }
  }

  // Before the body is there, so that nothing flashes.
  use(themes.includes(kept()) ? kept() : "auto");

  document.addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const search = document.getElementById("search");
    const live = document.getElementById("live");
    const state = document.getElementById("state");
    const name = (theme) => theme[0].toUpperCase() + theme.slice(1);

    let theme = themes.includes(kept()) ? kept() : "auto";
    const tell = () => {
      button.textContent = name(theme);
      button.setAttribute("aria-label", `Colours: ${theme}`);
    };
    button.hidden = false;
    tell();
    button.addEventListener("click", () => {
      theme = themes[(themes.indexOf(theme) + 1) % themes.length];
      use(theme);
      tell();
    });

    const steps = () => [...document.querySelectorAll("[data-step]")];

    function move(by) {
      const all = steps();
      if (all.length === 0) return;
      const here = all.indexOf(document.activeElement.closest("[data-step]"));
      const next = here < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(here + by, 0), all.length - 1);
      all[next].focus({ focusVisible: true });
      all[next].scrollIntoView({ block: "nearest" });
    }

    document.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const typing = event.target instanceof HTMLInputElement;
      const scrolls = event.target.closest && event.target.closest(".scroll");
      if (event.key === "Escape") {
        if (typing && search.value) { search.value = ""; search.dispatchEvent(new Event("input")); }
        else if (typing) search.blur();
        else if (document.getElementById("back")) document.getElementById("back").click();
        else if (document.activeElement !== document.body) document.activeElement.blur();
      } else if (event.key === "/" && !typing && search) {
        search.focus();
        search.select();
      } else if ((event.key === "j" && !typing) || (event.key === "ArrowDown" && !scrolls && (live || typing))) {
        move(1);
      } else if ((event.key === "k" && !typing) || (event.key === "ArrowUp" && !scrolls && live && !typing)) {
        move(-1);
      } else {
        return;
      }
      event.preventDefault();
    });

    if (!live) return;

    let last = null;
    let asked = 0;

    // Puts what the server says in the place of what stands there, and the focus back where it was.
    function show(text) {
      const known = new Set(steps().map((step) => step.dataset.step));
      const held = document.activeElement.closest && document.activeElement.closest("#live [data-step]");
      const id = held && held.dataset.step;
      live.innerHTML = text;
      for (const step of steps()) {
        if (last !== null && !known.has(step.dataset.step)) step.classList.add("fresh");
        if (step.dataset.step === id) step.focus({ preventScroll: true });
      }
      last = text;
    }

    async function refresh() {
      const turn = ++asked;
      try {
        const answer = await fetch("/page/live" + location.search, { cache: "no-store" });
        if (!answer.ok) throw new Error(String(answer.status));
        const text = await answer.text();
        if (turn !== asked) return;
        state.className = "state live";
        state.textContent = "live";
        // What is read or marked stays.
        const reading = live.contains(document.activeElement) && !document.activeElement.closest("[data-step]");
        const marking = String(getSelection()).length > 0;
        if (text !== last && !reading && !marking) show(text);
      } catch {
        state.className = "state lost";
        state.textContent = "Seam does not answer";
      }
    }

    let wait = 0;
    search.addEventListener("input", () => {
      clearTimeout(wait);
      wait = setTimeout(() => {
        const words = search.value.trim();
        history.replaceState(null, "", words ? "/page?q=" + encodeURIComponent(words) : "/page");
        refresh();
      }, 150);
    });
    search.form.addEventListener("submit", (event) => {
      event.preventDefault();
      search.dispatchEvent(new Event("input"));
      move(1);
    });

    refresh();
    setInterval(() => { if (!document.hidden) refresh(); }, 2000);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  });
})();
