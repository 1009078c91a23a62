// The buttons at both ends of what is in the page, which bring more of the log.
export function bindPages(panel, reader) {
  for (const [name, load] of [["earlier", () => reader.earlier()], ["later", () => reader.later()]]) {
    const button = panel.querySelector(`[data-${name}]`);
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await load();
      } finally {
        button.disabled = false;
      }
    });
  }
}
