// The models that can be chosen, as a table: shapes down, materials across.
// data: {title, columns: [text], rows: [{name, cells: [[place]]}]}, see place.js for a place

function cell(name, text, scope) {
  const made = document.createElement(name);
  made.textContent = text;
  if (scope) made.scope = scope;
  return made;
}

export default function ({parentElement, data}) {
  const table = document.createElement('table');
  table.className = 'models go';
  table.setAttribute('aria-label', data.title);
  const head = table.createTHead().insertRow();
  head.append(cell('td', ''), ...data.columns.map((column) => cell('th', column, 'col')));
  const body = table.createTBody();
  for (const {name, cells} of data.rows) {
    const row = body.insertRow();
    row.append(cell('th', name, 'row'));
    cells.forEach((places, index) => {
      const box = row.insertCell();
      box.dataset.column = data.columns[index];  // on a phone it stands in the cell
      for (const place of places) {
        const item = document.createElement('div');
        item.append(...link(place));
        box.append(item);
      }
    });
  }
  parentElement.querySelector('.root').replaceChildren(table);
}
