// What every page has: theme, menus, the way between pages, dialogs, keys, command palette,
// notifications, copy buttons, times, live parts.
import "./theme.js";
import "./menus.js";
import "./nav.js";
import "./dialogs.js";
import "./keys.js";
import "./palette/loader.js";
import "./notices/begin.js";
import "./copy.js";
import "./times.js";
import "./connection.js";
import "./live.js";
import "./forms.js";
import { settleDrafts } from "./submit/draft.js";

settleDrafts();
