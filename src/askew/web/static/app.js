// What the pages do beyond what they show. Without it everything still works.
import { linkHighlights } from "./highlight.js";
import { easeForms } from "./forms.js";

linkHighlights(document);
easeForms(document);
