// Search: loads reformulations after the results, and shows the verdict on a reformulation while it is typed.
// Without scripts, a link shows the reformulations, and the form opens the comparison.
import { linkHighlights } from "./highlight.js";

const PAUSE = 400;

/** Fetch a part of a page from this service and return its elements. */
async function part(address, signal) {
  const reply = await fetch(address, { signal, headers: { accept: "text/html" } });
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  if (reply.ok) return [...page.body.children];
  const said = page.querySelector("[role=alert]")?.textContent ?? `error ${reply.status}`;
  throw new Error(said);
}

/** Load the content of a placeholder. If that fails, show the reason and keep the link. */
async function load(place) {
  place.setAttribute("aria-busy", "true");
  const words = place.querySelector(".loading");
  if (words) words.textContent = "Reformulations are being written. ";
  try {
    const found = await part(place.dataset.load);
    place.replaceChildren(...found);
    linkHighlights(place);
  } catch (error) {
    if (words) words.textContent = `Reformulations could not be loaded (${error.message}). `;
  }
  place.removeAttribute("aria-busy");
}

/** Show the verdict on the typed text when typing pauses. */
function live(form) {
  const box = form.elements.namedItem("to");
  const place = form.parentElement.querySelector(".verdict-live");
  let timer = 0, asked = new AbortController();
  const show = async () => {
    asked.abort();
    asked = new AbortController();
    const text = box.value.trim();
    if (!text) return place.replaceChildren();
    try {
      place.replaceChildren(...await part(`${form.dataset.live}&to=${encodeURIComponent(text)}`, asked.signal));
    } catch (error) {
      if (error.name !== "AbortError") place.textContent = error.message;
    }
  };
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, PAUSE);
  });
}

for (const place of document.querySelectorAll("[data-load]")) load(place);
for (const form of document.querySelectorAll("form[data-live]")) live(form);
