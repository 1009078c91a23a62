// On a narrow screen the menus of a project scroll sideways: the page that is shown is never out of sight.
for (const nav of document.querySelectorAll(".nav, .subnav")) {
  const here = nav.querySelector("[aria-current]");
  // Not scrollIntoView, which may move the page as well.
  if (here) nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
}
