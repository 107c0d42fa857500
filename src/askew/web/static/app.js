// What the pages do beyond what they show. Without it everything still works.
import { linkHighlights } from "./highlight.js";
import { easeForms } from "./forms.js";
import { letBrush } from "./brush.js";

linkHighlights(document);
easeForms(document);
letBrush(document);
