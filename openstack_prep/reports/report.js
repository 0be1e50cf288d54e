"use strict";
const tools = document.getElementById("tools");
const search = document.getElementById("search");
const found = document.getElementById("found");
const items = Array.from(document.querySelectorAll(".item"));
const groups = Array.from(document.querySelectorAll(".group"));
const texts = new Map(items.map((item) => [item, item.textContent.toLowerCase()]));
const hidden = new Set();

function show() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const item of items) {
    const matches = !hidden.has(item.dataset.kind) && words.every((word) => texts.get(item).includes(word));
    item.hidden = !matches;
    count += matches ? 1 : 0;
  }
  for (const group of groups) {
    const some = words.length > 0 && group.querySelector(".item:not([hidden])") !== null;
    if (some && !group.open) group.dataset.searched = "yes";
    if (some) group.open = true;
    else if (group.dataset.searched) {
      group.open = false;
      delete group.dataset.searched;
    }
  }
  found.textContent = count === items.length ? "" : `${count} of ${items.length}`;
}

function all(open) {
  for (const item of items) {
    if (item.localName === "details" && !item.hidden) item.open = open;
  }
  for (const group of groups) group.open = open;
}

search.addEventListener("input", show);
for (const chip of tools.querySelectorAll(".chip")) {
  chip.addEventListener("click", () => {
    const kind = chip.dataset.kind;
    const pressed = hidden.has(kind);
    pressed ? hidden.delete(kind) : hidden.add(kind);
    chip.setAttribute("aria-pressed", String(pressed));
    show();
  });
}
document.getElementById("open").addEventListener("click", () => all(true));
document.getElementById("close").addEventListener("click", () => all(false));
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== search) {
    event.preventDefault();
    search.focus();
  }
});
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = Array.from(document.querySelectorAll("details:not([open])"));
  for (const item of opened) item.open = true;
});
window.addEventListener("afterprint", () => {
  for (const item of opened) item.open = false;
});
tools.hidden = items.length === 0;
