"use strict";
// Let the reader filter the documents by kind.
const filter = document.getElementById("kind");
if (filter) {
  const documents = [...document.querySelectorAll("details.document")];
  const apply = () => {
    for (const item of documents) {
      item.hidden = filter.value !== "" && item.dataset.kind !== filter.value;
    }
    const shown = documents.filter((item) => !item.hidden).length;
    document.getElementById("shown").textContent = `${shown} of ${documents.length} shown`;
  };
  filter.addEventListener("change", apply);
  apply(); // a browser may remember the choice
}
