// Forms: links have no empty parameters, a submitted form shows that it is busy, "/" focuses the query box.

/** Add this behavior to all forms of a page. */
export function easeForms(root) {
  for (const form of root.querySelectorAll("form")) {
    form.addEventListener("submit", () => {
      // Read the attribute: form.method could be a field with the name "method".
      const gets = form.getAttribute("method") === "get";
      const emptied = [...form.elements].filter((one) => gets && one.name && one.value === "" && !one.required);
      for (const one of emptied) one.disabled = true;
      const button = form.querySelector("button[type=submit]");
      button?.setAttribute("aria-busy", "true");
      // Restore the form when the user returns with the back button.
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
