// Runs before first paint, so that the theme does not flash. A file, not inline: the CSP allows no inline script.
(function () {
  var kept = null;
  try {
    kept = localStorage.getItem("toolreeve-theme");
  } catch {
    kept = null;
  }
  var value = kept === "dark" || kept === "light" ? kept : null;
  if (!value) value = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  document.documentElement.setAttribute("data-mantine-color-scheme", value);
})();
