// Scripts of all pages. Every page also works without them.
import { linkHighlights } from "./highlight.js";
import { easeForms } from "./forms.js";
import { letBrush } from "./brush.js";

linkHighlights(document);
easeForms(document);
letBrush(document);
