// The report is whole without this: it shows what a pointer, a finger or the keyboard is on, and unfolds link targets.
const told = document.getElementById("told");

function tell(event) {
  const title = event.target.closest?.(".node")?.querySelector("title");
  told.hidden = !title;
  if (title) told.textContent = title.textContent;
}

for (const kind of ["pointerover", "focusin", "click"]) document.addEventListener(kind, tell);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") told.hidden = true;
});

function unfold() {
  let place = document.getElementById(location.hash.slice(1));
  for (let folded = place; folded; folded = folded.parentElement) if (folded.tagName === "DETAILS") folded.open = true;
  place?.closest("details")?.scrollIntoView();
}

addEventListener("hashchange", unfold);
unfold();
