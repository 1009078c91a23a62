// Makes the page's elements equal to new ones from the server, touching only what differs: focus,
// selection and scroll stay where they are. Elements with an id are matched by it.
export function morph(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh.cloneNode(true));
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  morphAttributes(old, fresh);
  morphChildren(old, fresh);
}

function morphAttributes(old, fresh) {
  // Whether a <details> is open is the reader's choice once the page is loaded.
  const isReaders = (name) => name === "open";
  for (const { name, value } of [...fresh.attributes])
    if (!isReaders(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes])
    if (!isReaders(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
}

function morphChildren(old, fresh) {
  let place = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const match = matchFor(old, place, child);
    if (match === null) {
      old.insertBefore(child.cloneNode(true), place);
    } else {
      if (match === place) place = place.nextSibling;
      else old.insertBefore(match, place);
      morph(match, child);
    }
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

// By id among the old children; without one, the node in place if it is of the same kind.
function matchFor(old, place, child) {
  if (child.id) {
    const found = document.getElementById(child.id);
    return found?.parentNode === old ? found : null;
  }
  const same = place && !place.id && place.nodeName === child.nodeName;
  return same ? place : null;
}

// An element that moves among others loses the focus.
function keepFocus(focused) {
  if (focused?.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
}

// Takes HTML whose outermost elements all have ids, and morphs those that the page has.
export function morphParts(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const focused = document.activeElement;
  for (const fresh of [...template.content.children]) {
    const old = fresh.id && document.getElementById(fresh.id);
    if (old) morph(old, fresh);
  }
  keepFocus(focused);
  document.dispatchEvent(new Event("portal:morphed"));
  return true;
}

// Shows the rows of a table by their ids, in `order`; `rows` is the HTML of those that changed, and
// `parts` that of elements around them. False: the page lacks something of it.
export function morphRows({ order, rows, parts }) {
  const body = document.querySelector("[data-rows]");
  if (!body) return false;
  const template = document.createElement("template");
  template.innerHTML = rows;
  const fresh = new Map([...template.content.children].map((row) => [row.id, row]));
  if (order.some((id) => !fresh.has(id) && !document.getElementById(id))) return false;
  const wanted = new Set(order);
  for (const row of [...body.children]) if (!wanted.has(row.id)) row.remove();
  const focused = document.activeElement;
  let next = body.firstElementChild;
  for (const id of order) {
    let row = document.getElementById(id);
    if (!row) row = fresh.get(id).cloneNode(true);
    else if (fresh.has(id)) morph(row, fresh.get(id));
    if (row === next) next = next.nextElementSibling;
    else body.insertBefore(row, next);
  }
  keepFocus(focused);
  morphParts(parts);
  return true;
}
