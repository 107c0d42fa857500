// Forms: a link of a filled form has no empty parts, a busy button says so, "/" goes to the query box.

/** Ease the use of all forms of a page. */
export function easeForms(root) {
  for (const form of root.querySelectorAll("form")) {
    form.addEventListener("submit", () => {
      // A field may be called "method", so the attribute is asked and not the form.
      const gets = form.getAttribute("method") === "get";
      const emptied = [...form.elements].filter((one) => gets && one.name && one.value === "" && !one.required);
      for (const one of emptied) one.disabled = true;
      const button = form.querySelector("button[type=submit]");
      button?.setAttribute("aria-busy", "true");
      // Someone who comes back with the back button finds the form as it was.
      addEventListener("pageshow", () => {
        for (const one of emptied) one.disabled = false;
        button?.removeAttribute("aria-busy");
      }, { once: true });
    });
  }
  root.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const box = root.querySelector("input[type=search]");
      if (box) {
        event.preventDefault();
        box.focus();
        box.select();
      }
    }
  });
}
