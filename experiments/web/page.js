/* Remember the button with the keyboard's focus, since every move rebuilds it. */
document.addEventListener("focusin", event => { window.focused = event.target.closest("[data-name]")?.dataset.name });

/* Press buttons by keys. Keys are ignored while typing or dragging a slider, or when disabled. */
const keysOff = () => { try { return localStorage.getItem("diceKeys") === "off" } catch { return false } };
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || keysOff()) return;
  if (event.target.closest("input, textarea, select, [role=slider], [role=combobox], [role=listbox]")) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const found = [...document.querySelectorAll("[data-key]")].find(
    each => each.dataset.key === key && !each.disabled && each.offsetParent);
  if (found) { event.preventDefault(); found.click(); }
});
document.addEventListener("toggle", event => {
  const box = event.target.querySelector?.("[data-name=keys]");
  if (box) box.checked = !keysOff();
}, true);
document.addEventListener("change", event => {
  if (event.target.dataset?.name !== "keys") return;
  try { localStorage.setItem("diceKeys", event.target.checked ? "on" : "off") } catch {}
});
