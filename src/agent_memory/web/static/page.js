"use strict";
// Keys, focus of rows, and the notice that another process changed the memory. Everything works without it.
(() => {
  const POLL_MS = 1500;
  const main = () => document.getElementById("main");
  const rows = () => [...main().querySelectorAll("[data-row]")];
  let isDirty = false;
  let isLeaving = false;  // a second key would act on the pair that the first one decided
  let index = -1;

  const isTyping = (element) => element.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");

  const moveTo = (next) => {
    const all = rows();
    if (!all.length) return;
    index = Math.max(0, Math.min(all.length - 1, next));
    all.forEach((row, place) => row.classList.toggle("current", place === index));
    const target = all[index].querySelector("a, button, input") || all[index];
    target.focus({ preventScroll: true });
    all[index].scrollIntoView({ block: "nearest" });
  };

  const findTarget = (key) => {
    const name = `[data-key="${CSS.escape(key)}"]`;
    const row = document.activeElement.closest("[data-row]") || rows()[index];
    const own = row && row.querySelector(name);
    if (own) return own;
    // Without a chosen row, u takes the last act back: never that of the first row.
    return key === "u" ? document.querySelector("[data-act]") : main().querySelector(name);
  };

  const forgetOpened = () => {
    const row = document.activeElement.closest("[data-row]") || rows()[index];
    const link = row && row.querySelector('a[href^="/memories/mem-"]');
    if (!link || "readOnly" in document.body.dataset) return;
    const id = link.getAttribute("href").slice("/memories/".length);
    location.assign(`/memories/forget?${new URLSearchParams({ id, back: location.pathname + location.search })}`);
  };

  document.addEventListener("keydown", (event) => {
    if (isLeaving || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && isTyping(event.target)) { event.target.blur(); return; }
    if (isTyping(event.target)) return;
    if (event.key === "j" || event.key === "k") {
      event.preventDefault();
      moveTo(index + (event.key === "j" ? 1 : -1));
      return;
    }
    const target = findTarget(event.key);
    if (!target) {
      if (event.key === "/") { event.preventDefault(); location.assign("/memories#search"); }
      if (event.key === "f") forgetOpened();
      return;
    }
    event.preventDefault();
    if (isTyping(target)) { target.focus(); if (target.select) target.select(); } else target.click();
  });

  document.addEventListener("input", (event) => { if (event.target.form && !event.target.matches("[data-scrub]")) isDirty = true; });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-print]")) print();
    if (event.target.closest("[data-all]")) {
      main().querySelectorAll("[data-row] input[type=checkbox]").forEach((box) => { box.checked = true; });
      showCount();
    }
  });
  document.addEventListener("toggle", (event) => {
    const text = event.target.open && event.target.querySelector("textarea");
    if (text) text.focus();
  }, true);
  document.addEventListener("submit", (event) => {
    if (isLeaving) event.preventDefault();
    isDirty = false;
    isLeaving = true;
  });
  window.addEventListener("beforeunload", () => { setTimeout(() => document.body.classList.add("busy"), 150); });
  window.addEventListener("pageshow", () => { isLeaving = false; document.body.classList.remove("busy"); showCount(); });

  const upload = async (file) => {
    const zone = main().querySelector("[data-drop]");
    const state = zone.querySelector("[data-state]");
    state.textContent = `Reading ${file.name} …`;
    document.body.classList.add("busy");
    try {
      const headers = { "X-CSRF": zone.dataset.csrf, "Content-Type": "application/octet-stream" };
      const address = `/import/upload?${new URLSearchParams({ name: file.name })}`;
      const answer = await (await fetch(address, { method: "POST", headers, body: file })).json();
      if (answer.address) location.assign(answer.address);
      else state.textContent = answer.problem;
    } catch {
      state.textContent = "The file could not be read.";
    }
    document.body.classList.remove("busy");
  };
  document.addEventListener("input", (event) => {
    if (event.target.matches("[data-scrub]")) main().querySelector("[data-shown]").value = event.target.value;
  });
  document.addEventListener("change", (event) => {
    showCount();
    if (event.target.matches("[data-scrub]")) event.target.form.requestSubmit();
    if (event.target.matches("[data-file]") && event.target.files[0]) upload(event.target.files[0]);
  });
  for (const name of ["dragover", "drop"]) document.addEventListener(name, (event) => {
    if (!main().querySelector("[data-drop]")) return;
    event.preventDefault();
    if (name === "drop" && event.dataTransfer.files[0]) upload(event.dataTransfer.files[0]);
  });

  const refresh = async () => {
    const response = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!response.ok) throw new Error("not shown");
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    main().replaceWith(fresh.getElementById("main"));
    document.body.dataset.stamp = fresh.body.dataset.stamp;
    showTools();
    if (index >= 0) moveTo(index);
  };

  const follow = async () => {
    if (document.hidden) return;
    try {
      const { stamp } = await (await fetch("/changes.json")).json();
      document.body.classList.remove("offline");
      if (stamp === document.body.dataset.stamp) return;
      if (isDirty || isTyping(document.activeElement) || main().querySelector("form.edit:not(details:not([open]) *), input:checked")) {
        document.getElementById("changed").hidden = false;
      } else await refresh();
    } catch {
      document.body.classList.add("offline");
    }
  };

  const showCount = () => {
    const count = main().querySelector("[data-count]");
    if (!count) return;
    const chosen = main().querySelectorAll("[data-row] input:checked").length;
    count.textContent = chosen ? `${chosen} chosen` : "";
  };

  const showTools = () => { main().querySelectorAll("[data-all]").forEach((button) => { button.hidden = false; }); showCount(); };

  showTools();
  if (location.hash === "#search") document.querySelector('[data-key="/"]')?.focus();
  document.querySelector("[data-focus]")?.focus();
  setInterval(follow, POLL_MS);
})();
