// Drawing a rectangle in a chart selects rows: its corners become the bounds of the form, which is then submitted.

const SVG = "http://www.w3.org/2000/svg";
const LEAST = 4;

/** Return the position of a pointer in the coordinates of an SVG. */
function placeIn(svg, event) {
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  return [at.x, at.y];
}

/** Let users draw a rectangle in each chart with the attribute data-brush. */
export function letBrush(root) {
  for (const chart of root.querySelectorAll("[data-brush]")) {
    const form = root.getElementById(`${chart.dataset.brush}-form`);
    const svg = chart.querySelector("svg");
    if (form && svg) brush(chart, svg, form);
  }
}

function brush(chart, svg, form) {
  const edge = Object.fromEntries(Object.entries(chart.dataset).map(([name, value]) => [name, Number(value)]));
  const within = ([x, y]) => [
    Math.min(Math.max(x, edge.left), edge.right), Math.min(Math.max(y, edge.top), edge.bottom),
  ];
  const valueX = (x) => edge.xLow + ((x - edge.left) / (edge.right - edge.left)) * (edge.xHigh - edge.xLow);
  const valueY = (y) => edge.yLow + ((edge.bottom - y) / (edge.bottom - edge.top)) * (edge.yHigh - edge.yLow);
  let start = null, box = null;

  const stop = () => {
    box?.remove();
    start = box = null;
  };
  svg.addEventListener("pointerdown", (event) => {
    // Touch scrolls the page; on a phone, users type the bounds.
    if (event.button !== 0 || event.pointerType === "touch") return;
    start = within(placeIn(svg, event));
    box = document.createElementNS(SVG, "rect");
    box.setAttribute("class", "brushed");
    svg.append(box);
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  svg.addEventListener("pointermove", (event) => {
    if (!start) return;
    const [x, y] = within(placeIn(svg, event));
    box.setAttribute("x", Math.min(x, start[0]));
    box.setAttribute("y", Math.min(y, start[1]));
    box.setAttribute("width", Math.abs(x - start[0]));
    box.setAttribute("height", Math.abs(y - start[1]));
  });
  svg.addEventListener("pointercancel", stop);
  addEventListener("keydown", (event) => event.key === "Escape" && stop());
  svg.addEventListener("pointerup", (event) => {
    if (!start) return;
    const [x, y] = within(placeIn(svg, event));
    const [left, right] = [start[0], x].sort((a, b) => a - b), [top, bottom] = [start[1], y].sort((a, b) => a - b);
    if (right - left < LEAST && bottom - top < LEAST) return stop();
    const bounds = {
      lean_min: valueX(left), lean_max: valueX(right), effectiveness_min: valueY(bottom), effectiveness_max: valueY(top),
    };
    for (const [name, value] of Object.entries(bounds)) form.elements.namedItem(name).value = Number(value.toPrecision(3));
    form.requestSubmit();
  });
  chart.classList.add("can-brush");
}
