// Links to places in the app, real addresses that can be opened in a new tab. A click is one step of the browser's
// history: Streamlit is told as it is told of Back, and reads all its controls from the address again. Setting the
// controls from Python instead would leave one entry in the history for each of them.
// data: [{label, note, address: {name: value, or null for what is left out}, current}]; without an address, the page as
// a reader first finds it

export default function ({parentElement, data}) {
  const list = document.createElement('ul');
  list.className = 'go';
  for (const place of data) {
    const url = new URL(location.href);
    if (!place.address) url.search = '';
    for (const [name, value] of Object.entries(place.address ?? {})) {
      if (value === null) url.searchParams.delete(name);
      else url.searchParams.set(name, value);
    }
    const link = document.createElement('a');
    link.href = url.href;
    link.textContent = place.label;
    if (place.current) link.setAttribute('aria-current', 'true');
    link.onclick = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      history.pushState({}, '', url);
      window.dispatchEvent(new PopStateEvent('popstate'));
      link.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true, composed: true}));  // shuts a popover
    };
    const item = document.createElement('li');
    item.append(link);
    if (place.note) {
      const note = document.createElement('div');
      note.className = 'quiet';
      note.textContent = place.note;
      item.append(note);
    }
    list.append(item);
  }
  parentElement.querySelector('.root').replaceChildren(list);
}
