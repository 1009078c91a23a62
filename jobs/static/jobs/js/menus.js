// Menus are <details>: one open at a time; a click elsewhere or Escape closes it.
const menus = [...document.querySelectorAll("details[data-menu]")];

document.addEventListener("click", (event) => {
  for (const menu of menus) if (menu.open && !menu.contains(event.target)) menu.open = false;
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of menus)
    if (menu.open) {
      const inside = menu.contains(document.activeElement);
      menu.open = false;
      if (inside) menu.querySelector("summary").focus();
    }
});
