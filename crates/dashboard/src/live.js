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
  // An update that follows at once does not hide that something was copied.
  let copiedAt = 0;
  const sayLive = () => {
    if (Date.now() - copiedAt > 2000) say("Live");
  };

  const keyOf = (node) => (node.nodeType === 1 && (node.id || node.dataset.key)) || "";
  const isSame = (one, other) => one.nodeName === other.nodeName && keyOf(one) === keyOf(other);

  // Changes what differs, so that a selection of text, the focus, scroll positions and open details
  // stay as they are.
  const patch = (shown, wanted) => {
    if (shown.nodeType !== 1) {
      if (shown.nodeValue !== wanted.nodeValue) shown.nodeValue = wanted.nodeValue;
      return;
    }
    for (const { name, value } of wanted.attributes) {
      if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
    }
    for (const { name } of [...shown.attributes]) {
      const isOpen = name === "open" && shown.localName === "details";
      if (!isOpen && !wanted.hasAttribute(name)) shown.removeAttribute(name);
    }
    patchChildren(shown, wanted);
  };

  const patchChildren = (shown, wanted) => {
    let at = shown.firstChild;
    for (const next of [...wanted.childNodes]) {
      if (at && isSame(at, next)) {
        patch(at, next);
        at = at.nextSibling;
        continue;
      }
      let moved = keyOf(next) ? at : null;
      while (moved && !isSame(moved, next)) moved = moved.nextSibling;
      if (moved) patch(moved, next);
      shown.insertBefore(moved || next, at);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  };

  const linkTo = (address) => `a[href="${CSS.escape(address)}"]`;

  // Shows the new content. The focus follows a link whose place has changed.
  const show = (content) => {
    const focused = document.activeElement;
    const address = part.contains(focused) && focused.getAttribute("href");
    patchChildren(part, content);
    if (address && document.activeElement.getAttribute("href") !== address) {
      part.querySelector(linkTo(address))?.focus({ preventScroll: true });
    }
  };

  // The width that the page has for a picture.
  const width = () => part.querySelector("figure .scroll")?.clientWidth ?? 0;

  const refresh = async () => {
    if (isBusy) {
      isStale = true;
      return;
    }
    isBusy = true;
    try {
      const headers = { "x-5spot-part": "live", "x-5spot-width": String(width()) };
      const answer = await fetch(location.href, { headers });
      if (answer.ok || answer.status === 404) {
        const text = await answer.text();
        show(new DOMParser().parseFromString(text, "text/html").body);
        part.dataset.updates = String(1 + Number(part.dataset.updates || 0));
        sayLive();
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

  // Offers the time zone of the browser.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const choice of document.querySelectorAll("select[name=zone]")) {
    const known = [...choice.options].find((it) => it.value === zone);
    const option = known || new Option("", zone);
    if (zone && zone !== "UTC") option.text = `Yours: ${zone}`;
    if (zone && !known) choice.add(option);
  }

  if (navigator.clipboard) {
    document.documentElement.classList.add("can-copy");
    document.addEventListener("click", async ({ target }) => {
      const button = target.closest("button.copy");
      if (!button) return;
      const { copy, copyFrom } = button.dataset;
      await navigator.clipboard.writeText(copy ?? document.getElementById(copyFrom).textContent);
      copiedAt = Date.now();
      say("Copied");
    });
  }

  let resized;
  addEventListener("resize", () => {
    clearTimeout(resized);
    resized = setTimeout(refresh, 200);
  });
  // Refreshes the line of the current time even without changes.
  setInterval(refresh, 30000);
  const source = new EventSource(document.currentScript.dataset.live);
  source.addEventListener("change", refresh);
  source.onerror = () => say("Connection lost: the page is out of date");
  source.onopen = sayLive;
})();
