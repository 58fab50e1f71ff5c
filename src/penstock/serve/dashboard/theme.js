// The theme: as the system has it, or as was chosen here. Not a module: it acts before the page is drawn.
(() => {
  const KEY = "penstock-theme";
  const root = document.documentElement;
  const show = (theme) => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  show(localStorage.getItem(KEY));
  document.addEventListener("DOMContentLoaded", () => {
    const select = document.getElementById("theme");
    select.value = localStorage.getItem(KEY) ?? "";
    select.addEventListener("change", () => {
      if (select.value) localStorage.setItem(KEY, select.value);
      else localStorage.removeItem(KEY);
      show(select.value);
    });
  });
})();
