// The terminal of a node: xterm.js, and a WebSocket to the gateway that a ticket opens.
//
// Binary messages are bytes of the terminal. Text is JSON: from here the size, from the gateway
// {"open": true}, {"exit": {...}} or {"error": "..."}.

const PROTOCOL = "mportal.terminal.v1";
const place = document.getElementById("terminal");
const state = document.getElementById("terminal-state");

// xterm.js writes its colors and sizes into style elements and attributes, which the content
// security policy forbids; as sheets and properties that a script sets they are allowed.
const sheets = new WeakMap();
Object.defineProperty(HTMLStyleElement.prototype, "textContent", {
  set(text) {
    if (!sheets.has(this)) {
      sheets.set(this, new CSSStyleSheet());
      document.adoptedStyleSheets.push(sheets.get(this));
    }
    sheets.get(this).replaceSync(text);
  },
});

const setAttribute = Element.prototype.setAttribute;
HTMLSpanElement.prototype.setAttribute = function setStyleByProperty(name, value) {
  if (name === "style") this.style.cssText = value;
  else setAttribute.call(this, name, value);
};

const terminal = new window.Terminal({
  cursorBlink: true,
  fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
  fontSize: 13,
  screenReaderMode: true,
  scrollback: 10000,
});
const fit = new window.FitAddon.FitAddon();
terminal.loadAddon(fit);
terminal.open(place);
fit.fit();

// Keyboards leave the terminal by Ctrl-Shift-Tab or the skip link: Tab belongs to the shell.
function show(text, canOpen) {
  state.hidden = !text;
  state.textContent = text;
  if (!canOpen) return;
  const again = document.createElement("button");
  again.type = "button";
  again.className = "button";
  again.textContent = "Open again";
  again.addEventListener("click", () => location.reload());
  state.append(" ", again);
}

function ended(message) {
  if (message.error) return message.error;
  const { code, why } = message.exit;
  return why || `The shell has ended with exit code ${code}.`;
}

function size() {
  return { rows: terminal.rows, columns: terminal.cols };
}

function connect(ticket) {
  const address = new URL(place.dataset.socket, location.href);
  address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(address, [PROTOCOL, ticket]);
  socket.binaryType = "arraybuffer";
  const encoder = new TextEncoder();
  let isOver = false;
  socket.addEventListener("open", () =>
    socket.send(JSON.stringify({ rank: Number(place.dataset.rank), ...size() })),
  );
  socket.addEventListener("message", ({ data }) => {
    if (data instanceof ArrayBuffer) {
      terminal.write(new Uint8Array(data));
      return;
    }
    const message = JSON.parse(data);
    if (message.open) {
      show("");
      terminal.focus();
    } else {
      isOver = true;
      show(ended(message), true);
    }
  });
  socket.addEventListener("close", () => {
    if (!isOver) show("The connection was lost, and the shell was ended.", true);
  });
  terminal.onData((text) => isOver || socket.send(encoder.encode(text)));
  terminal.onBinary((text) => isOver || socket.send(Uint8Array.from(text, (c) => c.charCodeAt(0))));
  terminal.onResize(() => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(size())));
}

async function open() {
  const answer = await fetch(place.dataset.ticket, {
    method: "POST",
    headers: { "X-CSRFToken": place.querySelector("[name=csrfmiddlewaretoken]").value },
  });
  const { ticket, error } = await answer.json();
  if (ticket) connect(ticket);
  else show(error, true);
}

new ResizeObserver(() => fit.fit()).observe(place);
open().catch(() => show("The portal does not answer.", true));
