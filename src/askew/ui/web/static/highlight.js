// Highlights the same item in a chart and in a table when the user points at one of them.

/** Highlight all elements that have the same data-key as the one under the pointer or with the focus. */
export function linkHighlights(root) {
  const places = new Map();
  for (const one of root.querySelectorAll("[data-key]")) {
    const key = one.dataset.key;
    if (!places.has(key)) places.set(key, []);
    places.get(key).push(one.closest("tr") ?? one);
  }
  const set = (event, lit) => {
    const found = event.target.closest?.("[data-key]");
    if (!found) return;
    for (const one of places.get(found.dataset.key) ?? []) one.classList.toggle("lit", lit);
  };
  for (const [begin, end] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
    root.addEventListener(begin, (event) => set(event, true));
    root.addEventListener(end, (event) => set(event, false));
  }
}
