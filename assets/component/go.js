// A list of links to places in the app.
// data: [place], see place.js

export default function ({parentElement, data}) {
  const list = document.createElement('ul');
  list.className = 'go';
  for (const place of data) {
    const item = document.createElement('li');
    item.append(...link(place));
    list.append(item);
  }
  parentElement.querySelector('.root').replaceChildren(list);
}
