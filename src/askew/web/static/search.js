// Search: reformulations are loaded when the results are there; a typed reformulation gets its verdict at once.
// Without it a link shows the reformulations, and the form shows the comparison.
import { linkHighlights } from "./highlight.js";

const PAUSE = 400;

/** The elements of a part of a page that this service made. */
async function part(address, signal) {
  const reply = await fetch(address, { signal, headers: { accept: "text/html" } });
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  if (reply.ok) return [...page.body.children];
  const said = page.querySelector("[role=alert]")?.textContent ?? `error ${reply.status}`;
  throw new Error(said);
}

/** Load what waits to be loaded; where that fails, say why and leave the link. */
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

/** Show the verdict on what is typed, once the typing pauses. */
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
