// The grid of an array: a cell for each job. The live part of the page carries one letter for each
// job, and only the cells whose letter has changed are drawn again.
const grid = document.getElementById("array-grid");
const address = grid.dataset.address;
const only = grid.dataset.only;
const labels = JSON.parse(grid.dataset.labels);
const values = JSON.parse(grid.dataset.values);
const DELETED = "-";
let shown = "";
let shownRetries = {};

// The values of a job: the last name changes fastest.
function valuesAt(index) {
  const words = [];
  let rest = index;
  for (const [name, choices] of [...values].reverse()) {
    words.unshift(`${name}=${choices[rest % choices.length]}`);
    rest = Math.floor(rest / choices.length);
  }
  return words.join(" ");
}

function wordsOf(index, letter, retries) {
  const times = retries ? `, ${retries} ${retries === 1 ? "retry" : "retries"}` : "";
  return `${index}: ${labels[letter] ?? "Deleted"}${times}`;
}

function draw(cell, index, letter, retries) {
  const words = wordsOf(index, letter, retries);
  cell.className = `cell k${letter === DELETED ? "0" : letter}`;
  cell.classList.toggle("retried", Boolean(retries));
  cell.classList.toggle("other", Boolean(only) && only !== letter);
  cell.title = `${words}\n${valuesAt(index)}`;
  if (letter === DELETED) cell.removeAttribute("href");
  else cell.href = address + index;
  cell.setAttribute("aria-label", words);
}

function update() {
  const state = document.getElementById("array-state").dataset;
  const retries = JSON.parse(state.retries);
  const fresh = [];
  for (let index = 0; index < state.letters.length; index += 1) {
    const letter = state.letters[index];
    if (letter === shown[index] && retries[index] === shownRetries[index]) continue;
    const cell = grid.children[index] ?? document.createElement("a");
    draw(cell, index, letter, retries[index]);
    if (!cell.parentNode) {
      cell.setAttribute("tabindex", fresh.length ? -1 : 0);
      fresh.push(cell);
    }
  }
  grid.append(...fresh);
  shown = state.letters;
  shownRetries = retries;
}

document.addEventListener("portal:morphed", update);
update();
