"use strict";
// What every page can do: copy a command, and show itself in colours that its reader chose.

const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

(() => {
  const root = document.documentElement;
  root.classList.add("scripting");

  async function copy(button) {
    const code = find("code", button.parentElement);
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button.copy");
    if (button) copy(button);
  });

  // -- colours ---------------------------------------------------------------------------------------------------

  const THEMES = [["", "Auto", "as the system"], ["light", "Light", "light"], ["dark", "Dark", "dark"]];
  const button = find("#theme");
  let theme = 0, beforePrint = null;

  function setTheme(name) {
    if (name) root.dataset.theme = name; else delete root.dataset.theme;
  }
  button.addEventListener("click", () => {
    theme = (theme + 1) % THEMES.length;
    const [name, word, meaning] = THEMES[theme];
    button.textContent = word;
    button.setAttribute("aria-label", `Colours: ${meaning}`);
    setTheme(name);
  });
  addEventListener("beforeprint", () => { beforePrint = THEMES[theme][0]; setTheme("light"); });
  addEventListener("afterprint", () => { setTheme(beforePrint); });
})();
