// Keeps the page up to date. Only GET requests for this page are sent.
(() => {
  "use strict";
  const part = document.getElementById("live");
  const status = document.getElementById("status");
  if (!part || !status) return;

  let isBusy = false;
  let isStale = false;

  const say = (text) => {
    if (status.textContent !== text) status.textContent = text;
  };

  // Keeps focus, scroll positions and open details when the live part is replaced.
  const keep = () => {
    const focused = document.activeElement;
    const isInside = focused && part.contains(focused);
    const key = isInside && (focused.id ? "#" + CSS.escape(focused.id)
      : focused.getAttribute("href") && `a[href="${CSS.escape(focused.getAttribute("href"))}"]`);
    const scrolled = [...part.querySelectorAll(".scroll[id]")]
      .map((it) => [it.id, it.scrollLeft]);
    const open = [...part.querySelectorAll("details[id][open]")].map((it) => it.id);
    return () => {
      for (const [id, left] of scrolled) {
        const found = document.getElementById(id);
        if (found) found.scrollLeft = left;
      }
      for (const id of open) {
        const found = document.getElementById(id);
        if (found) found.open = true;
      }
      const found = key && part.querySelector(key);
      if (found) found.focus({ preventScroll: true });
    };
  };

  const refresh = async () => {
    if (isBusy) {
      isStale = true;
      return;
    }
    isBusy = true;
    try {
      const answer = await fetch(location.href, { headers: { "x-5spot-part": "live" } });
      if (answer.ok || answer.status === 404) {
        const text = await answer.text();
        const restore = keep();
        const parsed = new DOMParser().parseFromString(text, "text/html");
        part.replaceChildren(...parsed.body.childNodes);
        restore();
        part.dataset.updates = String(1 + Number(part.dataset.updates || 0));
        say("Live");
      } else {
        say("Not signed in any more: run the command again");
      }
    } catch {
      say("Connection lost: the page is out of date");
    }
    isBusy = false;
    if (isStale) {
      isStale = false;
      refresh();
    }
  };

  // Refreshes the line of the current time even without changes.
  setInterval(refresh, 30000);
  const source = new EventSource(document.currentScript.dataset.live);
  source.addEventListener("change", refresh);
  source.onerror = () => say("Connection lost: the page is out of date");
  source.onopen = () => say("Live");
})();
